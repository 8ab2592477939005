/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/node/node_addresses.h"

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

void node_addresses_init(struct node_addresses *addresses, const struct daemon_config *config)
{
    struct node_address *self;

    memset(addresses, 0, sizeof *addresses);
    for (size_t i = 0; i < config->peer_count; i++) {
        const struct daemon_peer *peer = &config->peers[i];
        struct node_address *entry = entry_of(addresses, peer->id);

        if (entry)
            (void)note_all(entry, peer->name, peer->address, peer->api);
    }
    self = entry_of(addresses, config->id);
    if (self)
        (void)note_all(self, config->node, config->advertise, config->api_advertise);
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

bool node_addresses_take_hello(struct node_addresses *addresses, const struct peer_hello *hello)
{
    struct node_address *entry = entry_of(addresses, hello->node);

    if (!entry)
        return false;
    return note_all(entry, hello->name, entry->is_of_record ? "" : hello->address, hello->api);
}

static bool is_kept(const struct daemon_config *config, const struct raft_config *members,
                    const struct member_record *records, size_t count, raft_id id)
{
    bool is_found = id == config->id || raft_config_find(members, id);

    for (size_t i = 0; i < config->peer_count && !is_found; i++)
        is_found = config->peers[i].id == id;
    for (size_t i = 0; i < count && !is_found; i++)
        is_found = records[i].id == id;
    return is_found;
}

void node_addresses_keep(struct node_addresses *addresses, const struct daemon_config *config,
                         const struct raft_config *members, raft_id leader,
                         const struct member_record *records, size_t count)
{
    size_t left = 0;

    for (size_t i = 0; i < addresses->count; i++)
        if (addresses->entries[i].id == leader ||
            is_kept(config, members, records, count, addresses->entries[i].id))
            addresses->entries[left++] = addresses->entries[i];
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
