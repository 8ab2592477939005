/* SPDX-License-Identifier: Apache-2.0 */

#include "store/cluster/news.h"

#include "base/assert.h"
#include "os/wakeup.h"
#include "store/driver.h"

#include <stdlib.h>
#include <string.h>

static int compare(const struct gavel_group_news *a, const struct gavel_group_news *b)
{
    return strcmp(a->news.group, b->news.group);
}

/* Not RB_GENERATE_STATIC: it counts on a macro that headers of Linux may take away. */
RB_GENERATE_INTERNAL(gavel_news_groups, gavel_group_news, by_group, compare,
                     static __attribute__((__unused__)))

void gavel_news_init(struct gavel_news *news, int fd)
{
    news->fd = fd;
    TAILQ_INIT(&news->queue);
    RB_INIT(&news->groups);
    news->none.kind = GAVEL_ITEM_NONE;
    news->open.kind = GAVEL_ITEM_OPEN;
    news->deadline.kind = GAVEL_ITEM_DEADLINE;
    news->gap.kind = GAVEL_ITEM_GAP;
}

static void put(struct gavel_news *news, struct gavel_item *item)
{
    if (item->is_waiting)
        return;
    if (TAILQ_EMPTY(&news->queue))
        wakeup_ring(news->fd);
    item->is_waiting = true;
    TAILQ_INSERT_TAIL(&news->queue, item, next);
}

static void drop(struct gavel_news *news, struct gavel_item *item)
{
    if (!item->is_waiting)
        return;
    item->is_waiting = false;
    TAILQ_REMOVE(&news->queue, item, next);
}

static void forget_group(struct gavel_news *news, struct gavel_group_news *of_group)
{
    drop(news, &of_group->item);
    (void)RB_REMOVE(gavel_news_groups, &news->groups, of_group);
    free(of_group);
}

/* What was told in a session that is over. */
static void forget_told(struct gavel_news *news)
{
    struct gavel_group_news *of_group;

    while ((of_group = RB_ROOT(&news->groups)))
        forget_group(news, of_group);
    drop(news, &news->deadline);
    drop(news, &news->gap);
    news->members.is_open = news->watched.is_open = false;
}

void gavel_news_done(struct gavel_news *news)
{
    forget_told(news);
    drop(news, &news->none);
    drop(news, &news->open);
    ASSERT(TAILQ_EMPTY(&news->queue));
}

void gavel_news_open(struct gavel_news *news, uint64_t number, gavel_ns deadline, gavel_ns lasts)
{
    bool is_another = number != news->now.number;

    ASSERT(number != 0);
    if (is_another) {
        ASSERT(news->now.number == 0);
        ASSERT(RB_EMPTY(&news->groups));
        news->now.number = number;
        news->now.deadline = deadline;
    }
    news->now.lasts = lasts;
    news->now.deadline = ns_max(news->now.deadline, deadline);
    if (is_another)
        put(news, &news->open);
    else if (!news->open.is_waiting) /* which shows it, too */
        put(news, &news->deadline);
}

void gavel_news_sight(struct gavel_news *news, bool sees_deaths) { news->now.sees_deaths = sees_deaths; }

/*
 * One that the caller has never seen is not shown any more: it has nothing of it. The deadline that is shown
 * with the end is that of the session which the caller knows.
 */
void gavel_news_lost(struct gavel_news *news, gavel_ns lasts)
{
    bool is_unknown = news->open.is_waiting;

    if (news->now.number == 0)
        return;
    forget_told(news);
    drop(news, &news->open);
    news->now = (struct store_session){
        .former_deadline = news->now.deadline, .lasts = lasts, .sees_deaths = news->now.sees_deaths};
    if (is_unknown)
        return;
    ASSERT(!news->none.is_waiting);
    news->over = news->now;
    put(news, &news->none);
}

static struct gavel_group_news *find(struct gavel_news *news, const char *group)
{
    struct gavel_group_news *of_group = RB_ROOT(&news->groups);

    while (of_group) {
        int order = strcmp(group, of_group->news.group);

        if (order == 0)
            break;
        of_group = order < 0 ? RB_LEFT(of_group, by_group) : RB_RIGHT(of_group, by_group);
    }
    return of_group;
}

/* NULL without memory: then there is a gap. */
static struct gavel_group_news *get(struct gavel_news *news, const char *group)
{
    struct gavel_group_news *of_group = find(news, group);

    if (of_group)
        return of_group;
    of_group = calloc(1, sizeof *of_group);
    if (!of_group) {
        gavel_news_gap(news, true, true);
        return NULL;
    }
    of_group->item.kind = GAVEL_ITEM_GROUP;
    name_copy(of_group->news.group, sizeof of_group->news.group, group);
    (void)RB_INSERT(gavel_news_groups, &news->groups, of_group); /* it was not there */
    put(news, &of_group->item);
    return of_group;
}

/* A change says what is new; the rest is as it was. */
static void keep_rest(const struct store_news *before, struct store_news *after)
{
    const struct record *was = &before->record;
    struct record *is = &after->record;

    if (!before->is_found || !after->is_found || was->epoch != is->epoch)
        return;
    if (is->address[0] == '\0')
        memcpy(is->address, was->address, sizeof is->address);
    if (is->done && is->version == was->version)
        memcpy(is->successor, was->successor, sizeof is->successor);
}

void gavel_news_record(struct gavel_news *news, const struct store_news *record)
{
    struct gavel_group_news *of_group;
    struct store_news kept = *record;

    if (news->now.number == 0)
        return;
    of_group = get(news, record->group);
    if (!of_group)
        return;
    if (of_group->has_record)
        keep_rest(&of_group->news, &kept);
    of_group->news = kept;
    of_group->news.kind = STORE_NEWS_RECORD;
    of_group->has_record = true;
}

void gavel_news_hint(struct gavel_news *news, const char *group)
{
    struct gavel_group_news *of_group = news->now.number != 0 ? get(news, group) : NULL;

    if (of_group)
        of_group->has_hint = true;
}

void gavel_news_gap(struct gavel_news *news, bool of_members, bool of_watched)
{
    if (news->now.number == 0)
        return;
    if (of_members)
        news->members = (struct gavel_gap){.is_open = true};
    if (of_watched)
        news->watched = (struct gavel_gap){.is_open = true};
    put(news, &news->gap);
}

/* The next group of a gap; false: it has no more. */
static bool step_gap(struct gavel_gap *gap, gavel_news_next_cb next, void *user, struct store_news *ret_news)
{
    const char *group = gap->is_open ? next(user, gap->after) : NULL;

    if (!group) {
        gap->is_open = false;
        return false;
    }
    name_copy(gap->after, sizeof gap->after, group);
    name_copy(ret_news->group, sizeof ret_news->group, group);
    ret_news->kind = STORE_NEWS_HINT;
    return true;
}

static void show_session(struct gavel_news *news, struct gavel_item *item, enum store_news_kind kind,
                         const struct store_session *session, struct store_news *ret_news)
{
    drop(news, item);
    news->shown = *session;
    news->is_taken = session->number != 0;
    ret_news->kind = kind;
}

static void show_group(struct gavel_news *news, struct gavel_group_news *of_group,
                       struct store_news *ret_news)
{
    bool has_more = of_group->has_record && of_group->has_hint;

    if (of_group->has_record) {
        *ret_news = of_group->news;
    } else {
        ret_news->kind = STORE_NEWS_HINT;
        memcpy(ret_news->group, of_group->news.group, sizeof ret_news->group);
    }
    of_group->has_record = false;
    if (!has_more) /* else the hint comes next */
        forget_group(news, of_group);
}

bool gavel_news_take(struct gavel_news *news, gavel_news_next_cb next_member, gavel_news_next_cb next_watched,
                     void *user, struct store_news *ret_news)
{
    struct gavel_item *item;
    bool is_shown = false;

    while (!is_shown && (item = TAILQ_FIRST(&news->queue))) {
        is_shown = true;
        switch (item->kind) {
        case GAVEL_ITEM_NONE:
            show_session(news, item, STORE_NEWS_SESSION, &news->over, ret_news);
            break;
        case GAVEL_ITEM_OPEN:
            show_session(news, item, STORE_NEWS_SESSION, &news->now, ret_news);
            break;
        case GAVEL_ITEM_DEADLINE:
            show_session(news, item, STORE_NEWS_DEADLINE, &news->now, ret_news);
            break;
        case GAVEL_ITEM_GAP:
            is_shown = step_gap(&news->members, next_member, user, ret_news) ||
                       step_gap(&news->watched, next_watched, user, ret_news);
            if (!is_shown)
                drop(news, item);
            break;
        case GAVEL_ITEM_GROUP:
            show_group(news, (struct gavel_group_news *)item, ret_news);
            break;
        }
    }
    if (is_shown)
        ret_news->session = news->shown;
    else
        wakeup_clear(news->fd);
    return is_shown;
}

bool gavel_news_was_taken(struct gavel_news *news)
{
    bool was_taken = news->is_taken && !news->open.is_waiting && !news->deadline.is_waiting;

    if (was_taken)
        news->is_taken = false;
    return was_taken;
}
