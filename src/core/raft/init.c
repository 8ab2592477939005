/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Starting and restarting. The state from the disk is checked like any other input:
 * a node whose state cannot be right must not vote.
 */

#include "base/error.h"
#include "core/raft/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DAMAGED GAVEL_ERR_STORE_DAMAGED

static enum gavel_status check_state(const struct raft_restore *d, struct gavel_error *error)
{
    const struct raft_state *s = &d->state;
    raft_index last = d->snapshot.index + d->entry_count;

    if (s->id == 0 || s->incarnation == 0)
        return error_set(error, GAVEL_ERR_INVALID, "a node needs an id and an incarnation above 0");
    if (s->term >= RAFT_NUMBER_MAX || s->incarnation >= RAFT_NUMBER_MAX ||
        d->snapshot.index >= RAFT_NUMBER_MAX || d->entry_count >= RAFT_NUMBER_MAX || last >= RAFT_NUMBER_MAX)
        return error_set(error, DAMAGED, "a number on disk is too large to be true");
    if (d->snapshot.term > s->term || s->promise.term > s->term)
        return error_set(error, DAMAGED, "the disk holds a later term than the node's own, %" PRIu64,
                         s->term);
    if (s->promise.length < 0 || s->promise.length > 3600 * NS_PER_S)
        return error_set(error, DAMAGED, "the promise on disk lasts impossibly long");
    if (s->commit > last)
        return error_set(error, DAMAGED,
                         "entries up to %" PRIu64 " were committed, but the log on disk ends at %" PRIu64,
                         s->commit, last);
    return GAVEL_OK;
}

static enum gavel_status check_snapshot(const struct raft_snapshot *s, struct gavel_error *error)
{
    const char *reason;

    if ((s->index == 0) != (s->term == 0) || s->config_index > s->index || (s->size > 0 && !s->data))
        return error_set(error, DAMAGED, "the snapshot on disk contradicts itself");
    if (s->config.count == 0 && s->index == 0)
        return GAVEL_OK; /* a node that joins: the leader will tell it who the members are */
    if (raft_config_check(&s->config, &reason) != GAVEL_OK)
        return error_set(error, DAMAGED, "the members on disk cannot be: %s", reason);
    return GAVEL_OK;
}

static enum gavel_status take_entries(struct raft *r, const struct raft_restore *d, struct gavel_error *error)
{
    for (size_t i = 0; i < d->entry_count; i++) {
        const struct raft_entry *entry = &d->entries[i];
        struct raft_config config;
        const char *reason = "they cannot be read";

        if (entry->term < raft_log_last_term(&r->log) || entry->term > d->state.term || entry->term == 0 ||
            (unsigned)entry->kind >= RAFT_ENTRY_KIND_COUNT || entry->size > RAFT_ENTRY_BYTES_MAX ||
            (entry->size > 0 && !entry->data))
            return error_set(error, DAMAGED, "entry %" PRIu64 " on disk cannot be",
                             d->snapshot.index + 1 + i);
        if (entry->kind == RAFT_ENTRY_CONFIG &&
            (raft_config_decode(entry->data, entry->size, &config) != GAVEL_OK ||
             raft_config_check(&config, &reason) != GAVEL_OK))
            return error_set(error, DAMAGED, "the members in entry %" PRIu64 " on disk cannot be: %s",
                             d->snapshot.index + 1 + i, reason);
        if (raft_log_append(&r->log, entry) != GAVEL_OK)
            return error_set(error, GAVEL_ERR_NO_MEMORY, "no memory for the log");
    }
    return GAVEL_OK;
}

static enum gavel_status take_snapshot(struct raft *r, const struct raft_snapshot *s,
                                       struct gavel_error *error)
{
    struct blob *copy = blob_copy(s->data, s->size);

    if (!copy)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "no memory for the snapshot");
    r->snapshot = *s;
    r->snapshot.blob = copy;
    r->snapshot.data = copy->bytes;
    return GAVEL_OK;
}

/*
 * Nobody knows when the promise on disk was last renewed, so it is held for its whole length. One that was
 * made to ourselves is void: our own work is dead, or we would not be starting.
 */
static void hold_promise(struct raft *r)
{
    if (r->state.promise.leader == r->state.id)
        raft_promise_clear(r);
    if (PLANTED(PROMISE_FORGOTTEN))
        raft_promise_clear(r);
    if (r->state.promise.leader != 0)
        r->promise_until = r->now + r->state.promise.length;
}

enum gavel_status raft_init(struct raft *r, const struct raft_settings *settings,
                            const struct raft_restore *d, gavel_ns now, struct gavel_error *error)
{
    struct raft_actions *actions;
    enum gavel_status status = raft_settings_check(settings, error);

    if (status == GAVEL_OK)
        status = check_state(d, error);
    if (status == GAVEL_OK)
        status = check_snapshot(&d->snapshot, error);
    if (status != GAVEL_OK)
        return status;
    actions = malloc(sizeof *actions); /* what is told while starting is told to nobody */
    if (!actions)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "no memory for a node");
    memset(r, 0, sizeof *r);
    actions->count = 0;
    r->actions = actions;
    r->settings = *settings;
    r->now = now;
    r->state = d->state;
    /* Answers to pre-votes of the incarnation before may still be under way: no round of ours is like its. */
    r->round = d->state.incarnation % (UINT64_C(1) << 30) << 32;
    r->role = RAFT_FOLLOWER;
    r->election_at = r->heartbeat_at = NEVER;
    prng_seed(&r->prng, d->seed);
    raft_log_restart(&r->log, d->snapshot.index, d->snapshot.term);
    status = take_snapshot(r, &d->snapshot, error);
    if (status == GAVEL_OK)
        status = take_entries(r, d, error);
    if (status == GAVEL_OK) {
        r->log.durable = r->began_at = raft_log_last(&r->log);
        r->applied = d->snapshot.index;
        r->commit = d->state.commit > d->snapshot.index ? d->state.commit : d->snapshot.index;
        hold_promise(r);
        raft_peer_begin(r, &r->strangers, 0);
        raft_use_config_of_log(r);
        (void)raft_learn_founding(r); /* from the disk, so it is there */
        ASSERT(r->applied <= r->commit);
        ASSERT(r->commit <= raft_log_last(&r->log));
        raft_recall_met(r);
        raft_restart_timer(r);
    } else {
        raft_done(r);
    }
    r->actions = NULL;
    free(actions);
    return status;
}

void raft_done(struct raft *r)
{
    if (!r)
        return;
    raft_log_done(&r->log);
    blob_drop(r->snapshot.blob);
    r->snapshot.blob = NULL;
    r->snapshot.data = NULL;
    r->snapshot.size = 0;
}
