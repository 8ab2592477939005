/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fencing: which epochs are still valid. The newest epoch always is. The previous
 * one stays valid for a grace period after it was superseded, but only for things
 * created before that: a message still under way may pass, a former leader that
 * has not noticed may not.
 */
#ifndef CORE_CANDIDATE_FENCE_H
#define CORE_CANDIDATE_FENCE_H

#include "base/time.h"

#include <stdbool.h>

struct fence {
    uint64_t newest;        /* 0: none seen */
    uint64_t previous;      /* 0: none */
    gavel_ns superseded_at; /* when newest was first seen */
};

/* Notes an epoch; one older than the newest changes nothing. */
void fence_note(struct fence *fence, uint64_t epoch, gavel_ns now);

/* An epoch that is newer than any seen is valid: only the store can have given it. */
bool fence_allows(const struct fence *fence, uint64_t epoch, gavel_ns created_at, gavel_ns now,
                  gavel_ms grace_ms);

#endif
