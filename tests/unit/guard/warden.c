/* SPDX-License-Identifier: Apache-2.0 */

#include "warden.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

void warden_pause(void)
{
    struct timespec time = {.tv_nsec = NS_PER_MS};

    (void)nanosleep(&time, NULL);
}

/* Not under valgrind, and not where a filter forbids them. */
static bool has_pidfds(void)
{
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

    return fd >= 0 && close(fd) == 0;
}

static _Noreturn void be_warden(enum contain contain, warden_cb *cb, struct stage *stage)
{
    struct warden warden = {.stage = stage};
    struct gavel_error error;

    (void)alarm((unsigned)(LIMIT / NS_PER_S) * 2);
    CHECK(pipe2(warden.alive, O_CLOEXEC) == 0);
    if (tree_open(&warden.tree, contain, &error) != GAVEL_OK) {
        dprintf(STDERR_FILENO, "%s\n", error.message);
        _exit(1);
    }
    cb(&warden);
    tree_close(&warden.tree);
    _exit(0);
}

void warden_run(enum contain contain, warden_cb *cb)
{
    struct stage *stage =
        mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    pid_t pid;

    assert_true(stage != MAP_FAILED);
    if (!has_pidfds()) {
        print_message("no pidfds here\n");
        (void)munmap(stage, sizeof *stage);
        skip();
    }
    stage->until = clock_now() + LIMIT;
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        be_warden(contain, cb, stage);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)munmap(stage, sizeof *stage);
    assert_int_equal(status, 0);
}

pid_t warden_child(struct warden *warden, warden_cb *cb)
{
    pid_t pid = tree_fork(&warden->tree);

    CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    (void)close(warden->alive[0]);
    cb(warden);
    _exit(0);
}

void warden_live(struct warden *warden)
{
    (void)alarm((unsigned)(LIMIT / NS_PER_S));
    atomic_fetch_add(&warden->stage->up, 1);
    for (;;)
        (void)pause();
}

void warden_await(struct warden *warden, int up)
{
    while (atomic_load(&warden->stage->up) < up) {
        CHECK(clock_now() < warden->stage->until);
        warden_pause();
    }
}

bool warden_sees_all_dead(struct warden *warden)
{
    char byte;

    if (warden->alive[1] >= 0)
        (void)close(warden->alive[1]);
    warden->alive[1] = -1;
    (void)fcntl(warden->alive[0], F_SETFL, O_NONBLOCK);
    return read(warden->alive[0], &byte, 1) == 0;
}
