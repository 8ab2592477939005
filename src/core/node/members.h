/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Members as operators want them. A record in the table says what a member
 * shall be (member_record.h); the leader compares the records with the
 * configuration of Raft at every tick, and makes one change at a time until
 * they agree:
 *
 *     has a record and is no member            add it as a learner; or, if the record is of an earlier
 *                                              generation or was not an operator's word, delete the record
 *     shall be a voter, is a learner, level    make it a voter
 *     shall be a learner, is a voter           take it out; then the first line applies
 *
 * So a change survives the death of the leader that began it. For members without
 * a record (those that the cluster began with) it writes one, so that a node that
 * joins later knows where they are. To remove a member, its record goes first, and
 * then the member itself (order_members.c). Into each record the leader also writes
 * which rules of the table the member knows, and when all know more than the cluster
 * uses, that it uses them (version.c).
 */
#ifndef CORE_NODE_MEMBERS_H
#define CORE_NODE_MEMBERS_H

#include "core/node/addresses.h"

/* The id that belongs to the name of a node; must not do I/O. */
typedef raft_id node_id_of_name(const char *name);

struct node_members {
    node_id_of_name *id_of_name; /* NULL: not introduced; there are neither names nor records */
    struct node_addresses addresses;
    struct member_record records[RAFT_MEMBERS_MAX]; /* what the table says of members */
    size_t record_count;
    uint32_t knows;         /* the rules of the table that we know */
    uint32_t version;       /* those that the cluster uses, says the table; see version.c */
    raft_index written;     /* the newest record that we, as leader … */
    raft_term written_in;   /* … of this term, have put into the log */
    gavel_ns promotes_from; /* no learner is made a voter before this: the last try failed */
    bool is_due;            /* records and configuration are to be compared … */
    size_t next;            /* … from this record on */
};

#endif
