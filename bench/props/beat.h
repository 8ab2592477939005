/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command that `gavel demo` and `gavel bench` let `gavel run` run, a program
 * that loads nothing else, so that it begins at once:
 *
 *     gavel-beat SHARED_LOG MEMBER EVERY
 *
 * It maps the shared log (a descriptor that it inherits), looks whether the one
 * before it is gone, writes down that it begins, and then beats every so many
 * microseconds; 0: never again. SIGTERM ends it in order.
 */
#ifndef BENCH_PROPS_BEAT_H
#define BENCH_PROPS_BEAT_H

/* The whole life of the process. */
int beat_main(int argc, char **argv);

#endif
