/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Snapshots replace entries by the state machine's own image of everything it has
 * applied (thesis, section 5). The caller takes them; a leader sends its newest to
 * a follower that needs entries which are gone.
 */

#include "core/raft/internal.h"

/* Shares the bytes, or copies them; the old ones go. ERR_NO_MEMORY, and nothing is changed. */
static enum gavel_status keep(struct raft *r, struct blob *blob, const uint8_t *data, size_t size)
{
    if (blob) {
        ASSERT(blob->bytes == data);
        ASSERT(blob->size == size);
    }
    blob = blob ? blob_share(blob) : blob_copy(data, size);
    if (!blob)
        return GAVEL_ERR_NO_MEMORY;
    blob_drop(r->snapshot.blob);
    r->snapshot.blob = blob;
    r->snapshot.data = blob->bytes;
    r->snapshot.size = size;
    return GAVEL_OK;
}

enum gavel_status raft_compact(struct raft *r, raft_index index, struct blob *blob, const uint8_t *data,
                               size_t size)
{
    struct raft_config config;
    raft_index config_index;
    enum gavel_status status;
    bool is_old = index <= r->log.base;

    if (PLANTED(SNAPSHOT_GOES_BACK))
        is_old = false;
    if (index > r->applied || (size > 0 && !data))
        return GAVEL_ERR_INVALID;
    if (is_old)
        return GAVEL_ERR_STATE; /* there is a newer one already */
    config_index = raft_find_config(r, index, &config);
    if (config.count == 0)
        return GAVEL_ERR_STATE; /* a node that joins, before the entry that tells it who the members are */
    status = keep(r, blob, data, size);
    if (status != GAVEL_OK)
        return status;
    r->snapshot.config = config;
    r->snapshot.config_index = config_index;
    r->snapshot.index = index;
    r->snapshot.term = raft_log_term(&r->log, index);
    raft_log_compact(&r->log, index);
    r->dirty.has_snapshot = true;
    ASSERT(r->log.base == r->snapshot.index);
    ASSERT(r->log.base <= r->applied);
    ASSERT(r->snapshot.term > 0);
    ASSERT(r->snapshot.config_index <= r->snapshot.index);
    return GAVEL_OK;
}

void raft_send_snapshot(struct raft *r, struct raft_peer *peer)
{
    ASSERT(r->role == RAFT_LEADER);
    ASSERT(r->snapshot.index == r->log.base);
    ASSERT(peer->next <= r->log.base); /* else entries would do */
    peer->progress = RAFT_INSTALL;
    peer->installed_at = r->now;
    peer->inflight_count = 0;
    raft_send(r, RAFT_MSG_SNAPSHOT, peer->id, RAFT_AFTER_STATE)->snapshot = (struct raft_install){
        .index = r->snapshot.index,
        .index_term = r->snapshot.term,
        .config = r->snapshot.config,
        .config_index = r->snapshot.config_index,
        .lease_epoch = r->lease_epoch,
        .round = r->lead_round,
        .data = r->snapshot.data,
        .size = r->snapshot.size,
        .blob = r->snapshot.blob,
    };
}

/* Takes the snapshot in place of our log, or of its beginning if the rest agrees. */
static enum gavel_status install(struct raft *r, const struct raft_install *s)
{
    enum gavel_status status = keep(r, s->blob, s->data, s->size);
    bool is_known = raft_log_term(&r->log, s->index) == s->index_term;

    ASSERT(r->role != RAFT_LEADER);
    ASSERT(s->index > r->commit);
    if (status != GAVEL_OK)
        return status;
    r->snapshot.index = s->index;
    r->snapshot.term = s->index_term;
    r->snapshot.config = s->config;
    r->snapshot.config_index = s->config_index;
    if (is_known) {
        raft_log_compact(&r->log, s->index);
    } else {
        raft_log_restart(&r->log, s->index, s->index_term);
        r->dirty.restarts_log = true;
    }
    r->dirty.has_snapshot = true;
    r->commit = r->applied = s->index;
    ASSERT(r->log.base == s->index);
    ASSERT(raft_log_last(&r->log) >= r->commit);
    raft_use_config_of_log(r);
    (void)raft_learn_founding(r); /* it is on disk with the snapshot */
    raft_act(r, RAFT_RESTORE);
    return GAVEL_OK;
}

void raft_receive_snapshot(struct raft *r, const struct raft_message *m)
{
    const struct raft_install *s = &m->snapshot;
    struct raft_append_reply *reply;
    raft_index match;
    uint64_t round;

    if (!raft_follow(r, m))
        return;
    /* One that was decoded first comes late, without a round: its leader may be dead by now, so it gets no
     * promise for it. Heartbeats, which go beside it, get theirs. */
    round = s->round != 0 && raft_promise_make(r, m->from, m->incarnation, s->lease_epoch) ? s->round : 0;
    if (round && r->role == RAFT_FOLLOWER)
        raft_restart_timer(r);
    if (s->index > r->commit && install(r, s) != GAVEL_OK)
        return; /* no memory: as if it had been lost on its way */
    match = s->index > r->commit ? s->index : r->commit;
    ASSERT(match <= raft_log_last(&r->log));
    reply = raft_reply_append(r, m, round, s->lease_epoch, RAFT_AFTER_ALL);
    reply->is_success = true;
    reply->match = match;
    reply->prev_index = s->index;
}
