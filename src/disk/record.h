/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The records of the database: keys and values as bytes.
 *
 *   key             value, after 8 bytes of checksum; numbers little-endian
 *   'a'             whose directory it is, and the version of the format
 *   'b'             the snapshot: where it stands, the configuration, its size
 *   'c' number      a piece of its bytes (number: 4 bytes, big-endian, from 0)
 *   'd' number      likewise, in slot 1; 'b' says which slot counts
 *   'e' index       an entry of the log (index: 8 bytes, big-endian)
 *   'y'             what is known about the data directories of the others; may be missing
 *   'z'             the state, and the transaction that wrote it
 *
 * 'z' comes last so that it lies on the same page as the newest entries, and an
 * append changes one leaf only. Every transaction writes it. 'a' and 'z' begin
 * like this in every future format: pages.c and verify.c rely on it.
 */
#ifndef DISK_RECORD_H
#define DISK_RECORD_H

#include "disk/disk.h"

/*
 * 2, since 0.7.0: the directory has a number, and 'a' says which file it was written to.
 * 3: the snapshot may be in slot 1, and there may be leftovers (stage.c). Only while that is so: otherwise it
 * is 2.
 */
#define RECORD_VERSION 3
#define RECORD_VERSION_PLAIN 2

#define RECORD_SUM_BYTES 8
#define RECORD_KEY_BYTES_MAX 9
#define RECORD_IDENTITY_V1_BYTES (8 + 4 + 8 + 8 + 2 * DISK_NAME_MAX)
#define RECORD_IDENTITY_BYTES (RECORD_IDENTITY_V1_BYTES + 8 + 8)
#define RECORD_STATE_BYTES (14 * 8)
#define RECORD_HEAD_BYTES_MAX (4 * 8 + RAFT_CONFIG_BYTES_MAX)
#define RECORD_MET_BYTES (7 * 8) /* of each member that was met */
#define RECORD_MET_BYTES_MAX (RAFT_MEMBERS_MAX * RECORD_MET_BYTES)
#define RECORD_ENTRY_BYTES 9 /* before the bytes of the entry itself */

/*
 * With its checksum and LMDB's own header a piece fills one page of 4 KiB.
 * Larger ones would need consecutive pages, which a nearly full file may not
 * have just when it needs a snapshot.
 */
#define RECORD_PIECE_BYTES (4096 - 16 - RECORD_SUM_BYTES)
_Static_assert(RECORD_PIECE_BYTES == DISK_PIECE_BYTES, "what disk.h says");

/* Which file data.mdb is to the file system: a copy is a different one. */
struct record_file_id {
    uint64_t inode;   /* 0: unknown, in format 1 */
    uint64_t born_ns; /* 0: the file system does not say */
};

struct record_key {
    size_t size;
    uint8_t bytes[RECORD_KEY_BYTES_MAX];
};

struct record_key record_key_identity(void);
struct record_key record_key_head(void);
struct record_key record_key_piece(unsigned slot, uint32_t number); /* slot 0 or 1 */
struct record_key record_key_entry(raft_index index);
raft_index record_entry_index(const uint8_t key[9]);
struct record_key record_key_met(void);
struct record_key record_key_state(void);

/* What the checksums of a directory begin with, so that a page of another node's file is found too. */
uint64_t record_seed(const struct disk_identity *identity);

/* The checksum of a record: of its key, then of its value. */
uint64_t record_sum(uint64_t seed, const uint8_t *key, size_t key_size, const uint8_t *body, size_t size);

void record_put_u64(uint8_t *bytes, uint64_t value);
uint64_t record_get_u64(const uint8_t *bytes);

void record_put_identity(uint8_t bytes[RECORD_IDENTITY_BYTES], const struct disk_identity *identity,
                         const struct record_file_id *file_id, uint32_t version);
/*
 * ERR_INVALID if it is not our record, ERR_STORE_TOO_NEW; *ret_identity and
 * *ret_file_id stay untouched then.
 */
GAVEL_CHECKED enum gavel_status record_get_identity(const uint8_t *bytes, size_t size,
                                                    struct disk_identity *ret_identity,
                                                    struct record_file_id *ret_file_id,
                                                    uint32_t *ret_version);

void record_put_state(uint8_t bytes[RECORD_STATE_BYTES], const struct raft_state *state, uint64_t txn);
GAVEL_CHECKED enum gavel_status record_get_state(const uint8_t *bytes, size_t size,
                                                 struct raft_state *ret_state, uint64_t *ret_txn);

/* The part of the state about the other members; returns the length. */
size_t record_put_met(uint8_t bytes[RECORD_MET_BYTES_MAX], const struct raft_state *state);
GAVEL_CHECKED enum gavel_status record_get_met(const uint8_t *bytes, size_t size,
                                               struct raft_state *ret_state);

/* A snapshot without its bytes; returns the length. */
size_t record_put_head(uint8_t bytes[RECORD_HEAD_BYTES_MAX], const struct raft_snapshot *snapshot,
                       unsigned slot);
GAVEL_CHECKED enum gavel_status record_get_head(const uint8_t *bytes, size_t size,
                                                struct raft_snapshot *ret_snapshot, unsigned *ret_slot);

/* ret_entry->data is borrowed from bytes. */
void record_put_entry(uint8_t *bytes, const struct raft_entry *entry);
GAVEL_CHECKED enum gavel_status record_get_entry(const uint8_t *bytes, size_t size,
                                                 struct raft_entry *ret_entry);

#endif
