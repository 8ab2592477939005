/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The newest events and elections of this node, each with a number that only
 * grows. The consensus thread writes, the API reads.
 *
 * The number of an event is (incarnation << 32) + a count, so that ids grow
 * across restarts, and a reader that returns with an old id gets everything that
 * is still kept.
 */
#ifndef DAEMON_SHARED_JOURNAL_H
#define DAEMON_SHARED_JOURNAL_H

#include "core/raft/raft.h"
#include "wire/peer.h"

#include <pthread.h>

/* Stable names, for /events, the log and the documents. */
#define JOURNAL_EVENT_MAP(X)                                                                                 \
    X(STARTED, "started")                                                                                    \
    X(STOPPING, "stopping")                                                                                  \
    X(ROLE_CHANGED, "role_changed")       /* text: the role */                                               \
    X(LEADER_CHANGED, "leader_changed")   /* node: the new one, "" if none; previous */                      \
    X(BECAME_LEADER, "became_leader")     /* claimed: no-op committed, lease held; lease_epoch */            \
    X(LOST_LEADERSHIP, "lost_leadership") /* the work has stopped; text: the reason */                       \
    X(ELECTION_ENDED, "election_ended")   /* text: the result */                                             \
    X(TRANSFER_STARTED, "transfer_started")                                                                  \
    X(TRANSFER_DONE, "transfer_done")                                                                        \
    X(TRANSFER_FAILED, "transfer_failed")                                                                    \
    X(MEMBERS_CHANGED, "members_changed")                                                                    \
    X(MEMBER_CHANGE_FAILED, "member_change_failed")                                                          \
    X(PEER_UP, "peer_up")                                                                                    \
    X(PEER_DOWN, "peer_down")                                                                                \
    X(PEER_REFUSED, "peer_refused")           /* text: why */                                                \
    X(DIRECTORY_REFUSED, "directory_refused") /* an alert; of a member that has lost state */                \
    X(DIRECTORY_AWAITED, "directory_awaited") /* of a member: it keeps a 0.6.0 cluster unbound */            \
    X(FOUNDING_REFUSED, "founding_refused")   /* an alert; of a node of another founding */                  \
    X(DIRECTORY_LOST, "directory_lost")       /* an alert; our own was deleted or replaced under us */       \
    X(BREAKER_OPEN, "breaker_open")                                                                          \
    X(BREAKER_CLOSED, "breaker_closed")                                                                      \
    X(LEADER_DOWN, "leader_down")             /* an obituary of the leader came */                           \
    X(SPLIT_BRAIN, "split_brain")             /* an alert; text: who and who */                              \
    X(ENTRIES_TRUNCATED, "entries_truncated") /* index */                                                    \
    X(DISK_FULL, "disk_full")                                                                                \
    X(DISK_ROOM, "disk_room")         /* there is room again */                                              \
    X(DISK_HANGS, "disk_hangs")       /* an alert; no write has finished for a second */                     \
    X(DISK_ANSWERS, "disk_answers")   /* it does again */                                                    \
    X(COMMITS_HANG, "commits_hang")   /* an alert; a leader has committed nothing for a second */            \
    X(COMMITS_GO_ON, "commits_go_on") /* it does again, or leads no more */                                  \
    X(NOBODY_NEAR, "nobody_near")     /* an alert; led repeatedly without a lease; text: how far */          \
    X(CERTIFICATE_EXPIRES, "certificate_expires") /* an alert; text: whose and when */                       \
    X(OPERATOR, "operator")                       /* a manual intervention; text: what */
#define JOURNAL_ENUM(name, text) JOURNAL_##name,
enum journal_event { JOURNAL_EVENT_MAP(JOURNAL_ENUM) };
#undef JOURNAL_ENUM

struct journal_entry {
    uint64_t id; /* filled in by journal_put() */
    enum journal_event event;
    int64_t wall_ms;
    gavel_ns at; /* on CLOCK_BOOTTIME of this machine */
    raft_term term;
    raft_index index;
    uint64_t lease_epoch;
    char node[PEER_NAME_MAX + 1];     /* whom it is about */
    char previous[PEER_NAME_MAX + 1]; /* LEADER_CHANGED */
    char text[PEER_TEXT_MAX + 1];
};

struct journal_election {
    uint64_t id; /* grows by one */
    int64_t started_wall_ms;
    int64_t ended_wall_ms;
    struct raft_election election; /* started_at … ended_at: the duration */
    char candidate[PEER_NAME_MAX + 1];
    struct {
        char voter[PEER_NAME_MAX + 1];
        char vote[PEER_NAME_MAX + 1]; /* for whom; "" nobody */
    } names[RAFT_MEMBERS_MAX];        /* of election.ballots */
};

#define JOURNAL_ENTRIES_KEPT 1024
#define JOURNAL_ELECTIONS_KEPT 128

struct journal;

GAVEL_CHECKED enum gavel_status journal_new(uint64_t incarnation, struct journal **ret_journal);
void journal_free(struct journal *journal);

/* fd is an eventfd that is written to after each put; -1: none. Set before the threads start. */
void journal_set_bell(struct journal *journal, int fd);

/* Any thread. Returns the id. */
uint64_t journal_put(struct journal *journal, const struct journal_entry *entry);
void journal_put_election(struct journal *journal, const struct journal_election *election);

/* The oldest entry whose id is greater than `after`; false if there is none. *ret_missed (may be NULL): some
 * between `after` and it are no longer kept. */
bool journal_next(struct journal *journal, uint64_t after, struct journal_entry *ret_entry, bool *ret_missed);

/* The newest id; 0 if nothing has happened. */
uint64_t journal_newest(struct journal *journal);

/* The elections, newest first. Returns how many were written, at most `most`. */
size_t journal_elections(struct journal *journal, struct journal_election *ret_elections, size_t most);

const char *journal_event_name(enum journal_event event);

#endif
