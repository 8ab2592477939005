/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which rules of the table a cluster uses (TABLE_VERSION in table.h).
 *
 * Commands are carried out by rules that every member knows, or tables would differ.
 * Whoever leads must know which these are, also of members that are down and that it
 * has never heard. So it stands in the table:
 *
 *   1. The record of each member has the version that its program knows, and the start
 *      (incarnation) in which it said so. The leader writes it when it hears something
 *      else in a later start, higher or lower, from the directory that the member is
 *      bound to. A member without it counts as one of the first version.
 *   2. When all members know more than the cluster uses, by their records, the leader
 *      writes the lowest of them into a record of its own, "gavel/version". Commands
 *      are of that version from the moment at which the record is applied, whoever leads.
 *   3. It never falls. Commands of a version are in the log after its record, and in
 *      snapshots that have the record. So a node whose program knows less, since it was
 *      replaced by an older one, meets the record before any of them, and stops there.
 *      Others do not let it in (daemon/node/consensus_peers.c).
 *   4. So a member that is added later, and was not heard yet, holds nothing up.
 */
#include "core/node/internal.h"

#include "base/assert.h"
#include "base/planted.h"
#include "core/node/record_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "gavel/version"
#define KEY_BYTES (sizeof(KEY) - 1)
#define FIELD "table_version"

bool version_record_is_key(const uint8_t *key, size_t size)
{
    return size == KEY_BYTES && memcmp(key, KEY, KEY_BYTES) == 0;
}

/* As JSON, so that a newer gavel may add to it. 0: no version stands there. */
static uint32_t decode(const uint8_t *value, size_t size)
{
    struct record_reader reader;
    struct record_field field;
    uint32_t version = 0;

    record_read(&reader, value, size);
    while (record_next(&reader, &field))
        if (strcmp(field.name, FIELD) == 0 && field.kind == RECORD_NUMBER && field.number > 0 &&
            field.number <= UINT32_MAX)
            version = (uint32_t)field.number;
    return reader.is_bad ? 0 : version;
}

static enum gavel_status encode(uint32_t version, uint8_t **ret_bytes, size_t *ret_size)
{
    char value[64];
    struct table_command command = {
        .kind = TABLE_PUT,
        .key = (const uint8_t *)KEY,
        .key_size = KEY_BYTES,
        .value = (const uint8_t *)value,
        .value_size = (size_t)snprintf(value, sizeof value, "{\"" FIELD "\":%" PRIu32 "}", version),
    };
    size_t size = table_command_size(&command);
    uint8_t *bytes = malloc(size);

    if (!bytes)
        return GAVEL_ERR_NO_MEMORY;
    table_command_encode(&command, bytes);
    *ret_bytes = bytes;
    *ret_size = size;
    return GAVEL_OK;
}

/* ---- what the cluster uses ---- */

/* Nodes without names, as in simulators, are all of this program. */
void node_version_read(struct node *node)
{
    struct node_members *m = &node->members;
    const struct table_item *item = table_find(node->table, (const uint8_t *)KEY, KEY_BYTES);

    m->version = item ? decode(table_item_value(item), item->value_size) : 0;
    node->frontend.table_version = !m->id_of_name || m->version > m->knows ? m->knows : m->version;
}

bool node_version_is_known(const struct node *node) { return node->members.version <= node->members.knows; }

bool node_version_is_beyond(const struct node *node, const struct raft_entry *entry)
{
    struct table_command command;

    if (PLANTED(NEWER_VERSION_APPLIED))
        return false;
    return entry->kind == RAFT_ENTRY_DATA &&
           table_command_decode(entry->data, entry->size, &command) == GAVEL_OK &&
           command.kind == TABLE_PUT && version_record_is_key(command.key, command.key_size) &&
           decode(command.value, command.value_size) > node->members.knows;
}

/* ---- what its members know ---- */

/* What a member has said of its program, and in which start; false if it was not heard. */
static bool heard(const struct node *node, const struct raft_member *member, uint32_t *ret_version,
                  uint64_t *ret_incarnation)
{
    const struct node_address *entry = node_addresses_find(&node->members.addresses, member->id);

    if (member->id == node->raft.state.id) {
        *ret_version = node->members.knows;
        *ret_incarnation = node->raft.state.incarnation;
        return true;
    }
    if (!entry || entry->incarnation == 0)
        return false;
    /* Another directory counts its starts anew. One that is not bound yet may be any. */
    if (node->raft.config.binds && (member->directory == 0 || member->directory != entry->directory))
        return false;
    *ret_version = entry->table_version;
    *ret_incarnation = entry->incarnation;
    return true;
}

bool node_version_note(const struct node *node, struct member_record *record)
{
    const struct raft_member *member = raft_config_find(&node->raft.config, record->id);
    uint32_t version;
    uint64_t incarnation;

    if (!member || !heard(node, member, &version, &incarnation) || version == record->table_version ||
        incarnation <= record->incarnation)
        return false;
    record->table_version = version;
    record->incarnation = incarnation;
    return true;
}

/* Learners, too: they apply the same entries. Of ourselves we need no record, and a node that is alone and
 * has no address has none. */
static uint32_t known_to_all(const struct node *node)
{
    uint32_t lowest = node->members.knows;

    for (size_t i = 0; i < node->raft.config.count; i++) {
        raft_id id = node->raft.config.members[i].id;
        const struct member_record *record = node_record_of(node, id);
        uint32_t known = id == node->raft.state.id ? lowest : record ? record->table_version : 0;

        if (PLANTED(UNHEARD_KNOWS_ALL) && (!record || record->incarnation == 0))
            known = node->members.knows;
        if (known < lowest)
            lowest = known;
    }
    return lowest;
}

/* All that was heard is in the records, or this would not be called. */
bool node_version_raise(struct node *node, const struct node_moment *moment)
{
    uint32_t version = known_to_all(node);
    uint8_t *bytes;
    size_t size;

    ASSERT(node->raft.role == RAFT_LEADER);
    if (PLANTED(VERSION_STAYS) && node->members.version > 1)
        return false;
    if (version <= 1 || version <= node->members.version || encode(version, &bytes, &size) != GAVEL_OK)
        return false;
    (void)node_propose_command(node, moment, bytes, size); /* refused: the next tick tries again */
    return true;
}
