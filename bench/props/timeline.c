/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From records to mandates to a verdict. Intervals are closed: two mandates
 * that share a single nanosecond are two leaders at one instant.
 */
#include "bench/props/timeline.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

static struct mandate *find(struct timeline *timeline, uint32_t member, uint64_t epoch)
{
    for (size_t i = 0; i < timeline->count; i++)
        if (timeline->mandates[i].member == member && timeline->mandates[i].epoch == epoch)
            return &timeline->mandates[i];
    return NULL;
}

/* NULL if there is no room for another one. */
static struct mandate *find_or_add(struct timeline *timeline, uint32_t member, uint64_t epoch)
{
    struct mandate *mandate = find(timeline, member, epoch);

    if (mandate || timeline->count == TIMELINE_MANDATES_MAX)
        return mandate;
    mandate = &timeline->mandates[timeline->count++];
    *mandate = (struct mandate){.member = member, .epoch = epoch, .end = NEVER};
    return mandate;
}

static enum gavel_status add_beginnings(struct timeline *timeline, const struct mark *marks,
                                        size_t mark_count)
{
    for (size_t i = 0; i < mark_count; i++) {
        if (marks[i].kind != MARK_ELECTED)
            continue;
        struct mandate *mandate = find_or_add(timeline, marks[i].member, marks[i].epoch);
        if (!mandate)
            return GAVEL_ERR_INVALID;
        if (!mandate->is_elected || marks[i].at < mandate->begin)
            mandate->begin = marks[i].at;
        mandate->is_elected = true;
    }
    return GAVEL_OK;
}

static enum gavel_status add_beats(struct timeline *timeline, const struct beat *beats, size_t beat_count)
{
    for (size_t i = 0; i < beat_count; i++) {
        const struct beat *beat = &beats[i];
        if (!beat->at)
            continue;
        struct mandate *mandate = find_or_add(timeline, beat->member, beat->epoch);
        if (!mandate)
            return GAVEL_ERR_INVALID;
        mandate->first_beat = mandate->beats ? ns_min(mandate->first_beat, beat->at) : beat->at;
        mandate->last_beat = ns_max(mandate->last_beat, beat->at);
        mandate->beats++;
        timeline->beats++;
        /* An act before on_elected is work all the same. */
        if (!mandate->is_elected || mandate->first_beat < mandate->begin)
            mandate->begin = mandate->first_beat;
    }
    return GAVEL_OK;
}

/*
 * Several observers may have seen the same death, each some time after it:
 * the earliest of them is the closest bound.
 */
static void end_by_death(struct mandate *mandate, const struct mark *mark)
{
    if (mandate->how == MANDATE_OPEN || mandate->how == MANDATE_DIED)
        mandate->end = ns_min(mandate->end, mark->at);
    if (mandate->how == MANDATE_OPEN)
        mandate->how = MANDATE_DIED;
}

static void end_by_word(struct mandate *mandate, const struct mark *mark)
{
    mandate->how = MANDATE_STOPPED;
    mandate->end = mark->at;
}

static void add_ends(struct timeline *timeline, const struct mark *marks, size_t mark_count)
{
    for (size_t i = 0; i < mark_count; i++) {
        struct mandate *mandate = find(timeline, marks[i].member, marks[i].epoch);
        if (!mandate || !mandate->is_elected)
            continue;
        if (marks[i].kind == MARK_STOPPED)
            end_by_word(mandate, &marks[i]);
        else if (marks[i].kind == MARK_DEAD)
            end_by_death(mandate, &marks[i]);
    }
    /* Who was never elected has no orderly end; what it did is all there is. */
    for (size_t i = 0; i < timeline->count; i++)
        if (!timeline->mandates[i].is_elected)
            timeline->mandates[i].end = timeline->mandates[i].last_beat;
}

static int by_begin(const void *left, const void *right)
{
    const struct mandate *a = left, *b = right;

    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return a->epoch < b->epoch ? -1 : a->epoch > b->epoch;
}

static void blame(struct timeline *timeline, struct violation violation)
{
    if (timeline->violation_count < TIMELINE_VIOLATIONS_MAX)
        timeline->violations[timeline->violation_count] = violation;
    timeline->violation_count++;
}

/* Each mandate by itself: elected, and nothing done after its own end. */
static void judge_alone(struct timeline *timeline, size_t i)
{
    const struct mandate *mandate = &timeline->mandates[i];

    if (!mandate->is_elected)
        blame(timeline, (struct violation){.kind = VIOLATION_NO_MANDATE,
                                           .a = i,
                                           .b = i,
                                           .from = mandate->first_beat,
                                           .to = mandate->last_beat});
    if (mandate->last_beat > mandate->end)
        blame(
            timeline,
            (struct violation){
                .kind = VIOLATION_LATE_ACT, .a = i, .b = i, .from = mandate->last_beat, .to = mandate->end});
}

/* Two mandates, a having begun first. */
static void judge_pair(struct timeline *timeline, size_t a, size_t b)
{
    const struct mandate *first = &timeline->mandates[a], *second = &timeline->mandates[b];
    gavel_ns first_end = ns_max(first->end, first->last_beat);
    gavel_ns second_end = ns_max(second->end, second->last_beat);

    if (second->begin <= first_end)
        blame(timeline, (struct violation){.kind = VIOLATION_OVERLAP,
                                           .a = a,
                                           .b = b,
                                           .from = second->begin,
                                           .to = ns_min(first_end, second_end)});
    if (second->epoch <= first->epoch)
        blame(timeline, (struct violation){.kind = VIOLATION_EPOCH, .a = a, .b = b, .from = second->begin});
}

/* The log's own order, which no clock has a part in: epochs never go back. */
static void judge_order(struct timeline *timeline, const struct beat *beats, size_t beat_count)
{
    const struct beat *newest = NULL;

    for (size_t i = 0; i < beat_count; i++) {
        if (!beats[i].at)
            continue;
        if (newest && beats[i].epoch < newest->epoch) {
            const struct mandate *late = find(timeline, beats[i].member, beats[i].epoch);
            const struct mandate *current = find(timeline, newest->member, newest->epoch);
            ASSERT(late);
            ASSERT(current);
            blame(timeline, (struct violation){.kind = VIOLATION_ORDER,
                                               .a = (size_t)(late - timeline->mandates),
                                               .b = (size_t)(current - timeline->mandates),
                                               .from = beats[i].at,
                                               .to = newest->at});
            continue;
        }
        newest = &beats[i];
    }
}

/* What the next one saw with its own eyes, which needs no arithmetic. */
static void judge_sightings(struct timeline *timeline, const struct mark *marks, size_t mark_count)
{
    for (size_t i = 0; i < mark_count; i++) {
        if (marks[i].kind != MARK_OVERLAP)
            continue;
        const struct mandate *mandate = find(timeline, marks[i].member, marks[i].epoch);
        size_t at = mandate ? (size_t)(mandate - timeline->mandates) : 0;
        blame(timeline,
              (struct violation){
                  .kind = VIOLATION_ALIVE, .a = at, .b = at, .from = marks[i].at, .to = marks[i].at});
    }
}

enum gavel_status timeline_build(const struct mark *marks, size_t mark_count, const struct beat *beats,
                                 size_t beat_count, struct timeline *ret_timeline)
{
    struct timeline *timeline = calloc(1, sizeof *timeline);
    enum gavel_status status;

    if (!timeline)
        return GAVEL_ERR_NO_MEMORY;
    status = add_beginnings(timeline, marks, mark_count);
    if (status != GAVEL_OK)
        goto out;
    status = add_beats(timeline, beats, beat_count);
    if (status != GAVEL_OK)
        goto out;
    add_ends(timeline, marks, mark_count);
    qsort(timeline->mandates, timeline->count, sizeof timeline->mandates[0], by_begin);

    for (size_t a = 0; a < timeline->count; a++) {
        judge_alone(timeline, a);
        for (size_t b = a + 1; b < timeline->count; b++)
            judge_pair(timeline, a, b);
    }
    judge_order(timeline, beats, beat_count);
    judge_sightings(timeline, marks, mark_count);
    memcpy(ret_timeline, timeline, sizeof *timeline);
out:
    free(timeline);
    return status;
}

/*
 * For the gap the doubt goes the other way than for the verdict: one that was
 * killed counts as gone since the last thing it is known to have done.
 */
static gavel_ns last_seen(const struct mandate *mandate)
{
    return mandate->how == MANDATE_STOPPED ? mandate->end : ns_max(mandate->begin, mandate->last_beat);
}

gavel_ns timeline_gap(const struct timeline *timeline, size_t i)
{
    gavel_ns covered_until = 0;

    for (size_t j = 0; j < i; j++)
        covered_until = ns_max(covered_until, last_seen(&timeline->mandates[j]));
    return i ? ns_max(timeline->mandates[i].begin - covered_until, 0) : 0;
}

const char *mandate_end_name(enum mandate_end how)
{
    static const char *const names[] = {
        [MANDATE_OPEN] = "open", [MANDATE_STOPPED] = "stopped", [MANDATE_DIED] = "died"};
    return names[how];
}

const char *violation_name(enum violation_kind kind)
{
    static const char *const names[] = {
        [VIOLATION_OVERLAP] = "overlap",   [VIOLATION_EPOCH] = "epoch", [VIOLATION_NO_MANDATE] = "no_mandate",
        [VIOLATION_LATE_ACT] = "late_act", [VIOLATION_ORDER] = "order", [VIOLATION_ALIVE] = "alive"};
    return names[kind];
}
