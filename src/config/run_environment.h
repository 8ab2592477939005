/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The environment of a command: that of gavel without what is meant for gavel
 * alone, plus whom it runs for, plus the child's own variables.
 */
#ifndef CONFIG_RUN_ENVIRONMENT_H
#define CONFIG_RUN_ENVIRONMENT_H

#include "config/arena.h"

#include <gavel/status.h>

#include <stdbool.h>

/* All borrowed. */
struct run_environment {
    char *const *from; /* ending with NULL, as are the others */
    const char *store; /* NULL: left out */
    const char *group;
    const char *candidate;
    char *epoch;       /* "GAVEL_EPOCH=…", not copied: the guard writes into it */
    char *const *user; /* "HOME=…" and so on, of another user; NULL: none */
    char *const *own;  /* of the child, overriding all others; NULL: none */
};

/* Ends with NULL; lives in the arena, except for the borrowed strings. ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status run_environment_make(struct arena *arena, const struct run_environment *parts,
                                                     char *const **ret_environment,
                                                     struct gavel_error *error);

/*
 * Whether a variable ("NAME=value") of gavel's own environment is passed on to
 * commands: passwords are not.
 */
bool run_environment_is_passed_on(const char *variable);

/* The value of a variable; NULL if it is not set. */
const char *run_environment_value(char *const *environment, const char *name);

/* Whether gavel sets a variable of this name itself, so that a child may not. */
bool run_environment_is_reserved(const char *name);

#endif
