/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looks up a host by name without blocking: a thread per question asks the system's
 * resolver, which obeys /etc/hosts and /etc/nsswitch.conf as everything else on
 * the machine does.
 */
#ifndef NET_RESOLVE_H
#define NET_RESOLVE_H

#include "net/address.h"

#include <event2/event.h>

struct resolve;

/* failure is 0 or an error of getaddrinfo(). */
typedef void (*resolve_cb)(void *user, int failure, const struct sockaddr_storage *address, socklen_t length);

/* NULL if it cannot begin. The answer comes from the loop and ends the question. */
struct resolve *resolve_begin(struct event_base *base, const struct address_parts *parts, unsigned attempt,
                              resolve_cb answer, void *user);

/* No answer will come. Safe on NULL. */
void resolve_cancel(struct resolve *resolve);

#endif
