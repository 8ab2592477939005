/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/output.h"

#include "base/assert.h"
#include "config/duration.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

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

void print_field(const struct cli *cli, const char *name, enum style style, const char *format, ...)
{
    va_list list;

    printf("%s%-12s%s%s", style_begin(cli, STYLE_DIM), name, style_end(cli, STYLE_DIM),
           style_begin(cli, style));
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf("%s\n", style_end(cli, style));
}

size_t text_columns(const char *text)
{
    size_t columns = 0;

    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80; /* continuation bytes take no room */
    return columns;
}

#define COLUMNS_DEFAULT 80
#define COLUMNS_LEAST 40 /* narrower than this, wrapping would only do harm */

size_t output_columns(FILE *file)
{
    struct winsize size = {0};

    if (!isatty(fileno(file)) || ioctl(fileno(file), TIOCGWINSZ, &size) || !size.ws_col)
        return COLUMNS_DEFAULT;
    return size.ws_col < COLUMNS_LEAST ? COLUMNS_LEAST : size.ws_col;
}

static size_t word_columns(const char *word, size_t length)
{
    size_t columns = 0;

    for (size_t i = 0; i < length; i++)
        columns += ((unsigned char)word[i] & 0xc0) != 0x80;
    return columns;
}

void print_wrapped(FILE *file, size_t width, size_t at, size_t indent, const char *text)
{
    bool is_first = true; /* on its line */

    while (*text) {
        size_t length = strcspn(text, " \n"), columns = word_columns(text, length);

        if (!is_first && at + 1 + columns > width) {
            fprintf(file, "\n%*s", (int)indent, "");
            at = indent;
            is_first = true;
        }
        fprintf(file, "%s%.*s", is_first ? "" : " ", (int)length, text);
        at += columns + !is_first;
        is_first = false;
        text += length;
        if (*text == '\n') {
            fprintf(file, "\n%*s", text[1] ? (int)indent : 0, "");
            at = indent;
            is_first = true;
        }
        text += *text != '\0';
    }
    if (!is_first)
        fputc('\n', file);
}

static void append(struct table *table, enum style style, char *text)
{
    if (!text)
        abort(); /* out of memory while printing a table: nothing sensible is left to do */
    if (table->used == table->capacity) {
        table->capacity = table->capacity ? 2 * table->capacity : 64;
        table->cells = realloc(table->cells, table->capacity * sizeof table->cells[0]);
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

/* How many of the columns fit, counted from the left. */
static size_t columns_that_fit(const struct table *table, const size_t *widths, FILE *file)
{
    size_t room = table->room ? table->room : output_columns(file), used = 0, count = 0;

    if (!table->room && !isatty(fileno(file)))
        return table->columns;
    while (count < table->columns) {
        used += widths[count] + (count ? 2 : 0);
        if (used > room && count >= 2)
            break;
        count++;
    }
    return count;
}

void table_print(const struct table *table, const struct cli *cli, FILE *file)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    size_t shown;

    for (size_t i = 0; i < table->used; i++) {
        size_t width = text_columns(table->cells[i].text), *widest = &widths[i % table->columns];

        if (width > *widest)
            *widest = width;
    }
    shown = columns_that_fit(table, widths, file);
    for (size_t i = 0; i < table->used; i++) {
        const struct table_cell *cell = &table->cells[i];
        size_t column = i % table->columns;
        bool is_last = column + 1 == shown;
        int padding = (int)(widths[column] - text_columns(cell->text)) + 2;

        if (column >= shown)
            continue;
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
