/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/node/address_book.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct address_book_entry *entry_of(struct address_book *book, raft_id id)
{
    for (size_t i = 0; i < book->count; i++)
        if (book->entries[i].id == id)
            return &book->entries[i];
    if (book->count == ADDRESS_BOOK_MAX)
        return NULL;
    book->entries[book->count] = (struct address_book_entry){.id = id};
    return &book->entries[book->count++];
}

/* Copies a text that is known; true if it differs from what was there. */
static bool note(char *field, size_t size, const char *text)
{
    if (!text[0] || strcmp(field, text) == 0)
        return false;
    (void)snprintf(field, size, "%s", text);
    return true;
}

static bool note_all(struct address_book_entry *entry, const char *name, const char *address, const char *api)
{
    bool is_new = note(entry->name, sizeof entry->name, name);

    is_new = note(entry->address, sizeof entry->address, address) || is_new;
    return note(entry->api, sizeof entry->api, api) || is_new;
}

void address_book_init(struct address_book *book, const struct daemon_config *config)
{
    struct address_book_entry *self;

    memset(book, 0, sizeof *book);
    for (size_t i = 0; i < config->peer_count; i++) {
        const struct daemon_peer *peer = &config->peers[i];
        struct address_book_entry *entry = entry_of(book, peer->id);

        if (entry)
            (void)note_all(entry, peer->name, peer->address, peer->api);
    }
    self = entry_of(book, config->id);
    if (self)
        (void)note_all(self, config->node, config->advertise, config->api_advertise);
}

bool address_book_take_records(struct address_book *book, const struct member_record *records, size_t count)
{
    bool is_new = false;

    for (size_t i = 0; i < count; i++) {
        struct address_book_entry *entry = entry_of(book, records[i].id);

        if (!entry)
            continue;
        entry->is_of_record = !records[i].is_learned;
        if (entry->is_of_record || !entry->address[0])
            is_new = note_all(entry, records[i].name, records[i].address, records[i].api) || is_new;
    }
    return is_new;
}

bool address_book_take_hello(struct address_book *book, const struct peer_hello *hello)
{
    struct address_book_entry *entry = entry_of(book, hello->node);

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

void address_book_keep(struct address_book *book, const struct daemon_config *config,
                       const struct raft_config *members, raft_id leader, const struct member_record *records,
                       size_t count)
{
    size_t left = 0;

    for (size_t i = 0; i < book->count; i++)
        if (book->entries[i].id == leader || is_kept(config, members, records, count, book->entries[i].id))
            book->entries[left++] = book->entries[i];
    book->count = left;
}

const struct address_book_entry *address_book_find(const struct address_book *book, raft_id id)
{
    for (size_t i = 0; i < book->count; i++)
        if (book->entries[i].id == id)
            return &book->entries[i];
    return NULL;
}

const char *address_book_name(const struct address_book *book, raft_id id,
                              char buffer[static ADDRESS_BOOK_NAME_BYTES])
{
    const struct address_book_entry *entry = id ? address_book_find(book, id) : NULL;

    if (entry && entry->name[0])
        (void)snprintf(buffer, ADDRESS_BOOK_NAME_BYTES, "%s", entry->name);
    else if (id)
        (void)snprintf(buffer, ADDRESS_BOOK_NAME_BYTES, "%016" PRIx64, id);
    else
        buffer[0] = '\0';
    return buffer;
}
