/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The end of the session of a dead process, by whoever has its key: a link of
 * its own greets the nodes with the secret of the dead, so it may close what
 * was theirs. It asks again until it is answered or the caller gives up.
 */
#include "store/cluster/cluster.h"

#include "base/error.h"
#include "os/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Of the session in whose name it is closed, which ends by itself. */
#define TTL_MS 2000

/* Before it is asked again, where the answer may become another. */
#define RETRY_US 50000

struct gavel_dead {
    TAILQ_ENTRY(gavel_dead) next;
    struct gavel_store *store;
    uint8_t secret[CLIENT_SECRET_BYTES];
    uint64_t session;
    gavel_ns give_up_at;
    struct cluster_link *link; /* thread */
    struct event *retry;       /* thread */
    bool is_begun;
    bool is_done;
    bool is_abandoned;        /* nobody waits any longer; the thread frees it */
    enum gavel_status status; /* ERR_TIMEOUT until it is done */
    struct gavel_error error;
};

/* The lock is held. */
static void finish(struct gavel_dead *dead, enum gavel_status status)
{
    dead->is_done = true;
    dead->status = status;
    pthread_cond_broadcast(&dead->store->push.changed);
}

static void fail(struct gavel_dead *dead, enum gavel_status status, const char *message)
{
    finish(dead,
           error_set(&dead->error, status, "%.80s: the session of the dead process is not closed: %.200s",
                     dead->store->where, message));
}

/* What no trying again would change. */
static bool is_final(enum gavel_status status)
{
    return status == GAVEL_ERR_INVALID || status == GAVEL_ERR_DENIED || status == GAVEL_ERR_NO_MEMORY ||
           status == GAVEL_ERR_STORE_UNSUPPORTED || status == GAVEL_ERR_STORE_TOO_NEW;
}

static void answered(void *user, enum gavel_status status, const char *message,
                     const Gavel__OpResult *const *results, size_t count)
{
    struct gavel_dead *dead = user;
    const struct timeval pause = {.tv_usec = RETRY_US};

    if (status == GAVEL_OK && count == 1) {
        status = (enum gavel_status)results[0]->status;
        message = results[0]->message;
    }
    pthread_mutex_lock(&dead->store->push.lock);
    if (status == GAVEL_OK)
        finish(dead, GAVEL_OK);
    else if (is_final(status) || evtimer_add(dead->retry, &pause) < 0)
        fail(dead, status, message[0] ? message : gavel_status_text(status));
    pthread_mutex_unlock(&dead->store->push.lock);
}

static void ask(evutil_socket_t fd, short events, void *user)
{
    struct gavel_dead *dead = user;
    Gavel__CloseSession close = GAVEL__CLOSE_SESSION__INIT;
    Gavel__Op op = GAVEL__OP__INIT;
    const Gavel__Op *ops = &op;

    (void)fd;
    (void)events;
    close.session = dead->session;
    close.ending = GAVEL__ENDING__ENDING_DEAD;
    op.what_case = GAVEL__OP__WHAT_CLOSE_SESSION;
    op.close_session = &close;
    cluster_link_submit(dead->link, &ops, 1, dead->give_up_at, answered, dead);
}

static void link_state(void *user, enum client_state state, const char *trouble)
{
    struct gavel_dead *dead = user;

    (void)state;
    pthread_mutex_lock(&dead->store->push.lock);
    if (!dead->is_done && cluster_link_is_refused(dead->link))
        fail(dead, GAVEL_ERR_STORE_DENIED, trouble);
    else if (!dead->is_done) /* what is said if time is over */
        dead->status = error_set(&dead->error, GAVEL_ERR_TIMEOUT, "%.80s has not answered in time: %.70s",
                                 dead->store->where, trouble[0] ? trouble : STORE_SILENT_CLUSTER_CAUSE);
    pthread_mutex_unlock(&dead->store->push.lock);
}

static void begin(struct gavel_dead *dead)
{
    const struct cluster_link_events events = {.state = link_state, .user = dead};
    const struct cluster_link_session_options options = {.ttl_ms = TTL_MS};
    struct gavel_store *gavel = dead->store;
    struct cluster_link_target target = gavel->target;
    struct gavel_error error = {0};
    enum gavel_status status;

    dead->is_begun = true;
    target.ttl_ms = 0;
    dead->retry = evtimer_new(gavel->base, ask, dead);
    status = dead->retry ? cluster_link_new(gavel->base, &target, 0, program_invocation_short_name, NULL,
                                            &events, &dead->link, &error)
                         : error_set(&error, GAVEL_ERR_NO_MEMORY, "out of memory");
    if (status == GAVEL_OK) {
        cluster_link_set_secret(dead->link, dead->secret);
        status = cluster_link_open_session(dead->link, &options, &error);
    }
    if (status != GAVEL_OK)
        fail(dead, status, error.message);
    else
        ask(-1, 0, dead);
}

static void dead_free(struct gavel_dead *dead)
{
    TAILQ_REMOVE(&dead->store->dead, dead, next);
    cluster_link_free(dead->link);
    if (dead->retry)
        event_free(dead->retry);
    free(dead);
}

void gavel_dead_tend(struct gavel_store *gavel)
{
    struct gavel_dead *next;

    for (struct gavel_dead *dead = TAILQ_FIRST(&gavel->dead); dead; dead = next) {
        next = TAILQ_NEXT(dead, next);
        if (dead->is_abandoned)
            dead_free(dead);
        else if (!dead->is_begun)
            begin(dead);
    }
}

void gavel_dead_free_all(struct gavel_store *gavel)
{
    struct gavel_dead *next;

    for (struct gavel_dead *dead = TAILQ_FIRST(&gavel->dead); dead; dead = next) {
        next = TAILQ_NEXT(dead, next);
        dead_free(dead);
    }
}

/* The lock is held. */
static enum gavel_status await(struct gavel_dead *dead, struct gavel_error *error)
{
    struct gavel_store *gavel = dead->store;
    enum gavel_status status;

    TAILQ_INSERT_TAIL(&gavel->dead, dead, next);
    gavel_thread_wake(gavel);
    while (!dead->is_done && push_sleep(&gavel->push, dead->give_up_at))
        continue;
    status = dead->status;
    if (status != GAVEL_OK && error)
        *error = dead->error;
    dead->is_abandoned = true;
    gavel_thread_wake(gavel);
    return status;
}

enum gavel_status gavel_close_dead(struct store *store, const struct store_session_key *key,
                                   gavel_ns give_up_at, struct gavel_error *error)
{
    struct gavel_store *gavel = (struct gavel_store *)store;
    bool is_known = atomic_load_explicit(&key->is_known, memory_order_acquire) != 0;
    uint64_t session = is_known ? atomic_load(&key->session) : 0;
    struct gavel_dead *dead;
    enum gavel_status status;

    if (push_is_forked(&gavel->push))
        return error_set(error, GAVEL_ERR_STATE,
                         "%s was opened before this process was forked; open it again in the child",
                         gavel->where);
    if (session == 0)
        return GAVEL_OK; /* none was ever asked for */
    if (clock_now() >= give_up_at)
        return error_set(error, GAVEL_ERR_TIMEOUT,
                         "the call came too late and was not begun; it may be tried again");
    dead = calloc(1, sizeof *dead);
    if (!dead)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while asking %s", gavel->where);
    dead->store = gavel;
    dead->session = session;
    dead->give_up_at = give_up_at;
    memcpy(dead->secret, key->secret, sizeof dead->secret);
    dead->status = error_set(&dead->error, GAVEL_ERR_TIMEOUT, "%s has not answered in time", gavel->where);
    pthread_mutex_lock(&gavel->push.lock);
    status = await(dead, error);
    pthread_mutex_unlock(&gavel->push.lock);
    return status;
}
