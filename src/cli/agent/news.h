/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The newest events of the library, numbered and kept in a ring for the
 * streams. The library's thread adds events and never waits. The agent's loop
 * reads them, for each stream at its own pace. A stream that is too slow is
 * told that it has missed some.
 */
#ifndef CLI_AGENT_NEWS_H
#define CLI_AGENT_NEWS_H

#include <gavel/event.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define AGENT_NEWS_MAX 512

struct agent_news_item {
    uint64_t id; /* counts from 1 */
    enum gavel_event_kind kind;
    char *json; /* owned by the holder of the item */
};

struct agent_news {
    pthread_mutex_t mutex;
    int fd; /* an eventfd, readable when something was added */
    uint64_t newest;
    struct agent_news_item items[AGENT_NEWS_MAX]; /* by id modulo the size */
};

/* False: out of descriptors. */
bool agent_news_init(struct agent_news *news);
void agent_news_done(struct agent_news *news);

/* Any thread. The text is handed over. */
void agent_news_put(struct agent_news *news, enum gavel_event_kind kind, char *json);

/* Makes the fd readable without an event. */
void agent_news_wake(struct agent_news *news);

/* The number of the newest event; 0 if there was none. */
uint64_t agent_news_newest(struct agent_news *news);

/*
 * The first event after that number; false if there is none. The caller frees
 * its text, which is NULL if there was no memory for a copy. *ret_has_missed:
 * some events in between are no longer kept.
 */
bool agent_news_next(struct agent_news *news, uint64_t after, struct agent_news_item *ret_item,
                     bool *ret_has_missed);

#endif
