/* SPDX-License-Identifier: Apache-2.0 */

/* Plots of the CSV files of a bench. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

/*
 * Writes the script plot.gp beside the CSV files and runs gnuplot on it;
 * without gnuplot it says so on stderr and leaves the script.
 */
void bench_plot(const char *directory);

#endif
