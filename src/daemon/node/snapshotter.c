/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/node/snapshotter.h"

#include "daemon/realtime.h"
#include "os/wakeup.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* The nice value: a snapshot of many groups takes a second of a processor, and is not urgent. */
#define LATER 15
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

static void *run(void *user)
{
    struct snapshotter *snapshotter = user;
    struct pollfd poll_of = {.fd = snapshotter->jobs.fd, .events = POLLIN};

    if (snapshotter->is_later)
        (void)setpriority(PRIO_PROCESS, 0, LATER); /* of this thread, on Linux; it is always permitted */
    while (!atomic_load(&snapshotter->is_ending)) {
        struct snapshotter_job *job = (struct snapshotter_job *)mailbox_take(&snapshotter->jobs);

        if (!job) {
            (void)poll(&poll_of, 1, -1); /* a failure only makes it look sooner */
            continue;
        }
        work(job);
        mailbox_put(&snapshotter->done, &job->link);
    }
    return NULL;
}

enum gavel_status snapshotter_start(struct snapshotter *snapshotter, enum snapshotter_kind kind)
{
    static const char *const names[] = {
        [SNAPSHOTTER_BUILDS] = "gaveld-build", [SNAPSHOTTER_DECODES] = "gaveld-decode"};
    enum gavel_status status;

    memset(snapshotter, 0, sizeof *snapshotter);
    snapshotter->is_later = kind == SNAPSHOTTER_BUILDS;
    status = mailbox_init(&snapshotter->jobs);
    if (status != GAVEL_OK)
        return status;
    status = mailbox_init(&snapshotter->done);
    if (status == GAVEL_OK &&
        realtime_thread(&snapshotter->thread, names[kind], run, snapshotter, REALTIME_NO)) {
        mailbox_done(&snapshotter->done);
        status = GAVEL_ERR_NO_MEMORY;
    }
    if (status != GAVEL_OK)
        mailbox_done(&snapshotter->jobs);
    snapshotter->is_running = status == GAVEL_OK;
    return status;
}

void snapshotter_put(struct snapshotter *snapshotter, struct snapshotter_job *job)
{
    mailbox_put(&snapshotter->jobs, &job->link);
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
    if (pthread_clockjoin_np(snapshotter->thread, NULL, CLOCK_MONOTONIC, &limit))
        return false;
    free_all(&snapshotter->jobs);
    free_all(&snapshotter->done);
    snapshotter->is_running = false;
    return true;
}
