/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The picture at the end of the demo:
 *
 *   ada   ██████·····················
 *   ben   ······██████×·····█████░░░··
 *   cleo  ·············██████·······██
 *         0 s       1 s       2 s
 *
 * A cell shows the middle of its slice of time, so two full cells above each
 * other are two commands at once.
 */
#include "bench/demo/demo.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS 72
#define NAME_WIDTH 6

enum cell { CELL_ABSENT, CELL_STANDBY, CELL_LEADS, CELL_FROZEN, CELL_KILLED };

static bool is_utf8(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    /* The first one that is set decides, as setlocale(3) has it. */
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

static const char *glyph(enum cell cell, bool utf8)
{
    static const char *const glyphs[][2] = {
        [CELL_ABSENT] = {" ", " "}, [CELL_STANDBY] = {".", "·"}, [CELL_LEADS] = {"#", "█"},
        [CELL_FROZEN] = {"z", "░"}, [CELL_KILLED] = {"x", "×"},
    };
    return glyphs[cell][utf8];
}

/* What the marks say of the member's elector at that moment: the last word on it before then. */
static enum cell look_at_elector(const struct demo *demo, uint32_t member, gavel_ns at)
{
    size_t count;
    const struct mark *marks = shared_log_marks(demo->rig.shared_log, &count);
    enum cell cell = CELL_ABSENT;
    gavel_ns newest = 0;

    for (size_t i = 0; i < count; i++) {
        enum mark_kind kind = mark_kind(&marks[i]);
        if (marks[i].member != member || marks[i].at > at || marks[i].at < newest)
            continue;
        if (kind != MARK_JOINED && kind != MARK_FROZEN && kind != MARK_RESUMED)
            continue;
        cell = kind == MARK_FROZEN ? CELL_FROZEN : CELL_STANDBY;
        newest = marks[i].at;
    }
    return cell;
}

static enum cell look(const struct demo *demo, uint32_t member, gavel_ns from, gavel_ns to)
{
    gavel_ns middle = from + (to - from) / 2;

    for (size_t i = 0; i < demo->timeline.count; i++) {
        const struct mandate *mandate = &demo->timeline.mandates[i];
        if (mandate->member != member)
            continue;
        if (mandate->how == MANDATE_DIED && mandate->end >= from && mandate->end < to)
            return CELL_KILLED;
        if (mandate->begin <= middle && middle <= mandate->end)
            return CELL_LEADS;
    }
    return look_at_elector(demo, member, middle);
}

static void print_axis(gavel_ns span, FILE *file)
{
    char axis[COLUMNS + 16];
    size_t end = 0;
    int seconds = (int)(span / NS_PER_S);
    int step = seconds / 8 + 1;

    memset(axis, ' ', sizeof axis);
    for (int s = 0; s <= seconds; s += step) {
        char text[16];
        int length = snprintf(text, sizeof text, "%d s", s);
        size_t column = (size_t)(s * NS_PER_S * COLUMNS / span);
        if (length > 0 && column + (size_t)length < sizeof axis) {
            memcpy(axis + column, text, (size_t)length);
            end = column + (size_t)length;
        }
    }
    axis[end] = '\0';
    (void)fprintf(file, "  %*s%s\n", NAME_WIDTH, "", axis);
}

void demo_print_picture(const struct demo *demo, FILE *file)
{
    const struct cli *cli = demo->cli;
    gavel_ns span = ns_max(demo->ended - demo->began, 1);
    bool utf8 = is_utf8();

    for (uint32_t member = 0; member < DEMO_MEMBERS; member++) {
        (void)fprintf(file, "  %-*s%s", NAME_WIDTH, demo_names[member],
                      style_begin(cli, demo_styles[member]));
        for (gavel_ns column = 0; column < COLUMNS; column++) {
            gavel_ns from = demo->began + span / COLUMNS * column;
            (void)fprintf(file, "%s", glyph(look(demo, member, from, from + span / COLUMNS), utf8));
        }
        (void)fprintf(file, "%s\n", style_end(cli, demo_styles[member]));
    }
    print_axis(span, file);
    (void)fprintf(file, "  %*s%s leads   %s stands by   %s frozen   %s killed\n", NAME_WIDTH, "",
                  glyph(CELL_LEADS, utf8), glyph(CELL_STANDBY, utf8), glyph(CELL_FROZEN, utf8),
                  glyph(CELL_KILLED, utf8));
}
