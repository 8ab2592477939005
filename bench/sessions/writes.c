/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Acknowledged writes: one note after the other on each connection, with 1 and
 * 16 connections. By HTTP on the node that leads the cluster, by HTTP on a
 * follower, which forwards them, and by the client protocol; in turns, so that
 * a disk that is slow for a while is slow for all. Each answer waits until a
 * majority has the write on disk, hence the floor.
 */
#include "bench/http/load.h"
#include "bench/sessions/sessions.h"

#include "os/clock.h"

#define ROUNDS 5
#define ROUND_NS NS_PER_S
#define QUICK_NS (NS_PER_S / 4)
#define SYNCS 10 /* of the floor, per turn */

enum { ONE, MANY, WIDTHS };
static const unsigned widths[WIDTHS] = {[ONE] = 1, [MANY] = 16};

enum { WAY_LEADER, WAY_FOLLOWER, WAY_CLIENT, WAYS };
static const char *const names[WAYS] = {[WAY_LEADER] = "PUT of a note on the leader",
                                        [WAY_FOLLOWER] = "PUT of a note on a follower",
                                        [WAY_CLIENT] = "a note by the client protocol"};

/* Client loads are the members ONE and MANY of the rig. */
struct contest {
    struct load_rig load;
    size_t leader;
    struct client_load_board *boards[WIDTHS];
    struct load_tally tallies[WAYS][WIDTHS];
    struct samples disk;
};

static gavel_ns round_time(const struct contest *contest)
{
    return contest->load.cluster->bench->is_quick ? QUICK_NS : ROUND_NS;
}

static enum gavel_status put(struct contest *contest, size_t node, size_t width, struct load_tally *tally)
{
    contest->load.plan =
        (struct load_plan){.port = local_cluster_node(&contest->load.cluster->cluster, node)->api_port,
                           .connections = widths[width],
                           .kind = LOAD_HTTP,
                           .duration = round_time(contest)};
    load_plan_put(&contest->load.plan, "/groups/written/notes/note", "up to line 17");
    return load_rig_run(&contest->load, tally);
}

static enum gavel_status write_by_protocol(struct contest *contest, size_t width, struct load_tally *tally)
{
    struct rig *rig = contest->load.cluster->rig;
    struct client_load_board *board = contest->boards[width];
    size_t from = atomic_load(&board->latency_count);
    gavel_ns began = clock_now();

    rig_tell(rig, (uint32_t)width, CLIENT_LOAD_WRITE);
    sessions_wait(rig, began + round_time(contest));
    size_t to = atomic_load(&board->latency_count);
    gavel_ns ended = clock_now();
    rig_tell(rig, (uint32_t)width, CLIENT_LOAD_REST);
    if (rig_is_interrupted())
        return GAVEL_ERR_STOPPED;
    if (to == from)
        return GAVEL_ERR_IO; /* the client load has said why */
    for (size_t i = from; i < to; i++)
        samples_add(&tally->latency, board->latencies[i]);
    tally->answers += to - from;
    tally->elapsed += ended - began;
    return GAVEL_OK;
}

static enum gavel_status turn(struct contest *contest, size_t way, size_t width)
{
    struct load_tally *tally = &contest->tallies[way][width];

    for (size_t i = 0; i < SYNCS; i++)
        bench_sync(contest->load.cluster->rig, &contest->disk);
    if (way == WAY_CLIENT)
        return write_by_protocol(contest, width, tally);
    return put(contest, way == WAY_LEADER ? contest->leader : (contest->leader + 1) % CLUSTER_NODES, width,
               tally);
}

static void tell(struct contest *contest)
{
    for (size_t width = 0; width < WIDTHS; width++) {
        char how[32];
        (void)snprintf(how, sizeof how, "%u connection%s", widths[width], widths[width] > 1 ? "s" : "");
        for (size_t way = 0; way < WAYS; way++)
            load_tell(&contest->load, names[way], how, &contest->tallies[way][width]);
    }
    report_samples(&contest->load.cluster->bench->report, "floor: write 4 KiB, fdatasync", &contest->disk,
                   NS_PER_US, "µs", (struct aim){0});
}

static enum gavel_status start_clients(struct contest *contest)
{
    const struct local_node *leader = local_cluster_node(&contest->load.cluster->cluster, contest->leader);
    enum gavel_status status = GAVEL_OK;

    for (uint32_t width = 0; width < WIDTHS && status == GAVEL_OK; width++) {
        struct client_load_plan plan = {.target_count = 1,
                                        .connections = widths[width],
                                        .ttl_ms = SESSIONS_TTL_MS,
                                        .tells_process = true,
                                        .own = {.prefix = "noted", .count = widths[width]},
                                        .writes_notes = true,
                                        .board = contest->boards[width]};
        (void)snprintf(plan.targets[0], sizeof plan.targets[0], "127.0.0.1:%u",
                       (unsigned)leader->client_port);
        /* Its process is forked, so it has the plan. */
        status = sessions_start(contest->load.cluster->rig, width, "writer", &plan);
    }
    return status;
}

static enum gavel_status measure(struct contest *contest)
{
    struct cluster *cluster = contest->load.cluster;
    struct bench_cluster_status before[CLUSTER_NODES], after[CLUSTER_NODES];
    size_t rounds = cluster->bench->is_quick ? 1 : ROUNDS, leader = 0;
    uint64_t late = 0;
    enum gavel_status status = bench_cluster_await_steady(cluster, 0, &contest->leader, before);

    if (status == GAVEL_OK)
        status = start_clients(contest);
    for (size_t i = 0; i < rounds * WIDTHS * WAYS && status == GAVEL_OK; i++)
        status = turn(contest, i % WAYS, i / WAYS % WIDTHS);
    if (status == GAVEL_OK)
        status = bench_cluster_await_steady(cluster, 0, &leader, after);
    if (status != GAVEL_OK)
        return status;
    tell(contest);
    for (size_t i = 0; i < CLUSTER_NODES; i++)
        late += after[i].late_heartbeats - before[i].late_heartbeats;
    report_value(&cluster->bench->report, "late heartbeats", (double)late, "of all nodes",
                 (struct aim){.is_none = true});
    report_value(&cluster->bench->report, "elections of the cluster",
                 (double)(after[leader].term - before[contest->leader].term), "terms",
                 (struct aim){.is_none = true});
    return GAVEL_OK;
}

static enum gavel_status run(struct cluster *cluster)
{
    struct contest contest = {.boards = {client_load_board_new(), client_load_board_new()}};
    enum gavel_status status = load_rig_open(&contest.load, cluster);

    if (status == GAVEL_OK && !(contest.boards[ONE] && contest.boards[MANY]))
        status = GAVEL_ERR_NO_MEMORY;
    if (status == GAVEL_OK)
        status = measure(&contest);
    report_note(
        &cluster->bench->report,
        "one note after the other on each connection, plain TCP on loopback; clients of the protocol are connected to the leader; one process makes the load of HTTP, on one CPU and at nice %d",
        LOAD_NICE);
    bench_cluster_note(cluster, 0);
    for (uint32_t i = 0; i < WIDTHS; i++) {
        sessions_end(cluster->rig, i);
        client_load_board_free(contest.boards[i]);
    }
    load_rig_close(&contest.load);
    for (size_t i = 0; i < WAYS * WIDTHS; i++)
        samples_done(&contest.tallies[i / WIDTHS][i % WIDTHS].latency);
    samples_done(&contest.disk);
    return status;
}

enum gavel_status bench_sessions_writes(struct bench *bench, struct rig *rig)
{
    return bench_with_clients(bench, rig, run, NULL);
}
