/* SPDX-License-Identifier: Apache-2.0 */

/*
 * partitions GAVEL GAVELD [--only NAME] [--keep] [--verbose]: five nodes, and links between them that are cut
 * in every way that has a name. After each: the majority has a leader, a minority has none, and when the
 * links are back there is one leader, whom the healing did not disturb, and one table. At the end the referee
 * reads what the nodes logged.
 */
#include "cluster.h"
#include "relay.h"

#include <getopt.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define NODES 5
#define ALL 0x1fu

/* Of a machine that is busy with other things. The figures are printed; these only bound them. */
#define ELECT_MS 5000
#define STOP_MS 2000
#define HEAL_MS 10000
/* How long a state that must not change is looked at: several election time-outs. */
#define WATCH_MS 1200

struct stage {
    struct cluster cluster;
    int leader; /* when the scenario began */
    int64_t term;
    bool is_good;
};

static void fault(struct stage *stage, const char *what)
{
    printf("# failed: %s\n", what);
    stage->is_good = false;
}

/* The nodes after the leader, so many of them. */
static unsigned followers(const struct stage *stage, int count)
{
    unsigned set = 0;

    for (int i = 1; i <= count; i++)
        set |= 1u << (stage->leader + i) % NODES;
    return set;
}

static unsigned only_leader(const struct stage *stage) { return 1u << stage->leader; }

/* Somebody of that set leads in time, and nobody else does any more. */
static int elects(struct stage *stage, unsigned majority)
{
    int64_t began = now_ms();
    int leader = cluster_await_leader(&stage->cluster, majority, ELECT_MS);

    if (leader < 0)
        fault(stage, "the majority has no leader");
    else
        printf("# %s leads after %lld ms\n", stage->cluster.nodes[leader].name,
               (long long)(now_ms() - began));
    return leader;
}

static void stops(struct stage *stage, unsigned minority)
{
    int64_t began = now_ms();

    if (!cluster_await_nobody(&stage->cluster, minority, STOP_MS))
        fault(stage, "a node without a majority still has a lease");
    else if (now_ms() - began > 10)
        printf("# the minority has stopped after %lld ms\n", (long long)(now_ms() - began));
}

/* Nothing may change for a while: the same leader, in the same term, and nobody else with a lease. */
static void stays(struct stage *stage, int leader)
{
    struct cluster_status before, status;
    int64_t end = now_ms() + WATCH_MS;

    if (!cluster_look(&stage->cluster, leader, &before) || !before.has_lease) {
        fault(stage, "the leader has no lease");
        return;
    }
    while (now_ms() < end) {
        if (!cluster_look(&stage->cluster, leader, &status) || !status.has_lease ||
            status.term != before.term) {
            fault(stage, "the leader was disturbed, and did not have to be");
            return;
        }
        if (cluster_leader(&stage->cluster, ALL & ~(1u << leader)) >= 0) {
            fault(stage, "a second node says that it has a lease");
            return;
        }
        (void)poll(NULL, 0, 5);
    }
}

/* The links are back: everybody agrees, and whoever led goes on. */
static void heals(struct stage *stage, int leader)
{
    struct cluster_status before, after;
    int64_t began = now_ms();
    bool is_known = leader >= 0 && cluster_look(&stage->cluster, leader, &before) && before.has_lease;

    net_heal(&stage->cluster.net);
    cluster_tell(&stage->cluster, "all links are back");
    if (!cluster_await_agreement(&stage->cluster, ALL, HEAL_MS)) {
        fault(stage, "the nodes do not agree after healing");
        return;
    }
    printf("# agreement after %lld ms\n", (long long)(now_ms() - began));
    if (is_known &&
        (!cluster_look(&stage->cluster, leader, &after) || !after.has_lease || after.term != before.term))
        fault(stage, "healing cost the leader its place");
}

static void split(struct stage *stage, unsigned side, enum net_cut cut)
{
    cluster_tell(&stage->cluster, "split %02x from %02x", side, ALL & ~side);
    net_split(&stage->cluster.net, side, cut);
}

static void leader_in_majority(struct stage *stage)
{
    unsigned majority = only_leader(stage) | followers(stage, 2);

    split(stage, majority, NET_LOST);
    stays(stage, stage->leader);
    stops(stage, ALL & ~majority);
    heals(stage, stage->leader);
}

static void cut_off_with_one(struct stage *stage, enum net_cut cut)
{
    unsigned minority = only_leader(stage) | followers(stage, 1);
    int leader;

    split(stage, minority, cut);
    leader = elects(stage, ALL & ~minority);
    stops(stage, minority);
    if (leader >= 0)
        stays(stage, leader);
    heals(stage, leader);
}

static void leader_in_minority(struct stage *stage) { cut_off_with_one(stage, NET_LOST); }
static void leader_in_minority_refused(struct stage *stage) { cut_off_with_one(stage, NET_REFUSED); }

/* Followers keep hearing nothing; the leader hears them stand for election. */
static void leader_heard_by_nobody(struct stage *stage)
{
    int leader;

    cluster_tell(&stage->cluster, "nobody hears n%d", stage->leader + 1);
    for (int i = 0; i < NODES; i++)
        net_set(&stage->cluster.net, stage->leader, i, NET_LOST);
    leader = elects(stage, ALL & ~only_leader(stage));
    stops(stage, only_leader(stage));
    if (leader >= 0)
        stays(stage, leader);
    heals(stage, leader);
}

/* Its heartbeats arrive, the answers do not: it must stop by itself, and then it is silent. */
static void leader_hears_nobody(struct stage *stage)
{
    int leader;

    cluster_tell(&stage->cluster, "n%d hears nobody", stage->leader + 1);
    for (int i = 0; i < NODES; i++)
        net_set(&stage->cluster.net, i, stage->leader, NET_LOST);
    stops(stage, only_leader(stage));
    leader = elects(stage, ALL & ~only_leader(stage));
    if (leader >= 0)
        stays(stage, leader);
    heals(stage, leader);
}

static void follower_alone(struct stage *stage)
{
    split(stage, followers(stage, 1), NET_LOST);
    stays(stage, stage->leader);
    heals(stage, stage->leader);
}

/* It sends and never hears: its candidacies must not disturb the others. */
static void follower_hears_nobody(struct stage *stage)
{
    int deaf = (stage->leader + 1) % NODES;

    cluster_tell(&stage->cluster, "n%d hears nobody", deaf + 1);
    for (int i = 0; i < NODES; i++)
        net_set(&stage->cluster.net, i, deaf, NET_LOST);
    stays(stage, stage->leader);
    heals(stage, stage->leader);
}

static void one_link_cut(struct stage *stage)
{
    cluster_tell(&stage->cluster, "the leader and one follower do not hear each other");
    net_set_both(&stage->cluster.net, stage->leader, (stage->leader + 1) % NODES, NET_LOST);
    stays(stage, stage->leader);
    heals(stage, stage->leader);
}

static void two_two_one(struct stage *stage)
{
    cluster_tell(&stage->cluster, "no majority anywhere");
    net_split(&stage->cluster.net, only_leader(stage) | followers(stage, 1), NET_LOST);
    net_split(&stage->cluster.net, 1u << (stage->leader + 4) % NODES, NET_LOST);
    stops(stage, ALL);
    heals(stage, -1);
}

static void cut_leaves(struct stage *stage, int hub)
{
    for (int a = 0; a < NODES; a++)
        for (int b = 0; b < a; b++)
            if (a != hub && b != hub)
                net_set_both(&stage->cluster.net, a, b, NET_LOST);
}

/* Only one node reaches a majority, and it is not the leader. */
static void star(struct stage *stage)
{
    int hub = (stage->leader + 2) % NODES, leader;

    cluster_tell(&stage->cluster, "only n%d is heard by the others", hub + 1);
    cut_leaves(stage, hub);
    stops(stage, only_leader(stage));
    leader = elects(stage, ALL);
    if (leader >= 0 && leader != hub)
        fault(stage, "a node leads that reaches no majority");
    heals(stage, leader);
}

/* Until `gavel check` says so: the links need a moment to be back. */
static void is_told(struct stage *stage, int hub, const char *what)
{
    int64_t end = now_ms() + HEAL_MS;
    char text[4096] = "", middle[64];
    int code = -1;

    snprintf(middle, sizeof middle, "only n%d reaches a majority", hub + 1);
    while (now_ms() < end) {
        code = relay_check(&stage->cluster, text, sizeof text);
        if (code == 3 && strstr(text, what) && strstr(text, middle))
            return;
        (void)poll(NULL, 0, 100);
    }
    printf("# gavel check exits with %d:\n# %s\n", code, text);
    fault(stage, "gavel check does not name it");
}

/* The hub is away for a term, and then it alone reaches a majority: nobody may be elected, and it is said
 * why. Away means dead: to one that is only cut off TCP would bring the entries later. */
static void constrained(struct stage *stage)
{
    int hub = (stage->leader + 2) % NODES;
    char body[64];

    cluster_kill_both(&stage->cluster, hub);
    snprintf(body, sizeof body, "{\"target_leader_id\":\"n%d\",\"timeout_ms\":2000}",
             (stage->leader + 1) % NODES + 1);
    if (cluster_ask(&stage->cluster, stage->leader, "POST", "/transfer", body, ELECT_MS, NULL) != 200)
        fault(stage, "the leader does not hand over");
    if (!cluster_await_agreement(&stage->cluster, ALL & ~(1u << hub), HEAL_MS))
        fault(stage, "the others do not agree");
    cluster_tell(&stage->cluster, "only n%d will be heard by the others", hub + 1);
    cut_leaves(stage, hub);
    stops(stage, ALL & ~(1u << hub));
    cluster_start(&stage->cluster, hub);
    is_told(stage, hub, "a constrained election");
    if (cluster_leader(&stage->cluster, ALL) >= 0)
        fault(stage, "somebody leads that may not");
    heals(stage, -1);
}

/* A link that comes and goes faster than any time-out. */
static void flapping_link(struct stage *stage)
{
    int64_t end = now_ms() + WATCH_MS;
    int other = (stage->leader + 1) % NODES;
    struct cluster_status status;

    cluster_tell(&stage->cluster, "a link of the leader flaps");
    for (int i = 0; now_ms() < end; i++) {
        net_set_both(&stage->cluster.net, stage->leader, other, i % 2 ? NET_OPEN : NET_LOST);
        if (!cluster_look(&stage->cluster, stage->leader, &status) || !status.has_lease) {
            fault(stage, "one flapping link cost the leader its place");
            break;
        }
        (void)poll(NULL, 0, 25);
    }
    heals(stage, stage->leader);
}

/* The leader itself comes and goes; whoever leads in the end, there is one, and the referee sees the rest. */
static void flapping_leader(struct stage *stage)
{
    int64_t end = now_ms() + WATCH_MS;

    cluster_tell(&stage->cluster, "the leader comes and goes");
    for (int i = 0; now_ms() < end; i++) {
        if (i % 2 == 0)
            net_split(&stage->cluster.net, only_leader(stage), i % 4 ? NET_REFUSED : NET_LOST);
        else
            net_heal(&stage->cluster.net);
        (void)cluster_leader(&stage->cluster, ALL); /* for the referee */
        (void)poll(NULL, 0, 100);
    }
    heals(stage, -1);
}

static const struct {
    const char *name;
    void (*run)(struct stage *stage);
} scenarios[] = {
    {"a leader in the majority of a 3-2 split goes on", leader_in_majority},
    {"a leader in the minority of a 3-2 split stops, and the majority elects", leader_in_minority},
    {"the same with links that refuse", leader_in_minority_refused},
    {"a leader that nobody hears is replaced", leader_heard_by_nobody},
    {"a leader that hears nobody stops", leader_hears_nobody},
    {"a follower that is cut off disturbs nobody, neither away nor back", follower_alone},
    {"a follower that hears nobody disturbs nobody", follower_hears_nobody},
    {"one cut link of five nodes changes nothing", one_link_cut},
    {"without a majority nobody leads", two_two_one},
    {"the only node that reaches a majority leads", star},
    {"a constrained election is told by its name", constrained},
    {"a link that flaps costs nobody anything", flapping_link},
    {"a leader that comes and goes", flapping_leader},
};
#define SCENARIOS (sizeof scenarios / sizeof *scenarios)

static void begin(struct stage *stage)
{
    struct cluster_status status;

    stage->is_good = true;
    net_heal(&stage->cluster.net);
    if (!cluster_await_agreement(&stage->cluster, ALL, HEAL_MS))
        fault(stage, "the nodes do not agree before anything was cut");
    stage->leader = cluster_await_leader(&stage->cluster, ALL, ELECT_MS);
    if (stage->leader < 0 || !cluster_look(&stage->cluster, stage->leader, &status)) {
        fault(stage, "nobody leads");
        stage->leader = 0;
        return;
    }
    stage->term = status.term;
}

/* Once more if the machine slept meanwhile: what the nodes then do is right, and not what was to be seen. */
static void run_one(struct stage *stage, size_t which)
{
    for (int tries = 0; tries < 3; tries++) {
        int naps = naps_count(&stage->cluster.naps);

        begin(stage);
        if (stage->is_good)
            scenarios[which].run(stage);
        if (stage->is_good || naps_count(&stage->cluster.naps) == naps)
            return;
        printf("# the machine slept; once more\n");
    }
}

struct options {
    const char *only;
    bool is_kept;
    bool is_verbose;
};

static int run_all(struct stage *stage, const struct options *options)
{
    int failed = 0;
    size_t claims = 0;
    bool is_good;

    printf("1..%zu\n", SCENARIOS + 1);
    for (int i = 0; i < NODES; i++)
        cluster_start(&stage->cluster, i);
    for (size_t i = 0; i < SCENARIOS; i++) {
        if (options->only && !strstr(scenarios[i].name, options->only)) {
            printf("ok %zu - %s # SKIP not asked for\n", i + 1, scenarios[i].name);
            continue;
        }
        run_one(stage, i);
        claims = 1;
        failed |= !stage->is_good;
        printf("%s %zu - %s\n", stage->is_good ? "ok" : "not ok", i + 1, scenarios[i].name);
        fflush(stdout);
    }
    for (int i = 0; i < NODES; i++)
        if (cluster_stop(&stage->cluster, i, HEAL_MS) != 0)
            printf("# n%d did not end well\n", i + 1);
    is_good = cluster_referee(&stage->cluster, claims ? 1 : 0);
    printf("%s %zu - the logs of all nodes agree\n", is_good ? "ok" : "not ok", SCENARIOS + 1);
    return failed || !is_good;
}

int main(int argc, char **argv)
{
    static const struct option words[] = {{"only", required_argument, NULL, 'o'},
                                          {"keep", no_argument, NULL, 'k'},
                                          {"verbose", no_argument, NULL, 'v'},
                                          {0}};
    static struct stage stage;
    struct options options = {0};
    char why[256];
    int option, code;

    while ((option = getopt_long(argc, argv, "", words, NULL)) != -1) {
        if (option == '?')
            return 2;
        if (option == 'o')
            options.only = optarg;
        options.is_kept |= option == 'k';
        options.is_verbose |= option == 'v';
    }
    if (argc - optind != 2) {
        fprintf(stderr, "partitions: usage: partitions GAVEL GAVELD [--only TEXT] [--keep] [--verbose]\n");
        return 2;
    }
    if (!cluster_make(&stage.cluster, NODES, NODES, argv[optind], argv[optind + 1], NULL, why, sizeof why)) {
        printf("1..0 # SKIP %s\n", why);
        return 0;
    }
    stage.cluster.is_verbose = options.is_verbose;
    code = run_all(&stage, &options);
    cluster_done(&stage.cluster, code || options.is_kept);
    return code;
}
