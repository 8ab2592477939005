/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The referee of the testbed: sees real time and the log, and keeps a shadow of
 * the table of its own, written from what table.proto and table.h say. It is
 * told of each entry when the first node applies it, of what programs rely on,
 * of their work and of all answers they get.
 *
 * It calls `violate` once; the caller then ends the run soon.
 */
#ifndef SIM_SESSION_REFEREE_H
#define SIM_SESSION_REFEREE_H

#include "base/time.h"
#include "core/table/table.h"
#include "sim/session/profile.h"
#include "wire/client.pb-c.h"

/* clang-format off */
#define SESSION_INVARIANT_MAP(X)                                                                                 \
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
    X(REMOVAL,  "removal",       "only a group that nobody leads or has joined is removed, and none before the retention time") \
    X(WATCH,    "watch",         "a watch tells every change once and in order")                                \
    X(CALM,     "L2",            "a fail-over of the cluster alone demotes nobody")                              \
    X(LEADER,   "L1",            "after a heal a group with an eligible candidate has a leader within the bound") \
    X(SILENCE,  "silence",       "who dies with the leader loses its session by when that was heard last, if the next leader can know") \
    X(LEASE,    "lease-answers", "a frontend keeps a session alive only while its node has the lease of the cluster") \
    X(PACED,    "paced",         "a session whose caller takes nothing is not kept, and ends")                   \
    X(STUCK,    "stuck",         "a client always knows when to be woken, and waking it helps")                  \
    X(LIMIT,    "limit",         "what waits for a session is given up when its time is over")
/* clang-format on */

#define SESSION_INVARIANT_ENUM(name, text, what) SESSION_INVARIANT_##name,
enum session_invariant {
    SESSION_INVARIANT_NONE,
    SESSION_INVARIANT_MAP(SESSION_INVARIANT_ENUM) SESSION_INVARIANT_COUNT
};
#undef SESSION_INVARIANT_ENUM

extern const struct named session_invariants[];

struct session_referee;
typedef void (*session_referee_cb)(void *context, enum session_invariant invariant, const char *what);

struct session_referee *session_referee_new(void);
void session_referee_free(struct session_referee *referee); /* safe on NULL */
/* `retention`: no group is removed sooner, but by an operator; 0: none is. */
void session_referee_begin(struct session_referee *referee, bool is_quiet, gavel_ns retention,
                           session_referee_cb violate, void *context);

/* An entry is applied, by the first node to do so or a later one; results as the table gave them. */
void session_referee_applied(struct session_referee *referee, gavel_ns at, uint64_t index,
                             const struct table *table, const uint8_t *bytes, size_t size,
                             enum gavel_status status, const struct table_result *results, size_t count);

/* ---- programs ---- */

void session_referee_born(struct session_referee *referee, unsigned program, int32_t pid);
void session_referee_died(struct session_referee *referee, unsigned program, int32_t pid);
/* It relies on the session until `until`, in real time; `number` tells which one of that id it means. */
void session_referee_counts_on(struct session_referee *referee, gavel_ns at, unsigned program,
                               uint64_t session, uint64_t number, gavel_ns until);
/* It must have ended by then, in real time. */
void session_referee_wants_end(struct session_referee *referee, char program, uint64_t session, gavel_ns by);
/* Whether the newest session with this id has ended. */
bool session_referee_has_expired(struct session_referee *referee, uint64_t session);
/* It is told that its session is gone, after relying on it until `until`. */
void session_referee_told_gone(struct session_referee *referee, gavel_ns at, unsigned program,
                               gavel_ns until);
/* It closes the session itself, and no longer relies on it. */
void session_referee_gives_up(struct session_referee *referee, uint64_t session);
/* The same for a lease; `until` 0: it no longer relies on it. */
void session_referee_counts_on_lease(struct session_referee *referee, gavel_ns at, unsigned program,
                                     unsigned group, uint64_t nonce, uint64_t epoch, gavel_ns until);

/* A program works in a group, until `until` at most; call it again to prolong that. */
void session_referee_works(struct session_referee *referee, gavel_ns at, unsigned program, unsigned group,
                           uint64_t epoch, gavel_ns until);
void session_referee_rests(struct session_referee *referee, gavel_ns at, unsigned program, unsigned group);
/* A write with this epoch reaches the resource of the group; it accepts only the highest. */
void session_referee_writes(struct session_referee *referee, unsigned group, uint64_t epoch);

/* The frontend of a node without the lease has answered a keep-alive. */
void session_referee_has_no_lease(struct session_referee *referee, const char *label);

/* The deadline of its session has moved, and it has not taken the one before. */
void session_referee_not_taken(struct session_referee *referee, unsigned program);
/* A program has taken nothing since then: of its sessions with this time to live none is left that is old
 * enough to have ended. */
void session_referee_wants_hung_ended(struct session_referee *referee, gavel_ns at, unsigned program,
                                      int32_t pid, gavel_ns since, gavel_ns ttl);

/* A client is woken repeatedly at one instant. */
void session_referee_stuck(struct session_referee *referee, const char *label);
/* Something that waits for its session had to be given up so long ago. */
void session_referee_waits_too_long(struct session_referee *referee, const char *label, gavel_ns late);

/* ---- answers ---- */

/*
 * The write of a note with this value, which is written only once, was
 * answered: OK, a refusal, or the inconclusive status of a transient failure.
 */
void session_referee_note_answered(struct session_referee *referee, uint64_t value, enum gavel_status status,
                                   bool is_known);
void session_referee_counts_more(struct session_referee *referee,
                                 unsigned group); /* a program asks to count one more */
void session_referee_counted(struct session_referee *referee, unsigned group, enum gavel_status status,
                             bool is_known);

/* ---- watches of programs ---- */

/* Starts after this revision; one that continues after a gap misses what came before. */
void session_referee_watches(struct session_referee *referee, unsigned program, unsigned group,
                             uint64_t revision, bool is_gap);
void session_referee_sees(struct session_referee *referee, unsigned program, unsigned group,
                          const Gavel__Change *change);
/* Everything applied before `before` should have been seen by now. */
void session_referee_has_seen_all(struct session_referee *referee, unsigned program, unsigned group,
                                  gavel_ns before);

/* ---- the end ---- */

/*
 * Every group with an eligible candidate of these (a bit set of programs), and
 * each of these groups, must have had a working leader since `since`.
 */
void session_referee_wants_leaders(struct session_referee *referee, gavel_ns at, gavel_ns since,
                                   unsigned programs, unsigned groups);
void session_referee_over(struct session_referee *referee);

/* For programs that see processes: whether this one has died. */
bool session_referee_is_dead(const struct session_referee *referee, int32_t pid);

/* What the log has shown. */
struct session_referee_counts {
    uint64_t sessions, expired, closed, deaths, grants, claims, take_overs, lapses, hand_overs, rollbacks,
        stale, finished, removals, anew, reopened, renewed, parted;
};
const struct session_referee_counts *session_referee_counts(const struct session_referee *referee);

#endif
