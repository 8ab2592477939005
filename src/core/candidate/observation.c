/* SPDX-License-Identifier: Apache-2.0 */

#include "core/candidate/observation.h"

#include "base/assert.h"
#include "base/planted.h"

#include <string.h>

/* Versions and epochs only grow, and records are never deleted, unless somebody puts an old state back. */
static bool went_back(const struct observation *seen, const struct store_reply *reply)
{
    if (!seen->is_known || !seen->is_found)
        return false;
    return !reply->found || reply->record.epoch < seen->record.epoch ||
           reply->record.version < seen->record.version;
}

bool observation_update(struct observation *seen, const struct store_reply *reply, gavel_ns sent_at,
                        gavel_ns now, int drift_ppm)
{
    bool is_new = !seen->is_known || seen->is_found != reply->found ||
                  (reply->found && seen->record.version != reply->record.version);
    bool is_same_holder = seen->is_known && seen->is_found && reply->found && seen->record.held &&
                          reply->record.held && nonce_equal(seen->record.nonce, reply->record.nonce);

    gavel_ns expires_at = seen->expires_at;

    ASSERT(sent_at <= now);
    ASSERT(!seen->is_known || seen->read_at <= now);
    if (went_back(seen, reply))
        seen->free_from = now + ns_stretch(ns_from_ms(seen->record.lease_ms), drift_ppm);
    if (is_new) {
        seen->seen_at = now;
        if (PLANTED(SEEN_FROM_SEND))
            seen->seen_at = sent_at;
        /* A dead process stays dead, whatever a renewal of it that arrived late has written. */
        if (!is_same_holder)
            seen->is_holder_dead = false;
    }
    seen->is_known = true;
    seen->read_at = now;
    seen->is_found = reply->found;
    seen->expires_at = NEVER;
    if (!reply->found) {
        memset(&seen->record, 0, sizeof seen->record);
        return is_new;
    }
    seen->record = reply->record;
    if (reply->expired)
        seen->expires_at = is_new ? now : ns_min(expires_at, now);
    else if (reply->remaining_ms >= 0)
        seen->expires_at = now + ns_stretch(ns_from_ms(reply->remaining_ms + 1), drift_ppm);
    return is_new;
}

/* When the lease of the holder has run out, as far as we may know. */
static gavel_ns times_out_at(const struct observation *seen, const struct gavel_settings *settings,
                             enum store_clock clock)
{
    gavel_ms lease_ms = seen->record.lease_ms;
    int ppm = settings->drift_ppm;
    gavel_ns own;

    if (PLANTED(OWN_LEASE_LENGTH))
        lease_ms = settings->lease_ms;
    if (PLANTED(NO_DRIFT))
        ppm = 0;
    own = seen->seen_at + ns_stretch(ns_from_ms(lease_ms), ppm);
    if (PLANTED(EARLY_TAKEOVER))
        own = seen->seen_at + ns_stretch(ns_from_ms(lease_ms / 2), ppm);
    if (PLANTED(WALL_CLOCK))
        return ns_from_ms(seen->record.renewed_wall_ms + lease_ms);
    if (clock == STORE_CLOCK_NONE)
        return own;
    if (clock == STORE_CLOCK_STEADY || settings->trust_store_clock)
        return seen->expires_at;
    if (PLANTED(TRUST_STORE_CLOCK))
        return seen->expires_at;
    return ns_max(own, seen->expires_at);
}

static bool is_own(const struct observation *seen, const char *own_id, struct nonce own_nonce)
{
    if (PLANTED(NO_NONCE_CHECK))
        return strcmp(seen->record.holder, own_id) == 0;
    return nonce_equal(seen->record.nonce, own_nonce);
}

/* As observation_vacancy(), but believing what the store says now. */
static enum vacancy vacancy_of(const struct observation *seen, const struct gavel_settings *settings,
                               enum store_clock clock, const char *own_id, struct nonce own_nonce,
                               gavel_ns now, gavel_ns *ret_at)
{
    *ret_at = seen->seen_at;
    if (!seen->is_found || !seen->record.held || is_own(seen, own_id, own_nonce))
        return VACANCY_FREE;
    if (seen->is_holder_dead) {
        *ret_at = seen->died_at;
        return VACANCY_DEAD;
    }
    *ret_at = times_out_at(seen, settings, clock);
    return now >= *ret_at ? VACANCY_TIMED_OUT : VACANCY_NONE;
}

enum vacancy observation_vacancy(const struct observation *seen, const struct gavel_settings *settings,
                                 enum store_clock clock, const char *own_id, struct nonce own_nonce,
                                 gavel_ns now, gavel_ns *ret_at)
{
    enum vacancy vacancy;

    *ret_at = NEVER;
    if (!seen->is_known)
        return VACANCY_NONE;
    vacancy = vacancy_of(seen, settings, clock, own_id, own_nonce, now, ret_at);
    if (seen->free_from == 0)
        return vacancy;
    *ret_at = ns_max(*ret_at, seen->free_from);
    return now >= *ret_at ? vacancy : VACANCY_NONE;
}

enum gavel_loss observation_loss(const struct observation *seen, enum vacancy vacancy, struct nonce own_nonce)
{
    switch (vacancy) {
    case VACANCY_DEAD:
        return GAVEL_LOSS_KILLED;
    case VACANCY_TIMED_OUT:
        return GAVEL_LOSS_LAPSED;
    case VACANCY_FREE:
        /* To come back is not to replace anybody, so it is not put off. */
        if (!seen->is_found || nonce_equal(seen->record.nonce, own_nonce))
            return GAVEL_LOSS_NONE;
        if (PLANTED(LOSS_AS_HANDOVER))
            return GAVEL_LOSS_NONE;
        return seen->record.loss;
    case VACANCY_NONE:
        break;
    }
    return GAVEL_LOSS_NONE;
}
