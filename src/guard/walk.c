/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The walk by the kernel's lists of children, /proc/PID/task/TID/children:
 * it costs as much as the tree is large, however many other processes run.
 *
 *     pidfd_open(pid) ── stat ── its children ── pidfd_send_signal
 *         holds it                                  still there: all that was
 *                                                   read was about this process
 *
 * The number of a process that is held cannot be given to another before it
 * is reaped, and a signal reaches only who is not reaped. So one signal at the
 * end vouches for everything that was read in between, and where it fails,
 * that is forgotten.
 */
#include "guard/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* The nice value of the dying. */
#define EAGER_TO_DIE (-20)

/* So many visits in a row take a millisecond or a few. */
#define YIELD_EVERY 64

void walk_init(struct walk *walk, struct tree *tree, int signal_number, pid_t session)
{
    walk->tree = tree;
    walk->signal_number = signal_number;
    walk->session = session;
    walk->most = SIZE_MAX;
    walk->self = getpid();
    walk->own_session = getsid(0);
    walk->last_group = 0;
    walk->began_ticks = proc_now_ticks();
    walk->count = 0;
    walk->pages = 0;
    walk->seen = 0;
    walk->has_missed = false;
    walk->pending_count = 0;
}

static bool is_wanted(const struct walk *walk, const struct proc_stat *stat)
{
    return walk->session == 0 || stat->session == walk->session;
}

/* A sum, so that the order in which processes are met does not matter. */
static void note_seen(struct walk *walk, pid_t pid, const struct proc_stat *stat)
{
    uint64_t mix = ((uint64_t)pid << 33) ^ (stat->start_ticks << 1) ^ (proc_is_dead(stat) ? 1 : 0);

    mix *= UINT64_C(0x9E3779B97F4A7C15);
    walk->seen += mix ^ (mix >> 29);
}

/*
 * One call that no fork can slip through: the kernel signals a group as a
 * whole. A session that is not ours was begun inside the tree, so all of its
 * groups belong to the tree too. The group keeps its number while a member is
 * not reaped, and it is we who reap this one.
 */
void walk_kill_group(struct walk *walk, const struct proc_stat *stat)
{
    if (walk->signal_number != SIGKILL || !is_wanted(walk, stat) || stat->parent != walk->self)
        return;
    if (stat->session == walk->own_session || stat->session <= 0 || stat->group <= 1)
        return;
    if (stat->group == walk->last_group)
        return;
    walk->last_group = stat->group;
    (void)kill(-stat->group, SIGKILL); /* each member is met by itself as well */
    /*
     * Whoever is killed has to be scheduled once more to die, and on a busy
     * machine its turn may come after the deadline. It runs no code of its own
     * any more. Where it is not permitted it dies as it can.
     */
    (void)setpriority(PRIO_PGRP, (id_t)stat->group, EAGER_TO_DIE);
}

bool walk_meet(struct walk *walk, int pidfd, pid_t pid, const struct proc_stat *stat)
{
    bool is_alive = !proc_is_dead(stat);
    bool wants = is_wanted(walk, stat) && is_alive;

    if (!proc_signal(pidfd, wants ? walk->signal_number : 0)) {
        walk->has_missed = true; /* whom it left behind is met by a later walk */
        return false;
    }
    note_seen(walk, pid, stat);
    if (wants) {
        walk->count++;
        walk->pages += stat->pages;
    }
    return true;
}

static void push(struct walk *walk, pid_t pid, uint32_t ticks, bool is_child)
{
    if (walk->pending_count == WALK_PENDING_MAX) {
        walk->has_missed = true;
        return;
    }
    walk->pending[walk->pending_count].pid = pid;
    walk->pending[walk->pending_count].ticks = ticks;
    walk->pending[walk->pending_count].is_child = is_child;
    walk->pending_count++;
}

/* Reads the children of one thread. False with errno if it cannot. */
static bool list_children(struct walk *walk, pid_t pid, pid_t thread)
{
    char path[PROC_PATH_MAX];
    char text[4096];
    /* Before the list is read: who is on it was born by then, or is met by a later walk. */
    uint32_t ticks = (uint32_t)(proc_now_ticks() - walk->began_ticks);
    pid_t number = 0;
    ssize_t size;
    int problem;
    int fd;

    proc_path(path, pid, "/task/", thread, "/children");
    fd = proc_open(walk->tree, path, 0);
    if (fd < 0)
        return false;
    while ((size = read(fd, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < size; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                number = number * 10 + (text[i] - '0');
            } else if (number > 0) {
                push(walk, number, ticks, pid == walk->self);
                number = 0;
            }
        }
    }
    problem = errno;
    (void)close(fd); /* only read from */
    errno = problem;
    return size == 0;
}

struct threads {
    struct walk *walk;
    pid_t pid;
    pid_t done; /* the one that was read already; 0: none */
};

static void list_children_of_thread(void *user, pid_t thread)
{
    struct threads *threads = user;

    if (thread != threads->done && !list_children(threads->walk, threads->pid, thread) && errno != ENOENT &&
        errno != ESRCH)
        threads->walk->has_missed = true; /* a thread that has ended has left its children to another one */
}

/* Children belong to the thread that made them. */
static void list_all_children(struct walk *walk, pid_t pid, pid_t done)
{
    struct threads threads = {.walk = walk, .pid = pid, .done = done};
    char path[PROC_PATH_MAX];

    proc_path(path, pid, "/task", 0, "");
    if (!proc_list(walk->tree, path, list_children_of_thread, &threads))
        walk->has_missed = true;
}

/*
 * Held by its pidfd. A child of ours that /proc hides (hidepid, and not
 * dumpable) is met all the same; what is below it comes to us when it is dead.
 */
static void visit_held(struct walk *walk, int pidfd, pid_t pid, uint64_t listed_ticks, bool is_child)
{
    size_t pending_before = walk->pending_count;
    struct proc_stat stat;

    if (!proc_read_stat(walk->tree, pid, &stat)) {
        walk->has_missed = true; /* gone, or hidden from us */
        if (is_child && walk->session == 0 && proc_signal(pidfd, walk->signal_number))
            walk->count++;
        return;
    }
    if (stat.start_ticks > listed_ticks) {
        walk->has_missed = true; /* another process by now */
        return;
    }
    walk_kill_group(walk, &stat);
    if (!proc_is_dead(&stat)) {
        if (stat.threads > 1)
            list_all_children(walk, pid, 0);
        else if (!list_children(walk, pid, pid))
            walk->has_missed = true;
    }
    if (!walk_meet(walk, pidfd, pid, &stat))
        walk->pending_count = pending_before;
}

static void visit(struct walk *walk, pid_t pid, uint64_t listed_ticks, bool is_child)
{
    int pidfd = proc_open_pidfd(walk->tree, pid);

    if (pidfd < 0) {
        walk->has_missed = true; /* gone, or there is no descriptor at all */
        return;
    }
    visit_held(walk, pidfd, pid, listed_ticks, is_child);
    (void)close(pidfd); /* it holds nothing that could be lost */
}

bool walk_children(struct walk *walk)
{
    size_t visits = 0;

    /* The first thread of a living process is always there, so only the kernel can be without its list. */
    if (!list_children(walk, walk->self, walk->self)) {
        if (errno == ENOENT)
            return false;
        walk->has_missed = true;
    }
    list_all_children(walk, walk->self, walk->self);
    while (walk->pending_count > 0 && walk->count < walk->most) {
        /* The guards of other groups have the same precedence, and deadlines of their own. */
        if (++visits % YIELD_EVERY == 0)
            (void)sched_yield(); /* cannot fail */
        walk->pending_count--;
        visit(walk, walk->pending[walk->pending_count].pid,
              walk->began_ticks + walk->pending[walk->pending_count].ticks,
              walk->pending[walk->pending_count].is_child);
    }
    return true;
}
