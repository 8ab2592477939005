/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When this node applied which revision, so that a new leader knows how long a
 * mandate has lasted. A mandate's epoch is the revision that granted it.
 *
 * The instant that is told is never before the right one, and late by no more
 * than a part (APPLIED_PART) of the time since: of long ago only few are kept.
 */
#ifndef CORE_SESSION_APPLIED_H
#define CORE_SESSION_APPLIED_H

#include "base/time.h"

#include <stddef.h>
#include <stdint.h>

#define APPLIED_PART 32
#define APPLIED_MAX 4096

/* Everything up to this revision was applied by then. */
struct applied_mark {
    uint64_t revision;
    gavel_ns at;
};

struct applied {
    struct applied_mark *marks; /* in order of both */
    size_t count;
    size_t capacity;
};

/* The table has this revision now. A zeroed struct has none. */
void applied_mark(struct applied *applied, uint64_t revision, gavel_ns now);
/* When it was applied; NEVER: not known yet. */
gavel_ns applied_at(const struct applied *applied, uint64_t revision);
void applied_done(struct applied *applied); /* safe on a zeroed struct */

#endif
