/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds a program before it is needed, so that "not found" is reported at once
 * on every host, and not by the one that is elected some night.
 */
#ifndef CONFIG_PROGRAM_H
#define CONFIG_PROGRAM_H

#include "config/arena.h"
#include "guard/spec.h"

#include <gavel/status.h>

/*
 * Looks up argv[0] as execvp(3) would in a process in that directory (NULL: the
 * current one) with that PATH (NULL: the default one). The path found has a
 * slash in it.
 *
 * ERR_NOT_FOUND if there is no such program, ERR_IO if there is one that cannot
 * be executed; *error says why and what to do. *ret_command borrows argv; what
 * is new lives in the arena.
 */
GAVEL_CHECKED enum gavel_status program_find(struct arena *arena, char *const *argv, const char *directory,
                                             const char *search, struct guard_command *ret_command,
                                             struct gavel_error *error);

#endif
