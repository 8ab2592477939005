/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a standby knows of the record of its group, and when it may claim it.
 *
 *   leader:    renewal sent ├──────── lease × (1 − drift) ────────┤ work has stopped
 *   store:               applied ▲
 *   standby:                      ├ read … received ├──── lease × (1 + drift) ────┤ may claim
 *
 * The standby's wait begins after the renewal was sent and is longer on any
 * two clocks whose rates keep the bound, so the two never overlap.
 *
 * A store that went back in time (restored from a backup, rows deleted) may
 * have forgotten a leader that does not know it yet. A standby that sees an
 * older version than before, or none, therefore claims nothing for a whole
 * lease.
 */
#ifndef CORE_CANDIDATE_OBSERVATION_H
#define CORE_CANDIDATE_OBSERVATION_H

#include "base/record.h"
#include "base/request.h"

struct observation {
    bool is_known;       /* at least one read was answered */
    bool is_found;       /* there is a record */
    bool is_holder_dead; /* proven, for the nonce of the record */
    gavel_ns seen_at;    /* when this version was first received */
    gavel_ns read_at;    /* when any answer was last received */
    gavel_ns died_at;    /* when its death was proven */
    gavel_ns free_from;  /* not to be claimed before, because the store went back in time; see above */
    gavel_ns expires_at; /* expiry by the store's clock, on ours; NEVER if it has none */
    struct record record;
};

/* Takes in the answer to a READ that was sent at sent_at and received at now. True if the version is new. */
bool observation_update(struct observation *observation, const struct store_reply *reply, gavel_ns sent_at,
                        gavel_ns now, int drift_ppm);

enum vacancy {
    VACANCY_NONE,     /* somebody leads */
    VACANCY_FREE,     /* never held, released, or held by a former self whose work has stopped */
    VACANCY_DEAD,     /* the holder's process is proven dead */
    VACANCY_TIMED_OUT /* the lease has run out */
};

/* How the group lost its leader, given the vacancy; NONE: the mandate was given up, or is our own. */
enum gavel_loss observation_loss(const struct observation *observation, enum vacancy vacancy,
                                 struct nonce own_nonce);

/*
 * Whether and why the group is vacant at `now`; own_nonce is of our newest
 * claim. *ret_at is the instant from which the answer is, or will be, other than
 * NONE if nothing changes; NEVER if unknown.
 */
enum vacancy observation_vacancy(const struct observation *observation, const struct gavel_settings *settings,
                                 enum store_clock clock, const char *own_id, struct nonce own_nonce,
                                 gavel_ns now, gavel_ns *ret_at);

#endif
