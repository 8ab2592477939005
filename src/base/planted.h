/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Planted bugs: mistakes that people really make in programs of this kind,
 * kept so that the simulator must find them for ever. They exist only in the
 * simulator's build (GAVEL_PLANTED); elsewhere PLANTED() is a constant 0 and
 * nothing of them is left, which a test checks in the binaries.
 */
#ifndef BASE_PLANTED_H
#define BASE_PLANTED_H

/* clang-format off */
#define PLANTED_MAP(X)                                                                                        \
    X(DEADLINE_FROM_ANSWER,    "deadline-from-answer",    "the lease is counted from the answer, not the send") \
    X(EPOCH_RESTARTS,          "epoch-restarts",          "a release forgets the epoch")                      \
    X(NO_NONCE_CHECK,          "no-nonce-check",          "a record with my id is taken for my own claim")    \
    X(EARLY_TAKEOVER,          "early-takeover",          "a take-over waits for half a lease only")          \
    X(SEEN_FROM_SEND,          "seen-from-send",          "the standby's wait starts when its read was sent") \
    X(TRUST_STORE_CLOCK,       "trust-store-clock",       "the store's clock alone decides")                  \
    X(WALL_CLOCK,              "wall-clock",              "expiry compares the wall clocks of two machines")  \
    X(IS_LEADER_WITHOUT_CLOCK, "is-leader-without-clock", "is_leader() does not look at the clock")           \
    X(PREFERRED_BLOCKS,        "preferred-blocks",        "the others wait for the preferred candidate")      \
    X(BLIND_RETRY,             "blind-retry",             "a claim without an answer is taken as won")        \
    X(RELEASE_BEFORE_STOP,     "release-before-stop",     "the mandate is released while the work still runs") \
    X(RECLAIM_WHILE_STOPPING,  "reclaim-while-stopping",  "a lapsed leader does not wait for its work to stop") \
    X(NO_DRIFT,                "no-drift",                "clock rates are taken as equal and margins dropped") \
    X(CLAIM_IGNORES_VERSION,   "claim-ignores-version",   "the store lets a claim overwrite any record")      \
    X(RENEW_ANY_EPOCH,         "renew-any-epoch",         "the store renews for a former holder")             \
    X(FLAPPING,                "flapping",                "a better candidate takes over without preemption") \
    X(BREAKER_STAYS_OPEN,      "breaker-stays-open",      "an open breaker never tries again")                \
    X(OWN_LEASE_LENGTH,        "own-lease-length",        "the standby waits its own lease, not the holder's") \
    X(FENCE_ACCEPTS_OLD,       "fence-accepts-old",       "a resource takes writes of older epochs")            \
    X(LATE_RELEASE,            "late-release",            "a release without an answer can end the next mandate") \
    X(HANDOVER_TO_THE_DEAD,    "handover-to-the-dead",    "a better candidate gets the gavel even if it is silent") \
    X(CLAIM_IGNORES_DONE,      "claim-ignores-done",      "a group that is done is claimed like any other that is free") \
    X(FINISH_ANY_MANDATE,      "finish-any-mandate",      "who took over meanwhile is closed together with the group") \
    X(FINISH_BLINDLY,          "finish-blindly",          "a success whose record was not answered is taken as recorded")
/* clang-format on */

#define PLANTED_ENUM(name, text, what) PLANTED_BUG_##name,
enum planted_bug { PLANTED_BUG_NONE, PLANTED_MAP(PLANTED_ENUM) PLANTED_BUG_COUNT };
#undef PLANTED_ENUM

#ifdef GAVEL_PLANTED
extern enum planted_bug planted_bug; /* defined by the simulator; set once before a run */
#define PLANTED(name) (planted_bug == PLANTED_BUG_##name)
#else
#define PLANTED(name) 0
#endif

#endif
