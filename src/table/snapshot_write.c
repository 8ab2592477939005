/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The second half of a snapshot: sessions, groups and notes as messages Item,
 * each with its length (4) before it, in this order and each in its own.
 */

#include "base/assert.h"
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

/* Adds to *size, and writes if there are bytes to write to. */
static void put_item(const struct scratch *scratch, uint8_t *bytes, size_t *size)
{
    size_t length = gavel__item__get_packed_size(&scratch->item);

    if (bytes) {
        bytes_put(bytes + *size, length, SNAPSHOT_LENGTH_BYTES);
        gavel__item__pack(&scratch->item, bytes + *size + SNAPSHOT_LENGTH_BYTES);
    }
    *size += SNAPSHOT_LENGTH_BYTES + length;
}

/* All messages; how long they are together. With bytes NULL only that. */
static size_t put_all(const struct table *table, struct scratch *scratch, uint8_t *bytes)
{
    size_t size = 0;

    for (struct table_session *s = table_session_first(table); s; s = table_session_next(s)) {
        show_session(s, scratch);
        put_item(scratch, bytes, &size);
    }
    for (struct table_group *g = table_group_from(table, ""); g; g = table_group_next(g)) {
        show_group(g, scratch);
        put_item(scratch, bytes, &size);
    }
    for (struct table_group *g = table_group_from(table, ""); g; g = table_group_next(g)) {
        if (g->note_count == 0)
            continue;
        for (struct table_note *n = table_note_from(table, g, ""); n; n = table_note_next(n)) {
            show_note(n, scratch);
            put_item(scratch, bytes, &size);
        }
    }
    return size;
}

enum gavel_status snapshot_messages_encode(const struct table *table, size_t before, size_t behind,
                                           uint8_t **ret_bytes, size_t *ret_size)
{
    struct scratch *scratch = malloc(sizeof *scratch);
    uint8_t *bytes;
    size_t size;

    if (!scratch)
        return GAVEL_ERR_NO_MEMORY;
    size = put_all(table, scratch, NULL);
    bytes = malloc(before + size + behind);
    if (!bytes) {
        free(scratch);
        return GAVEL_ERR_NO_MEMORY;
    }
    ASSERT(put_all(table, scratch, bytes + before) == size);
    free(scratch);
    *ret_bytes = bytes;
    *ret_size = size;
    return GAVEL_OK;
}
