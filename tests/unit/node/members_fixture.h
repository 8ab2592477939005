/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Nodes that are named, for tests of what operators order and of records: the
 * test is the network and the disks, which lose nothing and take no time, and
 * the operator.
 */
#ifndef TESTS_UNIT_NODE_MEMBERS_FIXTURE_H
#define TESTS_UNIT_NODE_MEMBERS_FIXTURE_H

#include "core/node/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NODES 4
#define PACKETS_MAX 4096

struct one {
    struct node node;
    struct table table;
    uint64_t written;
    uint64_t synced;
    bool is_cut;
    bool stops_late; /* its work stops when the test says so */
    bool must_stop;
    enum gavel_status failure; /* it has ended over it */
    unsigned answers;
    enum gavel_status status; /* of the newest answer */
    char text[NODE_ORDER_TEXT_BYTES];
};

struct packet {
    unsigned to;
    struct raft_message message;
    struct raft_entry entries[64];
};

struct fixture {
    struct one nodes[NODES];
    gavel_ns now;
    struct node_actions actions;
    struct packet packets[PACKETS_MAX]; /* a ring */
    size_t first;
    size_t count;
};

void introduce(struct node *node);
/* a, b and c are the members; d waits to be added. */
int set_up(void **state);
int tear_down(void **state);
/* An event for one node, and what it leaves to do; no message arrives. */
enum gavel_status step(struct fixture *f, struct one *one, struct node_event event);
/* The same, and all that comes of it. */
enum gavel_status feed(struct fixture *f, unsigned which, struct node_event event);
/* Time passes. */
void run(struct fixture *f, gavel_ns length);
/* Who works. */
unsigned leader_of(const struct fixture *f);
/* An operator orders something about that node. */
enum gavel_status order(struct fixture *f, unsigned which, enum node_order_kind kind, const char *name);
const char *name_of(unsigned which);
const struct raft_member *member(const struct fixture *f, unsigned which);
bool has_record(const struct fixture *f, unsigned which, struct member_record *ret_record);

#endif
