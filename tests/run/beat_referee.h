/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The referee: whether the beats of two epochs ever interleave. Pure; it is
 * given the beats in the order of the log and believes nothing else.
 *
 *   epoch 7   | | | | |
 *   epoch 8               | | | |
 *   epoch 9                          | | |        time ─►
 *             └── span ─┘ └ gap ┘
 *
 * Two orders must agree: that of the log, which is when the beats were done,
 * and that of the clock. In both, the last beat of an epoch comes before the
 * first of any higher one. A beat of epoch 8 after one of epoch 9 is a former
 * leader's command that still works; an epoch that two members beat in is
 * one that two leaders share.
 */
#ifndef RUN_BEAT_REFEREE_H
#define RUN_BEAT_REFEREE_H

#include "beat_log.h"

#include <stddef.h>
#include <stdio.h>

enum fault_found {
    FOUND_LATE,       /* a beat of a lower epoch than the log already has */
    FOUND_OVERLAP,    /* a beat that was not later than all those of lower epochs */
    FOUND_SHARED,     /* two members beat in one epoch */
    FOUND_NO_MANDATE, /* a beat without an epoch */
    FOUND_DAMAGED,    /* something in the log that is not a beat */
};
#define FOUND_COUNT (FOUND_DAMAGED + 1)

struct epoch_span {
    uint64_t epoch;
    gavel_ns first;
    gavel_ns last;
    uint64_t beats;
    uint16_t member;
};

#define BEAT_REFEREE_SPANS_MAX 4096
#define BEAT_REFEREE_REMARKS_MAX 10

struct beat_referee {
    struct epoch_span spans[BEAT_REFEREE_SPANS_MAX]; /* by epoch; the newest is the last */
    size_t span_count;
    gavel_ns older_last; /* the latest beat of all spans but the last */
    uint64_t beats;
    uint64_t found[FOUND_COUNT]; /* how many of each */
    struct {
        enum fault_found kind;
        struct beat beat;
        uint64_t against;                /* the epoch that it contradicts */
    } remarks[BEAT_REFEREE_REMARKS_MAX]; /* the first ones */
    size_t remark_count;
};

void beat_referee_init(struct beat_referee *referee);

/* The next beat of the log. */
void beat_referee_beat(struct beat_referee *referee, const struct beat *beat);

/* Something in the log was not a beat. */
void beat_referee_damage(struct beat_referee *referee);

/* All that the log has by now. */
void beat_referee_read(struct beat_referee *referee, struct beat_reader *reader);

/* How many faults were found in total. */
uint64_t beat_referee_found(const struct beat_referee *referee);

/* The newest epoch; NULL if there was no beat yet. */
const struct epoch_span *beat_referee_newest(const struct beat_referee *referee);

/* The span of an epoch; NULL if it never beat. */
const struct epoch_span *beat_referee_span(const struct beat_referee *referee, uint64_t epoch);

/* Prints what was found, each line after `# `, as TAP requires. */
void beat_referee_print(const struct beat_referee *referee, FILE *out);

#endif
