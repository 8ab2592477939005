/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Watches that outlive connections. Each remembers the newest change that the
 * caller was given; on the next connection it goes on from there, and what
 * comes a second time is dropped. So the caller sees every change once and in
 * order, also from a node that knows less than the one before.
 *
 *     cursor  what the caller knows: never goes back
 *     told    what this node has told on this connection: strictly grows, or the node lies
 */

#include "core/session/client_internal.h"

#include "base/assert.h"
#include "base/planted.h"

#include <stdlib.h>
#include <string.h>

static int compare_numbers(const struct client_watch *a, const struct client_watch *b)
{
    return a->number < b->number ? -1 : a->number > b->number;
}

static int compare_wires(const struct client_watch *a, const struct client_watch *b)
{
    return a->wire < b->wire ? -1 : a->wire > b->wire;
}

/* Not RB_GENERATE_STATIC: it counts on a macro that headers of Linux may take away. */
#define UNUSED static __attribute__((__unused__))
RB_GENERATE_INTERNAL(client_watches, client_watch, by_number, compare_numbers, UNUSED)
RB_GENERATE_INTERNAL(client_wires, client_watch, by_wire, compare_wires, UNUSED)

static bool is_after(struct table_cursor a, struct table_cursor b)
{
    return a.revision > b.revision || (a.revision == b.revision && a.part > b.part);
}

static void advance(struct client_watch *watch, struct table_cursor to)
{
    if (is_after(to, watch->cursor))
        watch->cursor = to;
}

static void go_idle(struct client *client, struct client_watch *watch)
{
    if (watch->wire == 0)
        return;
    (void)RB_REMOVE(client_wires, &client->watches.running, watch);
    watch->wire = 0;
    watch->from = watch->cursor;
    if (PLANTED(WATCH_TOO_LATE) && watch->cursor.revision != 0)
        watch->from = (struct table_cursor){watch->cursor.revision + 1, UINT32_MAX};
    TAILQ_INSERT_TAIL(&client->watches.idle, watch, entry);
}

static void watch_free(struct client *client, struct client_watch *watch)
{
    if (watch->wire != 0)
        (void)RB_REMOVE(client_wires, &client->watches.running, watch);
    else
        TAILQ_REMOVE(&client->watches.idle, watch, entry);
    (void)RB_REMOVE(client_watches, &client->watches.all, watch);
    ASSERT(client->watches.count > 0);
    client->watches.count--;
    free(watch->group);
    free(watch->prefix);
    free(watch);
}

static void tell(struct client *client, const struct client_watch *watch, enum client_action_kind kind)
{
    struct client_action *action = client_act(client, kind);

    action->token = watch->number;
    action->revision = watch->cursor.revision;
}

static void tell_failure(struct client *client, uint64_t number, enum gavel_status status,
                         const char *message)
{
    struct client_action *action = client_act(client, CLIENT_DO_GAP);

    action->token = number;
    action->status = status;
    action->message = message;
}

void client_watch_begin(struct client *client, const struct client_event *event)
{
    struct client_watch wanted = {.number = event->watch.watch};
    struct client_watch *watch = NULL;

    if (client->session.is_closing)
        return;
    if (wanted.number == 0 || RB_FIND(client_watches, &client->watches.all, &wanted) ||
        (event->watch.is_of_session && client->settings.ttl_ms == 0)) {
        tell_failure(client, wanted.number, GAVEL_ERR_INVALID,
                     "a watch needs a number of its own, and a session if it is of one");
        return;
    }
    if (client->watches.count < CLIENT_WATCHES_MAX && client_reserve(client, 1))
        watch = calloc(1, sizeof *watch);
    if (watch) {
        watch->group = client_text_copy(event->watch.group ? event->watch.group : "");
        watch->prefix = client_text_copy(event->watch.prefix ? event->watch.prefix : "");
    }
    if (!watch || !watch->group || !watch->prefix) {
        if (watch) {
            free(watch->group);
            free(watch->prefix);
        }
        free(watch);
        tell_failure(client, wanted.number, GAVEL_ERR_NO_MEMORY, "no room for another watch");
        return;
    }
    watch->number = wanted.number;
    watch->is_of_session = event->watch.is_of_session;
    watch->cursor =
        (struct table_cursor){event->watch.after_revision, event->watch.after_revision == 0 ? 0 : UINT32_MAX};
    watch->from = watch->cursor;
    (void)RB_INSERT(client_watches, &client->watches.all, watch);
    TAILQ_INSERT_TAIL(&client->watches.idle, watch, entry);
    client->watches.count++;
}

static void send_unwatch(struct client *client, const struct client_watch *watch)
{
    struct client_outgoing *outgoing;

    if (watch->wire == 0)
        return;
    outgoing = client_outgoing_new(client);
    if (!outgoing)
        return; /* its changes will be for nobody */
    gavel__unwatch__init(&outgoing->unwatch);
    outgoing->unwatch.watch = watch->wire;
    outgoing->frame.what_case = GAVEL__CLIENT_FRAME__WHAT_UNWATCH;
    outgoing->frame.unwatch = &outgoing->unwatch;
    client_send(client, &outgoing->frame);
}

void client_watch_end(struct client *client, uint64_t number)
{
    struct client_watch wanted = {.number = number};
    struct client_watch *watch = RB_FIND(client_watches, &client->watches.all, &wanted);

    if (!watch)
        return;
    send_unwatch(client, watch);
    watch_free(client, watch);
}

/* The watch of that number on the wire; NULL for one that is over, or that never was. */
static struct client_watch *find(struct client *client, uint64_t wire)
{
    struct client_watch wanted = {.wire = wire};
    struct client_watch *watch = RB_FIND(client_wires, &client->watches.running, &wanted);

    if (!watch && !client_was_given(client, wire))
        client_hostile(client, "it tells of a watch that does not exist");
    return watch;
}

/* False: the node lies, and the connection is over. */
static bool take_change(struct client *client, struct client_watch *watch, const Gavel__Change *change)
{
    struct table_cursor at = {change->revision, change->part};
    bool is_known = !is_after(at, watch->cursor);
    struct client_action *action;

    if (PLANTED(WATCH_REPEATS))
        is_known = false;
    if (change->revision == 0 || !is_after(at, watch->told)) {
        client_hostile(client, "changes of a watch are out of order");
        return false;
    }
    watch->told = at;
    if (is_known)
        return true; /* from another node */
    watch->cursor = at;
    action = client_act(client, CLIENT_DO_CHANGE);
    action->token = watch->number;
    action->change = change;
    action->revision = change->revision;
    if (change->kind == GAVEL__CHANGE__KIND__SESSION_ENDED && change->session == client->session.id)
        client_session_ended(client, change->revision);
    return true;
}

static void begin(struct client *client, struct client_watch *watch, const Gavel__Changes *changes)
{
    bool is_from_now_on = watch->cursor.revision == 0;
    /* It stood at the very beginning of an empty table, which cannot be asked for. */
    bool has_missed = is_from_now_on && watch->has_run && changes->revision > 0;

    watch->has_begun = true;
    watch->has_run = true;
    watch->refusals = 0;
    /* From now on: that is where the node stands. Otherwise what came after the cursor is still to come. */
    if (is_from_now_on && changes->n_changes == 0)
        advance(watch, (struct table_cursor){changes->revision, UINT32_MAX});
    tell(client, watch, has_missed ? CLIENT_DO_GAP : CLIENT_DO_WATCHING);
}

void client_watch_changes(struct client *client, const Gavel__Changes *changes)
{
    struct client_watch *watch = find(client, changes->watch);

    if (!watch)
        return;
    if (!client_reserve(client, changes->n_changes)) {
        client_link_lost(client, true, "out of memory");
        return;
    }
    client->link.has_answered = true;
    if (!watch->has_begun) {
        begin(client, watch, changes);
        if (changes->n_changes == 0)
            return;
    }
    for (size_t i = 0; i < changes->n_changes; i++) {
        if (!take_change(client, watch, changes->changes[i]) || watch->wire == 0)
            return; /* of our session nothing comes behind its end */
    }
    if (changes->revision != 0)
        advance(watch, (struct table_cursor){changes->revision, UINT32_MAX});
}

void client_watch_ended(struct client *client, const Gavel__WatchEnded *ended)
{
    struct client_watch *watch = find(client, ended->watch);
    struct table_cursor from = {ended->revision, UINT32_MAX};

    if (!watch)
        return;
    go_idle(client, watch);
    watch->refusals++;
    watch->retry_at = client->now;
    if (ended->status != GAVEL_ERR_FORGOTTEN) {
        watch->retry_at += client_back_off(client, watch->refusals);
        tell_failure(client, watch->number, ended->status, ended->message);
        client->actions.items[client->actions.count - 1].revision = watch->cursor.revision;
        return;
    }
    /* A node that forgets at once what it has just told us to ask for must not keep us busy. */
    if (watch->refusals > 1)
        watch->retry_at += client_back_off(client, watch->refusals);
    if (is_after(from, watch->cursor)) {
        watch->cursor = from;
        tell(client, watch, CLIENT_DO_GAP);
    }
    /* A node that is behind begins where it can; what is known already is dropped. */
    watch->from = from;
}

void client_watch_unlinked(struct client *client)
{
    struct client_watch *watch;

    while ((watch = RB_MIN(client_wires, &client->watches.running)))
        go_idle(client, watch);
    TAILQ_FOREACH(watch, &client->watches.idle, entry) {
        watch->retry_at = 0;
        watch->refusals = 0;
        if (PLANTED(WATCH_TOO_LATE))
            continue;
        watch->from = watch->cursor;
        if (PLANTED(WATCH_REPEATS) && watch->cursor.revision > 1)
            watch->from = (struct table_cursor){watch->cursor.revision - 1, UINT32_MAX};
    }
}

void client_watch_session(struct client *client)
{
    struct client_watch *watch, *next;

    for (watch = RB_MIN(client_wires, &client->watches.running); watch; watch = next) {
        next = RB_NEXT(client_wires, &client->watches.running, watch);
        if (!watch->is_of_session)
            continue;
        send_unwatch(client, watch);
        go_idle(client, watch);
        watch->retry_at = 0;
    }
}

static bool is_due(const struct client *client, const struct client_watch *watch)
{
    return client->now >= watch->retry_at && (!watch->is_of_session || client->session.is_open);
}

static void send_watch(struct client *client, struct client_watch *watch)
{
    struct client_outgoing *outgoing = client_outgoing_new(client);

    if (!outgoing) {
        client_link_lost(client, true, "out of memory");
        return;
    }
    TAILQ_REMOVE(&client->watches.idle, watch, entry);
    watch->wire = client_number(client);
    watch->told = (struct table_cursor){0};
    watch->has_begun = false;
    (void)RB_INSERT(client_wires, &client->watches.running, watch);
    gavel__watch__init(&outgoing->watch);
    outgoing->watch.watch = watch->wire;
    outgoing->watch.group = watch->group;
    outgoing->watch.prefix = watch->prefix;
    outgoing->watch.after_revision = watch->from.revision;
    outgoing->watch.after_part = watch->from.part;
    outgoing->watch.session = watch->is_of_session ? client->session.id : 0;
    outgoing->frame.what_case = GAVEL__CLIENT_FRAME__WHAT_WATCH;
    outgoing->frame.watch = &outgoing->watch;
    client_send(client, &outgoing->frame);
}

void client_watch_pump(struct client *client)
{
    struct client_watch *watch = TAILQ_FIRST(&client->watches.idle);

    while (watch && client_is_welcome(client)) {
        struct client_watch *next = TAILQ_NEXT(watch, entry);

        if (is_due(client, watch))
            send_watch(client, watch);
        watch = next;
    }
}

gavel_ns client_watch_wake(const struct client *client)
{
    const struct client_watch *watch;
    gavel_ns at = NEVER;

    if (!client_is_welcome(client))
        return NEVER;
    TAILQ_FOREACH(watch, &client->watches.idle, entry) {
        if (!watch->is_of_session || client->session.is_open)
            at = ns_min(at, watch->retry_at);
    }
    return at;
}

void client_watch_free_all(struct client *client)
{
    struct client_watch *watch;

    while ((watch = RB_MIN(client_watches, &client->watches.all)))
        watch_free(client, watch);
}
