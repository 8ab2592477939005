/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Being told of changes. A group is watched at the cluster as long as somebody
 * wants it: whoever called store_watch(), and the last that store_wait() was
 * about, since it is called again and again for the same one.
 *
 * Only what may make a candidate act is passed on: who leads, and whether
 * somebody wishes for another. A wish concerns the holder alone, and one's own
 * election is known by the answer to the claim.
 */
#include "store/cluster/cluster.h"

#include "os/clock.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Who waits with this version has no answer to compare with: it wants one. */
#define UNKNOWN UINT64_MAX

/* While the cluster cannot be asked, wait() tries again so often. */
#define RETRY (100 * NS_PER_MS)

static int compare(const struct gavel_watched *a, const struct gavel_watched *b)
{
    return strcmp(a->group, b->group);
}

/* Not RB_GENERATE_STATIC: it counts on a macro that headers of Linux may take away. */
RB_GENERATE_INTERNAL(gavel_watched_tree, gavel_watched, by_name, compare, static __attribute__((__unused__)))

static struct gavel_watched *find(struct gavel_store *gavel, const char *group)
{
    struct gavel_watched *watched = RB_ROOT(&gavel->watched);

    while (watched) {
        int order = strcmp(group, watched->group);

        if (order == 0)
            break;
        watched = order < 0 ? RB_LEFT(watched, by_name) : RB_RIGHT(watched, by_name);
    }
    return watched;
}

/* The thread looks at it next time. The lock is held, as in everything below that does not say otherwise. */
static void make_dirty(struct gavel_watched *watched)
{
    if (watched->is_dirty)
        return;
    watched->is_dirty = true;
    TAILQ_INSERT_TAIL(&watched->store->dirty, watched, in_dirty);
    gavel_thread_wake(watched->store);
}

/* NULL without memory: whoever is not told looks again and again. */
static struct gavel_watched *get(struct gavel_store *gavel, const char *group)
{
    struct gavel_watched *watched = find(gavel, group);
    size_t size = strnlen(group, NAME_MAX_BYTES) + 1;

    if (watched)
        return watched;
    watched = calloc(1, sizeof *watched + size);
    if (!watched)
        return NULL;
    watched->store = gavel;
    name_copy(watched->group, size, group);
    (void)RB_INSERT(gavel_watched_tree, &gavel->watched, watched); /* it was not there */
    make_dirty(watched);
    return watched;
}

/* It is in no list of the dirty. */
static void forget(struct gavel_watched *watched)
{
    struct gavel_store *gavel = watched->store;

    if (watched->is_changed)
        TAILQ_REMOVE(&gavel->changes, watched, in_changed);
    (void)RB_REMOVE(gavel_watched_tree, &gavel->watched, watched);
    free(watched);
}

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
    struct gavel_store *gavel = watched->store;
    const uint64_t one = 1;

    (void)revision;
    (void)is_gap; /* either way the whole is looked at */
    pthread_mutex_lock(&gavel->lock);
    if (!change || moves_version(change)) {
        watched->told++;
        pthread_cond_broadcast(&gavel->changed);
    }
    if (watched->watchers > 0 && !watched->is_changed && (!change || concerns(watched, change))) {
        watched->is_changed = true;
        TAILQ_INSERT_TAIL(&gavel->changes, watched, in_changed);
        if (write(gavel->push_fd, &one, sizeof one) < 0)
            watched->is_changed = true; /* the counter is full, so it is readable */
    }
    pthread_mutex_unlock(&gavel->lock);
}

void gavel_watch_tend(struct gavel_store *gavel)
{
    struct gavel_watched *next;

    for (struct gavel_watched *watched = TAILQ_FIRST(&gavel->dirty); watched; watched = next) {
        bool is_wanted = watched->watchers > 0 || watched->is_waited_for;

        next = TAILQ_NEXT(watched, in_dirty);
        watched->is_dirty = false;
        if (is_wanted && watched->watch == 0)
            watched->watch = cluster_link_watch(gavel->reads, watched->group, NULL, 0, told, watched);
        if (is_wanted)
            continue;
        if (watched->watch != 0)
            cluster_link_unwatch(gavel->reads, watched->watch);
        forget(watched);
    }
    TAILQ_INIT(&gavel->dirty);
}

/* As deep as the tree is, which is balanced. */
static void free_below(struct gavel_watched *watched)
{
    if (!watched)
        return;
    free_below(RB_LEFT(watched, by_name));
    free_below(RB_RIGHT(watched, by_name));
    free(watched);
}

void gavel_watch_free_all(struct gavel_store *gavel)
{
    free_below(RB_ROOT(&gavel->watched));
    RB_INIT(&gavel->watched);
    TAILQ_INIT(&gavel->dirty);
    TAILQ_INIT(&gavel->changes);
}

void gavel_note_own(struct gavel_store *gavel, const struct store_request *request,
                    const struct store_reply *reply)
{
    struct gavel_watched *watched;

    if (reply->status != GAVEL_OK || (request->op != STORE_CLAIM && request->op != STORE_RENEW))
        return;
    watched = find(gavel, request->group);
    if (watched)
        watched->own_epoch = reply->record.epoch;
}

int gavel_push_fd(struct store *store) { return ((struct gavel_store *)store)->push_fd; }

void gavel_watch(struct store *store, const char *group, bool is_on)
{
    struct gavel_store *gavel = (struct gavel_store *)store;
    struct gavel_watched *watched;

    if (gavel->pid != getpid())
        return; /* nobody would tell */
    pthread_mutex_lock(&gavel->lock);
    watched = is_on ? get(gavel, group) : find(gavel, group);
    if (watched && is_on) {
        watched->watchers++;
    } else if (watched && watched->watchers > 0 && --watched->watchers == 0) {
        if (watched->is_changed)
            TAILQ_REMOVE(&gavel->changes, watched, in_changed);
        watched->is_changed = false;
        make_dirty(watched);
    }
    pthread_mutex_unlock(&gavel->lock);
}

bool gavel_changed(struct store *store, char ret_group[NAME_MAX_BYTES + 1])
{
    struct gavel_store *gavel = (struct gavel_store *)store;
    struct gavel_watched *watched;
    uint64_t count;

    if (gavel->pid != getpid())
        return false;
    pthread_mutex_lock(&gavel->lock);
    watched = TAILQ_FIRST(&gavel->changes);
    if (watched) {
        TAILQ_REMOVE(&gavel->changes, watched, in_changed);
        watched->is_changed = false;
        name_copy(ret_group, NAME_MAX_BYTES + 1, watched->group);
    } else if (read(gavel->push_fd, &count, sizeof count) < 0) {
        count = 0; /* it was not readable: nothing had changed, which is what we say */
    }
    pthread_mutex_unlock(&gavel->lock);
    return watched != NULL;
}

/* The one that wait() is about; the last one is not waited for any more. */
static struct gavel_watched *wait_for(struct gavel_store *gavel, const char *group)
{
    struct gavel_watched *watched;
    struct gavel_watched *other;

    watched = get(gavel, group);
    if (!watched || watched->is_waited_for)
        return watched;
    RB_FOREACH(other, gavel_watched_tree, &gavel->watched)
    {
        if (!other->is_waited_for)
            continue;
        other->is_waited_for = false;
        make_dirty(other);
    }
    watched->is_waited_for = true;
    make_dirty(watched);
    return watched;
}

/* Asks for the version, without the lock; false if the cluster does not tell. */
static bool ask_version(struct gavel_store *gavel, const char *group, gavel_ns until, uint64_t *ret_version)
{
    const struct store_request request = {.op = STORE_READ, .group = group, .give_up_at = until};
    struct store_reply reply = {0};
    bool is_known;

    pthread_mutex_unlock(&gavel->lock);
    gavel_run(&gavel->store, &request, &reply, 1);
    is_known = reply.status == GAVEL_OK;
    *ret_version = reply.record.version;
    store_reply_done(&reply);
    pthread_mutex_lock(&gavel->lock);
    return is_known;
}

/* Whether the version is another, or not known to be that one; sleeps a little while nobody can tell. */
static bool differs(struct gavel_store *gavel, struct gavel_watched *watched, uint64_t version,
                    gavel_ns until)
{
    uint64_t told_before = watched->told;
    uint64_t now_version;

    if (watched->known_told == told_before && told_before != 0 && version != UNKNOWN)
        return watched->known_version != version;
    if (!ask_version(gavel, watched->group, until, &now_version)) {
        (void)gavel_wait_until(gavel, ns_min(until, clock_now() + RETRY)); /* the caller looks again */
        return false;
    }
    watched->known_version = now_version;
    watched->known_told = told_before; /* if more was told meanwhile it is looked at again */
    return now_version != version;
}

void gavel_wait(struct store *store, const char *group, uint64_t version, gavel_ns until)
{
    struct gavel_store *gavel = (struct gavel_store *)store;
    struct gavel_watched *watched;

    if (gavel->pid != getpid() || clock_now() >= until)
        return;
    pthread_mutex_lock(&gavel->lock);
    watched = wait_for(gavel, group);
    while (watched && clock_now() < until && !differs(gavel, watched, version, until)) {
        uint64_t told_before = watched->told;

        if (watched->known_told != told_before)
            continue; /* it is not known, or no longer */
        while (watched->told == told_before && gavel_wait_until(gavel, until))
            continue;
    }
    pthread_mutex_unlock(&gavel->lock);
}
