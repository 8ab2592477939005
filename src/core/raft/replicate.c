/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The leader's side of the log (thesis, section 3.5).
 *
 * PROBE: one append at a time, until it is known where the peer's log agrees with
 * ours. REPLICATE: entries flow, with a bounded number of appends under way.
 * INSTALL: the entries that the peer needs are gone, so it gets the snapshot. Every
 * heartbeat is an append whose previous entry is the last one sent, so that the
 * next heartbeat reveals a lost append.
 *
 * Each append names the round it belongs to: our clock when the round began.
 * The reply brings it back, and with it the promise (lease.c).
 */

#include "core/raft/internal.h"

/* So that one step never gives out more than its caller can hold. */
#define APPENDS_PER_STEP 4

void raft_new_round(struct raft *r)
{
    uint64_t round = (uint64_t)r->now;

    ASSERT(r->role == RAFT_LEADER);
    r->lead_round = round > r->lead_round ? round : r->lead_round + 1;
    if (r->lead_round - round > r->round_ahead)
        r->round_ahead = r->lead_round - round; /* several in one instant; the lease must not gain by it */
    ASSERT(r->lead_round >= round);
    r->heartbeat_at = r->now + r->settings.heartbeat;
    raft_order_successors(r);
}

/* How many entries from `first` on go into one append: at least one, if there is one. */
static uint32_t batch(const struct raft *r, raft_index first)
{
    uint32_t count = 0;
    uint64_t bytes = 0;

    while (count < r->settings.batch_entries && first + count <= raft_log_last(&r->log)) {
        bytes += raft_log_at(&r->log, first + count)->size;
        if (count > 0 && bytes > r->settings.batch_bytes)
            break;
        count++;
    }
    return count;
}

static void send_append(struct raft *r, const struct raft_peer *peer, raft_index prev, uint32_t count)
{
    struct raft_append *a = &raft_send(r, RAFT_MSG_APPEND, peer->id, RAFT_AFTER_STATE)->append;

    ASSERT(r->role == RAFT_LEADER);
    ASSERT(prev + count <= raft_log_last(&r->log));
    ASSERT(prev < peer->next);
    ASSERT(prev == 0 || prev >= r->log.base); /* what is before it goes as a snapshot */
    a->prev_index = prev;
    a->prev_term = raft_log_term(&r->log, prev);
    a->commit = r->commit;
    a->lease_epoch = r->lease_epoch;
    a->round = r->lead_round;
    a->entries = count > 0 ? raft_log_at(&r->log, prev + 1) : NULL;
    a->entry_count = count;
    a->successor_count = r->successor_count;
    for (unsigned i = 0; i < r->successor_count; i++)
        a->successors[i] = r->successors[i];
}

/* A heartbeat for one whose log is not known, or not worth speaking of: it agrees with everything at index
 * 0. */
static void send_bare(struct raft *r, const struct raft_peer *peer) { send_append(r, peer, 0, 0); }

static void send_flowing(struct raft *r, struct raft_peer *peer, bool also_empty)
{
    unsigned limit =
        r->settings.inflight_max < RAFT_INFLIGHT_MAX ? r->settings.inflight_max : RAFT_INFLIGHT_MAX;

    for (int sent = 0; sent < APPENDS_PER_STEP && peer->inflight_count < limit; sent++) {
        uint32_t count = batch(r, peer->next);

        if (count == 0)
            break;
        send_append(r, peer, peer->next - 1, count);
        ASSERT(peer->inflight_count < RAFT_INFLIGHT_MAX);
        peer->next += count;
        peer->inflight[peer->inflight_count++] = peer->next - 1;
        also_empty = false;
    }
    ASSERT(peer->next <= raft_log_last(&r->log) + 1);
    if (also_empty)
        send_append(r, peer, peer->next - 1, 0);
}

static void send_to(struct raft *r, struct raft_peer *peer, bool also_empty)
{
    ASSERT(peer->next <= raft_log_last(&r->log) + 1);
    if (peer->next <= r->log.base) { /* what it needs is in the snapshot only */
        bool is_due =
            peer->progress != RAFT_INSTALL || r->now - peer->installed_at > 2 * r->settings.election_max;

        /* Also with a snapshot, and before it: the answer to that waits for the disk, the promise need
         * not. */
        if (PLANTED(SNAPSHOT_AS_HEARTBEAT))
            also_empty = also_empty && !is_due;
        if (also_empty)
            send_bare(r, peer);
        if (is_due)
            raft_send_snapshot(r, peer);
        return;
    }
    ASSERT(peer->next > peer->match); /* while a snapshot is under way it may not be */
    if (peer->progress == RAFT_INSTALL)
        peer->progress = RAFT_PROBE;
    if (peer->progress == RAFT_REPLICATE) {
        send_flowing(r, peer, also_empty);
        return;
    }
    if (peer->is_probing && !also_empty)
        return;
    send_append(r, peer, peer->next - 1, batch(r, peer->next));
    peer->is_probing = true;
}

/* What each peer lacks; also_empty: something to everybody, as heartbeats do. */
void raft_send_appends(struct raft *r, bool also_empty)
{
    for (size_t i = 0; i < r->peer_count; i++)
        send_to(r, &r->peers[i], also_empty);
}

/* Those that are level learn what was committed; the others have more to read. */
void raft_send_commit(struct raft *r)
{
    for (size_t i = 0; i < r->peer_count; i++)
        if (r->peers[i].progress == RAFT_REPLICATE)
            send_to(r, &r->peers[i], true);
}

enum gavel_status raft_append_own(struct raft *r, const struct raft_entry *entry)
{
    enum gavel_status status;

    ASSERT(r->role == RAFT_LEADER);
    ASSERT(entry->term == r->state.term);
    status = raft_log_append(&r->log, entry);
    if (status == GAVEL_OK) {
        raft_mark_append(r, raft_log_last(&r->log));
        r->uncommitted_bytes += entry->size;
    }
    return status;
}

/*
 * A leader whose followers cannot write commits nothing, and must not go on taking entries for ever: memory
 * would end, and every one of them would have to be sent before anything new. What comes when nothing else
 * waits is always taken, however large.
 */
static bool has_room(const struct raft *r, const struct raft_entry *entries, uint32_t count)
{
    const uint64_t waiting = raft_log_last(&r->log) - r->commit;
    uint64_t bytes = r->uncommitted_bytes;

    for (uint32_t i = 0; i < count; i++)
        bytes += entries[i].size;
    return waiting == 0 ||
           (waiting + count <= r->settings.uncommitted_entries && bytes <= r->settings.uncommitted_bytes);
}

/* All of them or none: whoever is told that it failed counts on it that nothing will come of it. */
enum gavel_status raft_propose(struct raft *r, const struct raft_entry *entries, uint32_t count)
{
    const struct raft_persist dirty = r->dirty;
    const raft_index first = raft_log_last(&r->log) + 1;
    const size_t uncommitted_bytes = r->uncommitted_bytes;
    bool is_too_much;

    if (r->role != RAFT_LEADER)
        return GAVEL_ERR_NO_LEADER;
    if (r->transfer.phase != RAFT_TRANSFER_NONE || r->steps_down || raft_is_caretaker(r))
        return GAVEL_ERR_STATE;
    for (uint32_t i = 0; i < count; i++)
        if (entries[i].kind != RAFT_ENTRY_DATA || entries[i].size > RAFT_ENTRY_BYTES_MAX ||
            (entries[i].size > 0 && !entries[i].data))
            return GAVEL_ERR_INVALID;
    if (raft_log_last(&r->log) + count >= RAFT_NUMBER_MAX)
        return GAVEL_ERR_INVALID;
    is_too_much = !has_room(r, entries, count);
    if (PLANTED(UNCOMMITTED_UNBOUNDED))
        is_too_much = false;
    if (is_too_much)
        return GAVEL_ERR_STORE_UNAVAILABLE;
    for (uint32_t i = 0; i < count; i++) {
        struct raft_entry entry = entries[i];
        enum gavel_status status;

        entry.term = r->state.term;
        status = raft_append_own(r, &entry);
        if (status != GAVEL_OK) {
            raft_log_truncate(&r->log, first);
            r->dirty = dirty; /* nobody has heard of them yet, nor has the disk */
            r->uncommitted_bytes = uncommitted_bytes;
            return status;
        }
    }
    ASSERT(raft_log_last(&r->log) == first + count - 1);
    raft_send_appends(r, false);
    return GAVEL_OK;
}

static void accept_promise(struct raft *r, struct raft_peer *peer, const struct raft_append_reply *reply)
{
    ASSERT(reply->round <= r->lead_round); /* the caller refuses what was never sent */
    if (reply->round == 0)
        return; /* it takes us for dead: of no use for a lease */
    peer->heard_at = r->now;
    if (reply->lease_epoch != r->lease_epoch || reply->round <= peer->acked_round)
        return;
    if (peer->acked_round == 0)
        peer->answered_at = r->now;
    raft_note_round_trip(r, peer, reply->round);
    peer->acked_round = reply->round;
    if (PLANTED(LEASE_FROM_ACK))
        peer->acked_round = (uint64_t)r->now;
    peer->acked_promise = reply->promise;
}

static void accept_match(struct raft *r, struct raft_peer *peer, raft_index match)
{
    unsigned answered = 0;
    bool is_news = match > peer->match;

    ASSERT(match <= raft_log_last(&r->log)); /* the caller refuses what was never sent */
    if (is_news)
        peer->match = match;
    if (peer->progress == RAFT_INSTALL && peer->match < r->log.base) {
        if (is_news)
            peer->progress =
                RAFT_PROBE; /* it has the snapshot, but there is a newer one already: that one next */
        return;             /* else a heartbeat's answer; the snapshot is still under way */
    }
    while (answered < peer->inflight_count && peer->inflight[answered] <= peer->match)
        answered++;
    ASSERT(answered <= peer->inflight_count);
    peer->inflight_count = (uint8_t)(peer->inflight_count - answered);
    for (unsigned i = 0; i < peer->inflight_count; i++)
        peer->inflight[i] = peer->inflight[i + answered];
    if (peer->progress != RAFT_REPLICATE) {
        peer->progress = RAFT_REPLICATE;
        peer->is_probing = false;
        peer->next = peer->match + 1;
    } else if (peer->next <= peer->match) {
        peer->next = peer->match + 1;
    }
    ASSERT(peer->next > peer->match);
}

/* Goes back to where the two logs may agree; stale refusals, overtaken by later answers, change nothing. */
static void accept_refusal(struct raft *r, struct raft_peer *peer, const struct raft_append_reply *reply)
{
    raft_index next = reply->conflict_index;
    raft_index ours;

    if (peer->progress == RAFT_INSTALL || reply->prev_index <= peer->match)
        return;
    if (peer->progress == RAFT_PROBE && reply->prev_index != peer->next - 1)
        return;
    if (reply->conflict_term != 0) {
        ours = raft_log_last_of_term(&r->log, reply->conflict_term);
        if (ours != 0 && ours < reply->prev_index)
            next = ours + 1;
    }
    if (next > reply->prev_index)
        next = reply->prev_index;
    if (next <= peer->match)
        next = peer->match + 1;
    peer->progress = RAFT_PROBE;
    peer->is_probing = false;
    peer->inflight_count = 0;
    peer->next = next;
    ASSERT(peer->next > peer->match);
    ASSERT(peer->next <= reply->prev_index); /* it goes back, never on */
}

/* In our own term: it has heard us, and its disk is not done yet with what it has to write before it
 * promises. */
static bool is_empty(const struct raft_append_reply *reply)
{
    return !reply->is_success && reply->round == 0 && reply->prev_index == 0 && reply->conflict_index == 0;
}

void raft_receive_append_reply(struct raft *r, const struct raft_message *m)
{
    const struct raft_append_reply *reply = &m->append_reply;
    struct raft_peer *peer;

    if (m->term > r->state.term || reply->seen_term > r->state.term) {
        raft_meet_term(r, m->term > reply->seen_term ? m->term : reply->seen_term);
        return;
    }
    peer = raft_peer_find(r, m->from);
    if (r->role != RAFT_LEADER || m->term < r->state.term || !peer)
        return;
    if (reply->round > r->lead_round || reply->match > raft_log_last(&r->log) ||
        reply->prev_index > raft_log_last(&r->log)) {
        raft_refuse(r, m->from, "it answers what was never sent");
        return;
    }
    raft_hear_refusal(r, reply->refused, reply->refused_directory);
    if (is_empty(reply)) {
        peer->writing_at = r->now;
        return;
    }
    accept_promise(r, peer, reply);
    if (reply->is_success && reply->match > peer->match && reply->round != 0 &&
        peer->progress != RAFT_INSTALL)
        raft_note_write(r, peer, reply->round);
    if (reply->is_success)
        accept_match(r, peer, reply->match);
    else
        accept_refusal(r, peer, reply);
    raft_advance_commit(r);
    if (r->role == RAFT_LEADER)
        send_to(r, peer, false);
}
