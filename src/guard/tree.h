/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tree: every descendant of the calling process, however it tried to get
 * away: other process groups, sessions of their own, double forks, orphans.
 *
 * The calling process is a child subreaper, so whoever loses its parent
 * becomes a child of ours. From that follows the one proof that this file is
 * about: when wait(2) says that we have no child, then nothing is left of the
 * tree, for every member has a chain of parents that ends in a child of ours.
 *
 * With a cgroup there is a second condition: that it is empty, too. It holds
 * also those that got away by privilege, into another pid namespace.
 *
 * After tree_open() nothing here allocates memory or takes a lock, and all
 * descriptors that are known beforehand are open. If the system has none left
 * for a walk, spare ones are given up first.
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
    CONTAIN_AUTO,   /* cgroup where one is delegated to us, else walk */
    CONTAIN_CGROUP, /* a cgroup v2 of its own, ended by cgroup.kill */
    CONTAIN_WALK,   /* by walking over the processes */
};

#define TREE_SPARE_FDS 4

struct tree {
    bool has_cgroup;
    bool can_clone;   /* children may be born in it */
    bool is_spent;    /* it was killed, see cgroup_renew() */
    char cgroup[512]; /* its folder; "" without one */
    int cgroup_fd;    /* of that folder; -1 without one, as the next three */
    int procs_fd;     /* of cgroup.procs */
    int kill_fd;      /* of cgroup.kill */
    int events_fd;    /* of cgroup.events */
    int proc_fd;      /* of /proc */
    int spare_fds[TREE_SPARE_FDS];
};

/*
 * Makes the calling process a child subreaper and gets everything that is
 * needed later. CONTAIN_CGROUP fails with ERR_STATE, and what to do, where no
 * cgroup can be had; CONTAIN_AUTO then walks. ERR_IO if /proc cannot be used.
 */
GAVEL_CHECKED enum gavel_status tree_open(struct tree *tree, enum contain contain, struct gavel_error *error);

/* Gives everything back; removes the cgroup if it is empty. Safe on a zeroed struct after tree_init(). */
void tree_init(struct tree *tree);
void tree_close(struct tree *tree);

/*
 * fork(2) of a child that is in the cgroup from the beginning, and costs no
 * more than any other. The caller must be the only thread. -1 with errno.
 */
pid_t tree_fork(struct tree *tree);

/*
 * In a child that was forked otherwise, before it executes: enters the cgroup,
 * for which the kernel often takes ten milliseconds and more. False if it
 * could not (then it must not go on).
 */
bool tree_enter(const struct tree *tree);

/*
 * One pass: sends the signal to every descendant that lives, or with a
 * session only to those in it; never to the calling process. Returns to how
 * many. Processes that are dead and wait to be reaped do not count. With
 * SIGKILL the pass goes first to whatever can be reached in one go (the
 * cgroup). Those born during the pass may be missed: repeat until
 * nothing is left. Returns at least 1 if anything could not be looked at, and
 * 0 only if two passes agree.
 */
size_t tree_signal(struct tree *tree, int signal_number, pid_t session);

/*
 * How many descendants live now, about, and how many pages they hold
 * (ret_pages may be NULL); it stops counting at `most`. For planning how long
 * they take to die.
 */
size_t tree_count(struct tree *tree, size_t most, uint64_t *ret_pages);

/* Takes one dead child; false if no child of ours is dead now. *ret_status as from waitpid(2). */
bool tree_reap(pid_t *ret_pid, int *ret_status);

/*
 * The proof: whether nothing is left of the tree. True only if there is no
 * child at all, dead or alive, and nobody in the cgroup. The last may come
 * true a moment after the last child was reaped, without another SIGCHLD.
 */
bool tree_is_empty(const struct tree *tree);

/*
 * Kills and reaps until nothing is left, or until that instant: for an
 * elector whose guard has died. True if nothing is left.
 */
bool tree_end(struct tree *tree, int64_t until_ns);

#endif
