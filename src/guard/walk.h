/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One walk over all descendants of the calling process: what it sends to which,
 * and what it has seen.
 *
 * A number is not a process. A walk reads numbers, and by the time it gets to
 * one, the process may have died and the number may be another's. So each
 * process is first held by a pidfd, then examined, then signalled through the
 * pidfd. It is left alone if it was born after its number was read.
 */
#ifndef GUARD_WALK_H
#define GUARD_WALK_H

#include "guard/proc.h"

/* Numbers read whose process was not met yet; those that do not fit are left to a later walk. */
#define WALK_PENDING_MAX 16384

struct walk {
    struct tree *tree;
    int signal_number; /* 0: only look */
    pid_t session;     /* send to this one only; 0: to all */
    size_t most;       /* end the walk when this many were met */

    pid_t self;
    pid_t own_session;
    pid_t last_group; /* killed as a whole by now */
    uint64_t began_ticks;
    size_t count;    /* alive and wanted */
    uint64_t pages;  /* their resident pages; shared ones count more than once */
    uint64_t seen;   /* a fingerprint of all that was met, alive or dead */
    bool has_missed; /* something could not be examined */

    size_t pending_count;
    struct {
        pid_t pid;
        bool is_child;  /* of ours: nobody else can reap it, so its number is its own */
        uint32_t ticks; /* since the walk began, before the number was read */
    } pending[WALK_PENDING_MAX];
};

/* The pending numbers need no initial value, so they are not cleared. */
void walk_init(struct walk *walk, struct tree *tree, int signal_number, pid_t session);

/* Walks by the kernel's lists of children. False if this kernel does not show them; then nothing was done. */
bool walk_children(struct walk *walk);

/* Walks by all processes of the system and their parents. */
void walk_all(struct walk *walk);

/*
 * Part of a walk: a process was met through a pidfd, and `stat` describes it.
 * Sends the signal, if any. False if the process was gone before that: then
 * `stat`, and whatever else was read under its number, may be another's.
 */
bool walk_meet(struct walk *walk, int pidfd, pid_t pid, const struct proc_stat *stat);

/* Before walk_meet(), and only for a child of ours: kills its process group in one go, if that is wanted. */
void walk_kill_group(struct walk *walk, const struct proc_stat *stat);

#endif
