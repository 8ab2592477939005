/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One process that leads a thousand groups at `local` settings: how much of
 * one core it needs to keep them. The process asks the kernel for its own CPU
 * time before and after a while of quiet leading.
 */
#include "bench/bench.h"

#include "os/clock.h"

#include <gavel/gavel.h>

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#define GROUPS 1000
#define GROUPS_QUICK 100
#define WINDOW_NS (12 * NS_PER_S)
#define WINDOW_QUICK_NS (2 * NS_PER_S)
#define ELECTION_LIMIT_NS (120 * NS_PER_S)
#define LIMIT_NS (ELECTION_LIMIT_NS + 60 * NS_PER_S)
#define SHARE_SCALE 1e6 /* samples are millionths of a core, shown in per cent */

enum { SHARE, LEFT, ELECTION, KEPT, SERIES };

struct holder_plan {
    size_t groups;
    gavel_ns window;
};

/* How many groups this process leads; the callbacks count. */
struct count {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t led;
    size_t losses;
};

static void on_elected(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    struct count *count = user;

    (void)candidate;
    (void)epoch;
    (void)pthread_mutex_lock(&count->mutex);
    count->led++;
    (void)pthread_cond_signal(&count->changed);
    (void)pthread_mutex_unlock(&count->mutex);
}

static void on_demoted(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    struct count *count = user;

    (void)candidate;
    (void)reason;
    (void)pthread_mutex_lock(&count->mutex);
    count->led--;
    count->losses++;
    (void)pthread_mutex_unlock(&count->mutex);
}

static enum gavel_status join_all(struct gavel *gavel, size_t groups, struct count *count)
{
    struct gavel_join_options join = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_candidate *candidate;
    enum gavel_status status = GAVEL_OK;

    join.preset = "local";
    join.candidate = "holder";
    join.subscriber =
        (struct gavel_subscriber){.on_elected = on_elected, .on_demoted = on_demoted, .user = count};
    for (size_t i = 0; i < groups && status == GAVEL_OK; i++) {
        char group[32];
        (void)snprintf(group, sizeof group, "group-%04zu", i);
        join.group = group;
        status = gavel_join(gavel, &join, &candidate, NULL);
    }
    return status;
}

static enum gavel_status await_all(struct count *count, size_t groups)
{
    struct timespec until;
    int result = 0;

    (void)clock_gettime(CLOCK_MONOTONIC, &until); /* cannot fail */
    until.tv_sec += ELECTION_LIMIT_NS / NS_PER_S;
    (void)pthread_mutex_lock(&count->mutex);
    while (count->led < groups && !result)
        result = pthread_cond_clockwait(&count->changed, &count->mutex, CLOCK_MONOTONIC, &until);
    (void)pthread_mutex_unlock(&count->mutex);
    return result ? GAVEL_ERR_TIMEOUT : GAVEL_OK;
}

static gavel_ns cpu_time(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage); /* cannot fail with this argument */
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_S +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US;
}

static enum gavel_status keep(const struct member_context *context, struct gavel *gavel,
                              const struct holder_plan *plan)
{
    struct count count = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    gavel_ns began = clock_now();
    enum gavel_status status = join_all(gavel, plan->groups, &count);

    if (status == GAVEL_OK)
        status = await_all(&count, plan->groups);
    if (status == GAVEL_OK) {
        gavel_ns elected = clock_now(), cpu = cpu_time(), until = elected + plan->window;
        while (clock_now() < until && member_listen(context, until) != RIG_QUIT)
            ;
        gavel_ns passed = clock_now() - elected;
        bench_result(context, SHARE, (int64_t)((double)(cpu_time() - cpu) / (double)passed * SHARE_SCALE));
        bench_result(context, ELECTION, elected - began);
        (void)pthread_mutex_lock(&count.mutex);
        bench_result(context, KEPT, (int64_t)count.led);
        bench_result(context, LEFT, (int64_t)count.losses);
        (void)pthread_mutex_unlock(&count.mutex);
    }
    (void)gavel_close(gavel); /* here, while what the callbacks use still lives */
    return status;
}

static int run(const struct member_context *context, void *user)
{
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel *gavel = NULL;

    options.store = context->rig->store;
    enum gavel_status status = gavel_open(&options, &gavel, NULL);
    if (status == GAVEL_OK)
        status = keep(context, gavel, user);
    return status != GAVEL_OK ? 1 : 0;
}

enum gavel_status bench_groups(struct bench *bench, struct rig *rig)
{
    struct holder_plan plan = {.groups = bench->is_quick ? GROUPS_QUICK : GROUPS,
                               .window = bench->is_quick ? WINDOW_QUICK_NS : WINDOW_NS};
    struct samples series[SERIES] = {0};
    char name[64];
    enum gavel_status status = bench_collect(rig, run, &plan, LIMIT_NS, series, SERIES);

    if (status == GAVEL_OK) {
        (void)snprintf(name, sizeof name, "CPU to keep %zu groups", plan.groups);
        report_value(&bench->report, name, (double)samples_percentile(&series[SHARE], 50) / SHARE_SCALE * 100,
                     "% of a core", (struct aim){.p50 = 5});
        (void)snprintf(name, sizeof name, "joining and winning %zu groups", plan.groups);
        report_value(&bench->report, name, (double)samples_percentile(&series[ELECTION], 50) / NS_PER_MS,
                     "ms", (struct aim){0});
        report_note(&bench->report, "%lld of them led at the end of %lld s, %lld mandates lost on the way",
                    (long long)samples_percentile(&series[KEPT], 50), (long long)(plan.window / NS_PER_S),
                    (long long)samples_percentile(&series[LEFT], 50));
    }
    for (size_t i = 0; i < SERIES; i++)
        samples_done(&series[i]);
    return status;
}
