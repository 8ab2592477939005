/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The bytes of each record. Whatever is read is checked for its form, even
 * though a checksum has already said that it is what we wrote: a version of
 * gavel with a mistake may have written it.
 */
#include "disk/record.h"

#include "disk/checksum.h"

#include <string.h>

static const uint8_t magic[8] = {'g', 'a', 'v', 'e', 'l', 'd', '\r', '\n'};

struct record_key record_key_identity(void) { return (struct record_key){.size = 1, .bytes = {'a'}}; }

struct record_key record_key_head(void) { return (struct record_key){.size = 1, .bytes = {'b'}}; }

struct record_key record_key_piece(unsigned slot, uint32_t number)
{
    struct record_key key = {.size = 5, .bytes = {slot == 0 ? 'c' : 'd'}};

    for (unsigned i = 0; i < 4; i++)
        key.bytes[1 + i] = (uint8_t)(number >> (24 - 8 * i));
    return key;
}

struct record_key record_key_entry(raft_index index)
{
    struct record_key key = {.size = 9, .bytes = {'e'}};

    for (unsigned i = 0; i < 8; i++)
        key.bytes[1 + i] = (uint8_t)(index >> (56 - 8 * i));
    return key;
}

raft_index record_entry_index(const uint8_t key[9])
{
    raft_index index = 0;

    for (unsigned i = 0; i < 8; i++)
        index = index << 8 | key[1 + i];
    return index;
}

struct record_key record_key_met(void) { return (struct record_key){.size = 1, .bytes = {'y'}}; }

struct record_key record_key_state(void) { return (struct record_key){.size = 1, .bytes = {'z'}}; }

void record_put_u64(uint8_t *bytes, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

uint64_t record_get_u64(const uint8_t *bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < 8; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static void put_names(uint8_t bytes[RECORD_IDENTITY_V1_BYTES], uint8_t version,
                      const struct disk_identity *identity)
{
    memset(bytes, 0, RECORD_IDENTITY_V1_BYTES);
    memcpy(bytes, magic, sizeof magic);
    bytes[8] = version;
    record_put_u64(bytes + 12, identity->cluster);
    record_put_u64(bytes + 20, identity->node);
    memcpy(bytes + 28, identity->cluster_name, strnlen(identity->cluster_name, DISK_NAME_MAX - 1));
    memcpy(bytes + 28 + DISK_NAME_MAX, identity->node_name, strnlen(identity->node_name, DISK_NAME_MAX - 1));
}

uint64_t record_seed(const struct disk_identity *identity)
{
    uint8_t bytes[RECORD_IDENTITY_V1_BYTES];

    put_names(bytes, 1, identity); /* of format 1 for ever: no checksum changes with the format */
    return checksum_add(0, bytes, sizeof bytes);
}

uint64_t record_sum(uint64_t seed, const uint8_t *key, size_t key_size, const uint8_t *body, size_t size)
{
    return checksum_add(checksum_add(seed, key, key_size), body, size);
}

/* magic (8) · version (4) · cluster · node · name of the cluster · name of the node (64 each, padded by 0) ·
 * from format 2 on: inode · birth of data.mdb */
void record_put_identity(uint8_t bytes[RECORD_IDENTITY_BYTES], const struct disk_identity *identity,
                         const struct record_file_id *file_id, uint32_t version)
{
    put_names(bytes, (uint8_t)version, identity);
    record_put_u64(bytes + RECORD_IDENTITY_V1_BYTES, file_id->inode);
    record_put_u64(bytes + RECORD_IDENTITY_V1_BYTES + 8, file_id->born_ns);
}

enum gavel_status record_get_identity(const uint8_t *bytes, size_t size, struct disk_identity *ret_identity,
                                      struct record_file_id *ret_file_id, uint32_t *ret_version)
{
    struct disk_identity identity = {0};
    struct record_file_id file_id = {0};
    uint32_t version = 0;

    /* Of a newer format only magic and version are known to stand where they are. */
    if (size < 12 || memcmp(bytes, magic, sizeof magic) != 0)
        return GAVEL_ERR_INVALID;
    for (unsigned i = 0; i < 4; i++)
        version |= (uint32_t)bytes[8 + i] << (8 * i);
    *ret_version = version;
    if (version > RECORD_VERSION)
        return GAVEL_ERR_STORE_TOO_NEW;
    if (version == 0 || size != (version == 1 ? RECORD_IDENTITY_V1_BYTES : RECORD_IDENTITY_BYTES))
        return GAVEL_ERR_INVALID;
    identity.cluster = record_get_u64(bytes + 12);
    identity.node = record_get_u64(bytes + 20);
    memcpy(identity.cluster_name, bytes + 28, DISK_NAME_MAX);
    memcpy(identity.node_name, bytes + 28 + DISK_NAME_MAX, DISK_NAME_MAX);
    if (identity.cluster_name[DISK_NAME_MAX - 1] || identity.node_name[DISK_NAME_MAX - 1])
        return GAVEL_ERR_INVALID;
    if (version > 1) {
        file_id.inode = record_get_u64(bytes + RECORD_IDENTITY_V1_BYTES);
        file_id.born_ns = record_get_u64(bytes + RECORD_IDENTITY_V1_BYTES + 8);
    }
    *ret_identity = identity;
    *ret_file_id = file_id;
    return GAVEL_OK;
}

void record_put_state(uint8_t bytes[RECORD_STATE_BYTES], const struct raft_state *state, uint64_t txn)
{
    const uint64_t numbers[] = {
        txn,
        state->cluster,
        state->generation,
        state->id,
        state->incarnation,
        state->term,
        state->vote,
        state->commit,
        state->promise.leader,
        state->promise.incarnation,
        state->promise.term,
        state->promise.lease_epoch,
        (uint64_t)state->promise.length,
        state->directory, /* 0 in format 1 */
    };

    _Static_assert(sizeof numbers == RECORD_STATE_BYTES, "the header says how long");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        record_put_u64(bytes + 8 * i, numbers[i]);
}

enum gavel_status record_get_state(const uint8_t *bytes, size_t size, struct raft_state *ret_state,
                                   uint64_t *ret_txn)
{
    if (size != RECORD_STATE_BYTES)
        return GAVEL_ERR_INVALID;
    *ret_txn = record_get_u64(bytes);
    *ret_state = (struct raft_state){
        .cluster = record_get_u64(bytes + 8),
        .generation = record_get_u64(bytes + 16),
        .id = record_get_u64(bytes + 24),
        .incarnation = record_get_u64(bytes + 32),
        .term = record_get_u64(bytes + 40),
        .vote = record_get_u64(bytes + 48),
        .commit = record_get_u64(bytes + 56),
        .directory = record_get_u64(bytes + 104),
        .promise =
            {
                .leader = record_get_u64(bytes + 64),
                .incarnation = record_get_u64(bytes + 72),
                .term = record_get_u64(bytes + 80),
                .lease_epoch = record_get_u64(bytes + 88),
                .length = (gavel_ns)record_get_u64(bytes + 96),
            },
    };
    return GAVEL_OK;
}

size_t record_put_met(uint8_t bytes[RECORD_MET_BYTES_MAX], const struct raft_state *state)
{
    for (size_t i = 0; i < state->met_count; i++) {
        const struct raft_met *met = &state->met[i];
        const uint64_t numbers[] = {met->id,       met->directory, met->incarnation, met->start,
                                    met->began_at, met->acked,     met->is_refused};

        _Static_assert(sizeof numbers == RECORD_MET_BYTES, "the header says how long");
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            record_put_u64(bytes + i * RECORD_MET_BYTES + 8 * k, numbers[k]);
    }
    return (size_t)state->met_count * RECORD_MET_BYTES;
}

enum gavel_status record_get_met(const uint8_t *bytes, size_t size, struct raft_state *ret_state)
{
    if (size > RECORD_MET_BYTES_MAX || size % RECORD_MET_BYTES != 0)
        return GAVEL_ERR_INVALID;
    ret_state->met_count = (uint8_t)(size / RECORD_MET_BYTES);
    for (size_t i = 0; i < ret_state->met_count; i++, bytes += RECORD_MET_BYTES)
        ret_state->met[i] = (struct raft_met){.id = record_get_u64(bytes),
                                              .directory = record_get_u64(bytes + 8),
                                              .incarnation = record_get_u64(bytes + 16),
                                              .start = record_get_u64(bytes + 24),
                                              .began_at = record_get_u64(bytes + 32),
                                              .acked = record_get_u64(bytes + 40),
                                              .is_refused = record_get_u64(bytes + 48) != 0};
    return GAVEL_OK;
}

/* index · term · index of the configuration · size, and in its highest bit the slot · configuration */
#define SLOT_BIT (UINT64_C(1) << 63)

size_t record_put_head(uint8_t bytes[RECORD_HEAD_BYTES_MAX], const struct raft_snapshot *snapshot,
                       unsigned slot)
{
    record_put_u64(bytes, snapshot->index);
    record_put_u64(bytes + 8, snapshot->term);
    record_put_u64(bytes + 16, snapshot->config_index);
    record_put_u64(bytes + 24, snapshot->size | (slot == 1 ? SLOT_BIT : 0));
    return 32 + raft_config_encode(&snapshot->config, bytes + 32);
}

enum gavel_status record_get_head(const uint8_t *bytes, size_t size, struct raft_snapshot *ret_snapshot,
                                  unsigned *ret_slot)
{
    struct raft_snapshot snapshot = {0};

    if (size < 32 || raft_config_decode(bytes + 32, size - 32, &snapshot.config) != GAVEL_OK)
        return GAVEL_ERR_INVALID;
    snapshot.index = record_get_u64(bytes);
    snapshot.term = record_get_u64(bytes + 8);
    snapshot.config_index = record_get_u64(bytes + 16);
    snapshot.size = record_get_u64(bytes + 24) & ~SLOT_BIT;
    if (snapshot.index >= RAFT_NUMBER_MAX || snapshot.size / RECORD_PIECE_BYTES >= UINT32_MAX)
        return GAVEL_ERR_INVALID;
    *ret_snapshot = snapshot;
    *ret_slot = (record_get_u64(bytes + 24) & SLOT_BIT) != 0;
    return GAVEL_OK;
}

void record_put_entry(uint8_t *bytes, const struct raft_entry *entry)
{
    record_put_u64(bytes, entry->term);
    bytes[8] = (uint8_t)entry->kind;
    if (entry->size > 0)
        memcpy(bytes + RECORD_ENTRY_BYTES, entry->data, entry->size);
}

enum gavel_status record_get_entry(const uint8_t *bytes, size_t size, struct raft_entry *ret_entry)
{
    if (size < RECORD_ENTRY_BYTES || bytes[8] >= RAFT_ENTRY_KIND_COUNT ||
        size - RECORD_ENTRY_BYTES > RAFT_ENTRY_BYTES_MAX)
        return GAVEL_ERR_INVALID;
    ret_entry->term = record_get_u64(bytes);
    ret_entry->kind = (enum raft_entry_kind)bytes[8];
    ret_entry->size = (uint32_t)(size - RECORD_ENTRY_BYTES);
    ret_entry->data = ret_entry->size > 0 ? bytes + RECORD_ENTRY_BYTES : NULL;
    return GAVEL_OK;
}
