/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes the guard's specification from children as people describe them: looks
 * up programs, resolves users, builds environments and divides graces.
 */
#ifndef CONFIG_RUN_SPEC_H
#define CONFIG_RUN_SPEC_H

#include "config/arena.h"
#include "config/run_file.h"
#include "config/run_grace.h"
#include "guard/spec.h"

/*
 * What all children share. Borrowed for the call, except for the strings of the
 * environment, which must live on.
 */
struct run_spec_base {
    const char *file;         /* that children with a line come from, for messages */
    char *const *environment; /* that theirs starts from, ending with NULL */
    const char *store;        /* GAVEL_STORE; NULL: left out */
    const char *group;
    const char *candidate;
    int term_signal;      /* for those that do not set it themselves, as the next */
    enum on_exit on_exit; /* … */
    bool stops_with_any;  /* the end of any child stops everything, whatever the children say */
    const struct gavel_settings *settings;
    const struct run_sessions *sessions; /* NULL: the mandate is not granted to any */
};

/*
 * Adds the children to a spec, whose epoch they share; if there are several,
 * they get no input. Everything lives in the arena, except for one descriptor,
 * which run_spec_done() closes.
 *
 * ERR_NOT_FOUND and ERR_IO: a program does not exist or cannot be executed;
 * ERR_BUDGET: the graces do not fit; ERR_INVALID: anything else.
 */
GAVEL_CHECKED enum gavel_status run_spec_add(struct arena *arena, struct guard_spec *spec,
                                             const struct run_spec_base *base,
                                             const struct run_child *children, size_t count,
                                             struct gavel_error *error);

/* Closes the descriptor. Safe on a zeroed spec. */
void run_spec_done(struct guard_spec *spec);

#endif
