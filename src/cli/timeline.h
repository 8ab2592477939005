/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who led when, worked out from what the candidates wrote down themselves,
 * and whether two ever led at once. Pure arithmetic on records: it knows
 * nothing of the driver that caused them, so it cannot believe the driver.
 *
 * A candidate writes two kinds of records:
 *
 *   marks   elected, stopped, dead, …: the edges of a mandate
 *   beats   one act of its work, in the order in which the fenced log took them
 *
 *      elected                                    stopped
 *         ├── beat ─ beat ─ beat ─ … ─ beat ─────────┤        an orderly end
 *         ├── beat ─ beat ─ … ─ beat ─ ┤ dead                 killed: ends when the death is proven
 *         ├── beat ─ … ─ beat ┤  (frozen)      woke           frozen past its deadline: ends with its last
 * act
 *
 * The third kind needs its reason: a process that is frozen does nothing, and
 * its on_demoted can only run after it was resumed, when another may lead
 * already. What counts is that it did nothing in between, and that is what
 * the beats say.
 */
#ifndef CLI_TIMELINE_H
#define CLI_TIMELINE_H

#include "base/time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mark_kind {
    MARK_NONE,    /* reserved and not yet written, or its writer died */
    MARK_JOINED,  /* takes part */
    MARK_KNOWS,   /* a standby that has seen the leader of this epoch */
    MARK_ELECTED, /* on_elected was entered */
    MARK_STOPPED, /* the work has stopped; on_demoted is about to return */
    MARK_DEAD,    /* the member's process is proven dead; written by whoever saw it */
    MARK_RESIGN,  /* about to call gavel_resign() */
    MARK_RESULT,  /* a measurement; `value` has it */
    MARK_FAILED,  /* the member gave up; `value` is a status */
};

struct mark {
    uint32_t kind; /* enum mark_kind; written last */
    uint32_t member;
    uint64_t epoch;
    gavel_ns at;
    gavel_ns last_act; /* STOPPED: the last beat, 0 if none */
    gavel_ns deadline; /* STOPPED: by when the work had to stop, as last known; 0 if not known */
    int64_t value;
};

struct beat {
    gavel_ns at; /* written last; 0: reserved by a process that then died */
    uint64_t epoch;
    uint32_t member;
};

enum mandate_end {
    MANDATE_OPEN,      /* no end was recorded */
    MANDATE_STOPPED,   /* by its own word, in time */
    MANDATE_DIED,      /* the process was proven dead */
    MANDATE_WOKE_LATE, /* it said so only after its deadline, having been frozen */
};

struct mandate {
    uint32_t member;
    uint64_t epoch;
    bool is_elected;     /* false: somebody acted without a mandate */
    gavel_ns begin;      /* elected, or the first beat of one that was not */
    gavel_ns end;        /* nothing was done after this; NEVER while open */
    gavel_ns deadline;   /* 0: not known */
    gavel_ns woke_at;    /* WOKE_LATE only */
    gavel_ns first_beat; /* 0: none */
    gavel_ns last_beat;  /* 0: none */
    size_t beats;
    enum mandate_end how;
};

enum violation_kind {
    VIOLATION_OVERLAP,    /* a and b led at the same instant, `from` to `to` */
    VIOLATION_EPOCH,      /* b began after a and its epoch is not higher */
    VIOLATION_NO_MANDATE, /* a acted without having been elected */
    VIOLATION_LATE_ACT,   /* a acted at `from`, after its own deadline or its own end `to` */
    VIOLATION_ORDER,      /* the log took a beat of a after one of the newer b */
};

struct violation {
    enum violation_kind kind;
    size_t a; /* places in mandates[] */
    size_t b;
    gavel_ns from;
    gavel_ns to;
};

#define TIMELINE_MANDATES_MAX 256
#define TIMELINE_VIOLATIONS_MAX 32

struct timeline {
    struct mandate mandates[TIMELINE_MANDATES_MAX]; /* by begin */
    size_t count;
    struct violation violations[TIMELINE_VIOLATIONS_MAX]; /* the first ones */
    size_t violation_count;                               /* all of them */
    size_t beats;                                         /* that were accepted */
};

/*
 * Puts the records together and judges them. ERR_INVALID if there are more
 * mandates than the timeline can hold; nothing is judged then.
 */
GAVEL_CHECKED enum gavel_status timeline_build(const struct mark *marks, size_t mark_count,
                                               const struct beat *beats, size_t beat_count,
                                               struct timeline *ret_timeline);

/*
 * The time without a leader before mandates[i]: since the orderly end of the
 * one before, or since its last act if it was killed or frozen. 0 for the
 * first one and where there was none.
 */
gavel_ns timeline_gap(const struct timeline *timeline, size_t i);

/* "stopped", "died", "woke_late", "open". */
const char *mandate_end_name(enum mandate_end how);

/* "overlap", "epoch", "no_mandate", "late_act", "order". */
const char *violation_name(enum violation_kind kind);

#endif
