/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A cgroup (version 2) of our own, below the one that we are in. A process born
 * in it stays in it, and writing to its cgroup.kill ends all of them at once,
 * including forks in progress.
 *
 * It is only a tool for killing. Whether a tree is dead is decided by
 * tree_is_empty().
 */
#ifndef GUARD_CGROUP_H
#define GUARD_CGROUP_H

#include "guard/tree.h"

/*
 * Makes one and fills in the cgroup fields of the tree. Unless `forced`, only
 * where the directory we are in was delegated to us: it belongs to us, or
 * systemd has marked it so (Delegate=yes). ERR_STATE, and what to do, if it
 * cannot be had. Allocates; for the beginning only.
 */
GAVEL_CHECKED enum gavel_status cgroup_open(struct tree *tree, bool forced, struct gavel_error *error);

/* Closes everything and removes the directory if nobody is in it. Safe without one. */
void cgroup_close(struct tree *tree);

/* Kills every process in it. Does nothing without one. */
void cgroup_kill(struct tree *tree);

/*
 * Before cgroup_fork(): replaces a cgroup that was killed, since some kernels
 * (seen with 6.18) go on killing every process cloned into it, at birth. False
 * if that fails; then children have to enter it by tree_enter().
 */
bool cgroup_renew(struct tree *tree);

/* fork(2) into it. The caller must be the only thread. -1 with errno. */
pid_t cgroup_fork(const struct tree *tree);

/* Whether any process is known to be in it. */
bool cgroup_is_populated(const struct tree *tree);

/*
 * Finds the directory of our own cgroup: `cgroups` is the text of
 * /proc/self/cgroup, `mounts` that of /proc/self/mountinfo. False if we can see
 * no version 2. For cgroup_open(), and for tests.
 */
bool cgroup_find(const char *cgroups, const char *mounts, char *ret_directory, size_t size);

#endif
