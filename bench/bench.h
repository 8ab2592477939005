/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the measurements of `gavel bench` share. Each section is one file with
 * one function: it starts a rig, lets its members write times into the
 * shared_log, and passes rows to the report. Where a floor makes sense (what
 * the disk or the kernel alone would need), the measurement includes it, on the
 * same machine in the same minute.
 *
 * Figures never cause a failure: a row says whether its aim was met, and the
 * exit code only whether everything could be measured.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "bench/props/rig.h"
#include "bench/report.h"
#include "cli/cli.h"

struct bench {
    const struct cli *cli;
    bool is_quick;
    size_t trials;       /* of hand-over and fail-over */
    size_t groups;       /* of one process that leads many on a cluster, at most */
    const char *out;     /* directory for CSV and plots; NULL: none */
    const char *servers; /* file of servers (bench_servers.h); NULL: none */
    const char *gaveld;  /* the program of the nodes; NULL: the one of this gavel */
    struct report report;
};

/* How often a wait that signals do not interrupt checks whether to end. */
#define BENCH_LOOK_NS (50 * NS_PER_MS)

typedef enum gavel_status (*bench_run)(struct bench *bench, struct rig *rig);

enum gavel_status bench_calls(struct bench *bench, struct rig *rig);
enum gavel_status bench_store(struct bench *bench, struct rig *rig);
enum gavel_status bench_handover(struct bench *bench, struct rig *rig);
enum gavel_status bench_failover(struct bench *bench, struct rig *rig);
enum gavel_status bench_runs(struct bench *bench, struct rig *rig);
enum gavel_status bench_groups(struct bench *bench, struct rig *rig);
enum gavel_status bench_simulator(struct bench *bench, struct rig *rig);
enum gavel_status bench_cluster_kill(struct bench *bench, struct rig *rig);
enum gavel_status bench_cluster_kill_all(struct bench *bench, struct rig *rig);
enum gavel_status bench_cluster_freeze(struct bench *bench, struct rig *rig);
enum gavel_status bench_cluster_transfer(struct bench *bench, struct rig *rig);
enum gavel_status bench_cluster_cold(struct bench *bench, struct rig *rig);
enum gavel_status bench_cluster_lookups(struct bench *bench, struct rig *rig);
enum gavel_status bench_cluster_idle(struct bench *bench, struct rig *rig);
enum gavel_status bench_sessions_kill(struct bench *bench, struct rig *rig);
enum gavel_status bench_sessions_freeze(struct bench *bench, struct rig *rig);
enum gavel_status bench_sessions_resign(struct bench *bench, struct rig *rig);
enum gavel_status bench_sessions_standbys(struct bench *bench, struct rig *rig);
enum gavel_status bench_sessions_node(struct bench *bench, struct rig *rig);
enum gavel_status bench_sessions_host(struct bench *bench, struct rig *rig);
enum gavel_status bench_sessions_leader(struct bench *bench, struct rig *rig);
enum gavel_status bench_sessions_groups(struct bench *bench, struct rig *rig);
enum gavel_status bench_sessions_library(struct bench *bench, struct rig *rig);
enum gavel_status bench_sessions_many(struct bench *bench, struct rig *rig);
enum gavel_status bench_sessions_lookups(struct bench *bench, struct rig *rig);
enum gavel_status bench_sessions_writes(struct bench *bench, struct rig *rig);
enum gavel_status bench_sessions_http(struct bench *bench, struct rig *rig);
enum gavel_status bench_stores_kill(struct bench *bench, struct rig *rig);
enum gavel_status bench_stores_freeze(struct bench *bench, struct rig *rig);
enum gavel_status bench_stores_load(struct bench *bench, struct rig *rig);

/*
 * Waits for the end of a member that takes no orders, and kills it if a signal
 * asks to end, since its results are not wanted then: ERR_STOPPED. Otherwise
 * like rig_await().
 */
GAVEL_CHECKED enum gavel_status bench_await(struct rig *rig, uint32_t member, gavel_ns until);

/*
 * Runs one member to its end and sorts the MARK_RESULT marks it leaves into
 * `series` by their epoch, which counts the series from 0. A result with a
 * higher number is a programming error. ERR_STOPPED if a signal asks to end.
 */
GAVEL_CHECKED enum gavel_status bench_collect(struct rig *rig, member_run run, void *user, gavel_ns limit,
                                              struct samples *series, size_t series_count);

/* The member's word: one sample of a series. */
void bench_result(const struct member_context *context, uint64_t series, int64_t value);

/* Lets a random part of `longest` pass, so that trials do not fall in step with heartbeats. */
void bench_pause(const struct rig *rig, gavel_ns longest);

/*
 * How long the disk takes for 4 KiB at this moment, as one sample. Every
 * durable claim pays that once, and it varies by a factor of tens with the load
 * of the machine, so latencies that contain it are shown beside it.
 */
void bench_sync(const struct rig *rig, struct samples *samples);

/* The command, for its program. */
extern const struct flag bench_flags[];
int command_bench(const struct cli *cli, int argc, char **argv);

#endif
