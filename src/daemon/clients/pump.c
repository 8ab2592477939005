/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How changes come to watches: each once, and in order.
 *
 *     history ──► slice ──► topics of each change ──► interests ──► watches pick ──► one frame each
 *
 * There is one pump for all live connections: it reads each slice once, and a change
 * costs nothing for connections that it does not concern. A connection that reads
 * too slowly, or that has a watch which begins in the past, has a pump of its own
 * until it has caught up with the others. If the history no longer reaches back
 * that far, its watches end, and it is told so.
 */
#include "daemon/clients/internal.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

#define MANY 8 /* more watches than these */

/* Whose changes are being told: of one connection, or (NULL) of all that are live. */
struct pump {
    struct clients *clients;
    struct clients_connection *only;
    uint64_t client; /* of `only`; else 0 */
};

/* Whether this change comes to the connection of the watch now, and the watch has not had it yet. */
static bool comes_to(const struct pump *pump, const struct clients_watch *watch, struct table_cursor at)
{
    const struct clients_connection *connection = watch->connection;

    if (connection->doom || (!pump->only && !connection->is_live))
        return false;
    return watch->is_behind || clients_is_after(at, connection->high);
}

static void touch(struct clients_watch *watch)
{
    struct clients *clients = watch->connection->clients;

    STAILQ_INSERT_TAIL(&clients->touched, watch, next_touched);
    clients->touched_count++;
    watch->is_concerned = false;
}

static bool pick(struct clients_watch *watch, size_t which, bool is_own)
{
    if (watch->picked_count == watch->picked_capacity) {
        size_t capacity = watch->picked_capacity == 0 ? 4 : 2 * watch->picked_capacity;
        uint16_t *larger = reallocarray(watch->picked, capacity, sizeof *larger);

        if (!larger)
            return false;
        watch->picked = larger;
        watch->picked_capacity = capacity;
    }
    if (watch->picked_count == 0)
        touch(watch);
    watch->is_concerned |= is_own;
    watch->picked[watch->picked_count++] = (uint16_t)which;
    return true;
}

/* `is_own`: it is about the session of the watch. */
static void tell(const struct pump *pump, struct clients_watch *watch, size_t which, bool is_own)
{
    struct clients_connection *connection = watch->connection;
    struct clients *clients = pump->clients;

    if (!comes_to(pump, watch, clients->slice.changes[which].at) ||
        !clients_is_after(clients->slice.changes[which].at, watch->from))
        return;
    if (watch->picked_count > 0 && watch->picked[watch->picked_count - 1] == which)
        return; /* one of a session, that has it already */
    connection->collected += clients->slice.changes[which].size;
    if (connection->collected + clients_waiting(connection) > CLIENTS_OUTPUT_MAX)
        clients_connection_doom(connection,
                                "its watches are told more at once than this node can keep for it");
    else if (!pick(watch, which, is_own))
        clients_connection_doom(connection, "out of memory");
    if (!connection->is_filling &&
        connection->collected + clients_waiting(connection) > CLIENTS_OUTPUT_PAUSE) {
        connection->is_filling = true;
        LIST_INSERT_HEAD(&clients->filling, connection, next_full);
    }
}

static void tell_topic(const struct pump *pump, struct clients_topic *topic, size_t which, bool is_own)
{
    struct clients_interest *interest;

    if (!topic)
        return;
    for (interest = clients_interest_first(topic, pump->client); interest;
         interest = clients_interest_next(interest, pump->client))
        tell(pump, interest->watch, which, is_own);
}

/* A prefix of a name has its own hash, on the way to that of the name. */
static void tell_groups(const struct pump *pump, const char *group, size_t which)
{
    struct clients *clients = pump->clients;
    size_t length = strlen(group);
    uint64_t hash = HASH_BEGIN;

    for (size_t i = 0; i <= length; i++) {
        if (i <= NAME_MAX_BYTES && clients->prefixes[i] > 0)
            tell_topic(pump, clients_topic_find(clients, CLIENTS_PREFIX, hash, group, i), which, false);
        if (i < length)
            hash = hash_bytes(hash, group + i, 1);
    }
    tell_topic(pump, clients_topic_find(clients, CLIENTS_GROUP, hash, group, length), which, false);
}

/* Watches of a session follow where it is a candidate. */
static void follow(const struct pump *pump, struct clients_topic *session, size_t which, bool is_joining)
{
    struct clients *clients = pump->clients;
    const char *group = clients->slice.changes[which].group;
    struct table_cursor at = clients->slice.changes[which].at;
    uint64_t hash = hash_text(HASH_BEGIN, group);
    struct clients_interest *interest;

    for (interest = clients_interest_first(session, pump->client); interest;
         interest = clients_interest_next(interest, pump->client)) {
        struct clients_watch *watch = interest->watch;

        if (!comes_to(pump, watch, at) || !clients_is_after(at, watch->known_at))
            continue;
        if (is_joining) {
            if (clients_interest_add(watch, CLIENTS_GROUP, 0, group) != GAVEL_OK)
                clients_connection_doom(watch->connection,
                                        "its watches are of more groups than this node can keep");
        } else {
            struct clients_topic *topic =
                clients_topic_find(clients, CLIENTS_GROUP, hash, group, strlen(group));
            struct clients_interest *of_group = topic ? clients_interest_find(topic, watch) : NULL;

            if (of_group)
                clients_interest_drop(of_group);
        }
    }
}

static void tell_change(const struct pump *pump, size_t which)
{
    struct clients *clients = pump->clients;
    uint64_t id = clients->slice.changes[which].session;
    Gavel__Change__Kind kind = clients->slice.changes[which].kind;
    const char *group = clients->slice.changes[which].group;
    struct clients_topic *session = id ? clients_topic_find(clients, CLIENTS_SESSION, id, "", 0) : NULL;

    if (session && kind == GAVEL__CHANGE__KIND__JOINED)
        follow(pump, session, which, true);
    tell_topic(pump, session, which, true);
    if (group[0])
        tell_groups(pump, group, which);
    if (session && kind == GAVEL__CHANGE__KIND__LEFT)
        follow(pump, session, which, false);
}

/* Those that have enough with this change stand behind it; the rest of the slice is for the others. */
static void stop_the_full(struct clients *clients, size_t which)
{
    struct clients_connection *connection;

    while ((connection = LIST_FIRST(&clients->filling))) {
        LIST_REMOVE(connection, next_full);
        connection->is_filling = false;
        if (connection->is_live)
            connection->high = clients->slice.changes[which].at;
        connection->is_live = false;
        connection->cursor = clients->slice.changes[which].at;
        connection->full_of = clients->slice.number;
        connection->full_at = which;
        clients_need_work(connection);
    }
}

/* The id of a session is for those who have it already. */
static Gavel__Change *hide(const struct clients_connection *connection, Gavel__Change *change,
                           Gavel__Change *buffer)
{
    if (!change || change->session == 0 || clients_principal_knows(connection, change->session))
        return change;
    *buffer = *change;
    buffer->session = 0;
    return buffer;
}

static void write_changes(struct clients *clients, struct clients_watch *watch)
{
    struct clients_connection *connection = watch->connection;
    bool is_cut_short = connection->full_of == clients->slice.number;
    Gavel__Change *changes[CLIENTS_SLICE_CHANGES], hidden[CLIENTS_SLICE_CHANGES];
    Gavel__Changes message;
    Gavel__ClientFrame frame;

    gavel__changes__init(&message);
    gavel__client_frame__init(&frame);
    for (size_t i = 0; i < watch->picked_count; i++) {
        changes[i] = hide(connection, clients_slice_change(&clients->slice, watch->picked[i]), &hidden[i]);
        if (!changes[i]) {
            clients_connection_doom(connection, "out of memory");
            return;
        }
    }
    message.watch = watch->number;
    message.n_changes = watch->picked_count;
    message.changes = changes;
    message.revision =
        is_cut_short ? clients_slice_told(&clients->slice, connection->full_at) : clients->slice.told;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_CHANGES;
    frame.changes = &message;
    clients_write(connection, &frame);
    (void)atomic_fetch_add(&clients->counts.changes, watch->picked_count);
}

/*
 * With a hundred standbys of a group on one machine each of them would run when
 * another has been elected, and that one would wait for a processor. So who is
 * concerned is told first, and the others, if they are many, a moment later.
 */
static void write_touched(struct clients *clients, bool may_put_off)
{
    bool are_many = may_put_off && clients->touched_count > MANY;
    struct clients_watch *watch;

    clients->touched_count = 0;
    while ((watch = STAILQ_FIRST(&clients->touched))) {
        bool was_dirty = watch->connection->is_dirty;

        STAILQ_REMOVE_HEAD(&clients->touched, next_touched);
        if (!watch->connection->doom)
            write_changes(clients, watch);
        if (are_many && !watch->is_concerned && !was_dirty)
            clients_put_off(watch->connection);
        watch->connection->collected = 0;
        free(watch->picked);
        watch->picked = NULL;
        watch->picked_count = watch->picked_capacity = 0;
    }
}

static void tell_slice(const struct pump *pump)
{
    struct clients *clients = pump->clients;

    for (size_t i = 0; i < clients->slice.count; i++) {
        tell_change(pump, i);
        stop_the_full(clients, i);
        if (pump->only && pump->only->full_of == clients->slice.number)
            break;
    }
    write_touched(clients, !pump->only);
    clients_flush(clients);
}

static void end_all(struct clients_connection *connection, uint64_t revision)
{
    struct clients_watch *watch;

    while ((watch = RB_ROOT(&connection->watches)))
        clients_watch_end(watch, GAVEL_ERR_FORGOTTEN, CLIENTS_FORGOTTEN, revision);
}

/* This node was given a snapshot, or its clients thread was held up for long. */
static void forget_all_live(struct clients *clients)
{
    struct clients_connection *connection;

    TAILQ_FOREACH(connection, &clients->connections, next)
        if (connection->is_live)
            end_all(connection, clients->slice.told);
    clients->cursor = (struct table_cursor){clients->slice.told, UINT32_MAX};
    clients_flush(clients);
}

void clients_pump(struct clients *clients)
{
    const struct pump pump = {.clients = clients};

    for (int i = 0; i < CLIENTS_SLICES_PER_TURN; i++) {
        enum gavel_status status;

        if (clients->watch_count == 0)
            return; /* the first one says where to begin */
        status = clients_slice_read(clients, clients->cursor);
        if (status == GAVEL_ERR_FORGOTTEN) {
            forget_all_live(clients);
            continue;
        }
        clients->is_hungry = status != GAVEL_OK; /* for memory: it is tried again soon */
        if (clients->is_hungry)
            return;
        clients->cursor = clients->slice.end;
        tell_slice(&pump);
        if (clients->slice.is_last)
            return;
    }
    event_active(clients->bell_event, EV_TIMEOUT, 0);
}

/* The watches that are behind are level with the others. */
static void gather(struct clients_connection *connection)
{
    struct clients_watch *watch;

    while ((watch = LIST_FIRST(&connection->behind))) {
        LIST_REMOVE(watch, next_behind);
        watch->is_behind = false;
    }
}

static void forget(struct clients_connection *connection, uint64_t revision)
{
    struct clients_watch *watch;

    if (clients_is_after(connection->high, connection->cursor)) {
        /* Only those that were behind; the others may still find what they need. */
        while ((watch = LIST_FIRST(&connection->behind)))
            clients_watch_end(watch, GAVEL_ERR_FORGOTTEN, CLIENTS_FORGOTTEN, revision);
        connection->cursor = connection->high;
        return;
    }
    end_all(connection, revision);
    connection->cursor = connection->high = (struct table_cursor){revision, UINT32_MAX};
}

/* Returns whether there is more to do now. */
static bool pump_slice(struct clients_connection *connection)
{
    struct clients *clients = connection->clients;
    const struct pump pump = {.clients = clients, .only = connection, .client = connection->number};
    enum gavel_status status = clients_slice_read(clients, connection->cursor);

    if (status == GAVEL_ERR_FORGOTTEN) {
        forget(connection, clients->slice.told);
        return true;
    }
    if (status != GAVEL_OK) {
        clients_connection_doom(connection, "out of memory");
        return false;
    }
    tell_slice(&pump);
    if (connection->full_of != clients->slice.number) {
        connection->cursor = clients->slice.end;
        connection->is_live = clients->slice.is_last;
    }
    if (!clients_is_after(connection->high, connection->cursor)) {
        connection->high = connection->cursor;
        gather(connection);
    }
    return !connection->is_live;
}

void clients_pump_one(struct clients_connection *connection)
{
    for (int i = 0; i < CLIENTS_SLICES_PER_TURN; i++) {
        if (connection->is_live || connection->is_full || connection->doom || connection->phase != CLIENTS_UP)
            return;
        if (connection->watch_count == 0) {
            connection->is_live = true;
            return;
        }
        if (!pump_slice(connection))
            return;
    }
    clients_need_work(connection);
}
