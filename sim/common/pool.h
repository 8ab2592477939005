/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Many seeds, distributed over several processes. If a process dies, only the
 * seed it worked on has failed.
 */
#ifndef SIM_COMMON_POOL_H
#define SIM_COMMON_POOL_H

#include <stdbool.h>
#include <stdint.h>

#define POOL_JOBS_MAX 64
#define POOL_COUNTS 48

/* What the seeds of one kind of world are. `memory` belongs to one process and is used for many runs. */
struct pool_work {
    void *(*begin)(const void *context);
    /* True: the seed failed, and this has named it. Adds what it found to counts. */
    bool (*run)(void *memory, const void *context, uint64_t seed, uint64_t counts[POOL_COUNTS]);
    void (*end)(const void *context, void *memory);
    const void *context;
    /* One line while the seeds run, about every second; NULL: none is wanted. */
    void (*progress)(const struct pool_work *work, uint64_t done, uint64_t failed,
                     const uint64_t counts[POOL_COUNTS], double seconds);
};

struct pool_result {
    uint64_t done;
    uint64_t failed;
    uint64_t lowest_failed; /* seed; UINT64_MAX if none failed, except by the death of a process */
    uint64_t counts[POOL_COUNTS];
    double seconds;
    bool is_interrupted;
};

/* An endless count: until Ctrl-C. */
#define POOL_ENDLESS UINT64_MAX

/* Runs the seeds from `first` on. With a progress line SIGINT and SIGTERM end the whole after the seeds under
 * way. */
void pool_run(const struct pool_work *work, uint64_t first, uint64_t count, unsigned jobs,
              struct pool_result *ret_result);

/* The machine's clock, to measure how long something took. */
double pool_seconds_now(void);

#endif
