/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A network of the test's own: a namespace for each node, joined by a bridge
 * in a namespace of the test itself, and links that can be cut one way.
 *
 *        ┌──────────────── the test ───────────────┐
 *        │                 bridge                   │
 *        └──┬──────────┬──────────┬──────────┬──────┘
 *         ┌─┴──┐     ┌─┴──┐     ┌─┴──┐     ┌─┴──┐
 *         │ n1 │     │ n2 │     │ n3 │     │ …  │      10.77.0.1, 10.77.0.2, …
 *         └────┘     └────┘     └────┘     └────┘
 *
 * Namespaces are held by descriptors only: whatever happens to the test, the
 * kernel removes them with its last process.
 */
#ifndef CHAOS_NET_H
#define CHAOS_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NET_NODES_MAX 8

enum net_cut {
    NET_OPEN,
    NET_LOST,    /* what is sent vanishes: dropped where it arrives */
    NET_REFUSED, /* … and the sender gets an error: no route */
};

struct net {
    int count;
    int own;                                         /* the namespace of the test */
    int namespaces[NET_NODES_MAX];                   /* to enter */
    int netlinks[NET_NODES_MAX];                     /* to change routes and rules there */
    enum net_cut cuts[NET_NODES_MAX][NET_NODES_MAX]; /* from, to */
};

/* Makes the network; the caller is moved into a namespace of its own. False, and a reason, where that is not
 * allowed. Before any thread is started. */
bool net_make(struct net *net, int count, char *why, size_t size);
void net_done(struct net *net);

/* "10.77.0.3" for node 2. */
void net_address(int node, char *buffer, size_t size);

/* Moves the calling process into the namespace of a node: for a child before exec(). */
bool net_enter(const struct net *net, int node);

/*
 * A TCP socket of that namespace, close-on-exec and non-blocking; -1 on
 * failure. The caller stays where it is.
 */
int net_socket(const struct net *net, int node);

/* One way. Setting what is already so is free. Aborts if the kernel refuses: a test whose cuts do not cut
 * proves nothing. */
void net_set(struct net *net, int from, int to, enum net_cut cut);
void net_set_both(struct net *net, int a, int b, enum net_cut cut);

/* All nodes hear each other. */
void net_heal(struct net *net);

/* Bit sets of nodes: cuts every link, both ways, between a node in the set and one that is not. */
void net_split(struct net *net, unsigned side, enum net_cut cut);

#endif
