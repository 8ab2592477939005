/* SPDX-License-Identifier: Apache-2.0 */

#include "beat_referee.h"

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

void beat_referee_init(struct beat_referee *referee) { memset(referee, 0, sizeof *referee); }

static void remark(struct beat_referee *referee, enum fault_found kind, const struct beat *beat,
                   uint64_t against)
{
    referee->found[kind]++;
    if (referee->remark_count == BEAT_REFEREE_REMARKS_MAX)
        return;
    referee->remarks[referee->remark_count].kind = kind;
    referee->remarks[referee->remark_count].beat = *beat;
    referee->remarks[referee->remark_count].against = against;
    referee->remark_count++;
}

static struct epoch_span *newest(struct beat_referee *referee)
{
    return referee->span_count ? &referee->spans[referee->span_count - 1] : NULL;
}

static void begin_span(struct beat_referee *referee, const struct beat *beat)
{
    const struct epoch_span *former = newest(referee);

    if (former)
        referee->older_last = ns_max(referee->older_last, former->last);
    ASSERT(referee->span_count < BEAT_REFEREE_SPANS_MAX); /* a test has far fewer faults */
    referee->spans[referee->span_count++] = (struct epoch_span){
        .epoch = beat->epoch, .first = beat->at, .last = beat->at, .member = beat->member};
}

void beat_referee_beat(struct beat_referee *referee, const struct beat *beat)
{
    struct epoch_span *span;

    referee->beats++;
    if (beat->epoch == 0) {
        remark(referee, FOUND_NO_MANDATE, beat, 0);
        return;
    }
    span = newest(referee);
    if (!span || beat->epoch > span->epoch) {
        begin_span(referee, beat);
        span = newest(referee);
    }
    if (beat->epoch < span->epoch) {
        remark(referee, FOUND_LATE, beat, span->epoch);
        return;
    }
    span->beats++;
    span->first = ns_min(span->first, beat->at);
    span->last = ns_max(span->last, beat->at);
    if (referee->span_count > 1 && beat->at <= referee->older_last)
        remark(referee, FOUND_OVERLAP, beat, referee->spans[referee->span_count - 2].epoch);
    if (beat->member != span->member)
        remark(referee, FOUND_SHARED, beat, span->epoch);
}

void beat_referee_damage(struct beat_referee *referee)
{
    static const struct beat none;

    remark(referee, FOUND_DAMAGED, &none, 0);
}

void beat_referee_read(struct beat_referee *referee, struct beat_reader *reader)
{
    off_t end = beat_reader_end(reader); /* of now: those who beat may be faster than we read */
    struct beat beat;

    while (reader->offset < end) {
        switch (beat_reader_next(reader, &beat)) {
        case BEAT_READ:
            beat_referee_beat(referee, &beat);
            break;
        case BEAT_DAMAGED:
            beat_referee_damage(referee);
            break;
        case BEAT_NONE:
            return;
        }
    }
}

uint64_t beat_referee_found(const struct beat_referee *referee)
{
    uint64_t total = 0;

    for (size_t i = 0; i < FOUND_COUNT; i++)
        total += referee->found[i];
    return total;
}

const struct epoch_span *beat_referee_newest(const struct beat_referee *referee)
{
    return referee->span_count ? &referee->spans[referee->span_count - 1] : NULL;
}

const struct epoch_span *beat_referee_span(const struct beat_referee *referee, uint64_t epoch)
{
    for (size_t i = referee->span_count; i-- > 0;)
        if (referee->spans[i].epoch == epoch)
            return &referee->spans[i];
    return NULL;
}

void beat_referee_print(const struct beat_referee *referee, FILE *out)
{
    fprintf(out, "# %" PRIu64 " beats in %zu epochs\n", referee->beats, referee->span_count);
    for (size_t i = 0; i < FOUND_COUNT; i++)
        if (referee->found[i])
            fprintf(out, "# found %" PRIu64 " times: %s\n", referee->found[i], found_names[i]);
    for (size_t i = 0; i < referee->remark_count; i++) {
        const struct beat *beat = &referee->remarks[i].beat;

        fprintf(out,
                "#   %s: epoch %" PRIu64 " against %" PRIu64 ", at %.6f s, process %d, member %u, role %u, "
                "its beat number %" PRIu32 "\n",
                found_names[referee->remarks[i].kind], beat->epoch, referee->remarks[i].against,
                (double)beat->at / 1e9, (int)beat->pid, beat->member, beat->role, beat->number);
    }
}
