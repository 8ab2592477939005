/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ending a tree of processes that may not want to end.
 *
 *   cgroup.kill           everybody in the cgroup in one call, if there is one
 *   kill(-group)          every group that a child of ours is in, in one call each
 *   walk, pidfd by pidfd  whoever is left: sessions of their own, those that were moved out
 *   wait                  until there is no child
 *
 * and again, until wait(2) says ECHILD. Who forks away from a pass loses its
 * parent to it, becomes a child of ours and stands first in line in the next.
 */
#include "guard/tree.h"

#include "base/error.h"
#include "guard/cgroup.h"
#include "guard/walk.h"
#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Passes to come to a 0 that holds; something that keeps moving for longer is there. */
#define PASSES_MAX 4

#define EXIT_NOT_ENTERED 126

/* Between looks at whether the killed have died. */
#define PAUSE_MIN (50 * NS_PER_US)
#define PAUSE_MAX (2 * NS_PER_MS)

/* Who has not died after so long may never: it is in the kernel's hands, or not ours to signal. */
#define PATIENCE (5 * NS_PER_S)
#define PAUSE_LONG (100 * NS_PER_MS)

void tree_init(struct tree *tree)
{
    *tree = (struct tree){.cgroup_fd = -1, .procs_fd = -1, .kill_fd = -1, .events_fd = -1, .proc_fd = -1};
    for (size_t i = 0; i < TREE_SPARE_FDS; i++)
        tree->spare_fds[i] = -1;
}

/* Where it is ignored the kernel reaps in our place: numbers would be free before we know, and exit codes
 * lost. */
static void keep_dead_children(void)
{
    struct sigaction action;

    if (sigaction(SIGCHLD, NULL, &action) < 0) /* cannot fail with these */
        return;
    if (action.sa_handler != SIG_IGN && !(action.sa_flags & SA_NOCLDWAIT))
        return;
    if (action.sa_handler == SIG_IGN)
        action.sa_handler = SIG_DFL;
    action.sa_flags &= ~SA_NOCLDWAIT;
    (void)sigaction(SIGCHLD, &action, NULL); /* likewise */
}

/* /proc may be missing, or be that of another pid namespace. */
static enum gavel_status open_proc(struct tree *tree, struct gavel_error *error)
{
    char target[32];
    ssize_t length;
    int pidfd;

    tree->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tree->proc_fd < 0)
        return error_set(error, GAVEL_ERR_IO, "cannot open /proc: %s; it must be mounted", strerror(errno));
    length = readlinkat(tree->proc_fd, "self", target, sizeof target - 1);
    target[length < 0 ? 0 : length] = '\0';
    if (strtol(target, NULL, 10) != (long)getpid())
        return error_set(error, GAVEL_ERR_IO,
                         "/proc does not show this process; mount that of its pid namespace");
    proc_refill_spares(tree);
    pidfd = proc_open_pidfd(tree, getpid());
    if (pidfd < 0)
        return error_set(error, GAVEL_ERR_IO,
                         "cannot get a pidfd: %s; gavel run needs Linux 5.3 and no filter on it",
                         strerror(errno));
    (void)close(pidfd); /* it holds nothing that could be lost */
    return GAVEL_OK;
}

enum gavel_status tree_open(struct tree *tree, enum contain contain, struct gavel_error *error)
{
    enum gavel_status status;

    tree_init(tree);
    keep_dead_children();
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* since Linux 3.4, and cannot fail */
    status = open_proc(tree, error);
    if (status == GAVEL_OK && contain != CONTAIN_WALK) {
        /* What keeps us from a cgroup that nobody insists on is no error, and is not left as one. */
        status = cgroup_open(tree, contain == CONTAIN_CGROUP, contain == CONTAIN_CGROUP ? error : NULL);
        if (status != GAVEL_OK && contain == CONTAIN_AUTO)
            status = GAVEL_OK;
    }
    if (status != GAVEL_OK)
        tree_close(tree);
    return status;
}

void tree_close(struct tree *tree)
{
    cgroup_close(tree);
    for (size_t i = 0; i < TREE_SPARE_FDS; i++) {
        if (tree->spare_fds[i] >= 0)
            (void)close(tree->spare_fds[i]); /* it holds nothing */
        tree->spare_fds[i] = -1;
    }
    if (tree->proc_fd >= 0)
        (void)close(tree->proc_fd); /* only read from */
    tree->proc_fd = -1;
}

pid_t tree_fork(struct tree *tree)
{
    pid_t pid;

    if (!tree->has_cgroup)
        return fork();
    if (tree->can_clone && cgroup_renew(tree))
        return cgroup_fork(tree);
    pid = fork();
    if (pid == 0 && !tree_enter(tree))
        _exit(EXIT_NOT_ENTERED);
    return pid;
}

bool tree_enter(const struct tree *tree) { return !tree->has_cgroup || write(tree->procs_fd, "0", 1) == 1; }

static void run_walk(struct walk *walk, struct tree *tree, int signal_number, pid_t session)
{
    walk_init(walk, tree, signal_number, session);
    if (!walk_children(walk))
        walk_all(walk);
}

/*
 * While we walk, processes die and their children move over to us, perhaps
 * behind our back. So 0 is believed only if a second pass saw the very same.
 */
static size_t pass(struct tree *tree, int signal_number, pid_t session)
{
    struct walk walk;
    uint64_t seen_before = 0;

    for (int i = 0; i < PASSES_MAX; i++) {
        run_walk(&walk, tree, signal_number, session);
        if (walk.count > 0)
            return walk.count;
        if (i > 0 && !walk.has_missed && walk.seen == seen_before)
            return 0;
        seen_before = walk.seen;
    }
    return 1;
}

size_t tree_signal(struct tree *tree, int signal_number, pid_t session)
{
    size_t count;

    if (signal_number == SIGKILL && session == 0)
        cgroup_kill(tree); /* if it cannot, the walk has more to do */
    count = pass(tree, signal_number, session);
    proc_refill_spares(tree);
    return count;
}

size_t tree_count(struct tree *tree, size_t most, uint64_t *ret_pages)
{
    struct walk walk;

    walk_init(&walk, tree, 0, 0);
    walk.most = most;
    if (!walk_children(&walk))
        walk_all(&walk);
    proc_refill_spares(tree);
    if (ret_pages)
        *ret_pages = walk.pages;
    return walk.count;
}

bool tree_reap(pid_t *ret_pid, int *ret_status)
{
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);

    if (pid <= 0)
        return false;
    *ret_pid = pid;
    *ret_status = status;
    return true;
}

bool tree_is_empty(const struct tree *tree)
{
    siginfo_t info;

    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD)
        return false;
    return !cgroup_is_populated(tree);
}

static size_t reap_all(void)
{
    size_t count = 0;
    pid_t pid;
    int status;

    while (tree_reap(&pid, &status))
        count++;
    return count;
}

static void pause_for(gavel_ns duration)
{
    struct timespec time = {.tv_nsec = (long)duration};

    (void)nanosleep(&time, NULL); /* a shorter one does no harm */
}

bool tree_end(struct tree *tree, int64_t until_ns)
{
    gavel_ns pause = PAUSE_MIN, patience = clock_now() + PATIENCE;
    size_t count_before = 0;

    for (;;) {
        size_t reaped = reap_all();
        size_t count = tree_signal(tree, SIGKILL, 0);

        reaped += reap_all();
        if (tree_is_empty(tree))
            return true;
        if (clock_now() >= until_ns)
            return false;
        /* Whatever moves is followed without a pause, or it gets away; who only takes time to die is given
         * it. */
        if (reaped > 0 || count > count_before) {
            pause = PAUSE_MIN;
        } else {
            pause_for(pause);
            pause = ns_min(pause * 2, clock_now() < patience ? PAUSE_MAX : PAUSE_LONG);
        }
        count_before = count;
    }
}
