/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A ring of the newest samples, sorted on demand. Every call to a store adds a
 * sample, which costs one memory write; asking is rare.
 */
#include "base/histogram.h"

#include <stdlib.h>
#include <string.h>

void histogram_init(struct histogram *histogram, size_t window)
{
    if (window == 0)
        window = HISTOGRAM_WINDOW_DEFAULT;
    if (window > HISTOGRAM_WINDOW_MAX)
        window = HISTOGRAM_WINDOW_MAX;
    memset(histogram, 0, sizeof *histogram);
    histogram->window = window;
}

void histogram_add(struct histogram *histogram, int64_t sample)
{
    histogram->samples[histogram->next] = sample;
    histogram->next = (histogram->next + 1) % histogram->window;
    if (histogram->filled < histogram->window)
        histogram->filled++;
    histogram->total++;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

int64_t histogram_percentile(const struct histogram *histogram, double percent)
{
    int64_t sorted[HISTOGRAM_WINDOW_MAX];

    if (histogram->filled == 0)
        return 0;
    memcpy(sorted, histogram->samples, histogram->filled * sizeof *sorted);
    qsort(sorted, histogram->filled, sizeof *sorted, compare);
    return percentile_of_sorted(sorted, histogram->filled, percent);
}

int64_t percentile_of_sorted(const int64_t *sorted, size_t n, double percent)
{
    double exact;
    size_t rank;

    if (n == 0)
        return 0;
    if (!(percent > 0)) /* also not a number */
        return sorted[0];
    if (percent >= 100)
        return sorted[n - 1];
    /*
     * Nearest rank: the smallest whole number not below percent/100 * n. The
     * small slack keeps 0.95 * 100 at 95 although it is not exact in binary.
     */
    exact = percent * (double)n / 100;
    rank = (size_t)exact;
    if (exact - (double)rank > 1e-9)
        rank++;
    if (rank < 1)
        rank = 1;
    if (rank > n)
        rank = n;
    return sorted[rank - 1];
}
