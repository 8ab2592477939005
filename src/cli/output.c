/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/output.h"

#include "base/assert.h"
#include "cli/duration.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const escapes[] = {
    [STYLE_PLAIN] = "",         [STYLE_BOLD] = "\033[1m",    [STYLE_DIM] = "\033[2m",
    [STYLE_GREEN] = "\033[32m", [STYLE_YELLOW] = "\033[33m", [STYLE_RED] = "\033[31m",
    [STYLE_CYAN] = "\033[36m",
};

const char *style_begin(const struct cli *cli, enum style style) { return cli->color ? escapes[style] : ""; }

const char *style_end(const struct cli *cli, enum style style)
{
    return cli->color && style != STYLE_PLAIN ? "\033[0m" : "";
}

size_t text_columns(const char *text)
{
    size_t columns = 0;

    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80; /* continuation bytes take no room */
    return columns;
}

static void append(struct table *table, enum style style, char *text)
{
    if (!text)
        abort(); /* out of memory while printing a table: nothing sensible is left to do */
    if (table->used == table->capacity) {
        table->capacity = table->capacity ? 2 * table->capacity : 64;
        table->cells = realloc(table->cells, table->capacity * sizeof(table->cells[0]));
        if (!table->cells)
            abort();
    }
    table->cells[table->used++] = (struct table_cell){.text = text, .style = style};
}

void table_init(struct table *table, const char *const *headings)
{
    *table = (struct table){0};
    for (; headings[table->columns]; table->columns++) {
        ASSERT(table->columns < TABLE_COLUMNS_MAX);
        append(table, STYLE_BOLD, strdup(headings[table->columns]));
    }
}

void table_done(struct table *table)
{
    for (size_t i = 0; i < table->used; i++)
        free(table->cells[i].text);
    free(table->cells);
    *table = (struct table){0};
}

void table_cell(struct table *table, enum style style, const char *format, ...)
{
    char *text = NULL;
    va_list list;

    va_start(list, format);
    if (vasprintf(&text, format, list) < 0)
        text = NULL;
    va_end(list);
    append(table, style, text);
}

void table_print(const struct table *table, const struct cli *cli, FILE *file)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};

    for (size_t i = 0; i < table->used; i++) {
        size_t width = text_columns(table->cells[i].text), *widest = &widths[i % table->columns];

        if (width > *widest)
            *widest = width;
    }
    for (size_t i = 0; i < table->used; i++) {
        const struct table_cell *cell = &table->cells[i];
        bool is_last = (i + 1) % table->columns == 0;
        int padding = (int)(widths[i % table->columns] - text_columns(cell->text)) + 2;

        fprintf(file, "%s%s%s%*s", style_begin(cli, cell->style), cell->text, style_end(cli, cell->style),
                is_last ? 0 : padding, "");
        if (is_last)
            fputc('\n', file);
    }
}

const char *ago(int64_t then_wall_ms, int64_t now_wall_ms, char buffer[static AGO_TEXT_MAX])
{
    char text[DURATION_TEXT_MAX];

    if (then_wall_ms == 0)
        return strcpy(buffer, "-");
    if (then_wall_ms >= now_wall_ms) /* the clock of another process, or one that was set back */
        return strcpy(buffer, "now");
    snprintf(buffer, AGO_TEXT_MAX, "%s ago", duration_rough(now_wall_ms - then_wall_ms, text));
    return buffer;
}
