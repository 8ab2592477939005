/* SPDX-License-Identifier: Apache-2.0 */

#include "judge.h"

#include "base/assert.h"

#include <inttypes.h>
#include <string.h>

static const char *const found_names[FOUND_COUNT] = {
    [FOUND_LATE] = "a beat of a former epoch after a newer one began",
    [FOUND_OVERLAP] = "a beat that is not later than the last of a former epoch",
    [FOUND_SHARED] = "two members in one epoch",
    [FOUND_NO_MANDATE] = "a beat without an epoch",
    [FOUND_DAMAGED] = "something that is no beat",
};

void judge_init(struct judge *judge) { memset(judge, 0, sizeof *judge); }

static void remark(struct judge *judge, enum fault_found kind, const struct beat *beat, uint64_t against)
{
    judge->found[kind]++;
    if (judge->remark_count == JUDGE_REMARKS_MAX)
        return;
    judge->remarks[judge->remark_count].kind = kind;
    judge->remarks[judge->remark_count].beat = *beat;
    judge->remarks[judge->remark_count].against = against;
    judge->remark_count++;
}

static struct epoch_span *newest(struct judge *judge)
{
    return judge->span_count ? &judge->spans[judge->span_count - 1] : NULL;
}

static void begin_span(struct judge *judge, const struct beat *beat)
{
    const struct epoch_span *former = newest(judge);

    if (former)
        judge->older_last = ns_max(judge->older_last, former->last);
    ASSERT(judge->span_count < JUDGE_SPANS_MAX); /* a test has far fewer faults */
    judge->spans[judge->span_count++] = (struct epoch_span){
        .epoch = beat->epoch, .first = beat->at, .last = beat->at, .member = beat->member};
}

void judge_beat(struct judge *judge, const struct beat *beat)
{
    struct epoch_span *span;

    judge->beats++;
    if (beat->epoch == 0) {
        remark(judge, FOUND_NO_MANDATE, beat, 0);
        return;
    }
    span = newest(judge);
    if (!span || beat->epoch > span->epoch) {
        begin_span(judge, beat);
        span = newest(judge);
    }
    if (beat->epoch < span->epoch) {
        remark(judge, FOUND_LATE, beat, span->epoch);
        return;
    }
    span->beats++;
    span->first = ns_min(span->first, beat->at);
    span->last = ns_max(span->last, beat->at);
    if (judge->span_count > 1 && beat->at <= judge->older_last)
        remark(judge, FOUND_OVERLAP, beat, judge->spans[judge->span_count - 2].epoch);
    if (beat->member != span->member)
        remark(judge, FOUND_SHARED, beat, span->epoch);
}

void judge_damage(struct judge *judge)
{
    static const struct beat none;

    remark(judge, FOUND_DAMAGED, &none, 0);
}

void judge_read(struct judge *judge, struct beat_reader *reader)
{
    off_t end = beat_reader_end(reader); /* of now: those who beat may be faster than we read */
    struct beat beat;

    while (reader->offset < end) {
        switch (beat_reader_next(reader, &beat)) {
        case BEAT_READ:
            judge_beat(judge, &beat);
            break;
        case BEAT_DAMAGED:
            judge_damage(judge);
            break;
        case BEAT_NONE:
            return;
        }
    }
}

uint64_t judge_found(const struct judge *judge)
{
    uint64_t total = 0;

    for (size_t i = 0; i < FOUND_COUNT; i++)
        total += judge->found[i];
    return total;
}

const struct epoch_span *judge_newest(const struct judge *judge)
{
    return judge->span_count ? &judge->spans[judge->span_count - 1] : NULL;
}

const struct epoch_span *judge_span(const struct judge *judge, uint64_t epoch)
{
    for (size_t i = judge->span_count; i-- > 0;)
        if (judge->spans[i].epoch == epoch)
            return &judge->spans[i];
    return NULL;
}

void judge_print(const struct judge *judge, FILE *out)
{
    fprintf(out, "# %" PRIu64 " beats in %zu epochs\n", judge->beats, judge->span_count);
    for (size_t i = 0; i < FOUND_COUNT; i++)
        if (judge->found[i])
            fprintf(out, "# found %" PRIu64 " times: %s\n", judge->found[i], found_names[i]);
    for (size_t i = 0; i < judge->remark_count; i++) {
        const struct beat *beat = &judge->remarks[i].beat;

        fprintf(out,
                "#   %s: epoch %" PRIu64 " against %" PRIu64 ", at %.6f s, process %d, member %u, role %u, "
                "its beat number %" PRIu32 "\n",
                found_names[judge->remarks[i].kind], beat->epoch, judge->remarks[i].against,
                (double)beat->at / 1e9, (int)beat->pid, beat->member, beat->role, beat->number);
    }
}
