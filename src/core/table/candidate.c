/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Candidates of groups: those with a session, who campaign and are granted the
 * mandate, and those of a store, who register by heartbeats and claim it.
 */

#include "base/assert.h"
#include "core/table/step.h"

#include <stdlib.h>

enum { CANDIDATE_WEIGHT = 128 };

struct table_candidate *table_candidate_find(const struct table_group *group, const char *id)
{
    struct table_candidate *candidate;

    TAILQ_FOREACH(candidate, &group->candidates, in_group) {
        if (strcmp(candidate->id, id) == 0)
            return candidate;
    }
    return NULL;
}

struct table_candidate *candidate_of_session(const struct table_group *group,
                                             const struct table_session *session)
{
    struct table_candidate *candidate;

    TAILQ_FOREACH(candidate, &group->candidates, in_group) {
        if (candidate->session == session)
            return candidate;
    }
    return NULL;
}

bool candidate_leads(const struct table_candidate *candidate)
{
    return candidate->session && candidate->group->is_held && candidate->group->session == candidate->session;
}

struct table_candidate *candidate_new(const char *id, const char *address, const uint8_t *metadata,
                                      size_t metadata_size)
{
    struct table_candidate *candidate = calloc(1, sizeof *candidate);

    if (!candidate)
        return NULL;
    candidate->id = text_new(id);
    candidate->address = text_new(address);
    if (!candidate->id || !candidate->address || !bytes_copy(metadata, metadata_size, &candidate->metadata)) {
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
    if (candidate->is_patient) /* where none is, the digest is that of nodes of before 0.7.0 */
        hash = hash_number(hash, candidate->is_patient);
    table_account(table, &candidate->hash, &candidate->weight, hash_mix(hash), weight);
}

void candidate_insert(struct table *table, struct table_group *group, struct table_session *session,
                      struct table_candidate *candidate)
{
    const struct table_candidate *before = TAILQ_LAST(&group->candidates, table_candidates);

    if (before)
        ASSERT(before->joined_revision <= candidate->joined_revision);
    candidate->group = group;
    candidate->session = session;
    TAILQ_INSERT_TAIL(&group->candidates, candidate, in_group);
    group->candidate_count++;
    if (session) {
        TAILQ_INSERT_TAIL(&session->candidates, candidate, in_session);
        session->candidate_count++;
    }
    candidate_changed(table, candidate);
}

void candidate_tell(struct step *step, Gavel__Change__Kind kind, const struct table_candidate *candidate,
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
    candidate_tell(step, GAVEL__CHANGE__KIND__LEFT, candidate, why);
    ASSERT(!candidate_leads(candidate));
    ASSERT(candidate->group->candidate_count > 0);
    ASSERT(!TAILQ_EMPTY(&candidate->group->candidates));
    TAILQ_REMOVE(&candidate->group->candidates, candidate, in_group);
    candidate->group->candidate_count--;
    if (candidate->session) {
        ASSERT(candidate->session->candidate_count > 0);
        TAILQ_REMOVE(&candidate->session->candidates, candidate, in_session);
        candidate->session->candidate_count--;
    }
    table_account(step->table, &candidate->hash, &candidate->weight, 0, 0);
    candidate_free(candidate);
}

void candidate_enter(struct step *step, struct table_group *group, struct table_candidate *candidate)
{
    candidate->joined_revision = step->revision;
    candidate->since_wall_ms = step->wall_ms;
    candidate_insert(step->table, group, candidate->session, candidate);
    candidate_tell(step, GAVEL__CHANGE__KIND__JOINED, candidate, GAVEL__ENDING__ENDING_CLOSED);
}

static size_t candidacies_max(const struct step *step)
{
    return step->version < TABLE_VERSION_0_7 ? TABLE_CANDIDACIES_MAX_0_6 : TABLE_CANDIDACIES_MAX;
}

enum gavel_status candidate_join(struct step *step, const char *name, struct table_group **group,
                                 struct table_candidate *candidate)
{
    if (*group && (*group)->candidate_count >= TABLE_CANDIDATES_MAX)
        return step_refuse(step, GAVEL_ERR_STORE_FULL, "the group has reached its limit of candidates");
    if (candidate->session && candidate->session->candidate_count >= candidacies_max(step))
        return step_refuse(step, GAVEL_ERR_STORE_FULL,
                           "the session has reached its limit of groups; open another");
    if (!table_has_room(step->table, CANDIDATE_WEIGHT + strlen(candidate->id) + strlen(candidate->address) +
                                         candidate->metadata_size))
        return step_refuse(step, GAVEL_ERR_STORE_FULL, "the table of the cluster is full");
    if (!*group) {
        enum gavel_status status = group_create(step, name, group);

        if (status != GAVEL_OK)
            return status;
    }
    candidate_enter(step, *group, candidate);
    ASSERT((*group)->candidate_count <= TABLE_CANDIDATES_MAX);
    return GAVEL_OK;
}
