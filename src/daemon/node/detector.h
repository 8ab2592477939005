/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The detector of split brain: a second pair of eyes over what nodes say of
 * themselves, apart from everything that makes it impossible.
 *
 * Each node tells its peers now and then whether it works as leader, in which
 * generation and term. Such a status may be old when it arrives, so one that
 * names a former leader proves nothing. But each carries a number, and the
 * numbers it has read from others. So if
 *
 *     we were told that B works, with a token higher than A's,
 *     and A says that it works, and has read what we said after that,
 *
 * then A worked after B had begun: their work overlapped. No clock is needed,
 * and no status that was late on its way raises a false alarm. Two nodes that
 * lead in one term are an alarm however old the news is. Nodes of another
 * generation of the cluster are not heard at all (consensus_peers.c).
 *
 * Pure; no I/O, no clock.
 */
#ifndef DAEMON_NODE_DETECTOR_H
#define DAEMON_NODE_DETECTOR_H

#include "wire/peer.h"

struct detector_report {
    raft_id node; /* 0: free */
    struct peer_status status;
    uint64_t works_since; /* what we send from this number on, we say knowing of its work */
    bool is_told;         /* an alarm about this work was given */
    bool is_other;        /* its table differs from ours, and that was told */
};

/* What the table was after an entry. */
struct detector_digest {
    raft_index index;
    uint64_t digest;
};
#define DETECTOR_DIGESTS 1024

struct detector {
    uint64_t number;                                      /* of our own newest status */
    struct detector_report reports[RAFT_MEMBERS_MAX + 1]; /* the first is our own */
    struct detector_digest digests[DETECTOR_DIGESTS];     /* of our own table, the newest of each index */
};

enum detector_finding {
    DETECTOR_NOTHING,
    DETECTOR_ONE_TERM, /* two nodes lead in one term */
    DETECTOR_OVERLAP,  /* two nodes work at once */
};

struct detector_alarm {
    enum detector_finding finding;
    struct peer_status higher; /* who goes on */
    struct peer_status lower;  /* who has to give way */
};

void detector_init(struct detector *detector);

/* Our own status, about to be sent: fills in number and echoes. */
void detector_send(struct detector *detector, struct peer_status *status);

/* What a peer has said; `self` is what we would say at this moment. An alarm is told once for each work. */
struct detector_alarm detector_receive(struct detector *detector, const struct peer_status *self,
                                       const struct peer_status *status);

/* Our own table after this entry. */
void detector_applied(struct detector *detector, raft_index index, uint64_t digest);

/*
 * Whether the table that this status tells of differs from what ours was after the same entry: something that
 * was committed is lost or changed. True once for each peer, until they agree again.
 */
bool detector_differs(struct detector *detector, const struct peer_status *status, raft_index *ret_index);

/* Whether that was so when it last told. */
bool detector_is_other(const struct detector *detector, raft_id node);

/* Forgets who is no member any more. */
void detector_keep(struct detector *detector, const struct raft_config *members);

/* What a peer last said; NULL if nothing. */
const struct peer_status *detector_status_of(const struct detector *detector, raft_id node);

#endif
