/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Push: the state of a store whose own thread learns of changes. Which groups
 * are wanted, which have changed, and who waits for what.
 *
 *     caller ── watch(), wait() ──► watched groups ──► hooks: the driver subscribes at its server
 *     caller ◄── fd, changed() ◄─── changes        ◄── push_put(), push_told() by the driver's thread
 *
 * A group is watched as long as it is wanted: by a caller of store_watch(), or
 * as the last group that store_wait() was called for, since it is called
 * repeatedly for the same one.
 *
 * The driver's struct begins with `struct push`; its lock also guards
 * everything else that the driver shares with its thread.
 */
#ifndef STORE_PUSH_H
#define STORE_PUSH_H

#include "store/driver.h"

#include <bsd/sys/tree.h>
#include <pthread.h>
#include <sys/queue.h>
#include <sys/types.h>

struct push;

/* A watched group. The driver's own struct, if it has one, begins with this. */
struct push_watched {
    RB_ENTRY(push_watched) by_name;
    TAILQ_ENTRY(push_watched) in_changes;
    struct push *push;
    const char *group;
    size_t watchers;    /* of store_watch() */
    bool is_waited_for; /* by store_wait(), now or the last time */
    bool is_changed;    /* store_changed() will report it */
    uint64_t told;      /* number of reports about it */
    uint64_t known_version;
    uint64_t known_told; /* the value of `told` at that time; 0: never */
};
RB_HEAD(push_tree, push_watched);
TAILQ_HEAD(push_list, push_watched);

/* Called with the lock held. */
struct push_hooks {
    size_t watched_size;                            /* of the driver's struct for a watched group */
    void (*on_new)(struct push_watched *watched);   /* this group was not wanted before */
    void (*on_first)(struct push_watched *watched); /* its first store_watch(); may be NULL */
    /* It is no longer wanted: call push_forget(), now or later. */
    void (*on_unwanted)(struct push_watched *watched);
};

struct push {
    struct store store;
    const struct push_hooks *hooks;
    pid_t pid; /* a forked child has no thread and must not use the connections */
    int fd;    /* readable while there are changes; -1: out of descriptors */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* signals whatever a caller or the thread may wait for */
    struct push_tree watched;
    size_t watched_count;
    struct push_list changes;
};

void push_init(struct push *push, const struct push_hooks *hooks);
/* After the thread has ended. Forgets all groups without calling a hook. */
void push_done(struct push *push);

/* Whether this process is a fork of the one that opened the store. */
bool push_is_forked(const struct push *push);

/* ---- For the driver's table: .push_fd, .watch, .changed, .wait. Without the lock. ---- */

int push_fd(struct store *store);
void push_watch(struct store *store, const char *group, bool is_on);
bool push_changed(struct store *store, char ret_group[NAME_MAX_BYTES + 1]);
void push_wait(struct store *store, const char *group, uint64_t version, gavel_ns until);

/* ---- For the driver's thread, with the lock held ---- */

/* NULL: it is not wanted. */
struct push_watched *push_find(struct push *push, const char *group);
/* One after the other, in the order of their names; NULL after the last. */
struct push_watched *push_first(struct push *push);
struct push_watched *push_next(struct push_watched *watched);
bool push_is_wanted(const struct push_watched *watched);
/* Makes store_changed() report it, if it is watched. */
void push_put(struct push_watched *watched);
/* Its version may have changed: those who wait look again. */
void push_told(struct push_watched *watched);
/* It is no longer wanted. Frees it. */
void push_forget(struct push_watched *watched);
/* Waits for `changed`; false when `until` has come. */
bool push_sleep(struct push *push, gavel_ns until);

#endif
