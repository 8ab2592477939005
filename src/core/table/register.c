/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Registering: a candidate of a store says by heartbeats that it is there. Its
 * id is its own as long as it beats; when another instance may take it is for
 * the leader of the cluster to say (replaces_instance).
 */

#include "base/assert.h"
#include "core/table/step.h"

/* The same instance says something else of itself: it keeps its position. */
static void keep_position(struct step *step, struct table_candidate *old, struct table_candidate *candidate)
{
    struct table_group *group = old->group;

    ASSERT(!old->session);
    ASSERT(!candidate->session);
    ASSERT(strcmp(old->id, candidate->id) == 0);
    ASSERT(old->instance == candidate->instance);
    candidate->joined_revision = old->joined_revision;
    candidate->since_wall_ms = old->since_wall_ms;
    candidate->group = group;
    TAILQ_INSERT_AFTER(&group->candidates, old, candidate, in_group);
    TAILQ_REMOVE(&group->candidates, old, in_group);
    table_account(step->table, &old->hash, &old->weight, 0, 0);
    candidate_free(old);
    candidate_changed(step->table, candidate);
    candidate_tell(step, GAVEL__CHANGE__KIND__CHANGED, candidate, GAVEL__ENDING__ENDING_CLOSED);
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
    step_meet(step, &candidate->process);
    if (old && old->instance == registration->instance) {
        keep_position(step, old, candidate);
    } else if (old) {
        candidate_remove(step, old, GAVEL__ENDING__ENDING_EXPIRED);
        candidate_enter(step, group, candidate);
    } else {
        status = candidate_join(step, registration->group, &group, candidate);
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
