/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/logger.h"

#include "daemon/realtime.h"
#include "os/clock.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 1024
#define WAITING_MAX 8192

struct line {
    struct mail_link link; /* first */
    size_t length;
    char text[];
};

void logger_write(struct logger *logger, enum log_level level, const char *message,
                  const struct log_field *fields)
{
    char text[LINE_BYTES];
    struct line *line;
    size_t length;

    if (level < logger->log.level)
        return;
    length = log_format_line(text, sizeof text, logger->log.format, clock_wall_ms(), level, message, fields);
    line = atomic_load(&logger->waiting) < WAITING_MAX ? malloc(sizeof *line + length) : NULL;
    if (!line) {
        atomic_fetch_add(&logger->dropped, 1);
        return;
    }
    line->length = length;
    memcpy(line->text, text, length);
    atomic_fetch_add(&logger->waiting, 1);
    mailbox_put(&logger->lines, &line->link);
}

/* Whole, or not at all if nobody reads any more. */
static void write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, text, length);

        if (n <= 0)
            return;
        text += n;
        length -= (size_t)n;
    }
}

static void write_lines(struct logger *logger, struct mail_link *list)
{
    uint64_t dropped = atomic_exchange(&logger->dropped, 0);

    while (list) {
        struct line *line = (struct line *)list;

        list = list->next;
        write_all(logger->log.fd, line->text, line->length);
        atomic_fetch_sub(&logger->waiting, 1);
        free(line);
    }
    if (dropped > 0)
        log_line(&logger->log, clock_wall_ms(), LOG_WARNING,
                 "log lines were dropped: whoever reads them is too slow", LOG_U64("lines", dropped),
                 LOG_END);
}

static void *run(void *user)
{
    struct logger *logger = user;
    struct pollfd poll_of = {.fd = logger->lines.fd, .events = POLLIN};

    while (true) {
        bool is_ending = atomic_load(&logger->is_ending); /* what was put before that is in the list */

        write_lines(logger, mailbox_take_all(&logger->lines));
        if (is_ending)
            return NULL;
        (void)poll(&poll_of, 1, -1); /* a failure only makes it look sooner */
    }
}

enum gavel_status logger_start(struct logger *logger, const struct log *log)
{
    enum gavel_status status;

    memset(logger, 0, sizeof *logger);
    logger->log = *log;
    status = mailbox_init(&logger->lines);
    if (status != GAVEL_OK)
        return status;
    if (realtime_thread(&logger->thread, "gaveld-log", run, logger, REALTIME_NO)) {
        mailbox_done(&logger->lines);
        return GAVEL_ERR_NO_MEMORY;
    }
    logger->is_running = true;
    return GAVEL_OK;
}

void logger_stop(struct logger *logger)
{
    if (!logger->is_running)
        return;
    atomic_store(&logger->is_ending, true);
    (void)!write(logger->lines.fd, &(uint64_t){1}, sizeof(uint64_t)); /* wakes it */
    (void)pthread_join(logger->thread, NULL); /* fails only for a thread that is none */
    mailbox_done(&logger->lines);
    logger->is_running = false;
}
