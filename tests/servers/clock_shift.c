/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A library to preload into a server (or into gavel), so that its wall clock
 * is off, and steps while it runs: nobody may set the clock of the machine for
 * a test.
 *
 *     LD_PRELOAD=clock_shift.so CLOCK_SHIFT_FILE=FILE mariadbd …
 *
 * The file holds one int64_t in the machine's own order: nanoseconds that are
 * added to the wall clock. It is mapped, so a write to it is a step of the
 * clock. Clocks that measure durations are left alone, as a step of a real
 * clock leaves them alone. Programs that ask the kernel without the C library
 * (Go) are not reached.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

/* Instants of a waiting call that are later than this, in seconds, are of the wall clock: no machine has been
 * up for thirty years. */
#define WALL_SINCE INT64_C(1000000000)

static const _Atomic int64_t no_shift;
static const _Atomic int64_t *shift_at = &no_shift;
static int (*real_wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

__attribute__((constructor)) static void map_file(void)
{
    const char *path = getenv("CLOCK_SHIFT_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page;

    /* A pointer to data, says dlsym(), whatever it is. */
    *(void **)&real_wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    if (fd < 0)
        return;
    page = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    (void)close(fd); /* the mapping keeps it */
    if (page != MAP_FAILED)
        shift_at = page;
}

static void add(struct timespec *t, int64_t shift)
{
    int64_t ns = t->tv_nsec + shift % NS_PER_S;

    t->tv_sec += (time_t)(shift / NS_PER_S);
    if (ns < 0) {
        ns += NS_PER_S;
        t->tv_sec--;
    } else if (ns >= NS_PER_S) {
        ns -= NS_PER_S;
        t->tv_sec++;
    }
    t->tv_nsec = (long)ns;
}

/* Also found by those who call it from inside other libraries of the program. */
int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    if (syscall(SYS_clock_gettime, clock, ret_time) != 0)
        return -1;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        add(ret_time, atomic_load_explicit(shift_at, memory_order_relaxed));
    return 0;
}

int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
    struct timespec now;

    (void)zone; /* nobody has used it for decades */
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    *ret_time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *ret_time)
{
    struct timespec now;

    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return (time_t)-1;
    if (ret_time)
        *ret_time = now.tv_sec;
    return now.tv_sec;
}

/* The kernel waits by the clock as it is. */
int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    struct timespec shifted = *until;

    if (!real_wait)
        return EINVAL;
    if (shifted.tv_sec > WALL_SINCE)
        add(&shifted, -atomic_load_explicit(shift_at, memory_order_relaxed));
    return real_wait(condition, mutex, &shifted);
}
