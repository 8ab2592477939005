/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A duration is one or more numbers with units, largest first or not: they
 * are added up. Arithmetic is in integers (thousandths of a unit for the
 * digits after the point), so that what is accepted is exact.
 */
#include "config/duration.h"

#include "base/error.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MS_PER_S INT64_C(1000)
#define MS_PER_MIN (60 * MS_PER_S)
#define MS_PER_H (60 * MS_PER_MIN)
#define MS_PER_D (24 * MS_PER_H)
#define DURATION_MAX_MS (10000 * MS_PER_D)
#define FEW 100

static const struct unit {
    const char *name;
    int64_t ms;
} units[] = {
    {"ms", 1}, {"s", MS_PER_S}, {"min", MS_PER_MIN}, {"m", MS_PER_MIN}, {"h", MS_PER_H}, {"d", MS_PER_D},
};

static enum gavel_status refuse(struct gavel_error *error, const char *text, const char *why)
{
    return error_set(error, GAVEL_ERR_INVALID,
                     "\"%.60s\" %s; write a duration such as 500ms, 2s, 1m30s or 1h", text, why);
}

static const char *skip_spaces(const char *p)
{
    while (*p == ' ')
        p++;
    return p;
}

/* Reads digits with at most three after a point. False if there are none, or too many. */
static bool read_thousandths(const char **p, int64_t *ret_value)
{
    int64_t value = 0;
    int digits = 0, decimals = -1;

    for (;; (*p)++) {
        if (**p == '.' && decimals < 0 && digits > 0) {
            decimals = 0;
            continue;
        }
        if (!isdigit((unsigned char)**p))
            break;
        if (++digits > 15 || (decimals >= 0 && ++decimals > 3))
            return false;
        value = value * 10 + (**p - '0');
    }
    if (digits == 0 || decimals == 0)
        return false;
    for (int i = decimals < 0 ? 0 : decimals; i < 3; i++)
        value *= 10;
    *ret_value = value;
    return true;
}

/* What a number without a unit was probably meant to be: few are seconds, many milliseconds. */
static enum gavel_status refuse_plain(struct gavel_error *error, const char *text, int64_t thousandths)
{
    return error_set(
        error, GAVEL_ERR_INVALID,
        "\"%.60s\" has no unit; did you mean %.60s%s? A duration is written 500ms, 2s, 1m30s or 1h", text,
        skip_spaces(text), thousandths < FEW * 1000 ? "s" : "ms");
}

/* Reads a unit; NULL if there is none that is known. */
static const struct unit *read_unit(const char **p)
{
    size_t length = 0;

    *p = skip_spaces(*p);
    while (isalpha((unsigned char)(*p)[length]))
        length++;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strlen(units[i].name) == length && strncmp(units[i].name, *p, length) == 0) {
            *p += length;
            return &units[i];
        }
    return NULL;
}

static enum gavel_status parse(const char *text, bool is_plain_ms, gavel_ms *ret_ms,
                               struct gavel_error *error)
{
    const char *p = skip_spaces(text);
    int64_t total = 0;
    bool is_first = true;

    if (*p == '\0')
        return refuse(error, text, "is empty");
    if (*p == '-')
        return refuse(error, text, "is negative");
    for (; *p; p = skip_spaces(p)) {
        int64_t thousandths, product;
        const struct unit *unit;

        if (!read_thousandths(&p, &thousandths))
            return refuse(error, text, "is not a duration");
        unit = read_unit(&p);
        if (!unit && is_first && !*p && (is_plain_ms || thousandths == 0))
            unit = &units[0]; /* nothing is nothing in any unit */
        if (!unit && is_first && !*p)
            return refuse_plain(error, text, thousandths);
        if (!unit)
            return refuse(error, text, is_first ? "has no unit that is known" : "is not a duration");
        if (__builtin_mul_overflow(thousandths, unit->ms, &product) || product / 1000 > DURATION_MAX_MS)
            return refuse(error, text, "is more than 10000 days");
        if (product % 1000)
            return refuse(error, text, "has a fraction of a millisecond");
        total += product / 1000;
        if (total > DURATION_MAX_MS)
            return refuse(error, text, "is more than 10000 days");
        is_first = false;
    }
    *ret_ms = total;
    return GAVEL_OK;
}

enum gavel_status duration_parse(const char *text, gavel_ms *ret_ms, struct gavel_error *error)
{
    return parse(text, false, ret_ms, error);
}

enum gavel_status duration_parse_ms(const char *text, gavel_ms *ret_ms, struct gavel_error *error)
{
    return parse(text, true, ret_ms, error);
}

const char *duration_exact(gavel_ms ms, char buffer[static DURATION_TEXT_MAX])
{
    static const struct unit down[] = {
        {"d", MS_PER_D}, {"h", MS_PER_H}, {"min", MS_PER_MIN}, {"s", MS_PER_S}, {"ms", 1}};
    size_t used = 0;

    buffer[0] = '\0';
    if (ms == 0)
        return strcpy(buffer, "0");
    if (ms < 0) {
        buffer[used++] = '-';
        ms = -ms;
    }
    for (size_t i = 0; i < sizeof down / sizeof down[0]; i++) {
        if (ms < down[i].ms)
            continue;
        if (used >= DURATION_TEXT_MAX - 1)
            break;
        used += (size_t)snprintf(buffer + used, DURATION_TEXT_MAX - used, "%s%" PRId64 " %s",
                                 used > 1 ? " " : "", ms / down[i].ms, down[i].name);
        ms %= down[i].ms;
    }
    return buffer;
}

const char *duration_rough(gavel_ms ms, char buffer[static DURATION_TEXT_MAX])
{
    static const struct unit down[] = {
        {"d", MS_PER_D}, {"h", MS_PER_H}, {"min", MS_PER_MIN}, {"s", MS_PER_S}};

    for (size_t i = 0; i < sizeof down / sizeof down[0]; i++) {
        if (ms < down[i].ms)
            continue;
        if (ms < 10 * down[i].ms && ms % down[i].ms >= down[i].ms / 10)
            snprintf(buffer, DURATION_TEXT_MAX, "%" PRId64 ".%d %s", ms / down[i].ms,
                     (int)(ms % down[i].ms * 10 / down[i].ms), down[i].name);
        else
            snprintf(buffer, DURATION_TEXT_MAX, "%" PRId64 " %s", ms / down[i].ms, down[i].name);
        return buffer;
    }
    snprintf(buffer, DURATION_TEXT_MAX, "%" PRId64 " ms", ms);
    return buffer;
}
