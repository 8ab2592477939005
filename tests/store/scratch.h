/* SPDX-License-Identifier: Apache-2.0 */

/* A temporary directory for one test, and ways to look at a SQLite file from outside. */
#ifndef TESTS_STORE_SCRATCH_H
#define TESTS_STORE_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

struct scratch {
    char directory[256];
    char file[300]; /* gavel.db in it; not there yet */
};

/* For cmocka: *state is a struct scratch. */
int scratch_set_up(void **state);
int scratch_tear_down(void **state);

void scratch_make(struct scratch *scratch);
void scratch_remove(const char *directory);

/* Runs SQL on a file by a connection of its own. */
void scratch_sql(const char *file, const char *sql);

/* The number that a query gives. */
int64_t scratch_number(const char *file, const char *sql);

#endif
