/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What kind of run a seed stands for: how many candidates with which settings,
 * on which kind of store, and which faults happen how often. Everything is
 * drawn from the seed before the run begins, so that a part of it can be
 * switched off afterwards (--without, --minimize) and the rest stays the same.
 */
#ifndef SIM_CANDIDATE_PROFILE_H
#define SIM_CANDIDATE_PROFILE_H

#include "base/prng.h"
#include "base/request.h"
#include "sim/common/profile.h"

#include <gavel/settings.h>

#include <stdbool.h>

#define CANDIDATES_MIN 2
#define CANDIDATES_MAX 9
#define TWINS_MAX 2 /* further processes that use the id of another */
#define SLOTS_MAX (CANDIDATES_MAX + TWINS_MAX)

/* clang-format off */
#define FAULT_MAP(X)                                                                                          \
    X(LOSS,      "loss",      "requests and answers vanish")                                                  \
    X(DUPLICATE, "duplicate", "a request is applied twice, the second time late")                             \
    X(DELAY,     "delay",     "requests and answers arrive late, long after the caller gave up")              \
    X(OUTAGE,    "outage",    "the store is away, slow, or answers with failures")                            \
    X(CUT,       "cut",       "one process cannot reach the store")                                           \
    X(FAILURE,   "failure",   "a call fails, whether or not it was applied")                                  \
    X(STEP,      "step",      "the store's clock jumps")                                                      \
    X(RATE,      "rate",      "clocks run at different rates, within the bound")                              \
    X(BREAK,     "break",     "clock rates break the bound; then only S1 and S2 are promised")                \
    X(PAUSE,     "pause",     "a process is frozen for a while")                                              \
    X(STALL,     "stall",     "an event loop is late; timers and callbacks wait")                             \
    X(CRASH,     "crash",     "a process dies and comes back, or not")                                        \
    X(OVERRUN,   "overrun",   "work takes longer to stop than it may")                                        \
    X(BELL,      "bell",      "doorbells are lost, late, forged and flooding")                                \
    X(TWIN,      "twin",      "two live processes use one id")                                                \
    X(COMMAND,   "command",   "resign, ensure, stop, eligible or not, at random")                             \
    X(MIXED,     "mixed",     "candidates differ in their settings")                                          \
    X(FINISH,    "finish",    "a leader's work is done, and its group is to be closed for good")
/* clang-format on */

#define FAULT_ENUM(name, text, what) FAULT_##name,
enum fault { FAULT_MAP(FAULT_ENUM) FAULT_COUNT };
#undef FAULT_ENUM

struct profile {
    enum mood mood;
    uint64_t faults; /* bit set of the kinds that happen */
    unsigned candidates;
    unsigned slots; /* candidates and twins */
    enum store_clock clock;
    bool sees_processes; /* candidates on one host are told of each other's death */
    unsigned hosts;
    bool has_sessions; /* the store grants mandates to sessions; else candidates claim leases */
    bool is_guarded;   /* work is done by a guard, which releases when its process has died */
    struct gavel_settings settings[SLOTS_MAX];
    struct gavel_settings worst; /* the longest of each time, from which the bounds of the run follow */
    gavel_ns cold_start;    /* all start within this time, and nothing else happens; 0: an ordinary run */
    bool has_former_leader; /* only its record is left */
    gavel_ns quiet_at;      /* faults stop here */
    gavel_ns end_at;        /* at the earliest */
    gavel_ns fault_every;   /* mean time between two faults of the whole world */
    unsigned loss_per_mille;
    unsigned delay_per_mille;
    unsigned duplicate_per_mille;
    unsigned failure_per_mille;
};

/* candidates 0: drawn as well. `without` is a bit set of faults that do not happen although they were
 * drawn. */
void profile_draw(struct profile *profile, struct prng *prng, unsigned candidates, gavel_ns duration,
                  uint64_t without);

const struct named *fault_row(unsigned fault);

#endif
