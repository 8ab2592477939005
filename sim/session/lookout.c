/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Watches at a node, told from the history of its table: what the thread of
 * client sockets does in src/daemon, in its simplest form.
 */
#include "sim/session/world.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

#define AT_ONCE 16

void lookout_end(struct wire *wire, uint64_t number)
{
    struct lookout *lookout;

    LIST_FOREACH(lookout, &wire->lookouts, link)
    {
        if (lookout->number == number) {
            LIST_REMOVE(lookout, link);
            free(lookout->group);
            free(lookout);
            return;
        }
    }
}

void lookout_end_all(struct wire *wire)
{
    while (!LIST_EMPTY(&wire->lookouts))
        lookout_end(wire, LIST_FIRST(&wire->lookouts)->number);
}

static void write_ended(struct station *station, struct wire *wire, uint64_t number)
{
    Gavel__WatchEnded ended;
    Gavel__ClientFrame frame;

    gavel__watch_ended__init(&ended);
    gavel__client_frame__init(&frame);
    ended.watch = number;
    ended.status = GAVEL_ERR_FORGOTTEN;
    ended.revision = station->node->table.revision;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_WATCH_ENDED;
    frame.watch_ended = &ended;
    wire_send_down(station->hall, wire, &frame);
}

static void write_changes(struct station *station, struct wire *wire, uint64_t number,
                          Gavel__Change **changes, size_t count, uint64_t revision)
{
    Gavel__Changes told;
    Gavel__ClientFrame frame;

    gavel__changes__init(&told);
    gavel__client_frame__init(&frame);
    told.watch = number;
    told.changes = changes;
    told.n_changes = count;
    told.revision = revision;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_CHANGES;
    frame.changes = &told;
    wire_send_down(station->hall, wire, &frame);
}

void lookout_begin(struct station *station, struct wire *wire, const Gavel__Watch *ask)
{
    const struct table *table = &station->node->table;
    struct table_cursor from = {ask->after_revision, ask->after_part};
    const struct table_change *change;
    struct lookout *lookout;

    if (from.revision == 0)
        from = (struct table_cursor){table->revision, UINT32_MAX};
    else if (table_history_after(table, from, &change) != GAVEL_OK) {
        write_ended(station, wire, ask->watch);
        return;
    }
    lookout = calloc(1, sizeof *lookout);
    ASSERT(lookout);
    lookout->number = ask->watch;
    lookout->group = strdup(ask->group);
    ASSERT(lookout->group);
    lookout->cursor = from;
    LIST_INSERT_HEAD(&wire->lookouts, lookout, link);
    write_changes(station, wire, ask->watch, NULL, 0,
                  from.part == UINT32_MAX ? from.revision : from.revision - 1);
}

/* Some more changes; false: that was all, or it has ended. */
static bool tell(struct station *station, struct wire *wire, struct lookout *lookout)
{
    const struct table *table = &station->node->table;
    Gavel__Change *changes[AT_ONCE];
    size_t count = 0;
    bool has_more = true;

    while (count < AT_ONCE && has_more) {
        const struct table_change *change;

        if (table_history_after(table, lookout->cursor, &change) != GAVEL_OK) {
            for (size_t i = 0; i < count; i++)
                gavel__change__free_unpacked(changes[i], NULL);
            write_ended(station, wire, lookout->number);
            lookout_end(wire, lookout->number);
            return false;
        }
        has_more = change != NULL;
        if (!has_more)
            break;
        lookout->cursor = change->at;
        if (strcmp(change->group, lookout->group) != 0)
            continue;
        changes[count] = gavel__change__unpack(NULL, change->size, change->bytes);
        ASSERT(changes[count]);
        count++;
    }
    if (!has_more)
        lookout->cursor = (struct table_cursor){table->revision, UINT32_MAX};
    if (count > 0)
        write_changes(station, wire, lookout->number, changes, count, has_more ? 0 : table->revision);
    for (size_t i = 0; i < count; i++)
        gavel__change__free_unpacked(changes[i], NULL);
    return has_more;
}

void lookout_pump(struct station *station)
{
    struct hall *hall = station->hall;
    struct wire *wire;

    LIST_FOREACH(wire, &hall->wires, link)
    {
        struct lookout *lookout, *next;

        if (!wire->is_up || wire->slot != station->node->slot)
            continue;
        for (lookout = LIST_FIRST(&wire->lookouts); lookout; lookout = next) {
            next = LIST_NEXT(lookout, link);
            if (lookout->cursor.revision >= station->node->table.revision &&
                lookout->cursor.part == UINT32_MAX)
                continue;
            while (tell(station, wire, lookout))
                continue;
        }
    }
}
