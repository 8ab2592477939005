/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a member shall be, as an operator said it; kept in the table under a
 * key of its own, so that every node knows names and addresses, and the leader
 * can make it so (members.c). For members that no operator has named, those
 * that the cluster began with, the leader writes down what it knows.
 *
 * As JSON, so that a newer gavel may add to it.
 */
#ifndef CORE_NODE_MEMBER_RECORD_H
#define CORE_NODE_MEMBER_RECORD_H

#include "core/table/table.h"
#include "wire/peer.h"

struct member_record {
    raft_id id; /* of the name; not part of the bytes: filled in by the reader */
    char name[PEER_NAME_MAX + 1];
    char address[PEER_ADDRESS_MAX + 1];
    char api[PEER_ADDRESS_MAX + 1];
    uint8_t priority;
    bool is_witness;
    bool is_voter; /* shall be one, as soon as it is level */
    /* Of the cluster, when it was written: what was wished before --force-new-cluster is over. */
    uint64_t generation;
    bool is_learned; /* the leader wrote it: the addresses are what the node said of itself */
    /* Which rules of the table its program knows (TABLE_VERSION), as the leader has heard it; 0: the first
     * only, or it was not heard. And in which start it was heard to say so, so that an earlier one is not
     * believed after it; 0: it was not heard. */
    uint32_t table_version;
    uint64_t incarnation;
};

/* The command that puts or deletes the record, as bytes that are handed over to the caller. ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status member_record_put(const struct member_record *record, uint8_t **ret_bytes,
                                                  size_t *ret_size);
GAVEL_CHECKED enum gavel_status member_record_delete(const char *name, uint8_t **ret_bytes, size_t *ret_size);

/* The record of that name; false if there is none, or it cannot be read. */
bool member_record_find(const struct table *table, const char *name, struct member_record *ret_record);

/* The record that this command puts; false if it is another command. */
bool member_record_of_command(const uint8_t *bytes, size_t size, struct member_record *ret_record);

/* All records; returns how many were written, at most RAFT_MEMBERS_MAX. */
size_t member_records(const struct table *table, struct member_record ret_records[RAFT_MEMBERS_MAX]);

/* Whether a key of the table is one of ours: after a change of it the addresses of nodes are read anew. */
bool member_record_is_key(const uint8_t *key, size_t size);

#endif
