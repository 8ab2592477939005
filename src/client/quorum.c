/* SPDX-License-Identifier: Apache-2.0 */

/* Calls and callbacks around the pure client; see quorum_internal.h for when they come. */

#include "client/quorum_internal.h"

#include "base/assert.h"
#include "base/error.h"
#include "net/tls.h"
#include "os/clock.h"
#include "os/entropy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIFT_PPM 1000

static int compare(const struct quorum_watcher *a, const struct quorum_watcher *b)
{
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Not RB_GENERATE_STATIC: it counts on a macro that headers of Linux may take away. */
RB_GENERATE_INTERNAL(quorum_watchers, quorum_watcher, by_number, compare, static __attribute__((__unused__)))

static struct quorum_watcher *find_watcher(struct quorum *quorum, uint64_t number)
{
    struct quorum_watcher wanted = {.number = number};

    return RB_FIND(quorum_watchers, &quorum->watchers, &wanted);
}

static void wait_for_turn(struct quorum *quorum, const struct client_action *action)
{
    if (quorum->due_count == quorum->due_capacity) {
        size_t capacity = quorum->due_capacity ? 2 * quorum->due_capacity : 16;
        struct client_action *due = realloc(quorum->due, capacity * sizeof *due);

        /* An outcome that cannot be told would be waited for for ever. */
        ASSERT(due);
        quorum->due = due;
        quorum->due_capacity = capacity;
    }
    quorum->due[quorum->due_count++] = *action;
}

static void set_timer(struct quorum *quorum)
{
    gavel_ns wake_at = client_wake_at(quorum->client);
    struct timeval after;
    gavel_ns us;

    if (wake_at == quorum->wake_at)
        return;
    quorum->wake_at = wake_at;
    if (wake_at == NEVER) {
        (void)event_del(quorum->timer);
        return;
    }
    us = ns_max(wake_at - clock_now() + NS_PER_US - 1, 0) / NS_PER_US;
    after.tv_sec = us / 1000000;
    after.tv_usec = us % 1000000;
    (void)event_add(quorum->timer, &after); /* a timer that was there before needs no memory */
}

/* Feeds the client, sends what is to be sent, and leaves the rest in `due`. */
static void feed(struct quorum *quorum, const struct client_event *event)
{
    const struct client_actions *actions = client_step(quorum->client, event);

    for (size_t i = 0; i < actions->count; i++) {
        const struct client_action *action = &actions->items[i];

        switch (action->kind) {
        case CLIENT_DO_CONNECT:
            quorum_stream_open(quorum, action->which);
            break;
        case CLIENT_DO_DISCONNECT:
            quorum_stream_close(quorum);
            break;
        case CLIENT_DO_SEND:
            quorum_frame_send(quorum->stream, action->frame);
            break;
        default:
            wait_for_turn(quorum, action);
            break;
        }
    }
    set_timer(quorum);
}

static struct quorum_call *take_call(uint64_t token)
{
    struct quorum_call *call = (struct quorum_call *)(uintptr_t)token;

    LIST_REMOVE(call, entry);
    return call;
}

static void tell_watcher(struct quorum *quorum, const struct client_action *action)
{
    const struct quorum_watcher *watcher = find_watcher(quorum, action->token);

    if (watcher) /* else it was ended meanwhile */
        watcher->callback(watcher->user, action->change, action->revision, action->kind == CLIENT_DO_GAP);
}

static void tell(struct quorum *quorum, const struct client_action *action)
{
    const struct quorum_events *events = &quorum->events;
    struct quorum_call *call;

    switch (action->kind) {
    case CLIENT_DO_RESULT:
        call = take_call(action->token);
        call->result(call->user, action->status, action->message, action->results, action->count);
        free(call);
        break;
    case CLIENT_DO_ANSWER:
        call = take_call(action->token);
        call->answer(call->user, action->status, action->message, action->answer);
        free(call);
        break;
    case CLIENT_DO_CHANGE:
    case CLIENT_DO_WATCHING:
    case CLIENT_DO_GAP:
        tell_watcher(quorum, action);
        break;
    case CLIENT_DO_DEADLINE:
        if (events->deadline)
            events->deadline(events->user, action->at);
        break;
    case CLIENT_DO_SESSION_LOST:
        if (events->session_lost)
            events->session_lost(events->user);
        break;
    case CLIENT_DO_CLOSED:
        if (events->closed)
            events->closed(events->user);
        break;
    default:
        break;
    }
}

static void tell_state(struct quorum *quorum)
{
    enum client_state state = client_state(quorum->client);
    const char *trouble = client_trouble(quorum->client);
    bool is_refused = client_is_refused(quorum->client);

    if (!quorum->events.state ||
        (quorum->has_told_state && state == quorum->told_state && is_refused == quorum->told_refused &&
         strcmp(trouble, quorum->told_trouble) == 0))
        return;
    quorum->told_refused = is_refused;
    quorum->has_told_state = true;
    quorum->told_state = state;
    (void)snprintf(quorum->told_trouble, sizeof quorum->told_trouble, "%s", trouble);
    quorum->events.state(quorum->events.user, state, quorum->told_trouble);
}

/* What is due now; what callbacks bring about waits for the next turn. */
static void tell_due(struct quorum *quorum)
{
    size_t count = quorum->due_count;

    for (size_t i = 0; i < count; i++) {
        struct client_action action = quorum->due[i]; /* the array may move meanwhile */

        tell(quorum, &action);
    }
    quorum->due_count -= count;
    if (count > 0 && quorum->due_count > 0)
        memmove(quorum->due, quorum->due + count, quorum->due_count * sizeof *quorum->due);
    tell_state(quorum);
    if (quorum->due_count > 0)
        event_active(quorum->turn, EV_TIMEOUT, 0);
}

void quorum_step(struct quorum *quorum, struct client_event *event)
{
    feed(quorum, event);
    tell_due(quorum);
}

static void on_timer(evutil_socket_t fd, short events, void *context)
{
    struct quorum *quorum = context;
    struct client_event event = {.kind = CLIENT_TIMER, .now = clock_now()};

    (void)fd;
    (void)events;
    quorum->wake_at = NEVER; /* it is not set any more */
    quorum_step(quorum, &event);
}

static void on_turn(evutil_socket_t fd, short events, void *context)
{
    struct quorum *quorum = context;

    (void)fd;
    (void)events;
    if (quorum->stream && quorum->stream->has_failed) {
        struct client_event event = {.kind = CLIENT_LOST, .now = clock_now()};
        char reason[QUORUM_REASON_BYTES];

        (void)snprintf(reason, sizeof reason, "%s", quorum->stream->reason);
        quorum_stream_close(quorum);
        event.reason = reason;
        feed(quorum, &event);
    }
    quorum_stream_reap(quorum);
    tell_due(quorum);
}

/* A call of the caller's, maybe from within a callback. */
static void call(struct quorum *quorum, const struct client_event *event)
{
    feed(quorum, event);
    event_active(quorum->turn, EV_TIMEOUT, 0);
}

/* Those on this machine come first. */
static void sort_addresses(struct quorum *quorum, const struct quorum_place *place)
{
    size_t at = 0;

    quorum->place = *place;
    for (int is_far = 0; is_far <= 1; is_far++) {
        for (size_t i = 0; i < place->count; i++) {
            if (quorum_is_path(place->addresses[i]) == !is_far)
                memcpy(quorum->place.addresses[at++], place->addresses[i], sizeof place->addresses[i]);
        }
        if (!is_far)
            quorum->near_count = at;
    }
}

static enum gavel_status make_client(struct quorum *quorum, uint32_t ttl_ms, const char *name,
                                     const struct table_process *process, struct gavel_error *error)
{
    struct client_settings settings = {
        .ttl_ms = quorum->place.ttl_ms ? quorum->place.ttl_ms : ttl_ms,
        .drift_ppm = DRIFT_PPM,
        .address_count = quorum->place.count,
        .near_count = quorum->near_count,
        .seed = entropy_u64(),
        .name = name,
        .program = "libgavel " GAVEL_VERSION,
    };
    enum gavel_status status;

    do
        settings.session = entropy_u64();
    while (settings.session == 0);
    for (size_t i = 0; i < CLIENT_SECRET_BYTES; i += sizeof(uint64_t)) {
        uint64_t random = entropy_u64();

        memcpy(settings.secret + i, &random, sizeof random);
    }
    if (process)
        settings.process = *process;
    status = client_new(&settings, clock_now(), &quorum->client);
    if (status == GAVEL_ERR_INVALID)
        return error_set(error, status, "the time to live of a session is %u ms; it must be from %d to %d ms",
                         settings.ttl_ms, TABLE_TTL_MIN_MS, TABLE_TTL_MAX_MS);
    return status == GAVEL_OK ? status : error_set(error, status, "out of memory");
}

static enum gavel_status set_up(struct quorum *quorum, struct gavel_error *error)
{
    const struct quorum_place *place = &quorum->place;
    const struct tls_files files = {
        .ca = place->ca, .cert = place->cert, .key = place->key, .revoked = place->revoked};
    enum gavel_status status = GAVEL_OK;

    if (place->ca[0] != '\0')
        status = tls_context_make(&files, TLS_PEER, &quorum->tls, error);
    if (status == GAVEL_OK && quorum->tls)
        status = tls_identity_of_file(files.cert, &quorum->own, error);
    if (status != GAVEL_OK)
        return status;
    quorum->timer = evtimer_new(quorum->base, on_timer, quorum);
    quorum->turn = event_new(quorum->base, -1, 0, on_turn, quorum);
    if (!quorum->timer || !quorum->turn)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    return GAVEL_OK;
}

enum gavel_status quorum_new(struct event_base *base, const struct quorum_place *place, uint32_t ttl_ms,
                             const char *name, const struct table_process *process,
                             const struct quorum_events *events, struct quorum **ret_quorum,
                             struct gavel_error *error)
{
    enum gavel_status status = quorum_place_check(place, error);
    struct quorum *quorum;

    if (status != GAVEL_OK)
        return status;
    quorum = calloc(1, sizeof *quorum);
    if (!quorum)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    quorum->base = base;
    quorum->wake_at = NEVER;
    if (events)
        quorum->events = *events;
    SLIST_INIT(&quorum->dead);
    LIST_INIT(&quorum->calls);
    RB_INIT(&quorum->watchers);
    sort_addresses(quorum, place);
    status = set_up(quorum, error);
    if (status == GAVEL_OK)
        status = make_client(quorum, ttl_ms, name, process, error);
    if (status != GAVEL_OK) {
        quorum_free(quorum);
        return status;
    }
    set_timer(quorum);
    *ret_quorum = quorum;
    return GAVEL_OK;
}

void quorum_close(struct quorum *quorum)
{
    struct client_event event = {.kind = CLIENT_CLOSE, .now = clock_now()};

    call(quorum, &event);
}

void quorum_free(struct quorum *quorum)
{
    struct quorum_watcher *watcher;
    struct quorum_call *waiting;

    if (!quorum)
        return;
    quorum_stream_close(quorum);
    quorum_stream_reap(quorum);
    client_free(quorum->client);
    if (quorum->timer)
        event_free(quorum->timer);
    if (quorum->turn)
        event_free(quorum->turn);
    while ((waiting = LIST_FIRST(&quorum->calls))) {
        LIST_REMOVE(waiting, entry);
        free(waiting);
    }
    while ((watcher = RB_MIN(quorum_watchers, &quorum->watchers))) {
        (void)RB_REMOVE(quorum_watchers, &quorum->watchers, watcher);
        free(watcher);
    }
    SSL_CTX_free(quorum->tls);
    free(quorum->due);
    free(quorum);
}

/* Without memory nobody could be told; the program cannot go on. */
static struct quorum_call *new_call(struct quorum *quorum, void *user)
{
    struct quorum_call *waiting = calloc(1, sizeof *waiting);

    ASSERT(waiting);
    waiting->user = user;
    LIST_INSERT_HEAD(&quorum->calls, waiting, entry);
    return waiting;
}

void quorum_submit(struct quorum *quorum, const Gavel__Op *const *ops, size_t count, gavel_ns give_up_at,
                   quorum_result_cb callback, void *user)
{
    struct client_event event = {.kind = CLIENT_SUBMIT, .now = clock_now()};
    struct quorum_call *waiting = new_call(quorum, user);

    waiting->result = callback;
    event.submit.token = (uintptr_t)waiting;
    event.submit.ops = ops;
    event.submit.count = count;
    event.submit.give_up_at = give_up_at;
    call(quorum, &event);
}

void quorum_ask(struct quorum *quorum, const Gavel__Ask *ask, gavel_ns give_up_at, quorum_answer_cb callback,
                void *user)
{
    struct client_event event = {.kind = CLIENT_ASK, .now = clock_now()};
    struct quorum_call *waiting = new_call(quorum, user);

    waiting->answer = callback;
    event.ask.token = (uintptr_t)waiting;
    event.ask.ask = ask;
    event.ask.give_up_at = give_up_at;
    call(quorum, &event);
}

uint64_t quorum_watch(struct quorum *quorum, const char *group, const char *prefix, uint64_t after_revision,
                      quorum_change_cb callback, void *user)
{
    struct client_event event = {.kind = CLIENT_WATCH, .now = clock_now()};
    struct quorum_watcher *watcher = calloc(1, sizeof *watcher);

    if (!watcher)
        return 0;
    watcher->number = ++quorum->watch_numbers;
    watcher->callback = callback;
    watcher->user = user;
    if (RB_INSERT(quorum_watchers, &quorum->watchers, watcher)) { /* not in 2^64 watches */
        free(watcher);
        return 0;
    }
    event.watch.watch = watcher->number;
    event.watch.group = group;
    event.watch.prefix = group ? NULL : prefix;
    event.watch.is_of_session = !group && !prefix;
    event.watch.after_revision = after_revision;
    call(quorum, &event);
    return watcher->number;
}

void quorum_unwatch(struct quorum *quorum, uint64_t watch)
{
    struct client_event event = {.kind = CLIENT_UNWATCH, .now = clock_now()};
    struct quorum_watcher *watcher = find_watcher(quorum, watch);

    if (!watcher)
        return;
    (void)RB_REMOVE(quorum_watchers, &quorum->watchers, watcher);
    free(watcher);
    event.watch.watch = watch;
    call(quorum, &event);
}

uint64_t quorum_session(const struct quorum *quorum) { return client_session(quorum->client); }

gavel_ns quorum_deadline(const struct quorum *quorum) { return client_deadline(quorum->client); }

const char *quorum_trouble(const struct quorum *quorum) { return client_trouble(quorum->client); }

bool quorum_is_refused(const struct quorum *quorum) { return client_is_refused(quorum->client); }
