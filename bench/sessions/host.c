/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loss of a host. Three hosts are played by three pid namespaces, each with
 * a node, its guard, and a candidate with libgavel that is connected to this
 * node first; all with default settings:
 *
 *     driver
 *      ├── host-1, process 1 of its namespace
 *      │    ├── guard ── node
 *      │    └── candidate
 *      ├── host-2 …
 *      └── host-3 …
 *
 * The host of the leading candidate is lost: the kernel kills all its processes
 * with the first one, so that nobody is left who could tell of the death of the
 * others, and from outside the namespace it cannot be proven. Measured is to
 * the next leader's on_elected. It is lost together with the leader of the
 * cluster, or with a follower. Then it comes back, and its candidate stands by.
 *
 * Sockets are closed by the kernel, which the loss of power would not do.
 */
#include "bench/sessions/sessions.h"

#include "bench/props/namespace.h"
#include "bench/props/participant.h"
#include "os/clock.h"

#include <signal.h>
#include <string.h>

#define SETTLED_NS NS_PER_S /* since the start of a node: from then on it votes */
#define TTL_NS (SESSIONS_TTL_MS * NS_PER_MS)
#define QUICK_PAUSE_NS (100 * NS_PER_MS)
#define TRANSFERS 5 /* attempts; on a busy machine one may fail */

/* The loss of a follower once for so many losses of the cluster's leader. */
#define FEWER 3

#define CANDIDATES CLUSTER_NODES /* members: first the hosts, then the candidates on them */

enum kind { LEADER_LOST, FOLLOWER_LOST, KINDS };

struct host {
    struct cluster *cluster;
    size_t node;
    unsigned starts;
    char candidate[24]; /* another id at each start, or the lost one would be taken to use it still */
    char url[SESSIONS_URL_BYTES];
};

struct contest {
    struct cluster *cluster;
    struct host hosts[CLUSTER_NODES];
    struct mark leader; /* of the group */
    struct samples latency[KINDS];
    size_t failed; /* trials */
};

/* The first process of a host, a member_run(). It starts the node at once, and the candidate when it is told
 * to. */
static int live(const struct member_context *context, void *user)
{
    struct host *host = user;
    struct rig rig = *context->rig; /* for a member of ours; those of the driver are none */
    uint32_t candidate = (uint32_t)(CANDIDATES + host->node);
    struct gavel_error error = {0};
    enum gavel_status status = local_cluster_start_node(&host->cluster->cluster, host->node, &error);
    char letter = 0;

    memset(rig.members, 0, sizeof rig.members);
    if (status == GAVEL_OK)
        member_mark(context, MARK_JOINED, 0, clock_now(), 0);
    while (status == GAVEL_OK && letter != RIG_QUIT) {
        letter = member_listen(context, clock_now() + BENCH_LOOK_NS);
        if (letter == CLIENT_LOAD_CAMPAIGN)
            status = rig_start(&rig, candidate, host->candidate, participant_run, host->url, &error);
        else if (rig.members[candidate].pid && rig_await(&rig, candidate, 0) != GAVEL_ERR_TIMEOUT)
            status = GAVEL_ERR_STOPPED; /* it has ended by itself: it gave up */
    }
    if (status == GAVEL_OK)
        return 0; /* the kernel kills what is left in the namespace */
    (void)fprintf(stderr, "gavel bench: %s: %s\n", context->name,
                  error.message[0] ? error.message : "its candidate has ended by itself");
    member_mark(context, MARK_FAILED, 0, clock_now(), status);
    return 1;
}

static enum gavel_status start_host(struct contest *contest, size_t node)
{
    struct rig *rig = contest->cluster->rig;
    struct host *host = &contest->hosts[node];
    struct mark_query query = {.kind = MARK_JOINED, .member = (uint32_t)node, .from = rig_mark_count(rig)};
    struct mark ignored;
    char name[16];

    (void)snprintf(name, sizeof name, "host-%zu", node + 1);
    (void)snprintf(host->candidate, sizeof host->candidate, "%.8s.%u", name, ++host->starts);
    enum gavel_status status = rig_start_host(rig, (uint32_t)node, name, live, host, NULL);
    return status != GAVEL_OK ? status : rig_expect(rig, &query, clock_now() + CLUSTER_LIMIT_NS, &ignored);
}

/* The hosts that are not there, their nodes first: a candidate that does not find its node would go to
 * another. */
static enum gavel_status start_hosts(struct contest *contest, size_t from)
{
    struct cluster *cluster = contest->cluster;
    struct bench_cluster_status said[CLUSTER_NODES];
    bool is_new[CLUSTER_NODES] = {false};
    size_t ignored;
    enum gavel_status status = GAVEL_OK;

    for (size_t i = 0; i < CLUSTER_NODES && status == GAVEL_OK; i++) {
        is_new[i] = !cluster->rig->members[i].pid;
        if (is_new[i])
            status = start_host(contest, i);
    }
    if (status == GAVEL_OK)
        status = bench_cluster_await_steady(cluster, SETTLED_NS, &ignored, said);
    for (uint32_t i = 0; i < CLUSTER_NODES && status == GAVEL_OK; i++)
        if (is_new[i])
            rig_tell(cluster->rig, i, CLIENT_LOAD_CAMPAIGN);
    if (status == GAVEL_OK)
        status = sessions_await_standbys(cluster->rig, CANDIDATES, CLUSTER_NODES, from, CLUSTER_LIMIT_NS,
                                         &contest->leader);
    return status;
}

static void end_hosts(struct contest *contest)
{
    for (uint32_t i = 0; i < CLUSTER_NODES; i++)
        sessions_end(contest->cluster->rig, i);
}

/* Lets the cluster be led by that node, or by any other. */
static enum gavel_status place_leader(struct cluster *cluster, size_t node, enum kind kind)
{
    struct bench_cluster_status said[CLUSTER_NODES];
    enum gavel_status status = GAVEL_OK;
    size_t leader;

    for (size_t i = 0; i < TRANSFERS; i++) {
        status = bench_cluster_await_steady(cluster, 0, &leader, said);
        if (status != GAVEL_OK || (leader == node) == (kind == LEADER_LOST))
            return status;
        size_t target = kind == LEADER_LOST ? node : (node + 1) % CLUSTER_NODES;
        status = bench_cluster_ask_transfer(cluster, leader, target, clock_now() + CLUSTER_LIMIT_NS);
        if (status != GAVEL_OK && status != GAVEL_ERR_LEADER_TRANSFER_FAILED)
            return status;
    }
    return GAVEL_ERR_LEADER_TRANSFER_FAILED;
}

/* A leader of the cluster knows everybody's silence only after a time to live. */
static void settle(const struct contest *contest)
{
    const struct rig *rig = contest->cluster->rig;
    bool is_quick = contest->cluster->bench->is_quick;

    sessions_wait(rig, clock_now() + (is_quick ? 0 : TTL_NS));
    bench_pause(rig, is_quick ? QUICK_PAUSE_NS : TTL_NS);
}

/*
 * Until the cluster is led from where it should be and everybody is calm. On a
 * busy machine somebody else may lead the group by then, and it begins again.
 */
static enum gavel_status prepare(struct contest *contest, enum kind kind, size_t from)
{
    struct cluster *cluster = contest->cluster;
    enum gavel_status status = GAVEL_OK;
    uint32_t leader;

    do {
        leader = contest->leader.member;
        status = place_leader(cluster, leader - CANDIDATES, kind);
        if (status != GAVEL_OK)
            return status;
        settle(contest);
        status = sessions_await_standbys(cluster->rig, CANDIDATES, CLUSTER_NODES, from, CLUSTER_LIMIT_NS,
                                         &contest->leader);
    } while (status == GAVEL_OK && contest->leader.member != leader);
    return status;
}

/* One that is not over in time counts as the limit. */
static enum gavel_status lose(struct contest *contest, enum kind kind, size_t from)
{
    struct rig *rig = contest->cluster->rig;
    struct mark_query query = {.kind = MARK_ELECTED,
                               .member = ANY_MEMBER,
                               .epoch_at_least = contest->leader.epoch + 1,
                               .from = from};
    gavel_ns sent_at, ignored;
    enum gavel_status status = rig_kill(rig, contest->leader.member - CANDIDATES, &sent_at, &ignored);

    if (status != GAVEL_OK)
        return status;
    status = rig_expect(rig, &query, sent_at + CLUSTER_LIMIT_NS, &contest->leader);
    if (status != GAVEL_ERR_STOPPED)
        samples_add(&contest->latency[kind],
                    status == GAVEL_OK ? contest->leader.at - sent_at : CLUSTER_LIMIT_NS);
    return status;
}

/* *from: the marks since all hosts were there. After a trial that failed all of them are started anew. */
static enum gavel_status trial(struct contest *contest, enum kind kind, size_t *from)
{
    enum gavel_status status = prepare(contest, kind, *from);

    if (status == GAVEL_OK) {
        *from = rig_mark_count(contest->cluster->rig);
        status = lose(contest, kind, *from);
    }
    if (status == GAVEL_OK)
        status = start_hosts(contest, *from);
    if (status != GAVEL_ERR_TIMEOUT && status != GAVEL_ERR_IO)
        return status;
    contest->failed++;
    end_hosts(contest);
    *from = rig_mark_count(contest->cluster->rig);
    return start_hosts(contest, *from);
}

/* The cluster has been started as others are; its nodes move to the hosts. One that is not up yet might miss
 * the signal. */
static enum gavel_status end_nodes(struct cluster *cluster)
{
    struct bench_cluster_status said[CLUSTER_NODES];
    size_t ignored;
    enum gavel_status status = bench_cluster_await_steady(cluster, 0, &ignored, said);

    for (size_t i = 0; i < CLUSTER_NODES && status == GAVEL_OK; i++)
        status = local_cluster_signal(&cluster->cluster, i, SIGTERM);
    for (size_t i = 0; i < CLUSTER_NODES && status == GAVEL_OK; i++)
        status = local_cluster_await_end(&cluster->cluster, i, clock_now() + CLUSTER_LIMIT_NS, NULL);
    return status;
}

static void tell(struct contest *contest)
{
    struct report *report = &contest->cluster->bench->report;
    const struct aim aim = {.p50 = 900, .p99 = 1200};

    report_samples(report, "loss of the host of the cluster's leader, to on_elected",
                   &contest->latency[LEADER_LOST], NS_PER_MS, "ms", aim);
    report_samples(report, "loss of the host of a follower, to on_elected", &contest->latency[FOLLOWER_LOST],
                   NS_PER_MS, "ms", aim);
    report_value(report, "trials in which somebody gave up", (double)contest->failed, "trials",
                 (struct aim){.is_none = true});
    report_note(report, "each host is a pid namespace with a node, its guard and a candidate with libgavel; "
                        "the lost one's candidate leads");
    bench_cluster_note(contest->cluster, contest->failed);
}

static enum gavel_status run(struct cluster *cluster)
{
    struct contest contest = {.cluster = cluster};
    size_t from = rig_mark_count(cluster->rig);
    enum gavel_status status = end_nodes(cluster);

    for (size_t i = 0; i < CLUSTER_NODES; i++) {
        contest.hosts[i] = (struct host){.cluster = cluster, .node = i};
        sessions_url_near(cluster, i, contest.hosts[i].url);
    }
    if (status == GAVEL_OK)
        status = start_hosts(&contest, from);
    for (size_t i = 0; i < cluster->bench->trials && status == GAVEL_OK; i++) {
        status = trial(&contest, LEADER_LOST, &from);
        if (status == GAVEL_OK && i % FEWER == 0)
            status = trial(&contest, FOLLOWER_LOST, &from);
    }
    tell(&contest);
    end_hosts(&contest);
    for (size_t i = 0; i < KINDS; i++)
        samples_done(&contest.latency[i]);
    return status;
}

enum gavel_status bench_sessions_host(struct bench *bench, struct rig *rig)
{
    if (namespace_is_allowed())
        return bench_with_clients(bench, rig, run, NULL);
    report_note(
        &bench->report,
        "left out: this process may not make a pid namespace; run it as root, on a machine or in a container that allows it");
    return GAVEL_OK;
}
