/* SPDX-License-Identifier: Apache-2.0 */

/* Proof of death, and nothing taken for it that is none. */
#include "os/process.h"

#include "os/clock.h"
#include "os/entropy.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* A child that does nothing, and who it says it is. */
struct child {
    pid_t pid;
    struct process_id id;
};

static struct process_id self(void)
{
    struct process_id id;

    assert_int_equal(process_self(&id), GAVEL_OK);
    return id;
}

/* In a child: to end with the test, also with one that fails. */
static void die_with_parent(void) { (void)prctl(PR_SET_PDEATHSIG, SIGKILL); }

static struct child start_child(void)
{
    struct child child;
    int told[2];

    assert_int_equal(pipe(told), 0);
    child.pid = fork();
    assert_true(child.pid >= 0);
    if (child.pid == 0) {
        struct process_id id;

        die_with_parent();
        if (process_self(&id) != GAVEL_OK || write(told[1], &id, sizeof id) != sizeof id)
            _exit(1);
        for (;;)
            (void)pause();
    }
    (void)close(told[1]);
    assert_int_equal(read(told[0], &child.id, sizeof child.id), sizeof child.id);
    (void)close(told[0]);
    return child;
}

static void kill_child(const struct child *child)
{
    siginfo_t info;

    assert_int_equal(kill(child->pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT), 0); /* a zombie from now on */
}

static void reap_child(const struct child *child)
{
    assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
}

/* Not under valgrind, and not where a seccomp filter forbids them. */
static bool has_pidfds(void)
{
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

    return fd >= 0 && close(fd) == 0;
}

static void test_a_process_knows_who_it_is(void **state)
{
    struct process_id id = self();

    (void)state;
    assert_int_equal(id.pid, getpid());
    assert_int_equal(strlen(id.boot_id), 36);
    assert_true(id.pid_ns > 0);
    assert_true(id.start_ticks > 0);
}

static void test_the_own_process_is_alive(void **state)
{
    struct process_id id = self();

    (void)state;
    assert_int_equal(process_look(&id, &id, NULL), PROCESS_ALIVE);
}

static void test_a_pidfd_tells_when_a_live_process_dies(void **state)
{
    struct child child = start_child();
    struct process_id me = self();
    struct pollfd item = {.fd = -1, .events = POLLIN};

    (void)state;
    if (!has_pidfds()) {
        kill_child(&child);
        reap_child(&child);
        print_message("there are no pidfds here\n");
        skip();
    }
    assert_int_equal(process_look(&child.id, &me, &item.fd), PROCESS_ALIVE);
    assert_true(item.fd >= 0);
    assert_int_equal(poll(&item, 1, 0), 0);
    kill_child(&child);
    assert_int_equal(poll(&item, 1, 10000), 1);
    assert_int_equal(close(item.fd), 0);
    reap_child(&child);
}

static void test_a_zombie_is_dead(void **state)
{
    struct child child = start_child();
    struct process_id me = self();
    int fd = -7;

    (void)state;
    kill_child(&child);
    assert_int_equal(process_look(&child.id, &me, &fd), PROCESS_DEAD);
    assert_int_equal(fd, -7); /* untouched */
    reap_child(&child);
    assert_int_equal(process_look(&child.id, &me, NULL), PROCESS_DEAD); /* and gone is dead, too */
}

static void test_a_frozen_process_is_alive(void **state)
{
    struct child child = start_child();
    struct process_id me = self();
    siginfo_t info;

    (void)state;
    assert_int_equal(kill(child.pid, SIGSTOP), 0);
    assert_int_equal(waitid(P_PID, (id_t)child.pid, &info, WSTOPPED), 0);
    assert_int_equal(process_look(&child.id, &me, NULL), PROCESS_ALIVE);
    kill_child(&child);
    reap_child(&child);
}

static void test_a_reused_pid_is_another_process(void **state)
{
    struct child child = start_child();
    struct process_id me = self();
    struct process_id former = child.id;
    int fd = -7;

    (void)state;
    former.start_ticks--; /* somebody had this pid before */
    assert_int_equal(process_look(&former, &me, &fd), PROCESS_DEAD);
    assert_int_equal(fd, -7);
    kill_child(&child);
    reap_child(&child);
}

static void *outlive_the_first_thread(void *pipe_end)
{
    (void)write(*(int *)pipe_end, "y", 1); /* the test waits for it and would notice */
    for (;;)
        (void)pause();
    return NULL;
}

static void run_without_first_thread(int told)
{
    static int end;
    pthread_t thread;

    end = told;
    if (pthread_create(&thread, NULL, outlive_the_first_thread, &end))
        _exit(1);
    pthread_exit(NULL); /* /proc shows a zombie from now on, yet the process works on */
}

static void test_a_process_whose_first_thread_ended_is_alive(void **state)
{
    const struct timespec pause_for = {.tv_nsec = NS_PER_MS};
    struct process_id me = self();
    struct child child;
    int told[2];
    char byte;

    (void)state;
    assert_int_equal(pipe(told), 0);
    child.pid = fork();
    assert_true(child.pid >= 0);
    if (child.pid == 0) {
        die_with_parent();
        if (process_self(&child.id) != GAVEL_OK ||
            write(told[1], &child.id, sizeof child.id) != sizeof child.id)
            _exit(1);
        run_without_first_thread(told[1]);
    }
    assert_int_equal(read(told[0], &child.id, sizeof child.id), sizeof child.id);
    assert_int_equal(read(told[0], &byte, 1), 1);
    for (int i = 0; i < 20; i++) { /* before and after the first thread is gone */
        assert_int_equal(process_look(&child.id, &me, NULL), PROCESS_ALIVE);
        (void)nanosleep(&pause_for, NULL);
    }
    (void)close(told[0]);
    (void)close(told[1]);
    kill_child(&child);
    assert_int_equal(process_look(&child.id, &me, NULL), PROCESS_DEAD);
    reap_child(&child);
}

static void test_another_boot_is_proof_only_outside_of_containers(void **state)
{
    struct process_id me = self();
    struct process_id other = me;

    (void)state;
    (void)strcpy(other.boot_id, "00000000-0000-0000-0000-000000000000");
    me.pid_ns = other.pid_ns = UINT64_C(4026531836);
    assert_int_equal(process_look(&other, &me, NULL), PROCESS_DEAD);
    other.pid_ns = 4026532999; /* a container may be shown a boot id of its own */
    assert_int_equal(process_look(&other, &me, NULL), PROCESS_UNSEEN);
    me.pid_ns = 4026532999;
    assert_int_equal(process_look(&other, &me, NULL), PROCESS_UNSEEN);
    other.pid_ns = UINT64_C(4026531836);
    assert_int_equal(process_look(&other, &me, NULL), PROCESS_UNSEEN);
}

static void test_another_pid_namespace_cannot_be_seen(void **state)
{
    struct process_id me = self();
    struct process_id other = me;

    (void)state;
    other.pid_ns++;
    assert_int_equal(process_look(&other, &me, NULL), PROCESS_UNSEEN);
    other.pid = 999999999; /* not even if there is no such pid here */
    assert_int_equal(process_look(&other, &me, NULL), PROCESS_UNSEEN);
}

static void test_a_process_that_was_not_told_cannot_be_seen(void **state)
{
    struct process_id me = self();
    struct process_id nobody = {0};

    (void)state;
    assert_int_equal(process_look(&nobody, &me, NULL), PROCESS_UNSEEN);
    assert_int_equal(process_look(&me, &nobody, NULL), PROCESS_UNSEEN);
}

static void test_running_out_of_descriptors_is_no_proof_of_death(void **state)
{
    struct process_id me = self();
    struct child child = start_child();
    struct rlimit before;
    struct rlimit none;
    enum process_fate fate;
    int fd = -7;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    fate = process_look(&child.id, &me, &fd);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(fate, PROCESS_UNSEEN);
    assert_int_equal(fd, -7);
    kill_child(&child);
    reap_child(&child);
}

static void test_a_glance_tells_the_name_and_whether_it_is_stopped(void **state)
{
    struct child child = start_child();
    struct process_glance glance;
    struct process_glance untouched = {.name = "before"};
    char name[16];

    (void)state;
    assert_int_equal(prctl(PR_GET_NAME, name), 0);
    assert_true(process_look_at(child.pid, &glance));
    assert_string_equal(glance.name, name);
    assert_false(glance.is_stopped);
    assert_int_equal(kill(child.pid, SIGSTOP), 0);
    assert_int_equal(waitpid(child.pid, NULL, WUNTRACED), child.pid);
    assert_true(process_look_at(child.pid, &glance));
    assert_true(glance.is_stopped);
    kill_child(&child);
    reap_child(&child);
    assert_false(process_look_at(child.pid, &untouched));
    assert_string_equal(untouched.name, "before");
}

static void test_the_clock_never_runs_back(void **state)
{
    gavel_ns last = clock_now();

    (void)state;
    for (int i = 0; i < 10000; i++) {
        gavel_ns now = clock_now();

        assert_true(now >= last);
        last = now;
    }
    assert_true(clock_wall_ms() > INT64_C(1600000000000)); /* after 2020 */
}

static void test_seeds_differ(void **state)
{
    uint64_t seeds[64];

    (void)state;
    for (int i = 0; i < 64; i++) {
        seeds[i] = entropy_u64();
        for (int j = 0; j < i; j++)
            assert_int_not_equal(seeds[i], seeds[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_process_knows_who_it_is),
        cmocka_unit_test(test_the_own_process_is_alive),
        cmocka_unit_test(test_a_pidfd_tells_when_a_live_process_dies),
        cmocka_unit_test(test_a_zombie_is_dead),
        cmocka_unit_test(test_a_frozen_process_is_alive),
        cmocka_unit_test(test_a_reused_pid_is_another_process),
        cmocka_unit_test(test_a_process_whose_first_thread_ended_is_alive),
        cmocka_unit_test(test_another_boot_is_proof_only_outside_of_containers),
        cmocka_unit_test(test_another_pid_namespace_cannot_be_seen),
        cmocka_unit_test(test_a_process_that_was_not_told_cannot_be_seen),
        cmocka_unit_test(test_running_out_of_descriptors_is_no_proof_of_death),
        cmocka_unit_test(test_a_glance_tells_the_name_and_whether_it_is_stopped),
        cmocka_unit_test(test_the_clock_never_runs_back),
        cmocka_unit_test(test_seeds_differ),
    };

    return cmocka_run_group_tests_name("os", tests, NULL, NULL);
}
