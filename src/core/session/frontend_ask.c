/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Answers to questions: what the table has, and what only the leader knows of
 * it (how long a lease still runs, when a candidate was last heard). Answers
 * are bounded: lists come in pages.
 */
#include "core/session/frontend_internal.h"

#include "base/record.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT_USUAL 100
#define LIMIT_MAX 1000
#define NOTES_BYTES_MAX (1u << 20) /* of the values in one answer; at least one note */
#define CANDIDATES_MAX 1024
#define SILENT_MAX 16  /* they only count */
#define SILENT_TIMES 3 /* time-outs; those silent for longer are old news */

/* ---- a group ---- */

static int64_t remaining_ms(gavel_ns until, gavel_ns now)
{
    return until > now ? ms_from_ns(until - now + NS_PER_MS - 1) : 0; /* rounded up: never over too early */
}

/* "gavel", as a number: no nonce that is drawn begins like this. */
#define STAND_IN UINT64_C(0x0000006761766c65)

/* Others tell mandates apart by their epochs, and sessions by when they were opened. */
static void hide(const struct table_group *group, struct frontend_known known, Gavel__Group *shown)
{
    bool is_known = known.nonce_high == group->nonce_high && known.nonce_low == group->nonce_low;

    if (group->session && group->session->id != known.session)
        shown->session = group->session->create_revision;
    if (is_known || (group->nonce_high == 0 && group->nonce_low == 0))
        return;
    shown->nonce_high = STAND_IN;
    shown->nonce_low = group->epoch;
}

void frontend_show_group(const struct frontend *frontend, const struct table_group *group, gavel_ns now,
                         struct frontend_known known, Gavel__Group *ret_group)
{
    const struct heard_group *heard = frontend ? heard_group(&frontend->heard, group) : NULL;

    table_group_show(group, ret_group);
    hide(group, known, ret_group);
    ret_group->renewed_wall_ms =
        heard && heard->renewed_wall_ms != 0 ? heard->renewed_wall_ms : group->since_wall_ms;
    if (!group->is_held) {
        ret_group->is_expired = group->version != 0;
        ret_group->remaining_ms = 0;
        return;
    }
    if (!frontend)
        return;
    ret_group->remaining_ms = remaining_ms(group->session ? frontend_session_ends_at(frontend, group->session)
                                                          : frontend_lease_ends_at(frontend, group),
                                           now);
    /* A session mandate ends with its session, when the table says so, not before. */
    ret_group->is_expired = !group->session && ret_group->remaining_ms == 0;
}

/* Room for lists of messages; false: no memory. */
static bool make_lists(size_t count, size_t size, void **ret_items, void **ret_list)
{
    void *items = calloc(count, size);
    void *list = calloc(count, sizeof(void *));

    if (!items || !list) {
        free(items);
        free(list);
        return false;
    }
    *ret_items = items;
    *ret_list = list;
    return true;
}

/* Places for `count` groups; the first one is the whole array. */
static bool make_groups(Gavel__Answer *answer, size_t count)
{
    void *items, *list;

    if (!make_lists(count, sizeof(Gavel__Group), &items, &list))
        return false;
    answer->groups = list;
    for (size_t i = 0; i < count; i++)
        answer->groups[i] = (Gavel__Group *)items + i;
    return true;
}

static bool answer_group(const struct frontend *frontend, const struct table *table, gavel_ns now,
                         const Gavel__Ask *ask, Gavel__Answer *answer)
{
    const struct table_group *group = table_group_find(table, ask->group);

    if (!group)
        return true;
    if (!make_groups(answer, 1))
        return false;
    answer->n_groups = 1;
    frontend_show_group(frontend, group, now,
                        (struct frontend_known){ask->session, ask->nonce_high, ask->nonce_low},
                        answer->groups[0]);
    return true;
}

/* ---- candidates ---- */

/* How long it was not heard; -1 if that is not known here. */
static int64_t age_of(const struct frontend *frontend, const struct table_candidate *candidate, gavel_ns now)
{
    if (!frontend)
        return -1;
    return ms_from_ns(now - (candidate->session ? frontend_heard_at(frontend, candidate->session)
                                                : frontend_beat_at(frontend, candidate)));
}

/* Whoever knows the instance of another could leave in its name. */
static uint64_t instance_shown(const struct table_candidate *candidate, const Gavel__Ask *ask)
{
    if (candidate->instance == ask->instance)
        return candidate->instance;
    return candidate->session ? 0 : candidate->joined_revision;
}

static void add_silent(Gavel__Answer *answer, const struct table_candidate *candidate, int64_t age_ms,
                       const Gavel__Ask *ask)
{
    if (age_ms / SILENT_TIMES <= ask->timeout_ms && answer->n_silent < SILENT_MAX)
        answer->silent[answer->n_silent++] = instance_shown(candidate, ask);
}

/* Those that count move to the front of the array; returns how many they are. */
static size_t choose(const struct frontend *frontend, const struct table_group *group, gavel_ns now,
                     const Gavel__Ask *ask, Gavel__Candidate *shown, Gavel__Answer *answer)
{
    const struct table_candidate *candidate;
    size_t at = 0;
    size_t chosen = 0;

    TAILQ_FOREACH(candidate, &group->candidates, in_group) {
        int64_t age_ms = age_of(frontend, candidate, now);
        size_t from = at++;

        /* Who has a session is there as long as the session is. */
        if (!candidate->session && ask->timeout_ms > 0 && age_ms > ask->timeout_ms) {
            add_silent(answer, candidate, age_ms, ask);
            continue;
        }
        if (chosen == CANDIDATES_MAX) {
            answer->has_more = true;
            continue;
        }
        if (chosen != from)
            shown[chosen] = shown[from];
        shown[chosen].age_ms = age_ms;
        shown[chosen].instance = instance_shown(candidate, ask);
        if (candidate->session && candidate->session->id != ask->session)
            shown[chosen].session = candidate->session->create_revision; /* see hide() */
        shown[chosen++].beats = frontend ? frontend_beats(frontend, candidate) : 0;
    }
    return chosen;
}

static bool answer_candidates(const struct frontend *frontend, const struct table *table, gavel_ns now,
                              const Gavel__Ask *ask, Gavel__Answer *answer)
{
    const struct table_group *group = table_group_find(table, ask->group);
    Gavel__Candidate *shown;
    Gavel__Candidate **list;
    size_t count;

    if (!answer_group(frontend, table, now, ask, answer))
        return false;
    if (!group || group->candidate_count == 0)
        return true;
    answer->silent = calloc(SILENT_MAX, sizeof *answer->silent);
    if (!answer->silent || table_candidates_show(group, &shown, &count) != GAVEL_OK)
        return false;
    list = calloc(count, sizeof *list);
    count = list ? choose(frontend, group, now, ask, shown, answer) : 0;
    if (count == 0) {
        free(shown);
        free(list);
        return list != NULL;
    }
    for (size_t i = 0; i < count; i++)
        list[i] = &shown[i];
    answer->groups[0]->candidates = list;
    answer->groups[0]->n_candidates = count;
    return true;
}

/* ---- lists ---- */

static size_t limit_of(const Gavel__Ask *ask)
{
    if (ask->limit == 0)
        return LIMIT_USUAL;
    return ask->limit < LIMIT_MAX ? ask->limit : LIMIT_MAX;
}

static bool has_prefix(const char *string, const char *prefix)
{
    return strncmp(string, prefix, strlen(prefix)) == 0;
}

/* Where a page begins: the names that may follow are not below it. */
static const char *first_of(const Gavel__Ask *ask)
{
    return strcmp(ask->after, ask->prefix) > 0 ? ask->after : ask->prefix;
}

static bool answer_groups(const struct frontend *frontend, const struct table *table, gavel_ns now,
                          const Gavel__Ask *ask, Gavel__Answer *answer)
{
    struct table_group *group = table_group_from(table, first_of(ask));
    size_t limit = limit_of(ask);

    if (group && ask->after[0] != '\0' && strcmp(group->name, ask->after) == 0)
        group = table_group_next(group);
    if (!group || !has_prefix(group->name, ask->prefix))
        return true;
    if (!make_groups(answer, limit))
        return false;
    for (; group && has_prefix(group->name, ask->prefix); group = table_group_next(group)) {
        if (answer->n_groups == limit) {
            answer->has_more = true;
            break;
        }
        frontend_show_group(frontend, group, now, (struct frontend_known){.session = ask->session},
                            answer->groups[answer->n_groups++]);
    }
    return true;
}

static bool make_notes(Gavel__Answer *answer, size_t count)
{
    void *items, *list;

    if (!make_lists(count, sizeof(Gavel__Note), &items, &list))
        return false;
    answer->notes = list;
    for (size_t i = 0; i < count; i++)
        answer->notes[i] = (Gavel__Note *)items + i;
    return true;
}

static bool answer_note(const struct table *table, const Gavel__Ask *ask, Gavel__Answer *answer)
{
    const struct table_note *note = table_note_find(table, ask->group, ask->key);

    if (!note)
        return true;
    if (!make_notes(answer, 1))
        return false;
    answer->n_notes = 1;
    table_note_show(note, answer->notes[0]);
    return true;
}

static bool answer_notes(const struct table *table, const Gavel__Ask *ask, Gavel__Answer *answer)
{
    const struct table_group *group = table_group_find(table, ask->group);
    struct table_note *note = group ? table_note_from(table, group, first_of(ask)) : NULL;
    size_t limit = limit_of(ask);
    size_t bytes = 0;

    if (note && ask->after[0] != '\0' && strcmp(note->key, ask->after) == 0)
        note = table_note_next(note);
    if (!note || !has_prefix(note->key, ask->prefix))
        return true;
    if (!make_notes(answer, limit))
        return false;
    for (; note && has_prefix(note->key, ask->prefix); note = table_note_next(note)) {
        if (answer->n_notes == limit || (answer->n_notes > 0 && note->value_size > NOTES_BYTES_MAX - bytes)) {
            answer->has_more = true;
            break;
        }
        table_note_show(note, answer->notes[answer->n_notes++]);
        bytes += note->value_size;
    }
    return true;
}

/* ---- any ---- */

static enum gavel_status fail(Gavel__Answer *answer, uint64_t tag, enum gavel_status status,
                              const char *message)
{
    frontend_answer_done(answer);
    answer->tag = tag;
    answer->status = status;
    answer->message = (char *)(uintptr_t)message; /* only read */
    return status;
}

static const char *complaint_about(const Gavel__Ask *ask)
{
    bool is_of_group = ask->kind != GAVEL__ASK__KIND__GROUPS;

    if ((unsigned)ask->kind > GAVEL__ASK__KIND__NOTES)
        return "this kind of question is not known; is the client newer than the node?";
    if (is_of_group && name_check("group name", ask->group, NULL) != GAVEL_OK)
        return "the group name is not valid: it has 1 to 255 bytes of UTF-8 without control characters";
    if (ask->kind == GAVEL__ASK__KIND__NOTE && name_check("key", ask->key, NULL) != GAVEL_OK)
        return "the key is not valid: it has 1 to 255 bytes of UTF-8 without control characters";
    if (ask->timeout_ms < 0)
        return "the time-out is below zero";
    return NULL;
}

enum gavel_status frontend_answer(const struct frontend *frontend, const struct table *table, gavel_ns now,
                                  const Gavel__Ask *ask, Gavel__Answer *ret_answer)
{
    const char *complaint = complaint_about(ask);
    bool has_memory = true;

    gavel__answer__init(ret_answer);
    if (complaint)
        return fail(ret_answer, ask->tag, GAVEL_ERR_INVALID, complaint);
    switch (ask->kind) {
    case GAVEL__ASK__KIND__GROUP:
        has_memory = answer_group(frontend, table, now, ask, ret_answer);
        break;
    case GAVEL__ASK__KIND__CANDIDATES:
        has_memory = answer_candidates(frontend, table, now, ask, ret_answer);
        break;
    case GAVEL__ASK__KIND__GROUPS:
        has_memory = answer_groups(frontend, table, now, ask, ret_answer);
        break;
    case GAVEL__ASK__KIND__NOTE:
        has_memory = answer_note(table, ask, ret_answer);
        break;
    default:
        has_memory = answer_notes(table, ask, ret_answer);
        break;
    }
    if (!has_memory)
        return fail(ret_answer, ask->tag, GAVEL_ERR_NO_MEMORY, "the node is out of memory");
    ret_answer->tag = ask->tag;
    ret_answer->revision = table->revision;
    return GAVEL_OK;
}

void frontend_answer_done(Gavel__Answer *answer)
{
    /* The first message of a list is the array of all of them. */
    if (answer->groups) {
        Gavel__Group *first = answer->groups[0];

        if (answer->n_groups > 0 && first->candidates) {
            free(first->candidates[0]);
            free(first->candidates);
        }
        free(first);
        free(answer->groups);
    }
    if (answer->notes) {
        free(answer->notes[0]);
        free(answer->notes);
    }
    free(answer->silent);
    gavel__answer__init(answer);
}

void frontend_ask(struct frontend *frontend, gavel_ns now, struct frontend_ticket ticket,
                  const Gavel__Ask *ask)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Answer answer;

    /* A failure is in the answer. */
    (void)!frontend_answer(frontend, frontend->table, now, ask, &answer);
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ANSWER;
    frame.answer = &answer;
    frontend_reply_frame(frontend, ticket, &frame);
    frontend_answer_done(&answer);
}
