/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What /proc says about processes, read without stdio or heap memory: a walk
 * reads thousands of these files while the clock is running.
 */
#ifndef GUARD_PROC_H
#define GUARD_PROC_H

#include "guard/tree.h"

#include <stdint.h>

/* What we read from a stat file. */
struct proc_stat {
    char state;
    pid_t parent;
    pid_t group;
    pid_t session;
    long threads; /* the first one counts even if it has ended before the others */
    uint64_t start_ticks;
    uint64_t pages; /* resident */
};

/*
 * Dead, and only waiting to be reaped. If only the first of several threads has
 * ended, the process still lives.
 */
static inline bool proc_is_dead(const struct proc_stat *stat)
{
    return (stat->state == 'Z' || stat->state == 'X') && stat->threads <= 1;
}

/* Now, in the unit of start_ticks and likewise rounded down. */
uint64_t proc_now_ticks(void);

/* Room for "PID/task/TID/children". */
#define PROC_PATH_MAX 48

/* Writes a name below /proc: "PID" and the parts that follow; `thread` 0 ends it before the thread. */
void proc_path(char path[PROC_PATH_MAX], pid_t pid, const char *middle, pid_t thread, const char *last);

/* Opens a name below /proc. -1 with errno; without descriptors, only after the spare ones are used up. */
int proc_open(struct tree *tree, const char *path, int flags);

/* False with errno if it cannot be read: ENOENT or ESRCH if there is no such process that we may see. */
bool proc_read_stat(struct tree *tree, pid_t pid, struct proc_stat *ret_stat);

/* Likewise a pidfd; -1 with errno. */
int proc_open_pidfd(struct tree *tree, pid_t pid);

/* Whether the process of a pidfd existed (alive, or dead and not reaped) when the signal was sent. */
bool proc_signal(int pidfd, int signal_number);

/* Calls back with every number that is the name of an entry. False if the directory could not be read to its
 * end. */
typedef void proc_entry_cb(void *user, pid_t number);
bool proc_list(struct tree *tree, const char *path, proc_entry_cb *cb, void *user);

/*
 * Our limit of descriptors may have been lowered below the number in use;
 * raises it as far as allowed. False if it is already as high as it can be.
 */
bool proc_raise_limit(void);

/* Reopens the spare descriptors that were given up, if the system has some again. */
void proc_refill_spares(struct tree *tree);

#endif
