/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GET /leader under load. First how many there are at most, for 1 and 16
 * connections, taking turns with a bare TCP echo that is asked by the same
 * program: what HTTP, JSON and the node cost beside what the kernel costs.
 * Then 20,000 per second for a while, on the leader and on a follower: no
 * heartbeat may be late, and nobody may call an election.
 *
 * The load is made by a process of its own, on one CPU and with less claim to
 * it than others have (nice(2)), as a client on another machine would have
 * none; the echo serves without that, as a node does.
 */
#include "cli/bench_quorum.h"

#include "cli/http_load.h"
#include "os/clock.h"

#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define RATE 20000
#define RATE_CONNECTIONS 16
#define ROUNDS 5
#define ROUND_NS NS_PER_S
#define FIXED_NS (10 * NS_PER_S)
#define QUICK_NS (NS_PER_S / 2)
#define EXTRA_LIMIT_NS (10 * NS_PER_S)
#define LOAD_NICE 5

/* Members of the crew. */
enum { MAKER, ECHO };

enum { ONE, MANY, WIDTHS };
static const unsigned widths[WIDTHS] = {[ONE] = 1, [MANY] = 16};

enum { SERVER_ECHO, SERVER_LEADER, SERVERS };

struct tally {
    struct samples latency;
    uint64_t answers;
    uint64_t failures;
    gavel_ns elapsed;
};

struct rig {
    struct quorum *quorum;
    struct load_result *result;
    struct load_plan plan;
    int listener;
    uint16_t echo_port;
};

static int run_echo(const struct post *post, void *user)
{
    const struct rig *rig = user;

    return load_echo_run(rig->listener, post->control) ? 1 : 0;
}

/* Failures of these calls make the figures worse, not wrong. */
static void stand_back(void)
{
    cpu_set_t cpus, last;

    (void)setpriority(PRIO_PROCESS, 0, LOAD_NICE);
    if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
        return;
    for (int i = CPU_SETSIZE - 1; i >= 0; i--)
        if (CPU_ISSET(i, &cpus)) {
            CPU_ZERO(&last);
            CPU_SET(i, &last);
            (void)sched_setaffinity(0, sizeof(last), &last);
            return;
        }
}

static int run_load(const struct post *post, void *user)
{
    const struct rig *rig = user;

    (void)post;
    stand_back();
    return load_run(&rig->plan, rig->result) ? 1 : 0;
}

/* Makes the planned load and adds what came of it. */
static enum gavel_status load(struct rig *rig, struct tally *tally)
{
    struct crew *crew = rig->quorum->crew;
    const struct load_result *result = rig->result;
    enum gavel_status status = crew_start(crew, MAKER, "load", run_load, rig, NULL);

    if (!status)
        status = bench_await(crew, MAKER, clock_now() + rig->plan.duration + EXTRA_LIMIT_NS);
    if (status)
        return status;
    for (size_t i = 0; i < result->count; i++)
        samples_add(&tally->latency, result->latencies[i]);
    tally->answers += result->answers;
    tally->failures += result->failures + result->unanswered;
    tally->elapsed += result->elapsed;
    return GAVEL_OK;
}

static void plan(struct rig *rig, bool is_echo, size_t node, unsigned connections, uint64_t rate,
                 gavel_ns duration)
{
    rig->plan = (struct load_plan){
        .port = is_echo ? rig->echo_port : local_cluster_node(&rig->quorum->cluster, node)->api_port,
        .connections = connections,
        .is_echo = is_echo,
        .rate = rate,
        .duration = duration};
    load_plan_get(&rig->plan, "/leader");
}

static double per_second(const struct tally *tally)
{
    return tally->elapsed ? (double)tally->answers * NS_PER_S / (double)tally->elapsed : 0;
}

static void tell_tally(struct rig *rig, const char *what, const char *how, struct tally *tally)
{
    struct report *report = &rig->quorum->bench->report;
    const struct aim none = {0};
    char name[96];

    (void)snprintf(name, sizeof(name), "%s, %s: answers", what, how);
    report_value(report, name, per_second(tally), "per s", none);
    (void)snprintf(name, sizeof(name), "%s, %s: latency", what, how);
    report_samples(report, name, &tally->latency, NS_PER_US, "µs", none);
    if (tally->failures)
        report_note(report, "%s, %s: %llu were not answered well", what, how,
                    (unsigned long long)tally->failures);
}

/* At most how many; the servers take turns. */
static enum gavel_status run_closed(struct rig *rig, size_t leader)
{
    static const char *const names[SERVERS] = {
        [SERVER_ECHO] = "floor: TCP echo", [SERVER_LEADER] = "GET /leader"};
    bool is_quick = rig->quorum->bench->is_quick;
    struct tally tallies[SERVERS][WIDTHS] = {0};
    enum gavel_status status = GAVEL_OK;
    size_t rounds = is_quick ? 1 : ROUNDS;

    for (size_t i = 0; i < rounds * WIDTHS * SERVERS && !status; i++) {
        size_t server = i % SERVERS, width = i / SERVERS % WIDTHS;
        plan(rig, server == SERVER_ECHO, leader, widths[width], 0, is_quick ? QUICK_NS : ROUND_NS);
        status = load(rig, &tallies[server][width]);
    }
    for (size_t width = 0; width < WIDTHS && !status; width++) {
        struct report *report = &rig->quorum->bench->report;
        char how[32], name[96];
        (void)snprintf(how, sizeof(how), "%u connection%s", widths[width], widths[width] > 1 ? "s" : "");
        for (size_t server = SERVERS; server-- > 0;)
            tell_tally(rig, names[server], how, &tallies[server][width]);
        (void)snprintf(name, sizeof(name), "GET /leader beside the echo, %s", how);
        report_value(report, name,
                     per_second(&tallies[SERVER_LEADER][width]) / per_second(&tallies[SERVER_ECHO][width]),
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

static enum gavel_status look(struct quorum *quorum, struct calm *ret_calm, size_t *ret_leader)
{
    struct quorum_status said[QUORUM_NODES];
    enum gavel_status status = quorum_await_steady(quorum, 0, ret_leader, said);

    if (status)
        return status;
    *ret_calm = (struct calm){.term = said[*ret_leader].term};
    for (size_t i = 0; i < QUORUM_NODES; i++)
        ret_calm->late += said[i].late_heartbeats;
    return GAVEL_OK;
}

static enum gavel_status run_fixed(struct rig *rig, bool is_follower)
{
    struct report *report = &rig->quorum->bench->report;
    const char *what = is_follower ? "GET /leader on a follower" : "GET /leader on the leader";
    struct tally tally = {0};
    struct calm before, after;
    size_t leader, ignored;
    char name[96], how[32];
    enum gavel_status status = look(rig->quorum, &before, &leader);

    if (status)
        return status;
    plan(rig, false, is_follower ? (leader + 1) % QUORUM_NODES : leader, RATE_CONNECTIONS, RATE,
         rig->quorum->bench->is_quick ? QUICK_NS : FIXED_NS);
    status = load(rig, &tally);
    if (!status)
        status = look(rig->quorum, &after, &ignored);
    if (!status) {
        (void)snprintf(how, sizeof(how), "%d/s", RATE);
        tell_tally(rig, what, how, &tally);
        (void)snprintf(name, sizeof(name), "%s, %s: late heartbeats", what, how);
        report_value(report, name, (double)(after.late - before.late), "of all nodes",
                     (struct aim){.is_none = true});
        (void)snprintf(name, sizeof(name), "%s, %s: elections", what, how);
        report_value(report, name, (double)(after.term - before.term), "terms",
                     (struct aim){.is_none = true});
    }
    samples_done(&tally.latency);
    return status;
}

static enum gavel_status run(struct quorum *quorum)
{
    struct rig rig = {.quorum = quorum, .result = load_result_new()};
    struct calm calm;
    size_t leader;
    enum gavel_status status = rig.result ? GAVEL_OK : GAVEL_ERR_NO_MEMORY;

    rig.listener = load_echo_listen(&rig.echo_port);
    if (!status && rig.listener < 0)
        status = GAVEL_ERR_IO;
    if (!status)
        status = crew_start(quorum->crew, ECHO, "echo", run_echo, &rig, NULL);
    if (!status)
        status = look(quorum, &calm, &leader);
    if (!status)
        status = run_closed(&rig, leader);
    if (!status)
        status = run_fixed(&rig, false);
    if (!status)
        status = run_fixed(&rig, true);
    quorum_note(quorum, 0);
    report_note(&quorum->bench->report,
                "one process makes the load, on one CPU and at nice %d; latencies at a fixed rate count from "
                "when the request was due",
                LOAD_NICE);
    if (rig.listener >= 0)
        (void)close(rig.listener);
    load_result_free(rig.result);
    return status;
}

enum gavel_status bench_quorum_lookups(struct bench *bench, struct crew *crew)
{
    return quorum_with_cluster(bench, crew, run);
}
