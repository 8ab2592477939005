/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Time types. An instant is in nanoseconds of CLOCK_BOOTTIME on one machine;
 * instants of two machines are never compared. Durations that people set are
 * in milliseconds (gavel_ms).
 */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include <gavel/settings.h>

#include <stdint.h>

/* An instant, or a duration at the precision of instants. */
typedef int64_t gavel_ns;

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

/* An instant that never comes. */
#define NEVER INT64_MAX

static inline gavel_ns ns_from_ms(gavel_ms ms) { return ms * NS_PER_MS; }
static inline gavel_ms ms_from_ns(gavel_ns ns) { return ns / NS_PER_MS; }
static inline gavel_ns ns_min(gavel_ns a, gavel_ns b) { return a < b ? a : b; }
static inline gavel_ns ns_max(gavel_ns a, gavel_ns b) { return a > b ? a : b; }

/* The shortest and longest that `ns` of one clock can last on another whose rate differs by at most ppm. */
static inline gavel_ns ns_shrink(gavel_ns ns, int ppm) { return ns - ns / 1000000 * ppm - 1; }
static inline gavel_ns ns_stretch(gavel_ns ns, int ppm) { return ns + ns / 1000000 * ppm + ppm; }

#endif
