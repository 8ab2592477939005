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
 * Empty fields are left out. A line for people names its level only for warnings
 * and errors. It omits fields whose keys end in _ns, which are instants of the
 * machine's clock. Underscores in an event's name become spaces, and the field
 * `text` follows the message.
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
    LOG_AUTO, /* for settings only: terminal_log() turns it into LOG_HUMAN or LOG_LOGFMT */
};

enum log_field_kind { LOG_FIELD_END, LOG_FIELD_STR, LOG_FIELD_I64, LOG_FIELD_U64, LOG_FIELD_BOOL };

struct log_field {
    enum log_field_kind kind;
    const char *key;
    union {
        const char *str; /* NULL or "": left out */
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
    bool never_waits;     /* drop a line that fd does not take at once: no work may depend on its reader */
    enum log_level level; /* lines below it are dropped */
    enum log_format format;
    bool has_color;       /* LOG_HUMAN: colour lines by level */
    int32_t utc_offset_s; /* LOG_HUMAN: of local time */
};

/*
 * Formats one line into buffer by the settings of `log`, with a newline and
 * always NUL-terminated. log->fd is not used. wall_ms is milliseconds since 1970
 * (UTC). A line that does not fit is cut but remains a valid line of its format.
 * Returns the length.
 */
size_t log_format_line(char *buffer, size_t size, const struct log *log, int64_t wall_ms,
                       enum log_level level, const char *message, const struct log_field *fields);

/* Formats a line and writes it with one write(2), so that lines of several processes do not mix. */
void log_write(const struct log *log, int64_t wall_ms, enum log_level level, const char *message,
               const struct log_field *fields);

/* Writes a line with the fields that are listed; the list must end with LOG_END. */
#define log_line(log, wall_ms, level, message, ...)                                                          \
    log_write((log), (wall_ms), (level), (message), (const struct log_field[]){__VA_ARGS__})

/* "debug", "info", "warning", "error"; parse returns false for any other word. */
const char *log_level_name(enum log_level level);
bool log_level_parse(const char *name, enum log_level *ret_level);

/* The formats a user may choose, indexed by enum log_format and ending with NULL; the list for messages. */
extern const char *const log_format_words[];
#define LOG_FORMAT_WORDS "auto, human, logfmt, json"

/* "2026-11-15T12:00:00.123Z" into a buffer of at least 25 bytes. */
void wall_time_format(int64_t wall_ms, char buffer[static 25]);

#endif
