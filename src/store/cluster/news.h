/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the cluster has told of the caller's session and of its groups, waiting
 * to be taken.
 *
 *     thread ── session, group, hint, gap ──► [none │ open │ deadline │ gap │ group │ group │ …] ──► caller
 *
 * However slow the caller is, the queue is bounded: of each group one item
 * waits, which shows it as it was last told; of the session, at most that the
 * one the caller knows is over, that another is open, and its newest deadline.
 * What was told in a session goes with it. Changes that were missed, or for
 * which there is no memory, leave a gap: all groups that they may concern are
 * hinted at, one after the other.
 *
 * Everything here is called with the lock of the store held.
 */
#ifndef STORE_CLUSTER_NEWS_H
#define STORE_CLUSTER_NEWS_H

#include "store/store.h"

#include <bsd/sys/tree.h>
#include <sys/queue.h>

enum gavel_item_kind {
    GAVEL_ITEM_NONE, /* the session that the caller knows is over */
    GAVEL_ITEM_OPEN,
    GAVEL_ITEM_DEADLINE,
    GAVEL_ITEM_GAP,
    GAVEL_ITEM_GROUP,
};

struct gavel_item {
    TAILQ_ENTRY(gavel_item) next;
    enum gavel_item_kind kind;
    bool is_waiting;
};
TAILQ_HEAD(gavel_items, gavel_item);

/* Of one group. */
struct gavel_group_news {
    struct gavel_item item; /* first */
    RB_ENTRY(gavel_group_news) by_group;
    bool has_record;
    bool has_hint;
    struct store_news news;
};
RB_HEAD(gavel_news_groups, gavel_group_news);

/* Groups that are still to be hinted at: those behind `after`. */
struct gavel_gap {
    bool is_open;
    char after[NAME_MAX_BYTES + 1];
};

struct gavel_news {
    int fd; /* readable while something waits; borrowed */
    struct gavel_items queue;
    struct gavel_news_groups groups;
    struct gavel_item none, open, deadline, gap;
    struct gavel_gap members; /* in which our candidates take part */
    struct gavel_gap watched;
    struct store_session now;   /* as the thread knows it */
    struct store_session over;  /* what `none` shows */
    struct store_session shown; /* as the caller has taken it */
    bool is_taken;              /* the newest deadline, and the link does not know */
};

/* The next group by name behind `after`; NULL: none. */
typedef const char *(*gavel_news_next_cb)(void *user, const char *after);

void gavel_news_init(struct gavel_news *news, int fd);
void gavel_news_done(struct gavel_news *news);

/* A session is open, or is so for longer; `lasts` as in struct store_session. */
void gavel_news_open(struct gavel_news *news, uint64_t number, gavel_ns deadline, gavel_ns lasts);
/* Whether the node sees processes of our host die; told with the next deadline. */
void gavel_news_sight(struct gavel_news *news, bool sees_deaths);
/* It is over. */
void gavel_news_lost(struct gavel_news *news, gavel_ns lasts);
/* A group as it is shown in the session that is open; group and all fields but session are filled in. */
void gavel_news_record(struct gavel_news *news, const struct store_news *record);
void gavel_news_hint(struct gavel_news *news, const char *group);
void gavel_news_gap(struct gavel_news *news, bool of_members, bool of_watched);

/* False: nothing waits. */
bool gavel_news_take(struct gavel_news *news, gavel_news_next_cb next_member, gavel_news_next_cb next_watched,
                     void *user, struct store_news *ret_news);
/* Whether the caller has the newest deadline and the link is to be told so; true once for each. */
bool gavel_news_was_taken(struct gavel_news *news);

#endif
