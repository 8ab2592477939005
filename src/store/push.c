/* SPDX-License-Identifier: Apache-2.0 */

#include "store/push.h"

#include "base/assert.h"
#include "os/clock.h"
#include "os/thread.h"
#include "os/wakeup.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A caller that waits with this version has no answer to compare with: it wants one. */
#define UNKNOWN UINT64_MAX

/* How often wait() tries again while the server cannot be asked. */
#define RETRY (100 * NS_PER_MS)

static int compare(const struct push_watched *a, const struct push_watched *b)
{
    return strcmp(a->group, b->group);
}

/* Not RB_GENERATE_STATIC: it counts on a macro that headers of Linux may take away. */
RB_GENERATE_INTERNAL(push_tree, push_watched, by_name, compare, static __attribute__((__unused__)))

void push_init(struct push *push, const struct push_hooks *hooks)
{
    ASSERT(hooks->watched_size >= sizeof(struct push_watched));
    push->hooks = hooks;
    push->pid = getpid();
    push->fd = wakeup_open();
    RB_INIT(&push->watched);
    TAILQ_INIT(&push->changes);
    (void)pthread_mutex_init(&push->lock, NULL); /* cannot fail on Linux with these arguments */
    condition_init(&push->changed);
}

/* As deep as the tree is, which is balanced. */
static void free_below(struct push_watched *watched)
{
    if (!watched)
        return;
    free_below(RB_LEFT(watched, by_name));
    free_below(RB_RIGHT(watched, by_name));
    free(watched);
}

void push_done(struct push *push)
{
    free_below(RB_ROOT(&push->watched));
    RB_INIT(&push->watched);
    TAILQ_INIT(&push->changes);
    push->watched_count = 0;
    wakeup_close(&push->fd);
    (void)pthread_cond_destroy(&push->changed); /* nobody is left to use them */
    (void)pthread_mutex_destroy(&push->lock);
}

bool push_is_forked(const struct push *push) { return push->pid != getpid(); }

struct push_watched *push_find(struct push *push, const char *group)
{
    struct push_watched *watched = RB_ROOT(&push->watched);

    while (watched) {
        int order = strcmp(group, watched->group);

        if (order == 0)
            break;
        watched = order < 0 ? RB_LEFT(watched, by_name) : RB_RIGHT(watched, by_name);
    }
    return watched;
}

struct push_watched *push_first(struct push *push) { return RB_MIN(push_tree, &push->watched); }

struct push_watched *push_next(struct push_watched *watched) { return RB_NEXT(push_tree, , watched); }

bool push_is_wanted(const struct push_watched *watched)
{
    return watched->watchers > 0 || watched->is_waited_for;
}

/* NULL without memory: whoever is not told looks again and again. */
static struct push_watched *get(struct push *push, const char *group)
{
    struct push_watched *watched = push_find(push, group);
    size_t size = push->hooks->watched_size;
    size_t name_size = strnlen(group, NAME_MAX_BYTES) + 1;
    char *name;

    if (watched)
        return watched;
    watched = calloc(1, size + name_size);
    if (!watched)
        return NULL;
    name = (char *)watched + size;
    name_copy(name, name_size, group);
    watched->push = push;
    watched->group = name;
    (void)RB_INSERT(push_tree, &push->watched, watched); /* it was not there */
    push->watched_count++;
    push->hooks->on_new(watched);
    return watched;
}

static void take_off_list(struct push_watched *watched)
{
    if (watched->is_changed)
        TAILQ_REMOVE(&watched->push->changes, watched, in_changes);
    watched->is_changed = false;
}

void push_forget(struct push_watched *watched)
{
    struct push *push = watched->push;

    ASSERT(!push_is_wanted(watched));
    ASSERT(push->watched_count > 0);
    take_off_list(watched);
    (void)RB_REMOVE(push_tree, &push->watched, watched);
    push->watched_count--;
    free(watched); /* what the thread still hears of it finds nobody */
}

void push_put(struct push_watched *watched)
{
    if (watched->watchers == 0 || watched->is_changed)
        return;
    watched->is_changed = true;
    TAILQ_INSERT_TAIL(&watched->push->changes, watched, in_changes);
    wakeup_ring(watched->push->fd);
}

void push_told(struct push_watched *watched)
{
    watched->told++;
    pthread_cond_broadcast(&watched->push->changed);
}

bool push_sleep(struct push *push, gavel_ns until)
{
    return condition_wait(&push->changed, &push->lock, until);
}

int push_fd(struct store *store) { return ((struct push *)store)->fd; }

void push_watch(struct store *store, const char *group, bool is_on)
{
    struct push *push = (struct push *)store;
    struct push_watched *watched;

    if (push_is_forked(push))
        return; /* nobody would tell */
    pthread_mutex_lock(&push->lock);
    watched = is_on ? get(push, group) : push_find(push, group);
    if (watched && is_on) {
        if (watched->watchers++ == 0 && push->hooks->on_first)
            push->hooks->on_first(watched);
    } else if (watched && watched->watchers > 0 && --watched->watchers == 0) {
        take_off_list(watched);
        if (!push_is_wanted(watched))
            push->hooks->on_unwanted(watched);
    }
    pthread_mutex_unlock(&push->lock);
}

bool push_changed(struct store *store, char ret_group[NAME_MAX_BYTES + 1])
{
    struct push *push = (struct push *)store;
    struct push_watched *watched;

    if (push_is_forked(push))
        return false;
    pthread_mutex_lock(&push->lock);
    watched = TAILQ_FIRST(&push->changes);
    if (watched) {
        take_off_list(watched);
        name_copy(ret_group, NAME_MAX_BYTES + 1, watched->group);
    } else {
        wakeup_clear(push->fd);
    }
    pthread_mutex_unlock(&push->lock);
    return watched != NULL;
}

/* The group that wait() is about; the last one is not waited for any more. */
static struct push_watched *wait_for(struct push *push, const char *group)
{
    struct push_watched *watched = get(push, group);
    struct push_watched *other;
    struct push_watched *next;

    if (!watched || watched->is_waited_for)
        return watched;
    RB_FOREACH_SAFE(other, push_tree, &push->watched, next) {
        if (other->is_waited_for) {
            other->is_waited_for = false;
            if (!push_is_wanted(other))
                push->hooks->on_unwanted(other);
        }
    }
    watched->is_waited_for = true;
    return watched;
}

/* Asks for the version, without the lock; false if the server does not tell. */
static bool ask_version(struct push *push, const char *group, gavel_ns until, uint64_t *ret_version)
{
    const struct store_request request = {.op = STORE_READ, .group = group, .give_up_at = until};
    struct store_reply reply = {0};
    bool is_known;

    pthread_mutex_unlock(&push->lock);
    push->store.driver->run(&push->store, &request, &reply, 1);
    is_known = reply.status == GAVEL_OK;
    *ret_version = reply.record.version;
    store_reply_done(&reply);
    pthread_mutex_lock(&push->lock);
    return is_known;
}

/* Whether the version is another, or not known to be that one; sleeps a little while nobody can tell. */
static bool differs(struct push_watched *watched, uint64_t version, gavel_ns until)
{
    struct push *push = watched->push;
    uint64_t told_before = watched->told;
    uint64_t now_version;

    if (watched->known_told == told_before && told_before != 0 && version != UNKNOWN)
        return watched->known_version != version;
    if (!ask_version(push, watched->group, until, &now_version)) {
        (void)push_sleep(push, ns_min(until, clock_now() + RETRY)); /* the caller looks again */
        return false;
    }
    watched->known_version = now_version;
    watched->known_told = told_before; /* if more was told meanwhile it is looked at again */
    return now_version != version;
}

void push_wait(struct store *store, const char *group, uint64_t version, gavel_ns until)
{
    struct push *push = (struct push *)store;
    struct push_watched *watched;

    if (push_is_forked(push) || clock_now() >= until)
        return;
    pthread_mutex_lock(&push->lock);
    watched = wait_for(push, group);
    while (watched && clock_now() < until && !differs(watched, version, until)) {
        uint64_t told_before = watched->told;

        if (watched->known_told != told_before)
            continue; /* it is not known, or no longer */
        while (watched->told == told_before && push_sleep(push, until))
            continue;
    }
    pthread_mutex_unlock(&push->lock);
}
