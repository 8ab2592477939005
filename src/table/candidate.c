/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Candidates of groups: those with a session, who campaign and are granted the
 * mandate, and those of a store, who register by heartbeats and claim it.
 */

#include "table/step.h"

#include <stdlib.h>

enum { CANDIDATE_WEIGHT = 128 };

struct table_candidate *table_candidate_find(const struct table_group *group, const char *id)
{
    struct table_candidate *candidate;

    TAILQ_FOREACH(candidate, &group->candidates, in_group)
    {
        if (strcmp(candidate->id, id) == 0)
            return candidate;
    }
    return NULL;
}

struct table_candidate *candidate_of_session(const struct table_group *group,
                                             const struct table_session *session)
{
    struct table_candidate *candidate;

    TAILQ_FOREACH(candidate, &group->candidates, in_group)
    {
        if (candidate->session == session)
            return candidate;
    }
    return NULL;
}

bool candidate_leads(const struct table_candidate *candidate)
{
    return candidate->session && candidate->group->is_held && candidate->group->session == candidate->session;
}

/* Bytes on the heap; *ret_copy is NULL for none. False: no memory. */
static bool copy_bytes(const uint8_t *bytes, size_t size, uint8_t **ret_copy)
{
    uint8_t *copy = NULL;

    if (size > 0) {
        copy = malloc(size);
        if (!copy)
            return false;
        memcpy(copy, bytes, size);
    }
    *ret_copy = copy;
    return true;
}

struct table_candidate *candidate_new(const char *id, const char *address, const uint8_t *metadata,
                                      size_t metadata_size)
{
    struct table_candidate *candidate = calloc(1, sizeof *candidate);

    if (!candidate)
        return NULL;
    candidate->id = text_new(id);
    candidate->address = text_new(address);
    if (!candidate->id || !candidate->address || !copy_bytes(metadata, metadata_size, &candidate->metadata)) {
        candidate_free(candidate);
        return NULL;
    }
    candidate->metadata_size = metadata_size;
    return candidate;
}

void candidate_free(struct table_candidate *candidate)
{
    if (!candidate)
        return;
    text_drop(candidate->id);
    text_drop(candidate->address);
    free(candidate->metadata);
    free(candidate);
}

void candidate_changed(struct table *table, struct table_candidate *candidate)
{
    uint64_t hash = hash_string(HASH_BEGIN, candidate->group->name);
    size_t weight =
        CANDIDATE_WEIGHT + strlen(candidate->id) + strlen(candidate->address) + candidate->metadata_size;

    process_ready(&candidate->process, &candidate->shown);
    hash = hash_string(hash, candidate->id);
    hash = hash_string(hash, candidate->address);
    hash = hash_bytes(hash_number(hash, candidate->metadata_size), candidate->metadata,
                      candidate->metadata_size);
    hash = hash_number(hash, candidate->session ? candidate->session->id : 0);
    hash = hash_number(hash, candidate->instance);
    hash = hash_number(hash, (uint64_t)candidate->priority);
    hash = hash_number(hash, candidate->is_eligible);
    hash = hash_number(hash, candidate->joined_revision);
    hash = hash_number(hash, (uint64_t)candidate->since_wall_ms);
    hash = hash_process(hash, &candidate->process);
    table_account(table, &candidate->hash, &candidate->weight, hash_mix(hash), weight);
}

void candidate_insert(struct table *table, struct table_group *group, struct table_session *session,
                      struct table_candidate *candidate)
{
    candidate->group = group;
    candidate->session = session;
    TAILQ_INSERT_TAIL(&group->candidates, candidate, in_group);
    group->candidate_count++;
    if (session)
        TAILQ_INSERT_TAIL(&session->candidates, candidate, in_session);
    candidate_changed(table, candidate);
}

static void tell(struct step *step, Gavel__Change__Kind kind, const struct table_candidate *candidate,
                 Gavel__Ending why)
{
    Gavel__Change change = step_change(kind, candidate->group);

    change.holder = candidate->id;
    change.address = candidate->address;
    change.session = candidate->session ? candidate->session->id : 0;
    change.why = why;
    step_tell(step, &change);
}

void candidate_remove(struct step *step, struct table_candidate *candidate, Gavel__Ending why)
{
    tell(step, GAVEL__CHANGE__KIND__LEFT, candidate, why);
    TAILQ_REMOVE(&candidate->group->candidates, candidate, in_group);
    candidate->group->candidate_count--;
    if (candidate->session)
        TAILQ_REMOVE(&candidate->session->candidates, candidate, in_session);
    table_account(step->table, &candidate->hash, &candidate->weight, 0, 0);
    candidate_free(candidate);
}

static void requeue(struct step *step, struct table_candidate *candidate)
{
    TAILQ_REMOVE(&candidate->group->candidates, candidate, in_group);
    TAILQ_INSERT_TAIL(&candidate->group->candidates, candidate, in_group);
    TAILQ_REMOVE(&candidate->session->candidates, candidate, in_session);
    TAILQ_INSERT_TAIL(&candidate->session->candidates, candidate, in_session);
    candidate->joined_revision = step->revision;
    candidate_changed(step->table, candidate);
    tell(step, GAVEL__CHANGE__KIND__CHANGED, candidate, GAVEL__ENDING__ENDING_CLOSED);
}

static void enter(struct step *step, struct table_group *group, struct table_candidate *candidate)
{
    candidate->joined_revision = step->revision;
    candidate->since_wall_ms = step->wall_ms;
    candidate_insert(step->table, group, candidate->session, candidate);
    tell(step, GAVEL__CHANGE__KIND__JOINED, candidate, GAVEL__ENDING__ENDING_CLOSED);
}

/* Puts a new candidate into its group, which may be new as well (*group NULL). On failure it is not freed. */
static enum gavel_status join(struct step *step, const char *name, struct table_group **group,
                              struct table_candidate *candidate)
{
    if (*group && (*group)->candidate_count >= TABLE_CANDIDATES_MAX)
        return step_refuse(step, GAVEL_ERR_STORE_FULL, "the group has as many candidates as it may have");
    if (!table_has_room(step->table, CANDIDATE_WEIGHT + strlen(candidate->id) + strlen(candidate->address) +
                                         candidate->metadata_size))
        return step_refuse(step, GAVEL_ERR_STORE_FULL, "the table of the quorum is full");
    if (!*group) {
        enum gavel_status status = group_create(step, name, group);

        if (status != GAVEL_OK)
            return status;
    }
    enter(step, *group, candidate);
    return GAVEL_OK;
}

/* Whether what the campaign says of the group fits: anything if nobody else is there to be surprised. */
static enum gavel_status check_terms(struct step *step, const struct table_group *group, bool is_alone,
                                     const Gavel__Campaign *campaign)
{
    bool is_open = is_alone || group->policy == GAVEL__POLICY__POLICY_UNSET;

    if (is_open)
        return GAVEL_OK;
    if (campaign->policy != GAVEL__POLICY__POLICY_UNSET && campaign->policy != group->policy)
        return step_refuse(step, GAVEL_ERR_CONFLICT, "the group has another policy, and other candidates");
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
}

/* What is said of a candidate that is there already. */
static enum gavel_status update(struct step *step, struct table_candidate *candidate,
                                const Gavel__Campaign *campaign, bool is_alone)
{
    struct table_group *group = candidate->group;
    const uint64_t before = group->hash;
    uint8_t *metadata = NULL;
    char *address;
    bool is_same = strcmp(candidate->address, campaign->address) == 0 &&
                   candidate->priority == campaign->priority &&
                   candidate->is_eligible == !campaign->is_ineligible &&
                   candidate->metadata_size == campaign->metadata.len &&
                   (campaign->metadata.len == 0 ||
                    memcmp(candidate->metadata, campaign->metadata.data, campaign->metadata.len) == 0);

    if (!is_same && !table_has_room(step->table, strlen(campaign->address) + campaign->metadata.len))
        return step_refuse(step, GAVEL_ERR_STORE_FULL, "the table of the quorum is full");
    if (is_same) {
        set_terms(group, is_alone, campaign);
        group_changed(step->table, group);
        if (group->hash != before)
            group_settle(step, group, NULL);
        return GAVEL_OK;
    }
    address = text_new(campaign->address);
    if (!address || !copy_bytes(campaign->metadata.data, campaign->metadata.len, &metadata)) {
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
    if (candidate_leads(candidate))
        text_set(&group->address, text_share(address));
    candidate_changed(step->table, candidate);
    tell(step, GAVEL__CHANGE__KIND__CHANGED, candidate, GAVEL__ENDING__ENDING_CLOSED);
    group_settle(step, group, NULL);
    return GAVEL_OK;
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
        return step_refuse(step, GAVEL_ERR_ID_IN_USE, "another candidate of the group has this id");
    if (!candidate && group && candidate_of_session(group, step->session))
        return step_refuse(step, GAVEL_ERR_STATE, "the session takes part in the group with another id");
    if (!candidate && group && group->is_done)
        return step_refuse(step, GAVEL_ERR_DONE, "the work of the group is done for good");
    status = group ? check_terms(step, group, is_alone, campaign) : GAVEL_OK;
    if (status != GAVEL_OK)
        return status;
    if (candidate)
        return update(step, candidate, campaign, is_alone);
    candidate =
        candidate_new(campaign->id, campaign->address, campaign->metadata.data, campaign->metadata.len);
    if (!candidate)
        return GAVEL_ERR_NO_MEMORY;
    candidate->session = step->session;
    candidate->priority = campaign->priority;
    candidate->is_eligible = !campaign->is_ineligible;
    status = join(step, campaign->group, &group, candidate);
    if (status != GAVEL_OK) {
        candidate_free(candidate);
        return status;
    }
    set_terms(group, is_alone, campaign);
    group_settle(step, group, NULL);
    return GAVEL_OK;
}

enum gavel_status candidate_withdraw(struct step *step, const Gavel__Withdraw *withdraw)
{
    struct table_group *group = table_group_find(step->table, withdraw->group);
    struct table_candidate *candidate = NULL;
    Gavel__Ending why = GAVEL__ENDING__ENDING_RESIGNED;
    bool leads;

    if (!step->session)
        return step_refuse(step, GAVEL_ERR_SESSION_GONE, "only an open session can withdraw");
    if (group)
        candidate = candidate_of_session(group, step->session);
    if (!candidate)
        return step_refuse(step, GAVEL_ERR_NOT_FOUND, "the session is no candidate of the group");
    leads = candidate_leads(candidate);
    if (withdraw->epoch != 0 && (!leads || withdraw->epoch != group->epoch))
        return step_refuse(step, GAVEL_ERR_NOT_HOLDER, "the session does not lead with this epoch");
    if (leads) {
        if (group->wish_epoch != 0)
            why = GAVEL__ENDING__ENDING_HANDED_OVER;
        election_end(step, group, why, text_share(group->wish_successor));
    }
    if (withdraw->stays) {
        requeue(step, candidate);
        group_settle(step, group, candidate);
    } else {
        candidate_remove(step, candidate, why);
        group_settle(step, group, NULL);
    }
    return GAVEL_OK;
}

/* The same instance says something else of itself: it keeps its place. */
static void take_place(struct step *step, struct table_candidate *old, struct table_candidate *candidate)
{
    struct table_group *group = old->group;

    candidate->joined_revision = old->joined_revision;
    candidate->since_wall_ms = old->since_wall_ms;
    candidate->group = group;
    TAILQ_INSERT_AFTER(&group->candidates, old, candidate, in_group);
    TAILQ_REMOVE(&group->candidates, old, in_group);
    table_account(step->table, &old->hash, &old->weight, 0, 0);
    candidate_free(old);
    candidate_changed(step->table, candidate);
    tell(step, GAVEL__CHANGE__KIND__CHANGED, candidate, GAVEL__ENDING__ENDING_CLOSED);
}

static bool is_as_registered(const struct table_candidate *old, const Gavel__Register *registration)
{
    return old->instance == registration->instance && strcmp(old->address, registration->address) == 0 &&
           old->priority == registration->priority && old->is_eligible == !registration->is_ineligible &&
           process_is(&old->process, registration->process);
}

enum gavel_status candidate_register(struct step *step, const Gavel__Register *registration)
{
    struct table_group *group = table_group_find(step->table, registration->group);
    struct table_candidate *old = group ? table_candidate_find(group, registration->id) : NULL;
    struct table_candidate *candidate;
    enum gavel_status status = GAVEL_OK;

    if (old && old->session)
        return step_refuse(step, GAVEL_ERR_ID_IN_USE, "a candidate with a session has this id");
    if (old && old->instance != registration->instance && old->instance != registration->replaces_instance)
        return step_refuse(step, GAVEL_ERR_ID_IN_USE, "another live candidate of the group has this id");
    if (old && is_as_registered(old, registration))
        return GAVEL_OK;
    candidate = candidate_new(registration->id, registration->address, NULL, 0);
    if (!candidate)
        return GAVEL_ERR_NO_MEMORY;
    candidate->instance = registration->instance;
    candidate->priority = registration->priority;
    candidate->is_eligible = !registration->is_ineligible;
    process_set(&candidate->process, registration->process);
    candidate->seen.beat_at = step_now(step);
    candidate->seen.beat_wall_ms = step->wall_ms;
    candidate->seen.beats = registration->beats;
    if (old && old->instance == registration->instance) {
        take_place(step, old, candidate);
    } else if (old) {
        candidate_remove(step, old, GAVEL__ENDING__ENDING_EXPIRED);
        enter(step, group, candidate);
    } else {
        status = join(step, registration->group, &group, candidate);
    }
    if (status != GAVEL_OK) {
        candidate_free(candidate);
        return status;
    }
    group_settle(step, group, NULL);
    return GAVEL_OK;
}

enum gavel_status candidate_leave(struct step *step, const Gavel__Leave *leave)
{
    struct table_group *group = table_group_find(step->table, leave->group);
    struct table_candidate *candidate = group ? table_candidate_find(group, leave->id) : NULL;

    if (!candidate || candidate->session || candidate->instance != leave->instance)
        return GAVEL_OK;
    candidate_remove(step, candidate, GAVEL__ENDING__ENDING_CLOSED);
    group_settle(step, group, NULL);
    return GAVEL_OK;
}
