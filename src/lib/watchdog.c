/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/watchdog.h"

#include "lib/thread.h"
#include "os/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

static void set_timer(struct watchdog *watchdog, gavel_ns at)
{
    struct itimerspec spec = {0};

    watchdog->wake_at = at;
    if (at != NEVER) {
        spec.it_value.tv_sec = at / NS_PER_S;
        spec.it_value.tv_nsec = at % NS_PER_S;
    }
    /* All zero disarms. It cannot fail with a valid descriptor and instant. */
    (void)timerfd_settime(watchdog->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

/* The only message that this library ever writes: nobody would be left to read an event. */
static _Noreturn void die(const struct watchdog_entry *entry, gavel_ns now)
{
    char message[512];
    int length = snprintf(
        message, sizeof message,
        "gavel: group \"%s\": the work of epoch %" PRIu64 " had not stopped by its deadline (%" PRId64
        " ms ago); aborting, so that another process may lead safely. Make on_demoted return "
        "sooner, or raise stop_grace_ms.\n",
        entry->group, entry->epoch, (int64_t)ms_from_ns(now - entry->deadline));

    if (length > (int)sizeof message - 1)
        length = (int)sizeof message - 1;
    if (write(STDERR_FILENO, message, (size_t)length) < 0)
        abort(); /* without a word, then */
    abort();
}

/* Looks for the earliest deadline and sleeps until it. Mutex held. */
static void look(struct watchdog *watchdog)
{
    gavel_ns now = clock_now();
    gavel_ns earliest = NEVER;

    for (const struct watchdog_entry *entry = watchdog->armed; entry; entry = entry->next) {
        if (entry->deadline <= now)
            die(entry, now);
        earliest = ns_min(earliest, entry->deadline);
    }
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

enum gavel_status watchdog_start(struct watchdog *watchdog)
{
    enum gavel_status status;

    *watchdog = (struct watchdog){.wake_at = NEVER};
    watchdog->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (watchdog->timer_fd < 0)
        return GAVEL_ERR_IO;
    pthread_mutex_init(&watchdog->mutex, NULL);
    status = thread_start(&watchdog->thread, "gavel-deadline", run, watchdog);
    if (status != GAVEL_OK) {
        pthread_mutex_destroy(&watchdog->mutex);
        (void)close(watchdog->timer_fd); /* nothing was written to it */
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
    pthread_mutex_destroy(&watchdog->mutex);
    (void)close(watchdog->timer_fd); /* nothing was written to it */
}

void watchdog_arm(struct watchdog *watchdog, struct watchdog_entry *entry, uint64_t epoch, gavel_ns deadline)
{
    pthread_mutex_lock(&watchdog->mutex);
    if (entry->deadline == NEVER) {
        entry->previous = NULL;
        entry->next = watchdog->armed;
        if (entry->next)
            entry->next->previous = entry;
        watchdog->armed = entry;
    }
    entry->epoch = epoch;
    entry->deadline = deadline;
    if (deadline < watchdog->wake_at)
        set_timer(watchdog, deadline);
    pthread_mutex_unlock(&watchdog->mutex);
}

void watchdog_disarm(struct watchdog *watchdog, struct watchdog_entry *entry)
{
    gavel_ns now = clock_now();

    pthread_mutex_lock(&watchdog->mutex);
    if (entry->deadline != NEVER) {
        if (entry->deadline <= now)
            die(entry, now);
        if (entry->previous)
            entry->previous->next = entry->next;
        else
            watchdog->armed = entry->next;
        if (entry->next)
            entry->next->previous = entry->previous;
        entry->deadline = NEVER;
    }
    pthread_mutex_unlock(&watchdog->mutex);
}
