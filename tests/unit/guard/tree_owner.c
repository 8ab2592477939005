/* SPDX-License-Identifier: Apache-2.0 */

#include "tree_owner.h"

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

void tree_owner_pause(void)
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

static _Noreturn void be_owner(enum contain contain, tree_owner_cb *cb, struct stage *stage)
{
    struct tree_owner owner = {.stage = stage};
    struct gavel_error error;

    (void)alarm((unsigned)(LIMIT / NS_PER_S) * 2);
    CHECK(pipe2(owner.alive, O_CLOEXEC) == 0);
    if (tree_open(&owner.tree, contain, &error) != GAVEL_OK) {
        dprintf(STDERR_FILENO, "%s\n", error.message);
        _exit(1);
    }
    cb(&owner);
    tree_close(&owner.tree);
    _exit(0);
}

void tree_owner_run(enum contain contain, tree_owner_cb *cb)
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
        be_owner(contain, cb, stage);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)munmap(stage, sizeof *stage);
    assert_int_equal(status, 0);
}

pid_t tree_owner_child(struct tree_owner *owner, tree_owner_cb *cb)
{
    pid_t pid = tree_fork(&owner->tree);

    CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    (void)close(owner->alive[0]);
    cb(owner);
    _exit(0);
}

void tree_owner_live(struct tree_owner *owner)
{
    (void)alarm((unsigned)(LIMIT / NS_PER_S));
    atomic_fetch_add(&owner->stage->up, 1);
    for (;;)
        (void)pause();
}

void tree_owner_await(struct tree_owner *owner, int up)
{
    while (atomic_load(&owner->stage->up) < up) {
        CHECK(clock_now() < owner->stage->until);
        tree_owner_pause();
    }
}

bool tree_owner_sees_all_dead(struct tree_owner *owner)
{
    char byte;

    if (owner->alive[1] >= 0)
        (void)close(owner->alive[1]);
    owner->alive[1] = -1;
    (void)fcntl(owner->alive[0], F_SETFL, O_NONBLOCK);
    return read(owner->alive[0], &byte, 1) == 0;
}
