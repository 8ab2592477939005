/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The identity of a process, and proof that it is dead. A bare pid is never enough:
 * pids are reused, and mean nothing in another pid namespace or after a boot.
 */
#ifndef OS_PROCESS_H
#define OS_PROCESS_H

#include "base/record.h"

#include <sys/types.h>

/* The calling process. ERR_IO if /proc is not mounted. */
GAVEL_CHECKED enum gavel_status process_self(struct process_id *ret_id);

/*
 * Whether the boot id of this identity is the machine's own. It is if it was read
 * in the first pid namespace, whose inode is fixed in the kernel's ABI. A
 * container may see a boot id of its own while the machine keeps running.
 */
static inline bool process_has_true_boot_id(const struct process_id *id)
{
    return id->pid > 0 && id->pid_ns == UINT64_C(0xEFFFFFFC);
}

enum process_fate {
    PROCESS_ALIVE,
    PROCESS_DEAD,   /* proven: gone, a zombie, its pid was reused, or it ran on an earlier boot */
    PROCESS_UNSEEN, /* in another pid namespace, or not named: nothing can be said */
};

/*
 * The state of that process now. If it is alive and ret_pidfd is not
 * NULL, *ret_pidfd is a pidfd of exactly that process (checked after opening),
 * which becomes readable when it dies; the caller closes it. Otherwise
 * *ret_pidfd is untouched. A system error (such as no descriptors left)
 * counts as PROCESS_UNSEEN.
 */
enum process_fate process_look(const struct process_id *id, const struct process_id *self, int *ret_pidfd);

/* What messages say about a process. */
struct process_glance {
    char name[32]; /* as in /proc/PID/comm, in plain ASCII */
    bool is_stopped;
};

/* False if /proc does not say. */
bool process_look_at(pid_t pid, struct process_glance *ret_glance);

#endif
