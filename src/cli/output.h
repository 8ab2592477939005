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

/* How many columns a UTF-8 text takes on a terminal, taking each character as one. */
size_t text_columns(const char *text);

#define TABLE_COLUMNS_MAX 12

/* A table whose columns are as wide as their widest cell. Cells are copied. */
struct table {
    size_t columns;
    size_t used; /* cells */
    size_t capacity;
    struct table_cell {
        char *text;
        enum style style;
    } * cells; /* row by row */
};

/* The first row, in bold, ends with NULL. */
void table_init(struct table *table, const char *const *headings);
void table_done(struct table *table);
void table_cell(struct table *table, enum style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void table_print(const struct table *table, const struct cli *cli, FILE *file);

#define AGO_TEXT_MAX 48

/* "3.2 s ago", "now", or "-" for 0; wall clocks are for people only. Returns buffer. */
const char *ago(int64_t then_wall_ms, int64_t now_wall_ms, char buffer[static AGO_TEXT_MAX]);

#endif
