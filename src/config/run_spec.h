/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From children as people tell of them to what a guard is told: programs are
 * looked up, users resolved, environments put together, graces divided.
 */
#ifndef CONFIG_RUN_SPEC_H
#define CONFIG_RUN_SPEC_H

#include "config/arena.h"
#include "config/run_file.h"
#include "guard/spec.h"

/* What all children share. Borrowed for the call, besides the strings of the environment. */
struct run_spec_base {
    const char *file;         /* that tells of children with a line, for messages */
    char *const *environment; /* that they begin with, ending with NULL */
    const char *store;        /* GAVEL_STORE; NULL: not told */
    const char *group;
    const char *candidate;
    int term_signal;      /* of those that say nothing else, as the next */
    enum on_exit on_exit; /* … */
    bool stops_with_any;  /* the end of each stops everything, whatever they say */
    const struct gavel_settings *settings;
};

/*
 * Adds the children to a spec, whose epoch they share; several get no input.
 * What it takes lives in the arena, besides one descriptor, for
 * run_spec_done().
 *
 * ERR_NOT_FOUND and ERR_IO tell of programs that are not there or cannot be
 * executed; ERR_BUDGET of graces that do not fit; ERR_INVALID of all else.
 */
GAVEL_CHECKED enum gavel_status run_spec_add(struct arena *arena, struct guard_spec *spec,
                                             const struct run_spec_base *base,
                                             const struct run_child *children, size_t count,
                                             struct gavel_error *error);

/* Gives the descriptor back. Safe on a zeroed spec. */
void run_spec_done(struct guard_spec *spec);

#endif
