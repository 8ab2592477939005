/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What stands still without an error, told after a second: a disk that does
 * not answer, and a leader whose entries are not committed. Raft decides when
 * that is so (raft/hang.c) and hands over by itself; this is for people, and
 * for the peers, which cannot see it from where they are.
 */
#include "daemon/node/consensus.h"

#include "os/clock.h"

/* A follower whose disk hangs gets few more entries, so its table stands still, and its clients wait in vain
 * for changes. They go elsewhere then; not at once, for some have no other node. */
#define BLIND_AFTER (5 * NS_PER_S)

static double in_seconds(gavel_ns ns) { return (double)ns / (double)NS_PER_S; }

/* A full disk is told as what it is. */
static void check_disk(struct consensus *c, gavel_ns now)
{
    bool hangs = raft_disk_hangs(&c->node.raft, now) && c->disk_state == WRITER_GOOD;

    if (hangs == c->hang.is_disk_hung)
        return;
    c->hang.is_disk_hung = hangs;
    c->told.is_status_due = true;
    if (hangs) {
        c->hang.hung_at = now - backlog_age(&c->node.raft.writes, now);
        c->draft.counters.disk_hangs++;
        consensus_note(c, JOURNAL_DISK_HANGS, c->config->id,
                       "a write to %.150s has been under way for %.1f s: this node cannot be elected",
                       c->config->data, in_seconds(now - c->hang.hung_at));
    } else if (c->disk_state == WRITER_GOOD) {
        consensus_note(c, JOURNAL_DISK_ANSWERS, c->config->id, "the disk answers again, after %.1f s",
                       in_seconds(now - c->hang.hung_at));
    }
}

static void check_commits(struct consensus *c, gavel_ns now)
{
    bool hangs = raft_commit_hangs(&c->node.raft, now);

    if (hangs == c->hang.is_commit_hung)
        return;
    c->hang.is_commit_hung = hangs;
    c->told.is_status_due = true;
    if (hangs) {
        c->hang.uncommitted_at = now - backlog_age(&c->node.raft.uncommitted, now);
        consensus_note(c, JOURNAL_COMMITS_HANG, c->config->id,
                       "nothing has been committed for %.1f s: too few of the voters write to their disks",
                       in_seconds(now - c->hang.uncommitted_at));
    } else {
        consensus_note(c, JOURNAL_COMMITS_GO_ON, c->config->id, "%s, after %.1f s",
                       c->node.raft.role == RAFT_LEADER ? "entries are committed again"
                                                        : "this node does not lead any more",
                       in_seconds(now - c->hang.uncommitted_at));
    }
}

void consensus_check_hangs(struct consensus *c)
{
    gavel_ns now = clock_now();

    check_disk(c, now);
    check_commits(c, now);
    atomic_store(&c->shared->is_blind, c->hang.is_disk_hung && c->node.raft.role != RAFT_LEADER &&
                                           now - c->hang.hung_at >= BLIND_AFTER);
}
