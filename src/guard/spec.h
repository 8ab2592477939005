/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the guard is told once, before it starts: the children and how to run
 * them. Everything is prepared by the code that reads the command line and the
 * configuration, since the guard itself allocates nothing: programs are looked
 * up, users resolved, environments built.
 */
#ifndef GUARD_SPEC_H
#define GUARD_SPEC_H

#include "core/supervisor/supervisor.h"
#include "guard/tree.h"

#include <signal.h>
#include <sys/types.h>

#define GUARD_GROUPS_MAX 64

/* A program and its arguments. */
struct guard_command {
    const char *path;  /* of the file to execute; NULL: there is no such command */
    char *const *argv; /* ending with NULL */
};

struct guard_child {
    const char *name; /* for messages; unique */
    struct guard_command command;
    /*
     * The whole environment, ending with NULL. One of its strings is shared by
     * all children; the guard writes each epoch into it.
     */
    char *const *environment;
    const char *directory; /* to run in; NULL: where gavel was started */
    bool has_user;         /* to run as: */
    uid_t uid;
    gid_t gid;
    gid_t groups[GUARD_GROUPS_MAX];
    size_t group_count;
    int term_signal;
    struct guard_command ready; /* READY_BY_COMMAND */
    int ready_fd;               /* READY_BY_FD: its number in the child */
    int stdin_fd;               /* what it gets as stdin, stdout and stderr; -1: gavel's own */
    int stdout_fd;
    int stderr_fd;
};

/*
 * How long before the deadline the guard kills everything that has not stopped:
 * a part of the stop grace, enough for many processes to die, and never most of
 * it.
 */
static inline gavel_ns guard_kill_lead(gavel_ns stop_grace)
{
    return ns_min(ns_min(ns_max(stop_grace / 4, 25 * NS_PER_MS), 500 * NS_PER_MS), stop_grace / 2);
}

/* "GAVEL_EPOCH=" and at most twenty digits. */
#define GUARD_EPOCH_BYTES 40

struct guard_spec {
    struct supervisor_rules rules;
    struct guard_child children[CHILDREN_MAX]; /* rules.child_count of them */
    struct guard_command on_elected; /* if rules.has_on_elected; with the environment of the first child */
    struct guard_command on_demoted;
    gavel_ns orphan_grace; /* from the term signal to SIGKILL when the elector has died; 0: SIGKILL at once */
    gavel_ns stop_grace;   /* of the mandate: from stop_at to the deadline */
    enum contain contain;
    bool is_single;                /* there is no election: the children get epoch 0 */
    char epoch[GUARD_EPOCH_BYTES]; /* "GAVEL_EPOCH=…", in every environment */
    bool ignores_sigpipe;          /* for the children, as inherited by gavel */
    sigset_t signal_mask;          /* for the children */
};

#endif
