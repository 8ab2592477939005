/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command that `gavel run` runs in `gavel demo` and `gavel bench`: a
 * program that loads nothing else, so that it starts at once:
 *
 *     gavel-beat SHARED_LOG MEMBER EVERY
 *
 * It maps the shared log (a descriptor that it inherits), checks whether its
 * predecessor is gone, records that it begins, and then beats every EVERY
 * microseconds; 0: never again. SIGTERM ends it in order.
 */
#ifndef BENCH_PROPS_BEAT_H
#define BENCH_PROPS_BEAT_H

/* The whole life of the process. */
int beat_main(int argc, char **argv);

#endif
