/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cutoff GAVEL BEAT [--rounds N]
 *
 * A command that ignores SIGTERM, with grandchildren in sessions of their own
 * and a daemon, loses its store: somebody holds the lock and does not give it
 * back. All of it must be gone before the deadline.
 *
 *   renewal   sent   applied        store is cut off           SIGTERM   SIGKILL  deadline
 *             ├──────┼──────────────────┼──────────────────────────┼─────────┼───────┤
 *                    └───────────────── lease, less drift and margin ────────────────┘─► the bound
 *
 * Seen from outside: the store says when it applied the last renewal, on the
 * clock that the beats have, too. The deadline counts from when that renewal
 * was sent, so it is a little before the bound that is checked here. Nothing
 * can be applied after we have read it, since we hold the lock ourselves.
 *
 * Several stores are cut off at the same time, each in its own trial.
 */
#include "election.h"

#include "base/histogram.h"
#include "base/prng.h"
#include "os/clock.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STORES 5
#define ROUNDS_DEFAULT 20
#define ROUNDS_MAX 200

struct trial {
    uint64_t epoch;
    gavel_ns bound;
    gavel_ns left_at; /* when somebody was still there, the last time that we looked */
    gavel_ns gone_at; /* when nobody was left any more, as seen from here; 0: not yet */
};

struct run {
    struct election elections[STORES];
    struct prng prng;
    size_t rounds;
    size_t count;                               /* trials */
    int64_t silent_before[STORES * ROUNDS_MAX]; /* from the last beat to the bound */
    int64_t gone_before[STORES * ROUNDS_MAX];   /* from when nobody was left to the bound */
    size_t late;
};

/* Waits until each store has a leader, all of whose processes beat. */
static bool settle(struct run *run)
{
    for (gavel_ns until = clock_now() + LIMIT; clock_now() < until; election_pause()) {
        size_t ready = 0;

        for (size_t i = 0; i < STORES; i++) {
            struct election *election = &run->elections[i];
            struct leader leader;

            election_look(election);
            /* A machine that stood still may have cost it its guard; not for ever, if it cannot run at
             * all. */
            if (!election->candidates[0].pid && election->candidates[0].lives < ROUNDS_MAX)
                election_start(election, &election->candidates[0]);
            if (!election_find_leader(election, &leader))
                continue;
            leader_done(&leader);
            ready += election->has_role[BEAT_MAIN] && election->has_role[BEAT_SESSION] &&
                     election->has_role[BEAT_DAEMON] && election_renewed_at(election) > 0;
        }
        if (ready == STORES)
            return true;
    }
    printf("# not every command was started after %lld s\n", (long long)(LIMIT / NS_PER_S));
    return false;
}

static bool cut(struct run *run, struct election *election, struct trial *ret_trial)
{
    struct timespec pause = {.tv_nsec = prng_between(&run->prng, 0, 30 * NS_PER_MS)};
    gavel_ns renewed_at;

    (void)nanosleep(&pause, NULL); /* at any instant between two renewals; waking early does no harm */
    if (!election_cut(election)) {
        printf("# a store could not be cut off\n");
        return false;
    }
    renewed_at = election_renewed_at(election);
    election_look(election);
    *ret_trial = (struct trial){
        .epoch = beat_referee_newest(&election->referee)->epoch,
        .bound = renewed_at + ns_shrink(LEASE_MS * NS_PER_MS, DRIFT_PPM) - STOP_MARGIN_MS * NS_PER_MS,
    };
    return renewed_at > 0;
}

/* Until all are gone, or a second after they should have been. */
static void await_silence(struct run *run, struct trial *trials)
{
    size_t gone = 0;
    gavel_ns until = 0;

    for (size_t i = 0; i < STORES; i++)
        until = ns_max(until, trials[i].bound + NS_PER_S);
    while (gone < STORES && clock_now() < until) {
        for (size_t i = 0; i < STORES; i++) {
            gavel_ns looked_at = clock_now(); /* whoever is there was there at that moment */

            if (trials[i].gone_at != 0)
                continue;
            if (!beat_log_is_abandoned(&run->elections[i].reader)) {
                trials[i].left_at = looked_at;
                continue;
            }
            trials[i].gone_at = clock_now();
            gone++;
        }
        election_pause();
    }
}

static void judge_trial(struct run *run, struct election *election, const struct trial *trial)
{
    const struct epoch_span *span;
    bool is_late;

    election_look(election);
    span = beat_referee_span(&election->referee, trial->epoch);
    /*
     * On a busy machine we may look late ourselves: what counts is when somebody was seen to be there.
     * Whoever is killed does nothing any more, but has to be scheduled to be gone, and nobody else may lead
     * before the margin is over, too.
     */
    is_late = trial->gone_at == 0 || trial->left_at >= trial->bound + STOP_MARGIN_MS * NS_PER_MS || !span ||
              span->last >= trial->bound || beat_referee_newest(&election->referee)->epoch != trial->epoch;
    if (is_late)
        printf("# too late: epoch %" PRIu64 ", last beat %.3f ms before the deadline, %s\n", trial->epoch,
               span ? (double)(trial->bound - span->last) / (double)NS_PER_MS : 0.0,
               trial->gone_at ? "gone" : "not gone at all");
    run->late += is_late;
    run->silent_before[run->count] = span ? trial->bound - span->last : INT64_MIN;
    run->gone_before[run->count] = trial->gone_at ? trial->bound - trial->gone_at : INT64_MIN;
    run->count++;
}

static bool play(struct run *run)
{
    struct trial trials[STORES];
    bool is_well = settle(run);

    for (size_t i = 0; is_well && i < STORES; i++)
        is_well = cut(run, &run->elections[i], &trials[i]);
    if (is_well) {
        await_silence(run, trials);
        for (size_t i = 0; i < STORES; i++)
            judge_trial(run, &run->elections[i], &trials[i]);
    }
    for (size_t i = 0; i < STORES; i++)
        election_mend(&run->elections[i]);
    return is_well;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void print_row(const char *name, int64_t *samples, size_t count)
{
    qsort(samples, count, sizeof *samples, compare);
    printf("# %-44s %8.2f %8.2f %8.2f\n", name,
           (double)percentile_of_sorted(samples, count, 0) / (double)NS_PER_MS,
           (double)percentile_of_sorted(samples, count, 1) / (double)NS_PER_MS,
           (double)percentile_of_sorted(samples, count, 50) / (double)NS_PER_MS);
}

static void open_elections(struct run *run, char *const *programs)
{
    for (size_t i = 0; i < STORES; i++) {
        election_open(&run->elections[i], programs[0], programs[1]);
        election_start(&run->elections[i], election_add(&run->elections[i], true));
    }
}

static size_t close_elections(struct run *run, bool is_well)
{
    size_t left;

    for (size_t i = 0; i < STORES; i++)
        election_dismiss(&run->elections[i]);
    left = election_sweep();
    for (size_t i = 0; i < STORES; i++) {
        if (!is_well)
            election_print_logs(&run->elections[i]);
        election_close(&run->elections[i], false);
    }
    return left;
}

int main(int argc, char **argv)
{
    static const struct option table[] = {{"rounds", required_argument, NULL, 'n'}, {0}};
    static struct run run;
    bool is_well = true;
    uint64_t found = 0;
    size_t left;
    int letter;

    run.rounds = ROUNDS_DEFAULT;
    while ((letter = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (letter != 'n')
            return 2;
        run.rounds = strtoul(optarg, NULL, 10);
    }
    if (optind + 2 != argc || run.rounds < 1 || run.rounds > ROUNDS_MAX) {
        fprintf(stderr, "cutoff: say which gavel and which beat; 1 to %d rounds\n", ROUNDS_MAX);
        return 2;
    }
    prng_seed(&run.prng, 1);
    open_elections(&run, argv + optind);
    for (size_t round = 0; is_well && round < run.rounds; round++)
        is_well = play(&run);
    for (size_t i = 0; i < STORES; i++)
        found += beat_referee_found(&run.elections[i].referee);
    is_well = is_well && run.late == 0 && found == 0;
    left = close_elections(&run, is_well);

    printf("1..2\n");
    printf("# %zu of %zu trials gone before the deadline\n", run.count - run.late, run.count);
    printf("# %-44s %8s %8s %8s\n", "milliseconds before the deadline", "least", "p1", "p50");
    print_row("the last beat of any process of the tree", run.silent_before, run.count);
    print_row("nobody was left, as seen from outside", run.gone_before, run.count);
    printf("%sok 1 - a_tree_that_ignores_sigterm_is_gone_before_the_deadline\n", is_well ? "" : "not ");
    printf("%sok 2 - nothing_is_left_running\n", left == 0 ? "" : "not ");
    return is_well && left == 0 ? 0 : 1;
}
