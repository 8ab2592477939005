/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The event loops of a node's threads. Each belongs to its thread alone, so that
 * libevent needs no locks; other threads reach it by descriptors that it watches:
 * mailboxes, wake-ups, and orders.
 */
#ifndef DAEMON_SHARED_LOOP_H
#define DAEMON_SHARED_LOOP_H

#include <event2/event.h>

/* For many connections; NULL: out of memory. */
struct event_base *loop_new(void);

/* Calls back whenever the descriptor is readable; NULL: out of memory, or the descriptor is bad. */
struct event *loop_watch(struct event_base *base, int fd, event_callback_fn callback, void *user);

/* Frees an event, if there is one. */
void loop_drop(struct event **event);

/* Orders from other threads to this one: a set of bits. */
struct loop_orders {
    int fd; /* a wake-up; the owner opens and closes it */
    _Atomic unsigned set;
};

void loop_orders_give(struct loop_orders *orders, unsigned set); /* any thread */
unsigned loop_orders_take(struct loop_orders *orders);

#endif
