/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What lock-free readers see of a mandate: until when it holds, and its epoch.
 * It is kept in pages that the kernel wipes in a forked child, so that a child
 * reads "no mandate" without running any code of ours.
 */
#ifndef LIB_PUBLISH_H
#define LIB_PUBLISH_H

#include "os/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A cache line each, so that one group's renewals do not slow down another's readers. */
struct published {
    _Alignas(64) _Atomic gavel_ns stop_at; /* 0: no mandate */
    _Atomic uint64_t epoch;
};

struct publish_page;

/* All slots of one handle. Not locked: the handle's mutex guards it. */
struct publish {
    struct publish_page *pages;
};

/* A slot that says "no mandate". ERR_NO_MEMORY; ERR_IO if the kernel cannot wipe pages on fork (before
 * Linux 4.14). */
GAVEL_CHECKED enum gavel_status publish_slot(struct publish *publish, struct published **ret_slot);

/* Returns a slot. Safe on NULL. */
void publish_return(struct publish *publish, struct published *slot);

/* Unmaps everything. Safe on NULL. */
void publish_done(struct publish *publish);

/*
 * Sets or, with stop_at 0, ends the mandate. The epoch is written before the
 * instant that makes it valid and cleared after it, so a reader that sees a
 * mandate sees its epoch, a later one, or none; never an earlier one.
 */
static inline void publish_mandate(struct published *slot, uint64_t epoch, gavel_ns stop_at)
{
    if (stop_at != 0)
        atomic_store(&slot->epoch, epoch);
    atomic_store(&slot->stop_at, stop_at);
    if (stop_at == 0)
        atomic_store(&slot->epoch, 0);
}

/* The instant is loaded before the clock is read: a pause in between can only turn yes into no. */
static inline bool published_holds(struct published *slot)
{
    gavel_ns stop_at = atomic_load_explicit(&slot->stop_at, memory_order_acquire);

    return stop_at != 0 && clock_now() < stop_at;
}

#endif
