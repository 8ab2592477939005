/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One line of log, built left to right in a buffer of fixed size. Some bytes
 * at the end are kept free for what closes a line (a quote, a brace, the
 * newline and the NUL). Everything else is written piece by piece, until a piece
 * does not fit. So a line is valid wherever it ends.
 *
 * Text from others is never trusted: what is not UTF-8 becomes U+FFFD and
 * control characters are escaped, so that it cannot forge a second line.
 */
#include "base/log.h"

#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096
#define CLOSING 7 /* quote, brace or the end of a colour, newline, NUL */

#define COLOR_OFF "\033[0m"
#define COLOR_DIM "\033[2m"
#define TIME_AT 11 /* in "2026-11-15T12:00:00.123Z" */
#define TIME_LENGTH 12

struct writer {
    char *buffer;
    size_t length;
    size_t limit; /* of everything but the closing bytes */
    bool is_full; /* a piece did not fit: nothing follows it */
    enum log_format format;
    bool has_color;
};

static const char *const level_names[] = {
    [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARNING] = "warning", [LOG_ERROR] = "error"};

static const char *const level_colors[] = {
    [LOG_DEBUG] = COLOR_DIM, [LOG_INFO] = "\033[1m", [LOG_WARNING] = "\033[33m", [LOG_ERROR] = "\033[1;31m"};

const char *const log_format_words[] = {
    [LOG_LOGFMT] = "logfmt", [LOG_JSON] = "json", [LOG_HUMAN] = "human", [LOG_AUTO] = "auto", NULL};

#define LEVEL_COUNT (sizeof level_names / sizeof *level_names)

const char *log_level_name(enum log_level level)
{
    return (size_t)level < LEVEL_COUNT ? level_names[level] : "unknown";
}

bool log_level_parse(const char *name, enum log_level *ret_level)
{
    for (size_t i = 0; i < LEVEL_COUNT; i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *ret_level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

static void put(struct writer *w, const char *piece, size_t length)
{
    /* A closing quote may stand beyond the limit already. */
    if (w->is_full || w->length > w->limit || length > w->limit - w->length) {
        w->is_full = true;
        return;
    }
    memcpy(w->buffer + w->length, piece, length);
    w->length += length;
}

/* What ends a string or the line; its room is kept free, so it always fits. */
static void close_with(struct writer *w, char c) { w->buffer[w->length++] = c; }

/* One character that cannot stand for itself; JSON's escapes serve logfmt too. */
static void put_escaped(struct writer *w, uint32_t c)
{
    char escape[8];

    switch (c) {
    case '"':
        put(w, "\\\"", 2);
        return;
    case '\\':
        put(w, "\\\\", 2);
        return;
    case '\n':
        put(w, "\\n", 2);
        return;
    case '\r':
        put(w, "\\r", 2);
        return;
    case '\t':
        put(w, "\\t", 2);
        return;
    default:
        (void)snprintf(escape, sizeof escape, "\\u%04x", (unsigned)(c & 0xffff)); /* fits: six bytes */
        put(w, escape, 6);
    }
}

/* Text with what others could forge a line with escaped; between quotes also what would end them. */
static void put_text(struct writer *w, const char *text, bool is_quoted)
{
    while (*text) {
        uint32_t c;
        size_t bytes = utf8_decode(text, &c);

        if (bytes == 0) {
            put(w, "\xef\xbf\xbd", 3); /* U+FFFD stands for one byte that is not UTF-8 */
            bytes = 1;
        } else if (utf8_is_control(c) || (is_quoted && (c == '"' || c == '\\'))) {
            put_escaped(w, c);
        } else {
            put(w, text, bytes);
        }
        text += bytes;
    }
}

static void put_quoted(struct writer *w, const char *text)
{
    put(w, "\"", 1);
    if (w->is_full)
        return;
    put_text(w, text, true);
    close_with(w, '"');
}

/* Whether a value outside JSON can do without quotes. */
static bool is_plain(const char *text)
{
    if (!*text)
        return false;
    while (*text) {
        uint32_t c;
        size_t bytes = utf8_decode(text, &c);

        if (bytes == 0 || c == ' ' || c == '"' || c == '=' || c == '\\' || utf8_is_control(c))
            return false;
        text += bytes;
    }
    return true;
}

/* The key with what separates it from the field before and from its value. */
static void put_key(struct writer *w, const char *key, bool is_first)
{
    if (w->format == LOG_JSON) {
        put(w, is_first ? "\"" : ",\"", is_first ? 1 : 2);
        put_text(w, key, true);
        put(w, "\":", 2);
        return;
    }
    if (!is_first)
        put(w, " ", 1);
    for (; *key; key++)
        put(w, *key > ' ' && *key != '=' && *key != '"' && *key != 0x7f ? key : "_", 1);
    put(w, "=", 1);
}

static void put_number(struct writer *w, const struct log_field *field)
{
    char text[32];

    switch (field->kind) {
    case LOG_FIELD_I64:
        (void)snprintf(text, sizeof text, "%" PRId64, field->value.i64); /* fits, like all below */
        break;
    case LOG_FIELD_U64:
        (void)snprintf(text, sizeof text, "%" PRIu64, field->value.u64);
        break;
    default:
        (void)snprintf(text, sizeof text, "%s", field->value.flag ? "true" : "false");
    }
    put(w, text, strlen(text));
}

/* A string may lose its tail; a key without its value or half a number may not stand there. */
static void put_field(struct writer *w, const struct log_field *field, bool is_first)
{
    size_t before = w->length;
    const char *text = field->value.str;

    if (w->is_full)
        return;
    put_key(w, field->key, is_first);
    if (field->kind != LOG_FIELD_STR) {
        put_number(w, field);
        if (w->is_full)
            w->length = before;
        return;
    }
    if (!text)
        text = "";
    if (w->is_full || w->length >= w->limit) {
        w->is_full = true;
        w->length = before;
    } else if (w->format != LOG_JSON && is_plain(text)) {
        put_text(w, text, true);
    } else {
        put_quoted(w, text);
    }
}

static void put_color(struct writer *w, const char *color)
{
    if (w->has_color)
        put(w, color, strlen(color));
}

static bool is_text(const struct log_field *field)
{
    return field->kind == LOG_FIELD_STR && strcmp(field->key, "text") == 0;
}

/* Whoever fills in a field need not know whether there is anything to say. */
static bool is_empty(const struct log_field *field)
{
    return field->kind == LOG_FIELD_STR && !(field->value.str && *field->value.str);
}

/* What a person at a terminal does without, or has read already. */
static bool is_for_programs(const struct log_field *field)
{
    size_t length = strlen(field->key);

    return (length >= 3 && strcmp(field->key + length - 3, "_ns") == 0) || is_text(field);
}

/* "leader_changed", the name of an event, is "leader changed"; other messages stay as they are. */
static void put_message(struct writer *w, const char *message)
{
    bool is_event = strspn(message, "abcdefghijklmnopqrstuvwxyz_") == strlen(message);

    for (; is_event && *message; message++)
        put(w, *message == '_' ? " " : message, 1);
    put_text(w, message, false);
}

/* "12:00:00.123 warning: the store fails  group=jobs candidate=a" */
static void put_human(struct writer *w, const char when[static 25], enum log_level level, const char *message,
                      const struct log_field *fields)
{
    bool is_first = true;

    put_color(w, COLOR_DIM);
    put(w, when + TIME_AT, TIME_LENGTH);
    put_color(w, COLOR_OFF);
    put(w, " ", 1);
    if ((size_t)level < LEVEL_COUNT)
        put_color(w, level_colors[level]);
    if (level >= LOG_WARNING) {
        put(w, log_level_name(level), strlen(log_level_name(level)));
        put(w, ": ", 2);
    }
    put_message(w, message ? message : "");
    for (const struct log_field *field = fields; field && field->kind != LOG_FIELD_END; field++) {
        if (is_text(field) && field->value.str && *field->value.str) {
            put(w, ": ", 2);
            put_text(w, field->value.str, false);
        }
    }
    for (; fields && fields->kind != LOG_FIELD_END; fields++) {
        if (is_for_programs(fields) || is_empty(fields))
            continue;
        if (is_first) {
            put_color(w, COLOR_OFF COLOR_DIM);
            put(w, "  ", 2);
        }
        put_field(w, fields, is_first);
        is_first = false;
    }
    for (const char *c = COLOR_OFF; w->has_color && *c; c++)
        close_with(w, *c);
}

/* A line for programs. */
static void put_structured(struct writer *w, const char when[static 25], enum log_level level,
                           const char *message, const struct log_field *fields)
{
    if (w->format == LOG_JSON)
        put(w, "{", 1);
    put_field(w, &LOG_STR("ts", when), true);
    put_field(w, &LOG_STR("level", log_level_name(level)), false);
    put_field(w, &LOG_STR("msg", message), false);
    for (; fields && fields->kind != LOG_FIELD_END; fields++)
        if (!is_empty(fields))
            put_field(w, fields, false);
    if (w->format == LOG_JSON)
        close_with(w, '}');
}

size_t log_format_line(char *buffer, size_t size, const struct log *log, int64_t wall_ms,
                       enum log_level level, const char *message, const struct log_field *fields)
{
    struct writer w = {.buffer = buffer, .format = log->format, .has_color = log->has_color};
    char when[25];

    if (size <= CLOSING) {
        if (size > 0)
            buffer[0] = '\0';
        return 0;
    }
    w.limit = size - CLOSING;
    if (log->format == LOG_HUMAN) {
        wall_time_format(wall_ms + (int64_t)log->utc_offset_s * 1000, when);
        put_human(&w, when, level, message, fields);
    } else {
        wall_time_format(wall_ms, when);
        put_structured(&w, when, level, message, fields);
    }
    close_with(&w, '\n');
    buffer[w.length] = '\0';
    return w.length;
}

void log_write(const struct log *log, int64_t wall_ms, enum log_level level, const char *message,
               const struct log_field *fields)
{
    char line[LINE_MAX_BYTES];
    size_t length;
    ssize_t n;

    if (level < log->level)
        return;
    if (log->never_waits && poll(&(struct pollfd){.fd = log->fd, .events = POLLOUT}, 1, 0) != 1)
        return;
    length = log_format_line(line, sizeof line, log, wall_ms, level, message, fields);
    do {
        n = write(log->fd, line, length);
    } while (n < 0 && errno == EINTR);
    (void)n; /* a log that cannot be written cannot tell anyone either, and must not stop the work */
}

static char *put_digits(char *at, int value, int digits)
{
    for (int i = digits - 1; i >= 0; i--) {
        at[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return at + digits;
}

void wall_time_format(int64_t wall_ms, char buffer[static 25])
{
    const int64_t first = INT64_C(-62167219200000); /* 0000-01-01 */
    const int64_t last = INT64_C(253402300799999);  /* 9999-12-31, the last year of four digits */
    int64_t ms = wall_ms < first ? first : wall_ms > last ? last : wall_ms;
    time_t seconds = (time_t)(ms / 1000 - (ms % 1000 < 0));
    struct tm tm = {0};
    char *at = buffer;

    (void)gmtime_r(&seconds, &tm); /* cannot fail for a year of four digits */
    at = put_digits(at, tm.tm_year + 1900, 4);
    *at++ = '-';
    at = put_digits(at, tm.tm_mon + 1, 2);
    *at++ = '-';
    at = put_digits(at, tm.tm_mday, 2);
    *at++ = 'T';
    at = put_digits(at, tm.tm_hour, 2);
    *at++ = ':';
    at = put_digits(at, tm.tm_min, 2);
    *at++ = ':';
    at = put_digits(at, tm.tm_sec, 2);
    *at++ = '.';
    at = put_digits(at, (int)(ms - (int64_t)seconds * 1000), 3);
    *at++ = 'Z';
    *at = '\0';
}
