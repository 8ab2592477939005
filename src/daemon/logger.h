/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Logging for threads that must not wait. A line is formatted at once into a
 * ring and written by a separate thread, so that a slow reader of stderr or a
 * busy disk delays nobody. When the ring is full, lines are dropped, and their
 * number is logged.
 */
#ifndef DAEMON_LOGGER_H
#define DAEMON_LOGGER_H

#include "base/log.h"

#include <gavel/status.h>

#include <pthread.h>

struct logger_line;

struct logger {
    struct log log;
    pthread_mutex_t mutex;
    struct logger_line *lines; /* a ring */
    uint64_t first;            /* the oldest that is not written yet */
    uint64_t next;
    uint64_t dropped;
    int fd; /* an eventfd: there are lines, or it must end */
    pthread_t thread;
    bool is_running;
    bool is_ending;
};

/* `is_eager`: its thread runs before ordinary ones, so that few lines are lost when the node is killed. */
GAVEL_CHECKED enum gavel_status logger_start(struct logger *logger, const struct log *log, bool is_eager);

/* Writes what is left, then ends. Safe on a zeroed struct. */
void logger_stop(struct logger *logger);

/* Any thread. The list of fields ends with LOG_END. */
void logger_write(struct logger *logger, enum log_level level, const char *message,
                  const struct log_field *fields);
#define logger_line(logger, level, message, ...)                                                             \
    logger_write((logger), (level), (message), (const struct log_field[]){__VA_ARGS__})

#endif
