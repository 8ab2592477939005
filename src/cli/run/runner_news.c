/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/run/runner_news.h"

#include "os/wakeup.h"

#include <stdio.h>

bool news_queue_init(struct news_queue *queue)
{
    pthread_mutex_init(&queue->mutex, NULL);
    queue->first = queue->count = 0;
    queue->fd = wakeup_open();
    return queue->fd >= 0;
}

void news_queue_done(struct news_queue *queue)
{
    wakeup_close(&queue->fd);
    pthread_mutex_destroy(&queue->mutex);
}

void news_put(struct news_queue *queue, const struct gavel_event *event)
{
    struct news *news;

    pthread_mutex_lock(&queue->mutex);
    if (queue->count == NEWS_MAX) {
        queue->first = (queue->first + 1) % NEWS_MAX;
        queue->count--;
    }
    news = &queue->items[(queue->first + queue->count++) % NEWS_MAX];
    *news = (struct news){
        .kind = event->kind,
        .epoch = event->epoch,
        .reason = event->reason,
        .status = event->status,
        .took_ms = event->took_ms,
    };
    (void)snprintf(news->leader, sizeof news->leader, "%s", event->leader);
    (void)snprintf(news->previous, sizeof news->previous, "%s", event->previous);
    (void)snprintf(news->message, sizeof news->message, "%s", event->message);
    pthread_mutex_unlock(&queue->mutex);
    wakeup_ring(queue->fd);
}

bool news_take(struct news_queue *queue, struct news *ret_news)
{
    bool has_any;

    pthread_mutex_lock(&queue->mutex);
    has_any = queue->count > 0;
    if (has_any) {
        *ret_news = queue->items[queue->first];
        queue->first = (queue->first + 1) % NEWS_MAX;
        queue->count--;
    } else {
        wakeup_clear(queue->fd);
    }
    pthread_mutex_unlock(&queue->mutex);
    return has_any;
}
