/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Single values as people write them, in a file, a variable or a flag. Each
 * returns ERR_INVALID for a text that does not fit; *error does not say where
 * the text comes from, which the caller knows.
 */
#ifndef CONFIG_WORDS_H
#define CONFIG_WORDS_H

#include "core/supervisor/supervisor.h"

#include <gavel/status.h>

#include <stdbool.h>

/* true, yes, on, 1 and their opposites. */
GAVEL_CHECKED enum gavel_status word_read_bool(const char *text, bool *ret_value, struct gavel_error *error);
GAVEL_CHECKED enum gavel_status word_read_int(const char *text, int *ret_value, struct gavel_error *error);
GAVEL_CHECKED enum gavel_status word_read_real(const char *text, double *ret_value,
                                               struct gavel_error *error);

/* A word of a list that ends with NULL; the value is its position. */
GAVEL_CHECKED enum gavel_status word_read(const char *const *words, const char *choices, const char *text,
                                          int *ret_value, struct gavel_error *error);

/* "TERM", "SIGTERM" or "15"; one that a process can catch. */
GAVEL_CHECKED enum gavel_status signal_parse(const char *text, int *ret_signal, struct gavel_error *error);

/* "stop", "resign", "restart". */
GAVEL_CHECKED enum gavel_status on_exit_parse(const char *text, enum on_exit *ret_on_exit,
                                              struct gavel_error *error);
const char *on_exit_name(enum on_exit on_exit);

#endif
