/* SPDX-License-Identifier: Apache-2.0 */

#include "core/session/silence.h"

#include "base/assert.h"
#include "base/planted.h"

#include <stdlib.h>

#define PPM 1000000
enum { FIRST_CAPACITY = 64, SPARE = 1024 };

void silence_init(struct silence *silence, int drift_ppm, gavel_ns began_at)
{
    *silence = (struct silence){.drift_ppm = drift_ppm, .began_at = began_at};
}

void silence_done(struct silence *silence)
{
    free(silence->heard);
    *silence = (struct silence){0};
}

gavel_ns silence_aged(const struct silence *silence, gavel_ns age)
{
    ASSERT(age >= 0);
    ASSERT(age <= SILENCE_AGE_MAX);
    /* In microseconds: a month of them times a million fits. */
    return age / NS_PER_US * (PPM - silence->drift_ppm) / (PPM + silence->drift_ppm) * NS_PER_US;
}

/* ---- the map ---- */

static uint64_t mix(uint64_t revision) { return (revision * UINT64_C(0x9e3779b97f4a7c15)) >> 20; }

/* Where it is, or would be. */
static struct silence_heard *place_of(const struct silence *silence, uint64_t revision)
{
    size_t at = (size_t)mix(revision) & (silence->capacity - 1);

    ASSERT(revision != 0);
    while (silence->heard[at].revision != 0 && silence->heard[at].revision != revision)
        at = (at + 1) & (silence->capacity - 1);
    return &silence->heard[at];
}

/* False: no memory. */
static bool resize(struct silence *silence, size_t capacity)
{
    struct silence_heard *old = silence->heard;
    size_t old_capacity = silence->capacity;
    struct silence_heard *heard = calloc(capacity, sizeof *heard);

    if (!heard)
        return false;
    silence->heard = heard;
    silence->capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].revision != 0)
            *place_of(silence, old[i].revision) = old[i];
    free(old);
    return true;
}

void silence_clear(struct silence *silence)
{
    free(silence->heard);
    silence->heard = NULL;
    silence->capacity = silence->count = 0;
}

void silence_note(struct silence *silence, gavel_ns now, uint64_t revision, gavel_ns at)
{
    struct silence_heard *place;

    ASSERT(at <= now);
    if (2 * silence->count >= silence->capacity &&
        !resize(silence, silence->capacity > 0 ? 2 * silence->capacity : FIRST_CAPACITY)) {
        silence->held.floor = ns_max(silence->held.floor, at);
        return;
    }
    place = place_of(silence, revision);
    silence->count += place->revision == 0;
    ASSERT(silence->count < silence->capacity);
    place->at = place->revision == revision ? ns_max(place->at, at) : at;
    place->revision = revision;
}

gavel_ns silence_heard_at(const struct silence *silence, uint64_t revision)
{
    const struct silence_heard *place = silence->capacity > 0 ? place_of(silence, revision) : NULL;

    return place && place->revision == revision ? ns_max(place->at, silence->held.floor)
                                                : silence->held.floor;
}

/* A session that is not in the table yet is opened later than it was marked, so nothing is lost with it. */
void silence_forget(struct silence *silence, const struct table *table)
{
    struct silence kept = {0};

    if (silence->count <= 2 * table->session_count + SPARE || !resize(&kept, silence->capacity))
        return;
    for (struct table_session *session = table_session_first(table); session;
         session = table_session_next(session)) {
        const struct silence_heard *place = place_of(silence, session->create_revision);

        if (place->revision == 0)
            continue;
        *place_of(&kept, place->revision) = *place;
        kept.count++;
    }
    ASSERT(kept.count <= silence->count);
    free(silence->heard);
    silence->heard = kept.heard;
    silence->count = kept.count;
}

/* ---- what is held ---- */

void silence_led(struct silence *silence, uint64_t term)
{
    ASSERT(term >= silence->led_term);
    if (term == silence->led_term)
        return;
    silence->led_before = silence->led_term;
    silence->led_term = term;
}

const struct silence_past *silence_before(struct silence *silence, uint64_t term)
{
    struct silence_past *past = &silence->past;
    uint64_t led = silence->led_term == term ? silence->led_before : silence->led_term;

    ASSERT(silence->led_term <= term);
    if (past->term == term)
        return past;
    ASSERT(past->term < term);
    ASSERT(silence->held.term < term);
    if (PLANTED(UNMARKED_UNSEEN))
        led = 0;
    *past = (struct silence_past){.term = term, .kind = SILENCE_BEGAN, .at = silence->began_at};
    if (led > silence->held.term) {
        past->kind = SILENCE_BLIND; /* we followed somebody whose marks we do not have */
    } else if (silence->held.term != 0) {
        past->kind = SILENCE_HOLDS;
        past->held_term = silence->held.term;
        past->held_number = silence->is_own ? silence->answered : silence->held.number;
        past->at = silence->held.at;
    }
    if (PLANTED(RESTART_KNOWS))
        past->kind = past->kind == SILENCE_BEGAN ? SILENCE_HOLDS : past->kind;
    return past;
}

/* It does not hold what the message goes on from. */
static void begin(struct silence *silence, gavel_ns now, const struct silence_message *message)
{
    struct silence_held *held = &silence->held;
    bool has_missed = true;

    if (PLANTED(MARK_MISSED))
        has_missed = held->term == 0;
    if (has_missed) {
        silence_clear(silence);
        held->floor = now - silence_aged(silence, message->from_age);
    }
    held->term = message->term;
    held->number = message->from;
    held->at = now;
    silence->is_own = false;
}

void silence_take(struct silence *silence, gavel_ns now, const struct silence_message *message)
{
    struct silence_held *held = &silence->held;
    bool goes_on = held->term == message->term && !silence->is_own && held->number >= message->from;

    ASSERT(!message->is_answer);
    ASSERT(message->term >= silence->led_term);
    (void)silence_before(silence, message->term);
    if (!message->is_marking)
        return;
    if (!goes_on)
        begin(silence, now, message);
    for (size_t i = 0; i < message->mark_count; i++) {
        const struct silence_mark *mark = &message->marks[i];
        gavel_ns at = now - silence_aged(silence, mark->age);

        if (message->from + i + 1 <= held->number)
            continue;
        for (size_t k = 0; k < mark->count; k++)
            silence_note(silence, now, mark->revisions[k], at);
        held->number = message->from + i + 1;
        held->at = now;
    }
    /* An old message that comes late does not bring an old configuration back. */
    if (message->from + message->mark_count >= held->number)
        held->config = message->config;
}
