/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The referee: sees real time and all processes at once, and ends the run as
 * soon as one of the promises of gavel is broken.
 *
 * A process is *active* while it runs (is not frozen) and either its work has
 * not stopped or it would answer "I am the leader" if it were asked now. At no
 * real instant may two be active: that is S4. Since a process only becomes
 * active by publishing a mandate, by starting work, or by being resumed, it is
 * enough to check then.
 */
#ifndef SIM_CANDIDATE_REFEREE_H
#define SIM_CANDIDATE_REFEREE_H

#include "base/time.h"
#include "sim/common/profile.h"

#include <gavel/status.h>

#include <stdbool.h>
#include <stdint.h>

/* clang-format off */
#define INVARIANT_MAP(X)                                                                                      \
    X(S1,      "S1",      "epochs strictly increase and no two mandates share one")                           \
    X(S2,      "S2",      "a fenced resource takes no write of a former leader after one of its successor")   \
    X(S4,      "S4",      "at no instant two processes lead")                                                 \
    X(L1,      "L1",      "once the store can be reached a leader is there within the bound")                 \
    X(L2,      "L2",      "without faults a leader is never replaced")                                        \
    X(COLD,    "cold",    "at a cold start the first by policy leads, whoever came first within the window")   \
    X(BREAKER, "breaker", "a breaker is closed by an answer about the mandate that was asked for after it opened") \
    X(DELAY,   "delay",   "a leader that was lost is not replaced before the takeover delay is over")         \
    X(DONE,    "done",    "a group that is done has no mandate after, and who is told so knows it")           \
    X(SHOWN,   "shown",   "a leader to whom its store shows another one, or nobody, stops at once")            \
    X(ORDER,   "order",   "work starts after the mandate, once, and a release comes after it has stopped")    \
    X(STUCK,   "stuck",   "a candidate always knows when to be woken, and waking it helps")                   \
    X(ASSERT,  "assert",  "no assertion fails")
/* clang-format on */

#define INVARIANT_ENUM(name, text, what) INVARIANT_##name,
enum invariant { INVARIANT_NONE, INVARIANT_MAP(INVARIANT_ENUM) INVARIANT_COUNT };
#undef INVARIANT_ENUM

#define GRANTS_KEPT 1024

struct grant {
    uint64_t epoch;
    unsigned slot;
    uint32_t incarnation;
    uint64_t session; /* 0: of a store without them */
    gavel_ns at;
    bool was_led; /* somebody has taken it up */
};

struct referee {
    enum invariant broken;
    char what[256];
    uint64_t last_epoch;              /* that the store granted */
    struct grant grants[GRANTS_KEPT]; /* by epoch, modulo */
    uint64_t grant_count;
    uint64_t wished_epoch;  /* of the last leader that stopped because it was asked to */
    uint64_t highest_write; /* epoch that the resource accepted */
    unsigned highest_slot;
    uint32_t highest_incarnation;
    uint64_t writes;
    uint64_t rejected_writes;
    gavel_ns leader_seen_at; /* by the probe */
    gavel_ns gap_allowed;    /* in the quiet phase */
    unsigned steady_slot;    /* the leader that the probe saw, and since when */
    uint32_t steady_incarnation;
    uint64_t steady_work;
    gavel_ns steady_from;
    gavel_ns stable_from; /* L2 holds from here on; 0: not yet */
    bool is_done;         /* the store has closed the group, for: */
    unsigned done_slot;
    uint32_t done_incarnation;
    gavel_ns done_from; /* from here on nothing goes wrong; 0: not yet */
};

struct world;
struct process;
struct message;
struct breaker;
struct store_request;
struct record;

/* "S1", … and the sentence. */
extern const struct named invariants[];

/* Ends the run: jumps to world->escape. */
_Noreturn void violate(struct world *world, enum invariant invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether the process leads at this very instant, by work or by belief. */
bool referee_is_active(const struct world *world, const struct process *process);

/* The process may just have become active. */
void referee_check_exclusive(struct world *world, const struct process *process);

/*
 * The store granted a mandate; previous_slot is the leader it replaces, SLOTS_MAX
 * if there was none or it was asked to go.
 */
void referee_granted(struct world *world, const struct grant *granted, unsigned previous_slot);

/* A mandate is about to be granted: whether it replaces a leader that was lost, and too early. */
void referee_check_delay(struct world *world, const struct grant *granted);

/* The same, whoever it replaces. */
void referee_check_early(struct world *world, const struct grant *granted);

/* The mandate with this epoch; NULL if none was granted, or long ago. */
struct grant *referee_grant(struct world *world, uint64_t epoch);

/* Whether another process has the same id; it need not live. */
bool referee_has_twin(const struct world *world, const struct process *process);

/* Alive, in the list, past observing, and allowed to lead; and no twin, dead by now, may have its id. */
bool referee_is_survivor(const struct world *world, const struct process *process);

/*
 * referee_session.c: a session is about to be granted the mandate of a lost
 * leader. What the store has been told of its patience may be old, so it
 * counts what the candidate knows by now.
 */
void referee_check_patience(struct world *world, const struct grant *granted);

/* A candidate of a session calls its store: whether it may ask for that. */
void referee_check_call(struct world *world, const struct process *process,
                        const struct store_request *request);

/* After each step: its mandate, if it has one, is of the session that is open. */
void referee_check_session(struct world *world, const struct process *process);

/* Its work is told to stop: by the deadline of its mandate, unless nobody needs as long as that. */
void referee_check_stop(struct world *world, const struct process *process, gavel_ns deadline);

/* What it knows of the group is not older than what it knew before in this session. */
void referee_check_order(struct world *world, const struct process *process, const struct record *before);

/* Its work starts: not with what it had when it gave up. */
void referee_check_again(struct world *world, const struct process *process, uint64_t epoch);

/* A record was shown to a process in its session; `was_epoch` is what it led with before. */
void referee_check_shown(struct world *world, struct process *process, const struct message *message,
                         uint64_t was_epoch, uint64_t was_version);

/* How long the quiet phase may go without a leader, in real time. */
gavel_ns referee_session_gap(const struct world *world);

/*
 * cold.c: turns some runs into cold starts, with their initial state; the first
 * mandate of a run was granted.
 */
void cold_draw(struct world *world);
gavel_ns cold_start_at(struct world *world);
void cold_begin(struct world *world);
void referee_first_granted(struct world *world, const struct process *process);

/* The store renewed or released; the record may not be older than what was granted. */
/* A leader stops in favour of its candidate.successor, or of any other. */
void referee_handed_over(struct world *world, const struct process *process);
void referee_renewed(struct world *world, const struct message *message, uint64_t epoch);

/* A process publishes a mandate. */
void referee_mandate(struct world *world, const struct process *process, uint64_t epoch);

/* The resource accepted a write. */
void referee_wrote(struct world *world, const struct process *process, uint32_t incarnation, uint64_t epoch);

/* Work is told to stop, or a process ends. */
void referee_demoted(struct world *world, const struct process *process, const char *why);

/* done.c: the store closed the group; a candidate has ended; the quiet phase of a group that is done, if it
 * is. */
void referee_closed(struct world *world, const struct message *message, uint64_t epoch);
void referee_stopped(struct world *world, const struct process *process, enum gavel_status status);
bool referee_probe_done(struct world *world);

/* After a candidate was given an answer; `before` is its breaker as it was. */
void referee_check_breaker(struct world *world, const struct process *process, const struct breaker *before,
                           const struct message *message);

/* After each step of a candidate. */
void referee_check_candidate(struct world *world, struct process *process);

/* The quiet phase begins, and goes on. */
void referee_quiet(struct world *world);
void referee_probe(struct world *world);

#endif
