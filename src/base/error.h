/* SPDX-License-Identifier: Apache-2.0 */

/* Filling in a struct gavel_error. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <gavel/status.h>

/* Writes status and message unless error is NULL. Returns status, so that a caller can fail in one line. */
GAVEL_CHECKED enum gavel_status error_set(struct gavel_error *error, enum gavel_status status,
                                          const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The analyser sees one file at a time; this tells it that error_set() returns the status it was given. */
#ifdef __clang_analyzer__
#define error_set(error, status, ...) ((void)(error_set)((error), (status), __VA_ARGS__), (status))
#endif

#endif
