/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events on their way from the library's thread to the main thread of a runner.
 * The callbacks must not wait for a slow stderr, so they only put news here. If
 * the main thread does not take them for long, the oldest are lost.
 */
#ifndef CLI_RUN_RUNNER_NEWS_H
#define CLI_RUN_RUNNER_NEWS_H

#include "base/record.h"

#include <gavel/event.h>

#include <pthread.h>

#define NEWS_MAX 64

/* A copy of the parts of an event that are logged. */
struct news {
    enum gavel_event_kind kind;
    uint64_t epoch;
    enum gavel_reason reason;
    enum gavel_status status;
    gavel_ms took_ms;
    char leader[NAME_MAX_BYTES + 1];
    char previous[NAME_MAX_BYTES + 1];
    char message[256];
};

struct news_queue {
    pthread_mutex_t mutex;
    int fd; /* an eventfd, readable when there is something */
    size_t first;
    size_t count;
    struct news items[NEWS_MAX];
};

/* False: out of descriptors. */
bool news_queue_init(struct news_queue *queue);
void news_queue_done(struct news_queue *queue);

/* Any thread. Never waits for the reader. */
void news_put(struct news_queue *queue, const struct gavel_event *event);

/* The oldest; false if there is none. */
bool news_take(struct news_queue *queue, struct news *ret_news);

#endif
