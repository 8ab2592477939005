/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/loop/loop.h"

#include "lib/candidate.h"
#include "lib/handle.h"
#include "lib/push.h"
#include "os/clock.h"
#include "os/thread.h"
#include "os/wakeup.h"

#include <stddef.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EVENTS_PER_PASS 64

static void drain(struct gavel *gavel, struct source *source)
{
    (void)gavel;
    wakeup_clear(source->fd);
}

static void timer_ready(struct gavel *gavel, struct source *source)
{
    gavel->timer_at = NEVER; /* it has fired and must be set anew */
    drain(gavel, source);
}

enum gavel_status loop_add(struct gavel *gavel, struct source *source)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

    return epoll_ctl(gavel->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) < 0 ? GAVEL_ERR_IO : GAVEL_OK;
}

void loop_remove(struct gavel *gavel, struct source *source)
{
    (void)epoll_ctl(gavel->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL); /* it was added */
}

void loop_listen(struct gavel *gavel, struct source *source, bool listens)
{
    struct epoll_event event = {.events = listens ? EPOLLIN : 0, .data.ptr = source};

    (void)epoll_ctl(gavel->epoll_fd, EPOLL_CTL_MOD, source->fd, &event); /* it was added */
}

enum gavel_status loop_open(struct gavel *gavel)
{
    gavel->timer_at = NEVER;
    gavel->timer = (struct source){.fd = -1, .ready = timer_ready};
    gavel->wakeup = (struct source){.fd = -1, .ready = drain};
    gavel->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (gavel->epoll_fd < 0)
        return GAVEL_ERR_IO;
    gavel->timer.fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    gavel->wakeup.fd = wakeup_open();
    if (gavel->timer.fd < 0 || gavel->wakeup.fd < 0)
        return GAVEL_ERR_IO;
    if (loop_add(gavel, &gavel->timer) != GAVEL_OK || loop_add(gavel, &gavel->wakeup) != GAVEL_OK)
        return GAVEL_ERR_IO;
    if (gavel->own_guard.line.fd >= 0 && loop_add(gavel, &gavel->own_guard.line) != GAVEL_OK)
        return GAVEL_ERR_IO;
    if (push_open(gavel) != GAVEL_OK)
        return GAVEL_ERR_IO;
    return gavel->bell.source.fd < 0 ? GAVEL_OK : loop_add(gavel, &gavel->bell.source);
}

static void close_fd(int fd)
{
    if (fd >= 0)
        (void)close(fd); /* none of them holds data */
}

void loop_close(struct gavel *gavel)
{
    watches_bury(gavel);
    close_fd(gavel->timer.fd);
    close_fd(gavel->wakeup.fd);
    close_fd(gavel->epoll_fd);
    timers_done(&gavel->timers);
    timers_done(&gavel->lapsed);
}

void loop_wake(struct gavel *gavel) { wakeup_ring(gavel->wakeup.fd); }

static struct gavel_candidate *candidate_of(struct timer *timer)
{
    return (struct gavel_candidate *)(void *)((char *)timer - offsetof(struct gavel_candidate, timer));
}

static void run_due(struct gavel *gavel)
{
    gavel_ns now = clock_now();
    struct timer *timer;

    /* Each is looked at about once: one that is always due must not starve the descriptors. */
    for (size_t n = 2 * gavel->timers.count; n > 0; n--) {
        timer = timers_first(&gavel->timers);
        if (!timer || timer->at > now)
            return;
        lib_candidate_due(candidate_of(timer));
        if (lib_session_stop_at(gavel) <= clock_now())
            lib_candidate_demote_lapsed(gavel);
    }
}

static void set_timer(struct gavel *gavel)
{
    const struct timer *first = timers_first(&gavel->timers);
    gavel_ns at = first ? first->at : NEVER;
    struct itimerspec spec;

    at = ns_min(at, lib_session_stop_at(gavel));
    at = ns_min(at, bell_unmute(gavel, clock_now()));
    at = ns_min(at, own_guard_tend(gavel, clock_now()));
    if (at == gavel->timer_at)
        return;
    gavel->timer_at = at;
    spec = clock_alarm(at);
    (void)timerfd_settime(gavel->timer.fd, TFD_TIMER_ABSTIME, &spec, NULL); /* cannot fail with these */
}

/* Answers of the store, in the order they came. */
static void feed_answers(struct gavel *gavel)
{
    struct job *job;

    while ((job = gavel->answers.first)) {
        gavel->answers.first = job->next;
        if (!job->next)
            gavel->answers.last = NULL;
        gavel->jobs--;
        if (!job->candidate || job->candidate->has_ended)
            worker_leave_for(gavel, job);
        if (job->candidate) { /* only this thread sets it to NULL */
            job->candidate->jobs--;
            lib_candidate_reply(job->candidate, job);
        }
        job_free(job);
        if (lib_session_stop_at(gavel) <= clock_now()) /* their callbacks may have taken long */
            lib_candidate_demote_lapsed(gavel);
    }
}

/* What the store has told before these answers is taken in before them. */
static void take_in_finished(struct gavel *gavel)
{
    pthread_mutex_lock(&gavel->mutex);
    job_queue_move(&gavel->finished, &gavel->answers);
    pthread_mutex_unlock(&gavel->mutex);
    if (lib_session_take_news(gavel))
        feed_answers(gavel);
}

void loop_pass(struct gavel *gavel, int timeout_ms)
{
    struct epoll_event events[EVENTS_PER_PASS];
    int count = epoll_wait(gavel->epoll_fd, events, EVENTS_PER_PASS, timeout_ms);

    lib_candidate_demote_lapsed(gavel); /* before anything that may take long */
    for (int i = 0; i < count; i++) {
        struct source *source = events[i].data.ptr;

        source->ready(gavel, source);
    }
    command_run_queued(gavel);
    take_in_finished(gavel);
    lib_session_tell_waiting(gavel);
    lib_candidate_start_waiting(gavel);
    lib_candidate_demote_lapsed(gavel);
    run_due(gavel);
    worker_flush(gavel);
    lib_candidate_remove_departed(gavel);
    watches_bury(gavel);
    set_timer(gavel);
    pthread_mutex_lock(&gavel->mutex);
    if (gavel->answers.first || lib_session_has_news(gavel))
        loop_wake(gavel); /* the rest comes with the next pass */
    if (gavel->waiters > 0)
        pthread_cond_broadcast(&gavel->changed);
    pthread_mutex_unlock(&gavel->mutex);
}

static void *run(void *argument)
{
    struct gavel *gavel = argument;
    bool is_stopping = false;

    pthread_mutex_lock(&gavel->mutex);
    gavel->is_driving = true;
    gavel->driver = pthread_self();
    pthread_mutex_unlock(&gavel->mutex);
    while (!is_stopping) {
        loop_pass(gavel, -1);
        pthread_mutex_lock(&gavel->mutex);
        is_stopping = gavel->is_stopping;
        pthread_mutex_unlock(&gavel->mutex);
    }
    return NULL;
}

enum gavel_status loop_start_thread(struct gavel *gavel)
{
    gavel->has_thread = thread_start(&gavel->thread, NULL, "gavel-loop", run, gavel) == 0;
    return gavel->has_thread ? GAVEL_OK : GAVEL_ERR_NO_MEMORY;
}

void loop_stop_thread(struct gavel *gavel)
{
    if (!gavel->has_thread)
        return;
    pthread_mutex_lock(&gavel->mutex);
    gavel->is_stopping = true;
    loop_wake(gavel);
    pthread_mutex_unlock(&gavel->mutex);
    pthread_join(gavel->thread, NULL);
    gavel->has_thread = false;
}
