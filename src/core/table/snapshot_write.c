/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The second half of a snapshot: sessions, groups and notes as messages Item,
 * each with its length (4) before it, in this order and each in its own.
 */

#include "base/planted.h"
#include "core/table/step.h"

#include <stdlib.h>

/* What one message borrows; the arrays grow to the longest. */
struct scratch {
    Gavel__Item item;
    Gavel__Session session;
    Gavel__Group group;
    Gavel__Note note;
    Gavel__Result *results;
    Gavel__Result **result_pointers;
    size_t results_max;
    Gavel__Candidate *candidates;
    Gavel__Candidate **candidate_pointers;
    size_t candidates_max;
};

static void scratch_done(struct scratch *scratch)
{
    free(scratch->results);
    free(scratch->result_pointers);
    free(scratch->candidates);
    free(scratch->candidate_pointers);
}

static enum gavel_status make_results(struct scratch *scratch, size_t count)
{
    if (count <= scratch->results_max)
        return GAVEL_OK;
    scratch->results_max = 0;
    free(scratch->results);
    free(scratch->result_pointers);
    scratch->results = calloc(count, sizeof *scratch->results);
    scratch->result_pointers = calloc(count, sizeof *scratch->result_pointers);
    if (!scratch->results || !scratch->result_pointers)
        return GAVEL_ERR_NO_MEMORY;
    scratch->results_max = count;
    return GAVEL_OK;
}

static enum gavel_status make_candidates(struct scratch *scratch, size_t count)
{
    if (count <= scratch->candidates_max)
        return GAVEL_OK;
    scratch->candidates_max = 0;
    free(scratch->candidates);
    free(scratch->candidate_pointers);
    scratch->candidates = calloc(count, sizeof *scratch->candidates);
    scratch->candidate_pointers = calloc(count, sizeof *scratch->candidate_pointers);
    if (!scratch->candidates || !scratch->candidate_pointers)
        return GAVEL_ERR_NO_MEMORY;
    scratch->candidates_max = count;
    return GAVEL_OK;
}

static void show_session(const struct table_session *session, struct scratch *scratch)
{
    Gavel__Session *shown = &scratch->session;

    gavel__item__init(&scratch->item);
    gavel__session__init(shown);
    scratch->item.what_case = GAVEL__ITEM__WHAT_SESSION;
    scratch->item.session = shown;
    shown->session = session->id;
    shown->ttl_ms = session->ttl_ms;
    shown->name = session->name;
    shown->process = process_show(&session->shown);
    shown->create_revision = session->create_revision;
    shown->since_wall_ms = session->since_wall_ms;
    shown->last_id = session->last_id;
    shown->principal = session->principal;
    shown->is_ending = session->is_ending;
    shown->ending = session->ending;
    for (size_t i = 0; i < session->result_count; i++) {
        const struct table_result *result = &session->results[i];

        gavel__result__init(&scratch->results[i]);
        scratch->results[i].status = (uint32_t)result->status;
        scratch->results[i].revision = result->revision;
        scratch->results[i].version = result->version;
        scratch->results[i].epoch = result->epoch;
        scratch->result_pointers[i] = &scratch->results[i];
    }
    shown->n_results = session->result_count;
    if (PLANTED(SNAPSHOT_FORGETS))
        shown->n_results = 0;
    shown->results = scratch->result_pointers;
}

static void show_group(const struct table_group *group, struct scratch *scratch)
{
    const struct table_candidate *candidate;
    size_t count = 0;

    gavel__item__init(&scratch->item);
    scratch->item.what_case = GAVEL__ITEM__WHAT_GROUP;
    scratch->item.group = &scratch->group;
    table_group_show(group, &scratch->group);
    scratch->group.remaining_ms = 0; /* not kept */
    TAILQ_FOREACH(candidate, &group->candidates, in_group) {
        candidate_show(candidate, &scratch->candidates[count]);
        scratch->candidate_pointers[count] = &scratch->candidates[count];
        count++;
    }
    scratch->group.n_candidates = count;
    scratch->group.candidates = scratch->candidate_pointers;
}

static void show_note(const struct table_note *note, struct scratch *scratch)
{
    gavel__item__init(&scratch->item);
    scratch->item.what_case = GAVEL__ITEM__WHAT_NOTE;
    scratch->item.note = &scratch->note;
    table_note_show(note, &scratch->note);
}

/* Bytes that grow. */
struct out {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
};

/* Room for so many more. */
static enum gavel_status make_room(struct out *out, size_t more)
{
    size_t capacity = out->capacity;
    uint8_t *bytes;

    if (more <= capacity - out->size)
        return GAVEL_OK;
    while (more > capacity - out->size)
        capacity *= 2;
    bytes = realloc(out->bytes, capacity);
    if (!bytes)
        return GAVEL_ERR_NO_MEMORY;
    out->bytes = bytes;
    out->capacity = capacity;
    return GAVEL_OK;
}

static enum gavel_status put_item(const struct scratch *scratch, struct out *out)
{
    size_t length = gavel__item__get_packed_size(&scratch->item);
    enum gavel_status status = make_room(out, SNAPSHOT_LENGTH_BYTES + length);

    if (status != GAVEL_OK)
        return status;
    bytes_put(out->bytes + out->size, length, SNAPSHOT_LENGTH_BYTES);
    gavel__item__pack(&scratch->item, out->bytes + out->size + SNAPSHOT_LENGTH_BYTES);
    out->size += SNAPSHOT_LENGTH_BYTES + length;
    return GAVEL_OK;
}

static enum gavel_status put_all(const struct table *table, struct scratch *scratch, struct out *out)
{
    enum gavel_status status = GAVEL_OK;

    for (struct table_session *s = table_session_first(table); s && status == GAVEL_OK;
         s = table_session_next(s)) {
        status = make_results(scratch, s->result_count);
        if (status != GAVEL_OK)
            break;
        show_session(s, scratch);
        status = put_item(scratch, out);
    }
    for (struct table_group *g = table_group_from(table, ""); g && status == GAVEL_OK;
         g = table_group_next(g)) {
        status = make_candidates(scratch, g->candidate_count);
        if (status != GAVEL_OK)
            break;
        show_group(g, scratch);
        status = put_item(scratch, out);
    }
    for (struct table_note *n = note_first(table); n && status == GAVEL_OK; n = note_next(n)) {
        show_note(n, scratch);
        status = put_item(scratch, out);
    }
    return status;
}

enum gavel_status snapshot_messages_encode(const struct table *table, size_t before, size_t behind,
                                           uint8_t **ret_bytes, size_t *ret_size)
{
    /* What things weigh is about what they become as bytes: mostly it need not grow. */
    struct out out = {.size = before, .capacity = before + behind + table->bytes + 64};
    struct scratch scratch = {0};
    enum gavel_status status = GAVEL_ERR_NO_MEMORY;

    out.bytes = malloc(out.capacity);
    if (out.bytes)
        status = put_all(table, &scratch, &out);
    if (status == GAVEL_OK)
        status = make_room(&out, behind);
    scratch_done(&scratch);
    if (status != GAVEL_OK) {
        free(out.bytes);
        return status;
    }
    *ret_bytes = out.bytes;
    *ret_size = out.size - before;
    return GAVEL_OK;
}
