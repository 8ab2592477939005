/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The addresses of nodes: what is known of nodes besides their ids. What an
 * operator wrote into the table counts most, then what a node says of itself
 * when it greets, then the configuration file.
 */
#ifndef CORE_NODE_ADDRESSES_H
#define CORE_NODE_ADDRESSES_H

#include "core/node/member_record.h"

/* Members, those of the file, and some who come and go. */
#define NODE_ADDRESSES_MAX (3 * RAFT_MEMBERS_MAX)

/* What a node is said to be; borrowed texts, "" if not known. */
struct node_described {
    raft_id id;
    const char *name;
    const char *address; /* for its peers */
    const char *api;
    uint32_t table_version; /* the rules that it knows (table.h); 0: not told, of ourselves TABLE_VERSION */
    uint64_t directory;     /* in its greeting: of its data; 0: not told */
    uint64_t incarnation;   /* likewise: its start */
};

struct node_address {
    raft_id id;
    char name[PEER_NAME_MAX + 1];
    char address[PEER_ADDRESS_MAX + 1];
    char api[PEER_ADDRESS_MAX + 1];
    uint32_t table_version; /* as it said when it last greeted us … */
    uint64_t directory;     /* … with these data … */
    uint64_t incarnation;   /* … in this start; 0: it did not */
    bool is_of_file;        /* ourselves, or of the configuration file: never forgotten */
    bool is_of_record;      /* an operator's word: not to be changed by a greeting */
};

/* A zeroed struct knows nobody. */
struct node_addresses {
    size_t count;
    struct node_address entries[NODE_ADDRESSES_MAX];
};

/* A node of the file, or ourselves. */
void node_addresses_take_file(struct node_addresses *addresses, const struct node_described *node);

/* What the table says. True if something is new. */
bool node_addresses_take_records(struct node_addresses *addresses, const struct member_record *records,
                                 size_t count);

/* What a node says of itself. True if something is new. */
bool node_addresses_take_greeting(struct node_addresses *addresses, const struct node_described *node);

/* Forgets who is none of these: ourselves, a node of the file, a member, the leader (who may be none), one
 * with a record. */
void node_addresses_keep(struct node_addresses *addresses, const struct raft_config *members, raft_id leader,
                         const struct member_record *records, size_t count);

/* NULL if nothing is known. */
const struct node_address *node_addresses_find(const struct node_addresses *addresses, raft_id id);

/* Its name, or its id in hexadecimal; "" for 0. */
#define NODE_ADDRESSES_NAME_BYTES (PEER_NAME_MAX + 1)
const char *node_addresses_name(const struct node_addresses *addresses, raft_id id,
                                char buffer[static NODE_ADDRESSES_NAME_BYTES]);

#endif
