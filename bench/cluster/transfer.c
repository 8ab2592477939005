/* SPDX-License-Identifier: Apache-2.0 */

/*
 * POST /transfer to the leader, each time for the next node: until that node
 * has claimed, and until the answer is there. The time without a leader is
 * what the nodes tell: from the old one's word that its work has stopped to
 * the new one's claim.
 */
#include "bench/cluster/cluster.h"

#include "os/clock.h"

#include <jansson.h>
#include <string.h>

#define PAUSE_NS (50 * NS_PER_MS)
#define ATTEMPTS 5 /* of one trial: who has lost its lease, on a busy machine, has nothing to hand over */

enum { CLAIM, ANSWER, GAP, FOUND, DISK, SERIES };

struct contest {
    struct samples series[SERIES];
    size_t failed;
    size_t repeated;
};

static bool says_success(const struct http_answer *answer)
{
    json_t *root = answer->code == 200 ? json_loads(answer->body, 0, NULL) : NULL;
    bool is_success = json_is_true(json_object_get(root, "success"));

    json_decref(root);
    return is_success;
}

/* The follower's view, from when the claim was made. */
static enum gavel_status find_leader(struct contest *contest, struct cluster *cluster, size_t asked,
                                     const struct bench_cluster_event *claim)
{
    gavel_ns until = clock_now() + CLUSTER_LIMIT_NS;
    char name[CLUSTER_NAME_MAX];

    do {
        if (rig_is_interrupted())
            return GAVEL_ERR_STOPPED;
        enum gavel_status status = bench_cluster_ask_leader(cluster, asked, until, name);
        if (status != GAVEL_OK)
            return status;
    } while (bench_cluster_find(cluster, name) != claim->node);
    samples_add(&contest->series[FOUND], clock_now() - claim->at);
    return GAVEL_OK;
}

enum gavel_status bench_cluster_ask_transfer(struct cluster *cluster, size_t leader, size_t target,
                                             gavel_ns until)
{
    char body[128];
    struct http_line *line = &cluster->lines[leader];

    (void)snprintf(body, sizeof body, "{\"target_leader_id\":\"%s\",\"timeout_ms\":5000}",
                   local_cluster_node(&cluster->cluster, target)->name);
    enum gavel_status status = http_line_ask(line, "POST", "/transfer", body);
    if (status == GAVEL_OK)
        status = http_line_hear(line, until, &cluster->answer);
    return status == GAVEL_OK && !says_success(&cluster->answer) ? GAVEL_ERR_LEADER_TRANSFER_FAILED : status;
}

static enum gavel_status transfer(struct contest *contest, struct cluster *cluster, size_t leader,
                                  size_t target, struct bench_cluster_event *ret_claim)
{
    gavel_ns sent_at = clock_now(), until = sent_at + CLUSTER_LIMIT_NS;
    enum gavel_status status = bench_cluster_ask_transfer(cluster, leader, target, until);
    gavel_ns answered_at = clock_now();
    if (status == GAVEL_OK)
        status = bench_cluster_expect(cluster, "became_leader", sent_at, until, ret_claim);
    if (status == GAVEL_OK && ret_claim->node != target)
        status = GAVEL_ERR_LEADER_TRANSFER_FAILED;
    if (status != GAVEL_OK)
        return status;
    samples_add(&contest->series[CLAIM], ret_claim->at - sent_at);
    samples_add(&contest->series[ANSWER], answered_at - sent_at);
    gavel_ns stopped_at = bench_cluster_first(cluster, "lost_leadership", NULL, sent_at);
    if (stopped_at != NEVER)
        samples_add(&contest->series[GAP], ret_claim->at - stopped_at);
    return GAVEL_OK;
}

enum step { NOBODY_LEADS, ASKED, HANDED_OVER };

static enum gavel_status attempt(struct contest *contest, struct cluster *cluster, enum step *ret_step)
{
    struct bench_cluster_status said[CLUSTER_NODES];
    struct bench_cluster_event claim = {0};
    size_t leader;
    enum gavel_status status = bench_cluster_await_steady(cluster, 0, &leader, said);

    *ret_step = status != GAVEL_OK ? NOBODY_LEADS : ASKED;
    if (status != GAVEL_OK)
        return status;
    size_t target = (leader + 1) % CLUSTER_NODES;
    bench_cluster_pause(cluster, PAUSE_NS);
    bench_cluster_forget(cluster);
    status = transfer(contest, cluster, leader, target, &claim);
    if (status == GAVEL_OK) {
        *ret_step = HANDED_OVER;
        status = find_leader(contest, cluster, (target + 1) % CLUSTER_NODES, &claim);
    }
    if (status != GAVEL_OK && status != GAVEL_ERR_STOPPED)
        report_note(&cluster->bench->report, "a transfer failed: HTTP %d, %.400s", cluster->answer.code,
                    cluster->answer.body);
    return status;
}

static enum gavel_status trial(struct contest *contest, struct cluster *cluster)
{
    enum step step;
    enum gavel_status status = attempt(contest, cluster, &step);

    for (int i = 1; i < ATTEMPTS && status == GAVEL_ERR_LEADER_TRANSFER_FAILED; i++) {
        contest->repeated++;
        status = attempt(contest, cluster, &step);
    }
    if (status != GAVEL_OK && (step == NOBODY_LEADS || status == GAVEL_ERR_STOPPED))
        return status;
    contest->failed += status != GAVEL_OK;
    if (step == ASKED) {
        samples_add(&contest->series[CLAIM], CLUSTER_LIMIT_NS);
        samples_add(&contest->series[ANSWER], CLUSTER_LIMIT_NS);
    }
    bench_sync(cluster->rig, &contest->series[DISK]);
    return GAVEL_OK;
}

static enum gavel_status run(struct cluster *cluster)
{
    struct report *report = &cluster->bench->report;
    struct contest contest = {0};
    const struct aim aim = {.p50 = 10, .p99 = 50}, none = {0};
    enum gavel_status status = GAVEL_OK;

    for (size_t i = 0; i < cluster->bench->trials && status == GAVEL_OK; i++)
        status = trial(&contest, cluster);
    report_samples(report, "POST /transfer to the claim", &contest.series[CLAIM], NS_PER_MS, "ms", aim);
    report_samples(report, "POST /transfer to its answer", &contest.series[ANSWER], NS_PER_MS, "ms", none);
    report_samples(report, "the old one's stop to the claim", &contest.series[GAP], NS_PER_MS, "ms", none);
    report_samples(report, "the claim to GET /leader naming it, on the third", &contest.series[FOUND],
                   NS_PER_MS, "ms", (struct aim){.max = 100});
    report_samples(report, "floor: write 4 KiB, fdatasync", &contest.series[DISK], NS_PER_MS, "ms", none);
    bench_cluster_note(cluster, contest.failed);
    if (contest.repeated)
        report_note(report, "%zu transfers that failed were asked for again; only the others have a time",
                    contest.repeated);
    if (status == GAVEL_OK && contest.failed)
        status = GAVEL_ERR_LEADER_TRANSFER_FAILED;
    for (size_t i = 0; i < SERIES; i++)
        samples_done(&contest.series[i]);
    return status;
}

enum gavel_status bench_cluster_transfer(struct bench *bench, struct rig *rig)
{
    return bench_with_cluster(bench, rig, run);
}
