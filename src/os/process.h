/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who a process is, and proof that it is dead. A bare pid is never enough:
 * pids are reused, and mean nothing in another pid namespace or after a boot.
 */
#ifndef OS_PROCESS_H
#define OS_PROCESS_H

#include "base/record.h"

#include <sys/types.h>

/* The calling process. ERR_IO if /proc is not mounted. */
GAVEL_CHECKED enum gavel_status process_self(struct process_id *ret_id);

/*
 * Whether the boot id of this identity is the machine's own: it was read in
 * the first pid namespace, whose inode is fixed in the kernel's ABI.
 * Containers may be shown one of their own while the machine runs on.
 */
static inline bool process_has_true_boot_id(const struct process_id *id)
{
    return id->pid > 0 && id->pid_ns == UINT64_C(0xEFFFFFFC);
}

enum process_fate {
    PROCESS_ALIVE,
    PROCESS_DEAD,   /* proven: gone, a zombie, its pid is another process now, or it ran on an earlier boot */
    PROCESS_UNSEEN, /* another pid namespace, or not told: nothing can be said */
};

/*
 * What is known of that process now. If it is alive and ret_pidfd is not
 * NULL, *ret_pidfd is a pidfd of exactly that process (checked after opening),
 * which becomes readable when it dies; the caller closes it. Otherwise
 * *ret_pidfd is untouched. An error of the system (out of descriptors) counts
 * as PROCESS_UNSEEN.
 */
enum process_fate process_look(const struct process_id *id, const struct process_id *self, int *ret_pidfd);

/* What people want to know of a process in a message. */
struct process_glance {
    char name[32]; /* as in /proc/PID/comm, in plain ASCII */
    bool is_stopped;
};

/* False if /proc does not tell. */
bool process_look_at(pid_t pid, struct process_glance *ret_glance);

#endif
