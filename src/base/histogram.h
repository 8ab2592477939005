/* SPDX-License-Identifier: Apache-2.0 */

/* Percentiles over the newest samples. */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_WINDOW_DEFAULT 100
#define HISTOGRAM_WINDOW_MAX 1000

struct histogram {
    size_t window;  /* samples to keep */
    size_t filled;  /* samples kept so far, at most window */
    size_t next;    /* where the next one goes */
    uint64_t total; /* samples ever seen */
    int64_t samples[HISTOGRAM_WINDOW_MAX];
};

/* window 0 means the default; one above the maximum is reduced to it. */
void histogram_init(struct histogram *histogram, size_t window);
void histogram_add(struct histogram *histogram, int64_t sample);

/* The smallest kept sample that at least `percent` (0 to 100) of them do not exceed; 0 if there is none. */
int64_t histogram_percentile(const struct histogram *histogram, double percent);

/* The nearest-rank percentile of any sorted array; 0 if it is empty. */
int64_t percentile_of_sorted(const int64_t *sorted, size_t n, double percent);

#endif
