/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Elections between processes on one SQLite file, and what happens to them
 * when they are killed, frozen, hang or fork. argv[1] is the program that
 * plays the candidates (role.c).
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Far above the milliseconds it takes, far below the minutes between two looks of the patient settings. */
#define PROMPT_MS 8000

struct stage {
    struct scene *scene;
    const char *role;
};

/* A process that plays a candidate. */
struct actor {
    pid_t pid;
    int in;  /* its standard input */
    int out; /* its standard output */
    char text[4096];
    size_t length;
};

extern char **environ;

static void actor_start(struct actor *actor, const struct stage *stage, const char *id, const char *settings,
                        const char *overrun, const char *hang_ms)
{
    const char *const arguments[] = {stage->role, stage->scene->url, id, settings, overrun, hang_ms, NULL};
    posix_spawn_file_actions_t files;
    char errors[128];
    int in[2], out[2];

    *actor = (struct actor){0};
    (void)snprintf(errors, sizeof errors, "%s/%s.stderr", stage->scene->folder, id);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, errors, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_int_equal(
        posix_spawn(&actor->pid, stage->role, &files, NULL, (char *const *)(uintptr_t)arguments, environ), 0);
    posix_spawn_file_actions_destroy(&files);
    (void)close(in[0]);
    (void)close(out[1]);
    actor->in = in[1];
    actor->out = out[0];
}

/* Takes the next line that has come in. */
static bool next_line(struct actor *actor, char *line, size_t size)
{
    char *end = memchr(actor->text, '\n', actor->length);
    size_t length;

    if (!end)
        return false;
    length = (size_t)(end - actor->text);
    assert_true(length < size);
    memcpy(line, actor->text, length);
    line[length] = '\0';
    actor->length -= length + 1;
    memmove(actor->text, end + 1, actor->length);
    return true;
}

/* Reads lines until one begins with these words; false if the limit or the end of the output comes first. */
static bool actor_says(struct actor *actor, const char *words, char *line, size_t size, gavel_ms limit_ms)
{
    int64_t until = gavel_now_ns() + limit_ms * 1000000;
    struct pollfd fd = {.fd = actor->out, .events = POLLIN};

    for (;;) {
        int64_t left_ms = (until - gavel_now_ns()) / 1000000;
        ssize_t got;

        while (next_line(actor, line, size))
            if (strncmp(line, words, strlen(words)) == 0)
                return true;
        if (left_ms <= 0 || poll(&fd, 1, (int)left_ms) <= 0)
            return false;
        got = read(actor->out, actor->text + actor->length, sizeof actor->text - actor->length);
        if (got <= 0)
            return false;
        actor->length += (size_t)got;
    }
}

static void expect(struct actor *actor, const char *words, gavel_ms limit_ms)
{
    char line[512];

    if (!actor_says(actor, words, line, sizeof line, limit_ms))
        fail_msg("process %d did not say \"%s\"", (int)actor->pid, words);
}

/* Two lines that may come in either order: two threads write them. */
static void expect_both(struct actor *actor, const char *one, const char *other, gavel_ms limit_ms)
{
    bool has_one = false, has_other = false;
    char line[512];

    while (!has_one || !has_other) {
        if (!actor_says(actor, "", line, sizeof line, limit_ms))
            fail_msg("process %d did not say both \"%s\" and \"%s\"", (int)actor->pid, one, other);
        has_one |= strncmp(line, one, strlen(one)) == 0;
        has_other |= strncmp(line, other, strlen(other)) == 0;
    }
}

/* The number in the line that begins with this word. */
static unsigned long long expect_number(struct actor *actor, const char *word, gavel_ms limit_ms)
{
    char line[512];

    if (!actor_says(actor, word, line, sizeof line, limit_ms))
        fail_msg("process %d did not say \"%s\"", (int)actor->pid, word);
    return strtoull(line + strlen(word), NULL, 10);
}

static void tell(const struct actor *actor, const char *line)
{
    assert_int_equal(write(actor->in, line, strlen(line)), (ssize_t)strlen(line));
}

/* Waits for the process to end and returns its wait status. */
static int actor_wait(struct actor *actor)
{
    int status;

    (void)close(actor->in);
    assert_int_equal(waitpid(actor->pid, &status, 0), actor->pid);
    (void)close(actor->out);
    return status;
}

static void actor_kill(struct actor *actor, int signal) { assert_int_equal(kill(actor->pid, signal), 0); }

/* Ends a process in order: its input ends, it leaves, exit code 0. */
static void actor_dismiss(struct actor *actor)
{
    int status = actor_wait(actor);

    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A leads, B stands by and A knows of it. */
static unsigned long long start_pair(struct actor *a, struct actor *b, const struct stage *stage,
                                     const char *settings, const char *overrun, const char *hang_ms)
{
    unsigned long long epoch;

    actor_start(a, stage, "a", settings, overrun, hang_ms);
    epoch = expect_number(a, "elected ", LIMIT_MS);
    actor_start(b, stage, "b", settings, overrun, "0");
    expect(b, "follows a", LIMIT_MS);
    expect(a, "candidates 2", LIMIT_MS);
    return epoch;
}

static void test_killed_leader_is_noticed_long_before_its_lease_ends(void **state)
{
    struct actor a, b;
    unsigned long long epoch = start_pair(&a, &b, *state, "patient", "abort", "0");
    int status;

    actor_kill(&a, SIGKILL);
    assert_true(expect_number(&b, "elected ", PROMPT_MS) > epoch);
    status = actor_wait(&a);
    assert_true(WIFSIGNALED(status));
    actor_dismiss(&b);
}

static void test_resigning_leader_rings_the_other_process(void **state)
{
    struct actor a, b;
    unsigned long long epoch = start_pair(&a, &b, *state, "patient", "abort", "0");

    tell(&a, "resign\n");
    expect(&a, "demoted resigned", PROMPT_MS);
    assert_true(expect_number(&b, "elected ", PROMPT_MS) > epoch);
    actor_dismiss(&b);
    actor_dismiss(&a);
}

static void test_leader_that_leaves_hands_over_at_once(void **state)
{
    struct actor a, b;
    unsigned long long epoch = start_pair(&a, &b, *state, "patient", "abort", "0");

    actor_dismiss(&a);
    assert_true(expect_number(&b, "elected ", PROMPT_MS) > epoch);
    actor_dismiss(&b);
}

static void test_frozen_leader_is_replaced_and_knows_it_when_it_wakes(void **state)
{
    struct actor a, b;
    unsigned long long epoch = start_pair(&a, &b, *state, "quick", "report", "0");

    actor_kill(&a, SIGSTOP);
    assert_true(expect_number(&b, "elected ", LIMIT_MS) > epoch);
    tell(&a, "ask\n"); /* waits for it in the pipe: read the moment it wakes */
    actor_kill(&a, SIGCONT);
    expect(&a, "leads no 0", LIMIT_MS);
    tell(&b, "ask\n");
    expect(&b, "leads yes", LIMIT_MS);
    actor_dismiss(&b);
    actor_dismiss(&a);
}

static void test_frozen_leader_reports_its_demotion_and_overrun(void **state)
{
    struct actor a, b;

    (void)start_pair(&a, &b, *state, "quick", "report", "0");
    actor_kill(&a, SIGSTOP);
    expect(&b, "elected", LIMIT_MS);
    actor_kill(&a, SIGCONT);
    expect_both(&a, "demoted lapsed", "overrun", LIMIT_MS);
    expect(&a, "follows b", LIMIT_MS);
    actor_dismiss(&b);
    actor_dismiss(&a);
}

static void assert_aborted(struct actor *actor, const struct stage *stage, const char *id)
{
    char path[128], text[1024];
    int status = actor_wait(actor);
    FILE *file;
    size_t length;

    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    (void)snprintf(path, sizeof path, "%s/%s.stderr", stage->scene->folder, id);
    file = fopen(path, "r");
    assert_non_null(file);
    length = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[length] = '\0';
    assert_non_null(strstr(text, "group \"jobs\""));
    assert_non_null(strstr(text, "had not stopped by its deadline"));
}

struct death {
    pid_t pid;
    int status;
};

static bool has_died(void *argument)
{
    struct death *death = argument;

    return waitpid(death->pid, &death->status, WNOHANG) == death->pid;
}

/* Dies of this signal soon, without anyone doing anything more about it. */
static void assert_dies_of(struct actor *actor, int signal)
{
    struct death death = {.pid = actor->pid};

    assert_true(comes_true(has_died, &death, PROMPT_MS));
    assert_true(WIFSIGNALED(death.status));
    assert_int_equal(WTERMSIG(death.status), signal);
    (void)close(actor->in);
    (void)close(actor->out);
}

static void test_frozen_leader_does_not_outlive_its_deadline_by_default(void **state)
{
    struct actor a, b;

    (void)start_pair(&a, &b, *state, "quick", "abort", "0");
    actor_kill(&a, SIGSTOP);
    assert_dies_of(&a, SIGKILL);
    expect(&b, "elected", LIMIT_MS);
    tell(&b, "ask\n");
    expect(&b, "leads yes", LIMIT_MS);
    actor_dismiss(&b);
}

static void test_callback_that_hangs_past_the_deadline_aborts_the_process(void **state)
{
    struct actor a, b;

    (void)start_pair(&a, &b, *state, "quick", "abort", "60000");
    tell(&a, "resign\n");
    expect(&a, "stopping resigned", LIMIT_MS);
    assert_aborted(&a, *state, "a");
    expect(&b, "elected", LIMIT_MS);
    actor_dismiss(&b);
}

static void test_full_stderr_does_not_keep_an_overrun_process_alive(void **state)
{
    struct actor a;

    actor_start(&a, *state, "a", "quick", "abort", "60000");
    expect(&a, "elected", LIMIT_MS);
    tell(&a, "choke\n");
    expect(&a, "choked", LIMIT_MS);
    tell(&a, "resign\n");
    expect(&a, "stopping resigned", LIMIT_MS);
    assert_dies_of(&a, SIGABRT);
}

static void test_handler_of_sigabrt_does_not_keep_an_overrun_process_alive(void **state)
{
    struct actor a;

    actor_start(&a, *state, "a", "quick", "abort", "60000");
    expect(&a, "elected", LIMIT_MS);
    tell(&a, "trap\n");
    expect(&a, "trapped", LIMIT_MS);
    tell(&a, "resign\n");
    expect(&a, "stopping resigned", LIMIT_MS);
    assert_dies_of(&a, SIGABRT);
}

static void test_forked_child_is_not_leader(void **state)
{
    struct actor a;

    actor_start(&a, *state, "a", "patient", "abort", "0");
    expect(&a, "elected", LIMIT_MS);
    tell(&a, "fork\n");
    expect(&a, "child no 0", LIMIT_MS);
    tell(&a, "ask\n");
    expect(&a, "leads yes", LIMIT_MS);
    actor_dismiss(&a);
}

static void test_ensure_moves_the_gavel_to_the_desired_process(void **state)
{
    struct actor a, b;

    (void)start_pair(&a, &b, *state, "quick", "abort", "0");
    tell(&b, "ensure - -\n");
    expect(&b, "ensure OK a", PROMPT_MS);
    tell(&b, "ensure b -\n");
    expect(&a, "demoted handed_over", PROMPT_MS);
    expect(&b, "ensure OK b", PROMPT_MS);
    /* And back, asked for by the leader itself. */
    tell(&b, "ensure a -\n");
    expect(&b, "ensure OK a", LIMIT_MS);
    actor_dismiss(&b);
    actor_dismiss(&a);
}

static void test_minimum_mandate_yields_only_to_force(void **state)
{
    struct actor a, b;

    (void)start_pair(&a, &b, *state, "tenured", "abort", "0");
    tell(&b, "ensure b -\n");
    expect(&b, "ensure ERR_LEADER_TRANSFER_FAILED", LIMIT_MS);
    tell(&b, "ensure b force\n");
    expect(&b, "ensure OK b", LIMIT_MS);
    expect(&a, "demoted handed_over", PROMPT_MS);
    actor_dismiss(&b);
    actor_dismiss(&a);
}

static void test_second_process_with_an_id_in_use_is_stopped(void **state)
{
    struct actor a, b;

    actor_start(&a, *state, "a", "quick", "abort", "0");
    expect(&a, "elected", LIMIT_MS);
    actor_start(&b, *state, "a", "quick", "abort", "0");
    expect(&b, "stopped ERR_ID_IN_USE", LIMIT_MS);
    tell(&a, "ask\n");
    expect(&a, "leads yes", LIMIT_MS);
    actor_dismiss(&b);
    actor_dismiss(&a);
}

static void test_only_candidates_that_did_not_leave_count_as_timed_out(void **state)
{
    struct actor a, b, c;

    (void)start_pair(&a, &b, *state, "quick", "abort", "0");
    actor_dismiss(&b); /* leaves in order */
    expect(&a, "candidates 1", LIMIT_MS);
    tell(&a, "count\n");
    expect(&a, "count 0 2", LIMIT_MS);
    actor_start(&c, *state, "c", "quick", "abort", "0");
    expect(&a, "candidates 2", LIMIT_MS);
    actor_kill(&c, SIGSTOP);
    expect(&a, "candidates 1", LIMIT_MS);
    tell(&a, "count\n");
    expect(&a, "count 1 3", LIMIT_MS);
    actor_kill(&c, SIGKILL);
    (void)actor_wait(&c);
    actor_dismiss(&a);
}

static int setup(void **state)
{
    struct stage *stage = *state;

    return scene_setup((void **)&stage->scene);
}

static int teardown(void **state)
{
    struct stage *stage = *state;

    return scene_teardown((void **)&stage->scene);
}

int main(int argc, char **argv)
{
    struct stage stage = {.role = argc > 1 ? argv[1] : NULL};
#define ON_STAGE(test) cmocka_unit_test_prestate_setup_teardown(test, setup, teardown, &stage)
    const struct CMUnitTest tests[] = {
        ON_STAGE(test_killed_leader_is_noticed_long_before_its_lease_ends),
        ON_STAGE(test_resigning_leader_rings_the_other_process),
        ON_STAGE(test_leader_that_leaves_hands_over_at_once),
        ON_STAGE(test_frozen_leader_is_replaced_and_knows_it_when_it_wakes),
        ON_STAGE(test_frozen_leader_reports_its_demotion_and_overrun),
        ON_STAGE(test_frozen_leader_does_not_outlive_its_deadline_by_default),
        ON_STAGE(test_callback_that_hangs_past_the_deadline_aborts_the_process),
        ON_STAGE(test_full_stderr_does_not_keep_an_overrun_process_alive),
        ON_STAGE(test_handler_of_sigabrt_does_not_keep_an_overrun_process_alive),
        ON_STAGE(test_forked_child_is_not_leader),
        ON_STAGE(test_ensure_moves_the_gavel_to_the_desired_process),
        ON_STAGE(test_minimum_mandate_yields_only_to_force),
        ON_STAGE(test_second_process_with_an_id_in_use_is_stopped),
        ON_STAGE(test_only_candidates_that_did_not_leave_count_as_timed_out),
    };

    if (!stage.role) {
        (void)fprintf(stderr, "usage: %s ROLE_PROGRAM\n", argv[0]);
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("lib process", tests, NULL, NULL);
}
