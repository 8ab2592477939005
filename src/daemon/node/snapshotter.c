/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/node/snapshotter.h"

#include "base/assert.h"
#include "daemon/realtime.h"
#include "daemon/shared/lock.h"
#include "os/wakeup.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* The nice value: a snapshot of many groups takes a second of a processor, and is not urgent. */
#define LATER 15
#define ORDINARY 0
/* How long the end of the node waits for one: as for the disk. */
#define END_LIMIT_S 3

void snapshotter_job_free(struct snapshotter_job *job)
{
    if (!job)
        return;
    node_build_free(job->build);
    blob_drop(job->blob);
    free(job);
}

static void work(struct snapshotter_job *job)
{
    if (job->build) {
        job->status = node_build_run(job->build);
        return;
    }
    job->status = table_snapshot_decode(&job->table, job->blob->bytes, job->blob->size);
    if (job->status == GAVEL_OK)
        job->status = table_keep_history(&job->table);
}

/* A job that is put from now on is for the next thread. */
static bool may_end(struct snapshotter *snapshotter)
{
    bool is_over;

    (void)pthread_mutex_lock(&snapshotter->mutex);
    is_over = snapshotter->is_over = mailbox_is_empty(&snapshotter->jobs);
    (void)pthread_mutex_unlock(&snapshotter->mutex);
    return is_over;
}

/* Priorities are those of this thread, on Linux; to lower it is always permitted. */
static void wait_for_job(struct snapshotter *snapshotter)
{
    struct pollfd poll_of = {.fd = snapshotter->jobs.fd, .events = POLLIN};

    if (!snapshotter->is_eager) {
        (void)poll(&poll_of, 1, -1); /* a failure only makes it look sooner */
        return;
    }
    (void)realtime_take(REALTIME_EAGER); /* where it is not permitted, all are equal */
    (void)poll(&poll_of, 1, -1);
    (void)setpriority(PRIO_PROCESS, 0, ORDINARY);
}

static void *run(void *user)
{
    struct snapshotter *snapshotter = user;

    if (snapshotter->is_later)
        (void)setpriority(PRIO_PROCESS, 0, LATER);
    while (!atomic_load(&snapshotter->is_ending)) {
        struct snapshotter_job *job = (struct snapshotter_job *)mailbox_take(&snapshotter->jobs);

        if (job) {
            work(job);
            mailbox_put(&snapshotter->done, &job->link);
        } else if (!snapshotter->is_later) {
            wait_for_job(snapshotter);
        } else if (may_end(snapshotter)) {
            return NULL;
        }
    }
    return NULL;
}

static enum gavel_status start_thread(struct snapshotter *snapshotter)
{
    const char *name = snapshotter->is_later ? "gaveld-build" : "gaveld-decode";

    ASSERT(!snapshotter->has_thread);
    snapshotter->is_over = false;
    if (realtime_thread(&snapshotter->thread, name, run, snapshotter, REALTIME_NO))
        return GAVEL_ERR_NO_MEMORY;
    snapshotter->has_thread = true;
    return GAVEL_OK;
}

enum gavel_status snapshotter_start(struct snapshotter *snapshotter, enum snapshotter_kind kind,
                                    bool is_eager)
{
    enum gavel_status status;

    memset(snapshotter, 0, sizeof *snapshotter);
    snapshotter->is_later = kind == SNAPSHOTTER_BUILDS;
    snapshotter->is_eager = is_eager;
    status = lock_init(&snapshotter->mutex);
    if (status != GAVEL_OK)
        return status;
    status = mailbox_init(&snapshotter->jobs);
    if (status == GAVEL_OK)
        status = mailbox_init(&snapshotter->done);
    if (status == GAVEL_OK && !snapshotter->is_later)
        status = start_thread(snapshotter);
    if (status != GAVEL_OK) {
        mailbox_done(&snapshotter->done); /* safe on those that were not made */
        mailbox_done(&snapshotter->jobs);
        (void)pthread_mutex_destroy(&snapshotter->mutex);
    }
    snapshotter->is_running = status == GAVEL_OK;
    return status;
}

/* Nobody waits for the end of a thread of low priority. */
static void let_go(struct snapshotter *snapshotter)
{
    if (pthread_tryjoin_np(snapshotter->thread, NULL))
        (void)pthread_detach(snapshotter->thread); /* ours, and not joined */
    snapshotter->has_thread = false;
}

void snapshotter_put(struct snapshotter *snapshotter, struct snapshotter_job *job)
{
    bool is_over;

    mailbox_put(&snapshotter->jobs, &job->link);
    (void)pthread_mutex_lock(&snapshotter->mutex);
    is_over = snapshotter->is_over;
    (void)pthread_mutex_unlock(&snapshotter->mutex);
    if (snapshotter->has_thread && is_over)
        let_go(snapshotter);
    if (snapshotter->has_thread || start_thread(snapshotter) == GAVEL_OK)
        return;
    job = (struct snapshotter_job *)mailbox_take(&snapshotter->jobs); /* there is no other */
    job->status = GAVEL_ERR_NO_MEMORY;
    mailbox_put(&snapshotter->done, &job->link);
}

struct snapshotter_job *snapshotter_take(struct snapshotter *snapshotter)
{
    return (struct snapshotter_job *)mailbox_take(&snapshotter->done);
}

static void free_all(struct mailbox *box)
{
    struct snapshotter_job *job;

    while ((job = (struct snapshotter_job *)mailbox_take(box))) {
        table_done(&job->table);
        snapshotter_job_free(job);
    }
    mailbox_done(box);
}

bool snapshotter_stop(struct snapshotter *snapshotter)
{
    struct timespec limit;

    if (!snapshotter->is_running)
        return true;
    atomic_store(&snapshotter->is_ending, true);
    wakeup_ring(snapshotter->jobs.fd);
    (void)clock_gettime(CLOCK_MONOTONIC, &limit); /* fails only for bad arguments */
    limit.tv_sec += END_LIMIT_S;
    if (snapshotter->has_thread && pthread_clockjoin_np(snapshotter->thread, NULL, CLOCK_MONOTONIC, &limit))
        return false;
    snapshotter->has_thread = false;
    free_all(&snapshotter->jobs);
    free_all(&snapshotter->done);
    (void)pthread_mutex_destroy(&snapshotter->mutex);
    snapshotter->is_running = false;
    return true;
}
