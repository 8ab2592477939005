/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loop: one epoll set with a timer, a wake-up, the doorbell, the push of
 * the store and the pidfds of other leaders. gavel_fd() returns its descriptor,
 * so a program may drive it instead of our own thread.
 */
#ifndef LIB_LOOP_LOOP_H
#define LIB_LOOP_LOOP_H

#include "base/time.h"
#include "lib/source.h"

#include <stdbool.h>

/* Opens the epoll set with its timer and wake-up; bell and push are added if they have a descriptor.
 * ERR_IO. */
GAVEL_CHECKED enum gavel_status loop_open(struct gavel *gavel);
void loop_close(struct gavel *gavel);

/* Starts our own thread, which drives the loop until loop_stop_thread(). */
GAVEL_CHECKED enum gavel_status loop_start_thread(struct gavel *gavel);
void loop_stop_thread(struct gavel *gavel);

/* Does what is due once, waiting for it at most timeout_ms (-1: no limit). The caller is the driver. */
void loop_pass(struct gavel *gavel, int timeout_ms);

/* Makes the loop look at its queues. The handle's mutex is held. */
void loop_wake(struct gavel *gavel);

GAVEL_CHECKED enum gavel_status loop_add(struct gavel *gavel, struct source *source);
void loop_remove(struct gavel *gavel, struct source *source);

/* Starts or stops listening to a source. */
void loop_listen(struct gavel *gavel, struct source *source, bool listens);

/*
 * Waits until is_done(argument), called with the handle's mutex held, returns
 * true, or until `until`. Drives the loop meanwhile if no thread of ours does.
 * The mutex is held at the call and at the return. Returns the last result of
 * is_done().
 */
bool loop_wait(struct gavel *gavel, bool (*is_done)(void *argument), void *argument, gavel_ns until);

/* Becomes the driver; false if another thread is. The mutex is held. */
bool loop_take_over(struct gavel *gavel);
void loop_hand_back(struct gavel *gavel);

#endif
