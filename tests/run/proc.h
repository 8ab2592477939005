/* SPDX-License-Identifier: Apache-2.0 */

/* Processes that are not our children: finding them, and signals that cannot reach the wrong one. */
#ifndef RUN_PROC_H
#define RUN_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* As in /proc/PID/stat: 'R', 'S', 'T', 'Z', …; 0 if there is no such process. *ret_parent may be NULL. */
char proc_state(pid_t pid, pid_t *ret_parent);

/* The children of all its threads; how many were found, at most `room`. */
size_t proc_children(pid_t pid, pid_t *pids, size_t room);

/*
 * A handle of a process whose parent is the given one; -1 if it is not. Since
 * the parent is checked after the handle was opened, it is that process and not
 * one that reused its number.
 */
int proc_open(pid_t pid, pid_t parent);

/* Sends a signal through a handle. False if the process is gone. */
bool proc_signal(int pidfd, int signal_number);

#endif
