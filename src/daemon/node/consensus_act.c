/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Carrying out what Raft says: writes go to the disk thread in order, messages
 * leave when what they depend on is durable, committed entries go to the table.
 */
#include "daemon/node/consensus.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* Entries that stay in the log behind a snapshot, so that one who was away for a moment needs none. */
#define TAIL_MIN 1000
/* Messages that wait for the disk. */
#define HELD_MAX 1024

static void out_of_memory(struct consensus *c, const char *what)
{
    logger_line(&c->logger, LOG_ERROR, "out of memory; the node ends and is started again",
                LOG_STR("for", what), LOG_END);
    consensus_end(c, 1);
}

static void hold(struct consensus *c, const struct raft_action *action)
{
    if (c->held_count ==
        HELD_MAX) { /* a disk that is full or slow: the oldest is lost, Raft repeats itself */
        c->held_count--;
        memmove(c->held, c->held + 1, c->held_count * sizeof *c->held);
    }
    if (c->held_count == c->held_capacity) {
        size_t capacity = c->held_capacity > 0 ? 2 * c->held_capacity : 64;
        struct held_message *grown = realloc(c->held, capacity * sizeof *grown);

        if (!grown)
            return; /* a message that is lost: Raft repeats itself */
        c->held = grown;
        c->held_capacity = capacity;
    }
    ASSERT(c->held_count < c->held_capacity);
    c->held[c->held_count++] = (struct held_message){action->send.after, action->send.message};
}

static void send_message(struct consensus *c, const struct raft_action *action)
{
    if (action->send.after > atomic_load(&c->writer.durable))
        hold(c, action);
    else
        transport_send(c->transport, &action->send.message);
}

/* In their order; those that still have to wait stay. */
void consensus_release_held(struct consensus *c)
{
    uint64_t durable = atomic_load(&c->writer.durable);
    size_t left = 0;

    for (size_t i = 0; i < c->held_count; i++) {
        if (c->held[i].after <= durable)
            transport_send(c->transport, &c->held[i].message);
        else
            c->held[left++] = c->held[i];
    }
    ASSERT(left <= c->held_count);
    c->held_count = left;
}

static void apply(struct consensus *c, raft_index first, raft_index last)
{
    bool has_records = false;

    ASSERT(first <= last);
    ASSERT(last <= c->raft.applied);
    for (raft_index index = first; index <= last; index++) {
        const struct raft_entry *entry = raft_log_at(&c->raft.log, index);
        struct table_command command;

        ASSERT(entry);
        if (entry->kind == RAFT_ENTRY_DATA && consensus_apply_entry(c, index, entry) == GAVEL_ERR_NO_MEMORY) {
            out_of_memory(c, "the table");
            return;
        }
        detector_applied(&c->detector, index, table_digest(c->table));
        if (entry->kind == RAFT_ENTRY_DATA &&
            table_command_decode(entry->data, entry->size, &command) == GAVEL_OK &&
            member_record_is_key(command.key, command.key_size))
            has_records = true;
    }
    table_box_ring(&c->shared->table);
    if (has_records)
        consensus_read_records(c);
}

static void restore(struct consensus *c)
{
    enum gavel_status status;

    ASSERT(c->raft.applied >= c->raft.snapshot.index);
    table_box_lock(&c->shared->table);
    status = table_snapshot_decode(c->table, c->raft.snapshot.data, c->raft.snapshot.size);
    detector_applied(&c->detector, c->raft.snapshot.index, table_digest(c->table));
    table_box_unlock(&c->shared->table);
    c->process_watch.is_rescan_due = true;
    table_box_ring(&c->shared->table);
    if (status == GAVEL_ERR_NO_MEMORY) {
        out_of_memory(c, "a snapshot");
    } else if (status != GAVEL_OK) {
        logger_line(&c->logger, LOG_ERROR,
                    "the leader's snapshot cannot be read; is it of a newer gavel? upgrade this node",
                    LOG_U64("index", c->raft.snapshot.index), LOG_END);
        consensus_end(c, NODE_EXIT_CONFIG);
    }
    free(c->snapshot); /* of what is gone */
    c->snapshot = NULL;
    consensus_read_records(c);
}

void consensus_carry_out(struct consensus *c)
{
    for (size_t i = 0; i < c->actions.count && !c->is_over; i++) {
        const struct raft_action *action = &c->actions.items[i];

        switch (action->kind) {
        case RAFT_PERSIST:
            if (writer_put(&c->writer, &c->raft, &action->persist) != GAVEL_OK)
                out_of_memory(c, "a write");
            break;
        case RAFT_SEND:
            send_message(c, action);
            break;
        case RAFT_APPLY:
            apply(c, action->apply.first, action->apply.last);
            break;
        case RAFT_RESTORE:
            restore(c);
            break;
        case RAFT_CLAIM:
            consensus_begin_work(c, action->claim.term, action->claim.lease_epoch);
            break;
        case RAFT_STOP_WORK:
            consensus_stop_work(c, action->stop.reason);
            break;
        case RAFT_READ_READY:
        case RAFT_READ_LOST:
            break; /* nobody reads through Raft yet */
        case RAFT_TELL:
            consensus_tell(c, action);
            break;
        }
    }
}

/*
 * A snapshot is made when the log has grown, and used when it has grown a little more: the entries between
 * stay in the log for followers that are only a little behind.
 */
void consensus_compact(struct consensus *c)
{
    const struct raft *raft = &c->raft;
    raft_index tail =
        c->config->snapshot_entries / 10 > TAIL_MIN ? c->config->snapshot_entries / 10 : TAIL_MIN;

    bool is_full = c->disk_state == WRITER_FULL && raft->applied > raft->log.base; /* that may make room */

    if (!c->snapshot && (is_full || raft->applied - raft->log.base >= c->config->snapshot_entries)) {
        if (table_snapshot_encode(c->table, &c->snapshot, &c->snapshot_size) != GAVEL_OK)
            return; /* there will be memory another time */
        c->snapshot_index = raft->applied;
    }
    if (!c->snapshot || (!is_full && raft->applied < c->snapshot_index + tail))
        return;
    ASSERT(c->snapshot_index <= raft->applied);
    consensus_feed(
        c, (struct raft_event){
               .kind = RAFT_COMPACT,
               .compact = {.index = c->snapshot_index, .data = c->snapshot, .size = c->snapshot_size}});
    free(c->snapshot);
    c->snapshot = NULL;
}
