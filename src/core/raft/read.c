/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads without a log entry (thesis, section 6.4). With a lease the answer is at
 * hand. Without one, or if the caller does not want to rely on clocks, a majority
 * must first acknowledge a round that began after the question (read-index). Then
 * nobody else can have been elected before it was asked.
 */

#include "core/raft/internal.h"

static int64_t acked(const void *context, raft_id id)
{
    const struct raft *r = context;
    const struct raft_peer *peer = raft_peer_at(r, id);

    if (id == r->state.id)
        return INT64_MAX;
    return peer ? (int64_t)peer->acked_round : 0;
}

static void answer(struct raft *r, enum raft_action_kind kind, const struct raft_pending_read *read)
{
    struct raft_action *action = raft_act(r, kind);

    action->read.id = read->id;
    action->read.index = read->index;
}

enum gavel_status raft_read(struct raft *r, uint64_t id, bool needs_round)
{
    struct raft_pending_read read = {.id = id, .index = r->commit};
    bool is_at_hand = !needs_round && raft_is_working(r, r->now);

    if (PLANTED(STALE_READ))
        is_at_hand = true;
    if (r->role != RAFT_LEADER)
        return GAVEL_ERR_NO_LEADER;
    if (r->commit < r->noop_index || raft_is_caretaker(r) || r->read_count == RAFT_READS_MAX)
        return GAVEL_ERR_STATE; /* until an entry of our term is committed we may not know all that is */
    ASSERT(read.index >= r->noop_index);
    if (is_at_hand) {
        answer(r, RAFT_READ_READY, &read);
        return GAVEL_OK;
    }
    raft_new_round(r);
    raft_send_appends(r, true);
    read.round = r->lead_round;
    ASSERT(read.round > 0);
    ASSERT(r->read_count < RAFT_READS_MAX);
    r->reads[r->read_count++] = read;
    raft_answer_reads(r);
    return GAVEL_OK;
}

void raft_answer_reads(struct raft *r)
{
    uint64_t reached;
    size_t kept = 0;

    if (r->read_count == 0 || r->role != RAFT_LEADER)
        return;
    reached = (uint64_t)raft_config_reached(&r->config, acked, r);
    for (size_t i = 0; i < r->read_count; i++) {
        if (r->reads[i].round <= reached)
            answer(r, RAFT_READ_READY, &r->reads[i]);
        else
            r->reads[kept++] = r->reads[i];
    }
    ASSERT(kept <= r->read_count);
    r->read_count = kept;
}

void raft_lose_reads(struct raft *r)
{
    for (size_t i = 0; i < r->read_count; i++)
        answer(r, RAFT_READ_LOST, &r->reads[i]);
    r->read_count = 0;
}
