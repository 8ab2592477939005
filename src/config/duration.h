/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Durations as people write and read them: 500ms, 2s, 1m30s, 1.5h. A number
 * without a unit is refused, unless it is 0.
 */
#ifndef CONFIG_DURATION_H
#define CONFIG_DURATION_H

#include <gavel/settings.h>

#include <stddef.h>

#define DURATION_TEXT_MAX 32

/*
 * Reads a duration. ERR_INVALID for text that is not a duration, a negative
 * one, a fraction of a millisecond, or more than 10,000 days; *error says
 * which.
 */
GAVEL_CHECKED enum gavel_status duration_parse(const char *text, gavel_ms *ret_ms, struct gavel_error *error);

/* The same for a setting whose name ends with _ms: there a number without a unit is in milliseconds. */
GAVEL_CHECKED enum gavel_status duration_parse_ms(const char *text, gavel_ms *ret_ms,
                                                  struct gavel_error *error);

/* The shortest exact text: "0", "250 ms", "2 s", "1 min 30 s". Returns buffer. */
const char *duration_exact(gavel_ms ms, char buffer[static DURATION_TEXT_MAX]);

/* One unit and at most one decimal, for reading: "3.2 s", "12 min", "2 d". Returns buffer. */
const char *duration_rough(gavel_ms ms, char buffer[static DURATION_TEXT_MAX]);

#endif
