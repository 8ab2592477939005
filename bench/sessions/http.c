/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A campaign over HTTP, as a program in any language makes it: one request
 * opens the session and campaigns, and the stream that answers it says
 * `elected`. On the node that leads the cluster and on a follower, which
 * forwards the request, in turns. Nobody else wants the group, so this is the
 * least that an election costs: one request, one commit, one event. Before the
 * request could do both there were two commits; --gaveld compares.
 */
#include "bench/sessions/sessions.h"

#include "os/clock.h"

#include <string.h>

#define PAUSE_NS (50 * NS_PER_MS)
#define SESSION_BYTES 64

enum { LEADER, FOLLOWER, DISK, SERIES };

struct contest {
    struct samples series[SERIES];
    size_t failed;
    size_t number; /* of the trial, for the name of its group */
};

/* Of the first event of a campaign. */
static bool find_session(const char *stream, char ret_session[static SESSION_BYTES])
{
    static const char field[] = "\"session\":\"";
    const char *begin = strstr(stream, field);
    size_t length = begin ? strcspn(begin + strlen(field), "\"") : 0;

    if (length == 0 || length >= SESSION_BYTES)
        return false;
    memcpy(ret_session, begin + strlen(field), length);
    ret_session[length] = '\0';
    return true;
}

/* Resigns and waits for the end of the stream, so that the node closes the session, which would otherwise
 * expire during a later trial. */
static enum gavel_status resign(struct cluster *cluster, size_t node, size_t number, struct http_line *stream)
{
    struct http_line *line = &cluster->lines[node];
    gavel_ns until = clock_now() + CLUSTER_LIMIT_NS;
    char path[64], body[128], session[SESSION_BYTES];

    if (!find_session(cluster->answer.body, session))
        return GAVEL_ERR_IO;
    (void)snprintf(path, sizeof path, "/groups/http%06zu/resign", number);
    (void)snprintf(body, sizeof body, "{\"session\":\"%s\"}", session);
    enum gavel_status status = http_line_ask(line, "POST", path, body);
    if (status == GAVEL_OK)
        status = http_line_hear(line, until, &cluster->answer);
    if (status == GAVEL_OK && cluster->answer.code != 200)
        status = GAVEL_ERR_IO;
    return status != GAVEL_OK ? status : http_line_hear_event(stream, "ended", until, &cluster->answer);
}

static enum gavel_status campaign(struct cluster *cluster, size_t node, size_t number, gavel_ns *ret_took)
{
    struct http_line stream;
    char path[64];

    (void)snprintf(path, sizeof path, "/groups/http%06zu/campaign", number);
    http_line_init(&stream, local_cluster_node(&cluster->cluster, node)->api_port);
    /* Opens the connection. */
    enum gavel_status status =
        http_line_get(&stream, "/leader", clock_now() + CLUSTER_LIMIT_NS, &cluster->answer);
    gavel_ns sent_at = clock_now();
    if (status == GAVEL_OK)
        status = http_line_ask(&stream, "POST", path, "{\"candidate\":\"bench\"}");
    if (status == GAVEL_OK)
        status = http_line_hear_event(&stream, "elected", sent_at + CLUSTER_LIMIT_NS, &cluster->answer);
    *ret_took = clock_now() - sent_at;
    if (status == GAVEL_OK)
        status = resign(cluster, node, number, &stream);
    http_line_close(&stream);
    return status;
}

static enum gavel_status trial(struct contest *contest, struct cluster *cluster, size_t series)
{
    struct bench_cluster_status said[CLUSTER_NODES];
    gavel_ns took = 0;
    size_t leader;
    enum gavel_status status = bench_cluster_await_steady(cluster, 0, &leader, said);

    if (status != GAVEL_OK)
        return status;
    bench_cluster_pause(cluster, PAUSE_NS);
    status =
        campaign(cluster, series == LEADER ? leader : (leader + 1) % CLUSTER_NODES, contest->number++, &took);
    if (rig_is_interrupted())
        return GAVEL_ERR_STOPPED;
    if (status != GAVEL_OK) {
        report_note(&cluster->bench->report, "a campaign failed: HTTP %d, %.400s", cluster->answer.code,
                    cluster->answer.body);
        contest->failed++;
        took = CLUSTER_LIMIT_NS;
    }
    samples_add(&contest->series[series], took);
    return GAVEL_OK;
}

static enum gavel_status run(struct cluster *cluster)
{
    struct report *report = &cluster->bench->report;
    struct contest contest = {0};
    const struct aim none = {0};
    enum gavel_status status = GAVEL_OK;

    for (size_t i = 0; i < cluster->bench->trials && status == GAVEL_OK; i++) {
        status = trial(&contest, cluster, LEADER);
        if (status == GAVEL_OK)
            status = trial(&contest, cluster, FOLLOWER);
        bench_sync(cluster->rig, &contest.series[DISK]);
    }
    report_samples(report, "POST campaign on the leader to elected", &contest.series[LEADER], NS_PER_MS, "ms",
                   none);
    report_samples(report, "POST campaign on a follower to elected", &contest.series[FOLLOWER], NS_PER_MS,
                   "ms", none);
    report_samples(report, "floor: write 4 KiB, fdatasync", &contest.series[DISK], NS_PER_MS, "ms", none);
    bench_cluster_note(cluster, contest.failed);
    if (status == GAVEL_OK && contest.failed)
        status = GAVEL_ERR_IO;
    for (size_t i = 0; i < SERIES; i++)
        samples_done(&contest.series[i]);
    return status;
}

enum gavel_status bench_sessions_http(struct bench *bench, struct rig *rig)
{
    return bench_with_clients(bench, rig, run, NULL);
}
