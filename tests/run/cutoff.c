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
#include "crowd.h"

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
    gavel_ns gone_at; /* when nobody was left any more, as seen from here; 0: not yet */
};

struct run {
    struct crowd crowds[STORES];
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
    for (gavel_ns until = clock_now() + LIMIT; clock_now() < until; crowd_pause()) {
        size_t ready = 0;

        for (size_t i = 0; i < STORES; i++) {
            struct crowd *crowd = &run->crowds[i];
            struct leader leader;

            crowd_look(crowd);
            /* A machine that stood still may have cost it its guard; not for ever, if it cannot run at
             * all. */
            if (!crowd->contenders[0].pid && crowd->contenders[0].lives < ROUNDS_MAX)
                crowd_start(crowd, &crowd->contenders[0]);
            if (!crowd_find_leader(crowd, &leader))
                continue;
            leader_done(&leader);
            ready += crowd->has_role[BEAT_MAIN] && crowd->has_role[BEAT_SESSION] &&
                     crowd->has_role[BEAT_DAEMON] && crowd_renewed_at(crowd) > 0;
        }
        if (ready == STORES)
            return true;
    }
    printf("# not every command was started after %lld s\n", (long long)(LIMIT / NS_PER_S));
    return false;
}

static bool cut(struct run *run, struct crowd *crowd, struct trial *ret_trial)
{
    struct timespec pause = {.tv_nsec = prng_between(&run->prng, 0, 30 * NS_PER_MS)};
    gavel_ns renewed_at;

    (void)nanosleep(&pause, NULL); /* at any instant between two renewals; waking early does no harm */
    if (!crowd_cut(crowd)) {
        printf("# a store could not be cut off\n");
        return false;
    }
    renewed_at = crowd_renewed_at(crowd);
    crowd_look(crowd);
    *ret_trial = (struct trial){
        .epoch = judge_newest(&crowd->judge)->epoch,
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
            if (trials[i].gone_at == 0 && beat_log_is_abandoned(&run->crowds[i].reader)) {
                trials[i].gone_at = clock_now();
                gone++;
            }
        }
        crowd_pause();
    }
}

static void judge_trial(struct run *run, struct crowd *crowd, const struct trial *trial)
{
    const struct epoch_span *span;
    bool is_late;

    crowd_look(crowd);
    span = judge_span(&crowd->judge, trial->epoch);
    /* We may look a moment late ourselves, but nobody else may lead before the margin is over, too. */
    is_late = trial->gone_at == 0 || trial->gone_at >= trial->bound + STOP_MARGIN_MS * NS_PER_MS || !span ||
              span->last >= trial->bound || judge_newest(&crowd->judge)->epoch != trial->epoch;
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
        is_well = cut(run, &run->crowds[i], &trials[i]);
    if (is_well) {
        await_silence(run, trials);
        for (size_t i = 0; i < STORES; i++)
            judge_trial(run, &run->crowds[i], &trials[i]);
    }
    for (size_t i = 0; i < STORES; i++)
        crowd_mend(&run->crowds[i]);
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

static void open_crowds(struct run *run, char *const *programs)
{
    for (size_t i = 0; i < STORES; i++) {
        crowd_open(&run->crowds[i], programs[0], programs[1]);
        crowd_start(&run->crowds[i], crowd_add(&run->crowds[i], true));
    }
}

static size_t close_crowds(struct run *run, bool is_well)
{
    size_t left;

    for (size_t i = 0; i < STORES; i++)
        crowd_dismiss(&run->crowds[i]);
    left = crowd_sweep();
    for (size_t i = 0; i < STORES; i++) {
        if (!is_well)
            crowd_print_logs(&run->crowds[i]);
        crowd_close(&run->crowds[i], false);
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
    open_crowds(&run, argv + optind);
    for (size_t round = 0; is_well && round < run.rounds; round++)
        is_well = play(&run);
    for (size_t i = 0; i < STORES; i++)
        found += judge_found(&run.crowds[i].judge);
    is_well = is_well && run.late == 0 && found == 0;
    left = close_crowds(&run, is_well);

    printf("1..2\n");
    printf("# %zu of %zu trials gone before the deadline\n", run.count - run.late, run.count);
    printf("# %-44s %8s %8s %8s\n", "milliseconds before the deadline", "least", "p1", "p50");
    print_row("the last beat of any process of the tree", run.silent_before, run.count);
    print_row("nobody was left, as seen from outside", run.gone_before, run.count);
    printf("%sok 1 - a_tree_that_ignores_sigterm_is_gone_before_the_deadline\n", is_well ? "" : "not ");
    printf("%sok 2 - nothing_is_left_running\n", left == 0 ? "" : "not ");
    return is_well && left == 0 ? 0 : 1;
}
