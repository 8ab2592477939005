/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How the stop grace is divided among the children:
 *
 *     stop_at                                       kill_at        deadline
 *        ├─ last child's grace ─┼─ … ─┼─ first child's ┤── kill lead ──┤
 *        SIGTERM, one after the other                  SIGKILL         nothing is left
 */
#ifndef CONFIG_RUN_GRACE_H
#define CONFIG_RUN_GRACE_H

#include "config/run_file.h"

#include <gavel/settings.h>

/* Of a store that grants mandates to sessions. */
struct run_sessions {
    gavel_ms asked_ttl_ms; /* by its URL; 0: how long they live follows from the lease */
};

/*
 * Checks the settings as gavel_settings_check() does, and with sessions (NULL:
 * the store has none) as session_terms_check() does. If a longer lease, or time
 * to live, would make them add up, *error also says which.
 */
GAVEL_CHECKED enum gavel_status run_settings_check(const struct gavel_settings *settings,
                                                   const struct run_sessions *sessions,
                                                   struct gavel_error *error);

/*
 * The grace of each child: the one it was given, or else all that the others
 * leave. ERR_BUDGET if the given ones do not fit; *error has the sum and what
 * would do.
 */
GAVEL_CHECKED enum gavel_status run_graces_share(const struct run_child *children, size_t count,
                                                 const struct gavel_settings *settings,
                                                 const struct run_sessions *sessions,
                                                 struct child_rule *rules, struct gavel_error *error);

#endif
