/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/silence.h"

#include "base/assert.h"
#include "silence.pb-c.h"

#include <stdlib.h>
#include <string.h>

#define AGE_US_MAX ((uint64_t)(SILENCE_AGE_MAX / NS_PER_US))

/* Rounded down: whoever is older than is said counts as heard later than it was, never earlier. */
static uint64_t us_of(gavel_ns age)
{
    return age > 0 ? (uint64_t)(ns_min(age, SILENCE_AGE_MAX) / NS_PER_US) : 0;
}

static size_t sessions_of(const struct silence_message *message)
{
    size_t count = 0;

    for (size_t i = 0; i < message->mark_count; i++)
        count += message->marks[i].count;
    return count;
}

static void lay_marks(SilencePb__Silence *to, const struct silence_message *message)
{
    size_t at = 0;

    for (size_t i = 0; i < message->mark_count; i++) {
        const struct silence_mark *mark = &message->marks[i];
        uint64_t before = 0;

        to->counts[i] = (uint32_t)mark->count;
        to->ages_us[i] = us_of(mark->age);
        for (size_t k = 0; k < mark->count; k++) {
            ASSERT(mark->revisions[k] > before);
            to->revisions[at++] = mark->revisions[k] - before;
            before = mark->revisions[k];
        }
    }
    to->n_counts = to->n_ages_us = message->mark_count;
    to->n_revisions = at;
}

enum gavel_status silence_encode(const struct silence_message *message, uint8_t **ret_bytes, size_t *ret_size)
{
    SilencePb__Silence to = SILENCE_PB__SILENCE__INIT;
    size_t sessions = sessions_of(message);
    uint8_t *bytes = NULL;
    size_t size;

    ASSERT(message->mark_count <= SILENCE_MARKS_MAX);
    ASSERT(sessions <= SILENCE_SESSIONS_MAX);
    to.counts = calloc(message->mark_count + 1, sizeof *to.counts);
    to.ages_us = calloc(message->mark_count + 1, sizeof *to.ages_us);
    to.revisions = calloc(sessions + 1, sizeof *to.revisions);
    if (!to.counts || !to.ages_us || !to.revisions)
        goto out;
    to.term = message->term;
    to.is_answer = message->is_answer;
    to.to_incarnation = message->to_incarnation;
    to.asks = message->asks;
    to.is_marking = message->is_marking;
    to.config = message->config;
    to.from = message->from;
    to.from_age_us = us_of(message->from_age);
    lay_marks(&to, message);
    to.held = message->held;
    to.told = message->told;
    to.told_term = message->told_term;
    to.told_number = message->told_number;
    to.told_age_us = us_of(message->told_age);
    size = silence_pb__silence__get_packed_size(&to);
    bytes = malloc(size);
    if (bytes) {
        *ret_size = silence_pb__silence__pack(&to, bytes);
        ASSERT(*ret_size == size);
        *ret_bytes = bytes;
    }
out:
    free(to.counts);
    free(to.ages_us);
    free(to.revisions);
    return bytes ? GAVEL_OK : GAVEL_ERR_NO_MEMORY;
}

/* Whether the columns fit together, and each mark has growing revisions. */
static bool are_good(const SilencePb__Silence *from)
{
    size_t at = 0;

    if (from->n_counts > SILENCE_MARKS_MAX || from->n_ages_us != from->n_counts ||
        from->n_revisions > SILENCE_SESSIONS_MAX || from->from > UINT64_MAX - from->n_counts)
        return false;
    for (size_t i = 0; i < from->n_counts; i++) {
        uint64_t revision = 0;

        if (from->counts[i] == 0 || from->counts[i] > from->n_revisions - at || from->ages_us[i] > AGE_US_MAX)
            return false;
        for (size_t k = 0; k < from->counts[i]; k++, at++) {
            if (from->revisions[at] == 0 || from->revisions[at] > UINT64_MAX - revision)
                return false;
            revision += from->revisions[at];
        }
    }
    return at == from->n_revisions;
}

static bool is_good(const SilencePb__Silence *from)
{
    bool has_marks = from->is_marking || from->from != 0 || from->from_age_us != 0 || from->n_counts != 0;

    if (from->term == 0 || from->from_age_us > AGE_US_MAX || from->told_age_us > AGE_US_MAX ||
        from->told > SILENCE_BLIND || !are_good(from))
        return false;
    if (from->is_answer)
        return !has_marks && !from->asks;
    return !has_marks || from->is_marking;
}

struct memory {
    struct silence_mark marks[SILENCE_MARKS_MAX];
    uint64_t revisions[];
};

static enum gavel_status take_marks(const SilencePb__Silence *from, struct silence_message *to)
{
    struct memory *memory;
    size_t at = 0;

    if (from->n_counts == 0)
        return GAVEL_OK;
    memory = malloc(sizeof *memory + from->n_revisions * sizeof memory->revisions[0]);
    if (!memory)
        return GAVEL_ERR_NO_MEMORY;
    for (size_t i = 0; i < from->n_counts; i++) {
        uint64_t revision = 0;

        memory->marks[i] = (struct silence_mark){.age = (gavel_ns)from->ages_us[i] * NS_PER_US,
                                                 .count = from->counts[i],
                                                 .revisions = memory->revisions + at};
        for (size_t k = 0; k < from->counts[i]; k++, at++) {
            revision += from->revisions[at];
            memory->revisions[at] = revision;
        }
    }
    to->memory = memory;
    to->marks = memory->marks;
    to->mark_count = from->n_counts;
    return GAVEL_OK;
}

enum gavel_status silence_decode(const uint8_t *bytes, size_t size, struct silence_message *ret_message)
{
    SilencePb__Silence *from = silence_pb__silence__unpack(NULL, size, bytes);
    struct silence_message to;
    enum gavel_status status;

    if (!from)
        return GAVEL_ERR_INVALID;
    to = (struct silence_message){.is_answer = from->is_answer,
                                  .term = from->term,
                                  .to_incarnation = from->to_incarnation,
                                  .asks = from->asks,
                                  .is_marking = from->is_marking,
                                  .config = from->config,
                                  .from = from->from,
                                  .from_age = (gavel_ns)from->from_age_us * NS_PER_US,
                                  .held = from->held,
                                  .told = (enum silence_kind)from->told,
                                  .told_term = from->told_term,
                                  .told_number = from->told_number,
                                  .told_age = (gavel_ns)from->told_age_us * NS_PER_US};
    if (is_good(from)) {
        status = take_marks(from, &to);
    } else {
        status = GAVEL_ERR_INVALID;
    }
    silence_pb__silence__free_unpacked(from, NULL);
    if (status == GAVEL_OK)
        *ret_message = to;
    return status;
}

void silence_message_done(struct silence_message *message)
{
    free(message->memory);
    *message = (struct silence_message){0};
}
