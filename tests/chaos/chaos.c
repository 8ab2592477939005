/* SPDX-License-Identifier: Apache-2.0 */

/*
 * chaos GAVEL GAVELD [--seed N] [--rounds N] [--limit-s N] [--witness] [--beat BEAT] [--candidates BEAT
 * --session-candidate PROGRAM] [--beat-referee PROGRAM] [--keep] [--verbose]:
 * random rounds of faults on five nodes and a sixth that joins, votes and goes. A round does one thing, with
 * whatever earlier rounds have left broken; then, since a majority of nodes live and hear each other, there
 * must be a leader in time whom a majority hears. Nothing waits longer than for that, and some rounds do not
 * wait at all, so that they overlap the recovery from those before. At the end everything is repaired, all
 * have to agree, and the referee reads the logs.
 *
 * With --beat the leader also runs a command (tests/run), whose beats the referee of tests/run looks at: no
 * beat of a former leader after one of its successor.
 *
 * With --candidates there are candidates of groups (candidates.h), and things are done to them, too: each
 * group has its log of beats and its referee, and when all is repaired each must be worked for again.
 *
 * The seed decides what is done to whom; when, is for the machine to say. So a seed that fails may need more
 * than one run to fail again.
 */
#include "cluster.h"

#include "chaos.h"

#include <getopt.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ELECT_MS 10000
#define AGREE_MS 30000
#define GROUPS_MS 20000

uint32_t chaos_random(struct chaos *chaos, uint32_t below)
{
    /* xorshift64*, because it is the same everywhere. */
    chaos->random ^= chaos->random >> 12;
    chaos->random ^= chaos->random << 25;
    chaos->random ^= chaos->random >> 27;
    return (uint32_t)((chaos->random * UINT64_C(2685821657736338717)) >> 33) % below;
}

static bool hear_each_other(const struct chaos *chaos, int a, int b)
{
    return chaos->cluster.net.cuts[a][b] == NET_OPEN && chaos->cluster.net.cuts[b][a] == NET_OPEN;
}

/* Whether these are a majority, with the newcomer's vote and without it. */
static bool is_majority(const struct chaos *chaos, unsigned set)
{
    return __builtin_popcount(set & FOUNDERS_SET) * 2 > FOUNDERS &&
           (!chaos->may_vote || __builtin_popcount(set) * 2 > NODES);
}

/* … or without knowing whether it has one. */
static bool may_be_majority(const struct chaos *chaos, unsigned set)
{
    return __builtin_popcount(set & FOUNDERS_SET) * 2 > FOUNDERS ||
           (chaos->may_vote && __builtin_popcount(set) * 2 > NODES);
}

static unsigned voters(const struct chaos *chaos)
{
    return FOUNDERS_SET | (chaos->may_vote ? 1u << NEWCOMER : 0);
}

/* A majority that lives and hears each other, each both ways; 0 if there is none. */
static unsigned find_majority(const struct chaos *chaos)
{
    unsigned alive = cluster_alive(&chaos->cluster) & voters(chaos);

    for (unsigned set = 1; set < 1u << NODES; set++) {
        bool is_good = (set & alive) == set && is_majority(chaos, set);

        for (int a = 0; is_good && a < NODES; a++)
            for (int b = 0; is_good && b < a; b++)
                if ((set >> a & 1) && (set >> b & 1))
                    is_good = hear_each_other(chaos, a, b);
        if (is_good)
            return set;
    }
    return 0;
}

/* Those that live and hear, and are heard by, enough others to lead. */
static unsigned who_can_lead(const struct chaos *chaos)
{
    unsigned alive = cluster_alive(&chaos->cluster) & voters(chaos), set = 0;

    for (int a = 0; a < NODES; a++) {
        unsigned reached = 0;

        for (int b = 0; b < NODES; b++)
            if ((alive >> b & 1) && (a == b || hear_each_other(chaos, a, b)))
                reached |= 1u << b;
        if ((alive >> a & 1) && may_be_majority(chaos, reached) && a != chaos->cluster.witness)
            set |= 1u << a;
    }
    return set;
}

/* Nodes end only when they are asked to. */
static bool all_run(struct chaos *chaos)
{
    int status;

    for (int i = 0; i < NODES; i++) {
        if (cluster_has_ended(&chaos->cluster, i, &status)) {
            printf("# failed: %s has ended by itself, status %#x\n", chaos->cluster.nodes[i].name,
                   (unsigned)status);
            return false;
        }
    }
    return true;
}

static void repair_node(struct chaos *chaos, int node)
{
    cluster_resume(&chaos->cluster, node);
    if (!chaos->cluster.nodes[node].guard && (voters(chaos) >> node & 1))
        cluster_start(&chaos->cluster, node);
}

/* Takes back one thing after the other until a majority can work. */
static void repair_a_majority(struct chaos *chaos)
{
    if (find_majority(chaos))
        return;
    net_heal(&chaos->cluster.net);
    for (int i = NODES - 1; i >= 0 && !find_majority(chaos); i--)
        repair_node(chaos, i);
}

static void repair_all(struct chaos *chaos)
{
    net_heal(&chaos->cluster.net);
    for (int i = 0; i < NODES; i++)
        repair_node(chaos, i);
}

/* Sometimes something of before is repaired, so that what is broken changes and does not only grow. */
static void repair_something(struct chaos *chaos)
{
    int node = (int)chaos_random(chaos, FOUNDERS);

    switch (chaos_random(chaos, 6)) {
    case 0:
    case 1:
        net_heal(&chaos->cluster.net);
        break;
    case 2:
    case 3:
        for (int i = 0; i < NODES; i++)
            cluster_resume(&chaos->cluster, i);
        break;
    case 4:
        if (!chaos->cluster.nodes[node].guard)
            cluster_start(&chaos->cluster, node);
        break;
    default:
        break;
    }
}

/* One round; false if there is no leader where there must be one. */
static bool run_round(struct chaos *chaos, int round)
{
    const struct chaos_fault *fault = chaos_pick(chaos);
    int leader = cluster_leader(&chaos->cluster, cluster_alive(&chaos->cluster)), next;
    int victim = leader >= 0 && chaos_random(chaos, 3) ? leader : (int)chaos_random(chaos, FOUNDERS);
    int64_t began, took;

    cluster_tell(&chaos->cluster, "round %d: %s, n%d%s", round, fault->name, victim + 1,
                 victim == leader ? ", the leader" : "");
    chaos->done[fault - chaos_faults]++;
    fault->run(chaos, victim, leader);
    if (chaos->has_candidates)
        candidates_disturb(&chaos->candidates, chaos_random(chaos, 1u << 20));
    repair_a_majority(chaos);
    if (chaos_random(chaos, 4) == 0)
        return all_run(chaos); /* the next one comes in the middle of it */
    began = now_ms();
    next = cluster_await_leader(&chaos->cluster, who_can_lead(chaos), ELECT_MS);
    took = now_ms() - began;
    cluster_tell(&chaos->cluster, "round %d: %s leads after %lld ms", round,
                 next < 0 ? "nobody" : chaos->cluster.nodes[next].name, (long long)took);
    chaos->wait_max_ms = took > chaos->wait_max_ms ? took : chaos->wait_max_ms;
    chaos->wait_sum_ms += took;
    if (next < 0) {
        printf("# failed: round %d, %s: nobody leads after %d ms, and %02x could elect\n", round, fault->name,
               ELECT_MS, find_majority(chaos));
        return false;
    }
    if (leader >= 0 && leader == chaos->cluster.witness) {
        printf("# failed: round %d: the witness %s has a lease\n", round, chaos->cluster.nodes[leader].name);
        return false;
    }
    if (!all_run(chaos))
        return false;
    repair_something(chaos);
    return true;
}

static int report(const struct chaos *chaos, int rounds, int64_t took_ms)
{
    printf("# %d rounds in %.1f s; a leader after %lld ms on average, %lld ms at most\n", rounds,
           (double)took_ms / 1000, (long long)(chaos->wait_sum_ms / (rounds ? rounds : 1)),
           (long long)chaos->wait_max_ms);
    for (size_t i = 0; i < chaos_fault_count; i++)
        printf("#   %3d %s\n", chaos->done[i], chaos_faults[i].name);
    return rounds;
}

/* The referee over the beats of the leaders' commands. */
static bool judge_beats(const struct chaos *chaos, const char *beat_referee)
{
    char path[PATH_MAX + 16];
    int status;
    pid_t pid;

    snprintf(path, sizeof path, "%s/beats", chaos->cluster.directory);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        execl(beat_referee, "beat_referee", path, (char *)NULL);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Every group is worked for, and was by one at a time. */
static bool end_candidates(struct chaos *chaos, const char *beat_referee)
{
    bool are_led, is_good;

    if (!chaos->has_candidates)
        return true;
    are_led = candidates_are_led(&chaos->candidates, GROUPS_MS);
    is_good = candidates_stop(&chaos->candidates, AGREE_MS) && are_led;
    return candidates_referee(&chaos->candidates, beat_referee) && is_good;
}

static int run_all(struct chaos *chaos, const struct chaos_options *options)
{
    int64_t began = now_ms();
    int round = 0;
    bool is_led = true, agrees, is_true, are_fair;

    printf("1..%d\n# seed %llu\n", options->candidate_beat ? 4 : 3, (unsigned long long)options->seed);
    fflush(stdout);
    for (int i = 0; i < FOUNDERS; i++)
        cluster_start(&chaos->cluster, i);
    is_led = cluster_await_leader(&chaos->cluster, FOUNDERS_SET, ELECT_MS) >= 0;
    if (options->candidate_beat) {
        chaos->has_candidates = true;
        candidates_start(&chaos->candidates, &chaos->cluster, options->candidate_beat,
                         options->session_candidate);
        is_led = candidates_are_led(&chaos->candidates, GROUPS_MS) && is_led;
    }
    while (is_led && round < options->rounds && now_ms() - began < options->limit_s * 1000)
        is_led = run_round(chaos, ++round);
    report(chaos, round, now_ms() - began);
    if (is_led && round < options->rounds && !options->may_end_early) {
        printf("# failed: only %d of %d rounds within %lld s\n", round, options->rounds,
               (long long)options->limit_s);
        is_led = false;
    }
    printf("%s 1 - a majority that lives and is connected has a leader\n", is_led ? "ok" : "not ok");
    repair_all(chaos);
    cluster_tell(&chaos->cluster, "everything is repaired");
    agrees = cluster_await_agreement(&chaos->cluster, voters(chaos), AGREE_MS) && all_run(chaos);
    printf("%s 2 - everybody agrees when everything is repaired\n", agrees ? "ok" : "not ok");
    are_fair = end_candidates(chaos, options->beat_referee);
    for (int i = 0; i < NODES; i++)
        if (chaos->cluster.nodes[i].guard && cluster_stop(&chaos->cluster, i, AGREE_MS) != 0) {
            printf("# failed: n%d did not end well\n", i + 1);
            agrees = false;
        }
    is_true = cluster_referee(&chaos->cluster, 1 + (size_t)round / 10) && cluster_is_sane(&chaos->cluster);
    if (options->beat)
        is_true = judge_beats(chaos, options->beat_referee) && is_true;
    printf("%s 3 - the logs of all nodes agree\n", is_true ? "ok" : "not ok");
    if (chaos->has_candidates)
        printf("%s 4 - each group has a leader again, and never had two\n", are_fair ? "ok" : "not ok");
    return !(is_led && agrees && is_true && are_fair);
}

static bool read_options(int argc, char **argv, struct chaos_options *options)
{
    static const struct option words[] = {{"seed", required_argument, NULL, 's'},
                                          {"rounds", required_argument, NULL, 'r'},
                                          {"limit-s", required_argument, NULL, 'l'},
                                          {"beat", required_argument, NULL, 'b'},
                                          {"beat-referee", required_argument, NULL, 'j'},
                                          {"keep", no_argument, NULL, 'k'},
                                          {"candidates", required_argument, NULL, 'g'},
                                          {"session-candidate", required_argument, NULL, 'c'},
                                          {"witness", no_argument, NULL, 'w'},
                                          {"short", no_argument, NULL, 'e'},
                                          {"verbose", no_argument, NULL, 'v'},
                                          {0}};
    int option;

    while ((option = getopt_long(argc, argv, "", words, NULL)) != -1) {
        if (option == '?')
            return false;
        if (option == 's')
            options->seed = strtoull(optarg, NULL, 10);
        if (option == 'r')
            options->rounds = (int)strtol(optarg, NULL, 10);
        if (option == 'l')
            options->limit_s = strtol(optarg, NULL, 10);
        if (option == 'b')
            options->beat = optarg;
        if (option == 'j')
            options->beat_referee = optarg;
        if (option == 'g')
            options->candidate_beat = optarg;
        if (option == 'c')
            options->session_candidate = optarg;
        options->may_end_early |= option == 'e';
        options->has_witness |= option == 'w';
        options->is_kept |= option == 'k';
        options->is_verbose |= option == 'v';
    }
    return argc - optind == 2 && !options->candidate_beat == !options->session_candidate &&
           !(options->beat || options->candidate_beat) == !options->beat_referee;
}

int main(int argc, char **argv)
{
    struct chaos_options options = {.seed = (uint64_t)time(NULL), .rounds = 500, .limit_s = 600};
    static struct chaos chaos;
    char why[256];
    int code;

    if (!read_options(argc, argv, &options)) {
        fprintf(
            stderr,
            "chaos: usage: chaos GAVEL GAVELD [--seed N] [--rounds N] [--limit-s N] [--short] "
            "[--witness] [--beat BEAT] [--candidates BEAT --session-candidate PROGRAM] [--beat-referee PROGRAM] [--keep] "
            "[--verbose]\n");
        return 2;
    }
    chaos.random = options.seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    if (!cluster_make(&chaos.cluster, NODES, FOUNDERS, argv[optind], argv[optind + 1], options.beat, why,
                      sizeof why)) {
        printf("1..0 # SKIP %s\n", why);
        return 0;
    }
    chaos.cluster.is_verbose = options.is_verbose;
    if (options.has_witness)
        cluster_set_witness(&chaos.cluster, FOUNDERS - 1);
    code = run_all(&chaos, &options);
    cluster_done(&chaos.cluster, code || options.is_kept);
    return code;
}
