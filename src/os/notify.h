/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reports our state to the service manager, by the protocol of sd_notify(3). A
 * report is one datagram of "NAME=value" lines to a socket that the manager names
 * in the environment. That is simple enough to do without a library.
 *
 * A manager that cannot be reached is no reason to stop, and never one to wait.
 */
#ifndef OS_NOTIFY_H
#define OS_NOTIFY_H

#include "base/time.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
    int fd; /* -1: there is no manager to report to */
    struct sockaddr_un address;
    socklen_t address_length;
    gavel_ns watchdog; /* we count as hung if silent for this long; 0: no watchdog */
};

/*
 * Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and removes them from the
 * environment: a command that found them would report as if it were us. Call it
 * before any environment is made from ours and while there is only one thread.
 * Nothing is ever sent if NOTIFY_SOCKET is missing, or is neither a path nor an
 * abstract name.
 */
void notify_open(struct notify *notify);

/* Safe on what notify_open() has filled in; nothing is sent from then on. */
void notify_close(struct notify *notify);

/*
 * Sends one datagram, such as "READY=1\nSTATUS=leads nightly with epoch 7". A value
 * must not contain a newline. False if the manager cannot take it now, because
 * its queue is full or it is gone. True also if there is no manager.
 */
bool notify_send(struct notify *notify, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* How often to send WATCHDOG=1: twice per watchdog limit. 0: never. */
gavel_ns notify_watchdog_every(const struct notify *notify);

#endif
