/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The walk for kernels that do not show lists of children: over all processes
 * of the system, again and again, until no more are found whose parent is
 * known to be of the tree.
 *
 * Who is known is kept with its start time. Whether a parent is still who it
 * was is looked up after its child was: then it was so in between, too.
 */
#include "guard/walk.h"

#include <errno.h>
#include <unistd.h>

#define KNOWN_MAX 8192 /* a power of two; filled to three quarters at most */
#define ROUNDS_MAX 64

struct known {
    struct walk *walk;
    size_t count;
    bool has_grown;
    struct {
        pid_t pid; /* 0: free */
        uint64_t start_ticks;
    } slots[KNOWN_MAX];
};

static size_t find(const struct known *known, pid_t pid)
{
    size_t at = (size_t)pid * 2654435761U % KNOWN_MAX;

    while (known->slots[at].pid != 0 && known->slots[at].pid != pid)
        at = (at + 1) % KNOWN_MAX;
    return at;
}

/* Number 0 is the parent of those that the kernel itself has started. */
static bool is_known(const struct known *known, pid_t pid)
{
    return pid > 0 && known->slots[find(known, pid)].pid == pid;
}

static void add(struct known *known, pid_t pid, uint64_t start_ticks)
{
    size_t at;

    if (known->count >= KNOWN_MAX / 4 * 3) {
        known->walk->has_missed = true;
        return;
    }
    at = find(known, pid);
    known->slots[at].pid = pid;
    known->slots[at].start_ticks = start_ticks;
    known->count++;
    known->has_grown = true;
}

/* Whether the process of that number is still the one that we know. */
static bool is_still(const struct known *known, pid_t pid)
{
    struct proc_stat stat;

    if (pid == known->walk->self)
        return true;
    return proc_read_stat(known->walk->tree, pid, &stat) &&
           stat.start_ticks == known->slots[find(known, pid)].start_ticks;
}

static void visit_held(struct known *known, int pidfd, pid_t pid)
{
    struct proc_stat stat;

    if (!proc_read_stat(known->walk->tree, pid, &stat) || !is_known(known, stat.parent) ||
        !is_still(known, stat.parent)) {
        known->walk->has_missed = true; /* it has died, or lost its parent, since a moment ago */
        return;
    }
    walk_kill_group(known->walk, &stat);
    if (walk_meet(known->walk, pidfd, pid, &stat))
        add(known, pid, stat.start_ticks);
}

static void visit(void *user, pid_t pid)
{
    struct known *known = user;
    struct proc_stat stat;
    int pidfd;

    if (is_known(known, pid))
        return;
    /* Most processes are none of ours, and a look costs less than a pidfd. */
    if (!proc_read_stat(known->walk->tree, pid, &stat)) {
        if (errno != ENOENT && errno != ESRCH)
            known->walk->has_missed = true;
        return;
    }
    if (!is_known(known, stat.parent))
        return;
    pidfd = proc_open_pidfd(known->walk->tree, pid);
    if (pidfd < 0) {
        known->walk->has_missed = true;
        return;
    }
    visit_held(known, pidfd, pid);
    (void)close(pidfd); /* it holds nothing that could be lost */
}

void walk_all(struct walk *walk)
{
    struct known known = {.walk = walk};

    add(&known, walk->self, 0);
    for (int i = 0; i < ROUNDS_MAX && known.has_grown; i++) {
        known.has_grown = false;
        if (!proc_list(walk->tree, ".", visit, &known))
            walk->has_missed = true;
    }
    if (known.has_grown)
        walk->has_missed = true;
}
