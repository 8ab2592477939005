/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the stream tells of a watched group (push.h), and what of it is news.
 * The thread that has the stream is in stream.c.
 *
 * Only what may make a candidate act is passed on: another holder, epoch,
 * release, end of the work, or a wish. A renewal is none of these, but whoever
 * waits for another version is woken by it.
 */
#include "store/etcd/watch.h"

static void on_new(struct push_watched *watched) { etcd_stream_renew((struct etcd_store *)watched->push); }

/* While all groups are watched there is no new stream to begin with a word about this one. */
static void on_first(struct push_watched *watched)
{
    if (watched->push->watched_count > ETCD_STREAM_GROUPS_MAX)
        push_put(watched);
}

const struct push_hooks etcd_push_hooks = {
    .watched_size = sizeof(struct etcd_watched),
    .on_new = on_new,
    .on_first = on_first,
    .on_unwanted = push_forget,
};

static struct etcd_watched *find(struct etcd_store *etcd, const char *group)
{
    return (struct etcd_watched *)push_find(&etcd->push, group);
}

static bool is_news(const struct etcd_watched *watched, const struct record *record)
{
    return !watched->has_seen || !nonce_equal(watched->seen.nonce, record->nonce) ||
           watched->seen.epoch != record->epoch || watched->seen.held != record->held ||
           watched->seen.done != record->done;
}

static void see(struct etcd_watched *watched, const struct record *record)
{
    watched->has_seen = true;
    watched->seen.nonce = record->nonce;
    watched->seen.epoch = record->epoch;
    watched->seen.held = record->held;
    watched->seen.done = record->done;
}

void etcd_watch_tell(struct etcd_store *etcd, const char *group, const struct record *record)
{
    struct etcd_watched *watched = find(etcd, group);

    if (!watched)
        return;
    if (!record || is_news(watched, record))
        push_put(&watched->push);
    if (record)
        see(watched, record);
    push_told(&watched->push);
}

void etcd_watch_tell_wish(struct etcd_store *etcd, const char *group)
{
    struct push_watched *watched = push_find(&etcd->push, group);

    if (watched)
        push_put(watched);
}

void etcd_watch_tell_all(struct etcd_store *etcd)
{
    for (struct push_watched *watched = push_first(&etcd->push); watched; watched = push_next(watched)) {
        ((struct etcd_watched *)watched)->has_seen = false;
        push_put(watched);
        push_told(watched);
    }
}

bool etcd_watch_questions(struct etcd_store *etcd, char **ret_text, size_t *ret_count)
{
    static const enum etcd_family families[] = {ETCD_GROUPS, ETCD_WISHES};
    char key[ETCD_KEY_SIZE];

    *ret_text = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < 2; i++) {
        if (etcd->push.watched_count > ETCD_STREAM_GROUPS_MAX) {
            etcd_key(etcd, families[i], NULL, NULL, key);
            ++*ret_count;
            if (!etcd_body_watch(ret_text, key, true))
                return false;
            continue;
        }
        for (struct push_watched *watched = push_first(&etcd->push); watched; watched = push_next(watched)) {
            etcd_key(etcd, families[i], watched->group, NULL, key);
            ++*ret_count;
            if (!etcd_body_watch(ret_text, key, false))
                return false;
        }
    }
    return true;
}

void etcd_watch_own(struct etcd_store *etcd, const char *group, const struct record *record)
{
    struct etcd_watched *watched;

    pthread_mutex_lock(&etcd->push.lock);
    watched = find(etcd, group);
    if (watched)
        see(watched, record);
    pthread_mutex_unlock(&etcd->push.lock);
}
