/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/samples.h"

#include "base/histogram.h"

#include <stdlib.h>

void samples_add(struct samples *samples, int64_t value)
{
    if (samples->count == samples->capacity) {
        size_t capacity = samples->capacity ? 2 * samples->capacity : 256;
        int64_t *values = reallocarray(samples->values, capacity, sizeof *values);
        if (!values)
            return;
        samples->values = values;
        samples->capacity = capacity;
    }
    samples->values[samples->count++] = value;
}

void samples_done(struct samples *samples)
{
    free(samples->values);
    *samples = (struct samples){0};
}

static int by_value(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return a < b ? -1 : a > b;
}

static void sort(struct samples *samples)
{
    if (samples->count)
        qsort(samples->values, samples->count, sizeof samples->values[0], by_value);
}

int64_t samples_percentile(struct samples *samples, double percent)
{
    sort(samples);
    return percentile_of_sorted(samples->values, samples->count, percent);
}
