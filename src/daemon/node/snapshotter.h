/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A thread for what takes long about snapshots, and needs nothing that changes.
 * The consensus thread gives it jobs and gets them back; `done.fd` becomes
 * readable then. A node has two of them:
 *
 *   - one builds snapshots from the one before and entries (core/node/build.h). It
 *     has a low priority: on a machine with few processors the threads that serve
 *     clients would wait for it otherwise. It exists only while there is something to
 *     build: a killed process is dead when the last of its threads is, and on a busy
 *     machine one of low priority does not get to die for long;
 *   - one decodes those of the leader into a table. A node that needs one is of no
 *     use before it has it, so it has an ordinary priority, and waits for no build.
 *     While it waits it has a high one, where that is permitted, since the death of the
 *     process waits for it, too.
 *
 * Memory. The table that is decoded becomes the node's, so the consensus thread
 * changes and frees what was allocated here, and waits then for whoever is in the
 * allocator at the same place (malloc() has one for each thread). That must be nobody
 * of low priority, who may be kept from running: what the builder allocates stays
 * with it but for the finished bytes, and it frees nothing of others.
 */
#ifndef DAEMON_NODE_SNAPSHOTTER_H
#define DAEMON_NODE_SNAPSHOTTER_H

#include "core/node/build.h"
#include "daemon/shared/mailbox.h"

#include <stdatomic.h>

struct snapshotter_job {
    struct mail_link link;    /* first */
    struct node_build *build; /* to be built; NULL: … */
    struct blob *blob;        /* … to be decoded */
    struct table table;       /* which gives this, with a history */
    enum gavel_status status; /* of node_build_run(), or table_snapshot_decode() */
};

/* Safe on NULL. Leaves the table, which may take long, to the caller. */
void snapshotter_job_free(struct snapshotter_job *job);

struct snapshotter {
    struct mailbox jobs;
    struct mailbox done;
    pthread_t thread;
    bool is_later;   /* than all others: it builds */
    bool is_eager;   /* while it waits */
    bool is_running; /* between start and stop */
    bool has_thread; /* to be joined */
    _Atomic bool is_ending;
    pthread_mutex_t mutex;
    bool is_over; /* under the mutex: the thread has found no more jobs, and ends */
};

enum snapshotter_kind { SNAPSHOTTER_BUILDS, SNAPSHOTTER_DECODES };

/* is_eager: while a decoder waits. ERR_IO, ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status snapshotter_start(struct snapshotter *snapshotter, enum snapshotter_kind kind,
                                                  bool is_eager);

/* Hands the job over; it comes back in `done`. One thread only. */
void snapshotter_put(struct snapshotter *snapshotter, struct snapshotter_job *job);
struct snapshotter_job *snapshotter_take(struct snapshotter *snapshotter); /* NULL: none is done */

/* Waits for the job that runs, and frees all of them. False: it takes too long; the thread goes on, and
 * nothing of it may be freed. Safe on a zeroed struct. */
GAVEL_CHECKED bool snapshotter_stop(struct snapshotter *snapshotter);

#endif
