/* SPDX-License-Identifier: Apache-2.0 */

/* Calls and callbacks around the pure client; see cluster_internal.h for when they come. */

#include "client/cluster_internal.h"

#include "base/assert.h"
#include "base/error.h"
#include "net/tls.h"
#include "os/clock.h"
#include "os/entropy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIFT_PPM 1000

static int compare(const struct cluster_link_watcher *a, const struct cluster_link_watcher *b)
{
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Not RB_GENERATE_STATIC: it counts on a macro that headers of Linux may take away. */
RB_GENERATE_INTERNAL(cluster_link_watchers, cluster_link_watcher, by_number, compare,
                     static __attribute__((__unused__)))

static struct cluster_link_watcher *find_watcher(struct cluster_link *cluster, uint64_t number)
{
    struct cluster_link_watcher wanted = {.number = number};

    return RB_FIND(cluster_link_watchers, &cluster->watchers, &wanted);
}

static void wait_for_turn(struct cluster_link *cluster, const struct client_action *action)
{
    if (cluster->due_count == cluster->due_capacity) {
        size_t capacity = cluster->due_capacity ? 2 * cluster->due_capacity : 16;
        struct client_action *due = realloc(cluster->due, capacity * sizeof *due);

        /* An outcome that cannot be told would be waited for for ever. */
        ASSERT(due);
        cluster->due = due;
        cluster->due_capacity = capacity;
    }
    cluster->due[cluster->due_count++] = *action;
}

static void set_timer(struct cluster_link *cluster)
{
    gavel_ns wake_at = client_wake_at(cluster->client);
    struct timeval after;
    gavel_ns us;

    if (wake_at == cluster->wake_at)
        return;
    cluster->wake_at = wake_at;
    if (wake_at == NEVER) {
        (void)event_del(cluster->timer);
        return;
    }
    us = ns_max(wake_at - clock_now() + NS_PER_US - 1, 0) / NS_PER_US;
    after.tv_sec = us / 1000000;
    after.tv_usec = us % 1000000;
    (void)event_add(cluster->timer, &after); /* a timer that was there before needs no memory */
}

/* Feeds the client, sends what is to be sent, and leaves the rest in `due`. */
static void feed(struct cluster_link *cluster, const struct client_event *event)
{
    const struct client_actions *actions = client_step(cluster->client, event);

    if (cluster->noted)
        *cluster->noted = client_session(cluster->client); /* before its opening is sent */
    for (size_t i = 0; i < actions->count; i++) {
        const struct client_action *action = &actions->items[i];

        switch (action->kind) {
        case CLIENT_DO_CONNECT:
            cluster_link_stream_open(cluster, action->which);
            break;
        case CLIENT_DO_DISCONNECT:
            cluster_link_stream_close(cluster);
            break;
        case CLIENT_DO_SEND:
            cluster_link_frame_send(cluster->stream, action->frame);
            break;
        default:
            wait_for_turn(cluster, action);
            break;
        }
    }
    set_timer(cluster);
}

static struct cluster_link_call *take_call(uint64_t token)
{
    struct cluster_link_call *call = (struct cluster_link_call *)(uintptr_t)token;

    LIST_REMOVE(call, entry);
    return call;
}

static void tell_watcher(struct cluster_link *cluster, const struct client_action *action)
{
    const struct cluster_link_watcher *watcher = find_watcher(cluster, action->token);

    Gavel__Change change;

    if (!watcher)
        return; /* it was ended meanwhile */
    if (action->change) {
        change = *action->change;
        if (!client_is_own(cluster->client, change.session, change.revision))
            change.session = 0;
    }
    watcher->callback(watcher->user, action->change ? &change : NULL, action->revision,
                      action->kind == CLIENT_DO_GAP);
}

static void tell(struct cluster_link *cluster, const struct client_action *action)
{
    const struct cluster_link_events *events = &cluster->events;
    struct cluster_link_call *call;

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
        tell_watcher(cluster, action);
        break;
    case CLIENT_DO_DEADLINE:
        cluster->told_deadline = action->at;
        if (events->deadline)
            events->deadline(events->user, action->number, action->at);
        break;
    case CLIENT_DO_SESSION_LOST:
        if (events->session_lost)
            events->session_lost(events->user, action->number);
        break;
    case CLIENT_DO_CLOSED:
        if (events->closed)
            events->closed(events->user);
        break;
    default:
        break;
    }
}

static void tell_state(struct cluster_link *cluster)
{
    enum client_state state = client_state(cluster->client);
    const char *trouble = client_trouble(cluster->client);
    bool is_refused = client_is_refused(cluster->client);

    if (!cluster->events.state ||
        (cluster->has_told_state && state == cluster->told_state && is_refused == cluster->told_refused &&
         strcmp(trouble, cluster->told_trouble) == 0))
        return;
    cluster->told_refused = is_refused;
    cluster->has_told_state = true;
    cluster->told_state = state;
    (void)snprintf(cluster->told_trouble, sizeof cluster->told_trouble, "%s", trouble);
    cluster->events.state(cluster->events.user, state, cluster->told_trouble);
}

/* What is due now; what callbacks bring about waits for the next turn. */
static void tell_due(struct cluster_link *cluster)
{
    size_t count = cluster->due_count;

    for (size_t i = 0; i < count; i++) {
        struct client_action action = cluster->due[i]; /* the array may move meanwhile */

        tell(cluster, &action);
    }
    cluster->due_count -= count;
    if (count > 0 && cluster->due_count > 0)
        memmove(cluster->due, cluster->due + count, cluster->due_count * sizeof *cluster->due);
    tell_state(cluster);
    if (cluster->due_count > 0)
        event_active(cluster->turn, EV_TIMEOUT, 0);
}

void cluster_link_step(struct cluster_link *cluster, struct client_event *event)
{
    feed(cluster, event);
    tell_due(cluster);
}

static void on_timer(evutil_socket_t fd, short events, void *context)
{
    struct cluster_link *cluster = context;
    struct client_event event = {.kind = CLIENT_TIMER, .now = clock_now()};

    (void)fd;
    (void)events;
    cluster->wake_at = NEVER; /* it is not set any more */
    cluster_link_step(cluster, &event);
}

static void on_turn(evutil_socket_t fd, short events, void *context)
{
    struct cluster_link *cluster = context;

    (void)fd;
    (void)events;
    if (cluster->stream && cluster->stream->has_failed) {
        struct client_event event = {.kind = CLIENT_LOST, .now = clock_now()};
        char reason[CLUSTER_REASON_BYTES];

        (void)snprintf(reason, sizeof reason, "%s", cluster->stream->reason);
        cluster_link_stream_close(cluster);
        event.reason = reason;
        feed(cluster, &event);
    }
    cluster_link_stream_reap(cluster);
    tell_due(cluster);
}

/* A call of the caller's, maybe from within a callback. */
static void call(struct cluster_link *cluster, const struct client_event *event)
{
    feed(cluster, event);
    event_active(cluster->turn, EV_TIMEOUT, 0);
}

/* Those on this machine come first. */
static void sort_addresses(struct cluster_link *cluster, const struct cluster_link_target *target)
{
    size_t at = 0;

    cluster->target = *target;
    for (int is_far = 0; is_far <= 1; is_far++) {
        for (size_t i = 0; i < target->count; i++) {
            if (cluster_link_is_path(target->addresses[i]) == !is_far)
                memcpy(cluster->target.addresses[at++], target->addresses[i], sizeof target->addresses[i]);
        }
        if (!is_far)
            cluster->near_count = at;
    }
}

static uint64_t new_session_id(void)
{
    uint64_t id;

    do
        id = entropy_u64();
    while (id == 0);
    return id;
}

static enum gavel_status invalid_ttl(uint32_t ttl_ms, struct gavel_error *error)
{
    return error_set(error, GAVEL_ERR_INVALID,
                     "the time to live of a session is %u ms; it must be from %d to %d ms", ttl_ms,
                     TABLE_TTL_MIN_MS, TABLE_TTL_MAX_MS);
}

/* That of the target, unless there is to be no session. */
static uint32_t choose_ttl(const struct cluster_link *cluster, uint32_t ttl_ms)
{
    return ttl_ms != 0 && cluster->target.ttl_ms != 0 ? cluster->target.ttl_ms : ttl_ms;
}

static enum gavel_status make_client(struct cluster_link *cluster, uint32_t ttl_ms, const char *name,
                                     const struct table_process *process, struct gavel_error *error)
{
    struct client_settings settings = {
        .ttl_ms = choose_ttl(cluster, ttl_ms),
        .drift_ppm = DRIFT_PPM,
        .address_count = cluster->target.count,
        .near_count = cluster->near_count,
        .session = new_session_id(),
        .seed = entropy_u64(),
        .name = name,
        .program = "libgavel " GAVEL_VERSION,
    };
    enum gavel_status status;

    for (size_t i = 0; i < CLIENT_SECRET_BYTES; i += sizeof(uint64_t)) {
        uint64_t random = entropy_u64();

        memcpy(settings.secret + i, &random, sizeof random);
    }
    if (process)
        settings.process = *process;
    status = client_new(&settings, clock_now(), &cluster->client);
    if (status == GAVEL_ERR_INVALID)
        return invalid_ttl(settings.ttl_ms, error);
    return status == GAVEL_OK ? status : error_set(error, status, "out of memory");
}

static enum gavel_status set_up(struct cluster_link *cluster, struct gavel_error *error)
{
    const struct cluster_link_target *target = &cluster->target;
    const struct tls_files files = {
        .ca = target->ca, .cert = target->cert, .key = target->key, .revoked = target->revoked};
    enum gavel_status status = GAVEL_OK;

    if (target->ca[0] != '\0')
        status = tls_context_make(&files, TLS_PEER, &cluster->tls, error);
    if (status == GAVEL_OK && cluster->tls)
        status = tls_identity_of_file(files.cert, &cluster->own, error);
    if (status != GAVEL_OK)
        return status;
    cluster->timer = evtimer_new(cluster->base, on_timer, cluster);
    cluster->turn = event_new(cluster->base, -1, 0, on_turn, cluster);
    if (!cluster->timer || !cluster->turn)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    return GAVEL_OK;
}

enum gavel_status cluster_link_new(struct event_base *base, const struct cluster_link_target *target,
                                   uint32_t ttl_ms, const char *name, const struct table_process *process,
                                   const struct cluster_link_events *events,
                                   struct cluster_link **ret_cluster, struct gavel_error *error)
{
    enum gavel_status status = cluster_link_target_check(target, error);
    struct cluster_link *cluster;

    if (status != GAVEL_OK)
        return status;
    cluster = calloc(1, sizeof *cluster);
    if (!cluster)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    cluster->base = base;
    cluster->wake_at = NEVER;
    if (events)
        cluster->events = *events;
    SLIST_INIT(&cluster->dead);
    LIST_INIT(&cluster->calls);
    RB_INIT(&cluster->watchers);
    sort_addresses(cluster, target);
    status = set_up(cluster, error);
    if (status == GAVEL_OK)
        status = make_client(cluster, ttl_ms, name, process, error);
    if (status != GAVEL_OK) {
        cluster_link_free(cluster);
        return status;
    }
    set_timer(cluster);
    *ret_cluster = cluster;
    return GAVEL_OK;
}

void cluster_link_close(struct cluster_link *cluster)
{
    struct client_event event = {.kind = CLIENT_CLOSE, .now = clock_now()};

    call(cluster, &event);
}

void cluster_link_free(struct cluster_link *cluster)
{
    struct cluster_link_watcher *watcher;
    struct cluster_link_call *waiting;

    if (!cluster)
        return;
    cluster_link_stream_close(cluster);
    cluster_link_stream_reap(cluster);
    client_free(cluster->client);
    if (cluster->timer)
        event_free(cluster->timer);
    if (cluster->turn)
        event_free(cluster->turn);
    while ((waiting = LIST_FIRST(&cluster->calls))) {
        LIST_REMOVE(waiting, entry);
        free(waiting);
    }
    while ((watcher = RB_MIN(cluster_link_watchers, &cluster->watchers))) {
        (void)RB_REMOVE(cluster_link_watchers, &cluster->watchers, watcher);
        free(watcher);
    }
    SSL_CTX_free(cluster->tls);
    free(cluster->due);
    free(cluster);
}

/* Without memory nobody could be told; the program cannot go on. */
static struct cluster_link_call *new_call(struct cluster_link *cluster, void *user)
{
    struct cluster_link_call *waiting = calloc(1, sizeof *waiting);

    ASSERT(waiting);
    waiting->user = user;
    LIST_INSERT_HEAD(&cluster->calls, waiting, entry);
    return waiting;
}

void cluster_link_submit(struct cluster_link *cluster, const Gavel__Op *const *ops, size_t count,
                         gavel_ns give_up_at, cluster_link_result_cb callback, void *user)
{
    struct client_event event = {.kind = CLIENT_SUBMIT, .now = clock_now()};
    struct cluster_link_call *waiting = new_call(cluster, user);

    waiting->result = callback;
    event.submit.token = (uintptr_t)waiting;
    event.submit.ops = ops;
    event.submit.count = count;
    event.submit.give_up_at = give_up_at;
    call(cluster, &event);
}

void cluster_link_ask(struct cluster_link *cluster, const Gavel__Ask *ask, gavel_ns give_up_at,
                      cluster_link_answer_cb callback, void *user)
{
    struct client_event event = {.kind = CLIENT_ASK, .now = clock_now()};
    struct cluster_link_call *waiting = new_call(cluster, user);

    waiting->answer = callback;
    event.ask.token = (uintptr_t)waiting;
    event.ask.ask = ask;
    event.ask.give_up_at = give_up_at;
    call(cluster, &event);
}

uint64_t cluster_link_watch(struct cluster_link *cluster, const char *group, const char *prefix,
                            uint64_t after_revision, cluster_link_change_cb callback, void *user)
{
    struct client_event event = {.kind = CLIENT_WATCH, .now = clock_now()};
    struct cluster_link_watcher *watcher = calloc(1, sizeof *watcher);

    if (!watcher)
        return 0;
    watcher->number = ++cluster->watch_numbers;
    watcher->callback = callback;
    watcher->user = user;
    if (RB_INSERT(cluster_link_watchers, &cluster->watchers, watcher)) { /* not in 2^64 watches */
        free(watcher);
        return 0;
    }
    event.watch.watch = watcher->number;
    event.watch.group = group;
    event.watch.prefix = group ? NULL : prefix;
    event.watch.is_of_session = !group && !prefix;
    event.watch.after_revision = after_revision;
    call(cluster, &event);
    return watcher->number;
}

void cluster_link_unwatch(struct cluster_link *cluster, uint64_t watch)
{
    struct client_event event = {.kind = CLIENT_UNWATCH, .now = clock_now()};
    struct cluster_link_watcher *watcher = find_watcher(cluster, watch);

    if (!watcher)
        return;
    (void)RB_REMOVE(cluster_link_watchers, &cluster->watchers, watcher);
    free(watcher);
    event.watch.watch = watch;
    call(cluster, &event);
}

enum gavel_status cluster_link_open_session(struct cluster_link *cluster,
                                            const struct cluster_link_session_options *options,
                                            struct gavel_error *error)
{
    struct client_event event = {.kind = CLIENT_OPEN, .now = clock_now()};

    if (client_session(cluster->client) != 0)
        return error_set(error, GAVEL_ERR_STATE, "this connection to the cluster has a session already");
    if (client_state(cluster->client) == CLIENT_CLOSED)
        return error_set(error, GAVEL_ERR_STATE, "this connection to the cluster is closed");
    event.open.ttl_ms = choose_ttl(cluster, options->ttl_ms);
    if (event.open.ttl_ms < TABLE_TTL_MIN_MS || event.open.ttl_ms > TABLE_TTL_MAX_MS)
        return invalid_ttl(event.open.ttl_ms, error);
    event.open.silence = ns_max(options->silence, 0);
    event.open.session = new_session_id();
    event.open.is_paced = options->is_paced;
    if (options->process)
        event.open.process = *options->process;
    cluster->noted = options->noted;
    call(cluster, &event);
    return GAVEL_OK;
}

/* A deadline that waits for its turn has reached nobody. */
void cluster_link_taken(struct cluster_link *cluster)
{
    struct client_event event = {.kind = CLIENT_TAKEN, .now = clock_now()};

    if (cluster->told_deadline == client_deadline(cluster->client))
        call(cluster, &event);
}

void cluster_link_secret(const struct cluster_link *cluster, uint8_t ret_secret[CLIENT_SECRET_BYTES])
{
    memcpy(ret_secret, client_secret(cluster->client), CLIENT_SECRET_BYTES);
}

void cluster_link_set_secret(struct cluster_link *cluster, const uint8_t secret[CLIENT_SECRET_BYTES])
{
    client_set_secret(cluster->client, secret);
}

uint64_t cluster_link_session(const struct cluster_link *cluster) { return client_session(cluster->client); }

uint64_t cluster_link_session_number(const struct cluster_link *cluster)
{
    return client_session_number(cluster->client);
}

gavel_ns cluster_link_session_lasts(const struct cluster_link *cluster)
{
    return client_session_lasts(cluster->client);
}

gavel_ns cluster_link_deadline(const struct cluster_link *cluster)
{
    return client_deadline(cluster->client);
}

const char *cluster_link_trouble(const struct cluster_link *cluster)
{
    return client_trouble(cluster->client);
}

bool cluster_link_is_refused(const struct cluster_link *cluster)
{
    return client_is_refused(cluster->client);
}
