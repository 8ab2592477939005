/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A pid namespace as a host that can be lost: when its first process dies, the
 * kernel kills everything in it at once, and nobody outside can prove that
 * anything in it has died. Only root may make one.
 */
#ifndef BENCH_PROPS_NAMESPACE_H
#define BENCH_PROPS_NAMESPACE_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

/* Whether this process may make one, found out by doing it. */
bool namespace_is_allowed(void);

/* fork(2); the child is process 1 of a new pid namespace. -1 with errno. */
pid_t namespace_fork(void);

/* For that child: its own /proc, which shows its namespace and is seen by nobody else. */
GAVEL_CHECKED enum gavel_status namespace_mount_proc(void);

#endif
