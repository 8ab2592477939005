/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The book of addresses: what is known of nodes besides their ids. What an
 * operator wrote into the table counts most, then what a node says of itself
 * when it greets, then the configuration file.
 */
#ifndef DAEMON_NODE_ADDRESS_BOOK_H
#define DAEMON_NODE_ADDRESS_BOOK_H

#include "daemon/config/config.h"
#include "daemon/node/member_record.h"
#include "net/transport.h"

/* Members, those of the file, and some who come and go. */
#define ADDRESS_BOOK_MAX (3 * RAFT_MEMBERS_MAX)

struct address_book_entry {
    raft_id id;
    char name[PEER_NAME_MAX + 1];
    char address[PEER_ADDRESS_MAX + 1];
    char api[PEER_ADDRESS_MAX + 1];
    bool is_of_record; /* an operator's word: not to be changed by a greeting */
};

struct address_book {
    size_t count;
    struct address_book_entry entries[ADDRESS_BOOK_MAX];
};

/* The nodes of the file. */
void address_book_init(struct address_book *book, const struct daemon_config *config);

/* What the table says. True if something is new. */
bool address_book_take_records(struct address_book *book, const struct member_record *records, size_t count);

/* What a node says of itself. True if something is new. */
bool address_book_take_hello(struct address_book *book, const struct peer_hello *hello);

/* Forgets who is none of these: ourselves, a node of the file, a member, the leader (who may be none), one
 * with a record. */
void address_book_keep(struct address_book *book, const struct daemon_config *config,
                       const struct raft_config *members, raft_id leader, const struct member_record *records,
                       size_t count);

/* NULL if nothing is known. */
const struct address_book_entry *address_book_find(const struct address_book *book, raft_id id);

/* Its name, or its id in hexadecimal; "" for 0. */
#define ADDRESS_BOOK_NAME_BYTES (PEER_NAME_MAX + 1)
const char *address_book_name(const struct address_book *book, raft_id id,
                              char buffer[static ADDRESS_BOOK_NAME_BYTES]);

#endif
