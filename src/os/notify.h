/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Telling the service manager how we are: the protocol of sd_notify(3). It is
 * one datagram of "NAME=value" lines to a socket that the manager has put
 * into the environment, so it is spoken here by hand.
 *
 * Whatever goes wrong, the work goes on: a manager that cannot be told is no
 * reason to stop, and never one to wait.
 */
#ifndef OS_NOTIFY_H
#define OS_NOTIFY_H

#include "base/time.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
    int fd; /* -1: nobody wants to be told */
    struct sockaddr_un address;
    socklen_t address_length;
    gavel_ns watchdog; /* we count as hung if silent for so long; 0: no watchdog */
};

/*
 * Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and takes them out of
 * the environment: a command that found them would speak for us. To be called
 * before any environment is made from ours and while there is only one thread.
 * Without the first, or if the socket is of a kind that is not a path or an
 * abstract name, nothing is ever sent.
 */
void notify_open(struct notify *notify);

/* Safe on what notify_open() has filled in; nothing is sent from then on. */
void notify_close(struct notify *notify);

/*
 * One datagram, such as "READY=1\nSTATUS=leads nightly with epoch 7". A value
 * must not hold a newline. False if the manager could not take it now: its
 * queue is full or it is gone. True also where nobody wants to be told.
 */
bool notify_send(struct notify *notify, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* How often to send WATCHDOG=1: twice in the manager's limit. 0: never. */
gavel_ns notify_watchdog_every(const struct notify *notify);

#endif
