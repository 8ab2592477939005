/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Watches: how they begin and end. A watch of a group or a prefix is one interest
 * (topic.c). A watch of a session is an interest in the session and one in each
 * group in which it is a candidate; those come and go with the changes that the
 * watch is told (pump.c).
 */
#include "daemon/clients/internal.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static int compare_watches(const struct clients_watch *a, const struct clients_watch *b)
{
    return a->number < b->number ? -1 : a->number > b->number;
}

CLIENTS_TREE(clients_watches, clients_watch, by_number, compare_watches)

bool clients_is_after(struct table_cursor a, struct table_cursor b)
{
    return a.revision != b.revision ? a.revision > b.revision : a.part > b.part;
}

static struct table_cursor later(struct table_cursor a, struct table_cursor b)
{
    return clients_is_after(a, b) ? a : b;
}

static void write_ended(struct clients_connection *connection, uint64_t number, enum gavel_status status,
                        const char *message, uint64_t revision)
{
    Gavel__WatchEnded ended;
    Gavel__ClientFrame frame;

    gavel__watch_ended__init(&ended);
    gavel__client_frame__init(&frame);
    ended.watch = number;
    ended.status = (uint32_t)status;
    ended.message = clients_text(message);
    ended.revision = revision;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_WATCH_ENDED;
    frame.watch_ended = &ended;
    clients_write(connection, &frame);
}

static void write_begun(struct clients_watch *watch, uint64_t revision)
{
    Gavel__Changes changes;
    Gavel__ClientFrame frame;

    gavel__changes__init(&changes);
    gavel__client_frame__init(&frame);
    changes.watch = watch->number;
    changes.revision = revision;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_CHANGES;
    frame.changes = &changes;
    clients_write(watch->connection, &frame);
}

/* Tells nobody. */
static void drop(struct clients_watch *watch)
{
    struct clients_connection *connection = watch->connection;
    struct clients_interest *interest;

    while ((interest = LIST_FIRST(&watch->interests)))
        clients_interest_drop(interest);
    if (watch->is_behind)
        LIST_REMOVE(watch, next_behind);
    if (watch->picked_count > 0) {
        STAILQ_REMOVE(&connection->clients->touched, watch, clients_watch, next_touched);
        connection->clients->touched_count--;
    }
    free(watch->picked);
    (void)RB_REMOVE(clients_watches, &connection->watches, watch);
    connection->watch_count--;
    connection->clients->watch_count--;
    (void)atomic_fetch_sub(&connection->clients->counts.watches, 1);
    free(watch);
}

void clients_watch_end(struct clients_watch *watch, enum gavel_status status, const char *message,
                       uint64_t revision)
{
    struct clients_connection *connection = watch->connection;
    uint64_t number = watch->number;

    drop(watch);
    write_ended(connection, number, status, message, revision);
}

void clients_watches_done(struct clients_connection *connection)
{
    struct clients_watch *watch;

    while ((watch = RB_ROOT(&connection->watches)))
        drop(watch);
}

static struct clients_watch *find(struct clients_connection *connection, uint64_t number)
{
    struct clients_watch like = {.number = number};

    return RB_FIND(clients_watches, &connection->watches, &like);
}

void clients_unwatch(struct clients_connection *connection, uint64_t number)
{
    struct clients_watch *watch = find(connection, number);

    if (watch) /* else it has ended meanwhile */
        drop(watch);
}

/* ERR_INVALID with a reason. */
static enum gavel_status check(const Gavel__Watch *ask, struct gavel_error *error)
{
    if (ask->session != 0 && (ask->group[0] || ask->prefix[0]))
        return error_set(error, GAVEL_ERR_INVALID, "a watch is of a session, or of groups, not of both");
    if (ask->group[0] && ask->prefix[0])
        return error_set(error, GAVEL_ERR_INVALID,
                         "a watch is of one group, or of all with a prefix, not of both");
    if (ask->group[0])
        return name_check("group", ask->group, error);
    if (strlen(ask->prefix) > NAME_MAX_BYTES)
        return error_set(error, GAVEL_ERR_INVALID, "the prefix has %zu bytes, and names have at most %d",
                         strlen(ask->prefix), NAME_MAX_BYTES);
    return GAVEL_OK;
}

static enum gavel_status add_interests(struct clients_watch *watch, const Gavel__Watch *ask)
{
    enum gavel_status status;

    if (ask->group[0])
        return clients_interest_add(watch, CLIENTS_GROUP, 0, ask->group);
    if (ask->session == 0)
        return clients_interest_add(watch, CLIENTS_PREFIX, 0, ask->prefix);
    status = clients_interest_add(watch, CLIENTS_SESSION, ask->session, "");
    return status == GAVEL_OK ? clients_survey(watch, ask->session) : status;
}

/* Whether all after it is remembered still; and what "now" is. */
static enum gavel_status look_back(struct clients *clients, struct table_cursor *from, uint64_t *ret_now)
{
    struct table_box *box = &clients->shared->table;
    const struct table_change *change;
    enum gavel_status status = GAVEL_OK;

    table_box_lock(box);
    *ret_now = box->table.revision;
    if (from->revision == 0)
        *from = (struct table_cursor){box->table.revision, UINT32_MAX};
    else
        status = table_history_after(&box->table, *from, &change);
    table_box_unlock(box);
    return status;
}

/*
 * The connection shall tell it all that comes after `from`. If that lies behind what it has told its other
 * watches, it goes back, and tells this one alone until it is where it was.
 */
static void set_from(struct clients_watch *watch)
{
    struct clients_connection *connection = watch->connection;
    struct clients_watch *other;

    if (connection->is_live)
        connection->high = later(connection->high, connection->clients->cursor);
    if (!clients_is_after(connection->high, watch->from))
        return;
    watch->is_behind = true;
    if (connection->is_live)
        connection->cursor = connection->high;
    if (clients_is_after(connection->cursor, watch->from)) {
        LIST_FOREACH(other, &connection->behind, next_behind) {
            other->from = later(other->from, connection->cursor);
            other->known_at = later(other->known_at, connection->cursor);
        }
        connection->cursor = watch->from;
    }
    LIST_INSERT_HEAD(&connection->behind, watch, next_behind);
    connection->is_live = false;
    clients_need_work(connection);
}

static void begin(struct clients_connection *connection, const Gavel__Watch *ask, struct table_cursor from,
                  uint64_t now)
{
    struct clients *clients = connection->clients;
    struct clients_watch *watch = calloc(1, sizeof *watch);
    enum gavel_status status;

    if (!watch) {
        write_ended(connection, ask->watch, GAVEL_ERR_NO_MEMORY, gavel_status_text(GAVEL_ERR_NO_MEMORY), now);
        return;
    }
    *watch = (struct clients_watch){
        .connection = connection, .number = ask->watch, .from = from, .known_at = from};
    if (clients->watch_count == 0) /* nobody has read the history meanwhile */
        clients->cursor = (struct table_cursor){now, UINT32_MAX};
    (void)RB_INSERT(clients_watches, &connection->watches, watch); /* it was looked for before */
    connection->watch_count++;
    clients->watch_count++;
    (void)atomic_fetch_add(&clients->counts.watches, 1);
    status = add_interests(watch, ask);
    if (status != GAVEL_OK) {
        clients_watch_end(watch, status,
                          status == GAVEL_ERR_TOO_LARGE
                              ? "the watches of this connection are of too many groups"
                              : gavel_status_text(status),
                          now);
        return;
    }
    write_begun(watch, from.part == UINT32_MAX ? from.revision : from.revision - 1);
    set_from(watch);
}

void clients_watch(struct clients_connection *connection, const Gavel__Watch *ask)
{
    struct table_cursor from = {ask->after_revision, ask->after_part};
    struct gavel_error error = {0};
    enum gavel_status status;
    uint64_t now;

    if (find(connection, ask->watch)) {
        clients_connection_cut(connection, "two watches of one number");
        return;
    }
    status = look_back(connection->clients, &from, &now);
    if (status == GAVEL_ERR_FORGOTTEN)
        write_ended(connection, ask->watch, status, CLIENTS_FORGOTTEN, now);
    else if (check(ask, &error) != GAVEL_OK)
        write_ended(connection, ask->watch, error.status, error.message, now);
    else if (ask->session != 0 && clients_principal_is_foreign(connection, ask->session))
        write_ended(connection, ask->watch, GAVEL_ERR_SESSION_GONE, "the session belongs to another client",
                    now);
    else if (connection->watch_count >= CLIENTS_WATCHES_MAX)
        write_ended(connection, ask->watch, GAVEL_ERR_TOO_LARGE, "a connection may have 65536 watches", now);
    else
        begin(connection, ask, from, now);
}
