/* SPDX-License-Identifier: Apache-2.0 */

#include "core/session/marks.h"

#include "base/assert.h"
#include "base/planted.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

void marks_init(struct marks *marks, struct silence *silence) { *marks = (struct marks){.silence = silence}; }

void marks_done(struct marks *marks)
{
    free(marks->heard);
    free(marks->made);
    free(marks->sessions);
    *marks = (struct marks){0};
}

static uint64_t newest(const struct marks *marks) { return marks->base + marks->made_count; }

uint64_t marks_next(const struct marks *marks) { return newest(marks) + 1; }

static struct marks_voter *find(const struct marks *marks, uint64_t id)
{
    for (size_t i = 0; i < MARKS_VOTERS_MAX; i++)
        if (marks->voters[i].id == id)
            return (struct marks_voter *)(uintptr_t)&marks->voters[i];
    return NULL;
}

/* ---- the term ---- */

/* From here on: what is answered before was heard by now. */
static void begin(struct marks *marks, gavel_ns now)
{
    struct silence *silence = marks->silence;

    marks->is_making = true;
    marks->base = 0;
    marks->base_at = marks->made_at = now;
    marks->made_count = marks->session_count = marks->heard_count = 0;
    silence->held.term = marks->term;
    silence->held.number = 0;
    silence->held.at = now;
    silence->is_own = true;
    silence->answered = 0;
}

void marks_open(struct marks *marks, gavel_ns now, uint64_t term, bool is_making)
{
    struct silence *silence = marks->silence;
    const struct silence_past *past;

    ASSERT(!marks->is_open);
    ASSERT(term >= marks->term);
    marks->is_open = true;
    silence_led(silence, term);
    if (term == marks->term && marks->is_making)
        return; /* nobody else has answered meanwhile */
    past = silence_before(silence, term);
    marks->has_anchor = past->kind == SILENCE_HOLDS && past->held_term == silence->held.term;
    marks->anchor = silence->held;
    marks->term = term;
    marks->opened_at = now;
    marks->is_making = false;
    memset(marks->voters, 0, sizeof marks->voters);
    if (!marks->has_anchor)
        silence_clear(silence);
    silence->held = (struct silence_held){.floor = now};
    silence->is_own = false;
    if (is_making)
        begin(marks, now);
}

void marks_begin(struct marks *marks, gavel_ns now)
{
    ASSERT(marks->is_open);
    ASSERT(!marks->is_making);
    marks->has_anchor = false;
    silence_clear(marks->silence);
    marks->silence->held.floor = now;
    begin(marks, now);
}

void marks_close(struct marks *marks, gavel_ns now, uint64_t config)
{
    if (marks->is_open && marks->is_making && marks->heard_count > 0)
        marks_make(marks, now, config); /* what was heard in it must not be taken for marked later on */
    marks->is_open = false;
}

/* ---- making ---- */

/* Room for one more; false: no memory. */
static bool make_room(void **array, size_t count, size_t *capacity, size_t size)
{
    size_t larger = *capacity > 0 ? 2 * *capacity : FIRST_CAPACITY;
    void *grown;

    if (count < *capacity)
        return true;
    grown = realloc(*array, larger * size);
    if (!grown)
        return false;
    *array = grown;
    *capacity = larger;
    return true;
}

uint64_t marks_hear(struct marks *marks, uint64_t revision)
{
    ASSERT(marks->is_open);
    ASSERT(marks->is_making);
    ASSERT(revision != 0);
    if (marks->heard_count == SILENCE_SESSIONS_MAX ||
        !make_room((void **)&marks->heard, marks->heard_count, &marks->heard_capacity, sizeof *marks->heard))
        return 0;
    marks->heard[marks->heard_count++] = revision;
    return newest(marks) + 1;
}

gavel_ns marks_due_at(const struct marks *marks)
{
    if (!marks->is_open || !marks->is_making || marks->heard_count == 0)
        return NEVER;
    return marks->heard_count > SILENCE_SESSIONS_MAX / 2 ? 0 : marks->made_at + MARKS_PACE;
}

static int compare(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a;
    uint64_t second = *(const uint64_t *)b;

    return (first > second) - (first < second);
}

/* The oldest are left out, down to what one message has room for. */
static void leave_out(struct marks *marks, size_t marks_max, size_t sessions_max)
{
    size_t out = 0;
    size_t sessions = 0;

    while (marks->made_count - out > marks_max || marks->session_count - sessions > sessions_max) {
        marks->base_at = marks->made[out].at;
        sessions += marks->made[out++].count;
    }
    marks->base += out;
    marks->made_count -= out;
    marks->session_count -= sessions;
    memmove(marks->made, marks->made + out, marks->made_count * sizeof *marks->made);
    memmove(marks->sessions, marks->sessions + sessions, marks->session_count * sizeof *marks->sessions);
}

void marks_make(struct marks *marks, gavel_ns now, uint64_t config)
{
    struct silence *silence = marks->silence;
    size_t count = 0;
    bool has_room =
        make_room((void **)&marks->made, marks->made_count, &marks->made_capacity, sizeof *marks->made);

    ASSERT(marks->heard_count > 0);
    ASSERT(silence->held.term == marks->term);
    qsort(marks->heard, marks->heard_count, sizeof *marks->heard, compare);
    for (size_t i = 0; i < marks->heard_count; i++)
        if (i == 0 || marks->heard[i] != marks->heard[i - 1])
            marks->heard[count++] = marks->heard[i];
    for (size_t i = 0; i < count; i++) {
        silence_note(silence, now, marks->heard[i], now);
        has_room = has_room && make_room((void **)&marks->sessions, marks->session_count + i,
                                         &marks->session_capacity, sizeof *marks->sessions);
        if (has_room)
            marks->sessions[marks->session_count + i] = marks->heard[i];
    }
    if (has_room) {
        marks->made[marks->made_count++] = (struct marks_made){.at = now, .count = count};
        marks->session_count += count;
    } else { /* others begin after it */
        marks->base += marks->made_count + 1;
        marks->base_at = now;
        marks->made_count = marks->session_count = 0;
    }
    marks->heard_count = 0;
    marks->made_at = now;
    silence->held.number = newest(marks);
    silence->held.at = now;
    silence->held.config = config;
    if (marks->made_count > 2 * SILENCE_MARKS_MAX || marks->session_count > 2 * SILENCE_SESSIONS_MAX)
        leave_out(marks, SILENCE_MARKS_MAX, SILENCE_SESSIONS_MAX);
}

/* ---- sending ---- */

static bool is_silent(const struct marks_voter *to)
{
    return to->waits_from != 0 && to->sent_at - to->waits_from >= MARKS_SILENT;
}

void marks_speaks(struct marks *marks, uint64_t voter)
{
    struct marks_voter *to = find(marks, voter);

    if (to && is_silent(to))
        to->waits_from = to->sent_at;
}

gavel_ns marks_send_at(const struct marks *marks, uint64_t voter)
{
    const struct marks_voter *to = find(marks, voter);
    uint64_t number = marks->is_making ? newest(marks) : 0;

    if (!marks->is_open)
        return NEVER;
    if (!to)
        return 0;
    if (is_silent(to))
        return to->sent_at + MARKS_SILENT;
    if (to->incarnation != 0 && (to->sent < number || to->has_begun != marks->is_making))
        return 0;
    if (to->acked < number || (!to->has_told && to->sent_at < marks->opened_at + MARKS_ASK_FOR))
        return to->sent_at + MARKS_AGAIN;
    return NEVER;
}

/* Its place; NULL: there are more than there can be. */
static struct marks_voter *place_of(struct marks *marks, uint64_t voter)
{
    struct marks_voter *place = find(marks, voter);

    if (!place)
        place = find(marks, 0);
    if (place)
        place->id = voter;
    return place;
}

static void fill(const struct marks *marks, gavel_ns now, uint64_t acked, struct marks_room *room,
                 struct silence_message *message)
{
    size_t first = acked > marks->base ? (size_t)(acked - marks->base) : 0;
    size_t begin = marks->session_count;
    size_t at = marks->made_count;

    ASSERT(acked <= newest(marks));
    /* The newest, as many as there is room for. */
    while (at > first && marks->made_count - at < SILENCE_MARKS_MAX &&
           marks->session_count - begin + marks->made[at - 1].count <= SILENCE_SESSIONS_MAX)
        begin -= marks->made[--at].count;
    message->from = marks->base + at;
    message->from_age = now - (at > 0 ? marks->made[at - 1].at : marks->base_at);
    message->mark_count = marks->made_count - at;
    message->marks = room->marks;
    for (size_t i = 0; i < message->mark_count; i++) {
        const struct marks_made *made = &marks->made[at + i];

        room->marks[i] = (struct silence_mark){
            .age = now - made->at, .count = made->count, .revisions = marks->sessions + begin};
        begin += made->count;
    }
    ASSERT(begin == marks->session_count);
}

void marks_send(struct marks *marks, gavel_ns now, uint64_t voter, uint64_t config, struct marks_room *room,
                struct silence_message *ret_message)
{
    struct marks_voter *to = place_of(marks, voter);

    ASSERT(marks->is_open);
    *ret_message = (struct silence_message){.term = marks->term, .asks = true};
    if (!to)
        return;
    ret_message->asks = !to->has_told;
    ret_message->to_incarnation = to->incarnation;
    if (marks->is_making && to->incarnation != 0) {
        ret_message->is_marking = true;
        ret_message->config = config;
        fill(marks, now, to->acked, room, ret_message);
        to->has_begun = true;
        to->sent = newest(marks);
    }
    to->sent_at = now;
    if (to->waits_from == 0)
        to->waits_from = now;
}

/* ---- what voters say ---- */

/* How long before we began it was that what it adds was heard, at least; NEVER: it adds nothing. */
static gavel_ns sure_of(const struct marks *marks, gavel_ns now, const struct silence_message *message)
{
    bool is_level = message->told_term < marks->anchor.term || (message->told_term == marks->anchor.term &&
                                                                message->told_number <= marks->anchor.number);

    if (PLANTED(OWN_MARKS_SUFFICE))
        is_level = true;
    if (message->told == SILENCE_HOLDS && is_level)
        return NEVER;
    if (message->told != SILENCE_HOLDS && message->told != SILENCE_BEGAN)
        return 0;
    return marks->opened_at - (now - silence_aged(marks->silence, message->told_age));
}

bool marks_take(struct marks *marks, gavel_ns now, uint64_t voter, uint64_t incarnation,
                const struct silence_message *message)
{
    struct marks_voter *from = find(marks, voter);

    ASSERT(message->is_answer);
    if (!marks->is_open || message->term != marks->term || !from || voter == 0 ||
        incarnation < from->incarnation)
        return false;
    if (incarnation > from->incarnation) { /* it has started again, and holds nothing */
        from->incarnation = incarnation;
        from->has_begun = false;
        from->acked = from->sent = 0;
    }
    if (marks->is_making && message->held <= newest(marks) && message->held > from->acked)
        from->acked = message->held;
    from->waits_from = from->acked < from->sent ? now : 0;
    if (message->told == SILENCE_UNTOLD || from->has_told)
        return false;
    from->has_told = true;
    from->sure = marks->has_anchor ? ns_max(sure_of(marks, now, message), 0) : 0;
    return true;
}

uint64_t marks_acked(const struct marks *marks, uint64_t voter)
{
    const struct marks_voter *found = voter != 0 ? find(marks, voter) : NULL;

    return found ? found->acked : 0;
}

gavel_ns marks_sure(const struct marks *marks, uint64_t voter)
{
    const struct marks_voter *found = voter != 0 ? find(marks, voter) : NULL;

    return found && found->has_told ? found->sure : 0;
}

void marks_learn(struct marks *marks, gavel_ns sure, uint64_t config)
{
    struct silence *silence = marks->silence;
    gavel_ns floor;

    ASSERT(marks->is_open);
    ASSERT(sure >= 0);
    if (PLANTED(SILENCE_UNUSED))
        return;
    if (!marks->has_anchor || marks->anchor.config != config)
        return;
    floor = sure == NEVER ? marks->anchor.floor : ns_max(marks->anchor.floor, marks->opened_at - sure);
    silence->held.floor = ns_min(silence->held.floor, floor);
}

void marks_answer(struct marks *marks, uint64_t number)
{
    ASSERT(marks->is_making);
    ASSERT(number <= newest(marks));
    if (number > marks->silence->answered)
        marks->silence->answered = number;
}
