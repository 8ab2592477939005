/* SPDX-License-Identifier: Apache-2.0 */

/* Starts a process of a child: everything between fork and exec. */
#ifndef GUARD_SPAWN_H
#define GUARD_SPAWN_H

#include "guard/spec.h"

#include <sys/resource.h>

struct spawn {
    const struct guard_command *command;
    const struct guard_child *child; /* whose user, directory, environment and output it gets */
    struct tree *tree;
    const sigset_t *signal_mask;
    bool ignores_sigpipe;
    const struct rlimit *descriptors; /* the limit that it gets */
    int stdin_fd;                     /* what it gets if the child has none of its own; -1: ours */
    int stdout_fd;
    int ready_fd; /* becomes child->ready_fd in it; -1: none */
};

/*
 * Forks. The process is in a session of its own and dies with the caller. If it
 * cannot execute the command, it says so on stderr and exits with 127 (not
 * found) or 126. Returns its pid, or -1 with errno. *ret_pidfd may be -1 even
 * on success, if no descriptor is left.
 */
pid_t spawn_process(const struct spawn *spawn, int *ret_pidfd);

#endif
