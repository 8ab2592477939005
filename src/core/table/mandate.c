/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mandates by lease, as every store keeps them (base/request.h): claimed at a
 * version, renewed and released by a nonce. And wishes, which concern the
 * mandates of sessions as well.
 */

#include "base/assert.h"
#include "base/planted.h"
#include "core/table/step.h"

static const char not_held[] = "the mandate is not held as the call says";

/*
 * Whether the group is as whoever claims has seen it. A mandate whose holder died is over, whether a node has
 * written that down or not: who saw the death by itself, and claims at the version of that mandate (its
 * epoch), does not come too late because the node was faster.
 */
static bool is_as_expected(const struct table_group *group, uint64_t version)
{
    if (!group)
        return version == 0;
    return group->version == version ||
           (!group->is_held && group->last_ending == GAVEL__ENDING__ENDING_DEAD && version != 0 &&
            group->epoch == version);
}

enum gavel_status mandate_claim(struct step *step, const Gavel__Claim *claim)
{
    struct table_group *group = table_group_find(step->table, claim->group);
    enum gavel_status status = GAVEL_OK;
    char *holder;
    char *address;

    if (group && group->is_done)
        return step_refuse(step, GAVEL_ERR_DONE, "the work of the group is done for good");
    if (group && group->is_held && group->session)
        return step_refuse(step, GAVEL_ERR_CONFLICT, "the group is led by a candidate with a session");
    if (!is_as_expected(group, claim->expected_version))
        return step_refuse(step, GAVEL_ERR_CONFLICT, "the claim came too late: the group has changed");
    status = election_pass(step, claim->epoch_at_least);
    if (status != GAVEL_OK)
        return status;
    if (!table_has_room(step->table, strlen(claim->holder) + strlen(claim->address)))
        return step_refuse(step, GAVEL_ERR_STORE_FULL, "the table of the cluster is full");
    holder = text_new(claim->holder);
    address = text_new(claim->address);
    if (!holder || !address)
        status = GAVEL_ERR_NO_MEMORY;
    if (status == GAVEL_OK && !group)
        status = group_create(step, claim->group, &group);
    if (status != GAVEL_OK) {
        text_drop(holder);
        text_drop(address);
        return status;
    }
    if (group->is_held)
        election_end(step, group, GAVEL__ENDING__ENDING_LAPSED, text_new(""));
    group->session = NULL;
    group->nonce_high = claim->nonce_high;
    group->nonce_low = claim->nonce_low;
    group->lease_ms = claim->lease_ms;
    process_set(&group->process, claim->process);
    step_meet(step, &group->process);
    election_begin(step, group, holder, address);
    group_settle(step, group, NULL);
    ASSERT(group->is_held);
    ASSERT(!group->session);
    ASSERT(group->epoch > claim->epoch_at_least || PLANTED(EPOCH_AGAIN) || PLANTED(REMOVAL_FORGETS_EPOCH));
    return GAVEL_OK;
}

static bool is_holder(const struct table_group *group, const char *holder, uint64_t nonce_high,
                      uint64_t nonce_low, uint64_t epoch)
{
    return group && group->is_held && !group->session && group->nonce_high == nonce_high &&
           group->nonce_low == nonce_low && (epoch == 0 || epoch == group->epoch) &&
           strcmp(group->holder, holder) == 0;
}

/* Renewals are for the leader of the cluster to remember; the log has them only if the lease becomes
 * another. */
enum gavel_status mandate_renew(struct step *step, const Gavel__Renew *renew)
{
    struct table_group *group = table_group_find(step->table, renew->group);

    if (!is_holder(group, renew->holder, renew->nonce_high, renew->nonce_low, renew->epoch))
        return step_refuse(step, GAVEL_ERR_NOT_HOLDER, not_held);
    if (group->lease_ms == renew->lease_ms)
        return GAVEL_OK;
    group->lease_ms = renew->lease_ms;
    group_settle(step, group, NULL);
    return GAVEL_OK;
}

enum gavel_status mandate_release(struct step *step, const Gavel__Release *release)
{
    struct table_group *group = table_group_find(step->table, release->group);
    char *successor;

    if (release->is_dead) {
        if (!group || !group->is_held || group->session || group->epoch != release->epoch)
            return step_refuse(step, GAVEL_ERR_NOT_HOLDER, not_held);
    } else if (!is_holder(group, release->holder, release->nonce_high, release->nonce_low, release->epoch)) {
        return step_refuse(step, GAVEL_ERR_NOT_HOLDER, not_held);
    }
    successor = release->successor[0] ? text_new(release->successor) : text_share(group->wish_successor);
    if (!successor)
        return GAVEL_ERR_NO_MEMORY;
    election_end(step, group, release->is_dead ? GAVEL__ENDING__ENDING_DEAD : GAVEL__ENDING__ENDING_RELEASED,
                 successor);
    if (release->is_done)
        election_finish(step, group);
    group_settle(step, group, NULL);
    return GAVEL_OK;
}

static enum gavel_status end_wish(struct step *step, struct table_group *group)
{
    Gavel__Change over = step_change(GAVEL__CHANGE__KIND__WISH_OVER, group);

    ASSERT(group->is_held);
    if (group->wish_epoch == 0)
        return GAVEL_OK;
    ASSERT(group->wish_epoch == group->epoch);
    over.epoch = group->epoch;
    over.holder = group->holder;
    over.successor = group->wish_successor;
    over.session = group->session ? group->session->id : 0;
    step_tell(step, &over);
    election_drop_wish(group);
    group_settle(step, group, NULL);
    return GAVEL_OK;
}

/* A named successor of a session mandate is granted the mandate by us, so it must be there. */
static enum gavel_status check_successor(struct step *step, const struct table_group *group,
                                         const char *successor)
{
    const struct table_candidate *candidate;

    if (!group->session || !successor[0])
        return GAVEL_OK;
    candidate = table_candidate_find(group, successor);
    if (!candidate)
        return step_refuse(step, GAVEL_ERR_NOT_FOUND, "the group has no such candidate");
    if (candidate_leads(candidate))
        return step_refuse(step, GAVEL_ERR_STATE, "that candidate leads already");
    if (!candidate->is_eligible)
        return step_refuse(step, GAVEL_ERR_STATE, "that candidate is not eligible");
    return GAVEL_OK;
}

enum gavel_status mandate_wish(struct step *step, const Gavel__Wish *wish)
{
    struct table_group *group = table_group_find(step->table, wish->group);
    Gavel__Change wished;
    enum gavel_status status;
    char *successor;

    if (!group || !group->is_held || group->epoch != wish->epoch)
        return step_refuse(step, GAVEL_ERR_NOT_HOLDER, not_held);
    if (wish->is_over)
        return end_wish(step, group);
    status = check_successor(step, group, wish->successor);
    if (status != GAVEL_OK)
        return status;
    if (group->wish_epoch == wish->epoch && group->wish_is_forced == wish->is_forced &&
        group->wish_timeout_ms == wish->timeout_ms && strcmp(group->wish_successor, wish->successor) == 0)
        return GAVEL_OK;
    successor = text_new(wish->successor);
    if (!successor)
        return GAVEL_ERR_NO_MEMORY;
    group->wish_epoch = wish->epoch;
    group->wish_is_forced = wish->is_forced;
    group->wish_timeout_ms = wish->timeout_ms;
    text_set(&group->wish_successor, successor);
    wished = step_change(GAVEL__CHANGE__KIND__WISHED, group);
    wished.epoch = group->epoch;
    wished.holder = group->holder;
    wished.successor = group->wish_successor;
    wished.is_forced = group->wish_is_forced;
    wished.session = group->session ? group->session->id : 0;
    step_tell(step, &wished);
    if (PLANTED(WISH_ENDS_AT_ONCE))
        election_end(step, group, GAVEL__ENDING__ENDING_HANDED_OVER, text_share(group->wish_successor));
    group_settle(step, group, NULL);
    return GAVEL_OK;
}

/* The version fences it: one that was sent twice must not undo the success that came in between. */
enum gavel_status mandate_reopen(struct step *step, const Gavel__Reopen *reopen)
{
    struct table_group *group = table_group_find(step->table, reopen->group);
    Gavel__Change reopened;

    if (!group || !group->is_done || group->version != reopen->expected_version)
        return step_refuse(step, GAVEL_ERR_CONFLICT, "the group is not done, or has changed");
    ASSERT(!group->is_held);
    ASSERT(!group->session);
    group->is_done = false;
    group->version = step->revision;
    reopened = step_change(GAVEL__CHANGE__KIND__REOPENED, group);
    reopened.epoch = group->epoch;
    step_tell(step, &reopened);
    group_settle(step, group, NULL);
    return GAVEL_OK;
}

/* Of a vacant group: whoever was named to claim it has not come. */
enum gavel_status mandate_lapse(struct step *step, const Gavel__Lapse *lapse)
{
    struct table_group *group = table_group_find(step->table, lapse->group);

    if (!group || group->epoch != lapse->epoch || (group->is_held && group->session))
        return step_refuse(step, GAVEL_ERR_NOT_HOLDER, not_held);
    if (group->is_done || !election_has_waiting(group))
        return step_refuse(step, GAVEL_ERR_STATE, "no candidate with a session waits");
    if (group->is_held)
        election_end(step, group, GAVEL__ENDING__ENDING_LAPSED, text_share(group->wish_successor));
    else
        text_set(&group->successor, text_new(""));
    group_settle(step, group, NULL);
    return GAVEL_OK;
}
