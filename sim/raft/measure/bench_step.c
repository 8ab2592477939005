/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Five nodes are brought into the steady state by the simulator; then their
 * cores are driven by hand, a heartbeat round at a time, and each step is
 * timed by the clock of the machine. What reading that clock costs is measured
 * too, and taken off.
 */

#include "sim/raft/measure/bench_step.h"

#include "base/histogram.h"
#include "sim/raft/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NODES 5
#define ROUNDS 20000

enum step_kind { AT_LEADER, AT_FOLLOWER, AT_REPLY, AT_NOTHING, STEP_KINDS };

struct samples {
    gavel_ns items[STEP_KINDS][ROUNDS];
};

static gavel_ns machine_clock(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail: the clock exists */
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static gavel_ns time_step(struct raft *raft, struct raft_event event, struct raft_actions *actions)
{
    gavel_ns before = machine_clock();

    (void)raft_step(raft, &event, actions); /* heartbeats are not refused; a missing answer would show */
    return machine_clock() - before;
}

/* The first message among the actions that goes to `to`; NULL if there is none. */
static const struct raft_message *message_to(const struct raft_actions *actions, raft_id to)
{
    for (size_t i = 0; i < actions->count; i++)
        if (actions->items[i].kind == RAFT_SEND && actions->items[i].send.message.to == to)
            return &actions->items[i].send.message;
    return NULL;
}

/* The leader's timer, the heartbeat at each follower, each answer at the leader. False if one is missing. */
static bool run_round(struct cluster *cluster, struct raft *leader, size_t round, struct samples *samples)
{
    static struct raft_actions sent;
    static struct raft_actions answered;
    static struct raft_actions ignored;
    gavel_ns before;

    samples->items[AT_LEADER][round] =
        time_step(leader, (struct raft_event){.kind = RAFT_TIMER, .now = leader->heartbeat_at}, &sent);
    for (unsigned i = 0; i < NODES; i++) {
        struct raft *follower = &cluster->hosts[i].node.raft;
        const struct raft_message *message = message_to(&sent, follower->state.id);
        const struct raft_message *answer;

        if (follower == leader)
            continue;
        if (!message)
            return false;
        samples->items[AT_FOLLOWER][round] = time_step(
            follower,
            (struct raft_event){
                .kind = RAFT_RECEIVE, .now = follower->now + leader->settings.heartbeat, .message = message},
            &answered);
        answer = message_to(&answered, leader->state.id);
        if (!answer)
            return false;
        samples->items[AT_REPLY][round] = time_step(
            leader, (struct raft_event){.kind = RAFT_RECEIVE, .now = leader->now, .message = answer},
            &ignored);
    }
    before = machine_clock();
    samples->items[AT_NOTHING][round] = machine_clock() - before;
    return true;
}

static int compare(const void *a, const void *b)
{
    gavel_ns left = *(const gavel_ns *)a;
    gavel_ns right = *(const gavel_ns *)b;

    return (left > right) - (left < right);
}

static void print(struct samples *samples)
{
    static const char *const names[STEP_KINDS] = {
        [AT_LEADER] = "a round at the leader: a heartbeat to 4 peers",
        [AT_FOLLOWER] = "a heartbeat at the follower",
        [AT_REPLY] = "an answer at the leader",
        [AT_NOTHING] = "reading the clock, taken off above",
    };
    gavel_ns clock_cost;

    for (unsigned i = 0; i < STEP_KINDS; i++)
        qsort(samples->items[i], ROUNDS, sizeof samples->items[i][0], compare);
    clock_cost = percentile_of_sorted(samples->items[AT_NOTHING], ROUNDS, 50);
    (void)printf("%-48s %8s %8s\n", "ns per raft_step", "median", "p99");
    for (unsigned i = 0; i < STEP_KINDS; i++) {
        gavel_ns off = i == AT_NOTHING ? 0 : clock_cost;

        (void)printf("%-48s %8lld %8lld\n", names[i],
                     (long long)(percentile_of_sorted(samples->items[i], ROUNDS, 50) - off),
                     (long long)(percentile_of_sorted(samples->items[i], ROUNDS, 99) - off));
    }
}

int bench_step(uint64_t trials, uint64_t first_seed, unsigned jobs)
{
    struct cluster *cluster = cluster_new();
    struct samples *samples = calloc(1, sizeof *samples);
    struct host *leader = NULL;
    struct profile profile;
    int code = 1;

    (void)trials;
    (void)first_seed;
    (void)jobs;
    if (!cluster || !samples)
        goto out;
    cluster_profile_plain(&profile, NODES, 100 * NS_PER_US, NS_PER_MS);
    profile.propose_every = 1000 * NS_PER_S; /* nobody asks for anything */
    cluster_begin(cluster, &profile, 1);
    if (cluster_advance(cluster, 2 * NS_PER_S))
        leader = cluster_worker(cluster);
    if (!leader)
        goto out;
    for (size_t i = 0; i < ROUNDS; i++)
        if (!run_round(cluster, &leader->node.raft, i, samples))
            goto out;
    print(samples);
    code = 0;
out:
    if (code != 0)
        (void)fputs("gavel-sim: the five nodes did not come to heartbeats\n", stderr);
    free(samples);
    cluster_free(cluster);
    return code;
}
