/* SPDX-License-Identifier: Apache-2.0 */

/* Measured values and their percentiles, for `gavel store ping` and the benchmark. */
#ifndef CLI_SAMPLES_H
#define CLI_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

/* Measured values of one kind. */
struct samples {
    int64_t *values;
    size_t count;
    size_t capacity;
};

/* Out of memory drops the sample; the count in the table shows it. */
void samples_add(struct samples *samples, int64_t value);
void samples_done(struct samples *samples);

/* Sorts them first. 0 if there are none. */
int64_t samples_percentile(struct samples *samples, double percent);

#endif
