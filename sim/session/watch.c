/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Watches at a node, told from the history of its table: what the thread of
 * client sockets does in src/daemon, in its simplest form.
 */
#include "sim/session/world.h"

#include "base/assert.h"
#include "sim/common/memory.h"

#include <stdlib.h>
#include <string.h>

#define AT_ONCE 16

void watch_end(struct connection *connection, uint64_t number)
{
    struct watch *watch;

    LIST_FOREACH(watch, &connection->watches, link) {
        if (watch->number == number) {
            LIST_REMOVE(watch, link);
            free(watch->group);
            free(watch);
            return;
        }
    }
}

void watch_end_all(struct connection *connection)
{
    while (!LIST_EMPTY(&connection->watches))
        watch_end(connection, LIST_FIRST(&connection->watches)->number);
}

static void write_ended(struct service *service, struct connection *connection, uint64_t number)
{
    Gavel__WatchEnded ended;
    Gavel__ClientFrame frame;

    gavel__watch_ended__init(&ended);
    gavel__client_frame__init(&frame);
    ended.watch = number;
    ended.status = GAVEL_ERR_FORGOTTEN;
    ended.revision = service->host->table.revision;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_WATCH_ENDED;
    frame.watch_ended = &ended;
    connection_send_down(service->testbed, connection, &frame);
}

static void write_changes(struct service *service, struct connection *connection, uint64_t number,
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
    connection_send_down(service->testbed, connection, &frame);
}

void watch_begin(struct service *service, struct connection *connection, const Gavel__Watch *ask)
{
    const struct table *table = &service->host->table;
    struct table_cursor from = {ask->after_revision, ask->after_part};
    const struct table_change *change;
    struct watch *watch;

    if (from.revision == 0)
        from = (struct table_cursor){table->revision, UINT32_MAX};
    else if (table_history_after(table, from, &change) != GAVEL_OK) {
        write_ended(service, connection, ask->watch);
        return;
    }
    watch = zeroed(1, sizeof *watch);
    watch->number = ask->watch;
    watch->group = strdup(ask->group);
    ASSERT(watch->group);
    watch->cursor = from;
    LIST_INSERT_HEAD(&connection->watches, watch, link);
    write_changes(service, connection, ask->watch, NULL, 0,
                  from.part == UINT32_MAX ? from.revision : from.revision - 1);
}

/* Some more changes; false: that was all, or it has ended. */
static bool tell(struct service *service, struct connection *connection, struct watch *watch)
{
    const struct table *table = &service->host->table;
    Gavel__Change *changes[AT_ONCE];
    size_t count = 0;
    bool has_more = true;

    while (count < AT_ONCE && has_more) {
        const struct table_change *change;

        if (table_history_after(table, watch->cursor, &change) != GAVEL_OK) {
            for (size_t i = 0; i < count; i++)
                gavel__change__free_unpacked(changes[i], NULL);
            write_ended(service, connection, watch->number);
            watch_end(connection, watch->number);
            return false;
        }
        has_more = change != NULL;
        if (!has_more)
            break;
        watch->cursor = change->at;
        if (strcmp(change->group, watch->group) != 0)
            continue;
        changes[count] = gavel__change__unpack(NULL, change->size, change->bytes);
        ASSERT(changes[count]);
        count++;
    }
    if (!has_more)
        watch->cursor = (struct table_cursor){table->revision, UINT32_MAX};
    if (count > 0)
        write_changes(service, connection, watch->number, changes, count, has_more ? 0 : table->revision);
    for (size_t i = 0; i < count; i++)
        gavel__change__free_unpacked(changes[i], NULL);
    return has_more;
}

void watch_pump(struct service *service)
{
    struct testbed *testbed = service->testbed;
    struct connection *connection;

    LIST_FOREACH(connection, &testbed->connections, link) {
        struct watch *watch, *next;

        if (!connection->is_up || connection->slot != service->host->slot)
            continue;
        for (watch = LIST_FIRST(&connection->watches); watch; watch = next) {
            next = LIST_NEXT(watch, link);
            if (watch->cursor.revision >= service->host->table.revision && watch->cursor.part == UINT32_MAX)
                continue;
            while (tell(service, connection, watch))
                continue;
        }
    }
}
