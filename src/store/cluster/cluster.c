/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The store `gavel://h1:7600,h2:7600,h3:7600`: opening and closing it; cluster.h
 * has the picture.
 *
 * Opening waits until one node has answered, for a short while. Whether the
 * cluster has a leader shows only when it is asked: candidates cope with that.
 */
#include "store/cluster/cluster.h"

#include "base/error.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/wakeup.h"
#include "store/secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For one node to answer. A second try of each of three addresses is within it. */
#define OPEN_PATIENCE (2 * NS_PER_S)

static void free_store(struct gavel_store *gavel)
{
    wakeup_close(&gavel->wake_fd);
    gavel_news_done(&gavel->news);
    push_done(&gavel->push);
    free(gavel);
}

static struct gavel_store *new_store(void)
{
    struct gavel_store *gavel = calloc(1, sizeof *gavel);

    if (!gavel)
        return NULL;
    push_init(&gavel->push, &gavel_push_hooks);
    TAILQ_INIT(&gavel->queue);
    TAILQ_INIT(&gavel->sent);
    TAILQ_INIT(&gavel->dirty);
    RB_INIT(&gavel->members);
    TAILQ_INIT(&gavel->dead);
    gavel_news_init(&gavel->news, gavel->push.fd);
    gavel->wake_fd = wakeup_open();
    return gavel;
}

/* What stands between "gavel:" and the nodes, and then they. */
static enum gavel_status parse(const char *rest, struct cluster_link_target *ret_target,
                               struct gavel_error *error)
{
    if (strncmp(rest, "//", 2) != 0)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "after \"gavel:\" come two slashes and the nodes of a cluster, such as gavel://h1:7600,h2:7600,h3:7600 or gavel:///run/gavel/n1.sock");
    return cluster_link_target_parse(rest + 2, ret_target, error);
}

static gavel_ms session_ttl(const char *rest)
{
    struct cluster_link_target target = {0};

    return parse(rest, &target, NULL) == GAVEL_OK ? target.ttl_ms : 0;
}

static enum gavel_status check_url(const char *rest, struct gavel_error *error)
{
    struct cluster_link_target target;

    return parse(rest, &target, error);
}

static void caution(const char *rest, char *ret_text, size_t size)
{
    struct cluster_link_target target;

    if (parse(rest, &target, NULL) == GAVEL_OK)
        secret_caution(target.key, ret_text, size);
}

/* Most likely they do not run; only then is it their configuration. */
static enum gavel_status no_node(const struct gavel_store *gavel, struct gavel_error *error)
{
    const char *trouble = gavel->trouble[0] ? gavel->trouble : "no connection yet";

    if (gavel->target.count == 1)
        return error_set(
            error, GAVEL_ERR_STORE_UNAVAILABLE,
            "no node of %s answers: %s; if it is not running, start gaveld there; if it is, it needs `clients:` or `socket:` in its file; or name another node",
            gavel->where, trouble);
    return error_set(
        error, GAVEL_ERR_STORE_UNAVAILABLE,
        "none of the %zu nodes of %s answers (the last tried: %s); if they are not running, start gaveld there; if they are, they need `clients:` or `socket:` in their files; or name other nodes",
        gavel->target.count, gavel->where, trouble);
}

static enum gavel_status await_node(struct gavel_store *gavel, struct gavel_error *error)
{
    enum gavel_status status = GAVEL_OK;
    gavel_ns until = clock_now() + OPEN_PATIENCE;

    pthread_mutex_lock(&gavel->push.lock);
    while (!gavel->is_up && !gavel->is_refused && push_sleep(&gavel->push, until))
        continue;
    if (!gavel->is_up && gavel->is_refused)
        status = error_set(error, GAVEL_ERR_STORE_DENIED, "%s: %s", gavel->where, gavel->trouble);
    else if (!gavel->is_up)
        status = no_node(gavel, error);
    pthread_mutex_unlock(&gavel->push.lock);
    return status;
}

/* Who we are; if that cannot be found out nobody is told, and the time to live decides. */
static void see_self(struct gavel_store *gavel)
{
    const struct process_id *self = &gavel->self;

    if (process_self(&gavel->self) != GAVEL_OK)
        gavel->self = (struct process_id){0};
    gavel->process.pid = self->pid;
    gavel->process.pid_ns = self->pid_ns;
    gavel->process.start_ticks = self->start_ticks;
    memcpy(gavel->process.boot_id, self->boot_id, sizeof gavel->process.boot_id);
}

static enum gavel_status open_store(const char *rest, struct store **ret_store, struct gavel_error *error)
{
    struct gavel_store *gavel = new_store();
    size_t length = strcspn(rest, "?");
    enum gavel_status status;

    if (!gavel)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening gavel:%.100s", rest);
    (void)snprintf(gavel->where, sizeof gavel->where, "gavel:%.*s", (int)(length < 112 ? length : 112), rest);
    status = parse(rest, &gavel->target, error);
    if (status == GAVEL_OK && (gavel->wake_fd < 0 || gavel->push.fd < 0))
        status = error_set(error, GAVEL_ERR_STORE_UNAVAILABLE,
                           "no descriptors are left for %s; check the limit on open files", gavel->where);
    see_self(gavel);
    if (status == GAVEL_OK)
        status = gavel_thread_start(gavel, error);
    if (status != GAVEL_OK) {
        free_store(gavel);
        return status;
    }
    status = await_node(gavel, error);
    if (status != GAVEL_OK) {
        gavel_thread_stop(gavel);
        free_store(gavel);
        return status;
    }
    *ret_store = &gavel->push.store;
    return GAVEL_OK;
}

static void close_store(struct store *store)
{
    struct gavel_store *gavel = (struct gavel_store *)store;

    if (push_is_forked(&gavel->push))
        return; /* in a forked child: the thread is not here, and what it holds is the parent's */
    gavel_thread_stop(gavel);
    free_store(gavel);
}

const struct store_driver store_gavel = {
    .scheme = "gavel",
    .summary = "gavel://HOST:PORT,…  a gaveld cluster; gavel:///PATH for a socket of this host",
    .capabilities =
        {
            .name = "gavel",
            .preset = "cluster",
            .clock = STORE_CLOCK_STEADY,
            .is_shared = true,
            .sees_processes = true,
            .has_push = true,
            .has_sessions = true,
            .renews_silently = true,
        },
    .check_url = check_url,
    .session_ttl = session_ttl,
    .caution = caution,
    .open = open_store,
    .run = gavel_run,
    .wait = push_wait,
    .open_session = gavel_open_session,
    .news = gavel_news,
    .close_dead = gavel_close_dead,
    .close = close_store,
    .push_fd = push_fd,
    .watch = push_watch,
    .changed = gavel_changed,
};
