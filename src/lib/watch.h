/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Watches the processes of other leaders, so that a kill -9 is noticed in
 * milliseconds. A process may lead a thousand groups in which we stand by: they
 * share one pidfd.
 */
#ifndef LIB_WATCH_H
#define LIB_WATCH_H

#include "base/record.h"
#include "lib/source.h"

struct gavel_candidate;

/* A process and the candidates that wait for its end. */
struct watch {
    struct source source; /* a pidfd; first, so that the loop's source is this watch */
    struct watch *next;
    struct process_id process;
    struct gavel_candidate *waiting;
    bool is_buried; /* freed at the end of the pass, since the loop may still hold an event for it */
};

struct watches {
    struct watch *first;
};

/*
 * Watches a process for this candidate instead of the one before. A process
 * that is already dead is reported like one that dies now; one that cannot be
 * seen is not watched. Loop only, as are the others.
 */
void watch_set(struct gavel_candidate *candidate, const struct process_id *process, struct nonce nonce);
void watch_clear(struct gavel_candidate *candidate);

/* Closes and frees the watches that nobody waits for. */
void watches_bury(struct gavel *gavel);

#endif
