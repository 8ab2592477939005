/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/realtime.h"

#include "os/thread.h"

#include <linux/capability.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (1u << 20)
#define EAGER_NICE (-20)

bool realtime_take(enum realtime realtime)
{
    const struct sched_param first = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    const struct sched_param plain = {.sched_priority = 0};

    if (realtime == REALTIME_FIRST)
        return sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) == 0;
    if (realtime == REALTIME_EAGER)
        return sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &plain) == 0 &&
               setpriority(PRIO_PROCESS, (id_t)gettid(), EAGER_NICE) == 0; /* of this thread, on Linux */
    return true;
}

static bool may_lock_all(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    struct rlimit limit;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY)
        return true;
    return syscall(SYS_capget, &header, data) == 0 && data[0].effective & 1u << CAP_IPC_LOCK;
}

/* Within a limit a lock on all that comes would make allocations fail, which is worse than being paged. */
bool realtime_lock_memory(void)
{
    return may_lock_all() && mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0;
}

struct start {
    void *(*run)(void *);
    void *user;
    enum realtime realtime;
};

static void *begin(void *user)
{
    struct start start = *(struct start *)user;

    free(user);
    (void)realtime_take(start.realtime); /* where it is not permitted, all are equal */
    return start.run(start.user);
}

int realtime_thread(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *user,
                    enum realtime realtime)
{
    struct start *start = malloc(sizeof *start);
    pthread_attr_t attributes;
    int failure;

    if (!start || pthread_attr_init(&attributes)) {
        free(start);
        return -1;
    }
    *start = (struct start){run, user, realtime};
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES); /* otherwise the default */
    failure = thread_start(ret_thread, &attributes, name, begin, start);
    (void)pthread_attr_destroy(&attributes);
    if (failure)
        free(start);
    return failure;
}
