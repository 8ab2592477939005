/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Messages between nodes: one struct for all kinds. raft_message_check() refuses
 * messages that no gavel node would send, before anything else looks at them.
 */
#ifndef CORE_RAFT_MESSAGE_H
#define CORE_RAFT_MESSAGE_H

#include "base/blob.h"
#include "core/raft/log.h"

/* No term, index or epoch comes near this, so that adding one never wraps. */
#define RAFT_NUMBER_MAX (UINT64_C(1) << 62)

/* A message whose term is further ahead of ours than this is refused (term.c). */
#define RAFT_TERM_JUMP_MAX (UINT64_C(1) << 30)

/* Entries in one append. */
#define RAFT_APPEND_ENTRIES_MAX 65536

enum raft_certificate_kind {
    RAFT_CERT_NONE,
    RAFT_CERT_OBITUARY, /* by the guard of {node, incarnation}: its process, and so its work, is dead */
    RAFT_CERT_RELEASE,  /* by the leader: its work of this term up to this lease epoch has stopped */
    RAFT_CERT_FORCE,    /* a release that also lets `target` win with a log that ends at `commit` or later */
};

#define RAFT_MAC_BYTES 32

/* A proof that promises to a leader are void. Checked by settings.verify before it counts. */
struct raft_certificate {
    enum raft_certificate_kind kind;
    raft_id node;
    uint64_t incarnation;
    raft_term term;       /* RELEASE, FORCE */
    uint64_t lease_epoch; /* RELEASE, FORCE */
    raft_id target;       /* FORCE */
    raft_index commit;    /* FORCE: the leader commits nothing beyond it any more */
    uint8_t mac[RAFT_MAC_BYTES];
};

/* Why a vote was refused. */
#define RAFT_REASON_MAP(X)                                                                                   \
    X(GRANTED, "granted")                                                                                    \
    X(TERM, "TERM")   /* the candidate's term is old */                                                      \
    X(LOG, "LOG")     /* the voter's log is more up to date */                                               \
    X(VOTED, "VOTED") /* the voter has voted for another in this term */                                     \
    X(LEASE, "LEASE") /* the voter has promised a leader, or leads itself */
#define RAFT_REASON_ENUM(name, text) RAFT_##name,
enum raft_reason { RAFT_REASON_MAP(RAFT_REASON_ENUM) };
#undef RAFT_REASON_ENUM
#define RAFT_REASON_COUNT (RAFT_LEASE + 1)

#define RAFT_MESSAGE_MAP(X)                                                                                  \
    X(APPEND, "append")                                                                                      \
    X(APPEND_REPLY, "append-reply")                                                                          \
    X(PRE_VOTE, "pre-vote")                                                                                  \
    X(PRE_VOTE_REPLY, "pre-vote-reply")                                                                      \
    X(VOTE, "vote")                                                                                          \
    X(VOTE_REPLY, "vote-reply")                                                                              \
    X(SNAPSHOT, "snapshot")                                                                                  \
    X(TIMEOUT_NOW, "timeout-now")                                                                            \
    X(CERTIFICATE, "certificate") /* an obituary from a guard, a release from a leader; from may be 0 */     \
    X(TAKE_OVER, "take-over")     /* a follower asks the leader for a forced transfer to itself */
#define RAFT_MESSAGE_ENUM(name, text) RAFT_MSG_##name,
enum raft_message_kind { RAFT_MESSAGE_MAP(RAFT_MESSAGE_ENUM) };
#undef RAFT_MESSAGE_ENUM
#define RAFT_MESSAGE_KIND_COUNT (RAFT_MSG_TAKE_OVER + 1)

struct raft_append {
    raft_index prev_index;
    raft_term prev_term;
    raft_index commit;
    uint64_t lease_epoch;
    uint64_t round;                   /* the leader's clock when the round began; comes back in the reply */
    const struct raft_entry *entries; /* borrowed until the next step; prev_index + 1 and on */
    uint32_t entry_count;
    uint8_t successor_count;
    raft_id successors[RAFT_VOTERS_MAX]; /* who should stand for election, first to last */
};

struct raft_append_reply {
    bool is_success;
    raft_index match;          /* success: durable up to here, and the same as the leader's */
    raft_index prev_index;     /* of the append this answers */
    raft_term conflict_term;   /* refusal: the term at prev_index, 0 if the log is too short */
    raft_index conflict_index; /* refusal: the first index of that term, or one past the end */
    uint64_t round;            /* 0: no promise goes with this */
    uint64_t lease_epoch;
    gavel_ns promise;    /* its length, from the arrival of the append */
    raft_term seen_term; /* a higher term that was seen but not adopted because of the promise; 0 none */
    raft_id refused;     /* a member whose directory is an older copy; the leader may not know. 0 none */
    uint64_t refused_directory;
};

/* PRE_VOTE and VOTE. */
struct raft_vote {
    raft_term term; /* the term to lead in; in VOTE the same as the message's */
    uint64_t round; /* PRE_VOTE: comes back in the reply */
    raft_index last_index;
    raft_term last_term;
    uint8_t priority;                    /* for people to read; never a reason to refuse */
    struct raft_certificate certificate; /* proof that the promise of the voters is void; or NONE */
};

struct raft_vote_reply {
    raft_term term; /* of the request */
    uint64_t round;
    enum raft_reason reason;
    raft_id voted_for; /* VOTED: for whom */
    gavel_ns wait;     /* LEASE: how long the promise still lasts */
};

struct raft_install {
    raft_index index; /* the last entry that the snapshot covers */
    raft_term index_term;
    struct raft_config config; /* as of that entry */
    raft_index config_index;
    uint64_t lease_epoch;
    uint64_t round;
    const uint8_t *data; /* borrowed until the next step */
    size_t size;
    struct blob *blob; /* holds the data, for those who want to share it; NULL: copy it */
};

struct raft_message {
    enum raft_message_kind kind;
    raft_id from;
    raft_id to;
    uint64_t cluster; /* messages of another cluster, or of another generation of it, are refused */
    uint64_t generation;
    uint64_t incarnation; /* of the sender */
    uint64_t directory;   /* the number of its data directory; 0: a 0.6.0 node, which has none */
    raft_index bound_at;  /* the index of the configuration in its log that has this directory; 0: none */
    raft_index began_at;  /* where its log ended when this incarnation began */
    uint64_t start;       /* a random number of this start; another one in the same incarnation is a copy */
    uint64_t founding;    /* of the cluster, by the newest configuration in its log; 0: none yet */
    bool is_founded;      /* it knows that this founding is committed, so it never changes */
    raft_term term;       /* of the sender */
    union {
        struct raft_append append;
        struct raft_append_reply append_reply;
        struct raft_vote vote;
        struct raft_vote_reply vote_reply;
        struct raft_install snapshot;
        struct raft_certificate certificate; /* TIMEOUT_NOW, CERTIFICATE */
    };
};

/* ERR_INVALID, with a reason, for a message that no gavel node would send. Checks the message alone. */
GAVEL_CHECKED enum gavel_status raft_message_check(const struct raft_message *message,
                                                   const char **ret_reason);

const char *raft_message_name(enum raft_message_kind kind);
const char *raft_reason_name(enum raft_reason reason);

#endif
