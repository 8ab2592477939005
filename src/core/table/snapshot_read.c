/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads what snapshot_write.c writes. Each message is checked as if somebody
 * meant harm; at the end everything is written again and compared, so only
 * bytes that we would have written are taken.
 */

#include "base/record.h"
#include "core/table/step.h"

#include <stdlib.h>

/* Whether a text that was read may stand in the table. */
static bool is_name(const char *name) { return name_check("name", name, NULL) == GAVEL_OK; }
static bool is_text(const char *text) { return !text[0] || is_name(text); }
static bool is_sound_process(const Gavel__Process *process)
{
    return !process ||
           (process->pid > 0 && strlen(process->boot_id) < sizeof((struct table_process *)NULL)->boot_id);
}

static enum gavel_status read_session(struct table *table, const Gavel__Session *shown)
{
    struct table_session *session;

    if (shown->session == 0 || table->session_count >= TABLE_SESSIONS_MAX ||
        table_session_find_any(table, shown->session) || !is_text(shown->name) ||
        !is_sound_process(shown->process) || shown->create_revision == 0 ||
        shown->create_revision > table->revision || shown->n_results > TABLE_OPS_MAX)
        return GAVEL_ERR_STORE_DAMAGED;
    if (shown->ttl_ms < TABLE_TTL_MIN_MS || shown->ttl_ms > TABLE_TTL_MAX_MS)
        return GAVEL_ERR_STORE_DAMAGED;
    session = session_add(table, shown->session, shown->name);
    if (!session)
        return GAVEL_ERR_NO_MEMORY;
    session->ttl_ms = shown->ttl_ms;
    process_set(&session->process, shown->process);
    session->create_revision = shown->create_revision;
    session->since_wall_ms = shown->since_wall_ms;
    session->last_id = shown->last_id;
    session->principal = shown->principal;
    session->results = calloc(shown->n_results > 0 ? shown->n_results : 1, sizeof *session->results);
    if (!session->results)
        return GAVEL_ERR_NO_MEMORY;
    for (size_t i = 0; i < shown->n_results; i++)
        session->results[i] = (struct table_result){
            .status = (enum gavel_status)shown->results[i]->status,
            .revision = shown->results[i]->revision,
            .version = shown->results[i]->version,
            .epoch = shown->results[i]->epoch,
            .why = "",
        };
    session->result_count = shown->n_results;
    session_changed(table, session);
    if (shown->is_ending)
        session_set_ending(table, session, shown->ending);
    return GAVEL_OK;
}

static enum gavel_status read_candidate(struct table *table, struct table_group *group,
                                        const Gavel__Candidate *shown)
{
    const struct table_candidate *before = TAILQ_LAST(&group->candidates, table_candidates);
    struct table_session *session =
        shown->session != 0 ? table_session_find_any(table, shown->session) : NULL;
    struct table_candidate *candidate;

    if (!is_name(shown->id) || !is_text(shown->address) || shown->metadata.len > TABLE_METADATA_BYTES_MAX ||
        !is_sound_process(shown->process) || table_candidate_find(group, shown->id))
        return GAVEL_ERR_STORE_DAMAGED;
    if (shown->session != 0 && (!session || session->candidate_count >= TABLE_CANDIDACIES_MAX ||
                                candidate_of_session(group, session)))
        return GAVEL_ERR_STORE_DAMAGED;
    if (shown->joined_revision > table->revision ||
        shown->joined_revision <= (before ? before->joined_revision : 0))
        return GAVEL_ERR_STORE_DAMAGED;
    candidate = candidate_new(shown->id, shown->address, shown->metadata.data, shown->metadata.len);
    if (!candidate)
        return GAVEL_ERR_NO_MEMORY;
    candidate->instance = shown->instance;
    candidate->priority = shown->priority;
    candidate->is_eligible = !shown->is_ineligible;
    candidate->is_patient = shown->is_patient;
    candidate->joined_revision = shown->joined_revision;
    candidate->since_wall_ms = shown->since_wall_ms;
    process_set(&candidate->process, shown->process);
    candidate_insert(table, group, session, candidate);
    return GAVEL_OK;
}

static bool set_texts(struct table_group *group, const Gavel__Group *shown)
{
    text_set(&group->holder, text_new(shown->holder));
    text_set(&group->address, text_new(shown->address));
    text_set(&group->successor, text_new(shown->successor));
    text_set(&group->previous_holder, text_new(shown->previous_holder));
    text_set(&group->wish_successor, text_new(shown->wish_successor));
    return group->holder && group->address && group->successor && group->previous_holder &&
           group->wish_successor;
}

static bool is_sound_group(const struct table *table, const Gavel__Group *shown)
{
    return is_name(shown->name) && is_text(shown->holder) && is_text(shown->address) &&
           is_text(shown->successor) && is_text(shown->previous_holder) && is_text(shown->wish_successor) &&
           is_sound_process(shown->process) && shown->create_revision > 0 &&
           shown->create_revision <= table->revision && shown->version <= table->revision &&
           shown->epoch <= shown->version && (!shown->is_held || shown->epoch > 0) &&
           (shown->is_held || (shown->session == 0 && shown->wish_epoch == 0)) &&
           !(shown->is_held && shown->is_done) && (!shown->is_held || shown->holder[0]) &&
           (shown->wish_epoch == 0 || shown->wish_epoch == shown->epoch) &&
           (unsigned)shown->policy <= GAVEL__POLICY__POLICY_BALANCED &&
           (unsigned)shown->last_ending <= GAVEL__ENDING__ENDING_HANDED_OVER && shown->lease_ms >= 0 &&
           shown->lease_ms <= TABLE_LEASE_MAX_MS && shown->min_mandate_ms <= TABLE_TTL_MAX_MS &&
           shown->n_candidates <= TABLE_CANDIDATES_MAX;
}

static void set_numbers(const struct table *table, struct table_group *group, const Gavel__Group *shown)
{
    group->create_revision = shown->create_revision;
    group->touched_revision = table->revision;
    group->version = shown->version;
    group->epoch = shown->epoch;
    group->is_held = shown->is_held;
    group->is_done = shown->is_done;
    group->nonce_high = shown->nonce_high;
    group->nonce_low = shown->nonce_low;
    group->lease_ms = shown->lease_ms;
    process_set(&group->process, shown->process);
    group->since_wall_ms = shown->since_wall_ms;
    group->last_ending = shown->last_ending;
    group->wish_epoch = shown->wish_epoch;
    group->wish_is_forced = shown->wish_is_forced;
    group->wish_timeout_ms = shown->wish_timeout_ms;
    group->policy = shown->policy;
    group->min_mandate_ms = shown->min_mandate_ms;
    group->preempts = shown->preempts;
}

static enum gavel_status read_group(struct table *table, const Gavel__Group *shown)
{
    struct table_group *group;
    const struct table_candidate *leader;
    enum gavel_status status = GAVEL_OK;

    if (!is_sound_group(table, shown) || table->group_count >= TABLE_GROUPS_MAX ||
        table_group_find(table, shown->name))
        return GAVEL_ERR_STORE_DAMAGED;
    group = group_new(table, shown->name);
    if (!group)
        return GAVEL_ERR_NO_MEMORY;
    set_numbers(table, group, shown);
    if (!set_texts(group, shown)) {
        group_free(table, group);
        return GAVEL_ERR_NO_MEMORY;
    }
    (void)group_insert(table, group); /* the name is free */
    for (size_t i = 0; i < shown->n_candidates && status == GAVEL_OK; i++)
        status = read_candidate(table, group, shown->candidates[i]);
    if (status != GAVEL_OK)
        return status;
    if (shown->session != 0) {
        group->session = table_session_find_any(table, shown->session);
        leader = group->session ? candidate_of_session(group, group->session) : NULL;
        if (!leader || strcmp(leader->id, group->holder) != 0)
            return GAVEL_ERR_STORE_DAMAGED;
    }
    group_changed(table, group);
    group_attend(table, group);
    balance_count(table, group);
    return GAVEL_OK;
}

static enum gavel_status read_note(struct table *table, const Gavel__Note *shown)
{
    struct table_group *group = table_group_find(table, shown->group);
    struct table_note *note;

    if (!group || group->note_count >= TABLE_NOTES_MAX || !is_name(shown->key) ||
        shown->value.len > TABLE_NOTE_BYTES_MAX || table_note_find(table, shown->group, shown->key))
        return GAVEL_ERR_STORE_DAMAGED;
    if (shown->create_revision == 0 || shown->create_revision > shown->mod_revision ||
        shown->mod_revision > table->revision || shown->epoch > group->epoch)
        return GAVEL_ERR_STORE_DAMAGED;
    note = note_add(table, group, shown->key, shown->value.data, shown->value.len);
    if (!note)
        return GAVEL_ERR_NO_MEMORY;
    note->create_revision = shown->create_revision;
    note->mod_revision = shown->mod_revision;
    note->epoch = shown->epoch;
    note_changed(table, note);
    return GAVEL_OK;
}

static enum gavel_status take_item(struct table *table, const Gavel__Item *item)
{
    switch (item->what_case) {
    case GAVEL__ITEM__WHAT_SESSION:
        return read_session(table, item->session);
    case GAVEL__ITEM__WHAT_GROUP:
        return read_group(table, item->group);
    case GAVEL__ITEM__WHAT_NOTE:
        return read_note(table, item->note);
    default:
        return GAVEL_ERR_STORE_DAMAGED;
    }
}

static enum gavel_status read_item(struct table *table, const uint8_t *bytes, size_t size)
{
    ProtobufCMessage *message = NULL;
    enum gavel_status status = message_unpack(&gavel__item__descriptor, bytes, size, &message);

    if (status != GAVEL_OK)
        return status == GAVEL_ERR_INVALID ? GAVEL_ERR_STORE_DAMAGED : status;
    status = take_item(table, (const Gavel__Item *)(const void *)message);
    protobuf_c_message_free_unpacked(message, NULL);
    return status;
}

static int by_joining(const void *a, const void *b)
{
    const struct table_candidate *first = *(struct table_candidate *const *)a;
    const struct table_candidate *second = *(struct table_candidate *const *)b;

    return (first->joined_revision > second->joined_revision) -
           (first->joined_revision < second->joined_revision);
}

/* The groups came in order of name; a session has its candidates in order of joining. */
static enum gavel_status sort_candidates(struct table *table)
{
    for (struct table_session *s = table_session_first(table); s; s = table_session_next(s)) {
        struct table_candidate **all;
        struct table_candidate *candidate;
        const size_t count = s->candidate_count;
        size_t i = 0;

        if (count < 2)
            continue;
        all = calloc(count, sizeof *all);
        if (!all)
            return GAVEL_ERR_NO_MEMORY;
        TAILQ_FOREACH(candidate, &s->candidates, in_session) {
            all[i++] = candidate;
        }
        qsort(all, count, sizeof *all, by_joining);
        TAILQ_INIT(&s->candidates);
        for (i = 0; i < count; i++)
            TAILQ_INSERT_TAIL(&s->candidates, all[i], in_session);
        free(all);
    }
    return GAVEL_OK;
}

/* Whether we would have written these very bytes: in this order, and each number in its shortest form. */
static enum gavel_status compare(const struct table *table, const uint8_t *bytes, size_t size)
{
    uint8_t *again;
    size_t again_size;
    enum gavel_status status = snapshot_messages_encode(table, 0, 0, &again, &again_size);

    if (status != GAVEL_OK)
        return status;
    if (again_size != size || memcmp(again, bytes, size) != 0)
        status = GAVEL_ERR_STORE_DAMAGED;
    free(again);
    return status;
}

enum gavel_status snapshot_messages_decode(struct table *table, const uint8_t *bytes, size_t size)
{
    enum gavel_status status = GAVEL_OK;
    size_t at = 0;

    while (status == GAVEL_OK && at < size) {
        size_t left = size - at;
        size_t length =
            left > SNAPSHOT_LENGTH_BYTES ? bytes_get(bytes + at, SNAPSHOT_LENGTH_BYTES) : SIZE_MAX;

        if (left <= SNAPSHOT_LENGTH_BYTES || length > left - SNAPSHOT_LENGTH_BYTES)
            return GAVEL_ERR_STORE_DAMAGED;
        status = read_item(table, bytes + at + SNAPSHOT_LENGTH_BYTES, length);
        at += SNAPSHOT_LENGTH_BYTES + length;
    }
    if (status == GAVEL_OK)
        status = sort_candidates(table);
    return status == GAVEL_OK && size > 0 ? compare(table, bytes, size) : status;
}
