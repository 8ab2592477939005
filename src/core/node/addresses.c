/* SPDX-License-Identifier: Apache-2.0 */

#include "core/node/addresses.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct node_address *entry_of(struct node_addresses *addresses, raft_id id)
{
    for (size_t i = 0; i < addresses->count; i++)
        if (addresses->entries[i].id == id)
            return &addresses->entries[i];
    if (addresses->count == NODE_ADDRESSES_MAX)
        return NULL;
    addresses->entries[addresses->count] = (struct node_address){.id = id};
    return &addresses->entries[addresses->count++];
}

/* Copies a text that is known; true if it differs from what was there. */
static bool note(char *field, size_t size, const char *text)
{
    if (!text[0] || strcmp(field, text) == 0)
        return false;
    (void)snprintf(field, size, "%s", text);
    return true;
}

static bool note_all(struct node_address *entry, const char *name, const char *address, const char *api)
{
    bool is_new = note(entry->name, sizeof entry->name, name);

    is_new = note(entry->address, sizeof entry->address, address) || is_new;
    return note(entry->api, sizeof entry->api, api) || is_new;
}

void node_addresses_take_file(struct node_addresses *addresses, const struct node_described *node)
{
    struct node_address *entry = entry_of(addresses, node->id);

    if (!entry)
        return;
    (void)note_all(entry, node->name, node->address, node->api);
    entry->is_of_file = true;
}

bool node_addresses_take_records(struct node_addresses *addresses, const struct member_record *records,
                                 size_t count)
{
    bool is_new = false;

    for (size_t i = 0; i < count; i++) {
        struct node_address *entry = entry_of(addresses, records[i].id);

        if (!entry)
            continue;
        entry->is_of_record = !records[i].is_learned;
        if (entry->is_of_record || !entry->address[0])
            is_new = note_all(entry, records[i].name, records[i].address, records[i].api) || is_new;
    }
    return is_new;
}

bool node_addresses_take_greeting(struct node_addresses *addresses, const struct node_described *node)
{
    struct node_address *entry = entry_of(addresses, node->id);

    if (!entry)
        return false;
    if (node->directory != entry->directory || node->incarnation >= entry->incarnation) {
        entry->table_version = node->table_version;
        entry->directory = node->directory;
        entry->incarnation = node->incarnation;
    }
    return note_all(entry, node->name, entry->is_of_record ? "" : node->address, node->api);
}

static bool has_record(const struct member_record *records, size_t count, raft_id id)
{
    for (size_t i = 0; i < count; i++)
        if (records[i].id == id)
            return true;
    return false;
}

void node_addresses_keep(struct node_addresses *addresses, const struct raft_config *members, raft_id leader,
                         const struct member_record *records, size_t count)
{
    size_t left = 0;

    for (size_t i = 0; i < addresses->count; i++) {
        const struct node_address *entry = &addresses->entries[i];

        if (entry->is_of_file || entry->id == leader || raft_config_find(members, entry->id) ||
            has_record(records, count, entry->id))
            addresses->entries[left++] = *entry;
    }
    addresses->count = left;
}

const struct node_address *node_addresses_find(const struct node_addresses *addresses, raft_id id)
{
    for (size_t i = 0; i < addresses->count; i++)
        if (addresses->entries[i].id == id)
            return &addresses->entries[i];
    return NULL;
}

const char *node_addresses_name(const struct node_addresses *addresses, raft_id id,
                                char buffer[static NODE_ADDRESSES_NAME_BYTES])
{
    const struct node_address *entry = id ? node_addresses_find(addresses, id) : NULL;

    if (entry && entry->name[0])
        (void)snprintf(buffer, NODE_ADDRESSES_NAME_BYTES, "%s", entry->name);
    else if (id)
        (void)snprintf(buffer, NODE_ADDRESSES_NAME_BYTES, "%016" PRIx64, id);
    else
        buffer[0] = '\0';
    return buffer;
}
