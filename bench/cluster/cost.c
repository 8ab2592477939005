/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What processes cost: the CPU time of all their threads, by the kernel's clock
 * of the process, which counts nanoseconds where /proc/<pid>/stat has ticks of
 * 10 ms, and their memory.
 */
#include "bench/cluster/cluster.h"

#include "os/clock.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

/* 0 if it is gone. */
static gavel_ns cpu_time(pid_t pid)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) < 0)
        return 0;
    return used.tv_sec * NS_PER_S + used.tv_nsec;
}

/* A line "Name:   123 kB" of a file in /proc/<pid>; 0 if there is none. */
static int64_t kib_of(pid_t pid, const char *name, const char *field)
{
    char path[64], line[256];
    int64_t kib = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    while (!kib && fgets(line, sizeof line, file))
        if (strncmp(line, field, strlen(field)) == 0)
            (void)sscanf(line + strlen(field), ": %" SCNd64, &kib); /* stays 0 if it is none */
    (void)fclose(file);                                             /* only read from */
    return kib;
}

struct bench_process_cost bench_process_cost_of(pid_t pid)
{
    return (struct bench_process_cost){
        .cpu = cpu_time(pid),
        .rss_kib = kib_of(pid, "status", "VmRSS"),
        .pss_kib = kib_of(pid, "smaps_rollup", "Pss"),
    };
}

struct bench_cluster_cost bench_cluster_cost_of(const struct bench_cluster_status *said)
{
    struct bench_process_cost node = bench_process_cost_of(said->pid);
    struct bench_process_cost guard = bench_process_cost_of(said->guard_pid);

    return (struct bench_cluster_cost){
        .cpu = node.cpu + guard.cpu,
        .rss_kib = node.rss_kib + guard.rss_kib,
        .node_rss_kib = node.rss_kib,
        .pss_kib = node.pss_kib + guard.pss_kib,
    };
}
