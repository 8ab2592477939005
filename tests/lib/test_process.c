/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Elections between processes on one SQLite file, and what happens to them
 * when they are killed, frozen, hang or fork. argv[1] is the program that
 * plays the candidates (role.c).
 */
#include "actor.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
    (void)snprintf(path, sizeof path, "%s/%s.stderr", stage->scene->directory, id);
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

/* Dies of this signal without anyone doing anything more about it. */
static void assert_dies_of(struct actor *actor, int signal)
{
    struct death death = {.pid = actor->pid};

    assert_true(comes_true(has_died, &death, LIMIT_MS));
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

    (void)start_pair(&a, &b, *state, "lenient", "abort", "60000");
    tell(&a, "resign\n");
    expect(&a, "stopping resigned", LIMIT_MS);
    assert_aborted(&a, *state, "a");
    expect(&b, "elected", LIMIT_MS);
    actor_dismiss(&b);
}

static void test_full_stderr_does_not_keep_an_overrun_process_alive(void **state)
{
    struct actor a;

    actor_start(&a, *state, "a", "lenient", "abort", "60000");
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

    actor_start(&a, *state, "a", "lenient", "abort", "60000");
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

int main(int argc, char **argv)
{
    struct stage stage = {.role = argc > 1 ? argv[1] : NULL};
#define ON_STAGE(test) cmocka_unit_test_prestate_setup_teardown(test, stage_setup, stage_teardown, &stage)
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
