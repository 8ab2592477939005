/* SPDX-License-Identifier: Apache-2.0 */

/* The load and the echo, each a member of the rig. */
#include "bench/http/load.h"

#include "os/clock.h"

#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define EXTRA_LIMIT_NS (10 * NS_PER_S)

/* Members of the rig, out of the way of others. */
enum { MAKER = RIG_MAX - 2, ECHO };

static int run_echo(const struct member_context *context, void *user)
{
    const struct load_rig *load = user;

    return load_echo_run(load->listener, context->control) != GAVEL_OK ? 1 : 0;
}

/* Failures of these calls make the figures worse, not wrong. */
static void stand_back(void)
{
    cpu_set_t cpus, last;

    (void)setpriority(PRIO_PROCESS, 0, LOAD_NICE);
    if (sched_getaffinity(0, sizeof cpus, &cpus) < 0)
        return;
    for (int i = CPU_SETSIZE - 1; i >= 0; i--)
        if (CPU_ISSET(i, &cpus)) {
            CPU_ZERO(&last);
            CPU_SET(i, &last);
            (void)sched_setaffinity(0, sizeof last, &last);
            return;
        }
}

static int run_load(const struct member_context *context, void *user)
{
    const struct load_rig *load = user;

    (void)context;
    stand_back();
    return load_run(&load->plan, load->result) != GAVEL_OK ? 1 : 0;
}

enum gavel_status load_rig_run(struct load_rig *load, struct load_tally *tally)
{
    struct rig *rig = load->cluster->rig;
    const struct load_result *result = load->result;
    enum gavel_status status = rig_start(rig, MAKER, "load", run_load, load, NULL);

    if (status == GAVEL_OK)
        status = bench_await(rig, MAKER, clock_now() + load->plan.duration + EXTRA_LIMIT_NS);
    if (status != GAVEL_OK)
        return status;
    for (size_t i = 0; i < result->count; i++)
        samples_add(&tally->latency, result->latencies[i]);
    tally->answers += result->answers;
    tally->failures += result->failures + result->unanswered;
    tally->elapsed += result->elapsed;
    return GAVEL_OK;
}

double load_per_second(const struct load_tally *tally)
{
    return tally->elapsed ? (double)tally->answers * NS_PER_S / (double)tally->elapsed : 0;
}

void load_tell(struct load_rig *load, const char *what, const char *how, struct load_tally *tally)
{
    struct report *report = &load->cluster->bench->report;
    const struct aim none = {0};
    char name[96];

    (void)snprintf(name, sizeof name, "%s, %s: answers", what, how);
    report_value(report, name, load_per_second(tally), "per s", none);
    (void)snprintf(name, sizeof name, "%s, %s: latency", what, how);
    report_samples(report, name, &tally->latency, NS_PER_US, "µs", none);
    if (tally->failures)
        report_note(report, "%s, %s: %llu were not answered well", what, how,
                    (unsigned long long)tally->failures);
}

enum gavel_status load_rig_open(struct load_rig *load, struct cluster *cluster)
{
    *load = (struct load_rig){.cluster = cluster, .result = load_result_new()};
    load->listener = load_echo_listen(&load->echo_port);
    if (!load->result)
        return GAVEL_ERR_NO_MEMORY;
    if (load->listener < 0)
        return GAVEL_ERR_IO;
    return rig_start(cluster->rig, ECHO, "echo", run_echo, load, NULL);
}

void load_rig_close(struct load_rig *load)
{
    if (load->listener >= 0)
        (void)close(load->listener); /* the echo has its own */
    load_result_free(load->result);
}
