/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The second half of a snapshot: sessions, groups and notes as messages Item,
 * each with its length (4) before it, in this order and each in its own.
 */

#include "table/step.h"

#include <stdlib.h>

/* Room for what one message borrows; large, so on the heap. */
struct scratch {
    Gavel__Item item;
    Gavel__Session session;
    Gavel__Group group;
    Gavel__Note note;
    Gavel__Result results[TABLE_OPS_MAX];
    Gavel__Result *result_pointers[TABLE_OPS_MAX];
    Gavel__Candidate candidates[TABLE_CANDIDATES_MAX];
    Gavel__Candidate *candidate_pointers[TABLE_CANDIDATES_MAX];
};

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
    TAILQ_FOREACH(candidate, &group->candidates, in_group)
    {
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
        show_session(s, scratch);
        status = put_item(scratch, out);
    }
    for (struct table_group *g = table_group_from(table, ""); g && status == GAVEL_OK;
         g = table_group_next(g)) {
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
    struct scratch *scratch = malloc(sizeof *scratch);
    enum gavel_status status = GAVEL_ERR_NO_MEMORY;

    out.bytes = malloc(out.capacity);
    if (scratch && out.bytes)
        status = put_all(table, scratch, &out);
    if (status == GAVEL_OK)
        status = make_room(&out, behind);
    free(scratch);
    if (status != GAVEL_OK) {
        free(out.bytes);
        return status;
    }
    *ret_bytes = out.bytes;
    *ret_size = out.size - before;
    return GAVEL_OK;
}
