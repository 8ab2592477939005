/* SPDX-License-Identifier: Apache-2.0 */

/*
 * outage GAVEL BEAT CLOCK_SHIFT mysql|etcd|s3 [--faults N] [--seed N] [--only NAME] [--keep]
 *
 * Three `gavel run` of one group on one real server, each by a link of its
 * own. One outage after the other befalls the server, the links, the clocks or
 * the leader, in an order and at instants that a seed decides. The referee reads
 * the beats of all commands: those of two epochs never interleave. And after
 * each outage somebody works again, without anybody having been started anew
 * that was not killed.
 */
#include "outages.h"

#include "os/clock.h"
#include "os/entropy.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAULTS_MAX 2000

/* A server under load that has to start again, or a machine that is busy with other tests, takes its time. */
#define PATIENCE (60 * NS_PER_S)

/* As `gavel check` says: stopped by 1948 ms, taken over from 2003 ms on. */
static const char *const times[] = {"--lease",
                                    "2s",
                                    "--heartbeat",
                                    "250ms",
                                    "--heartbeat-jitter",
                                    "20ms",
                                    "--call-timeout",
                                    "600ms",
                                    "--grace",
                                    "250ms",
                                    "--stop-margin",
                                    "50ms",
                                    "--drift-ppm",
                                    "1000",
                                    "--stagger",
                                    "20ms",
                                    "--election-interval",
                                    "200ms",
                                    "--takeover-delay",
                                    "0",
                                    "--breaker-reset",
                                    "300ms",
                                    "--candidate-timeout",
                                    "8s",
                                    "--start-jitter-max",
                                    "0",
                                    NULL};

static const struct {
    const char *name;
    enum test_server_kind kind;
} stores[] = {{"mysql", TEST_MARIADB}, {"etcd", TEST_ETCD}, {"s3", TEST_RADOSGW}};

struct run {
    struct election election;
    struct site site;
    struct prng prng;
    enum test_server_kind kind;
    const char *only;
    size_t total;
    size_t deck[FAULTS_MAX];         /* places in outages[] */
    const struct candidate *excused; /* who may end, in this life of it; NULL: nobody */
    unsigned excused_life;
    size_t guards_lost; /* `gavel run` that ended because the kernel ended their guard */
    size_t revived;     /* times that the server ended by itself */
    gavel_ns looked_at;
    bool has_ended; /* one ended for another reason, and was not killed */
    bool keep;
};

/* All that are for this store, again and again, and each round in an order of its own. */
static size_t shuffle(struct run *run)
{
    size_t round[64], kinds = 0;

    for (size_t i = 0; i < outage_count; i++)
        if (run->only ? strcmp(outages[i].name, run->only) == 0
                      : !outages[i].is_for || outages[i].is_for(&run->site))
            round[kinds++] = i;
    if (kinds == 0)
        return 0;
    if (run->total == 0)
        run->total = kinds;
    for (size_t filled = 0; filled < run->total; filled++) {
        size_t at = filled % kinds, other = at + (size_t)prng_below(&run->prng, kinds - at),
               kept = round[other];

        round[other] = round[at];
        round[at] = run->deck[filled] = kept;
    }
    return kinds;
}

/* Whether it has said so on standard error, in any of its lives. */
static bool has_said(const struct run *run, const struct candidate *candidate, const char *what)
{
    char path[128], line[1024];
    bool is_found = false;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%u.err", run->election.directory, candidate->number);
    file = fopen(path, "r");
    while (file && !is_found && fgets(line, sizeof line, file))
        is_found = strstr(line, what) != NULL;
    if (file)
        (void)fclose(file); /* only read from */
    return is_found;
}

/* Who has ended is started again, and should have been killed by us. */
static void refill(struct run *run)
{
    election_look(&run->election);
    for (size_t i = 0; i < run->election.count; i++) {
        struct candidate *candidate = &run->election.candidates[i];

        if (candidate->pid)
            continue;
        if (candidate->lives > 0 && (candidate != run->excused || candidate->lives != run->excused_life)) {
            printf("# member %u has ended with %d by itself\n", candidate->number, candidate->exit_code);
            if (candidate->exit_code == 1 && has_said(run, candidate, "gavel run: the guard died"))
                run->guards_lost++; /* the kernel ends one that could not run at the deadline */
            else
                run->has_ended = true;
        }
        if (!run->has_ended && candidate->lives < run->total + SITE_LINKS)
            election_start(&run->election, candidate);
    }
}

/* What a command of gavel prints; empty if it fails. */
static void ask(struct run *run, const char *command, char *text, size_t size)
{
    size_t length = 0;
    ssize_t count;
    int fds[2];
    pid_t pid;

    if (pipe(fds) < 0 || (pid = fork()) < 0) {
        perror("outage");
        exit(1);
    }
    if (pid == 0) {
        if (dup2(fds[1], STDOUT_FILENO) < 0 || close(fds[0]) < 0 || close(fds[1]) < 0)
            _exit(126);
        (void)freopen("/dev/null", "w", stderr); /* a server that is away is no news here */
        execl(run->election.gavel, run->election.gavel, command, "--store", run->election.store, "--json",
              "--candidate-timeout", "8s", (char *)NULL);
        _exit(127);
    }
    (void)close(fds[1]);
    while (length < size - 1 && (count = read(fds[0], text + length, size - 1 - length)) > 0)
        length += (size_t)count;
    text[length] = '\0';
    (void)close(fds[0]);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Whether all that run are registered. */
static bool all_present(struct run *run)
{
    char text[8192], id[48];

    ask(run, "candidates", text, sizeof text);
    for (size_t i = 0; i < run->election.count; i++) {
        (void)snprintf(id, sizeof id, "\"%s\"", run->election.candidates[i].id);
        if (!strstr(text, id))
            return false;
    }
    return true;
}

/* Between two looks at what is waited for. */
static void pause_a_moment(struct run *run)
{
    election_pause();
    if (clock_now() < run->looked_at + 200 * NS_PER_MS)
        return;
    run->looked_at = clock_now();
    run->revived += site_revive(&run->site);
}

/* Waits until somebody works and all take part. */
static bool settle(struct run *run, struct leader *ret_leader)
{
    bool is_complete = false;

    for (gavel_ns until = clock_now() + PATIENCE; clock_now() < until && !run->has_ended;
         pause_a_moment(run)) {
        refill(run);
        is_complete = is_complete || all_present(run);
        if (is_complete && election_find_leader(&run->election, ret_leader))
            return true;
    }
    printf("# nobody leads, or not all have come back\n");
    return false;
}

static void last_for(gavel_ns least, gavel_ns most, struct prng *prng)
{
    gavel_ns at = clock_now() + (most > least ? prng_between(prng, least, most) : least);
    struct timespec until = {.tv_sec = at / NS_PER_S, .tv_nsec = at % NS_PER_S};

    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, NULL) != 0)
        ;
}

static bool await_next(struct run *run, uint64_t epoch)
{
    for (gavel_ns until = clock_now() + PATIENCE; clock_now() < until; pause_a_moment(run)) {
        election_look(&run->election);
        if (beat_referee_newest(&run->election.referee)->epoch > epoch)
            return true;
    }
    printf("# nobody else took over\n");
    return false;
}

static bool await_beat(struct run *run, gavel_ns since)
{
    for (gavel_ns until = clock_now() + PATIENCE; clock_now() < until; pause_a_moment(run)) {
        election_look(&run->election);
        if (run->election.latest.at > since)
            return true;
    }
    printf("# nobody works again\n");
    return false;
}

static bool play(struct run *run, const struct outage *outage, struct leader *leader)
{
    struct scene scene = {&run->site, &run->election, leader, &run->prng};
    gavel_ns began_at, mended_at;
    bool is_well;

    last_for(0, 200 * NS_PER_MS, &run->prng); /* at any instant between two renewals */
    began_at = clock_now();
    is_well = outage->begin(&scene);
    if (is_well && outage->outcome == OUTAGE_NEXT)
        is_well = await_next(run, leader->epoch);
    last_for(outage->least, outage->most, &run->prng);
    if (outage->end)
        outage->end(&scene);
    mended_at = clock_now();
    is_well = is_well && await_beat(run, mended_at);
    election_look(&run->election);
    printf("# %-28s epoch %" PRIu64 " to %" PRIu64 ", mended after %" PRId64 " ms, work after %" PRId64
           " ms\n",
           outage->name, leader->epoch, beat_referee_newest(&run->election.referee)->epoch,
           (mended_at - began_at) / NS_PER_MS, (run->election.latest.at - began_at) / NS_PER_MS);
    (void)fflush(stdout);
    if (is_well && outage->outcome == OUTAGE_SAME &&
        beat_referee_newest(&run->election.referee)->epoch != leader->epoch)
        printf("# another leads, and should not\n");
    return is_well && (outage->outcome != OUTAGE_SAME ||
                       beat_referee_newest(&run->election.referee)->epoch == leader->epoch);
}

static bool is_for_tame(size_t kind) { return outages[kind].is_for_tame; }

/* The last ones may all be for tame leaders: then a wild one is asked to hand over. */
static bool find_leader(struct run *run, size_t i, struct leader *ret_leader)
{
    for (int tries = 0; tries < 20; tries++) {
        if (!settle(run, ret_leader))
            return false;
        if (leader_choose_fault(ret_leader, run->deck + i, run->total - i, is_for_tame))
            return true;
        (void)election_handover(&run->election); /* if it does not work, it is tried again */
        leader_done(ret_leader);
    }
    printf("# it is always the same that leads\n");
    return false;
}

static bool play_all(struct run *run)
{
    struct leader leader;
    bool is_well = true;
    size_t i;

    for (i = 0; i < run->total && is_well; i++) {
        const struct outage *outage;

        if (!find_leader(run, i, &leader))
            return false;
        outage = &outages[run->deck[i]];
        run->excused = outage->ends_leader ? leader.candidate : NULL;
        run->excused_life = leader.candidate->lives;
        is_well = play(run, outage, &leader);
        if (beat_referee_found(&run->election.referee) > 0)
            is_well = false;
        if (!is_well)
            printf("# outage %zu, \"%s\" on member %u in epoch %" PRIu64 ", was not survived\n", i + 1,
                   outage->name, leader.candidate->number, leader.epoch);
        leader_done(&leader);
    }
    if (!is_well || !settle(run, &leader)) /* also after the last one */
        return false;
    leader_done(&leader);
    return true;
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
        if (letter == 'n')
            run->total = strtoul(optarg, NULL, 10);
        else if (letter == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (letter == 'o')
            run->only = optarg;
        else if (letter == 'k')
            run->keep = true;
        else
            exit(2);
    }
    run->kind = TEST_ETCD_CLUSTER; /* none of ours */
    for (size_t i = 0; optind + 4 == argc && i < sizeof stores / sizeof *stores; i++)
        if (strcmp(stores[i].name, argv[optind + 3]) == 0)
            run->kind = stores[i].kind;
    if (run->kind == TEST_ETCD_CLUSTER || run->total > FAULTS_MAX) {
        fprintf(stderr,
                "outage: say which gavel, beat and clock_shift, and mysql, etcd or s3; at most %d faults\n",
                FAULTS_MAX);
        exit(2);
    }
    if (seed == 0)
        seed = entropy_u64() % 1000000000;
    printf("# %s, seed %" PRIu64 "\n", argv[optind + 3], seed);
    (void)fflush(stdout);
    prng_seed(&run->prng, seed);
}

/* A mistake that only the sanitizers of a debug build see; it ends a process like a lost guard. */
static bool is_sane(const struct run *run)
{
    bool is_good = true;

    for (size_t i = 0; i < run->election.count; i++)
        is_good = is_good && !has_said(run, &run->election.candidates[i], "Sanitizer: ") &&
                  !has_said(run, &run->election.candidates[i], "runtime error: ");
    return is_good;
}

static bool say(int number, bool is_well, const char *what)
{
    printf("%sok %d - %s\n", is_well ? "" : "not ", number, what);
    return is_well;
}

static void open_all(struct run *run, char *const *programs)
{
    election_open(&run->election, programs[0], programs[1]);
    site_open(&run->site, run->kind, run->election.directory, programs[2]);
    (void)snprintf(run->election.store, sizeof run->election.store, "%s", run->site.url);
    run->election.times = times;
    run->election.clock_shift = programs[2];
    for (size_t i = 0; i < SITE_LINKS; i++) {
        struct candidate *candidate = election_add(&run->election, i == 1);

        candidate->store = run->site.urls[i];
        candidate->clock = run->site.clocks[i];
    }
    if (shuffle(run) == 0) {
        fprintf(stderr, "outage: there is no outage \"%s\"\n", run->only);
        site_close(&run->site);
        election_close(&run->election, false);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static struct run run;
    bool is_survived, is_all_well = true;
    size_t left;

    parse(argc, argv, &run);
    open_all(&run, argv + optind);
    is_survived = play_all(&run);
    election_dismiss(&run.election);
    site_close(&run.site); /* its owner of servers is a child, too */
    left = election_sweep();
    election_look(&run.election);

    printf("1..5\n");
    beat_referee_print(&run.election.referee, stdout);
    is_all_well &= say(1, beat_referee_found(&run.election.referee) == 0,
                       "no_two_epochs_interleave_and_epochs_only_grow");
    is_all_well &=
        say(2, is_survived && run.revived <= 1 + run.total / 40, "after_each_outage_the_work_goes_on");
    is_all_well &=
        say(3, !run.has_ended && run.guards_lost <= 1 + run.total / 20, "nobody_has_to_be_started_again");
    is_all_well &=
        say(4, left == 0 && beat_log_is_abandoned(&run.election.reader), "nothing_is_left_running");
    is_all_well &= say(5, is_sane(&run), "no_sanitizer_has_found_anything");
    if (!is_all_well)
        election_print_logs(&run.election);
    if (run.keep)
        printf("# kept in %s\n", run.election.directory);
    election_close(&run.election, run.keep);
    return is_all_well ? 0 : 1;
}
