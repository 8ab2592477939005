/* SPDX-License-Identifier: Apache-2.0 */

#include "net/resolve.h"

#include "os/thread.h"
#include "os/wakeup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Belongs to the thread and to the loop; whoever lets go last frees it. */
struct resolve {
    atomic_int holders;
    struct address_parts parts;
    unsigned attempt;
    int failure;
    struct sockaddr_storage address;
    socklen_t length;
    int bell;

    struct event *event;
    resolve_cb answer;
    void *user;
};

static void let_go(struct resolve *resolve)
{
    if (atomic_fetch_sub(&resolve->holders, 1) > 1)
        return;
    wakeup_close(&resolve->bell);
    free(resolve);
}

static void *ask(void *context)
{
    struct resolve *resolve = context;

    resolve->failure =
        address_look_up(&resolve->parts, resolve->attempt, &resolve->address, &resolve->length);
    wakeup_ring(resolve->bell);
    let_go(resolve);
    return NULL;
}

static void answered(evutil_socket_t fd, short events, void *context)
{
    struct resolve *resolve = context;

    (void)fd;
    (void)events;
    event_free(resolve->event);
    resolve->answer(resolve->user, resolve->failure, &resolve->address, resolve->length);
    let_go(resolve);
}

/* Without the caller's real-time priority, and without its signals. */
static int start_thread(struct resolve *resolve)
{
    struct sched_param ordinary = {0};
    pthread_attr_t attributes;
    pthread_t thread;
    int failure;

    failure = pthread_attr_init(&attributes);
    if (failure)
        return failure;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED); /* valid values cannot fail */
    (void)pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    (void)pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
    (void)pthread_attr_setschedparam(&attributes, &ordinary);
    failure = thread_start(&thread, &attributes, "gavel-resolve", ask, resolve);
    (void)pthread_attr_destroy(&attributes);
    return failure;
}

struct resolve *resolve_begin(struct event_base *base, const struct address_parts *parts, unsigned attempt,
                              resolve_cb answer, void *user)
{
    struct resolve *resolve = calloc(1, sizeof *resolve);

    if (!resolve)
        return NULL;
    atomic_init(&resolve->holders, 2);
    resolve->parts = *parts;
    resolve->attempt = attempt;
    resolve->answer = answer;
    resolve->user = user;
    resolve->bell = wakeup_open();
    resolve->event = resolve->bell < 0 ? NULL : event_new(base, resolve->bell, EV_READ, answered, resolve);
    if (!resolve->event || event_add(resolve->event, NULL) != 0 || start_thread(resolve) != 0) {
        if (resolve->event)
            event_free(resolve->event);
        wakeup_close(&resolve->bell);
        free(resolve);
        return NULL;
    }
    return resolve;
}

void resolve_cancel(struct resolve *resolve)
{
    if (!resolve)
        return;
    event_free(resolve->event);
    let_go(resolve);
}
