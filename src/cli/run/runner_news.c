/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/run/runner_news.h"

#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool news_queue_init(struct news_queue *queue)
{
    pthread_mutex_init(&queue->mutex, NULL);
    queue->first = queue->count = 0;
    queue->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return queue->fd >= 0;
}

void news_queue_done(struct news_queue *queue)
{
    if (queue->fd >= 0)
        (void)close(queue->fd); /* it holds only a number */
    queue->fd = -1;
    pthread_mutex_destroy(&queue->mutex);
}

void news_put(struct news_queue *queue, const struct gavel_event *event)
{
    const uint64_t one = 1;
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
    if (write(queue->fd, &one, sizeof one) < 0)
        return; /* it is readable already */
}

bool news_take(struct news_queue *queue, struct news *ret_news)
{
    bool has_any;
    uint64_t times;

    pthread_mutex_lock(&queue->mutex);
    has_any = queue->count > 0;
    if (has_any) {
        *ret_news = queue->items[queue->first];
        queue->first = (queue->first + 1) % NEWS_MAX;
        queue->count--;
    } else if (read(queue->fd, &times, sizeof times) < 0) {
        times = 0; /* nothing was put since the last look */
    }
    pthread_mutex_unlock(&queue->mutex);
    return has_any;
}
