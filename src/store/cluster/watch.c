/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Watched groups (push.h) at a cluster: the thread begins and ends a watch for
 * each, and passes on what the cluster tells.
 *
 * Only what may make a candidate act is passed on: who leads, and whether
 * somebody wishes for another. A wish concerns the holder alone, and one's own
 * election is known by the answer to the claim.
 */
#include "store/cluster/cluster.h"

#include <string.h>

/* The thread looks at it next time. The lock is held, as in everything below that does not say otherwise. */
static void make_dirty(struct push_watched *push)
{
    struct gavel_watched *watched = (struct gavel_watched *)push;
    struct gavel_store *gavel = (struct gavel_store *)push->push;

    if (watched->is_dirty)
        return;
    watched->is_dirty = true;
    TAILQ_INSERT_TAIL(&gavel->dirty, watched, in_dirty);
    gavel_thread_wake(gavel);
}

const struct push_hooks gavel_push_hooks = {
    .watched_size = sizeof(struct gavel_watched),
    .on_new = make_dirty,
    .on_unwanted = make_dirty,
};

static bool concerns(const struct gavel_watched *watched, const Gavel__Change *change)
{
    bool is_own = watched->own_epoch != 0 && change->epoch == watched->own_epoch;

    switch (change->kind) {
    case GAVEL__CHANGE__KIND__ELECTED:
        return !is_own;
    case GAVEL__CHANGE__KIND__WISHED:
    case GAVEL__CHANGE__KIND__WISH_OVER:
        return is_own;
    case GAVEL__CHANGE__KIND__VACANT:
    case GAVEL__CHANGE__KIND__DONE:
    case GAVEL__CHANGE__KIND__REOPENED:
    case GAVEL__CHANGE__KIND__GROUP_GONE:
        return true;
    default:
        return false; /* candidates and notes come and go */
    }
}

static bool moves_version(const Gavel__Change *change)
{
    return change->kind != GAVEL__CHANGE__KIND__JOINED && change->kind != GAVEL__CHANGE__KIND__LEFT &&
           change->kind != GAVEL__CHANGE__KIND__CHANGED && change->kind != GAVEL__CHANGE__KIND__NOTE_PUT &&
           change->kind != GAVEL__CHANGE__KIND__NOTE_DELETED;
}

/* To a caller without a session of its own. */
static void tell_changed(struct gavel_watched *watched, const Gavel__Change *change)
{
    if (!change || concerns(watched, change))
        push_put(&watched->push);
}

/* To one that has one. */
static void tell_news(struct gavel_store *gavel, const char *group, const Gavel__Change *change)
{
    struct store_news news;

    switch (change ? gavel_take_change(change, &news) : GAVEL_SHOWN_HINT) {
    case GAVEL_SHOWN_RECORD:
        gavel_news_record(&gavel->news, &news);
        break;
    case GAVEL_SHOWN_HINT:
        gavel_news_hint(&gavel->news, group);
        break;
    case GAVEL_SHOWN_NOTHING:
        break;
    }
}

/* In the thread, without the lock. */
static void told(void *user, const Gavel__Change *change, uint64_t revision, bool is_gap)
{
    struct gavel_watched *watched = user;
    struct push *push = watched->push.push;
    struct gavel_store *gavel = (struct gavel_store *)push;

    (void)revision;
    (void)is_gap; /* either way the whole is looked at */
    pthread_mutex_lock(&push->lock);
    if (!change || moves_version(change))
        push_told(&watched->push);
    if (!gavel->has_session)
        tell_changed(watched, change);
    else if (watched->push.watchers > 0)
        tell_news(gavel, watched->push.group, change);
    pthread_mutex_unlock(&push->lock);
}

/*
 * The groups in which a candidate of ours takes part, in one watch. It begins where the session does, so
 * nothing is missed before it has begun, unless that is not known.
 */
static void told_of_session(void *user, const Gavel__Change *change, uint64_t revision, bool is_gap)
{
    struct gavel_store *gavel = user;
    struct gavel_member *member;

    (void)revision;
    pthread_mutex_lock(&gavel->push.lock);
    if (!change) {
        if (is_gap || gavel->news.now.number > (uint64_t)INT64_MAX)
            gavel_news_gap(&gavel->news, true, false);
    } else {
        member = gavel_member_find(gavel, change->group);
        if (member)
            tell_news(gavel, member->group, change);
    }
    pthread_mutex_unlock(&gavel->push.lock);
}

void gavel_watch_session(struct gavel_store *gavel, uint64_t number)
{
    /* One that no node has told is a number of the client's own, and no revision. */
    uint64_t after = number > (uint64_t)INT64_MAX ? 0 : number;

    if (gavel->session_watch != 0)
        cluster_link_unwatch(gavel->link, gavel->session_watch);
    gavel->session_watch = 0;
    if (number != 0)
        gavel->session_watch = cluster_link_watch(gavel->link, NULL, NULL, after, told_of_session, gavel);
}

const char *gavel_watched_after(struct gavel_store *gavel, const char *after)
{
    struct push_watched *watched = RB_ROOT(&gavel->push.watched);
    const char *found = NULL;

    while (watched) {
        bool is_behind = strcmp(watched->group, after) > 0;

        if (is_behind)
            found = watched->group;
        watched = is_behind ? RB_LEFT(watched, by_name) : RB_RIGHT(watched, by_name);
    }
    return found;
}

void gavel_watch_tend(struct gavel_store *gavel)
{
    struct gavel_watched *next;

    for (struct gavel_watched *watched = TAILQ_FIRST(&gavel->dirty); watched; watched = next) {
        bool is_wanted = push_is_wanted(&watched->push);

        next = TAILQ_NEXT(watched, in_dirty);
        watched->is_dirty = false;
        if (is_wanted && watched->watch == 0)
            watched->watch = cluster_link_watch(gavel->link, watched->push.group, NULL, 0, told, watched);
        if (is_wanted)
            continue;
        if (watched->watch != 0)
            cluster_link_unwatch(gavel->link, watched->watch);
        push_forget(&watched->push);
    }
    TAILQ_INIT(&gavel->dirty);
}

void gavel_note_own(struct gavel_store *gavel, const struct store_request *request,
                    const struct store_reply *reply)
{
    struct gavel_watched *watched;

    if (reply->status != GAVEL_OK || (request->op != STORE_CLAIM && request->op != STORE_RENEW))
        return;
    watched = (struct gavel_watched *)push_find(&gavel->push, request->group);
    if (watched)
        watched->own_epoch = reply->record.epoch;
}
