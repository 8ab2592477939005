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

/* In the thread, without the lock. */
static void told(void *user, const Gavel__Change *change, uint64_t revision, bool is_gap)
{
    struct gavel_watched *watched = user;
    struct push *push = watched->push.push;

    (void)revision;
    (void)is_gap; /* either way the whole is looked at */
    pthread_mutex_lock(&push->lock);
    if (!change || moves_version(change))
        push_told(&watched->push);
    if (!change || concerns(watched, change))
        push_put(&watched->push);
    pthread_mutex_unlock(&push->lock);
}

void gavel_watch_tend(struct gavel_store *gavel)
{
    struct gavel_watched *next;

    for (struct gavel_watched *watched = TAILQ_FIRST(&gavel->dirty); watched; watched = next) {
        bool is_wanted = push_is_wanted(&watched->push);

        next = TAILQ_NEXT(watched, in_dirty);
        watched->is_dirty = false;
        if (is_wanted && watched->watch == 0)
            watched->watch = cluster_link_watch(gavel->reads, watched->push.group, NULL, 0, told, watched);
        if (is_wanted)
            continue;
        if (watched->watch != 0)
            cluster_link_unwatch(gavel->reads, watched->watch);
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
