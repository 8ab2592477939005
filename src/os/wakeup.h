/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A descriptor by which one thread wakes another that waits in poll(2) or
 * epoll(7). It is readable from the first ring until it is cleared, however often
 * it was rung. -1 means that there is none.
 */
#ifndef OS_WAKEUP_H
#define OS_WAKEUP_H

int wakeup_open(void); /* -1 and errno if no descriptor is left */
void wakeup_ring(int fd);
void wakeup_clear(int fd); /* also a timerfd */
void wakeup_close(int *fd);

#endif
