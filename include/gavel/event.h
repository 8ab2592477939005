/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a candidate reports about itself and its group. The names are stable:
 * they are the same in callbacks, in JSON lines, in metrics and in docs.
 */
#ifndef GAVEL_EVENT_H
#define GAVEL_EVENT_H

#include <gavel/settings.h>
#include <gavel/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
#define GAVEL_EVENT_MAP(X)                                                                                    \
    X(BECAME_LEADER,       "became_leader")       /* epoch, took_ms: how long the election took */            \
    X(LOST_LEADERSHIP,     "lost_leadership")     /* epoch, reason, took_ms: how long it led */               \
    X(LEADER_DOWN,         "leader_down")         /* lost, not released; previous: who, epoch: its, how */    \
    X(LEADER_CHANGED,      "leader_changed")      /* previous, leader: "" if nobody leads now, epoch */       \
    X(ELECTION_CHECK,      "election_check")      /* leader as seen, epoch */                                 \
    X(PHASE_CHANGED,       "phase_changed")       /* previous_phase, phase, took_ms: in the previous one */   \
    X(CANDIDATES_UPDATED,  "candidates_updated")  /* candidates: how many are active */                       \
    X(MANDATE_RENEWED,     "mandate_renewed")     /* epoch: the new one of the same leader */                 \
    X(CONTENTION_DETECTED, "contention_detected") /* took_ms, expected_ms */                                  \
    X(BREAKER_OPEN,        "breaker_open")        /* status, message: the last failure */                     \
    X(BREAKER_CLOSED,      "breaker_closed")      /* took_ms: how long it was open */                         \
    X(HEARTBEAT,           "heartbeat")           /* epoch while leading, took_ms */                          \
    X(OVERRUN,             "overrun")             /* the work had not stopped by the deadline; epoch */       \
    X(STOPPED,             "stopped")             /* status, message: why; ERR_DONE: previous: who, epoch */
/* clang-format on */

#define GAVEL_EVENT_ENUM(name, text) GAVEL_EVENT_##name,
enum gavel_event_kind { GAVEL_EVENT_MAP(GAVEL_EVENT_ENUM) GAVEL_EVENT_COUNT };
#undef GAVEL_EVENT_ENUM

/* Why a leader stopped leading. */
/* clang-format off */
#define GAVEL_REASON_MAP(X)                                                                                   \
    X(NONE,       "none")                                                                                     \
    X(RESIGNED,   "resigned")   /* it was told to */                                                          \
    X(HANDED_OVER,"handed_over")/* to a better or a desired candidate */                                      \
    X(LAPSED,     "lapsed")     /* no renewal succeeded in time: store gone, process frozen */                \
    X(SUPERSEDED, "superseded") /* the store says that it is not the holder, or is not the store it was */    \
    X(TERM_OVER,  "term_over")  /* the longest mandate ended and could not be renewed */                      \
    X(INELIGIBLE, "ineligible") /* it became ineligible */                                                    \
    X(FINISHED,   "finished")   /* the work is done for good */                                               \
    X(STOPPED,    "stopped")    /* the candidate leaves the group */
/* clang-format on */

#define GAVEL_REASON_ENUM(name, text) GAVEL_REASON_##name,
enum gavel_reason { GAVEL_REASON_MAP(GAVEL_REASON_ENUM) GAVEL_REASON_COUNT };
#undef GAVEL_REASON_ENUM

/* How a group lost its leader. */
/* clang-format off */
#define GAVEL_LOSS_MAP(X)                                                                                     \
    X(NONE,   "none")   /* it did not: the leader released, or handed over */                                 \
    X(KILLED, "killed") /* its process, or the guard of its work, was killed or has crashed */                \
    X(LAPSED, "lapsed") /* it did not renew in time: frozen, cut off, or its machine is gone */
/* clang-format on */

#define GAVEL_LOSS_ENUM(name, text) GAVEL_LOSS_##name,
enum gavel_loss { GAVEL_LOSS_MAP(GAVEL_LOSS_ENUM) GAVEL_LOSS_COUNT };
#undef GAVEL_LOSS_ENUM

/* The phases of a cold start, in order. A candidate that finds a leader goes from election to ready. */
enum gavel_phase {
    GAVEL_PHASE_OBSERVING, /* watches, claims nothing */
    GAVEL_PHASE_ELECTION,  /* until a leader is known */
    GAVEL_PHASE_PREPARING, /* it is the leader, its work has not started */
    GAVEL_PHASE_READY,
};

/* Strings are never NULL ("" if they do not apply) and live as long as the callback. */
struct gavel_event {
    enum gavel_event_kind kind;
    int64_t at_ns; /* CLOCK_BOOTTIME */
    const char *group;
    const char *candidate;
    uint64_t epoch;
    const char *leader;
    const char *previous;
    enum gavel_reason reason;
    enum gavel_loss how; /* leader_down */
    enum gavel_phase phase;
    enum gavel_phase previous_phase;
    enum gavel_status status;
    gavel_ms took_ms;
    gavel_ms expected_ms;
    size_t candidates;
    const char *message; /* breaker_open, stopped: what is wrong, and what to do about it */
};

GAVEL_API const char *gavel_event_name(enum gavel_event_kind kind);
GAVEL_API const char *gavel_reason_name(enum gavel_reason reason);
GAVEL_API const char *gavel_loss_name(enum gavel_loss loss);
GAVEL_API const char *gavel_phase_name(enum gavel_phase phase);

#ifdef __cplusplus
}
#endif

#endif
