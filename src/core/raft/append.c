/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The follower's side of the log: figure 2 of the Raft paper, AppendEntries
 * RPC, receiver implementation 1 to 5, with a promise on top.
 *
 * An append of our term, or of a later one, comes from a node that a majority
 * has elected, so it is always followed. The promise is made
 * even if the entries do not fit: it is about votes, not about entries.
 */

#include "core/raft/internal.h"

bool raft_follow(struct raft *r, const struct raft_message *m)
{
    if (m->term < r->state.term) {                             /* AppendEntries 1 */
        (void)raft_reply_append(r, m, 0, 0, RAFT_AFTER_STATE); /* says our term, and nothing of our log */
        return false;
    }
    if (m->term == r->state.term && r->role == RAFT_LEADER) {
        raft_refuse(r, m->from, "a second leader in our own term");
        return false;
    }
    if (m->term > r->state.term)
        raft_adopt_term(r, m->term);
    /* A candidate of the same term has lost (thesis, section 3.4). */
    raft_become_follower(r, RAFT_STOP_REPLACED);
    ASSERT(m->term == r->state.term);
    ASSERT(r->role == RAFT_FOLLOWER || r->role == RAFT_LEARNER);
    ASSERT(r->work != RAFT_WORK_RUNNING);
    if (raft_is_dead(r, m->from, m->incarnation))
        return true; /* words of a dead leader: its entries count, but nobody need wait for it */
    raft_set_leader(r, m->from, m->incarnation);
    r->failures = 0;
    r->heard_at = r->now;
    raft_note_followed(r);
    return true;
}

struct raft_append_reply *raft_reply_append(struct raft *r, const struct raft_message *m, uint64_t round,
                                            uint64_t lease_epoch, enum raft_after after)
{
    struct raft_message *reply = raft_send(r, RAFT_MSG_APPEND_REPLY, m->from, after);

    /* A round in the answer is a promise to whoever asked. */
    if (round != 0) {
        ASSERT(r->state.promise.leader == m->from);
        ASSERT(raft_is_promised(r, r->now));
    }
    reply->append_reply = (struct raft_append_reply){
        .round = round,
        .lease_epoch = lease_epoch,
        .promise = round ? r->settings.promise : 0,
        .seen_term = r->seen_term,
    };
    reply->append_reply.refused = raft_refused_one(r, &reply->append_reply.refused_directory);
    return &reply->append_reply;
}

/* AppendEntries 2, with a hint that saves the leader from going back entry by entry (thesis, section 3.5). */
static void refuse(struct raft *r, const struct raft_message *m, uint64_t round)
{
    raft_index prev = m->append.prev_index;
    raft_term own = raft_log_term(&r->log, prev);
    struct raft_append_reply *reply = raft_reply_append(r, m, round, m->append.lease_epoch, RAFT_AFTER_STATE);

    ASSERT(prev > r->log.base); /* what a snapshot stands for is never refused */
    reply->prev_index = prev;
    reply->conflict_term = own;
    reply->conflict_index = own ? raft_log_first_of_term(&r->log, own) : raft_log_last(&r->log) + 1;
    if (reply->conflict_index <= r->commit)
        reply->conflict_index = r->commit + 1; /* up to there we agree with every leader */
    if (reply->conflict_index > prev)
        reply->conflict_index = prev;
    ASSERT(reply->conflict_index > 0);
}

static bool fits(const struct raft *r, const struct raft_append *a)
{
    if (a->prev_index <= r->log.base)
        return true; /* in the snapshot, so committed, so the same */
    return raft_log_term(&r->log, a->prev_index) == a->prev_term;
}

/* AppendEntries 3: an entry that conflicts goes, and all after it. Never a committed one; false then. */
static bool drop_from(struct raft *r, raft_id from, raft_index index)
{
    bool has_config = r->config_index >= index;
    struct raft_action *news;

    if (PLANTED(CONFIG_STAYS))
        has_config = false;
    if (index <= r->commit) {
        raft_refuse(r, from, "it contradicts an entry that is committed here");
        return false;
    }
    news = raft_tell(r, RAFT_NEWS_ENTRIES_TRUNCATED, 0);
    news->tell.index = index;
    raft_log_truncate(&r->log, index);
    raft_mark_truncate(r, index);
    if (has_config)
        raft_use_config_of_log(r);
    ASSERT(raft_log_last(&r->log) == index - 1);
    ASSERT(r->config_index < index || PLANTED(CONFIG_STAYS));
    return true;
}

/* AppendEntries 3 and 4. Returns the last index up to which our log is now the leader's; 0 if it cannot
 * be. */
static raft_index take_entries(struct raft *r, const struct raft_message *m)
{
    const struct raft_append *a = &m->append;
    raft_index index = a->prev_index;
    bool has_config = false;

    if (PLANTED(TRUNCATES_COMMITTED) && raft_log_last(&r->log) > a->prev_index &&
        a->prev_index >= r->log.base && a->entry_count > 0) {
        raft_log_truncate(&r->log, a->prev_index + 1);
        raft_mark_truncate(r, a->prev_index + 1);
    }
    for (uint32_t i = 0; i < a->entry_count; i++) {
        raft_term own;

        index = a->prev_index + 1 + i;
        if (index <= r->log.base)
            continue;
        own = raft_log_term(&r->log, index);
        if (own == a->entries[i].term)
            continue; /* a reordered or repeated append: what we have stays, also what comes after */
        if (a->entries[i].term < raft_log_term(&r->log, index - 1)) {
            raft_refuse(r, m->from, "its entries do not follow ours");
            return 0;
        }
        if (own != 0 && !drop_from(r, m->from, index))
            return 0;
        ASSERT(index == raft_log_last(&r->log) + 1);
        ASSERT(index > r->commit || PLANTED(TRUNCATES_COMMITTED));
        if (raft_log_append(&r->log, &a->entries[i]) != GAVEL_OK) {
            index--; /* no memory: as if the rest had been lost on its way */
            break;
        }
        raft_mark_append(r, index);
        has_config |= a->entries[i].kind == RAFT_ENTRY_CONFIG;
    }
    if (has_config)
        raft_use_config_of_log(r); /* the newest only: however many there are, a step tells little */
    return index;
}

void raft_receive_append(struct raft *r, const struct raft_message *m)
{
    const struct raft_append *a = &m->append;
    struct raft_append_reply *reply;
    raft_index match;
    uint64_t round;
    bool is_writing;

    if (!raft_follow(r, m))
        return;
    is_writing = raft_is_writing_state(r);
    if (PLANTED(SILENT_WHILE_WRITING))
        is_writing = false;
    if (is_writing)
        (void)raft_reply_append(r, m, 0, 0, RAFT_AFTER_NOTHING); /* empty: that we have heard it */
    round = raft_promise_make(r, m->from, m->incarnation, a->lease_epoch) ? a->round : 0;
    if (round) {
        r->successor_count = a->successor_count;
        for (unsigned i = 0; i < a->successor_count; i++)
            r->successors[i] = a->successors[i];
        if (r->role == RAFT_FOLLOWER)
            raft_restart_timer(r);
    }
    if (!fits(r, a)) {
        refuse(r, m, round);
        return;
    }
    match = take_entries(r, m);
    if (match == 0 && a->entry_count > 0)
        return;
    if (match < r->log.base)
        match = r->log.base;
    if (ns_min((int64_t)a->commit, (int64_t)match) > (int64_t)r->commit) /* AppendEntries 5 */
        r->commit = a->commit < match ? a->commit : match;
    if (PLANTED(COMMIT_BEYOND_MATCH) && a->commit > r->commit)
        r->commit = a->commit < raft_log_last(&r->log) ? a->commit : raft_log_last(&r->log);
    if (r->dirty.first != 0) {
        enum raft_after after = RAFT_AFTER_ALL;

        if (PLANTED(REPLY_BEFORE_SYNC))
            after = RAFT_AFTER_STATE;
        reply = raft_reply_append(r, m, round, a->lease_epoch, after);
        reply->match = match;
    } else {
        /* Nothing new: no need to wait for a slow disk, as long as we speak only of what is durable. */
        reply = raft_reply_append(r, m, round, a->lease_epoch, RAFT_AFTER_STATE);
        reply->match = match < r->log.durable ? match : r->log.durable;
    }
    reply->is_success = true;
    reply->prev_index = a->prev_index;
    ASSERT(reply->match <= raft_log_last(&r->log));
    ASSERT(r->commit <= raft_log_last(&r->log));
}
