/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines on their way from the library's thread to stdout. The reader of stdout
 * may be slow, so the callbacks do not write themselves. They put lines into a
 * queue, and the main thread writes when the reader is ready.
 *
 * The queue is bounded. When it is full, the callback waits, renewals stop and
 * the mandate is lost in time: a reader that no longer reads must not go on
 * believing that it hears of every change.
 */
#ifndef CLI_RUN_LINE_QUEUE_H
#define CLI_RUN_LINE_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define LINE_QUEUE_CAPACITY 4096

struct line_queue {
    pthread_mutex_t mutex;
    pthread_cond_t room;
    int fd; /* an eventfd, readable when a line was added or the queue was woken */
    bool is_closing;
    size_t first;
    size_t count;
    char *lines[LINE_QUEUE_CAPACITY];
};

/* False: out of descriptors. */
bool line_queue_init(struct line_queue *queue);

/* Frees the lines that were not taken. */
void line_queue_done(struct line_queue *queue);

/* Takes over a line. Waits while the queue is full; drops the line if it is full and closing. */
void line_queue_put(struct line_queue *queue, char *line);

/* The oldest line, still owned by the queue; NULL if there is none. Only for the thread that also drops. */
const char *line_queue_peek(struct line_queue *queue);
void line_queue_drop(struct line_queue *queue);

/* Makes the fd readable without a line, for news that comes by other means. */
void line_queue_wake(struct line_queue *queue);

/* From now on line_queue_put() does not wait for room. */
void line_queue_close(struct line_queue *queue);

#endif
