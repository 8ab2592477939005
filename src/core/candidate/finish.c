/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Work that is done for good. The release of the mandate then also closes the
 * group: one write, which the store applies only while the record still has
 * our nonce and epoch. So at most one mandate is ever recorded as the one that
 * did the work, whoever else believes that it has.
 *
 *   work stops ──► RELEASE, done ──► answered: recorded
 *                       ▲  │ no clear answer
 *                       │  ▼
 *        still ours ── READ back by nonce ──► done, ours: recorded
 *                          │                  done, another's: ERR_DONE
 *                          └────────────────► somebody else's: ERR_NOT_HOLDER
 *
 * We try while the mandate lasts and for one lease longer: as long as nobody has
 * claimed the group, it is still ours to close. After that we end and report
 * that the outcome is unknown.
 */

#include "core/candidate/internal.h"

#include <stdio.h>
#include <string.h>

static void set_outcome(struct candidate *c, enum gavel_status status, const char *why)
{
    c->stop_status = status;
    keep_words(&c->stop_message, "%s", why);
}

static void tell_done_by(struct candidate *c, const struct record *record)
{
    c->seen.record = *record; /* what the last event tells */
    c->stop_status = GAVEL_ERR_DONE;
    keep_words(&c->stop_message, "the work of group \"%.60s\" was done for good by \"%.60s\" with epoch %llu",
               c->group, record->holder, (unsigned long long)record->epoch);
}

void finish_seen(struct candidate *c, const struct record *record)
{
    leader_gone(c, GAVEL_LOSS_NONE);
    c->claim_at = NEVER;
    c->is_claim_open = false; /* nothing of ours can be applied any more */
    if (c->is_stopping && !c->is_finishing)
        return;
    tell_done_by(c, record);
    c->is_stopping = true;
}

/* Whether a release is still to come that can close the group, or may turn out to be needed. */
static bool may_hold(const struct candidate *c)
{
    if (c->state == CANDIDATE_STOPPING)
        return c->is_work_running;
    return holds_mandate(c) || c->state == CANDIDATE_CLAIMING || c->is_claim_open;
}

void finish_begin(struct candidate *c)
{
    if (c->is_finishing || (c->is_stopping && !may_hold(c) && c->stop_status != GAVEL_OK))
        return;
    c->is_finishing = may_hold(c);
    c->is_stopping = true;
    /* Until it is recorded; a claim under way may also turn out to be lost. */
    set_outcome(c, GAVEL_ERR_NOT_HOLDER,
                "the mandate was lost before the success could be recorded; the work may be done again");
    if (holds_mandate(c) || (c->state == CANDIDATE_STANDBY && c->is_claim_open))
        stop_begin(c, GAVEL_REASON_FINISHED, "");
}

/* However it came out, nothing of ours is held or under way that we would want to know of. */
static void end(struct candidate *c, bool is_recorded)
{
    ASSERT(c->state == CANDIDATE_STOPPING);
    ASSERT(c->is_finishing);
    c->is_claim_open = false;
    if (is_recorded)
        set_outcome(c, GAVEL_OK, "");
    stop_end(c, is_recorded);
}

/* No trying again will help. */
static bool is_final(enum gavel_status status)
{
    return status == GAVEL_ERR_STORE_UNSUPPORTED || status == GAVEL_ERR_STORE_TOO_NEW ||
           status == GAVEL_ERR_INVALID;
}

/* It is not known yet: look again in a moment, or give up. */
static void settle_later(struct candidate *c, enum gavel_status status)
{
    if (!is_final(status) && c->now < c->settle_until) {
        c->settle_at = c->now + retry_delay(c);
        return;
    }
    c->stop_status = status;
    keep_words(&c->stop_message,
               "it is unknown whether the success was recorded, so the work may be done again: %s",
               c->trouble && c->trouble[0] != '\0' ? c->trouble : gavel_status_text(status));
    end(c, false);
}

/* Whether the record is of our mandate: by its nonce, or its epoch, which is unique where a store grants. */
static bool is_of_our_mandate(const struct candidate *c, const struct record *record)
{
    if (c->has_sessions)
        return record->epoch == c->epoch && strcmp(record->holder, c->id) == 0;
    return nonce_equal(record->nonce, c->nonce);
}

/*
 * Whether the store has done what it says. One that does not know how to close
 * a group releases the mandate only, and says OK to that. A record that is
 * newer than the answer tells nothing: the group may have been reopened since.
 */
static bool is_closed(const struct candidate *c, const struct store_reply *reply)
{
    bool is_newer = reply->revision != 0 && reply->record.version > reply->revision;

    if (PLANTED(DONE_UNSEEN))
        return true;
    if (!c->has_sessions || is_newer)
        return true;
    return reply->found && reply->record.done && is_of_our_mandate(c, &reply->record);
}

static void not_closed(struct candidate *c)
{
    char why[WORDS_SIZE];

    (void)snprintf(
        why, sizeof why,
        "%s has released the mandate but not recorded that the work is done, so it may be done again; "
        "its leader runs an older gavel: upgrade all nodes",
        c->store);
    set_outcome(c, GAVEL_ERR_STORE_UNSUPPORTED, why);
    end(c, false);
}

void finish_release_done(struct candidate *c, enum gavel_status status, const struct store_reply *reply)
{
    ASSERT(c->is_finishing);
    if (c->settle_until == 0)
        c->settle_until = ns_max(c->now, c->deadline) + ns_from_ms(c->settings.lease_ms);
    if (PLANTED(FINISH_BLINDLY) && status != GAVEL_OK && status != GAVEL_ERR_NOT_HOLDER) {
        end(c, true);
        return;
    }
    if (status == GAVEL_OK && !is_closed(c, reply))
        not_closed(c);
    else if (status == GAVEL_OK)
        end(c, true);
    else
        settle_later(c, status);
}

/* Our session has ended, and the mandate with it; the release may have been applied before. */
void finish_session_over(struct candidate *c)
{
    ASSERT(c->is_finishing);
    if (c->settle_until == 0)
        c->settle_until = ns_max(c->now, c->deadline) + ns_from_ms(c->settings.lease_ms);
    call_forget(c, SLOT_MANDATE);
    c->settle_at = c->now;
}

void finish_look(struct candidate *c)
{
    struct store_request request = call_request(c, STORE_READ);

    ASSERT(c->is_finishing);
    ASSERT(c->state == CANDIDATE_STOPPING);
    request.record.nonce = c->nonce; /* as in standby_look() */
    c->settle_at = NEVER;
    (void)call_send(c, SLOT_MANDATE, &request, true, &c->settle_at); /* urgent calls are never held back */
}

void finish_read_done(struct candidate *c, enum gavel_status status, const struct store_reply *reply)
{
    const struct record *record;

    ASSERT(c->is_finishing);
    if (status != GAVEL_OK) {
        settle_later(c, status);
        return;
    }
    record = &reply->record;
    if (PLANTED(FINISH_ANY_MANDATE) && reply->found && record->held) {
        c->nonce = record->nonce;
        c->is_claim_open = true;
        memcpy(c->id, record->holder, sizeof c->id);
    }
    /* A new epoch that we had asked for, and were not told of. */
    if (c->has_sessions && reply->is_ours && record->held && record->epoch > c->epoch &&
        strcmp(record->holder, c->id) == 0 && !session_is_over(c))
        c->epoch = c->had_epoch = record->epoch;
    if (!reply->found || !is_of_our_mandate(c, record)) {
        if (reply->found && record->done)
            tell_done_by(c, record);
        end(c, false);
    } else if (record->done) {
        end(c, true);
    } else if (record->held && c->has_sessions && session_is_over(c)) {
        settle_later(c, GAVEL_ERR_TIMEOUT); /* it is about to end, or to be closed by our release after all */
    } else if (record->held && c->now < c->settle_until) {
        stop_send_release(c);
    } else if (record->held) {
        settle_later(c, GAVEL_ERR_TIMEOUT);
    } else {
        end(c, false); /* released, but not as done */
    }
}
