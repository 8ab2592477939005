/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a step returns, and the one write that it may need.
 *
 * While a step runs, changes of what must be durable are gathered in `dirty`. At
 * its end they become one PERSIST, and only then is it known after which write the
 * messages of the step may leave.
 */

#include "core/raft/internal.h"

#include <string.h>

struct raft_action *raft_act(struct raft *r, enum raft_action_kind kind)
{
    struct raft_action *action;

    ASSERT(r->actions); /* only within a step */
    ASSERT(r->actions->count < RAFT_ACTIONS_MAX);
    action = &r->actions->items[r->actions->count++];
    action->kind = kind;
    return action;
}

struct raft_message *raft_send(struct raft *r, enum raft_message_kind kind, raft_id to, enum raft_after after)
{
    struct raft_action *action = raft_act(r, RAFT_SEND);
    struct raft_message *m = &action->send.message;

    ASSERT(to != r->state.id);
    action->send.after = after;
    m->kind = kind;
    m->from = r->state.id;
    m->to = to;
    m->cluster = r->state.cluster;
    m->generation = r->state.generation;
    m->incarnation = r->state.incarnation;
    m->directory = r->state.directory;
    m->bound_at = raft_bound_at(r);
    m->began_at = r->began_at;
    m->start = r->state.start;
    m->founding = raft_founding(r);
    m->is_founded = r->founding != 0;
    m->term = r->state.term;
    return m;
}

struct raft_action *raft_tell(struct raft *r, enum raft_news news, raft_id node)
{
    struct raft_action *action = raft_act(r, RAFT_TELL);

    memset(&action->tell, 0, sizeof action->tell);
    action->tell.news = news;
    action->tell.node = node;
    action->tell.term = r->state.term;
    return action;
}

void raft_mark_state(struct raft *r) { r->dirty.has_state = true; }

void raft_mark_append(struct raft *r, raft_index index)
{
    ASSERT(index == raft_log_last(&r->log));
    if (r->dirty.first == 0)
        r->dirty.first = index;
    else
        ASSERT(index == r->dirty.last + 1); /* one piece, without a gap */
    ASSERT(index >= r->dirty.first);
    r->dirty.last = index;
}

void raft_mark_truncate(struct raft *r, raft_index index)
{
    ASSERT(r->dirty.first == 0); /* nothing is appended and dropped in one step */
    ASSERT(index == raft_log_last(&r->log) + 1);
    ASSERT(index > r->commit || PLANTED(TRUNCATES_COMMITTED));
    r->dirty.truncate = index;
}

static bool is_dirty(const struct raft_persist *dirty)
{
    return dirty->has_state || dirty->has_met || dirty->has_snapshot || dirty->truncate != 0 ||
           dirty->first != 0;
}

static uint64_t after_what(const struct raft *r, uint64_t after)
{
    uint64_t seq = after == RAFT_AFTER_ALL ? r->seq : after == RAFT_AFTER_STATE ? r->state_seq : 0;

    return seq <= r->durable_seq ? 0 : seq;
}

void raft_flush(struct raft *r)
{
    r->dirty.has_met = raft_met_is_due(r, is_dirty(&r->dirty) || r->keeps_commit);
    if (is_dirty(&r->dirty) || r->keeps_commit) {
        r->seq++;
        if (r->dirty.has_state)
            r->state_seq = r->seq;
        if (r->dirty.first != 0 || r->dirty.has_snapshot)
            raft_log_wrote(&r->log, r->seq);
        r->dirty.has_state = r->dirty.has_state || r->keeps_commit; /* after state_seq: nobody waits for it */
        r->keeps_commit = false;
        r->dirty.seq = r->seq;
        r->state.commit = r->commit;
        r->dirty.state = r->state;
        ASSERT(r->durable_seq < r->seq);
        ASSERT(r->dirty.first <= r->dirty.last);
        ASSERT(r->dirty.last <= raft_log_last(&r->log));
        if (r->dirty.truncate != 0 && r->dirty.first != 0)
            ASSERT(r->dirty.truncate == r->dirty.first);
        if (r->dirty.restarts_log)
            ASSERT(r->dirty.has_snapshot);
        raft_act(r, RAFT_PERSIST)->persist = r->dirty;
        backlog_add(&r->writes, r->seq, r->now);
        if (r->role == RAFT_LEADER && r->dirty.first != 0)
            backlog_add(&r->uncommitted, r->dirty.first, r->now);
        memset(&r->dirty, 0, sizeof r->dirty);
    }
    for (size_t i = 0; i < r->actions->count; i++) {
        struct raft_action *action = &r->actions->items[i];

        if (action->kind != RAFT_SEND)
            continue;
        action->send.after = after_what(r, action->send.after);
        /* Only now: an entry that was appended later in this step may have moved the log. */
        if (action->send.message.kind == RAFT_MSG_APPEND && action->send.message.append.entry_count > 0) {
            action->send.message.append.entries =
                raft_log_at(&r->log, action->send.message.append.prev_index + 1);
            ASSERT(action->send.message.append.entries);
        }
    }
}
