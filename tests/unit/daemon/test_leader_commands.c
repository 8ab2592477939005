/* SPDX-License-Identifier: Apache-2.0 */

/* The leader's commands, with real processes: they run under a mandate in shared memory, never without. */
#include "daemon/commands/leader_commands.h"
#include "os/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT (60 * NS_PER_S)
#define GRACE_MS 400

struct fixture {
    struct shared_memory *memory;
    struct daemon_config config;
    struct leader_commands commands;
    struct leader_commands_event event; /* the last one */
    int out[2];                         /* what children write to their descriptor 9 */
    char *command[4];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (shared_memory_new(&f->memory) != GAVEL_OK || pipe2(f->out, O_NONBLOCK))
        return -1;
    (void)snprintf(f->config.cluster, sizeof f->config.cluster, "demo");
    (void)snprintf(f->config.node, sizeof f->config.node, "n1");
    f->config.has_leader_commands = true;
    f->config.stop_grace_ms = GRACE_MS;
    f->config.children.count = 1;
    f->command[0] = strdup("/bin/sh");
    f->command[1] = strdup("-c");
    f->config.children.children[0] = (struct run_child){
        .name = "one", .command = f->command, .grace_ms = -1, .ready_timeout_ms = RUN_READY_TIMEOUT_MS};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    leader_commands_finish(&f->commands);
    (void)close(f->out[0]);
    (void)close(f->out[1]);
    shared_memory_free(f->memory);
    for (size_t i = 0; i < 3; i++)
        free(f->command[i]);
    free(f);
    return 0;
}

static void start(struct fixture *f, const char *script)
{
    struct gavel_error error = {0};

    assert_true(asprintf(&f->command[2], "out=%d; %s", f->out[1], script) > 0);
    if (leader_commands_start(&f->commands, &f->config, f->memory, &error) != GAVEL_OK)
        fail_msg("%s", error.message);
}

/* A mandate that lasts for a minute, or until it is set anew. */
static void give_mandate(struct fixture *f, uint64_t epoch, gavel_ns stop_after)
{
    gavel_ns stop_at = clock_now() + stop_after;

    shared_memory_set_mandate(f->memory, epoch, stop_at, stop_at + ns_from_ms(GRACE_MS));
}

/* Looks whenever there is something to see, until this has happened. */
static void await_news(struct fixture *f, enum leader_commands_news news)
{
    gavel_ns until = clock_now() + LIMIT;

    while (clock_now() < until) {
        struct pollfd fd = {.fd = f->commands.fd, .events = POLLIN};

        while (leader_commands_look(&f->commands, &f->event))
            if (f->event.news == news)
                return;
        (void)poll(&fd, 1, 1000);
    }
    fail_msg("there was no news %d; the last was %d: %s", (int)news, (int)f->event.news, f->event.text);
}

/* What a child has written: one line. */
static void await_line(struct fixture *f, char line[static 128])
{
    struct pollfd fd = {.fd = f->out[0], .events = POLLIN};
    size_t length = 0;

    while (length < 127 && poll(&fd, 1, (int)ms_from_ns(LIMIT)) == 1 &&
           read(f->out[0], line + length, 1) == 1)
        if (line[length++] == '\n')
            break;
    if (length == 0)
        fail_msg("the child has written nothing");
    line[length ? length - 1 : 0] = '\0';
}

static bool is_dead(long pid) { return kill((pid_t)pid, 0) < 0; }

static void test_children_know_for_whom_they_run(void **state)
{
    struct fixture *f = *state;
    char line[128];

    start(f, "echo $GAVEL_GROUP $GAVEL_CANDIDATE $GAVEL_EPOCH >&$out; exec sleep 100");
    give_mandate(f, 70, 60 * NS_PER_S);
    leader_commands_run(&f->commands, 70);
    await_line(f, line);
    assert_string_equal(line, "demo n1 70");
    await_news(f, LEADER_COMMANDS_RUNS);
    assert_int_equal(f->event.epoch, 70);
    assert_false(leader_commands_has_stopped(&f->commands, 70));
}

static void test_stopping_is_told_when_nothing_is_left(void **state)
{
    struct fixture *f = *state;
    char line[128];

    start(f, "trap '' TERM; setsid sleep 100 & echo $! >&$out; while :; do sleep 100; done");
    give_mandate(f, 5, 60 * NS_PER_S);
    leader_commands_run(&f->commands, 5);
    await_line(f, line);
    leader_commands_stop(&f->commands, 5, false);
    await_news(f, LEADER_COMMANDS_STOPPED);
    assert_true(leader_commands_has_stopped(&f->commands, 5));
    assert_true(is_dead(strtol(line, NULL, 10)));
}

static void test_an_epoch_that_was_stopped_never_runs(void **state)
{
    struct fixture *f = *state;
    char line[128];

    start(f, "echo $GAVEL_EPOCH >&$out; exec sleep 100");
    leader_commands_stop(&f->commands, 8, true);
    give_mandate(f, 8, 60 * NS_PER_S);
    leader_commands_run(&f->commands, 8);
    give_mandate(f, 9, 60 * NS_PER_S);
    leader_commands_run(&f->commands, 9);
    await_line(f, line);
    assert_string_equal(line, "9");
    assert_true(leader_commands_has_stopped(&f->commands, 8));
}

static void test_a_mandate_that_is_not_renewed_ends_the_children(void **state)
{
    struct fixture *f = *state;
    char line[128];
    gavel_ns deadline;

    start(f, "trap '' TERM; echo $$ >&$out; while :; do sleep 100; done");
    give_mandate(f, 3, 300 * NS_PER_MS);
    deadline = atomic_load(&f->memory->deadline);
    leader_commands_run(&f->commands, 3);
    await_line(f, line);
    await_news(f, LEADER_COMMANDS_GAVE_UP);
    assert_true(is_dead(strtol(line, NULL, 10)));
    assert_int_equal(f->commands.report.late_by_ms, 0);
    assert_true(deadline > 0);
    assert_true(leader_commands_has_stopped(&f->commands, 3));
}

static void test_a_child_that_ends_is_started_again(void **state)
{
    struct fixture *f = *state;
    char line[128], path[] = "/tmp/gaveld-once-XXXXXX", script[256];
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    (void)close(fd);
    (void)snprintf(script, sizeof script,
                   "if [ -e %s ]; then rm %s; exit 3; fi; echo up >&$out; exec sleep 100", path, path);
    start(f, script);
    give_mandate(f, 4, 60 * NS_PER_S);
    leader_commands_run(&f->commands, 4);
    await_news(f, LEADER_COMMANDS_RESTARTED);
    assert_string_equal(f->event.child, "one");
    assert_string_equal(f->event.text, "exit code 3");
    await_line(f, line);
    assert_string_equal(line, "up");
}

static void test_a_child_that_ends_too_often_gives_up(void **state)
{
    struct fixture *f = *state;

    start(f, "exit 5");
    give_mandate(f, 6, 60 * NS_PER_S);
    leader_commands_run(&f->commands, 6);
    await_news(f, LEADER_COMMANDS_GAVE_UP);
    assert_int_equal(f->event.epoch, 6);
    assert_string_equal(f->event.child, "one");
    assert_non_null(strstr(f->event.text, "too often: exit code 5"));
    assert_true(leader_commands_has_stopped(&f->commands, 6));
    give_mandate(f, 7, 60 * NS_PER_S); /* and may try again with another mandate */
    leader_commands_run(&f->commands, 7);
    await_news(f, LEADER_COMMANDS_GAVE_UP);
    assert_int_equal(f->event.epoch, 7);
}

static void test_a_child_that_is_not_to_be_started_again_gives_up(void **state)
{
    static const enum on_exit rules[] = {ON_EXIT_STOP, ON_EXIT_RESIGN};
    struct fixture *f = *state;

    for (size_t i = 0; i < 2; i++) {
        f->config.children.children[0].has_on_exit = true;
        f->config.children.children[0].on_exit = rules[i];
        start(f, "exit 0");
        give_mandate(f, 6, 60 * NS_PER_S);
        leader_commands_run(&f->commands, 6);
        await_news(f, LEADER_COMMANDS_GAVE_UP);
        assert_string_equal(f->event.child, "one");
        assert_non_null(strstr(f->event.text, "a child has ended"));
        leader_commands_finish(&f->commands);
        free(f->command[2]);
        f->command[2] = NULL;
    }
}

static void test_children_do_not_outlive_their_guard(void **state)
{
    struct fixture *f = *state;
    char line[128];

    start(f, "trap '' TERM; setsid sleep 100 & echo $! >&$out; while :; do sleep 100; done");
    give_mandate(f, 2, 60 * NS_PER_S);
    leader_commands_run(&f->commands, 2);
    await_line(f, line);
    assert_int_equal(kill(f->commands.guard.pid, SIGKILL), 0);
    await_news(f, LEADER_COMMANDS_LOST);
    assert_true(is_dead(strtol(line, NULL, 10)));
    assert_true(leader_commands_has_stopped(&f->commands, 2));
}

static bool has_something_to_see(const struct fixture *f)
{
    struct pollfd fd = {.fd = f->commands.fd, .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

/* Whoever waits for WORK_STOPPED is woken, also if there was nothing left to stop; and only once. */
static void assert_stop_is_told(struct fixture *f, uint64_t epoch)
{
    struct pollfd fd = {.fd = f->commands.fd, .events = POLLIN};

    assert_true(leader_commands_has_stopped(&f->commands, epoch));
    while (has_something_to_see(f))
        (void)leader_commands_look(&f->commands, &f->event);
    leader_commands_stop(&f->commands, epoch, false);
    assert_int_equal(poll(&fd, 1, (int)ms_from_ns(LIMIT)), 1);
    while (leader_commands_look(&f->commands, &f->event))
        continue;
    assert_false(has_something_to_see(f));
}

static void test_stopping_what_has_given_up_is_told(void **state)
{
    struct fixture *f = *state;

    start(f, "exit 5");
    give_mandate(f, 6, 60 * NS_PER_S);
    leader_commands_run(&f->commands, 6);
    await_news(f, LEADER_COMMANDS_GAVE_UP);
    assert_stop_is_told(f, 6);
}

static void test_stopping_what_was_lost_is_told(void **state)
{
    struct fixture *f = *state;

    start(f, "exec sleep 100");
    give_mandate(f, 6, 60 * NS_PER_S);
    leader_commands_run(&f->commands, 6);
    await_news(f, LEADER_COMMANDS_RUNS);
    assert_int_equal(kill(f->commands.guard.pid, SIGKILL), 0);
    await_news(f, LEADER_COMMANDS_LOST);
    assert_stop_is_told(f, 6);
}

static void test_a_frozen_guard_does_not_keep_the_children_alive(void **state)
{
    struct fixture *f = *state;
    char line[128];

    start(f, "trap '' TERM; echo $$ >&$out; while :; do sleep 100; done");
    give_mandate(f, 2, 500 * NS_PER_MS);
    leader_commands_run(&f->commands, 2);
    await_line(f, line);
    assert_int_equal(kill(f->commands.guard.pid, SIGSTOP), 0);
    leader_commands_stop(&f->commands, 2, false);
    await_news(f, LEADER_COMMANDS_LOST); /* the kernel kills it before the deadline */
    assert_true(is_dead(strtol(line, NULL, 10)));
    assert_true(leader_commands_has_stopped(&f->commands, 2));
}

static void test_what_cannot_be_run_is_told_before(void **state)
{
    struct fixture *f = *state;
    struct gavel_error error = {0};

    f->command[2] = strdup("true");
    free(f->command[0]);
    f->command[0] = strdup("/no/such/program");
    assert_int_equal(leader_commands_start(&f->commands, &f->config, f->memory, &error), GAVEL_ERR_NOT_FOUND);
    assert_non_null(strstr(error.message, "/no/such/program"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_children_know_for_whom_they_run),
        TEST(test_stopping_is_told_when_nothing_is_left),
        TEST(test_an_epoch_that_was_stopped_never_runs),
        TEST(test_a_mandate_that_is_not_renewed_ends_the_children),
        TEST(test_a_child_that_ends_is_started_again),
        TEST(test_a_child_that_ends_too_often_gives_up),
        TEST(test_a_child_that_is_not_to_be_started_again_gives_up),
        TEST(test_stopping_what_has_given_up_is_told),
        TEST(test_children_do_not_outlive_their_guard),
        TEST(test_stopping_what_was_lost_is_told),
        TEST(test_a_frozen_guard_does_not_keep_the_children_alive),
        TEST(test_what_cannot_be_run_is_told_before),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
