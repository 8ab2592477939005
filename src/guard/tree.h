/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tree: every descendant of the calling process, however it tried to get
 * away: by another process group, a session of its own, a double fork, or as an
 * orphan.
 *
 * The calling process is a child subreaper, so a process that loses its parent
 * becomes a child of ours. From that follows the one proof that this file is
 * about: when wait(2) says that we have no child, nothing is left of the tree,
 * because every member has a chain of parents that ends in a child of ours.
 *
 * With a cgroup there is a second condition: it must be empty, too. It also
 * holds processes that got away by privilege, into another pid namespace.
 *
 * After tree_open() nothing here allocates memory or takes a lock, and all
 * descriptors that are known beforehand are open. If the system has none left
 * for a walk, the spare ones are used.
 *
 * A tree is used by one thread at a time.
 */
#ifndef GUARD_TREE_H
#define GUARD_TREE_H

#include <gavel/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How the tree is kept together. */
enum contain {
    CONTAIN_AUTO,   /* a cgroup if one is delegated to us, else walk */
    CONTAIN_CGROUP, /* a cgroup v2 of its own, ended by cgroup.kill */
    CONTAIN_WALK,   /* by walking over the processes */
};

#define TREE_SPARE_FDS 4

struct tree {
    bool has_cgroup;
    bool can_clone;   /* children may be born in it */
    bool is_spent;    /* it was killed, see cgroup_renew() */
    char cgroup[512]; /* its directory; "" without one */
    int cgroup_fd;    /* of that directory; -1 without one, as the next three */
    int procs_fd;     /* of cgroup.procs */
    int kill_fd;      /* of cgroup.kill */
    int events_fd;    /* of cgroup.events */
    int proc_fd;      /* of /proc */
    int spare_fds[TREE_SPARE_FDS];
};

/*
 * Makes the calling process a child subreaper and opens everything that is
 * needed later. CONTAIN_CGROUP fails with ERR_STATE, and says what to do, if no
 * cgroup is available; CONTAIN_AUTO then walks. ERR_IO if /proc cannot be used.
 */
GAVEL_CHECKED enum gavel_status tree_open(struct tree *tree, enum contain contain, struct gavel_error *error);

/* tree_close() frees everything and removes the cgroup if it is empty. It is safe after tree_init() alone. */
void tree_init(struct tree *tree);
void tree_close(struct tree *tree);

/*
 * fork(2) of a child that is in the cgroup from the start, at the cost of any
 * other fork. The caller must be the only thread. -1 with errno.
 */
pid_t tree_fork(struct tree *tree);

/*
 * In a child that was forked otherwise, before it executes: enters the cgroup,
 * which often takes the kernel ten milliseconds or more. False if that fails;
 * the child must not go on then.
 */
bool tree_enter(const struct tree *tree);

/*
 * One pass: sends the signal to every living descendant, or with a session only
 * to those in it; never to the calling process. Returns how many got it.
 * Processes that are dead and wait to be reaped do not count. With SIGKILL the
 * pass first kills what it can reach in one go (the cgroup). Processes born
 * during the pass may be missed: repeat until nothing is left. Returns at least
 * 1 if anything could not be examined, and 0 only if two passes agree.
 */
size_t tree_signal(struct tree *tree, int signal_number, pid_t session);

/*
 * About how many descendants are alive, and how many pages they hold (ret_pages
 * may be NULL); stops counting at `most`. For planning how long they take to
 * die.
 */
size_t tree_count(struct tree *tree, size_t most, uint64_t *ret_pages);

/* Reaps one dead child; false if no child of ours is dead now. *ret_status as from waitpid(2). */
bool tree_reap(pid_t *ret_pid, int *ret_status);

/*
 * The proof: whether nothing is left of the tree. True only if there is no
 * child at all, dead or alive, and no process in the cgroup. The cgroup may
 * become empty a moment after the last child was reaped, without another
 * SIGCHLD.
 */
bool tree_is_empty(const struct tree *tree);

/*
 * Kills and reaps until nothing is left, or until `until_ns`: for an elector
 * whose guard has died. True if nothing is left.
 */
bool tree_end(struct tree *tree, int64_t until_ns);

#endif
