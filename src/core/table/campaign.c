/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Campaigning: a session takes part in a group under one id, may say something
 * else of itself later without losing its place, and withdraws.
 */

#include "base/assert.h"
#include "base/planted.h"
#include "core/table/step.h"

#include <stdlib.h>

/* Whether what the campaign says of the group fits: anything if nobody else is there to be surprised. */
static enum gavel_status check_terms(struct step *step, const struct table_group *group, bool is_alone,
                                     const Gavel__Campaign *campaign)
{
    bool is_open = is_alone || group->policy == GAVEL__POLICY__POLICY_UNSET;

    if (is_open)
        return GAVEL_OK;
    if (campaign->policy != GAVEL__POLICY__POLICY_UNSET && campaign->policy != group->policy)
        return step_refuse(
            step, GAVEL_ERR_CONFLICT,
            "the group has another policy, and other candidates; leave \"policy\" out to take part");
    if (campaign->min_mandate_ms != 0 && campaign->min_mandate_ms != group->min_mandate_ms)
        return step_refuse(step, GAVEL_ERR_CONFLICT,
                           "the group has another minimum mandate, and other candidates");
    if (campaign->preempts && !group->preempts)
        return step_refuse(step, GAVEL_ERR_CONFLICT, "the group does not preempt, and has other candidates");
    return GAVEL_OK;
}

static void set_terms(struct table_group *group, bool is_alone, const Gavel__Campaign *campaign)
{
    if (!is_alone && group->policy != GAVEL__POLICY__POLICY_UNSET)
        return;
    if (campaign->policy != GAVEL__POLICY__POLICY_UNSET)
        group->policy = campaign->policy;
    else if (group->policy == GAVEL__POLICY__POLICY_UNSET)
        group->policy = GAVEL__POLICY__POLICY_FIRST;
    if (campaign->min_mandate_ms != 0)
        group->min_mandate_ms = campaign->min_mandate_ms;
    group->preempts = campaign->preempts;
    ASSERT(group->policy != GAVEL__POLICY__POLICY_UNSET);
}

/*
 * Whether what it says of itself fits. What takes no more than before always does: a candidate of a table
 * that is full can stand down, or stop to be patient.
 */
static bool has_room(const struct step *step, const struct table_candidate *candidate,
                     const Gavel__Campaign *campaign)
{
    size_t before = strlen(candidate->address) + candidate->metadata_size;
    size_t after = strlen(campaign->address) + campaign->metadata.len;

    if (step->version < TABLE_VERSION_0_7)
        return table_has_room(step->table, after);
    return after <= before || table_has_room(step->table, after - before);
}

/* What is said of a candidate that is there already. */
static enum gavel_status update(struct step *step, struct table_candidate *candidate,
                                const Gavel__Campaign *campaign, bool is_alone)
{
    struct table_group *group = candidate->group;
    const uint64_t before = group->hash;
    uint8_t *metadata = NULL;
    char *address;
    bool is_same =
        strcmp(candidate->address, campaign->address) == 0 && candidate->priority == campaign->priority &&
        candidate->is_eligible == !campaign->is_ineligible && candidate->is_patient == campaign->is_patient &&
        (campaign->instance == 0 || candidate->instance == campaign->instance) &&
        candidate->metadata_size == campaign->metadata.len &&
        (campaign->metadata.len == 0 ||
         memcmp(candidate->metadata, campaign->metadata.data, campaign->metadata.len) == 0);

    if (!is_same && !has_room(step, candidate, campaign))
        return step_refuse(step, GAVEL_ERR_STORE_FULL, "the table of the cluster is full");
    if (is_same) {
        set_terms(group, is_alone, campaign);
        group_changed(step->table, group);
        if (group->hash != before)
            group_settle(step, group, NULL);
        return GAVEL_OK;
    }
    address = text_new(campaign->address);
    if (!address || !bytes_copy(campaign->metadata.data, campaign->metadata.len, &metadata)) {
        text_drop(address);
        return GAVEL_ERR_NO_MEMORY;
    }
    set_terms(group, is_alone, campaign);
    text_set(&candidate->address, address);
    free(candidate->metadata);
    candidate->metadata = metadata;
    candidate->metadata_size = campaign->metadata.len;
    candidate->priority = campaign->priority;
    candidate->is_eligible = !campaign->is_ineligible;
    candidate->is_patient = campaign->is_patient;
    if (campaign->instance != 0)
        candidate->instance = campaign->instance;
    if (candidate_leads(candidate))
        text_set(&group->address, text_share(address));
    candidate_changed(step->table, candidate);
    candidate_tell(step, GAVEL__CHANGE__KIND__CHANGED, candidate, GAVEL__ENDING__ENDING_CLOSED);
    group_settle(step, group, NULL);
    return GAVEL_OK;
}

static enum gavel_status enter(struct step *step, struct table_group *group, const Gavel__Campaign *campaign,
                               bool is_alone)
{
    struct table_candidate *candidate =
        candidate_new(campaign->id, campaign->address, campaign->metadata.data, campaign->metadata.len);
    enum gavel_status status;

    if (!candidate)
        return GAVEL_ERR_NO_MEMORY;
    candidate->session = step->session;
    candidate->instance = campaign->instance;
    candidate->priority = campaign->priority;
    candidate->is_eligible = !campaign->is_ineligible;
    candidate->is_patient = campaign->is_patient;
    status = candidate_join(step, campaign->group, &group, candidate);
    if (status != GAVEL_OK) {
        candidate_free(candidate);
        return status;
    }
    set_terms(group, is_alone, campaign);
    group_settle(step, group, NULL);
    return GAVEL_OK;
}

/* Whether a candidate is the one that a client means by this number; who has not said one is any. */
static bool is_instance(const struct table_candidate *candidate, uint64_t instance)
{
    return instance == 0 || candidate->instance == 0 || candidate->instance == instance;
}

/*
 * Whoever is to hand over gets no new epoch instead: its mandate ends soon, and with a new one the wish would
 * be void.
 */
static bool may_renew(const struct table_candidate *candidate, const Gavel__Campaign *campaign)
{
    const struct table_group *group = candidate->group;

    if (campaign->renews_epoch == 0 || !group->is_held || !group->session || group->wish_epoch != 0)
        return false;
    if (PLANTED(RENEWED_FOR_ANY))
        return true;
    return candidate_leads(candidate) && group->epoch == campaign->renews_epoch && !campaign->is_ineligible;
}

enum gavel_status candidate_campaign(struct step *step, const Gavel__Campaign *campaign)
{
    struct table_group *group = table_group_find(step->table, campaign->group);
    struct table_candidate *candidate = group ? table_candidate_find(group, campaign->id) : NULL;
    bool is_alone = !group || group->candidate_count == (candidate ? 1u : 0u);
    enum gavel_status status;

    if (!step->session)
        return step_refuse(step, GAVEL_ERR_SESSION_GONE, "only an open session can campaign");
    if (candidate && candidate->session != step->session)
        return step_refuse(
            step, GAVEL_ERR_ID_IN_USE,
            "another candidate of the group has this id; choose another, or campaign again when that one is gone");
    if (candidate && !is_instance(candidate, campaign->instance))
        return step_refuse(
            step, GAVEL_ERR_ID_IN_USE,
            "another candidate of this session has this id; choose another, or campaign again when that one is gone");
    if (!candidate && group && candidate_of_session(group, step->session))
        return step_refuse(step, GAVEL_ERR_STATE, "the session takes part in the group with another id");
    if (!candidate && group && group->is_done)
        return step_refuse(step, GAVEL_ERR_DONE, "the work of the group is done for good");
    status = group ? check_terms(step, group, is_alone, campaign) : GAVEL_OK;
    if (status == GAVEL_OK)
        status = election_pass(step, campaign->epoch_at_least);
    if (status == GAVEL_OK && candidate) {
        bool renews = may_renew(candidate, campaign); /* not what may be granted right now */

        status = update(step, candidate, campaign, is_alone);
        if (status == GAVEL_OK && renews) {
            election_renew(step, group);
            group_settle(step, group, NULL);
        }
    } else if (status == GAVEL_OK) {
        status = enter(step, group, campaign, is_alone);
    }
    if (status == GAVEL_OK && step->revision > step->table->revision + 1)
        step->has_changed = true; /* the jump alone is one */
    return status;
}

/* To the end of the queue. */
static void requeue(struct step *step, struct table_candidate *candidate)
{
    ASSERT(candidate->session);
    ASSERT(!candidate_leads(candidate));
    ASSERT(candidate->joined_revision < step->revision);
    TAILQ_REMOVE(&candidate->group->candidates, candidate, in_group);
    TAILQ_INSERT_TAIL(&candidate->group->candidates, candidate, in_group);
    TAILQ_REMOVE(&candidate->session->candidates, candidate, in_session);
    TAILQ_INSERT_TAIL(&candidate->session->candidates, candidate, in_session);
    candidate->joined_revision = step->revision;
    candidate_changed(step->table, candidate);
    candidate_tell(step, GAVEL__CHANGE__KIND__CHANGED, candidate, GAVEL__ENDING__ENDING_CLOSED);
}

/* How a mandate ends that its holder gives up; it may know that it was lost before. */
static Gavel__Ending ending_of(const struct table_group *group, const Gavel__Withdraw *withdraw)
{
    if (withdraw->ending != GAVEL__ENDING__ENDING_CLOSED)
        return withdraw->ending;
    return group->wish_epoch != 0 || withdraw->successor[0] ? GAVEL__ENDING__ENDING_HANDED_OVER
                                                            : GAVEL__ENDING__ENDING_RESIGNED;
}

/* A word of one that has left, which comes late, is not that of the next one of the session. */
static bool is_meant(const struct table_candidate *candidate, const Gavel__Withdraw *withdraw)
{
    if (PLANTED(WITHDRAWS_ANOTHER))
        return true;
    return (!withdraw->id[0] || strcmp(candidate->id, withdraw->id) == 0) &&
           is_instance(candidate, withdraw->instance);
}

enum gavel_status candidate_withdraw(struct step *step, const Gavel__Withdraw *withdraw)
{
    struct table_group *group = table_group_find(step->table, withdraw->group);
    struct table_candidate *candidate = NULL;
    Gavel__Ending why = GAVEL__ENDING__ENDING_RESIGNED;
    char *successor;
    bool leads;

    if (!step->session)
        return step_refuse(step, GAVEL_ERR_SESSION_GONE, "only an open session can withdraw");
    if (group)
        candidate = candidate_of_session(group, step->session);
    if (!candidate)
        return step_refuse(step, GAVEL_ERR_NOT_FOUND, "the session is not a candidate of the group");
    if (!is_meant(candidate, withdraw))
        return step_refuse(step, GAVEL_ERR_NOT_FOUND, "another candidate of the session has taken its place");
    leads = candidate_leads(candidate);
    if (withdraw->epoch != 0 && (!leads || withdraw->epoch != group->epoch))
        return step_refuse(step, GAVEL_ERR_NOT_HOLDER, "the session does not lead with this epoch");
    if (leads) {
        successor =
            withdraw->successor[0] ? text_new(withdraw->successor) : text_share(group->wish_successor);
        if (!successor)
            return GAVEL_ERR_NO_MEMORY;
        why = ending_of(group, withdraw);
        election_end(step, group, why, successor);
    }
    if (withdraw->is_done)
        election_finish(step, group);
    if (withdraw->stays && !withdraw->is_done) {
        requeue(step, candidate);
        group_settle(step, group, candidate);
    } else {
        candidate_remove(step, candidate, why);
        group_settle(step, group, NULL);
    }
    return GAVEL_OK;
}
