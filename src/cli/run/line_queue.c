/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/run/line_queue.h"

#include "os/wakeup.h"

#include <stdlib.h>

bool line_queue_init(struct line_queue *queue)
{
    int fd = wakeup_open();

    if (fd < 0)
        return false;
    *queue = (struct line_queue){.fd = fd};
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->room, NULL);
    return true;
}

void line_queue_done(struct line_queue *queue)
{
    while (line_queue_peek(queue))
        line_queue_drop(queue);
    wakeup_close(&queue->fd);
    pthread_cond_destroy(&queue->room);
    pthread_mutex_destroy(&queue->mutex);
}

void line_queue_wake(struct line_queue *queue) { wakeup_ring(queue->fd); }

void line_queue_put(struct line_queue *queue, char *line)
{
    pthread_mutex_lock(&queue->mutex);
    while (queue->count == LINE_QUEUE_CAPACITY && !queue->is_closing)
        pthread_cond_wait(&queue->room, &queue->mutex);
    if (queue->count < LINE_QUEUE_CAPACITY) {
        queue->lines[(queue->first + queue->count++) % LINE_QUEUE_CAPACITY] = line;
        line = NULL;
    }
    pthread_mutex_unlock(&queue->mutex);
    free(line);
    line_queue_wake(queue);
}

const char *line_queue_peek(struct line_queue *queue)
{
    const char *line;

    pthread_mutex_lock(&queue->mutex);
    line = queue->count ? queue->lines[queue->first] : NULL;
    pthread_mutex_unlock(&queue->mutex);
    return line;
}

void line_queue_drop(struct line_queue *queue)
{
    char *line;

    pthread_mutex_lock(&queue->mutex);
    line = queue->lines[queue->first];
    queue->first = (queue->first + 1) % LINE_QUEUE_CAPACITY;
    queue->count--;
    pthread_cond_signal(&queue->room);
    pthread_mutex_unlock(&queue->mutex);
    free(line);
}

void line_queue_close(struct line_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->is_closing = true;
    pthread_cond_broadcast(&queue->room);
    pthread_mutex_unlock(&queue->mutex);
}
