/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Being told of changes: who wants to be, and what for. The thread that has the
 * stream is in etcd_stream.c.
 *
 * Only what may make a candidate act is passed on: another holder, epoch,
 * release, end of the work, or a wish. A renewal is none of these, but whoever
 * waits for another version is woken by it.
 */
#include "store/etcd/watch.h"

#include "os/clock.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Who waits with this version has no answer to compare with: it wants one. */
#define UNKNOWN UINT64_MAX

/* While the cluster cannot be asked, wait() tries again so often. */
#define RETRY (100 * NS_PER_MS)

static int compare(const struct etcd_watched *a, const struct etcd_watched *b)
{
    return strcmp(a->group, b->group);
}

/* Not RB_GENERATE_STATIC: it counts on a macro that headers of Linux may take away. */
RB_GENERATE_INTERNAL(etcd_watched_tree, etcd_watched, by_name, compare, static __attribute__((__unused__)))

static struct etcd_watched *find(struct etcd_store *etcd, const char *group)
{
    struct etcd_watched *watched = RB_ROOT(&etcd->watched);

    while (watched) {
        int order = strcmp(group, watched->group);

        if (order == 0)
            break;
        watched = order < 0 ? RB_LEFT(watched, by_name) : RB_RIGHT(watched, by_name);
    }
    return watched;
}

/* NULL without memory: whoever is not told looks again and again. The lock is held, here and below. */
static struct etcd_watched *get(struct etcd_store *etcd, const char *group)
{
    struct etcd_watched *watched = find(etcd, group);
    size_t size = strnlen(group, NAME_MAX_BYTES) + 1;

    if (watched)
        return watched;
    watched = calloc(1, sizeof *watched + size);
    if (!watched)
        return NULL;
    watched->etcd = etcd;
    name_copy(watched->group, size, group);
    (void)RB_INSERT(etcd_watched_tree, &etcd->watched, watched); /* it was not there */
    etcd->watched_count++;
    etcd_stream_renew(etcd);
    return watched;
}

static void drop_if_unwanted(struct etcd_watched *watched)
{
    struct etcd_store *etcd = watched->etcd;

    if (watched->watchers > 0 || watched->is_waited_for)
        return;
    if (watched->is_changed)
        TAILQ_REMOVE(&etcd->changes, watched, in_changes);
    (void)RB_REMOVE(etcd_watched_tree, &etcd->watched, watched);
    etcd->watched_count--;
    free(watched); /* what the stream still tells of it finds nobody */
}

static void put_on_list(struct etcd_watched *watched)
{
    const uint64_t one = 1;

    if (watched->watchers == 0 || watched->is_changed)
        return;
    watched->is_changed = true;
    TAILQ_INSERT_TAIL(&watched->etcd->changes, watched, in_changes);
    if (write(watched->etcd->push_fd, &one, sizeof one) < 0)
        watched->is_changed = true; /* the counter is full, so it is readable */
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
    watched->told++;
    if (!record || is_news(watched, record))
        put_on_list(watched);
    if (record)
        see(watched, record);
    pthread_cond_broadcast(&etcd->changed);
}

void etcd_watch_tell_wish(struct etcd_store *etcd, const char *group)
{
    struct etcd_watched *watched = find(etcd, group);

    if (watched)
        put_on_list(watched);
}

void etcd_watch_tell_all(struct etcd_store *etcd)
{
    struct etcd_watched *watched;

    RB_FOREACH(watched, etcd_watched_tree, &etcd->watched)
    {
        watched->told++;
        watched->has_seen = false;
        put_on_list(watched);
    }
    pthread_cond_broadcast(&etcd->changed);
}

bool etcd_watch_questions(struct etcd_store *etcd, char **ret_text, size_t *ret_count)
{
    static const enum etcd_family families[] = {ETCD_GROUPS, ETCD_WISHES};
    struct etcd_watched *watched;
    char key[ETCD_KEY_SIZE];

    *ret_text = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < 2; i++) {
        if (etcd->watched_count > ETCD_STREAM_GROUPS_MAX) {
            etcd_key(etcd, families[i], NULL, NULL, key);
            ++*ret_count;
            if (!etcd_body_watch(ret_text, key, true))
                return false;
            continue;
        }
        RB_FOREACH(watched, etcd_watched_tree, &etcd->watched)
        {
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

    pthread_mutex_lock(&etcd->lock);
    watched = find(etcd, group);
    if (watched)
        see(watched, record);
    pthread_mutex_unlock(&etcd->lock);
}

/* As deep as the tree is, which is balanced. */
static void free_below(struct etcd_watched *watched)
{
    if (!watched)
        return;
    free_below(RB_LEFT(watched, by_name));
    free_below(RB_RIGHT(watched, by_name));
    free(watched);
}

void etcd_watch_stop(struct etcd_store *etcd)
{
    etcd_stream_stop(etcd);
    free_below(RB_ROOT(&etcd->watched));
    RB_INIT(&etcd->watched);
    TAILQ_INIT(&etcd->changes);
}

int etcd_push_fd(struct store *store) { return ((struct etcd_store *)store)->push_fd; }

void etcd_watch(struct store *store, const char *group, bool is_on)
{
    struct etcd_store *etcd = (struct etcd_store *)store;
    struct etcd_watched *watched;

    if (etcd->pid != getpid())
        return; /* nobody would tell */
    pthread_mutex_lock(&etcd->lock);
    watched = is_on ? get(etcd, group) : find(etcd, group);
    if (watched && is_on) {
        /* While all groups are watched there is no new stream to begin with a word about this one. */
        if (watched->watchers++ == 0 && etcd->watched_count > ETCD_STREAM_GROUPS_MAX)
            put_on_list(watched);
    } else if (watched && watched->watchers > 0 && --watched->watchers == 0) {
        if (watched->is_changed)
            TAILQ_REMOVE(&etcd->changes, watched, in_changes);
        watched->is_changed = false;
        drop_if_unwanted(watched);
    }
    pthread_mutex_unlock(&etcd->lock);
}

bool etcd_changed(struct store *store, char ret_group[NAME_MAX_BYTES + 1])
{
    struct etcd_store *etcd = (struct etcd_store *)store;
    struct etcd_watched *watched;
    uint64_t count;

    if (etcd->pid != getpid())
        return false;
    pthread_mutex_lock(&etcd->lock);
    watched = TAILQ_FIRST(&etcd->changes);
    if (watched) {
        TAILQ_REMOVE(&etcd->changes, watched, in_changes);
        watched->is_changed = false;
        name_copy(ret_group, NAME_MAX_BYTES + 1, watched->group);
    } else if (read(etcd->push_fd, &count, sizeof count) < 0) {
        count = 0; /* it was not readable: nothing had changed, which is what we say */
    }
    pthread_mutex_unlock(&etcd->lock);
    return watched != NULL;
}

/* The one that wait() is about; the last one is not waited for any more. */
static struct etcd_watched *wait_for(struct etcd_store *etcd, const char *group)
{
    struct etcd_watched *watched = get(etcd, group);
    struct etcd_watched *other;
    struct etcd_watched *next;

    if (!watched || watched->is_waited_for)
        return watched;
    RB_FOREACH_SAFE(other, etcd_watched_tree, &etcd->watched, next)
    {
        if (other->is_waited_for) {
            other->is_waited_for = false;
            drop_if_unwanted(other);
        }
    }
    watched->is_waited_for = true;
    return watched;
}

/* Asks for the version, without the lock; false if the cluster does not tell. */
static bool ask_version(struct etcd_store *etcd, const char *group, gavel_ns until, uint64_t *ret_version)
{
    const struct store_request request = {.op = STORE_READ, .group = group, .give_up_at = until};
    struct store_reply reply = {0};
    bool is_known;

    pthread_mutex_unlock(&etcd->lock);
    etcd_run(&etcd->store, &request, &reply, 1);
    is_known = reply.status == GAVEL_OK;
    *ret_version = reply.record.version;
    store_reply_done(&reply);
    pthread_mutex_lock(&etcd->lock);
    return is_known;
}

/* Whether the version is another, or not known to be that one; sleeps a little while nobody can tell. */
static bool differs(struct etcd_store *etcd, struct etcd_watched *watched, uint64_t version, gavel_ns until)
{
    uint64_t told_before = watched->told;
    uint64_t now_version;

    if (watched->known_told == told_before && told_before != 0 && version != UNKNOWN)
        return watched->known_version != version;
    if (!ask_version(etcd, watched->group, until, &now_version)) {
        (void)etcd_wait_until(etcd, ns_min(until, clock_now() + RETRY)); /* the caller looks again */
        return false;
    }
    watched->known_version = now_version;
    watched->known_told = told_before; /* if more was told meanwhile it is looked at again */
    return now_version != version;
}

void etcd_wait(struct store *store, const char *group, uint64_t version, gavel_ns until)
{
    struct etcd_store *etcd = (struct etcd_store *)store;
    struct etcd_watched *watched;

    if (etcd->pid != getpid() || clock_now() >= until)
        return;
    pthread_mutex_lock(&etcd->lock);
    watched = wait_for(etcd, group);
    while (watched && clock_now() < until && !differs(etcd, watched, version, until)) {
        uint64_t told_before = watched->told;

        if (watched->known_told != told_before)
            continue; /* it is not known, or no longer */
        while (watched->told == told_before && etcd_wait_until(etcd, until))
            continue;
    }
    pthread_mutex_unlock(&etcd->lock);
}
