/* SPDX-License-Identifier: Apache-2.0 */

/* What may happen to a cluster in one round. */
#include "chaos.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

#define CALL_MS 3000
#define SIEGE_MS 3000

static enum net_cut any_cut(struct chaos *chaos) { return chaos_random(chaos, 3) ? NET_LOST : NET_REFUSED; }

static void kill_node(struct chaos *chaos, int victim, int leader)
{
    (void)leader;
    cluster_kill_node(&chaos->cluster, victim);
}

static void kill_both(struct chaos *chaos, int victim, int leader)
{
    (void)leader;
    if (chaos->cluster.nodes[victim].guard)
        cluster_kill_both(&chaos->cluster, victim);
}

static void kill_and_start(struct chaos *chaos, int victim, int leader)
{
    kill_both(chaos, victim, leader);
    cluster_start(&chaos->cluster, victim);
}

/* The power fails in a whole rack: most of them at once, and all come back. */
static void kill_many(struct chaos *chaos, int victim, int leader)
{
    unsigned killed =
        1u << victim | 1u << chaos_random(chaos, FOUNDERS) | 1u << chaos_random(chaos, FOUNDERS);

    for (int i = 0; i < NODES; i++)
        if (killed >> i & 1)
            kill_both(chaos, i, leader);
    for (int i = 0; i < NODES; i++)
        if (killed >> i & 1)
            cluster_start(&chaos->cluster, i);
}

static void pause_node(struct chaos *chaos, int victim, int leader)
{
    (void)leader;
    cluster_pause(&chaos->cluster, victim);
}

/* As long as a lease, more or less: it wakes while others are electing. */
static void pause_shortly(struct chaos *chaos, int victim, int leader)
{
    (void)leader;
    cluster_pause(&chaos->cluster, victim);
    (void)poll(NULL, 0, (int)chaos_random(chaos, 400));
    cluster_resume(&chaos->cluster, victim);
}

static void isolate(struct chaos *chaos, int victim, int leader)
{
    (void)leader;
    net_split(&chaos->cluster.net, 1u << victim, any_cut(chaos));
}

static void split(struct chaos *chaos, int victim, int leader)
{
    unsigned side = 1u << victim | 1u << chaos_random(chaos, FOUNDERS);

    (void)leader;
    cluster_tell(&chaos->cluster, "split %02x from the others", side);
    net_split(&chaos->cluster.net, side, any_cut(chaos));
}

static void cut_out(struct chaos *chaos, int victim, int leader)
{
    enum net_cut cut = any_cut(chaos);

    (void)leader;
    for (int i = 0; i < NODES; i++)
        net_set(&chaos->cluster.net, victim, i, cut);
}

static void cut_in(struct chaos *chaos, int victim, int leader)
{
    enum net_cut cut = any_cut(chaos);

    (void)leader;
    for (int i = 0; i < NODES; i++)
        net_set(&chaos->cluster.net, i, victim, cut);
}

static void cut_some(struct chaos *chaos, int victim, int leader)
{
    (void)leader;
    for (int i = 0; i < 3; i++)
        net_set(&chaos->cluster.net, (int)chaos_random(chaos, NODES), (int)chaos_random(chaos, NODES),
                any_cut(chaos));
    net_set(&chaos->cluster.net, victim, (int)chaos_random(chaos, NODES), any_cut(chaos));
}

/* Gone for less than a lease, several times. */
static void flap(struct chaos *chaos, int victim, int leader)
{
    (void)leader;
    for (int i = 0; i < 4; i++) {
        net_split(&chaos->cluster.net, 1u << victim, NET_LOST);
        (void)poll(NULL, 0, (int)chaos_random(chaos, 120));
        net_heal(&chaos->cluster.net);
        (void)poll(NULL, 0, (int)chaos_random(chaos, 60));
    }
}

static int call(struct chaos *chaos, int node, const char *path, const char *body)
{
    json_t *json;
    int code = cluster_ask(&chaos->cluster, node, "POST", path, body, CALL_MS, &json);
    const char *message = json_string_value(json_object_get(json, "message"));

    if (!message)
        message = json_string_value(json_object_get(json_object_get(json, "error"), "message"));
    cluster_tell(&chaos->cluster, "%s %s: %d %.120s", path, body, code, message ? message : "");
    json_decref(json);
    return code;
}

static void transfer(struct chaos *chaos, int victim, int leader)
{
    char body[128];

    if (leader < 0)
        return;
    if (victim == leader)
        victim = (leader + 1 + (int)chaos_random(chaos, FOUNDERS - 1)) % NODES;
    snprintf(body, sizeof body, "{\"target_leader_id\":\"n%d\",\"timeout_ms\":1000}", victim + 1);
    (void)call(chaos, leader, "/transfer", body); /* whether it works is for the faults of before to say */
}

/* An operator insists; half of the time the target itself is asked, as when a leader hangs. */
static void force(struct chaos *chaos, int victim, int leader)
{
    int asked = leader >= 0 && chaos_random(chaos, 2) ? leader : victim;
    char body[128];

    if (!(cluster_alive(&chaos->cluster) >> asked & 1))
        return;
    if (victim == asked && asked == leader)
        victim = (leader + 1) % FOUNDERS;
    snprintf(body, sizeof body, "{\"target_leader_id\":\"n%d\",\"timeout_ms\":1000,\"force\":true}",
             victim + 1);
    (void)call(chaos, asked, "/transfer", body); /* as above */
}

/* A transfer, and the leader dies in the middle of it. */
static void transfer_and_kill(struct chaos *chaos, int victim, int leader)
{
    pid_t pid = leader < 0 ? 0 : cluster_node_pid(&chaos->cluster, leader);
    struct cluster_status status;

    (void)victim;
    if (!pid || chaos->cluster.nodes[leader].is_paused)
        return;
    (void)cluster_ask(&chaos->cluster, leader, "POST", "/transfer", "{\"timeout_ms\":1000}",
                      (int)chaos_random(chaos, 4) + 1, NULL);
    (void)cluster_look(&chaos->cluster, leader, &status); /* its log may be lost with it */
    cluster_kill_node(&chaos->cluster, leader);
}

static void step_down(struct chaos *chaos, int victim, int leader)
{
    (void)victim;
    if (leader >= 0)
        (void)call(chaos, leader, "/stepdown", "{}");
}

static int change(struct chaos *chaos, int leader, const char *action, const char *rest)
{
    char body[256];

    snprintf(body, sizeof body, "{\"action\":\"%s\",\"id\":\"n%d\"%s}", action, NEWCOMER + 1, rest);
    return call(chaos, leader, "/members", body);
}

static void add_newcomer(struct chaos *chaos, int victim, int leader)
{
    char rest[128], address[32];

    (void)victim;
    if (leader < 0)
        return;
    if (!chaos->cluster.nodes[NEWCOMER].guard)
        cluster_start(&chaos->cluster, NEWCOMER);
    net_address(NEWCOMER, address, sizeof address);
    snprintf(rest, sizeof rest, ",\"address\":\"%s:7400\",\"learner\":true", address);
    (void)change(chaos, leader, "add", rest); /* it may be one already */
}

static void promote_newcomer(struct chaos *chaos, int victim, int leader)
{
    add_newcomer(chaos, victim, leader);
    if (leader < 0)
        return;
    chaos->may_vote = true; /* from the moment of asking, whatever is answered */
    if (change(chaos, leader, "promote", "") == 404)
        chaos->may_vote = false;
}

static void remove_newcomer(struct chaos *chaos, int victim, int leader)
{
    int code = leader < 0 ? 0 : change(chaos, leader, "remove", "");

    (void)victim;
    if (code == 200 || code == 404)
        chaos->may_vote = false;
}

static void demote_newcomer(struct chaos *chaos, int victim, int leader)
{
    int code = leader < 0 ? 0 : change(chaos, leader, "demote", "");

    (void)victim;
    if (code == 200 || code == 404)
        chaos->may_vote = false;
}

/* What a member is to be is written to the table, also when it is that already. */
static void write_some(struct chaos *chaos, int leader, int count)
{
    char body[64];
    int done = 0;

    for (int i = 0; i < count && leader >= 0; i++) {
        snprintf(body, sizeof body, "{\"action\":\"promote\",\"id\":\"n%d\"}",
                 (int)chaos_random(chaos, FOUNDERS) + 1);
        if (cluster_ask(&chaos->cluster, leader, "POST", "/members", body, CALL_MS, NULL) != 200)
            break;
        done++;
    }
    cluster_tell(&chaos->cluster, "%d of %d written", done, count);
}

static void write_few(struct chaos *chaos, int victim, int leader)
{
    (void)victim;
    write_some(chaos, leader, 10);
}

/* So much that logs are cut, and whoever is away needs a snapshot. */
static void write_many(struct chaos *chaos, int victim, int leader)
{
    (void)victim;
    write_some(chaos, leader, 400);
}

/* Whoever has acknowledged something is killed at once: it must not be lost. */
static void write_and_kill(struct chaos *chaos, int victim, int leader)
{
    struct cluster_status status;

    (void)victim;
    if (leader < 0)
        return;
    write_some(chaos, leader, 3);
    (void)cluster_look(&chaos->cluster, leader, &status); /* for the referee: so much is committed */
    if (chaos->cluster.nodes[leader].guard)
        cluster_kill_both(&chaos->cluster, leader);
}

static void stop_in_order(struct chaos *chaos, int victim, int leader)
{
    int code;

    (void)leader;
    if (!chaos->cluster.nodes[victim].guard)
        return;
    code = cluster_stop(&chaos->cluster, victim, 10000);
    if (code == 0)
        cluster_start(&chaos->cluster, victim);
    else
        cluster_tell(&chaos->cluster, "n%d ended with %d, not 0", victim + 1, code);
}

static void reload(struct chaos *chaos, int victim, int leader)
{
    struct cluster_status status;

    (void)leader;
    if (cluster_look(&chaos->cluster, victim,
                     &status)) /* not in the first moments of a life, as an operator would */
        (void)kill(chaos->cluster.nodes[victim].guard, SIGHUP);
}

/*
 * Whoever works for a group is cut off for longer than its mandate lasts, with the node of its namespace,
 * while the others are in peace: a new leader of the cluster would give it a whole lease again.
 */
static void besiege(struct chaos *chaos, int victim, int leader)
{
    const struct candidate *worker = NULL;

    (void)victim;
    if (!chaos->has_candidates)
        return;
    net_heal(&chaos->cluster.net);
    for (int i = 0; i < NODES; i++)
        cluster_resume(&chaos->cluster, i);
    leader = cluster_await_leader(&chaos->cluster, cluster_alive(&chaos->cluster), SIEGE_MS);
    if (leader < 0 || !candidates_are_led(&chaos->candidates, SIEGE_MS))
        return; /* not for long: the end of the test looks whether it comes back */
    for (int i = 0; i < CANDIDATE_GROUPS && (!worker || worker->node == leader); i++)
        worker = candidates_worker(&chaos->candidates, i);
    if (!worker || worker->node == leader)
        return;
    cluster_tell(&chaos->cluster, "n%d and candidate %d are besieged", worker->node + 1,
                 (int)(worker - chaos->candidates.list) + 1);
    net_split(&chaos->cluster.net, 1u << worker->node, any_cut(chaos));
    (void)poll(NULL, 0, SIEGE_MS);
    net_heal(&chaos->cluster.net);
}

static void nothing(struct chaos *chaos, int victim, int leader)
{
    (void)chaos;
    (void)victim;
    (void)leader;
}

const struct chaos_fault chaos_faults[] = {
    {"kill the node", 6, kill_node},
    {"kill guard and node", 4, kill_both},
    {"kill guard and node, start again", 5, kill_and_start},
    {"kill several, start again", 2, kill_many},
    {"freeze", 6, pause_node},
    {"freeze for a moment", 5, pause_shortly},
    {"cut off", 6, isolate},
    {"split", 6, split},
    {"cut what it sends", 4, cut_out},
    {"cut what it hears", 4, cut_in},
    {"cut some links one way", 5, cut_some},
    {"flap", 3, flap},
    {"transfer", 8, transfer},
    {"transfer, forced", 4, force},
    {"transfer, and kill", 4, transfer_and_kill},
    {"step down", 4, step_down},
    {"add a learner", 2, add_newcomer},
    {"make it a voter", 4, promote_newcomer},
    {"make it a learner again", 2, demote_newcomer},
    {"remove it", 2, remove_newcomer},
    {"write", 5, write_few},
    {"write a lot", 2, write_many},
    {"write, and kill", 4, write_and_kill},
    {"stop in order, start again", 4, stop_in_order},
    {"read certificates again", 1, reload},
    {"besiege a candidate", 3, besiege},
    {"nothing", 1, nothing},
};
const size_t chaos_fault_count = sizeof chaos_faults / sizeof *chaos_faults;

_Static_assert(sizeof chaos_faults / sizeof *chaos_faults <= FAULTS_MAX, "struct chaos counts each kind");

const struct chaos_fault *chaos_pick(struct chaos *chaos)
{
    uint32_t sum = 0, at;

    for (size_t i = 0; i < chaos_fault_count; i++)
        sum += (uint32_t)chaos_faults[i].weight;
    at = chaos_random(chaos, sum);
    for (size_t i = 0;; i++) {
        if (at < (uint32_t)chaos_faults[i].weight)
            return &chaos_faults[i];
        at -= (uint32_t)chaos_faults[i].weight;
    }
}
