/* SPDX-License-Identifier: Apache-2.0 */

/*
 * random_faults GAVEL BEAT [--faults N] [--seed N] [--only NAME] [--keep]
 *
 * Four `gavel run` of one group on one SQLite store, of which one leads and
 * three stand by. So many faults hit whoever leads, in an order and at
 * instants that a seed decides; after each, the next epoch must begin. All
 * the while every process of every command beats into one log, and the referee
 * reads it: the beats of two epochs never interleave.
 *
 * Half of the commands are wild: they ignore SIGTERM and have grandchildren
 * in other sessions, and a daemon. One of the wild ones also gives its command
 * a moment when its elector is killed, and so would show a release that comes
 * before the last process is dead.
 */
#include "faults.h"

#include "base/histogram.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "proc.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CANDIDATES 4
#define FAULTS_DEFAULT 220
#define FAULTS_MAX 2000
#define KINDS_MAX 16
/* A standby may lose its turn on a busy machine, and then an epoch ends that nobody touched; more than so
 * many of 100 are not chance. */
#define UNASKED_PERCENT 5

/* Several leases: whoever has not taken over by then is kept from it. */
#define LOCKED_AFTER (2 * NS_PER_S)

struct samples {
    size_t count;
    int64_t from_fault[FAULTS_MAX]; /* to the first beat of the next epoch */
    int64_t gap[FAULTS_MAX];        /* from the last beat of the one before */
};

struct run {
    struct election election;
    struct prng prng;
    const char *only;
    size_t total;
    size_t deck[FAULTS_MAX]; /* places in faults[], in the order of the run */
    struct samples samples[KINDS_MAX];
    size_t unasked; /* epochs that began without a fault of ours */
    size_t locked;  /* faults that froze a process in the middle of a write */
    bool keep;
};

/* The faults by their shares, each at least once, shuffled. */
static void shuffle(struct run *run)
{
    unsigned shares = 0;
    size_t filled = 0;

    for (size_t i = 0; i < fault_count; i++)
        shares += faults[i].share;
    for (size_t i = 0; i < fault_count && filled < run->total; i++) {
        size_t share = run->total * faults[i].share / shares;

        if (run->only)
            share = strcmp(faults[i].name, run->only) == 0 ? run->total : 0;
        else if (share == 0)
            share = 1;
        for (size_t n = 0; n < share && filled < run->total; n++)
            run->deck[filled++] = i;
    }
    if (run->only && filled == 0) {
        fprintf(stderr, "random_faults: there is no fault \"%s\"\n", run->only);
        exit(2);
    }
    for (size_t i = 0; filled < run->total; i++)
        run->deck[filled++] = i % 3; /* what rounding left over, to the first kinds */
    for (size_t i = run->total; i-- > 1;) {
        size_t j = (size_t)prng_below(&run->prng, i + 1), kept = run->deck[i];

        run->deck[i] = run->deck[j];
        run->deck[j] = kept;
    }
}

/* Starts again who has ended; how many take part in the election, leader included. */
static size_t refill(struct run *run)
{
    size_t present = 0;

    election_look(&run->election);
    for (size_t i = 0; i < run->election.count; i++) {
        struct candidate *candidate = &run->election.candidates[i];

        if (!candidate->pid && candidate->lives < run->total + CANDIDATES)
            election_start(&run->election, candidate); /* not for ever, if it cannot run at all */
        else if (election_heartbeats(&run->election, candidate) > 0)
            present++;
    }
    return present;
}

/* Waits for a leader whose command beats, and for so many that take part. */
static bool settle(struct run *run, size_t wanted, struct leader *ret_leader)
{
    for (gavel_ns until = clock_now() + LIMIT; clock_now() < until; election_pause())
        if (refill(run) >= wanted && election_find_leader(&run->election, ret_leader))
            return true;
    printf("# nobody leads, or not all have come back, after %lld s\n", (long long)(LIMIT / NS_PER_S));
    return false;
}

/* Waits for the first beat of a higher epoch. */
static bool await_next(struct run *run, uint64_t epoch, gavel_ns until)
{
    for (; clock_now() < until; election_pause()) {
        election_look(&run->election);
        if (beat_referee_newest(&run->election.referee)->epoch > epoch)
            return true;
    }
    return false;
}

/*
 * A process that is frozen in the middle of a write holds the lock of the
 * SQLite file, and nobody can write until it is woken: safe, but nobody leads.
 */
static bool is_locked_by(struct run *run, const struct leader *leader)
{
    return election_lock_holder(&run->election) == leader->pids[0] &&
           proc_state(leader->pids[0], NULL) == 'T';
}

/* Waits for the command itself to beat on. True also if another has taken over; *ret_same tells. */
static bool await_same(struct run *run, uint64_t epoch, gavel_ns since, bool *ret_same)
{
    for (gavel_ns until = clock_now() + LIMIT; clock_now() < until; election_pause()) {
        election_look(&run->election);
        *ret_same = run->election.latest.epoch == epoch;
        if (run->election.latest.at > since)
            return true;
    }
    return false;
}

static void take_sample(struct run *run, size_t kind, uint64_t epoch, gavel_ns from)
{
    const struct beat_referee *referee = &run->election.referee;
    struct samples *samples = &run->samples[kind];

    for (size_t i = 0; i + 1 < referee->span_count; i++) {
        if (referee->spans[i].epoch == epoch) {
            samples->from_fault[samples->count] = referee->spans[i + 1].first - from;
            samples->gap[samples->count] = referee->spans[i + 1].first - referee->spans[i].last;
            samples->count++;
        }
    }
}

static bool play(struct run *run, size_t kind, struct leader *leader)
{
    const struct fault *fault = &faults[kind];
    gavel_ns at = clock_now();
    bool is_same;

    if (!fault->inject(&run->election, leader, &run->prng)) {
        election_look(&run->election);
        if (beat_referee_newest(&run->election.referee)->epoch == leader->epoch)
            return false;
        run->unasked++; /* it had just lost its mandate by itself */
        return true;
    }
    if (fault->counts_from_mending)
        at = clock_now();
    if (fault->outcome == OUTCOME_SAME) {
        if (!fault->mend(&run->election, leader, &run->prng))
            return false;
        at = clock_now();
        if (!await_same(run, leader->epoch, at, &is_same))
            return false;
        run->samples[kind].count += is_same;
        run->unasked += !is_same;
        return true;
    }
    if (await_next(run, leader->epoch, at + LOCKED_AFTER)) {
        take_sample(run, kind, leader->epoch, at);
    } else if (fault->mend && is_locked_by(run, leader)) {
        run->locked++;
        return fault->mend(&run->election, leader, &run->prng) && await_next(run, leader->epoch, at + LIMIT);
    } else if (await_next(run, leader->epoch, at + LIMIT)) {
        take_sample(run, kind, leader->epoch, at);
    } else {
        return false;
    }
    return !fault->mend || fault->mend(&run->election, leader, &run->prng);
}

static bool is_for_tame(size_t kind) { return faults[kind].is_for_tame_only; }

/* The last ones may all be for tame leaders: then a wild one is asked to hand over until there is one. */
static bool find_victim(struct run *run, size_t i, struct leader *ret_leader)
{
    for (int tries = 0; tries < 50; tries++) {
        /* Some faults come while others are still coming back from the one before. */
        size_t wanted = prng_chance(&run->prng, 250) ? 2 : CANDIDATES;

        if (!settle(run, wanted, ret_leader))
            return false;
        if (leader_choose_fault(ret_leader, run->deck + i, run->total - i, is_for_tame))
            return true;
        if (election_handover(&run->election) == 0 &&
            !await_next(run, ret_leader->epoch, clock_now() + LIMIT)) {
            leader_done(ret_leader);
            return false;
        }
        leader_done(ret_leader);
    }
    return false;
}

static bool play_all(struct run *run)
{
    struct leader leader;
    struct timespec pause = {0};
    size_t i;
    bool is_well = true;

    for (i = 0; i < run->total && is_well; i++) {
        if (!find_victim(run, i, &leader))
            break;
        pause.tv_nsec = prng_between(&run->prng, 0, 20 * NS_PER_MS);
        (void)nanosleep(&pause, NULL); /* faults come at any instant; waking early does no harm */
        is_well = play(run, run->deck[i], &leader);
        if (!is_well)
            printf("# fault %zu, \"%s\" on member %u in epoch %" PRIu64 ", was not survived\n", i + 1,
                   faults[run->deck[i]].name, leader.candidate->number, leader.epoch);
        leader_done(&leader);
        if (beat_referee_found(&run->election.referee) > 0) {
            printf("# after fault %zu, \"%s\" in epoch %" PRIu64 ":\n", i + 1, faults[run->deck[i]].name,
                   leader.epoch);
            is_well = false;
        }
    }
    return is_well && i == run->total;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void print_row(const char *name, struct samples *samples)
{
    int64_t *columns[] = {samples->from_fault, samples->gap};
    const double percents[] = {50, 99, 100};

    printf("# %-24s %5zu", name, samples->count);
    for (size_t i = 0; i < 2; i++) {
        qsort(columns[i], samples->count, sizeof *columns[i], compare);
        for (size_t p = 0; p < 3; p++)
            printf(" %8.2f",
                   (double)percentile_of_sorted(columns[i], samples->count, percents[p]) / (double)NS_PER_MS);
        printf(i == 0 ? "  |" : "\n");
    }
}

static void print_table(struct run *run)
{
    printf("# milliseconds                     fault to next first beat    | last beat to next first beat\n");
    printf("# %-24s %5s %8s %8s %8s  | %8s %8s %8s\n", "fault", "n", "p50", "p99", "max", "p50", "p99",
           "max");
    for (size_t i = 0; i < fault_count; i++) {
        if (run->samples[i].count == 0)
            continue;
        if (faults[i].outcome == OUTCOME_SAME)
            printf("# %-24s %5zu   the epoch went on\n", faults[i].name, run->samples[i].count);
        else
            print_row(faults[i].name, &run->samples[i]);
    }
    if (run->locked)
        printf("# %zu times a process was frozen in the middle of a write, and woken so that others could "
               "lead\n",
               run->locked);
    if (run->unasked)
        printf("# %zu epochs ended by themselves\n", run->unasked);
}

static void parse(int argc, char **argv, struct run *run)
{
    static const struct option table[] = {
        {"faults", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {"only", required_argument, NULL, 'o'},
        {"keep", no_argument, NULL, 'k'},
        {0},
    };
    uint64_t seed = 0;
    int letter;

    while ((letter = getopt_long(argc, argv, "", table, NULL)) != -1) {
        switch (letter) {
        case 'n':
            run->total = strtoul(optarg, NULL, 10);
            break;
        case 's':
            seed = strtoull(optarg, NULL, 10);
            break;
        case 'o':
            run->only = optarg;
            break;
        case 'k':
            run->keep = true;
            break;
        default:
            exit(2);
        }
    }
    if (optind + 2 != argc || run->total < 1 || run->total > FAULTS_MAX) {
        fprintf(stderr, "random_faults: say which gavel and which beat; 1 to %d faults\n", FAULTS_MAX);
        exit(2);
    }
    if (seed == 0)
        seed = entropy_u64() % 1000000000;
    printf("# seed %" PRIu64 ", %zu faults\n", seed, run->total);
    (void)fflush(stdout); /* whoever reads it gets the rest as well */
    prng_seed(&run->prng, seed);
}

static bool say(int number, bool is_well, const char *what)
{
    printf("%sok %d - %s\n", is_well ? "" : "not ", number, what);
    return is_well;
}

int main(int argc, char **argv)
{
    static struct run run;
    bool is_survived, is_clean, is_all_well = true;
    size_t left;

    run.total = FAULTS_DEFAULT;
    parse(argc, argv, &run);
    shuffle(&run);
    election_open(&run.election, argv[optind], argv[optind + 1]);
    for (size_t i = 0; i < CANDIDATES; i++)
        (void)election_add(&run.election, i % 2 == 1);
    run.election.candidates[CANDIDATES - 1].orphan_grace = "30ms";

    is_survived = play_all(&run);
    election_dismiss(&run.election);
    left = election_sweep();
    election_look(&run.election);
    is_clean = left == 0 && beat_log_is_abandoned(&run.election.reader);

    printf("1..4\n");
    beat_referee_print(&run.election.referee, stdout);
    print_table(&run);
    is_all_well &= say(1, beat_referee_found(&run.election.referee) == 0,
                       "no_two_epochs_interleave_and_epochs_only_grow");
    is_all_well &= say(2, is_survived, "after_each_fault_the_work_goes_on");
    is_all_well &= say(3, run.unasked * 100 <= run.total * UNASKED_PERCENT, "no_epoch_ends_by_itself");
    is_all_well &= say(4, is_clean, "nothing_is_left_running");
    if (!is_all_well)
        election_print_logs(&run.election);
    if (run.keep)
        printf("# kept in %s\n", run.election.directory);
    election_close(&run.election, run.keep);
    return is_all_well ? 0 : 1;
}
