/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Structured log lines: short ones for people at a terminal, logfmt or JSON
 * for programs. Only programs log (the CLI, the daemon); libraries return
 * statuses and emit events.
 *
 *     log_line(&log, clock_wall_ms(), LOG_INFO, "became leader",
 *              LOG_STR("group", group), LOG_U64("epoch", epoch), LOG_END);
 *
 * gives
 *
 *     human   12:00:00.123 became leader  group=jobs epoch=7
 *     logfmt  ts=2026-11-15T12:00:00.123Z level=info msg="became leader" group=jobs epoch=7
 *     json    {"ts":"2026-11-15T12:00:00.123Z","level":"info","msg":"became leader","group":"jobs","epoch":7}
 *
 * A line for people names its level only from warning up. It leaves out empty
 * fields and those whose keys end in _ns, instants of the machine's clock; the
 * name of an event gets spaces, and the field `text` follows what happened.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };
enum log_format {
    LOG_LOGFMT,
    LOG_JSON,
    LOG_HUMAN,
    LOG_AUTO, /* a wish only: terminal_log() makes it LOG_HUMAN or LOG_LOGFMT */
};

enum log_field_kind { LOG_FIELD_END, LOG_FIELD_STR, LOG_FIELD_I64, LOG_FIELD_U64, LOG_FIELD_BOOL };

struct log_field {
    enum log_field_kind kind;
    const char *key;
    union {
        const char *str; /* NULL prints as an empty string */
        int64_t i64;
        uint64_t u64;
        bool flag;
    } value;
};

#define LOG_STR(k, v) ((struct log_field){.kind = LOG_FIELD_STR, .key = (k), .value.str = (v)})
#define LOG_I64(k, v) ((struct log_field){.kind = LOG_FIELD_I64, .key = (k), .value.i64 = (v)})
#define LOG_U64(k, v) ((struct log_field){.kind = LOG_FIELD_U64, .key = (k), .value.u64 = (v)})
#define LOG_BOOL(k, v) ((struct log_field){.kind = LOG_FIELD_BOOL, .key = (k), .value.flag = (v)})
#define LOG_END ((struct log_field){.kind = LOG_FIELD_END})

struct log {
    int fd;
    bool never_waits; /* a line that fd does not take at once is lost: nobody's work may depend on a reader */
    enum log_level level; /* lines below it are dropped */
    enum log_format format;
    bool has_color;       /* LOG_HUMAN: by level */
    int32_t utc_offset_s; /* LOG_HUMAN: of the time that people here read */
};

/*
 * Formats one line, with its newline, into buffer, always NUL-terminated, as
 * `log` has it; log->fd is not touched. wall_ms is milliseconds since 1970
 * (UTC). A line that does not fit is cut and stays one valid line of its
 * format. Returns its length.
 */
size_t log_format_line(char *buffer, size_t size, const struct log *log, int64_t wall_ms,
                       enum log_level level, const char *message, const struct log_field *fields);

/* Formats and writes one line by one write(2), so that lines of several processes do not mix. */
void log_write(const struct log *log, int64_t wall_ms, enum log_level level, const char *message,
               const struct log_field *fields);

/* A line with its fields in place; the list must end with LOG_END. */
#define log_line(log, wall_ms, level, message, ...)                                                          \
    log_write((log), (wall_ms), (level), (message), (const struct log_field[]){__VA_ARGS__})

/* "debug", "info", "warning", "error"; parse returns false for another word. */
const char *log_level_name(enum log_level level);
bool log_level_parse(const char *name, enum log_level *ret_level);

/* What a user may ask for, by enum log_format, ending with NULL; and the same as a message lists it. */
extern const char *const log_format_words[];
#define LOG_FORMAT_WORDS "auto, human, logfmt, json"

/* "2026-11-15T12:00:00.123Z" into a buffer of at least 25 bytes. */
void wall_time_format(int64_t wall_ms, char buffer[static 25]);

#endif
