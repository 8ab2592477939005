/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command that `gavel bench` lets `gavel run` run, as a program of its own.
 * `gavel` can do the same (bench/props/beat.h), but loads libraries for all of its
 * stores before it begins, which takes longer than a fail-over.
 */
#include "bench/props/beat.h"

int main(int argc, char **argv) { return beat_main(argc, argv); }
