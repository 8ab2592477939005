/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The judge of the hall: sees real time and the log, and keeps a shadow of the
 * table of its own, written from what table.proto and table.h say. It is told
 * of each entry when the first node applies it, of what programs count on, of
 * their work and of all that they are answered.
 *
 * It calls `violate` once; whoever hears of it ends the run soon.
 */
#ifndef SIM_SESSION_REFEREE_H
#define SIM_SESSION_REFEREE_H

#include "base/time.h"
#include "core/table/table.h"
#include "sim/session/profile.h"
#include "wire/client.pb-c.h"

/* clang-format off */
#define HALL_INVARIANT_MAP(X)                                                                                 \
    X(EPOCHS,   "S1",            "epochs of a group strictly increase, and no two mandates share one")          \
    X(FENCE,    "S2",            "a fenced resource takes no write of a former leader after one of its successor") \
    X(WORK,     "S4",            "at no instant two programs work as leaders of one group")                    \
    X(DEADLINE, "deadline-true", "until its deadline a session or a lease is there, and what a leader has is its own") \
    X(CHOICE,   "choice",        "who is granted a mandate is the one by wish, policy and queue")               \
    X(TABLE,    "table",         "the table does what it is told, no less and no more")                        \
    X(DEATH,    "death-true",    "only the dead are ended as dead")                                             \
    X(ONCE,     "once",          "what is answered as done was done exactly once, what is refused was not")     \
    X(COUNTER,  "counter",       "a counter counts what was answered as counted, and no more than was asked")   \
    X(NOTES,    "note-fence",    "a note is not written with an old epoch, nor over another revision than expected") \
    X(WATCH,    "watch",         "a watch tells every change once and in order")                                \
    X(CALM,     "L2",            "a fail-over of the quorum alone demotes nobody")                              \
    X(LEADER,   "L1",            "after a heal a group with an eligible candidate has a leader within the bound") \
    X(LEASE,    "lease-answers", "a frontend keeps a session alive only while its node has the lease of the quorum") \
    X(STUCK,    "stuck",         "a client always knows when to be woken, and waking it helps")
/* clang-format on */

#define HALL_INVARIANT_ENUM(name, text, what) HALL_INVARIANT_##name,
enum hall_invariant { HALL_INVARIANT_NONE, HALL_INVARIANT_MAP(HALL_INVARIANT_ENUM) HALL_INVARIANT_COUNT };
#undef HALL_INVARIANT_ENUM

const char *hall_invariant_name(enum hall_invariant invariant);
const char *hall_invariant_what(enum hall_invariant invariant);

struct judge;
typedef void (*judge_cb)(void *context, enum hall_invariant invariant, const char *what);

struct judge *judge_new(void);
void judge_free(struct judge *judge); /* safe on NULL */
void judge_begin(struct judge *judge, bool is_quiet, judge_cb violate, void *context);

/* An entry is applied, by the first node to do so or a later one; results as the table gave them. */
void judge_applied(struct judge *judge, gavel_ns at, uint64_t index, const struct table *table,
                   const uint8_t *bytes, size_t size, enum gavel_status status,
                   const struct table_result *results, size_t count);

/* ---- programs ---- */

void judge_born(struct judge *judge, unsigned program, int32_t pid);
void judge_died(struct judge *judge, unsigned program, int32_t pid);
/* It counts on the session until then, in real time. */
void judge_counts_on(struct judge *judge, gavel_ns at, unsigned program, uint64_t session, gavel_ns until);
/* It closes it itself, and counts on nothing. */
void judge_gives_up(struct judge *judge, uint64_t session);
/* Likewise a lease; `until` 0: it counts on it no more. */
void judge_counts_on_lease(struct judge *judge, gavel_ns at, unsigned program, unsigned group, uint64_t nonce,
                           uint64_t epoch, gavel_ns until);

/* Work of a program in a group, until then at most; again to prolong it. */
void judge_works(struct judge *judge, gavel_ns at, unsigned program, unsigned group, uint64_t epoch,
                 gavel_ns until);
void judge_rests(struct judge *judge, gavel_ns at, unsigned program, unsigned group);
/* A write with this epoch reaches the resource of the group; it takes the highest only. */
void judge_writes(struct judge *judge, unsigned group, uint64_t epoch);

/* The frontend of a node without the lease has answered a keep-alive. */
void judge_has_no_lease(struct judge *judge, const char *label);

/* A client is woken again and again at one instant. */
void judge_stuck(struct judge *judge, const char *label);

/* ---- answers ---- */

/* A note with this value, which nobody else writes, was answered: OK, a refusal, or nothing that tells (the
 * status of a passing trouble). */
void judge_note_answered(struct judge *judge, uint64_t value, enum gavel_status status, bool is_known);
void judge_counts_more(struct judge *judge, unsigned group); /* somebody asks to count one more */
void judge_counted(struct judge *judge, unsigned group, enum gavel_status status, bool is_known);

/* ---- watches of programs ---- */

/* Starts after this revision; one that goes on after a gap misses what came before. */
void judge_watches(struct judge *judge, unsigned program, unsigned group, uint64_t revision, bool is_gap);
void judge_sees(struct judge *judge, unsigned program, unsigned group, const Gavel__Change *change);
/* All up to there should have been seen by now: what was applied before `before`. */
void judge_has_seen_all(struct judge *judge, unsigned program, unsigned group, gavel_ns before);

/* ---- the end ---- */

/* Every group with an eligible candidate of these (a bit set of programs), and each of these groups, must
 * have been worked in since then. */
void judge_wants_leaders(struct judge *judge, gavel_ns at, gavel_ns since, unsigned programs,
                         unsigned groups);
void judge_over(struct judge *judge);

/* For programs that see processes: whether this one has died. */
bool judge_is_dead(const struct judge *judge, int32_t pid);

/* What the log has shown. */
struct judge_counts {
    uint64_t sessions, expired, closed, deaths, grants, claims, take_overs, lapses, hand_overs, rollbacks,
        stale;
};
const struct judge_counts *judge_counts(const struct judge *judge);

#endif
