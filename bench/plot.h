/* SPDX-License-Identifier: Apache-2.0 */

/* Pictures of what a bench has written as CSV. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

/*
 * Writes the script plot.gp beside the CSV files and runs gnuplot on it;
 * where there is no gnuplot it says so on stderr, and the script waits.
 */
void bench_plot(const char *folder);

#endif
