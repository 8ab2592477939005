/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Snapshots, without holding anything up. One of our own:
 *
 *     collect   entries are copied, a slice per tick
 *     build     on a thread of its own, from the snapshot before and those entries
 *     stage     the disk thread writes it in pieces, between other writes
 *     ready     once the log has grown a little more, Raft is told; what is left to write is small
 *
 * One of the leader is decoded and staged before Raft hears of it, and then
 * taken over in one step. While that takes, heartbeats are answered as ever.
 */
#include "daemon/node/consensus.h"

#include "base/assert.h"
#include "os/clock.h"

#include <stdlib.h>

/* Entries that stay in the log behind a snapshot, so that one who was away for a moment needs none. */
#define TAIL_MIN 1000
/* Of entries, copied at a time. */
#define SLICE_BYTES (1u << 20)
/* Groups, sessions and changes of a table that is gone, freed at a time. */
#define FREED_AT_A_TIME 500
/* A snapshot that cannot be read is sent again and again. */
#define TELL_PAUSE (60 * NS_PER_S)

static void drop_build(struct consensus *c)
{
    node_build_free(c->building.build);
    c->building.build = NULL;
    c->building.phase = BUILDING_NONE;
}

/* Nothing is staged then: a snapshot goes with the write that it makes room for. */
static bool is_full(const struct consensus *c) { return c->disk_state == WRITER_FULL; }

static bool is_due(const struct consensus *c)
{
    const struct raft *raft = &c->node.raft;

    if (raft->applied < c->building.not_before)
        return false; /* the last one was not to be used */
    return (is_full(c) && raft->applied > raft->log.base) /* that may make room */ ||
           raft->applied - raft->log.base >= c->config->snapshot_entries ||
           raft->log.bytes >= c->config->snapshot_bytes;
}

static void begin(struct consensus *c)
{
    if (!is_due(c) || !node_may_build(&c->node))
        return;
    c->building.build = node_build_begin(&c->node); /* NULL: there will be memory another time */
    if (!c->building.build)
        return;
    c->building.log_bytes = c->node.raft.log.bytes;
    c->building.began_at = clock_now();
    c->building.phase = BUILDING_COLLECTS;
}

static void collect(struct consensus *c)
{
    struct snapshotter_job *job;
    bool is_last = false;

    if (node_build_collect(c->building.build, &c->node, SLICE_BYTES, &is_last) != GAVEL_OK) {
        drop_build(c); /* the log begins elsewhere now, or there is no memory */
        return;
    }
    if (!is_last)
        return;
    job = calloc(1, sizeof *job);
    if (!job) {
        drop_build(c);
        return;
    }
    job->build = c->building.build;
    c->building.build = NULL;
    c->building.phase = BUILDING_BUILDS;
    snapshotter_put(&c->builder, job);
}

/* The table is not what the log says it is, or the log is not what it was. */
static void tell_difference(struct consensus *c, const struct node_build *build)
{
    c->building.not_before = build->index + c->config->snapshot_entries;
    logger_line(
        &c->logger, LOG_ERROR,
        "a snapshot built from the log differs from the table of this node; it is not used, and the log is not compacted: "
        "restart this node, and compare the nodes with `gavel check`",
        LOG_U64("index", build->index), LOG_U64("digest", build->digest), LOG_U64("built", build->built),
        LOG_END);
}

static void built(struct consensus *c, struct snapshotter_job *job)
{
    struct node_build *build = job->build;
    enum gavel_status status = job->status;

    ASSERT(c->building.phase == BUILDING_BUILDS);
    job->build = NULL;
    snapshotter_job_free(job);
    c->building.build = build;
    node_build_drop_inputs(build);
    if (status == GAVEL_ERR_CONFLICT) {
        tell_difference(c, build);
    } else if (status != GAVEL_OK) {
        c->building.not_before = c->node.raft.applied + c->config->snapshot_entries / 10;
        logger_line(&c->logger, LOG_WARNING, "no snapshot could be built; the log is compacted later",
                    LOG_STR("reason", gavel_status_text(status)), LOG_END);
    }
    if (status != GAVEL_OK) {
        drop_build(c);
        return;
    }
    logger_line(&c->logger, LOG_DEBUG, "a snapshot was built", LOG_U64("index", build->index),
                LOG_U64("bytes", build->blob->size),
                LOG_I64("ms", (clock_now() - c->building.began_at) / NS_PER_MS), LOG_END);
    c->building.stage = is_full(c) ? 0 : writer_stage(&c->writer, build->blob);
    c->building.phase = BUILDING_STAGES;
}

static void use(struct consensus *c)
{
    const struct raft *raft = &c->node.raft;
    raft_index tail =
        c->config->snapshot_entries / 10 > TAIL_MIN ? c->config->snapshot_entries / 10 : TAIL_MIN;
    struct node_build *build = c->building.build;

    if (!is_full(c) && raft->applied < build->index + tail &&
        raft->log.bytes < c->building.log_bytes + c->config->snapshot_bytes / 10)
        return;
    c->building.build = NULL;
    c->building.phase = BUILDING_NONE;
    consensus_feed(c, (struct raft_event){.kind = RAFT_COMPACT,
                                          .compact = {.index = build->index,
                                                      .data = build->blob->bytes,
                                                      .size = build->blob->size,
                                                      .blob = build->blob}});
    node_build_free(build);
}

static bool is_staged(const struct consensus *c, uint64_t stage)
{
    return atomic_load(&c->writer.staged) >= stage || is_full(c);
}

void consensus_compact(struct consensus *c)
{
    if (c->building.phase == BUILDING_NONE)
        begin(c);
    if (c->building.phase == BUILDING_COLLECTS)
        collect(c);
    if (c->building.phase == BUILDING_STAGES && is_staged(c, c->building.stage))
        c->building.phase = BUILDING_READY;
    if (c->building.phase == BUILDING_READY)
        use(c);
    if (c->has_garbage)
        c->has_garbage = !table_free_some(&c->garbage, FREED_AT_A_TIME);
    consensus_look_at_incoming(c); /* the disk may be full meanwhile */
}

/* ---- of the leader ---- */

static void throw_away(struct consensus *c, struct table *table)
{
    if (c->has_garbage)
        table_done(&c->garbage); /* two in a row; it is not worth a list */
    c->garbage = (struct table){0};
    table_exchange(&c->garbage, table);
    c->has_garbage = true;
}

static void drop_incoming(struct consensus *c)
{
    struct snapshotter_job *job = c->incoming.job;

    writer_unstage(&c->writer, c->incoming.stage); /* unless it is in force */
    throw_away(c, &job->table);
    snapshotter_job_free(job);
    c->incoming.job = NULL;
}

static void take_over(struct consensus *c)
{
    struct node_event event = {.kind = NODE_RAFT,
                               .decoded = &c->incoming.job->table,
                               .raft = {.kind = RAFT_RECEIVE, .message = &c->incoming.message}};

    c->incoming.message.snapshot.round = 0; /* it is late: no promise for its leader */
    (void)consensus_step(c, event);         /* a message that is refused is answered, or not */
    drop_incoming(c);
}

void consensus_look_at_incoming(struct consensus *c)
{
    if (c->incoming.job && c->incoming.is_decoded && is_staged(c, c->incoming.stage))
        take_over(c);
}

void consensus_receive_snapshot(struct consensus *c, const struct raft_message *message)
{
    const struct raft *raft = &c->node.raft;
    struct snapshotter_job *job;

    if (!message->snapshot.blob || message->snapshot.index <= raft->commit ||
        message->term < raft->state.term) {
        consensus_feed(c, (struct raft_event){.kind = RAFT_RECEIVE, .message = message});
        return;
    }
    if (c->incoming.job)
        return; /* one at a time; the leader sends it again */
    job = calloc(1, sizeof *job);
    if (!job)
        return; /* as if it had been lost on its way */
    job->blob = blob_share(message->snapshot.blob);
    c->incoming.job = job;
    c->incoming.message = *message;
    c->incoming.is_decoded = false;
    c->incoming.stage = is_full(c) ? 0 : writer_stage(&c->writer, job->blob);
    snapshotter_put(&c->decoder, job);
}

static void decoded(struct consensus *c, struct snapshotter_job *job)
{
    ASSERT(job == c->incoming.job);
    if (job->status == GAVEL_OK) {
        c->incoming.is_decoded = true;
        consensus_look_at_incoming(c);
        return;
    }
    /* Raft has not judged its sender, so it ends nothing here: the node goes on, and votes. */
    if (job->status != GAVEL_ERR_NO_MEMORY && clock_now() >= c->incoming.tell_at) {
        c->incoming.tell_at = clock_now() + TELL_PAUSE;
        logger_line(
            &c->logger, LOG_ERROR,
            "a snapshot that a peer sent cannot be read, and without it this node does not catch up; is it of a newer gavel? upgrade this node",
            LOG_U64("index", c->incoming.message.snapshot.index), LOG_END);
    }
    drop_incoming(c);
}

void consensus_take_snapshots(struct consensus *c)
{
    struct snapshotter_job *job;

    while (!c->ending.is_over && (job = snapshotter_take(&c->builder)))
        built(c, job);
    while (!c->ending.is_over && (job = snapshotter_take(&c->decoder)))
        decoded(c, job);
}

void consensus_end_snapshots(struct consensus *c)
{
    bool was_put = c->incoming.job && !c->incoming.is_decoded;

    c->ending.is_thread_left = !snapshotter_stop(&c->builder); /* frees what it has */
    if (!snapshotter_stop(&c->decoder))
        c->ending.is_thread_left = true;
    if (was_put)
        c->incoming.job = NULL;
    if (c->incoming.job)
        drop_incoming(c);
    drop_build(c);
    if (c->has_garbage)
        table_done(&c->garbage);
    c->has_garbage = false;
}
