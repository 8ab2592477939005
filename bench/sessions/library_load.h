/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A member of a rig that takes part in many groups with libgavel, as any
 * program would: one process, one handle, and one candidate in each group. A
 * client load does the same by the client protocol; the words are the same:
 *
 *     JOINED            the handle is open, and it takes part in nothing
 *     c: campaigns  ─►  HOLDS     it leads all its groups, each time that it comes to
 *                       STANDS    somebody else leads in all its groups, once
 *
 * What happens to single groups it only counts, on its board.
 */
#ifndef BENCH_SESSIONS_LIBRARY_LOAD_H
#define BENCH_SESSIONS_LIBRARY_LOAD_H

#include "bench/sessions/sessions.h"

/* In memory that driver and library load share. */
struct library_load_board {
    _Atomic gavel_ns began_at; /* right before it joined the first group */
    _Atomic gavel_ns first_at; /* the first on_elected since this was 0 */
    _Atomic uint64_t elected;  /* calls of on_elected */
    _Atomic uint64_t demoted;  /* calls of on_demoted */
};

struct library_load_plan {
    char url[SESSIONS_URL_BYTES];
    struct client_load_set own;
    struct library_load_board *board;
};

/* NULL: out of memory. */
struct library_load_board *library_load_board_new(void);
void library_load_board_free(struct library_load_board *board); /* safe on NULL */

/* Starts one and waits until its handle is open. */
GAVEL_CHECKED enum gavel_status library_load_start(struct rig *rig, uint32_t member, const char *name,
                                                   struct library_load_plan *plan);

/* How long many groups may take until all are led: so long that only what does not work takes longer. */
gavel_ns library_load_limit(size_t groups);

#endif
