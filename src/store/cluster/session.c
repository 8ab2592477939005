/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The session of the store object: opened for the caller's candidates, or with
 * the first write; and what is told of it.
 *
 *     keep-alive sent ├──────── time to live × (1 − drift) / (1 + drift) ────────┤ deadline
 *                     ├── a third ──► the next one, if the caller has taken the deadline
 */
#include "store/cluster/cluster.h"

#include "base/error.h"
#include "os/clock.h"
#include "os/process.h"

#include <stdatomic.h>
#include <string.h>

/* Of the session that is opened with the first write. */
#define TTL_MS 2000

/* What the nodes of a cluster count on, and a client of theirs at least. */
#define DRIFT_PPM 1000
#define DRIFT_PPM_MAX 100000
#define PPM INT64_C(1000000)

/*
 * An answer that takes longer means that the connection is dead. A third of the time to live passes before
 * the next keep-alive is sent; with this, there is time for another connection before the work must stop.
 */
#define SILENCE_PARTS 4
#define SILENCE_MIN (100 * NS_PER_MS)
#define SILENCE_MAX (5 * NS_PER_S)

/* For the thread to begin a session; it waits for nobody meanwhile. */
#define OPENING_PATIENCE (5 * NS_PER_S)

struct gavel_own gavel_own(const struct gavel_store *gavel)
{
    uint64_t number = gavel->news.now.number;

    return (struct gavel_own){.number = number, .id = number != 0 ? cluster_link_session(gavel->link) : 0};
}

/* ---- begun by the caller ---- */

static int64_t drift_of(const struct store_session_options *options)
{
    return options->drift_ppm > DRIFT_PPM ? options->drift_ppm : DRIFT_PPM;
}

/* So that mandates last for the lease by our clock, however both clocks drift. */
static gavel_ms ttl_of_lease(const struct store_session_options *options)
{
    int64_t drift = drift_of(options);

    return (options->lease_ms * (PPM + drift) + PPM - drift - 1) / (PPM - drift) + 1;
}

static enum gavel_status choose_ttl(const struct gavel_store *gavel,
                                    const struct store_session_options *options, uint32_t *ret_ttl_ms,
                                    struct gavel_error *error)
{
    gavel_ms ttl_ms;

    *ret_ttl_ms = gavel->target.ttl_ms;
    if (*ret_ttl_ms != 0)
        return GAVEL_OK; /* its bounds were checked with the URL */
    if (options->lease_ms < 1 || options->lease_ms > TABLE_TTL_MAX_MS || options->drift_ppm < 0 ||
        options->drift_ppm > DRIFT_PPM_MAX)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "a lease of %lld ms with a drift of %d ppm is none for %s; choose a lease of at most a day, and a drift of at most %d ppm",
            (long long)options->lease_ms, options->drift_ppm, gavel->where, DRIFT_PPM_MAX);
    ttl_ms = ttl_of_lease(options);
    if (ttl_ms < TABLE_TTL_MIN_MS || ttl_ms > TABLE_TTL_MAX_MS)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "a lease of %lld ms needs a session of %lld ms, and %s has them from %d to %d ms; choose another lease",
            (long long)options->lease_ms, (long long)ttl_ms, gavel->where, TABLE_TTL_MIN_MS,
            TABLE_TTL_MAX_MS);
    *ret_ttl_ms = (uint32_t)ttl_ms;
    return GAVEL_OK;
}

/* The thread does it; the lock is held. */
static enum gavel_status await_opening(struct gavel_store *gavel, struct gavel_opening *opening,
                                       struct gavel_error *error)
{
    gavel_ns until = clock_now() + OPENING_PATIENCE;

    gavel->opening = opening;
    gavel_thread_wake(gavel);
    while (!opening->is_done && push_sleep(&gavel->push, until))
        continue;
    gavel->opening = NULL;
    if (!opening->is_done)
        return error_set(error, GAVEL_ERR_STORE_UNAVAILABLE,
                         "the connection to %s is not served; the machine is overloaded", gavel->where);
    if (opening->status != GAVEL_OK && error)
        *error = opening->error;
    return opening->status;
}

enum gavel_status gavel_open_session(struct store *store, const struct store_session_options *options,
                                     struct gavel_error *error)
{
    struct gavel_store *gavel = (struct gavel_store *)store;
    struct gavel_opening opening = {.key = options->key, .options.is_paced = true};
    enum gavel_status status;

    if (push_is_forked(&gavel->push))
        return error_set(error, GAVEL_ERR_STATE,
                         "%s was opened before this process was forked; open it again in the child",
                         gavel->where);
    status = choose_ttl(gavel, options, &opening.options.ttl_ms, error);
    if (status != GAVEL_OK)
        return status;
    opening.options.silence =
        ns_min(ns_max(ns_from_ms(opening.options.ttl_ms) / SILENCE_PARTS, SILENCE_MIN), SILENCE_MAX);
    /* In microseconds: a day of them times a million fits. */
    opening.lasts = (gavel_ns)opening.options.ttl_ms * 1000 * (PPM - drift_of(options)) /
                    (PPM + drift_of(options)) * NS_PER_US;
    opening.options.process = options->names_process && gavel->self.pid ? &gavel->process : NULL;
    opening.options.noted = options->key ? &options->key->session : NULL;
    pthread_mutex_lock(&gavel->push.lock);
    if (gavel->is_session_begun)
        status = error_set(error, GAVEL_ERR_STATE, "the session of this store object at %s was begun already",
                           gavel->where);
    else
        status = await_opening(gavel, &opening, error);
    pthread_mutex_unlock(&gavel->push.lock);
    return status;
}

/* Nothing that names the session is sent before the guard could find it. */
static void write_key(const struct gavel_store *gavel, struct store_session_key *key)
{
    _Static_assert(sizeof key->secret == CLIENT_SECRET_BYTES, "one secret");

    cluster_link_secret(gavel->link, key->secret);
    atomic_store_explicit(&key->is_known, 1, memory_order_release);
}

void gavel_session_tend(struct gavel_store *gavel)
{
    struct gavel_opening *opening = gavel->opening;

    if (opening) {
        gavel->opening = NULL;
        if (opening->key)
            write_key(gavel, opening->key);
        opening->status = cluster_link_open_session(gavel->link, &opening->options, &opening->error);
        gavel->is_session_begun = gavel->has_session = opening->status == GAVEL_OK;
        gavel->session_lasts = opening->lasts;
        opening->is_done = true;
        pthread_cond_broadcast(&gavel->push.changed);
    }
    if (gavel_news_was_taken(&gavel->news))
        cluster_link_taken(gavel->link);
}

/* ---- begun by a write ---- */

void gavel_session_begin(struct gavel_store *gavel)
{
    const struct cluster_link_session_options options = {.ttl_ms = gavel->target.ttl_ms ? gavel->target.ttl_ms
                                                                                        : TTL_MS,
                                                         .process = gavel->self.pid ? &gavel->process : NULL};
    struct gavel_error error = {0};

    if (gavel->is_session_begun)
        return;
    gavel->is_session_begun = true;
    if (cluster_link_open_session(gavel->link, &options, &error) != GAVEL_OK)
        name_copy(gavel->trouble, sizeof gavel->trouble, error.message); /* calls say so when they time out */
}

/* ---- told by the link ---- */

/* The link counts on the drift that the nodes tell; our own clock may be worse. */
static gavel_ns lasts(const struct gavel_store *gavel)
{
    return ns_min(cluster_link_session_lasts(gavel->link), gavel->session_lasts);
}

static void lost(struct gavel_store *gavel)
{
    if (gavel->news.now.number == 0)
        return;
    gavel_watch_session(gavel, 0);
    gavel_news_lost(&gavel->news, lasts(gavel));
    gavel_members_lost(gavel);
}

static void opened(struct gavel_store *gavel, uint64_t number, gavel_ns deadline)
{
    bool is_another = number != gavel->news.now.number;

    deadline -= cluster_link_session_lasts(gavel->link) - lasts(gavel);
    if (is_another)
        lost(gavel);
    gavel_news_open(&gavel->news, number, deadline, lasts(gavel));
    if (is_another)
        gavel_news_gap(&gavel->news, false, true); /* nothing was told of them while none was open */
    if (is_another || gavel->session_watch == 0)   /* there was no memory */
        gavel_watch_session(gavel, number);
    gavel_withdraw_doubtful(gavel);
}

void gavel_session_deadline(void *user, uint64_t number, gavel_ns deadline)
{
    struct gavel_store *gavel = user;

    pthread_mutex_lock(&gavel->push.lock);
    if (gavel->has_session && (number == 0 || deadline == 0))
        lost(gavel);
    else if (gavel->has_session)
        opened(gavel, number, deadline);
    pthread_mutex_unlock(&gavel->push.lock);
}

/* It is the node of this moment; another says so anew. */
void gavel_session_welcomed(void *user, const Gavel__ClientWelcome *welcome)
{
    struct gavel_store *gavel = user;
    const Gavel__Process *sees = welcome->sees;
    bool is_here = sees && gavel->self.pid && process_has_true_boot_id(&gavel->self) &&
                   sees->pid_ns == gavel->process.pid_ns &&
                   strcmp(sees->boot_id, gavel->process.boot_id) == 0;

    pthread_mutex_lock(&gavel->push.lock);
    gavel_news_sight(&gavel->news, is_here);
    pthread_mutex_unlock(&gavel->push.lock);
}

void gavel_session_lost(void *user, uint64_t number)
{
    struct gavel_store *gavel = user;

    (void)number; /* there is one at a time */
    pthread_mutex_lock(&gavel->push.lock);
    if (gavel->has_session)
        lost(gavel);
    pthread_mutex_unlock(&gavel->push.lock);
}

/* ---- taken by the caller ---- */

static const char *next_member(void *user, const char *after) { return gavel_member_after(user, after); }

static const char *next_watched(void *user, const char *after) { return gavel_watched_after(user, after); }

bool gavel_news(struct store *store, struct store_news *ret_news)
{
    struct gavel_store *gavel = (struct gavel_store *)store;
    bool is_told;
    bool was_taken;

    if (push_is_forked(&gavel->push))
        return false;
    pthread_mutex_lock(&gavel->push.lock);
    is_told = gavel->has_session && gavel_news_take(&gavel->news, next_member, next_watched, gavel, ret_news);
    was_taken = is_told && (ret_news->kind == STORE_NEWS_SESSION || ret_news->kind == STORE_NEWS_DEADLINE);
    pthread_mutex_unlock(&gavel->push.lock);
    if (was_taken)
        gavel_thread_wake(gavel);
    return is_told;
}

bool gavel_changed(struct store *store, char ret_group[NAME_MAX_BYTES + 1])
{
    struct gavel_store *gavel = (struct gavel_store *)store;
    bool has_session;

    if (push_is_forked(&gavel->push))
        return false;
    pthread_mutex_lock(&gavel->push.lock);
    has_session = gavel->has_session;
    pthread_mutex_unlock(&gavel->push.lock);
    return !has_session && push_changed(store, ret_group); /* else all changes are news */
}
