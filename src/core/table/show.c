/* SPDX-License-Identifier: Apache-2.0 */

/* What is shown of groups, candidates and notes: messages that borrow from the table. */

#include "core/table/step.h"

#include <stdlib.h>

void table_group_show(const struct table_group *group, Gavel__Group *ret_group)
{
    gavel__group__init(ret_group);
    ret_group->name = group->name;
    ret_group->create_revision = group->create_revision;
    ret_group->version = group->version;
    ret_group->epoch = group->epoch;
    ret_group->is_held = group->is_held;
    ret_group->is_done = group->is_done;
    ret_group->session = group->session ? group->session->id : 0;
    ret_group->holder = group->holder;
    ret_group->address = group->address;
    ret_group->nonce_high = group->nonce_high;
    ret_group->nonce_low = group->nonce_low;
    ret_group->lease_ms = group->lease_ms;
    ret_group->process = process_show(&group->shown);
    ret_group->since_wall_ms = group->since_wall_ms;
    ret_group->successor = group->successor;
    ret_group->wish_epoch = group->wish_epoch;
    ret_group->wish_successor = group->wish_successor;
    ret_group->wish_is_forced = group->wish_is_forced;
    ret_group->wish_timeout_ms = group->wish_timeout_ms;
    ret_group->policy = group->policy;
    ret_group->min_mandate_ms = group->min_mandate_ms;
    ret_group->preempts = group->preempts;
    ret_group->last_ending = group->last_ending;
    ret_group->previous_holder = group->previous_holder;
    ret_group->remaining_ms = -1;
}

void candidate_show(const struct table_candidate *candidate, Gavel__Candidate *ret_candidate)
{
    gavel__candidate__init(ret_candidate);
    ret_candidate->id = candidate->id;
    ret_candidate->session = candidate->session ? candidate->session->id : 0;
    ret_candidate->instance = candidate->instance;
    ret_candidate->address = candidate->address;
    ret_candidate->priority = candidate->priority;
    ret_candidate->is_ineligible = !candidate->is_eligible;
    ret_candidate->is_patient = candidate->is_patient;
    ret_candidate->metadata.data = candidate->metadata;
    ret_candidate->metadata.len = candidate->metadata_size;
    ret_candidate->joined_revision = candidate->joined_revision;
    ret_candidate->since_wall_ms = candidate->since_wall_ms;
    ret_candidate->process = process_show(&candidate->shown);
}

enum gavel_status table_candidates_show(const struct table_group *group, Gavel__Candidate **ret_candidates,
                                        size_t *ret_count)
{
    Gavel__Candidate *shown = calloc(group->candidate_count > 0 ? group->candidate_count : 1, sizeof *shown);
    const struct table_candidate *candidate;
    size_t count = 0;

    if (!shown)
        return GAVEL_ERR_NO_MEMORY;
    TAILQ_FOREACH(candidate, &group->candidates, in_group) {
        candidate_show(candidate, &shown[count++]);
    }
    *ret_candidates = shown;
    *ret_count = count;
    return GAVEL_OK;
}

void table_note_show(const struct table_note *note, Gavel__Note *ret_note)
{
    gavel__note__init(ret_note);
    ret_note->group = note->group->name;
    ret_note->key = note->key;
    ret_note->value.data = note->value;
    ret_note->value.len = note->value_size;
    ret_note->create_revision = note->create_revision;
    ret_note->mod_revision = note->mod_revision;
    ret_note->epoch = note->epoch;
}
