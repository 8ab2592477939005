/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/logger.h"

#include "daemon/realtime.h"
#include "daemon/shared/lock.h"
#include "os/clock.h"
#include "os/wakeup.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 1024
#define LINES 2048 /* what a busy second brings, at the most talkative level */

struct logger_line {
    size_t length;
    char text[LINE_BYTES];
};

void logger_write(struct logger *logger, enum log_level level, const char *message,
                  const struct log_field *fields)
{
    int64_t wall_ms;
    bool was_empty, is_full;

    if (level < logger->log.level || !logger->is_running)
        return;
    wall_ms = clock_wall_ms();
    (void)pthread_mutex_lock(&logger->mutex);
    was_empty = logger->first == logger->next;
    is_full = logger->next - logger->first == LINES;
    if (is_full) {
        logger->dropped++;
    } else {
        struct logger_line *line = &logger->lines[logger->next++ % LINES];

        line->length =
            log_format_line(line->text, sizeof line->text, &logger->log, wall_ms, level, message, fields);
    }
    (void)pthread_mutex_unlock(&logger->mutex);
    if (was_empty)
        wakeup_ring(logger->fd);
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

/* Copies the oldest line out; false if there is none. *ret_dropped is how many there was no room for. */
static bool take(struct logger *logger, struct logger_line *ret_line, uint64_t *ret_dropped)
{
    bool is_there;

    (void)pthread_mutex_lock(&logger->mutex);
    *ret_dropped = logger->dropped;
    logger->dropped = 0;
    is_there = logger->first != logger->next;
    if (is_there) {
        const struct logger_line *line = &logger->lines[logger->first++ % LINES];

        ret_line->length = line->length;
        memcpy(ret_line->text, line->text, line->length);
    }
    (void)pthread_mutex_unlock(&logger->mutex);
    return is_there;
}

static void write_lines(struct logger *logger)
{
    struct logger_line line;
    uint64_t dropped;
    bool is_there;

    do {
        is_there = take(logger, &line, &dropped);
        if (is_there)
            write_all(logger->log.fd, line.text, line.length);
        if (dropped > 0)
            log_line(&logger->log, clock_wall_ms(), LOG_WARNING,
                     "log lines were dropped: their reader is too slow", LOG_U64("lines", dropped), LOG_END);
    } while (is_there);
}

static bool is_ending(struct logger *logger)
{
    bool result;

    (void)pthread_mutex_lock(&logger->mutex);
    result = logger->is_ending;
    (void)pthread_mutex_unlock(&logger->mutex);
    return result;
}

static void *run(void *user)
{
    struct logger *logger = user;
    struct pollfd poll_of = {.fd = logger->fd, .events = POLLIN};
    bool is_last;

    do {
        (void)poll(&poll_of, 1, -1); /* a failure only makes it look sooner */
        wakeup_clear(logger->fd);
        is_last = is_ending(logger); /* what was put before that is written yet */
        write_lines(logger);
    } while (!is_last);
    return NULL;
}

enum gavel_status logger_start(struct logger *logger, const struct log *log, bool is_eager)
{
    memset(logger, 0, sizeof *logger);
    logger->log = *log;
    logger->fd = wakeup_open();
    logger->lines = calloc(LINES, sizeof *logger->lines);
    if (logger->fd < 0 || !logger->lines || lock_init(&logger->mutex) != GAVEL_OK) {
        free(logger->lines);
        wakeup_close(&logger->fd);
        return GAVEL_ERR_NO_MEMORY;
    }
    if (realtime_thread(&logger->thread, "gaveld-log", run, logger,
                        is_eager ? REALTIME_EAGER : REALTIME_NO)) {
        (void)pthread_mutex_destroy(&logger->mutex);
        wakeup_close(&logger->fd);
        free(logger->lines);
        return GAVEL_ERR_NO_MEMORY;
    }
    logger->is_running = true;
    return GAVEL_OK;
}

void logger_stop(struct logger *logger)
{
    if (!logger->is_running)
        return;
    (void)pthread_mutex_lock(&logger->mutex);
    logger->is_ending = true;
    (void)pthread_mutex_unlock(&logger->mutex);
    wakeup_ring(logger->fd);
    (void)pthread_join(logger->thread, NULL); /* fails only for a thread that is none */
    (void)pthread_mutex_destroy(&logger->mutex);
    wakeup_close(&logger->fd);
    free(logger->lines);
    logger->is_running = false;
}
