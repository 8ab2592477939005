/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finding a program before it is needed, so that "not found" is told at once,
 * on every host, and not by whichever is elected some night.
 */
#ifndef CONFIG_PROGRAM_H
#define CONFIG_PROGRAM_H

#include "config/arena.h"
#include "guard/spec.h"

#include <gavel/status.h>

/*
 * Looks argv[0] up as execvp(3) would in a process in that directory (NULL:
 * this one) with that PATH (NULL: the usual one). The path
 * that is found has a slash in it.
 *
 * ERR_NOT_FOUND if there is no such program, ERR_IO if there is one that
 * cannot be executed; *error says why and what to do. *ret_command borrows
 * argv, and what is new lives in the arena.
 */
GAVEL_CHECKED enum gavel_status program_find(struct arena *arena, char *const *argv, const char *directory,
                                             const char *search, struct guard_command *ret_command,
                                             struct gavel_error *error);

#endif
