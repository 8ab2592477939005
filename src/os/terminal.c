/* SPDX-License-Identifier: Apache-2.0 */

#include "os/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool terminal_has_color(int fd)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(fd) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
}

/* Looked up once: a log that outlives a change to summer time at a terminal goes on as it began. */
static int32_t utc_offset(void)
{
    time_t now = time(NULL);
    struct tm tm = {0};

    return localtime_r(&now, &tm) ? (int32_t)tm.tm_gmtoff : 0;
}

struct log terminal_log(int fd, enum log_level level, enum log_format format)
{
    struct log log = {.fd = fd, .level = level, .format = format};

    if (format == LOG_AUTO)
        log.format = isatty(fd) ? LOG_HUMAN : LOG_LOGFMT;
    if (log.format == LOG_HUMAN) {
        log.has_color = terminal_has_color(fd);
        log.utc_offset_s = utc_offset();
    }
    return log;
}
