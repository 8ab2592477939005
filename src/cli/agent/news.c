/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/agent/news.h"

#include "os/wakeup.h"

#include <stdlib.h>
#include <string.h>

bool agent_news_init(struct agent_news *news)
{
    *news = (struct agent_news){.fd = wakeup_open()};
    pthread_mutex_init(&news->mutex, NULL);
    return news->fd >= 0;
}

void agent_news_done(struct agent_news *news)
{
    for (size_t i = 0; i < AGENT_NEWS_MAX; i++)
        free(news->items[i].json);
    wakeup_close(&news->fd);
    pthread_mutex_destroy(&news->mutex);
}

void agent_news_wake(struct agent_news *news) { wakeup_ring(news->fd); }

void agent_news_put(struct agent_news *news, enum gavel_event_kind kind, char *json)
{
    struct agent_news_item *item;
    char *old;

    pthread_mutex_lock(&news->mutex);
    item = &news->items[++news->newest % AGENT_NEWS_MAX];
    old = item->json;
    *item = (struct agent_news_item){.id = news->newest, .kind = kind, .json = json};
    pthread_mutex_unlock(&news->mutex);
    free(old);
    agent_news_wake(news);
}

uint64_t agent_news_newest(struct agent_news *news)
{
    uint64_t newest;

    pthread_mutex_lock(&news->mutex);
    newest = news->newest;
    pthread_mutex_unlock(&news->mutex);
    return newest;
}

bool agent_news_next(struct agent_news *news, uint64_t after, struct agent_news_item *ret_item,
                     bool *ret_has_missed)
{
    uint64_t id = after + 1;
    bool is_there;

    pthread_mutex_lock(&news->mutex);
    is_there = after < news->newest;
    if (is_there) {
        *ret_has_missed = id + AGENT_NEWS_MAX <= news->newest;
        if (*ret_has_missed)
            id = news->newest - AGENT_NEWS_MAX + 1;
        *ret_item = news->items[id % AGENT_NEWS_MAX];
        ret_item->json = strdup(ret_item->json);
    }
    pthread_mutex_unlock(&news->mutex);
    return is_there;
}
