/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The guard process: what is started as `gaveld`. It runs the node as a child
 * and does nothing else until it has died. Then it
 *
 *   waits until nothing is left below it   wait(2) says that there is no child, and it is a child subreaper
 *   signs and sends the obituary           now, and a few times more: one datagram to each peer
 *   starts the node again                  a new process, and so a new incarnation
 *
 *      [RUNNING] ── dies ──► [CLEARING] ── nothing is left ──► [WAITING] ── back-off ──► [RUNNING]
 *                                              │
 *                                              └── told to end, or a restart would not help ──► the end
 *
 * A node that hangs is killed and then treated like one that died. If the guard
 * dies, the kernel kills the node. Everything is opened and allocated in advance,
 * so that the obituary leaves within a millisecond.
 */
#ifndef DAEMON_GUARD_GUARD_H
#define DAEMON_GUARD_GUARD_H

#include "base/log.h"
#include "base/time.h"
#include "daemon/shared/shared_memory.h"
#include "net/seal.h"

#include <stdbool.h>

struct guard_process {
    struct shared_memory *memory; /* of the node, which writes to it */
    struct log log;
    uint8_t key[SEAL_KEY_BYTES]; /* of the seal of obituaries */
    int (*run)(void *user);      /* runs the node process; returns its exit code (enum node_exit) */
    void *user;
    bool realtime;
    bool is_childless;   /* the node starts no process: its own death is all there is to prove */
    gavel_ns stop_limit; /* a node is killed this long after it was told to end … */
    gavel_ns hung;       /* … or if its consensus thread has not moved for this long (pulse.h); 0: 10 s */
    gavel_ns quick;      /* a node that lived for less than this died quickly; 0: 1 s */
    gavel_ns pause_min;  /* … and is restarted after this long; 0: 100 ms */
    gavel_ns pause_max;  /* … doubled each time, up to this; 0: 2 s */
    gavel_ns orphans;    /* time for what a node leaves behind to end by itself; 0: 100 ms */
    int failures_max;    /* the guard ends after this many failed starts in a row; 0: 10 */
};

/* The exit code when an essential system call fails: EX_OSERR. */
#define GUARD_PROCESS_EXIT_SYSTEM 71

/*
 * Runs the guard. Returns its exit code: that of the node that ended for good, or 128 + n if signal n killed
 * it. There must be no other thread yet.
 */
int guard_process_run(const struct guard_process *settings);

#endif
