/* SPDX-License-Identifier: Apache-2.0 */

/* Printing for people: colours, aligned tables and times as "3.2 s ago". */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "cli/cli.h"

#include <stddef.h>
#include <stdio.h>

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_GREEN, STYLE_YELLOW, STYLE_RED, STYLE_CYAN };

/* The escape sequences, "" where cli->color is false. */
const char *style_begin(const struct cli *cli, enum style style);
const char *style_end(const struct cli *cli, enum style style);

/* How wide a line may be: the width of the file's terminal, 80 if it is not one. */
size_t output_columns(FILE *file);

/*
 * Prints words from column `at` on, where the cursor is, to at most `width`
 * columns; further lines begin at `indent`. Ends with a newline. A word that
 * is wider than there is room for is not cut; line breaks in the text stay.
 */
void print_wrapped(FILE *file, size_t width, size_t at, size_t indent, const char *text);

/* A line "name        words". */
void print_field(const struct cli *cli, const char *name, enum style style, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* How many columns a UTF-8 text takes on a terminal, taking each character as one. */
size_t text_columns(const char *text);

#define TABLE_COLUMNS_MAX 12

/* A table whose columns are as wide as their widest cell. Cells are copied. */
struct table {
    size_t columns;
    size_t used; /* cells */
    size_t capacity;
    size_t room; /* how wide it may be; 0: as wide as the file */
    struct table_cell {
        char *text;
        enum style style;
    } * cells; /* row by row */
};

/* The headings are the first row, in bold; they end with NULL. */
void table_init(struct table *table, const char *const *headings);
void table_done(struct table *table);
void table_cell(struct table *table, enum style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/*
 * On a terminal that is too narrow the last columns are left out, but never
 * the first two. Into a file or a pipe everything is printed, unless `room` is set.
 */
void table_print(const struct table *table, const struct cli *cli, FILE *file);

#define AGO_TEXT_MAX 48

/* "3.2 s ago", "now", or "-" for 0; wall clocks are for people only. Returns buffer. */
const char *ago(int64_t then_wall_ms, int64_t now_wall_ms, char buffer[static AGO_TEXT_MAX]);

#endif
