/* SPDX-License-Identifier: Apache-2.0 */

/* Where the nodes are, how client loads are led, and what both cost at rest. */
#include "bench/sessions/sessions.h"

#include "os/clock.h"

#include <string.h>

#define KIB_PER_MIB 1024.0

static size_t add(char *target, size_t used, const struct local_node *node, bool is_tcp)
{
    const char *comma = used ? "," : "";

    /* A target has room for all nodes of a cluster: paths of sockets are short. */
    return used + (size_t)(is_tcp ? snprintf(target + used, CLIENT_LOAD_TARGET_BYTES - used, "%s127.0.0.1:%u",
                                             comma, (unsigned)node->client_port)
                                  : snprintf(target + used, CLIENT_LOAD_TARGET_BYTES - used, "%s%s", comma,
                                             node->socket));
}

void sessions_target(const struct cluster *cluster, bool is_tcp, char target[static CLIENT_LOAD_TARGET_BYTES])
{
    size_t used = 0;

    for (size_t i = 0; i < CLUSTER_NODES; i++)
        used = add(target, used, local_cluster_node(&cluster->cluster, i), is_tcp);
}

void sessions_target_near(const struct cluster *cluster, size_t node,
                          char target[static CLIENT_LOAD_TARGET_BYTES])
{
    size_t used = add(target, 0, local_cluster_node(&cluster->cluster, node), false);

    for (size_t i = 0; i < CLUSTER_NODES; i++)
        if (i != node)
            used = add(target, used, local_cluster_node(&cluster->cluster, i), true);
}

void sessions_url(const struct cluster *cluster, char url[static SESSIONS_URL_BYTES])
{
    char target[CLIENT_LOAD_TARGET_BYTES];

    sessions_target(cluster, false, target);
    (void)snprintf(url, SESSIONS_URL_BYTES, "gavel://%s", target);
}

void sessions_url_near(const struct cluster *cluster, size_t node, char url[static SESSIONS_URL_BYTES])
{
    char target[CLIENT_LOAD_TARGET_BYTES];

    sessions_target_near(cluster, node, target);
    (void)snprintf(url, SESSIONS_URL_BYTES, "gavel://%s", target);
}

enum gavel_status sessions_start_with(struct rig *rig, uint32_t member, const char *name, member_run run,
                                      void *user)
{
    struct mark_query query = {.kind = MARK_JOINED, .member = member, .from = rig_mark_count(rig)};
    struct mark ignored;
    enum gavel_status status = rig_start(rig, member, name, run, user, NULL);

    return status != GAVEL_OK ? status : rig_expect(rig, &query, clock_now() + CLUSTER_LIMIT_NS, &ignored);
}

enum gavel_status sessions_start(struct rig *rig, uint32_t member, const char *name,
                                 struct client_load_plan *plan)
{
    return sessions_start_with(rig, member, name, client_load_run, plan);
}

enum gavel_status sessions_tell(struct rig *rig, uint32_t member, char letter, enum client_load_news news,
                                gavel_ns limit, struct mark *ret_mark)
{
    struct mark_query query = {
        .kind = MARK_RESULT, .member = member, .epoch_at_least = news, .from = rig_mark_count(rig)};

    rig_tell(rig, member, letter);
    return rig_expect(rig, &query, clock_now() + limit, ret_mark);
}

/* Whether everybody but the leader knows it, by what was recorded from `from` on. */
static enum gavel_status look(const struct rig *rig, uint32_t first, uint32_t members, size_t from,
                              struct mark *leader, bool *ret_is_known)
{
    bool knows[RIG_MAX] = {false};
    size_t count, known = 0;
    const struct mark *marks = shared_log_marks(rig->shared_log, &count);

    for (size_t i = from; i < count; i++) {
        if (mark_kind(&marks[i]) == MARK_FAILED)
            return GAVEL_ERR_IO;
        if (mark_kind(&marks[i]) == MARK_ELECTED && marks[i].epoch > leader->epoch)
            *leader = marks[i];
    }
    for (size_t i = from; i < count; i++)
        if (mark_kind(&marks[i]) == MARK_KNOWS && marks[i].epoch >= leader->epoch)
            knows[marks[i].member] = true;
    for (uint32_t i = first; i < first + members; i++)
        known += i == leader->member || knows[i];
    *ret_is_known = known == members;
    return GAVEL_OK;
}

enum gavel_status sessions_await_standbys(const struct rig *rig, uint32_t first, uint32_t members,
                                          size_t from, gavel_ns limit, struct mark *leader)
{
    gavel_ns until = clock_now() + limit;

    for (;;) {
        /* Counted before looking, so that a mark that comes in between ends the wait at once. */
        uint32_t seen = shared_log_finished(rig->shared_log);
        bool is_known = false;
        enum gavel_status status = look(rig, first, members, from, leader, &is_known);

        if (status != GAVEL_OK || is_known)
            return status;
        if (rig_is_interrupted())
            return GAVEL_ERR_STOPPED;
        if (clock_now() >= until)
            return GAVEL_ERR_TIMEOUT;
        shared_log_wait(rig->shared_log, seen, until);
    }
}

void sessions_wait(const struct rig *rig, gavel_ns until)
{
    while (clock_now() < until && !rig_is_interrupted())
        shared_log_wait(rig->shared_log, shared_log_finished(rig->shared_log), until);
}

static double per_cent(gavel_ns cpu, gavel_ns passed) { return (double)cpu * 100 / (double)passed; }

enum gavel_status sessions_rest(const struct cluster *cluster,
                                const struct bench_cluster_status said[static CLUSTER_NODES], uint32_t client,
                                gavel_ns window, struct sessions_rest *ret_rest)
{
    const struct rig *rig = cluster->rig;
    struct bench_process_cost client_before = bench_process_cost_of(rig->members[client].pid), client_after;
    struct bench_cluster_cost before[CLUSTER_NODES];
    struct sessions_rest rest = {0};
    gavel_ns cpu = 0;

    for (size_t i = 0; i < CLUSTER_NODES; i++)
        before[i] = bench_cluster_cost_of(&said[i]);
    gavel_ns began = clock_now();
    sessions_wait(rig, began + window);
    gavel_ns passed = clock_now() - began;
    if (rig_is_interrupted())
        return GAVEL_ERR_STOPPED;
    client_after = bench_process_cost_of(rig->members[client].pid);
    for (size_t i = 0; i < CLUSTER_NODES; i++) {
        struct bench_cluster_cost after = bench_cluster_cost_of(&said[i]);
        double rss_mib = (double)after.rss_kib / KIB_PER_MIB;
        cpu += after.cpu - before[i].cpu;
        if (rss_mib > rest.node_rss_mib)
            rest.node_rss_mib = rss_mib;
    }
    rest.nodes_cpu = per_cent(cpu, passed);
    rest.client_cpu = per_cent(client_after.cpu - client_before.cpu, passed);
    rest.client_rss_mib = (double)client_after.rss_kib / KIB_PER_MIB;
    *ret_rest = rest;
    return GAVEL_OK;
}

void sessions_end(struct rig *rig, uint32_t member)
{
    gavel_ns ignored;

    (void)rig_kill(rig, member, &ignored, &ignored); /* it may have ended by itself */
}
