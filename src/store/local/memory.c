/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The store `memory:name`: one rows per name, shared by all that open this
 * name in one process, gone when the last of them closes it. For tests and
 * for trying things out. Waiting is told, not polled, and so are those who
 * watch a group.
 */
#include "os/clock.h"
#include "os/process.h"
#include "os/thread.h"
#include "os/wakeup.h"
#include "store/driver.h"
#include "store/local/rows.h"

#include "base/error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A rows by name, counted by the stores that are open on it. */
struct room {
    struct room *next;
    char name[NAME_MAX_BYTES + 1];
    size_t users;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* some record has a new version */
    struct rows rows;
    struct memory_store *stores; /* that watch some group */
};

/* A group that a store is told of. */
struct watched {
    struct watched *next;
    size_t watchers;
    bool is_changed;
    char group[NAME_MAX_BYTES + 1];
};

/* What is watched is guarded by the room's lock. */
struct memory_store {
    struct store store;
    struct room *room;
    int push_fd;
    struct watched *watched;
    struct memory_store *next; /* in the room's list, if is_listed */
    bool is_listed;
};

/* The one list of rooms of this process, and the lock of the list and of the counts. */
static pthread_mutex_t rooms_lock = PTHREAD_MUTEX_INITIALIZER;
static struct room *rooms;

static struct room *room_new(const char *name)
{
    struct room *room = calloc(1, sizeof *room);

    if (!room)
        return NULL;
    name_copy(room->name, sizeof room->name, name);
    (void)pthread_mutex_init(&room->lock, NULL); /* cannot fail on Linux with these arguments */
    condition_init(&room->changed);
    return room;
}

static struct room *room_enter(const char *name)
{
    struct room *room;

    pthread_mutex_lock(&rooms_lock);
    for (room = rooms; room && strcmp(room->name, name) != 0; room = room->next)
        ;
    if (!room) {
        room = room_new(name);
        if (room) {
            room->next = rooms;
            rooms = room;
        }
    }
    if (room)
        room->users++;
    pthread_mutex_unlock(&rooms_lock);
    return room;
}

static void room_leave(struct room *room)
{
    struct room **link = &rooms;

    pthread_mutex_lock(&rooms_lock);
    if (--room->users > 0) {
        pthread_mutex_unlock(&rooms_lock);
        return;
    }
    while (*link != room)
        link = &(*link)->next;
    *link = room->next;
    pthread_mutex_unlock(&rooms_lock);
    rows_done(&room->rows);
    (void)pthread_cond_destroy(&room->changed); /* nobody is left to use them */
    (void)pthread_mutex_destroy(&room->lock);
    free(room);
}

static enum gavel_status memory_open(const char *rest, struct store **ret_store, struct gavel_error *error)
{
    struct memory_store *memory;
    enum gavel_status status = name_check("name of a memory store", rest, error);

    if (status != GAVEL_OK)
        return status;
    memory = calloc(1, sizeof *memory);
    if (memory)
        memory->room = room_enter(rest);
    if (!memory || !memory->room) {
        free(memory);
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening memory:%s", rest);
    }
    memory->push_fd = wakeup_open(); /* without one nothing is pushed */
    *ret_store = &memory->store;
    return GAVEL_OK;
}

/* The room's lock is held. */
static void leave_list(struct memory_store *memory)
{
    struct memory_store **link = &memory->room->stores;

    if (!memory->is_listed)
        return;
    while (*link != memory)
        link = &(*link)->next;
    *link = memory->next;
    memory->is_listed = false;
}

static void memory_close(struct store *store)
{
    struct memory_store *memory = (struct memory_store *)store;

    pthread_mutex_lock(&memory->room->lock);
    leave_list(memory);
    pthread_mutex_unlock(&memory->room->lock);
    while (memory->watched) {
        struct watched *watched = memory->watched;

        memory->watched = watched->next;
        free(watched);
    }
    wakeup_close(&memory->push_fd);
    room_leave(memory->room);
    free(memory);
}

/* Tells all who watch that group. The room's lock is held. */
static void push(const struct room *room, const char *group)
{
    for (struct memory_store *memory = room->stores; memory; memory = memory->next) {
        for (struct watched *watched = memory->watched; watched; watched = watched->next) {
            if (strcmp(watched->group, group) != 0)
                continue;
            watched->is_changed = true;
            wakeup_ring(memory->push_fd);
        }
    }
}

static void list_groups(const struct rows *rows, const struct store_request *request,
                        const struct rules_now *now, struct store_reply *reply)
{
    bool has_room = true;

    for (size_t i = 0; i < rows->count && has_room; i++)
        has_room = rows_list_group(request, rows->groups[i], &rows->groups[i]->mandate, now, reply);
}

static void run_mandate(struct room *room, const struct store_request *request, const struct rules_now *now,
                        struct store_reply *reply)
{
    static const struct mandate_row none;
    struct rows_group *group;
    enum gavel_status status;

    if (request->op == STORE_READ) {
        group = rows_find(&room->rows, request->group);
        rules_reply(group ? &group->mandate : &none, request, now, GAVEL_OK, reply);
        return;
    }
    group = rows_get(&room->rows, request->group);
    if (!group) {
        reply_fail(reply, GAVEL_ERR_NO_MEMORY, "out of memory while writing a record");
        return;
    }
    status = rules_apply(&group->mandate, request, now);
    rules_reply(&group->mandate, request, now, status, reply);
    if (status == GAVEL_OK)
        pthread_cond_broadcast(&room->changed);
    if (status == GAVEL_OK && request->op != STORE_RENEW) /* which is of no interest to anybody else */
        push(room, request->group);
}

static void memory_run(struct store *store, const struct store_request *requests, struct store_reply *replies,
                       size_t count)
{
    static const struct process_id nobody; /* rows do not outlive the process, so boots never matter */
    struct room *room = ((struct memory_store *)store)->room;

    pthread_mutex_lock(&room->lock);
    for (size_t i = 0; i < count; i++) {
        const struct rules_now now = {.now = clock_now(), .wall_ms = clock_wall_ms(), .self = &nobody};

        if (request_refuse(&requests[i], now.now, &replies[i]))
            continue;
        if (requests[i].op == STORE_GROUPS)
            list_groups(&room->rows, &requests[i], &now, &replies[i]);
        else if (rows_is_registry(requests[i].op))
            rows_registry(&room->rows, &requests[i], now.now, now.wall_ms, &replies[i]);
        else
            run_mandate(room, &requests[i], &now, &replies[i]);
    }
    pthread_mutex_unlock(&room->lock);
}

static uint64_t version_of(const struct room *room, const char *name)
{
    const struct rows_group *group = rows_find(&room->rows, name);

    return group ? group->mandate.record.version : 0;
}

static void memory_wait(struct store *store, const char *name, uint64_t version, gavel_ns until)
{
    struct room *room = ((struct memory_store *)store)->room;

    pthread_mutex_lock(&room->lock);
    while (version_of(room, name) == version && condition_wait(&room->changed, &room->lock, until))
        continue;
    pthread_mutex_unlock(&room->lock);
}

static int memory_push_fd(struct store *store) { return ((struct memory_store *)store)->push_fd; }

/* The room's lock is held. */
static void watch_on(struct memory_store *memory, const char *group)
{
    struct watched *watched = memory->watched;

    while (watched && strcmp(watched->group, group) != 0)
        watched = watched->next;
    if (!watched) {
        watched = calloc(1, sizeof *watched);
        if (!watched)
            return; /* whoever is not told looks again and again */
        name_copy(watched->group, sizeof watched->group, group);
        watched->next = memory->watched;
        memory->watched = watched;
    }
    watched->watchers++;
    if (!memory->is_listed) {
        memory->next = memory->room->stores;
        memory->room->stores = memory;
        memory->is_listed = true;
    }
}

/* The room's lock is held. */
static void watch_off(struct memory_store *memory, const char *group)
{
    for (struct watched **link = &memory->watched; *link; link = &(*link)->next) {
        struct watched *watched = *link;

        if (strcmp(watched->group, group) != 0)
            continue;
        if (--watched->watchers == 0) {
            *link = watched->next;
            free(watched);
        }
        return;
    }
}

static void memory_watch(struct store *store, const char *group, bool is_on)
{
    struct memory_store *memory = (struct memory_store *)store;

    if (memory->push_fd < 0)
        return;
    pthread_mutex_lock(&memory->room->lock);
    if (is_on)
        watch_on(memory, group);
    else
        watch_off(memory, group);
    pthread_mutex_unlock(&memory->room->lock);
}

static bool memory_changed(struct store *store, char ret_group[NAME_MAX_BYTES + 1])
{
    struct memory_store *memory = (struct memory_store *)store;
    struct watched *watched;

    pthread_mutex_lock(&memory->room->lock);
    for (watched = memory->watched; watched && !watched->is_changed; watched = watched->next)
        ;
    if (watched) {
        watched->is_changed = false;
        name_copy(ret_group, sizeof watched->group, watched->group);
    } else {
        wakeup_clear(memory->push_fd);
    }
    pthread_mutex_unlock(&memory->room->lock);
    return watched != NULL;
}

const struct store_driver store_memory = {
    .scheme = "memory",
    .summary = "memory:NAME          one process, for tests",
    .capabilities =
        {
            .name = "memory",
            .preset = "local",
            .clock = STORE_CLOCK_STEADY,
            .has_push = true,
        },
    .open = memory_open,
    .run = memory_run,
    .wait = memory_wait,
    .close = memory_close,
    .push_fd = memory_push_fd,
    .watch = memory_watch,
    .changed = memory_changed,
};
