/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/guard/watchdog.h"

#include "os/clock.h"
#include "os/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

static void set_timer(struct watchdog *watchdog, gavel_ns at)
{
    const struct itimerspec spec = clock_alarm(at);

    watchdog->wake_at = at;
    /* It cannot fail with a valid descriptor and instant. */
    (void)timerfd_settime(watchdog->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

/* The only message that this library ever writes: nobody would be left to read an event. */
static void say_why(const struct watchdog_entry *entry, gavel_ns deadline, gavel_ns now)
{
    struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
    char message[512];
    int length = snprintf(
        message, sizeof message,
        "gavel: group \"%s\": the work of epoch %" PRIu64 " had not stopped by its deadline (%" PRId64
        " ms ago); aborting, so that another process may lead safely. Make on_demoted return sooner, or raise stop_grace_ms.\n",
        entry->group, entry->epoch, (int64_t)ms_from_ns(now - deadline));

    if (length > (int)sizeof message - 1)
        length = (int)sizeof message - 1;
    /* A full pipe or a terminal that is held must not keep us: then without a word. */
    if (poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT) != 0 &&
        write(STDERR_FILENO, message, (size_t)length) < 0)
        return;
}

/*
 * No code of the program runs from here on: a SIGABRT handler of its own
 * could take any time, while its other threads go on working. Should anything
 * here hang all the same, the killer is set already.
 */
static _Noreturn void die(const struct watchdog_entry *entry, gavel_ns deadline, gavel_ns now)
{
    say_why(entry, deadline, now);
    (void)signal(SIGABRT, SIG_DFL); /* cannot fail for this signal */
    abort();
}

/* Tells of an overrun, without the mutex meanwhile. */
static void report(struct watchdog *watchdog, struct watchdog_entry *entry)
{
    uint64_t epoch = entry->epoch;

    entry->is_reported = true;
    watchdog->reporting = entry; /* it is not freed as long as this stands */
    pthread_mutex_unlock(&watchdog->mutex);
    entry->report(entry, epoch);
    pthread_mutex_lock(&watchdog->mutex);
    watchdog->reporting = NULL;
    pthread_cond_broadcast(&watchdog->reported);
}

static struct watchdog_entry *entry_of(struct timer *bound)
{
    return (struct watchdog_entry *)(void *)((char *)bound - offsetof(struct watchdog_entry, bound));
}

/* When the first of these must have stopped; NEVER if there is none. */
static gavel_ns first_deadline(const struct watchdog *watchdog, const struct timers *bound)
{
    const struct timer *first = timers_first(bound);

    return first ? watchdog->session_deadline + first->at : NEVER;
}

/* When the work must have stopped, by whatever comes first; NEVER: nothing says so. */
static gavel_ns deadline_of(const struct watchdog *watchdog, const struct watchdog_entry *entry)
{
    return entry->is_bound ? ns_min(entry->deadline, watchdog->session_deadline - entry->margin)
                           : entry->deadline;
}

/* Aborts if one of those that are for it has not stopped in time. */
static void survey_aborts(const struct watchdog *watchdog, gavel_ns now)
{
    gavel_ns deadline = first_deadline(watchdog, &watchdog->bound_to_abort);

    if (deadline <= now)
        die(entry_of(timers_first(&watchdog->bound_to_abort)), deadline, now);
    for (const struct watchdog_entry *entry = watchdog->armed; entry; entry = entry->next)
        if (entry->deadline <= now && !entry->report)
            die(entry, entry->deadline, now);
}

/* The first entry of the session that has to be reported now, or NULL. */
static struct watchdog_entry *survey_session(struct watchdog *watchdog, gavel_ns now)
{
    struct watchdog_entry *entry;

    while (first_deadline(watchdog, &watchdog->bound_to_report) <= now) {
        entry = entry_of(timers_first(&watchdog->bound_to_report));
        timers_set(&watchdog->bound_to_report, &entry->bound, NEVER);
        entry->next_reported = watchdog->bound_reported;
        watchdog->bound_reported = entry;
        if (!entry->is_reported) /* else by the end of its term */
            return entry;
    }
    return NULL;
}

/* The first entry that has to be reported now, or NULL; then *ret_earliest is the next deadline. */
static struct watchdog_entry *survey(struct watchdog *watchdog, gavel_ns *ret_earliest)
{
    gavel_ns now = clock_now();
    gavel_ns earliest;
    struct watchdog_entry *bound;

    survey_aborts(watchdog, now);
    for (struct watchdog_entry *entry = watchdog->armed; entry; entry = entry->next)
        if (entry->deadline <= now && !entry->is_reported)
            return entry;
    bound = survey_session(watchdog, now);
    if (bound)
        return bound;
    earliest = ns_min(first_deadline(watchdog, &watchdog->bound_to_abort),
                      first_deadline(watchdog, &watchdog->bound_to_report));
    for (const struct watchdog_entry *entry = watchdog->armed; entry; entry = entry->next)
        if (!entry->is_reported)
            earliest = ns_min(earliest, entry->deadline);
    *ret_earliest = earliest;
    return NULL;
}

/* Does what is due and sleeps until the earliest deadline. Mutex held. */
static void look(struct watchdog *watchdog)
{
    struct watchdog_entry *entry;
    gavel_ns earliest;

    while ((entry = survey(watchdog, &earliest)))
        report(watchdog, entry);
    set_timer(watchdog, earliest);
}

static void *run(void *argument)
{
    struct watchdog *watchdog = argument;
    bool is_stopping = false;

    while (!is_stopping) {
        uint64_t expirations;

        if (read(watchdog->timer_fd, &expirations, sizeof expirations) < 0 && errno != EINTR)
            abort(); /* without a timer nobody would keep the deadlines */
        pthread_mutex_lock(&watchdog->mutex);
        is_stopping = watchdog->is_stopping;
        if (!is_stopping)
            look(watchdog);
        pthread_mutex_unlock(&watchdog->mutex);
    }
    return NULL;
}

static void tear_down(struct watchdog *watchdog)
{
    killer_close(&watchdog->killer);
    timers_done(&watchdog->bound_to_abort);
    timers_done(&watchdog->bound_to_report);
    pthread_cond_destroy(&watchdog->reported);
    pthread_mutex_destroy(&watchdog->mutex);
    (void)close(watchdog->timer_fd); /* nothing was written to it */
}

enum gavel_status watchdog_start(struct watchdog *watchdog)
{
    enum gavel_status status;

    *watchdog = (struct watchdog){.wake_at = NEVER, .session_kill = {.at = NEVER, .index = TIMER_OUT}};
    watchdog->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (watchdog->timer_fd < 0)
        return GAVEL_ERR_IO;
    pthread_mutex_init(&watchdog->mutex, NULL);
    pthread_cond_init(&watchdog->reported, NULL);
    status = killer_open(&watchdog->killer);
    if (status == GAVEL_OK && thread_start(&watchdog->thread, NULL, "gavel-deadline", run, watchdog))
        status = GAVEL_ERR_NO_MEMORY;
    if (status != GAVEL_OK) {
        tear_down(watchdog);
        return status;
    }
    watchdog->has_thread = true;
    return GAVEL_OK;
}

void watchdog_stop(struct watchdog *watchdog)
{
    if (!watchdog->has_thread)
        return;
    pthread_mutex_lock(&watchdog->mutex);
    watchdog->is_stopping = true;
    set_timer(watchdog, 1);
    pthread_mutex_unlock(&watchdog->mutex);
    pthread_join(watchdog->thread, NULL);
    watchdog->has_thread = false;
    tear_down(watchdog);
}

enum gavel_status watchdog_reserve(struct watchdog *watchdog, size_t count)
{
    enum gavel_status status;

    pthread_mutex_lock(&watchdog->mutex);
    status = killer_reserve(&watchdog->killer, count + 1); /* and the session */
    if (status == GAVEL_OK)
        status = timers_reserve(&watchdog->bound_to_abort, count);
    if (status == GAVEL_OK)
        status = timers_reserve(&watchdog->bound_to_report, count);
    pthread_mutex_unlock(&watchdog->mutex);
    return status;
}

/* Mutex held, as with all below. */
static void list_armed(struct watchdog *watchdog, struct watchdog_entry *entry)
{
    entry->previous = NULL;
    entry->next = watchdog->armed;
    if (entry->next)
        entry->next->previous = entry;
    watchdog->armed = entry;
}

static void unlist_armed(struct watchdog *watchdog, struct watchdog_entry *entry)
{
    if (entry->previous)
        entry->previous->next = entry->next;
    else
        watchdog->armed = entry->next;
    if (entry->next)
        entry->next->previous = entry->previous;
}

/* Gives it a deadline of its own, or takes that away. */
static void set_own(struct watchdog *watchdog, struct watchdog_entry *entry, gavel_ns deadline,
                    gavel_ns kill_at)
{
    /* First, so that nothing that happens here can come before it. */
    if (!entry->report)
        killer_set(&watchdog->killer, &entry->kill, kill_at);
    if (entry->deadline == NEVER && deadline != NEVER)
        list_armed(watchdog, entry);
    if (entry->deadline != NEVER && deadline == NEVER)
        unlist_armed(watchdog, entry);
    entry->deadline = deadline;
}

static struct timers *heap_of(struct watchdog *watchdog, const struct watchdog_entry *entry)
{
    return entry->report ? &watchdog->bound_to_report : &watchdog->bound_to_abort;
}

/* The process must not outlive the first of those that would have aborted it. */
static void set_session_kill(struct watchdog *watchdog)
{
    const struct timer *first = timers_first(&watchdog->bound_to_abort);
    gavel_ns margin = first ? -first->at : 0;

    killer_set(&watchdog->killer, &watchdog->session_kill,
               first ? watchdog->session_deadline - margin + margin / 2 : NEVER);
}

static void unbind(struct watchdog *watchdog, struct watchdog_entry *entry)
{
    struct watchdog_entry **link = &watchdog->bound_reported;

    if (!entry->is_bound)
        return;
    entry->is_bound = false;
    if (entry->bound.index == TIMER_OUT) {
        while (*link != entry)
            link = &(*link)->next_reported;
        *link = entry->next_reported;
        return;
    }
    timers_set(heap_of(watchdog, entry), &entry->bound, NEVER);
    set_session_kill(watchdog);
}

/* It has another deadline since it had `before`, which may be missed as well. */
static void begin_anew(const struct watchdog *watchdog, struct watchdog_entry *entry, gavel_ns before)
{
    if (before == NEVER || deadline_of(watchdog, entry) > before)
        entry->is_reported = false;
}

static void wake_by(struct watchdog *watchdog, gavel_ns deadline)
{
    if (deadline < watchdog->wake_at)
        set_timer(watchdog, deadline);
}

void watchdog_arm(struct watchdog *watchdog, struct watchdog_entry *entry, uint64_t epoch, gavel_ns deadline,
                  gavel_ns kill_at)
{
    gavel_ns before;

    pthread_mutex_lock(&watchdog->mutex);
    before = deadline_of(watchdog, entry);
    set_own(watchdog, entry, deadline, kill_at);
    unbind(watchdog, entry);
    begin_anew(watchdog, entry, before);
    entry->epoch = epoch;
    wake_by(watchdog, deadline);
    pthread_mutex_unlock(&watchdog->mutex);
}

void watchdog_bind(struct watchdog *watchdog, struct watchdog_entry *entry, uint64_t epoch, gavel_ns margin,
                   gavel_ns deadline)
{
    gavel_ns before;

    pthread_mutex_lock(&watchdog->mutex);
    before = deadline_of(watchdog, entry);
    if (!entry->is_bound) { /* the margin of a group does not change */
        entry->is_bound = true;
        entry->margin = margin;
        timers_set(heap_of(watchdog, entry), &entry->bound, -margin);
        set_session_kill(watchdog);
    }
    set_own(watchdog, entry, deadline, deadline == NEVER ? NEVER : deadline + margin / 2);
    begin_anew(watchdog, entry, before);
    entry->epoch = epoch;
    wake_by(watchdog, deadline_of(watchdog, entry));
    pthread_mutex_unlock(&watchdog->mutex);
}

void watchdog_move_session(struct watchdog *watchdog, gavel_ns deadline)
{
    pthread_mutex_lock(&watchdog->mutex);
    watchdog->session_deadline = deadline;
    while (watchdog->bound_reported) {
        struct watchdog_entry *entry = watchdog->bound_reported;

        watchdog->bound_reported = entry->next_reported;
        entry->is_reported = false;
        timers_set(heap_of(watchdog, entry), &entry->bound, -entry->margin);
    }
    set_session_kill(watchdog);
    wake_by(watchdog, ns_min(first_deadline(watchdog, &watchdog->bound_to_abort),
                             first_deadline(watchdog, &watchdog->bound_to_report)));
    pthread_mutex_unlock(&watchdog->mutex);
}

/* Mutex held. */
static void wait_for_report(struct watchdog *watchdog, const struct watchdog_entry *entry)
{
    while (watchdog->reporting == entry)
        pthread_cond_wait(&watchdog->reported, &watchdog->mutex);
}

void watchdog_disarm(struct watchdog *watchdog, struct watchdog_entry *entry)
{
    gavel_ns now = clock_now();
    gavel_ns deadline;

    pthread_mutex_lock(&watchdog->mutex);
    deadline = deadline_of(watchdog, entry);
    if (deadline != NEVER) {
        if (deadline <= now && !entry->report)
            die(entry, deadline, now);
        wait_for_report(watchdog, entry);
        unbind(watchdog, entry);
        set_own(watchdog, entry, NEVER, NEVER);
    }
    pthread_mutex_unlock(&watchdog->mutex);
}

bool watchdog_take_report(struct watchdog *watchdog, struct watchdog_entry *entry)
{
    bool is_first;

    pthread_mutex_lock(&watchdog->mutex);
    is_first = !entry->is_reported;
    entry->is_reported = true;
    pthread_mutex_unlock(&watchdog->mutex);
    return is_first;
}

void watchdog_wait_for_report(struct watchdog *watchdog, const struct watchdog_entry *entry)
{
    pthread_mutex_lock(&watchdog->mutex);
    wait_for_report(watchdog, entry);
    pthread_mutex_unlock(&watchdog->mutex);
}

bool watchdog_is_reporter(const struct watchdog *watchdog)
{
    return watchdog->has_thread && pthread_equal(watchdog->thread, pthread_self());
}
