/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The health of a candidate. Time is passed in; the checks are real
 * processes, so a test waits for them to end, with a limit.
 */
#include "cli/run/health.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS 60000
#define T0 (1000 * NS_PER_S)
#define EVERY_MS 5000
#define EVERY (EVERY_MS * NS_PER_MS)
#define TIMEOUT_MS 2000
#define TIMEOUT (TIMEOUT_MS * NS_PER_MS)
#define NO_PROCESS (1 << 30) /* beyond the highest number that a process can have */

/* Waits until the process has ended, without reaping it. */
static void await_end(pid_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd fd = {.fd = pidfd, .events = POLLIN};

    assert_true(pidfd >= 0);
    assert_int_equal(poll(&fd, 1, LIMIT_MS), 1);
    close(pidfd);
}

/* The runner's part: reaps the check under way and tells of it. */
static void reap(struct health *health, gavel_ns now)
{
    pid_t pid = health->pid;
    int status;

    assert_true(pid > 0);
    await_end(pid);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(health_reaped(health, pid, status, now));
}

/* One whole check, begun and ended at `now`. */
static void check(struct health *health, const char *command, gavel_ns now)
{
    health->command = command;
    health_tick(health, now);
    reap(health, now);
}

static void test_without_a_command_it_is_always_good_and_never_wakes(void **state)
{
    struct health health;

    (void)state;
    health_init(&health, NULL, EVERY_MS, TIMEOUT_MS, 2);
    assert_true(health_is_good(&health));
    assert_true(health_wake_at(&health) == NEVER);
    health_tick(&health, T0);
    assert_int_equal(health.pid, 0);
    assert_false(health_reaped(&health, getpid(), 0, T0));
    assert_string_equal(health_reason(&health), "");
    health_done(&health);
}

static void test_nothing_is_good_before_the_first_success(void **state)
{
    struct health health;

    (void)state;
    health_init(&health, "exit 0", EVERY_MS, TIMEOUT_MS, 2);
    assert_false(health_is_good(&health));
    assert_string_equal(health_reason(&health), "no check has ended yet");
    assert_true(health_wake_at(&health) <= T0);
    health_tick(&health, T0);
    assert_false(health_is_good(&health));
    reap(&health, T0 + 1);
    assert_true(health_is_good(&health));
    assert_string_equal(health_reason(&health), "");
}

static void test_so_many_failures_in_a_row_turn_it_bad_and_one_success_good(void **state)
{
    struct health health;
    gavel_ns now = T0;

    (void)state;
    health_init(&health, "exit 0", EVERY_MS, TIMEOUT_MS, 2);
    check(&health, "exit 0", now);
    check(&health, "exit 1", now += EVERY);
    assert_true(health_is_good(&health));
    assert_string_equal(health_reason(&health), "exit code 1");
    check(&health, "exit 0", now += EVERY);
    check(&health, "exit 1", now += EVERY); /* the success between them has made it the first again */
    assert_true(health_is_good(&health));
    check(&health, "exit 7", now += EVERY);
    assert_false(health_is_good(&health));
    assert_string_equal(health_reason(&health), "exit code 7");
    check(&health, "exit 0", now += EVERY);
    assert_true(health_is_good(&health));
}

static void test_death_by_a_signal_is_a_failure_with_its_reason(void **state)
{
    struct health health;

    (void)state;
    health_init(&health, "kill -9 $$", EVERY_MS, TIMEOUT_MS, 1);
    health_tick(&health, T0);
    reap(&health, T0 + 1);
    assert_false(health_is_good(&health));
    assert_string_equal(health_reason(&health), "killed by signal 9");
}

static void test_the_next_check_is_due_an_interval_after_the_last_began(void **state)
{
    struct health health;

    (void)state;
    health_init(&health, "exit 0", EVERY_MS, TIMEOUT_MS, 2);
    health_tick(&health, T0);
    assert_true(health_wake_at(&health) == T0 + TIMEOUT);
    reap(&health, T0 + NS_PER_S);
    assert_true(health_wake_at(&health) == T0 + EVERY);
    health_tick(&health, T0 + EVERY - 1);
    assert_int_equal(health.pid, 0);
    health_tick(&health, T0 + EVERY);
    reap(&health, T0 + EVERY + 1);
    assert_true(health_wake_at(&health) == T0 + 2 * EVERY);
}

static void test_never_two_at_once_however_short_the_interval(void **state)
{
    struct health health;
    pid_t first;

    (void)state;
    health_init(&health, "exec sleep 1000", 100, TIMEOUT_MS, 2);
    health_tick(&health, T0);
    first = health.pid;
    assert_true(first > 0);
    health_tick(&health, T0 + NS_PER_S); /* the second would have been due long ago */
    assert_int_equal(health.pid, first);
    assert_int_equal(kill(first, 0), 0);
    assert_true(health_wake_at(&health) == T0 + TIMEOUT);
    assert_int_equal(kill(first, SIGKILL), 0);
    reap(&health, T0 + NS_PER_S);
    assert_true(health_wake_at(&health) == T0 + NS_PER_S); /* and is due now, once, not ten times */
}

static void test_a_check_that_takes_too_long_dies_with_what_it_started(void **state)
{
    struct health health;
    char pid_text[32] = "";
    int pipe_fds[2];
    char command[160];
    struct pollfd fd;
    gavel_ns now = T0;

    (void)state;
    assert_int_equal(pipe(pipe_fds), 0); /* inherited on purpose: it closes when the last of them is dead */
    snprintf(command, sizeof command, "sleep 1000 & echo $! >&%d; wait", pipe_fds[1]);
    health_init(&health, command, EVERY_MS, TIMEOUT_MS, 2);
    check(&health, "exit 0", now);
    health.command = command;
    health_tick(&health, now += EVERY);
    close(pipe_fds[1]);
    assert_true(read(pipe_fds[0], pid_text, sizeof pid_text - 1) > 0);
    health_tick(&health, now += TIMEOUT);
    assert_true(health_is_good(&health)); /* one failure of two */
    assert_string_equal(health_reason(&health), "took longer than 2 s");
    fd = (struct pollfd){.fd = pipe_fds[0], .events = POLLIN};
    assert_int_equal(poll(&fd, 1, LIMIT_MS), 1);
    assert_int_equal(read(pipe_fds[0], pid_text, sizeof pid_text), 0); /* the shell and its sleep are gone */
    reap(&health, now + 1);
    assert_true(health_is_good(&health)); /* counted once, not again when it was reaped */
    assert_string_equal(health_reason(&health), "took longer than 2 s");
    close(pipe_fds[0]);
}

static void test_a_check_that_cannot_be_reaped_goes_on_failing(void **state)
{
    struct health health;
    gavel_ns now = T0;

    (void)state;
    health_init(&health, "exit 0", EVERY_MS, TIMEOUT_MS, 3);
    check(&health, "exit 0", now);
    health.command = "exec sleep 1000";
    health_tick(&health, now += EVERY);
    assert_int_equal(kill(health.pid, SIGKILL), 0);
    assert_int_equal(waitpid(health.pid, NULL, 0), health.pid);
    health.pid = NO_PROCESS; /* as good as one that SIGKILL does not end */
    health_tick(&health, now += TIMEOUT);
    health_tick(&health, now += EVERY);
    assert_true(health_is_good(&health));
    health_tick(&health, now += EVERY);
    assert_false(health_is_good(&health));
    assert_true(health_wake_at(&health) == now + EVERY);
}

static void test_a_check_that_ended_in_time_is_no_failure_if_we_look_late(void **state)
{
    struct health health;

    (void)state;
    health_init(&health, "exit 0", EVERY_MS, TIMEOUT_MS, 1);
    health_tick(&health, T0);
    await_end(health.pid);
    health_tick(&health, T0 + 10 * TIMEOUT); /* we were frozen meanwhile */
    assert_true(health_wake_at(&health) > T0 + 10 * TIMEOUT);
    reap(&health, T0 + 10 * TIMEOUT);
    assert_true(health_is_good(&health));
}

static void test_its_output_goes_to_stderr_and_it_reads_nothing(void **state)
{
    int output[2], saved_stdout = dup(STDOUT_FILENO), saved_stderr = dup(STDERR_FILENO);
    struct health health;
    char text[64] = "";

    (void)state;
    assert_int_equal(pipe2(output, O_CLOEXEC), 0);
    dup2(output[1], STDERR_FILENO);
    close(STDOUT_FILENO); /* who writes here has got it wrong */
    health_init(&health, "echo hello; echo there >&2; ! read line", EVERY_MS, TIMEOUT_MS, 1);
    health_tick(&health, T0);
    dup2(saved_stdout, STDOUT_FILENO);
    dup2(saved_stderr, STDERR_FILENO);
    close(output[1]);
    reap(&health, T0 + 1);
    assert_true(health_is_good(&health));
    assert_true(read(output[0], text, sizeof text - 1) > 0);
    assert_string_equal(text, "hello\nthere\n");
    close(output[0]);
    close(saved_stdout);
    close(saved_stderr);
}

static void test_it_has_no_signal_blocked_and_a_group_of_its_own(void **state)
{
    sigset_t all, before;
    struct health health;

    (void)state;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    /* Without any process of its own: while a shell waits for one it blocks signals itself. */
    health_init(&health,
                "while read key value; do [ \"$key\" = SigBlk: ] && mask=$value; done </proc/$$/status;"
                " [ \"$mask\" = 0000000000000000 ] &&"
                " read pid name mark parent group rest </proc/$$/stat && [ \"$group\" = $$ ]",
                EVERY_MS, TIMEOUT_MS, 1);
    health_tick(&health, T0);
    sigprocmask(SIG_SETMASK, &before, NULL);
    reap(&health, T0 + 1);
    assert_string_equal(health_reason(&health), "");
    assert_true(health_is_good(&health));
}

static void test_other_processes_are_not_its_own(void **state)
{
    struct health health;

    (void)state;
    health_init(&health, "exit 1", EVERY_MS, TIMEOUT_MS, 1);
    health_tick(&health, T0);
    assert_false(health_reaped(&health, health.pid + 1, 0, T0));
    assert_false(health_reaped(&health, 0, 0, T0));
    reap(&health, T0);
    assert_false(health_is_good(&health));
    assert_false(health_reaped(&health, 0, 0, T0)); /* none is under way */
}

static void test_a_check_that_cannot_be_started_is_a_failure_with_its_reason(void **state)
{
    struct rlimit before, none;
    struct health health;

    (void)state;
    health_init(&health, "exit 0", EVERY_MS, TIMEOUT_MS, 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    health_tick(&health, T0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(health.pid, 0);
    assert_memory_equal(health_reason(&health),
                        "cannot be started: ", 19); /* the reason is the C library's */
    assert_false(health_is_good(&health));
    assert_true(health_wake_at(&health) == T0 + EVERY);
    check(&health, "exit 0", T0 + EVERY);
    assert_true(health_is_good(&health));
}

static void test_being_done_kills_a_check_under_way(void **state)
{
    struct health health;
    int status;
    pid_t pid;

    (void)state;
    health_init(&health, "exec sleep 1000", EVERY_MS, TIMEOUT_MS, 1);
    health_tick(&health, T0);
    pid = health.pid;
    health_done(&health);
    await_end(pid);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    health_done(&health); /* its number may be another's by now, so it is forgotten */
    assert_int_equal(health.pid, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_command_it_is_always_good_and_never_wakes),
        cmocka_unit_test(test_nothing_is_good_before_the_first_success),
        cmocka_unit_test(test_so_many_failures_in_a_row_turn_it_bad_and_one_success_good),
        cmocka_unit_test(test_death_by_a_signal_is_a_failure_with_its_reason),
        cmocka_unit_test(test_the_next_check_is_due_an_interval_after_the_last_began),
        cmocka_unit_test(test_never_two_at_once_however_short_the_interval),
        cmocka_unit_test(test_a_check_that_takes_too_long_dies_with_what_it_started),
        cmocka_unit_test(test_a_check_that_cannot_be_reaped_goes_on_failing),
        cmocka_unit_test(test_a_check_that_ended_in_time_is_no_failure_if_we_look_late),
        cmocka_unit_test(test_its_output_goes_to_stderr_and_it_reads_nothing),
        cmocka_unit_test(test_it_has_no_signal_blocked_and_a_group_of_its_own),
        cmocka_unit_test(test_other_processes_are_not_its_own),
        cmocka_unit_test(test_a_check_that_cannot_be_started_is_a_failure_with_its_reason),
        cmocka_unit_test(test_being_done_kills_a_check_under_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
