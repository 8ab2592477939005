/* SPDX-License-Identifier: Apache-2.0 */

/* Opening and closing a handle, and driving it from a program's own loop. */

#include "base/error.h"
#include "lib/candidate.h"
#include "lib/handle.h"
#include "lib/join.h"
#include "lib/loop/loop.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/thread.h"
#include "store/plain.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A store that is none, for a handle whose candidates are all in single-instance mode. */
#define NO_STORE "none:"
#define STORE_VARIABLE "GAVEL_STORE"

const char *gavel_version(void) { return GAVEL_VERSION; }

int64_t gavel_now_ns(void) { return clock_now(); }

/*
 * The same order as in the commands, or a program and `gavel leader` beside it would look at two stores. A
 * program that runs with other rights than those of its user does not let that user choose.
 */
static const char *store_of_environment(void)
{
    const char *url = secure_getenv(STORE_VARIABLE);

    return url && *url ? url : NULL;
}

static enum gavel_status open_store(struct gavel *gavel, const char *url, struct gavel_error *error)
{
    char buffer[PATH_MAX + 16];
    enum gavel_status status;

    if (!url)
        url = store_of_environment();
    if (url && strcmp(url, NO_STORE) == 0)
        return GAVEL_OK;
    if (!url && gavel_default_store(buffer, sizeof buffer) != GAVEL_OK)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "there is no place for the default store: neither XDG_STATE_HOME nor HOME is an absolute path that fits, and the password database has no home of user %u; name a store in options.store or GAVEL_STORE",
            (unsigned)geteuid());
    if (!url)
        url = buffer;
    if (gavel->on_death && on_death_set_store(gavel->on_death, url) != GAVEL_OK)
        return error_set(error, GAVEL_ERR_INVALID,
                         "the name of the store is too long for a guard to keep; use at most %d bytes",
                         ON_DEATH_STORE_MAX - 1);
    (void)snprintf(gavel->store_url, sizeof gavel->store_url, "%.*s", (int)strcspn(url, "?"), url);
    text_make_plain(gavel->store_url);
    status = store_open(url, &gavel->store, error);
    if (status == GAVEL_OK)
        status = store_probe(gavel->store, error);
    if (status != GAVEL_OK)
        return status;
    gavel->capabilities = *store_capabilities(gavel->store);
    status = lib_session_open(gavel, url);
    if (status != GAVEL_OK)
        return error_set(error, status, "cannot keep the session of %s: %s", gavel->store_url,
                         gavel_status_text(status));
    return GAVEL_OK;
}

/*
 * Unless told otherwise the doorbell is where the server of the store sees us: there the candidates of other
 * hosts can ring. A store on this host is loopback, and so is the doorbell.
 */
static enum gavel_status open_bell(struct gavel *gavel, const char *where, struct gavel_error *error)
{
    char own[STORE_ADDRESS_SIZE];
    char bracketed[STORE_ADDRESS_SIZE + 2];

    if (where || !gavel->store || !store_own_address(gavel->store, own))
        return bell_open(&gavel->bell, where, error);
    (void)snprintf(bracketed, sizeof bracketed, strchr(own, ':') ? "[%s]" : "%s", own);
    if (bell_open(&gavel->bell, bracketed, NULL) == GAVEL_OK)
        return GAVEL_OK;
    return bell_open(&gavel->bell, NULL, error); /* no address to bind to, such as one behind a translator */
}

/* Safe on a half-built handle. What the worker may still use goes last. Nobody is in any group any more. */
static void destroy(struct gavel *gavel)
{
    loop_stop_thread(gavel);
    worker_stop(gavel);
    watchdog_stop(&gavel->watchdog);
    loop_close(gavel);
    lib_session_close(gavel);
    bell_close(&gavel->bell);
    own_guard_close(gavel);
    publish_done(&gavel->publish);
    worker_free_handle(gavel);
}

/* The threads, each of which is of use only if the others run. */
static enum gavel_status start(struct gavel *gavel)
{
    enum gavel_status status = loop_open(gavel);

    if (status == GAVEL_OK)
        status = watchdog_start(&gavel->watchdog);
    if (status == GAVEL_OK && gavel->store)
        status = worker_start(gavel);
    if (status == GAVEL_OK && gavel->is_threaded)
        status = loop_start_thread(gavel);
    return status;
}

static enum gavel_status open_parts(struct gavel *gavel, const struct gavel_options *options,
                                    struct gavel_error *error)
{
    enum gavel_status status = GAVEL_OK;

    if (options->guard && !gavel->is_guarded)
        status = own_guard_prepare(gavel, options->guard_program, error);
    if (status == GAVEL_OK)
        status = open_store(gavel, options->store, error);
    if (status == GAVEL_OK)
        status = open_bell(gavel, options->doorbell, error);
    if (status == GAVEL_OK)
        status = own_guard_start(gavel, error);
    if (status != GAVEL_OK)
        return status;
    status = start(gavel);
    if (status != GAVEL_OK)
        return error_set(error, status, "cannot start: %s; check the limits on threads and descriptors",
                         gavel_status_text(status));
    return GAVEL_OK;
}

/* on_death: of a guard whose processes do the work, or NULL. */
static enum gavel_status open_handle(const struct gavel_options *options, struct on_death *on_death,
                                     struct gavel **ret_gavel, struct gavel_error *error)
{
    static const struct gavel_options defaults = GAVEL_OPTIONS_INIT;
    struct gavel *gavel = calloc(1, sizeof *gavel);
    enum gavel_status status;

    if (!options)
        options = &defaults;
    if (!gavel)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    gavel->epoll_fd = gavel->timer.fd = gavel->wakeup.fd = gavel->bell.source.fd = -1;
    gavel->own_guard.line.fd = gavel->push.fd = -1;
    gavel->is_threaded = options->threaded;
    gavel->on_death = on_death;
    gavel->is_guarded = on_death != NULL;
    pthread_mutex_init(&gavel->mutex, NULL);
    pthread_mutex_init(&gavel->session.begin_lock, NULL);
    condition_init(&gavel->changed);
    if (process_self(&gavel->self) != GAVEL_OK)
        gavel->self = (struct process_id){0}; /* not told: others then wait for the lease */
    status = open_parts(gavel, options, error);
    if (status != GAVEL_OK) {
        destroy(gavel);
        return status;
    }
    *ret_gavel = gavel;
    return GAVEL_OK;
}

enum gavel_status gavel_open(const struct gavel_options *options, struct gavel **ret_gavel,
                             struct gavel_error *error)
{
    return open_handle(options, NULL, ret_gavel, error);
}

enum gavel_status gavel_open_guarded(const struct gavel_options *options, struct on_death *on_death,
                                     struct gavel **ret_gavel, struct gavel_error *error)
{
    return open_handle(options, on_death, ret_gavel, error);
}

void gavel_note_loss(struct gavel *gavel, enum gavel_loss loss) { atomic_store(&gavel->loss, loss); }

enum gavel_status gavel_close(struct gavel *gavel)
{
    if (!gavel)
        return GAVEL_OK;
    if (handle_is_callback(gavel))
        return GAVEL_ERR_STATE;
    join_leave_all(gavel);
    destroy(gavel);
    return GAVEL_OK;
}

int gavel_fd(const struct gavel *gavel) { return gavel->is_threaded ? -1 : gavel->epoll_fd; }

enum gavel_status gavel_dispatch(struct gavel *gavel)
{
    bool is_ours;

    if (gavel->is_threaded || handle_is_callback(gavel))
        return GAVEL_ERR_STATE;
    pthread_mutex_lock(&gavel->mutex);
    is_ours = loop_take_over(gavel);
    pthread_mutex_unlock(&gavel->mutex);
    if (!is_ours)
        return GAVEL_OK; /* another thread does what is due */
    loop_pass(gavel, 0);
    pthread_mutex_lock(&gavel->mutex);
    loop_hand_back(gavel);
    pthread_mutex_unlock(&gavel->mutex);
    return GAVEL_OK;
}
