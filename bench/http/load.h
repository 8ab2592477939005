/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What measurements of look-ups share: a process that makes the load, another
 * that serves a bare TCP echo, and their results.
 *
 * The load runs on one CPU and at lower priority (nice(2)), since a client on
 * another machine would use no CPU here; the echo runs at normal priority, like
 * a node.
 */
#ifndef BENCH_HTTP_LOAD_H
#define BENCH_HTTP_LOAD_H

#include "bench/cluster/cluster.h"
#include "bench/http/http_load.h"

#define LOAD_NICE 5

struct load_tally {
    struct samples latency;
    uint64_t answers;
    uint64_t failures;
    gavel_ns elapsed;
};

struct load_rig {
    struct cluster *cluster;
    struct load_result *result;
    struct load_plan plan; /* of the next load */
    int listener;
    uint16_t echo_port;
};

/* Starts the echo. ERR_NO_MEMORY, ERR_IO; close it also after a failure. */
GAVEL_CHECKED enum gavel_status load_rig_open(struct load_rig *rig, struct cluster *cluster);
void load_rig_close(struct load_rig *rig);

/* Makes the planned load and adds its results. */
GAVEL_CHECKED enum gavel_status load_rig_run(struct load_rig *rig, struct load_tally *tally);

double load_per_second(const struct load_tally *tally);

/* Two rows: how many answers, and how long they took. */
void load_tell(struct load_rig *rig, const char *what, const char *how, struct load_tally *tally);

#endif
