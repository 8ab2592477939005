/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What lock-free readers see of a mandate: until when it holds, and its epoch.
 * It is kept in pages that the kernel wipes in a forked child, so that a child
 * reads "no mandate" without running any code of ours.
 *
 * Mandates of a session last as long as it does, so its deadline is published
 * once for all of them, and a keep-alive changes nothing else.
 */
#ifndef LIB_PUBLISH_H
#define LIB_PUBLISH_H

#include "base/request.h"
#include "os/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct publish_page;

/* The session of a handle. A cache line, as is the next. */
struct published_session {
    _Alignas(64) _Atomic uint64_t number; /* 0: none is open */
    _Atomic gavel_ns deadline;
    _Atomic gavel_ns lasts;
};

/* A cache line each, so that one group's renewals do not slow down another's readers. */
struct published {
    _Alignas(64) _Atomic gavel_ns stop_at; /* 0: no mandate; of a session: not after this, whatever it says */
    _Atomic uint64_t epoch;
    /* If `within` is not NULL: the mandate is of this session of it, and the work must begin to stop so long
     * before its deadline. */
    _Atomic uint64_t session;
    _Atomic gavel_ns stop_lead;
    const struct published_session *within; /* fixed */
    struct publish_page *page;              /* fixed */
};

/* All slots of one handle. Not locked: the handle's mutex guards it. */
struct publish {
    struct publish_page *pages;
    struct publish_page *with_room;
};

/* A slot that says "no mandate"; `within`: NULL, or what its mandates will be of. ERR_NO_MEMORY; ERR_IO if
 * the kernel cannot wipe pages on fork (before Linux 4.14). */
GAVEL_CHECKED enum gavel_status publish_slot(struct publish *publish, const struct published_session *within,
                                             struct published **ret_slot);

/* The same for a session, of which none is open. It is kept until publish_done(). */
GAVEL_CHECKED enum gavel_status publish_session_slot(struct publish *publish,
                                                     struct published_session **ret_session);

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

/* Sets a mandate of that session; publish_mandate() ends it. */
static inline void publish_session_mandate(struct published *slot, uint64_t epoch, uint64_t session,
                                           gavel_ns stop_lead, gavel_ns term_stop_at)
{
    atomic_store(&slot->stop_lead, stop_lead);
    atomic_store(&slot->session, session);
    publish_mandate(slot, epoch, term_stop_at);
}

/* Another session, none, or the same one for longer. A reader never sees a deadline under another number. */
static inline void publish_session(struct published_session *published, const struct store_session *session)
{
    bool is_same = atomic_load(&published->number) == session->number;

    if (!is_same)
        atomic_store(&published->number, 0);
    atomic_store(&published->deadline, session->deadline);
    atomic_store(&published->lasts, session->lasts);
    if (!is_same)
        atomic_store(&published->number, session->number);
}

/* The session that is open, or zeroes; without its former_deadline. */
static inline struct store_session published_session(const struct published_session *published)
{
    struct store_session session = {
        .number = atomic_load_explicit(&published->number, memory_order_acquire),
        .deadline = atomic_load_explicit(&published->deadline, memory_order_acquire),
        .lasts = atomic_load_explicit(&published->lasts, memory_order_acquire),
    };

    if (atomic_load_explicit(&published->number, memory_order_acquire) != session.number)
        return (struct store_session){0}; /* it is being replaced */
    return session;
}

/* When the work of a mandate must begin to stop; 0: there is none, or its session is over. */
static inline gavel_ns published_stop_at(const struct published *slot)
{
    gavel_ns stop_at = atomic_load_explicit(&slot->stop_at, memory_order_acquire);
    gavel_ns stop_lead, deadline;
    uint64_t session;

    if (!slot->within || stop_at == 0)
        return stop_at;
    session = atomic_load_explicit(&slot->session, memory_order_acquire);
    stop_lead = atomic_load_explicit(&slot->stop_lead, memory_order_acquire);
    if (atomic_load_explicit(&slot->stop_at, memory_order_acquire) != stop_at)
        return 0; /* that mandate is over; the next one is being set */
    if (atomic_load_explicit(&slot->within->number, memory_order_acquire) != session)
        return 0;
    deadline = atomic_load_explicit(&slot->within->deadline, memory_order_acquire);
    if (atomic_load_explicit(&slot->within->number, memory_order_acquire) != session)
        return 0;
    return deadline - stop_lead < stop_at ? deadline - stop_lead : stop_at;
}

/* The instant is loaded before the clock is read: a pause in between can only turn yes into no. */
static inline bool published_holds(const struct published *slot)
{
    gavel_ns stop_at = published_stop_at(slot);

    return stop_at != 0 && clock_now() < stop_at;
}

#endif
