/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The thread that has the connection. It sleeps in the event loop; callers
 * put parcels in the queue and wake it. No signal is delivered to it, and a
 * connection that breaks does not raise SIGPIPE in the program.
 */
#include "store/cluster/cluster.h"

#include "base/error.h"
#include "os/clock.h"
#include "os/thread.h"
#include "os/wakeup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Deep enough for a TLS handshake, and little enough for a guard that locks its memory. */
#define STACK_BYTES (512u * 1024)

/* For the end of the session; after that it expires by itself. */
#define CLOSE_PATIENCE_MS 500

void gavel_thread_wake(struct gavel_store *gavel) { wakeup_ring(gavel->wake_fd); }

static void link_state(void *user, enum client_state state, const char *trouble)
{
    struct gavel_store *gavel = user;

    pthread_mutex_lock(&gavel->push.lock);
    gavel->is_up = state == CLIENT_UP || state == CLIENT_OPENING; /* asks are answered in both */
    gavel->is_refused = cluster_link_is_refused(gavel->link);
    name_copy(gavel->trouble, sizeof gavel->trouble, trouble);
    if (gavel->is_refused)
        gavel_refuse_waiting(gavel);
    pthread_cond_broadcast(&gavel->push.changed);
    pthread_mutex_unlock(&gavel->push.lock);
}

static void link_closed(void *user)
{
    struct gavel_store *gavel = user;

    (void)event_base_loopbreak(gavel->base); /* it runs, so it cannot fail */
}

static void begin_to_close(struct gavel_store *gavel)
{
    const struct timeval limit = {.tv_usec = CLOSE_PATIENCE_MS * 1000};

    cluster_link_close(gavel->link);
    if (event_base_loopexit(gavel->base, &limit) < 0)
        (void)event_base_loopbreak(gavel->base); /* no memory for a limit: no waiting */
}

static void woken(evutil_socket_t fd, short events, void *user)
{
    struct gavel_store *gavel = user;
    struct gavel_parcel *parcel;

    (void)events;
    wakeup_clear(fd);
    pthread_mutex_lock(&gavel->push.lock);
    gavel_session_tend(gavel);
    gavel_dead_tend(gavel);
    gavel_watch_tend(gavel);
    while ((parcel = TAILQ_FIRST(&gavel->queue))) {
        TAILQ_REMOVE(&gavel->queue, parcel, in_store);
        parcel->is_queued = false;
        TAILQ_INSERT_TAIL(&gavel->sent, parcel, in_store);
        gavel_parcel_send(parcel);
    }
    if (gavel->is_closing)
        begin_to_close(gavel);
    pthread_cond_broadcast(&gavel->push.changed); /* it is said */
    pthread_mutex_unlock(&gavel->push.lock);
}

static void *run(void *argument)
{
    struct gavel_store *gavel = argument;

    (void)event_base_dispatch(gavel->base); /* until it is told to end; should it fail, calls time out */
    return NULL;
}

static void free_loop(struct gavel_store *gavel)
{
    struct gavel_parcel *parcel;

    cluster_link_free(gavel->link);
    gavel->link = NULL;
    gavel_dead_free_all(gavel);
    gavel_members_free(gavel);
    while ((parcel = TAILQ_FIRST(&gavel->sent)) || (parcel = TAILQ_FIRST(&gavel->queue)))
        gavel_parcel_done(parcel);
    if (gavel->wake)
        event_free(gavel->wake);
    if (gavel->base)
        event_base_free(gavel->base);
}

static enum gavel_status make_loop(struct gavel_store *gavel, struct gavel_error *error)
{
    const struct cluster_link_events events = {.deadline = gavel_session_deadline,
                                               .session_lost = gavel_session_lost,
                                               .state = link_state,
                                               .closed = link_closed,
                                               .welcomed = gavel_session_welcomed,
                                               .user = gavel};
    struct cluster_link_target target = gavel->target;
    enum gavel_status status;

    target.ttl_ms = 0; /* no session yet */
    gavel->base = event_base_new();
    if (gavel->base)
        gavel->wake = event_new(gavel->base, gavel->wake_fd, EV_READ | EV_PERSIST, woken, gavel);
    if (!gavel->wake || event_add(gavel->wake, NULL) < 0)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening %s", gavel->where);
    status = cluster_link_new(gavel->base, &target, 0, program_invocation_short_name, NULL, &events,
                              &gavel->link, error);
    /* The only files are the certificates: without them the store cannot be used. */
    if (status == GAVEL_ERR_IO)
        error->status = status = GAVEL_ERR_STORE_DENIED;
    return status;
}

static int start(struct gavel_store *gavel)
{
    pthread_attr_t attributes;
    int problem;

    (void)pthread_attr_init(&attributes); /* these cannot fail on Linux with these arguments */
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    problem = thread_start(&gavel->thread, &attributes, "gavel-cluster", run, gavel);
    (void)pthread_attr_destroy(&attributes);
    return problem;
}

enum gavel_status gavel_thread_start(struct gavel_store *gavel, struct gavel_error *error)
{
    enum gavel_status status = make_loop(gavel, error);
    int problem = status == GAVEL_OK ? start(gavel) : 0;

    if (problem != 0)
        status = error_set(error, GAVEL_ERR_NO_MEMORY, "cannot start a thread for %s: %s", gavel->where,
                           strerror(problem));
    if (status != GAVEL_OK)
        free_loop(gavel);
    return status;
}

void gavel_thread_stop(struct gavel_store *gavel)
{
    pthread_mutex_lock(&gavel->push.lock);
    gavel->is_closing = true;
    pthread_mutex_unlock(&gavel->push.lock);
    gavel_thread_wake(gavel);
    (void)pthread_join(gavel->thread, NULL); /* ours, and not joined before */
    free_loop(gavel);
}
