/* SPDX-License-Identifier: Apache-2.0 */

#include "net/resolve.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

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
    (void)close(resolve->bell);
    free(resolve);
}

static void *ask(void *context)
{
    struct resolve *resolve = context;
    uint64_t one = 1;

    resolve->failure =
        address_look_up(&resolve->parts, resolve->attempt, &resolve->address, &resolve->length);
    (void)!write(resolve->bell, &one, sizeof one); /* an eventfd at 0 takes it */
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
    sigset_t all, before;
    pthread_t thread;
    int failure;

    failure = pthread_attr_init(&attributes);
    if (failure)
        return failure;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED); /* valid values cannot fail */
    (void)pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    (void)pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
    (void)pthread_attr_setschedparam(&attributes, &ordinary);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    failure = pthread_create(&thread, &attributes, ask, resolve);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
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
    resolve->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    resolve->event = resolve->bell < 0 ? NULL : event_new(base, resolve->bell, EV_READ, answered, resolve);
    if (!resolve->event || event_add(resolve->event, NULL) != 0 || start_thread(resolve) != 0) {
        if (resolve->event)
            event_free(resolve->event);
        if (resolve->bell >= 0)
            (void)close(resolve->bell);
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
