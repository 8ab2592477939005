/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GET /leader under load. First how many there are at most, for 1 and 16
 * connections, taking turns with a bare TCP echo that is asked by the same
 * program: what HTTP, JSON and the node cost beside what the kernel costs.
 * Then 20,000 per second for a while, on the leader and on a follower: no
 * heartbeat may be late, and nobody may call an election.
 */
#include "bench/http/load.h"

#include "os/clock.h"

#define RATE 20000
#define RATE_CONNECTIONS 16
#define ROUNDS 5
#define ROUND_NS NS_PER_S
#define FIXED_NS (10 * NS_PER_S)
#define QUICK_NS (NS_PER_S / 2)

enum { ONE, MANY, WIDTHS };
static const unsigned widths[WIDTHS] = {[ONE] = 1, [MANY] = 16};

enum { SERVER_ECHO, SERVER_LEADER, SERVERS };

static void plan(struct load_rig *rig, bool is_echo, size_t node, unsigned connections, uint64_t rate,
                 gavel_ns duration)
{
    rig->plan = (struct load_plan){
        .port = is_echo ? rig->echo_port : local_cluster_node(&rig->cluster->cluster, node)->api_port,
        .connections = connections,
        .kind = is_echo ? LOAD_ECHO : LOAD_HTTP,
        .rate = rate,
        .duration = duration};
    load_plan_get(&rig->plan, "/leader");
}

/* At most how many; the servers take turns. */
static enum gavel_status run_closed(struct load_rig *rig, size_t leader)
{
    static const char *const names[SERVERS] = {
        [SERVER_ECHO] = "floor: TCP echo", [SERVER_LEADER] = "GET /leader"};
    bool is_quick = rig->cluster->bench->is_quick;
    struct load_tally tallies[SERVERS][WIDTHS] = {0};
    enum gavel_status status = GAVEL_OK;
    size_t rounds = is_quick ? 1 : ROUNDS;

    for (size_t i = 0; i < rounds * WIDTHS * SERVERS && status == GAVEL_OK; i++) {
        size_t server = i % SERVERS, width = i / SERVERS % WIDTHS;
        plan(rig, server == SERVER_ECHO, leader, widths[width], 0, is_quick ? QUICK_NS : ROUND_NS);
        status = load_rig_run(rig, &tallies[server][width]);
    }
    for (size_t width = 0; width < WIDTHS && status == GAVEL_OK; width++) {
        struct report *report = &rig->cluster->bench->report;
        char how[32], name[96];
        (void)snprintf(how, sizeof how, "%u connection%s", widths[width], widths[width] > 1 ? "s" : "");
        for (size_t server = SERVERS; server-- > 0;)
            load_tell(rig, names[server], how, &tallies[server][width]);
        (void)snprintf(name, sizeof name, "GET /leader beside the echo, %s", how);
        report_value(report, name,
                     load_per_second(&tallies[SERVER_LEADER][width]) /
                         load_per_second(&tallies[SERVER_ECHO][width]),
                     "of its rate", (struct aim){.p50 = width == MANY ? 0.9 : 0, .is_rate = true});
    }
    for (size_t i = 0; i < SERVERS * WIDTHS; i++)
        samples_done(&tallies[i / WIDTHS][i % WIDTHS].latency);
    return status;
}

/* What must not change under load. */
struct calm {
    uint64_t term;
    uint64_t late;
};

static enum gavel_status look(struct cluster *cluster, struct calm *ret_calm, size_t *ret_leader)
{
    struct bench_cluster_status said[CLUSTER_NODES];
    enum gavel_status status = bench_cluster_await_steady(cluster, 0, ret_leader, said);

    if (status != GAVEL_OK)
        return status;
    *ret_calm = (struct calm){.term = said[*ret_leader].term};
    for (size_t i = 0; i < CLUSTER_NODES; i++)
        ret_calm->late += said[i].late_heartbeats;
    return GAVEL_OK;
}

static enum gavel_status run_fixed(struct load_rig *rig, bool is_follower)
{
    struct report *report = &rig->cluster->bench->report;
    const char *what = is_follower ? "GET /leader on a follower" : "GET /leader on the leader";
    struct load_tally tally = {0};
    struct calm before, after;
    size_t leader, ignored;
    char name[96], how[32];
    enum gavel_status status = look(rig->cluster, &before, &leader);

    if (status != GAVEL_OK)
        return status;
    plan(rig, false, is_follower ? (leader + 1) % CLUSTER_NODES : leader, RATE_CONNECTIONS, RATE,
         rig->cluster->bench->is_quick ? QUICK_NS : FIXED_NS);
    status = load_rig_run(rig, &tally);
    if (status == GAVEL_OK)
        status = look(rig->cluster, &after, &ignored);
    if (status == GAVEL_OK) {
        (void)snprintf(how, sizeof how, "%d/s", RATE);
        load_tell(rig, what, how, &tally);
        (void)snprintf(name, sizeof name, "%s, %s: late heartbeats", what, how);
        report_value(report, name, (double)(after.late - before.late), "of all nodes",
                     (struct aim){.is_none = true});
        (void)snprintf(name, sizeof name, "%s, %s: elections", what, how);
        report_value(report, name, (double)(after.term - before.term), "terms",
                     (struct aim){.is_none = true});
    }
    samples_done(&tally.latency);
    return status;
}

static enum gavel_status run(struct cluster *cluster)
{
    struct load_rig rig;
    struct calm calm;
    size_t leader;
    enum gavel_status status = load_rig_open(&rig, cluster);

    if (status == GAVEL_OK)
        status = look(cluster, &calm, &leader);
    if (status == GAVEL_OK)
        status = run_closed(&rig, leader);
    if (status == GAVEL_OK)
        status = run_fixed(&rig, false);
    if (status == GAVEL_OK)
        status = run_fixed(&rig, true);
    bench_cluster_note(cluster, 0);
    report_note(
        &cluster->bench->report,
        "one process makes the load, on one CPU and at nice %d; latencies at a fixed rate count from when the request was due",
        LOAD_NICE);
    load_rig_close(&rig);
    return status;
}

enum gavel_status bench_cluster_lookups(struct bench *bench, struct rig *rig)
{
    return bench_with_cluster(bench, rig, run);
}
