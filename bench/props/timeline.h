/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who led when, derived from what the candidates recorded themselves, and
 * whether two ever led at once. Pure arithmetic on records: it knows nothing
 * about the driver that caused them, so it cannot trust the driver.
 *
 * The process that does the work writes two kinds of records:
 *
 *   marks   elected, stopped, dead, …: the edges of a mandate
 *   beats   one act of its work, in the order in which the fenced log accepted them
 *
 *      elected                                    stopped
 *         ├── beat ─ beat ─ beat ─ … ─ beat ─────────┤        an orderly end
 *         ├── beat ─ beat ─ … ─ beat ─ ┤ dead                 killed: ends when the death is proven
 *
 * The successor records the proof of a death before it begins: it checks
 * whether the process of its predecessor still exists. If it does, there is no
 * such record, the mandate has no end, and the verdict follows from that.
 */
#ifndef BENCH_PROPS_TIMELINE_H
#define BENCH_PROPS_TIMELINE_H

#include "base/time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mark_kind {
    MARK_NONE,    /* reserved and not yet written, or its writer died */
    MARK_JOINED,  /* takes part */
    MARK_KNOWS,   /* a standby that has seen the leader of this epoch */
    MARK_ELECTED, /* on_elected was entered, or the command begins; `value` is its process */
    MARK_GUARD,   /* the command's parent is the process `value`; before its ELECTED */
    MARK_STOPPED, /* the work has stopped; on_demoted is about to return, or the command to end */
    MARK_DEAD,    /* the member's process is proven dead; written by the process that saw it */
    MARK_OVERLAP, /* the member's process still runs, though another one begins */
    MARK_FROZEN,  /* SIGSTOP of the member's elector, and SIGCONT; written by the driver */
    MARK_RESUMED,
    MARK_RESIGN, /* about to call gavel_resign() */
    MARK_RESULT, /* a measurement; `value` has it */
    MARK_FAILED, /* the member gave up; `value` is a status */
};

struct mark {
    uint32_t kind; /* enum mark_kind; written last */
    uint32_t member;
    uint64_t epoch;
    gavel_ns at;
    int64_t value;
};

struct beat {
    gavel_ns at; /* written last; 0: reserved by a process that then died */
    uint64_t epoch;
    uint32_t member;
};

enum mandate_end {
    MANDATE_OPEN,    /* no end was recorded */
    MANDATE_STOPPED, /* as it said itself */
    MANDATE_DIED,    /* the process was proven dead */
};

struct mandate {
    uint32_t member;
    uint64_t epoch;
    bool is_elected;     /* false: the member acted without a mandate */
    gavel_ns begin;      /* elected, or the first beat of one that was not */
    gavel_ns end;        /* nothing was done after this; NEVER while open */
    gavel_ns first_beat; /* 0: none */
    gavel_ns last_beat;  /* 0: none */
    size_t beats;
    enum mandate_end how;
};

enum violation_kind {
    VIOLATION_OVERLAP,    /* a and b led at the same instant, `from` to `to` */
    VIOLATION_EPOCH,      /* b began after a and its epoch is not higher */
    VIOLATION_NO_MANDATE, /* a acted without having been elected */
    VIOLATION_LATE_ACT,   /* a acted at `from`, after its own end `to` */
    VIOLATION_ORDER,      /* the log accepted a beat of a after one of the newer b */
    VIOLATION_ALIVE,      /* the process of a still existed at `from`, when another began */
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
 * Combines the records and judges them. ERR_INVALID if there are more mandates
 * than the timeline can hold; nothing is judged then.
 */
GAVEL_CHECKED enum gavel_status timeline_build(const struct mark *marks, size_t mark_count,
                                               const struct beat *beats, size_t beat_count,
                                               struct timeline *ret_timeline);

/*
 * The time without a leader before mandates[i]: since the orderly end of the
 * one before, or since its last act if it was killed. 0 for the first one and
 * where there was none.
 */
gavel_ns timeline_gap(const struct timeline *timeline, size_t i);

/* "stopped", "died", "open". */
const char *mandate_end_name(enum mandate_end how);

/* "overlap", "epoch", "no_mandate", "late_act", "order", "alive". */
const char *violation_name(enum violation_kind kind);

#endif
