/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A slice of the history: changes copied while the table is locked, few enough that
 * the consensus thread never waits for long. Whom they concern, and how they are
 * written, is worked out after the lock is released.
 */
#include "daemon/clients/internal.h"

#include <stdlib.h>
#include <string.h>

void clients_slice_clear(struct clients_slice *slice)
{
    for (size_t i = 0; i < slice->count; i++)
        if (slice->changes[i].change)
            gavel__change__free_unpacked(slice->changes[i].change, NULL);
    slice->count = 0;
    slice->used = 0;
}

static size_t size_of(const struct table_change *change) { return change->size + strlen(change->group) + 1; }

static void copy(struct clients_slice *slice, const struct table_change *change)
{
    size_t name = strlen(change->group) + 1;
    uint8_t *room = slice->arena + slice->used;

    memcpy(room, change->group, name);
    memcpy(room + name, change->bytes, change->size);
    slice->changes[slice->count].at = change->at;
    slice->changes[slice->count].kind = change->kind;
    slice->changes[slice->count].session = change->session;
    slice->changes[slice->count].group = (const char *)room;
    slice->changes[slice->count].bytes = room + name;
    slice->changes[slice->count].size = change->size;
    slice->changes[slice->count].change = NULL;
    slice->count++;
    slice->used += name + change->size;
}

/* All that fits. *ret_wanted is the room for one that alone does not; else 0. */
static enum gavel_status read_locked(struct clients_slice *slice, const struct table *table,
                                     struct table_cursor after, size_t *ret_wanted)
{
    const struct table_change *change = NULL;
    enum gavel_status status;

    *ret_wanted = 0;
    slice->end = after;
    while ((status = table_history_after(table, slice->end, &change)) == GAVEL_OK && change &&
           slice->count < CLIENTS_SLICE_CHANGES && size_of(change) <= slice->capacity - slice->used) {
        copy(slice, change);
        slice->end = change->at;
    }
    if (status != GAVEL_OK) {
        slice->told = table->revision;
        return status;
    }
    slice->is_last = !change;
    if (change && slice->count == 0)
        *ret_wanted = size_of(change);
    if (!change) {
        /* A revision is there with all its parts, or not at all; and a watch may begin in the future. */
        if (table->revision >= slice->end.revision)
            slice->end = (struct table_cursor){table->revision, UINT32_MAX};
        slice->told = slice->end.revision;
    } else {
        slice->told = change->at.revision - 1;
    }
    return GAVEL_OK;
}

enum gavel_status clients_slice_read(struct clients *clients, struct table_cursor after)
{
    struct table_box *box = &clients->shared->table;
    struct clients_slice *slice = &clients->slice;
    size_t wanted = CLIENTS_SLICE_BYTES;
    enum gavel_status status;

    clients_slice_clear(slice);
    slice->number++;
    do {
        if (wanted > slice->capacity) {
            uint8_t *arena = realloc(slice->arena, wanted);

            if (!arena)
                return GAVEL_ERR_NO_MEMORY;
            slice->arena = arena;
            slice->capacity = wanted;
        }
        table_box_lock(box);
        status = read_locked(slice, &box->table, after, &wanted);
        table_box_unlock(box);
    } while (status == GAVEL_OK && wanted > 0);
    return status;
}

Gavel__Change *clients_slice_change(struct clients_slice *slice, size_t which)
{
    if (!slice->changes[which].change)
        slice->changes[which].change =
            gavel__change__unpack(NULL, slice->changes[which].size, slice->changes[which].bytes);
    return slice->changes[which].change;
}

uint64_t clients_slice_told(const struct clients_slice *slice, size_t which)
{
    return which + 1 < slice->count ? slice->changes[which + 1].at.revision - 1 : slice->told;
}
