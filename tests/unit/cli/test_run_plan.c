/* SPDX-License-Identifier: Apache-2.0 */

/* What gavel run plans before it takes part: programs, environments, users, graces, and every refusal. */
#include "cli/run/run_plan.h"

#include "cli/settings/yaml_file.h"
#include "config/run_environment.h"
#include "config/run_grace.h"
#include "core/candidate/session_bounds.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define RUN_OPTIONS (OPTIONS_STORE | OPTIONS_CANDIDATE | OPTIONS_SETTINGS | OPTIONS_WORK | OPTIONS_RUN)

static const struct command run_command = {.name = "run", .options = RUN_OPTIONS};
static const struct command once_command = {.name = "once", .options = RUN_OPTIONS & ~(unsigned)OPTIONS_RUN};

#define ARGUMENTS_MAX 4

struct fixture {
    char directory[64];
    char file[96];
    struct cli cli;
    struct setting_values values;
    char words[ARGUMENTS_MAX][256]; /* of the command */
    char *argv[ARGUMENTS_MAX + 1];
    struct run_plan plan;
    struct gavel_error error;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    char path[128];

    strcpy(f->directory, "/tmp/gavel-test-XXXXXX");
    if (!mkdtemp(f->directory))
        return -1;
    snprintf(f->file, sizeof f->file, "%s/gavel.yaml", f->directory);
    f->cli.command = &run_command;
    *state = f;
    /* The first is a directory that an ordinary user may not look into; it changes nothing. */
    snprintf(path, sizeof path, "%s/closed", f->directory);
    if (mkdir(path, 0))
        return -1;
    snprintf(path, sizeof path, "%s/closed:/usr/bin:/bin", f->directory);
    return setenv("PATH", path, 1);
}

static int tear_down(void **state)
{
    static const char *const names[] = {"gavel.yaml", "tool", "bin/tool", "bin", "closed"};
    struct fixture *f = *state;
    char path[128];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", f->directory, names[i]);
        (void)remove(path); /* most tests make few of them */
    }
    assert_int_equal(rmdir(f->directory), 0);
    run_plan_done(&f->plan);
    setting_values_done(&f->values);
    free(f);
    return 0;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

/* Plans with this file, and the command of these words; NO_COMMAND: none. */
static enum gavel_status plan(struct fixture *f, const char *yaml, const char *const *words)
{
    int argc = 0;

    for (; words[argc]; argc++) {
        assert_true(argc < ARGUMENTS_MAX);
        snprintf(f->words[argc], sizeof f->words[argc], "%s", words[argc]);
        f->argv[argc] = f->words[argc];
    }
    f->argv[argc] = NULL;
    run_plan_done(&f->plan);
    setting_values_done(&f->values);
    f->error = (struct gavel_error){0};
    write_file(f->file, yaml, 0600);
    if (yaml_file_load(f->file, &f->values, &f->error) != GAVEL_OK ||
        setting_values_resolve(&f->values, f->cli.command->options, &f->cli.config, &f->error) != GAVEL_OK)
        fail_msg("%s", f->error.message);
    f->cli.config.file = f->file;
    return run_plan_make(&f->cli, argc, f->argv, &f->plan, &f->error);
}

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO_COMMAND ((const char *const[]){NULL})

static void assert_refused(struct fixture *f, enum gavel_status status, const char *words)
{
    if (f->error.status != status || !strstr(f->error.message, words))
        fail_msg("%s: %s", gavel_status_name(f->error.status), f->error.message);
    assert_null(f->plan.arena.blocks); /* nothing is left of a plan that failed */
}

static const char *value_of(const struct fixture *f, size_t child, const char *name)
{
    return run_environment_value(f->plan.spec.children[child].environment, name);
}

static void test_a_command_is_looked_up_and_kept_as_it_is(void **state)
{
    struct fixture *f = *state;
    const struct guard_child *child = &f->plan.spec.children[0];

    assert_int_equal(plan(f, "", ARGV("sleep", "--flag", "")), GAVEL_OK);
    assert_int_equal(f->plan.spec.rules.child_count, 1);
    assert_string_equal(child->name, "sleep");
    assert_non_null(strstr(child->command.path, "/sleep"));
    assert_ptr_equal(child->command.argv, f->argv);
    assert_int_equal(child->stdin_fd, -1);
    assert_int_equal(child->term_signal, SIGTERM);
    assert_null(child->directory);
    assert_false(child->has_user);
    assert_int_equal(f->plan.spec.rules.children[0].on_exit, ON_EXIT_STOP);
    assert_int_equal(f->plan.spec.rules.children[0].ready, READY_AT_ONCE);
    assert_false(f->plan.spec.rules.has_on_elected);
    assert_null(f->plan.healthy);
    assert_false(f->plan.spec.is_single);
}

static void test_a_program_that_is_not_there_is_not_found(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(plan(f, "", ARGV("no-such-program")), GAVEL_ERR_NOT_FOUND);
    assert_refused(f, GAVEL_ERR_NOT_FOUND, "\"no-such-program\" in the directories of PATH");
    assert_int_equal(plan(f, "", ARGV("./no-such-program")), GAVEL_ERR_NOT_FOUND);
    assert_refused(f, GAVEL_ERR_NOT_FOUND, "no program ./no-such-program;");
    assert_int_equal(plan(f, "", ARGV("/etc/passwd/x")), GAVEL_ERR_NOT_FOUND);
    assert_int_equal(plan(f, "", ARGV("")), GAVEL_ERR_NOT_FOUND);
    assert_int_equal(run_plan_fail(&f->cli, &f->error), 127);
}

static void test_a_program_that_cannot_be_executed_is_told_apart(void **state)
{
    struct fixture *f = *state;
    char path[128];

    snprintf(path, sizeof path, "%s/tool", f->directory);
    write_file(path, "#!/bin/sh\n", 0600);
    assert_int_equal(plan(f, "", ARGV(path)), GAVEL_ERR_IO);
    assert_refused(f, GAVEL_ERR_IO, "chmod +x");
    assert_int_equal(run_plan_fail(&f->cli, &f->error), 126);
    assert_int_equal(plan(f, "", ARGV(f->directory)), GAVEL_ERR_IO);
    assert_refused(f, GAVEL_ERR_IO, "it is a directory");
}

static void test_a_script_needs_its_interpreter(void **state)
{
    struct fixture *f = *state;
    char path[128];

    snprintf(path, sizeof path, "%s/tool", f->directory);
    write_file(path, "#! /no/such/interpreter -x\n", 0700);
    assert_int_equal(plan(f, "", ARGV(path)), GAVEL_ERR_NOT_FOUND);
    assert_refused(f, GAVEL_ERR_NOT_FOUND, "names /no/such/interpreter");
    write_file(path, "#!/bin/sh\r\n", 0700);
    assert_int_equal(plan(f, "", ARGV(path)), GAVEL_ERR_NOT_FOUND);
    assert_refused(f, GAVEL_ERR_NOT_FOUND, "carriage returns");
    write_file(path, "#!/bin/sh -e\n", 0700);
    assert_int_equal(plan(f, "", ARGV(path)), GAVEL_OK);
    write_file(path, "echo without an interpreter\n", 0700); /* the shell's, as execvp(3) has it */
    assert_int_equal(plan(f, "", ARGV(path)), GAVEL_OK);
}

/* One that cannot be executed does not hide a good one further on in PATH. */
static void test_the_search_follows_the_path_of_the_child(void **state)
{
    struct fixture *f = *state;
    char bad[128], good[128], yaml[512];

    snprintf(bad, sizeof bad, "%s/tool", f->directory);
    snprintf(good, sizeof good, "%s/bin", f->directory);
    assert_int_equal(mkdir(good, 0700), 0);
    snprintf(good, sizeof good, "%s/bin/tool", f->directory);
    write_file(bad, "#!/bin/sh\n", 0600);
    write_file(good, "#!/bin/sh\n", 0700);
    snprintf(yaml, sizeof yaml, "children:\n  - command: [tool]\n    environment: {PATH: '%s:%s/bin'}\n",
             f->directory, f->directory);
    assert_int_equal(plan(f, yaml, NO_COMMAND), GAVEL_OK);
    assert_string_equal(f->plan.spec.children[0].command.path, good);
    snprintf(yaml, sizeof yaml,
             "children:\n  - command: [tool]\n    directory: %s\n    environment: {PATH: ':bin'}\n",
             f->directory);
    assert_int_equal(plan(f, yaml, NO_COMMAND), GAVEL_OK); /* relative parts count from its own directory */
    assert_string_equal(f->plan.spec.children[0].command.path, good);
    assert_string_equal(f->plan.spec.children[0].directory, f->directory);
    snprintf(yaml, sizeof yaml, "children:\n  - command: [tool]\n    environment: {PATH: '/bin:%s'}\n",
             f->directory);
    assert_int_equal(plan(f, yaml, NO_COMMAND), GAVEL_ERR_IO); /* there is one, and no other */
    assert_refused(f, GAVEL_ERR_IO, bad);
    assert_int_equal(plan(f, "children:\n  - command: [tool]\n    environment: {PATH: ''}\n", NO_COMMAND),
                     GAVEL_ERR_NOT_FOUND);
}

static void test_the_command_knows_who_it_runs_for(void **state)
{
    struct fixture *f = *state;
    char cwd[PATH_MAX], expected[PATH_MAX + 32];

    assert_non_null(getcwd(cwd, sizeof cwd));
    snprintf(expected, sizeof expected, "sqlite:%s/some.db", cwd);
    assert_int_equal(plan(f, "store: ./some.db\ngroup: jobs\ncandidate: web-1\n", ARGV("true")), GAVEL_OK);
    assert_string_equal(value_of(f, 0, "GAVEL_STORE"), expected); /* it may run in another directory */
    assert_string_equal(value_of(f, 0, "GAVEL_GROUP"), "jobs");
    assert_string_equal(value_of(f, 0, "GAVEL_CANDIDATE"), "web-1");
    assert_string_equal(f->plan.id, "web-1");
    assert_ptr_equal(value_of(f, 0, "GAVEL_EPOCH"), f->plan.spec.epoch + strlen("GAVEL_EPOCH="));
    assert_int_equal(plan(f, "", ARGV("true")), GAVEL_OK);
    assert_string_equal(value_of(f, 0, "GAVEL_CANDIDATE"), f->plan.id); /* also one that was chosen */
}

static void test_what_was_meant_for_gavel_alone_is_not_passed_on(void **state)
{
    static const char *const names[] = {"NOTIFY_SOCKET",        "WATCHDOG_USEC",      "WATCHDOG_PID",
                                        "LISTEN_PID",           "LISTEN_FDS",         "LISTEN_FDNAMES",
                                        "GAVEL_MYSQL_PASSWORD", "GAVEL_ETCD_PASSWORD"};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(setenv(names[i], "1", 1), 0);
    assert_int_equal(setenv("GAVEL_EPOCH", "77", 1), 0);
    assert_int_equal(setenv("LISTEN_ADDRESS", "localhost", 1), 0);
    assert_int_equal(plan(f, "", ARGV("true")), GAVEL_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_null(value_of(f, 0, names[i]));
        unsetenv(names[i]);
    }
    assert_string_equal(value_of(f, 0, "LISTEN_ADDRESS"), "localhost"); /* nobody's but the user's */
    assert_string_equal(value_of(f, 0, "GAVEL_EPOCH"), "0");            /* the guard writes it */
    unsetenv("LISTEN_ADDRESS");
    unsetenv("GAVEL_EPOCH");
}

static void test_variables_of_a_child_replace_those_of_gavel(void **state)
{
    struct fixture *f = *state;
    size_t count = 0;

    assert_int_equal(setenv("SOME", "outer", 1), 0);
    assert_int_equal(
        plan(f, "children:\n  - command: x\n    environment: {SOME: inner, MORE: 1}\n  - command: y\n",
             NO_COMMAND),
        GAVEL_OK);
    assert_string_equal(value_of(f, 0, "SOME"), "inner");
    assert_string_equal(value_of(f, 0, "MORE"), "1");
    assert_string_equal(value_of(f, 1, "SOME"), "outer");
    assert_null(value_of(f, 1, "MORE"));
    for (char *const *at = f->plan.spec.children[0].environment; *at; at++)
        count += strncmp(*at, "SOME=", 5) == 0;
    assert_int_equal(count, 1);
    unsetenv("SOME");
}

static void test_several_children_read_nothing_and_restart(void **state)
{
    struct fixture *f = *state;
    const struct guard_spec *spec = &f->plan.spec;

    assert_int_equal(plan(f,
                          "term_signal: QUIT\nchildren:\n  - command: x\n    term_signal: 2\n"
                          "    on_exit: stop\n  - command: y\n    ready: {fd: 7, timeout: 1s}\n",
                          NO_COMMAND),
                     GAVEL_OK);
    assert_true(spec->children[0].stdin_fd > STDERR_FILENO);
    assert_int_equal(spec->children[0].stdin_fd, spec->children[1].stdin_fd);
    assert_int_equal(spec->rules.children[0].on_exit, ON_EXIT_STOP);
    assert_int_equal(spec->rules.children[1].on_exit, ON_EXIT_RESTART);
    assert_int_equal(spec->children[0].term_signal, SIGINT);
    assert_int_equal(spec->children[1].term_signal, SIGQUIT);
    assert_int_equal(spec->rules.children[1].ready, READY_BY_FD);
    assert_int_equal(spec->children[1].ready_fd, 7);
    assert_int_equal(spec->rules.children[1].ready_timeout, NS_PER_S);
    assert_int_equal(plan(f, "on_exit: resign\nchildren:\n  - command: x\n", NO_COMMAND), GAVEL_OK);
    assert_int_equal(spec->children[0].stdin_fd, -1);
    assert_int_equal(spec->rules.children[0].on_exit, ON_EXIT_RESIGN); /* what the file says for all */
}

static void test_hooks_and_health_are_planned(void **state)
{
    struct fixture *f = *state;
    const struct guard_spec *spec = &f->plan.spec;

    assert_int_equal(plan(f,
                          "on_elected: mount x\non_demoted: umount x\nhook_timeout: 3s\nhealthy: ./well\n"
                          "healthy_every: 1s\nhealthy_failures: 4\nrestart_limit: 9\nrestart_window: 1m\n"
                          "cool_down: 2s\norphan_grace: 100ms\ncontain: walk\nprefix: yes\n",
                          ARGV("true")),
                     GAVEL_OK);
    assert_true(spec->rules.has_on_elected && spec->rules.has_on_demoted);
    assert_string_equal(spec->on_elected.path, "/bin/sh");
    assert_string_equal(spec->on_elected.argv[2], "mount x");
    assert_string_equal(spec->on_demoted.argv[2], "umount x");
    assert_int_equal(spec->rules.hook_timeout, 3 * NS_PER_S);
    assert_string_equal(f->plan.healthy, "./well");
    assert_int_equal(f->plan.healthy_every_ms, 1000);
    assert_int_equal(f->plan.healthy_failures, 4);
    assert_int_equal(f->plan.cool_down_ms, 2000);
    assert_int_equal(spec->rules.restart_limit, 9);
    assert_int_equal(spec->rules.restart_window, 60 * NS_PER_S);
    assert_int_equal(spec->orphan_grace, 100 * NS_PER_MS);
    assert_int_equal(spec->contain, CONTAIN_WALK);
    assert_true(f->plan.has_prefix);
    assert_false(spec->is_single);
}

static void test_what_runs_once_ends_with_its_command(void **state)
{
    struct fixture *f = *state;

    f->cli.command = &once_command;
    assert_int_equal(plan(f, "on_exit: restart\nprefix: true\n", ARGV("true")), GAVEL_OK);
    assert_int_equal(f->plan.spec.rules.children[0].on_exit, ON_EXIT_STOP);
    assert_false(f->plan.has_prefix);
    assert_int_equal(plan(f, "", NO_COMMAND), GAVEL_ERR_INVALID);
    assert_int_equal(plan(f, "children:\n  - command: x\n", NO_COMMAND), GAVEL_ERR_INVALID);
    assert_refused(f, GAVEL_ERR_INVALID, "-- COMMAND");
}

static void test_exactly_one_place_says_what_to_run(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(plan(f, "", NO_COMMAND), GAVEL_ERR_INVALID);
    assert_refused(f, GAVEL_ERR_INVALID, "gavel run -- COMMAND");
    assert_int_equal(plan(f, "children:\n  - command: x\n", ARGV("true")), GAVEL_ERR_INVALID);
    assert_refused(f, GAVEL_ERR_INVALID, "leave one of them out");
}

static void test_what_the_system_refuses_is_told_with_its_line(void **state)
{
    struct fixture *f = *state;
    char yaml[256];

    assert_int_equal(plan(f, "\nchildren:\n  - command: x\n    user: no-such-user\n", NO_COMMAND),
                     GAVEL_ERR_INVALID);
    assert_refused(f, GAVEL_ERR_INVALID, "gavel.yaml:3: x: there is no user");
    assert_int_equal(plan(f, "children:\n  - command: x\n    directory: /no/such\n", NO_COMMAND),
                     GAVEL_ERR_INVALID);
    assert_refused(f, GAVEL_ERR_INVALID, "gavel.yaml:2: x: the directory /no/such");
    snprintf(yaml, sizeof yaml, "children:\n  - command: x\n    directory: %s\n", f->file);
    assert_int_equal(plan(f, yaml, NO_COMMAND), GAVEL_ERR_INVALID);
    assert_refused(f, GAVEL_ERR_INVALID, "it is a file");
    assert_int_equal(plan(f, "children:\n  - command: [no-such]\n", NO_COMMAND), GAVEL_ERR_NOT_FOUND);
    assert_refused(f, GAVEL_ERR_NOT_FOUND, "gavel.yaml:2: no-such: ");
    assert_int_equal(plan(f, "children:\n  - command: x\n    ready: {command: [no-such]}\n", NO_COMMAND),
                     GAVEL_ERR_NOT_FOUND);
}

static void test_arguments_that_no_system_takes_are_refused(void **state)
{
    struct fixture *f = *state;
    size_t length = 200000;
    char *yaml = malloc(length + 64);

    strcpy(yaml, "children:\n  - command: [echo, ");
    memset(yaml + strlen(yaml), 'x', length);
    strcpy(yaml + strlen("children:\n  - command: [echo, ") + length, "]\n");
    assert_int_equal(plan(f, yaml, NO_COMMAND), GAVEL_ERR_INVALID);
    assert_refused(f, GAVEL_ERR_INVALID, "more than the system takes");
    free(yaml);
}

/* As root it becomes that user with its groups; as anybody else it is refused. */
static void test_another_user_is_for_root_only(void **state)
{
    struct fixture *f = *state;
    const struct guard_child *child = &f->plan.spec.children[0];
    char yaml[128];

    if (geteuid() == 0) {
        assert_int_equal(plan(f, "children:\n  - command: x\n    user: nobody\n", NO_COMMAND), GAVEL_OK);
        assert_true(child->has_user);
        assert_int_not_equal(child->uid, 0);
        assert_true(child->group_count >= 1);
        assert_int_equal(child->groups[0], child->gid);
        assert_string_equal(value_of(f, 0, "USER"), "nobody");
        assert_string_equal(value_of(f, 0, "LOGNAME"), "nobody");
        assert_int_equal(plan(f, "children:\n  - command: x\n    user: 4123456\n", NO_COMMAND), GAVEL_OK);
        assert_int_equal(child->uid, 4123456);
        assert_int_equal(child->gid, 4123456);
        assert_int_equal(child->group_count, 0);
    } else {
        assert_int_equal(plan(f, "children:\n  - command: x\n    user: root\n", NO_COMMAND),
                         GAVEL_ERR_INVALID);
        assert_refused(f, GAVEL_ERR_INVALID, "only root may");
    }
    snprintf(yaml, sizeof yaml, "children:\n  - command: x\n    user: %d\n", (int)geteuid());
    assert_int_equal(plan(f, yaml, NO_COMMAND), GAVEL_OK); /* to be who one is needs no permission */
    assert_false(child->has_user);
    assert_int_equal(plan(f, "children:\n  - command: x\n    user: 4294967295\n", NO_COMMAND),
                     GAVEL_ERR_INVALID);
}

static void test_without_an_election_there_is_nobody_to_hand_over_to(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(plan(f, "enabled: false\n", ARGV("true")), GAVEL_OK);
    assert_true(f->plan.spec.is_single);
    assert_int_equal(plan(f, "enabled: false\nhealthy: ./well\n", ARGV("true")), GAVEL_ERR_INVALID);
    assert_int_equal(plan(f, "enabled: false\non_exit: resign\n", ARGV("true")), GAVEL_ERR_INVALID);
}

static void test_a_command_may_use_what_the_kill_lead_leaves(void **state)
{
    struct fixture *f = *state;
    const struct supervisor_rules *rules = &f->plan.spec.rules;

    assert_int_equal(plan(f, "", ARGV("true")), GAVEL_OK); /* 500 ms, of which a quarter is for SIGKILL */
    assert_int_equal(f->plan.spec.stop_grace, 500 * NS_PER_MS);
    assert_int_equal(rules->children[0].grace, 375 * NS_PER_MS);
    assert_int_equal(plan(f, "grace: 10s\nlease: 20s\n", ARGV("true")), GAVEL_OK);
    assert_int_equal(rules->children[0].grace, 9500 * NS_PER_MS);
    assert_int_equal(plan(f, "grace: 60ms\n", ARGV("true")), GAVEL_OK);
    assert_int_equal(rules->children[0].grace, 35 * NS_PER_MS);
    assert_int_equal(plan(f, "grace: 49ms\n", ARGV("true")), GAVEL_ERR_BUDGET);
    assert_int_equal(plan(f, "grace: 0\n", ARGV("true")), GAVEL_ERR_BUDGET);
}

static void test_graces_of_all_children_fit_together(void **state)
{
    struct fixture *f = *state;
    const struct supervisor_rules *rules = &f->plan.spec.rules;
    const char *two = "grace: 4s\nlease: 10s\nchildren:\n  - command: a\n    grace: 2s\n  - command: b\n"
                      "    grace: 1500ms\n  - command: c\n";

    assert_int_equal(plan(f, two, NO_COMMAND), GAVEL_OK); /* exactly all that there is */
    assert_int_equal(rules->children[0].grace, 2 * NS_PER_S);
    assert_int_equal(rules->children[1].grace, 1500 * NS_PER_MS);
    assert_int_equal(rules->children[2].grace, 0);
    assert_int_equal(plan(f,
                          "grace: 4s\nlease: 10s\nchildren:\n  - command: a\n    grace: 2s\n  - command: b\n"
                          "    grace: 1501ms\n",
                          NO_COMMAND),
                     GAVEL_ERR_BUDGET);
    assert_refused(f, GAVEL_ERR_BUDGET, "a 2000 + b 1501 = 3501 ms");
    assert_non_null(strstr(f->error.message, "--stop-grace 4001ms,")); /* and the lease would do */
    assert_int_equal(plan(f, "children:\n  - command: a\n    grace: 10s\n", NO_COMMAND), GAVEL_ERR_BUDGET);
    assert_non_null(strstr(f->error.message, "--stop-grace 10500ms and --lease 1"));
}

/* Whatever was asked for: what the message proposes is enough, and is not far more than that. */
static void test_the_lease_that_is_proposed_adds_up(void **state)
{
    static const gavel_ms graces[] = {2000, 2345, 10000, 60000, 3600000, 86400000};
    static const int drifts[] = {0, 1000, 20000, 100000};

    (void)state;
    for (size_t i = 0; i < sizeof graces / sizeof graces[0]; i++)
        for (size_t j = 0; j < sizeof drifts / sizeof drifts[0]; j++) {
            struct gavel_error error = {0};
            struct gavel_settings settings;
            const char *advice;
            long long number;
            char unit[3] = "";

            assert_int_equal(gavel_settings_preset("local", &settings), GAVEL_OK);
            settings.stop_grace_ms = graces[i];
            settings.drift_ppm = drifts[j];
            assert_int_equal(run_settings_check(&settings, NULL, &error), GAVEL_ERR_BUDGET);
            advice = strstr(error.message, "; --lease ");
            assert_non_null(advice);
            assert_int_equal(sscanf(advice, "; --lease %lld%2[ms] would do", &number, unit), 2);
            settings.lease_ms = strcmp(unit, "s") == 0 ? number * 1000 : number;
            assert_int_equal(run_settings_check(&settings, NULL, NULL), GAVEL_OK);
            settings.lease_ms -= settings.lease_ms / 50 + 200;
            assert_int_equal(run_settings_check(&settings, NULL, NULL), GAVEL_ERR_BUDGET);
        }
}

/* The same where mandates last as long as a session; there one late answer does no harm, either. */
static void test_the_lease_that_is_proposed_for_sessions_adds_up(void **state)
{
    static const gavel_ms graces[] = {2000, 3000, 4000, 10000, 3600000};
    const struct run_sessions sessions = {0}, asked = {.asked_ttl_ms = 2000};

    (void)state;
    for (size_t i = 0; i < sizeof graces / sizeof graces[0]; i++) {
        struct gavel_error error = {0};
        struct gavel_settings settings;
        struct session_terms terms;
        struct gavel_bounds bounds;
        const char *advice;
        long long number;
        char unit[3] = "";

        assert_int_equal(gavel_settings_preset("cluster", &settings), GAVEL_OK);
        settings.stop_grace_ms = graces[i];
        assert_int_equal(run_settings_check(&settings, &sessions, &error), GAVEL_ERR_BUDGET);
        advice = strstr(error.message, "; --lease ");
        assert_non_null(advice);
        assert_int_equal(sscanf(advice, "; --lease %lld%2[ms] would do", &number, unit), 2);
        settings.lease_ms = strcmp(unit, "s") == 0 ? number * 1000 : number;
        assert_int_equal(run_settings_check(&settings, &sessions, NULL), GAVEL_OK);
        session_terms_of(&settings, 0, &terms);
        session_bounds(&settings, &terms, &bounds);
        assert_true(bounds.renew_slack_ms > 0);
        settings.lease_ms -= settings.lease_ms / 3;
        assert_int_equal(run_settings_check(&settings, &sessions, NULL), GAVEL_ERR_BUDGET);

        assert_int_equal(run_settings_check(&settings, &asked, &error), GAVEL_ERR_BUDGET);
        advice = strstr(error.message, "ttl_ms=");
        assert_non_null(advice);
        assert_int_equal(sscanf(advice, "ttl_ms=%lld in the URL would do", &number), 1);
        advice = strstr(error.message, "; --lease ");
        if (advice) {
            long long lease;

            assert_int_equal(sscanf(advice, "; --lease %lld%2[ms] and", &lease, unit), 2);
            settings.lease_ms = strcmp(unit, "s") == 0 ? lease * 1000 : lease;
        }
        assert_int_equal(run_settings_check(&settings, &(struct run_sessions){.asked_ttl_ms = number}, NULL),
                         GAVEL_OK);
    }
}

static void test_what_no_lease_can_heal_gets_no_advice(void **state)
{
    struct gavel_error error = {0};
    struct gavel_settings settings;

    (void)state;
    assert_int_equal(gavel_settings_preset("local", &settings), GAVEL_OK);
    settings.start_jitter_min_ms = 5;
    assert_int_equal(run_settings_check(&settings, NULL, &error), GAVEL_ERR_BUDGET);
    assert_null(strstr(error.message, "would do"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_command_is_looked_up_and_kept_as_it_is),
        TEST(test_a_program_that_is_not_there_is_not_found),
        TEST(test_a_program_that_cannot_be_executed_is_told_apart),
        TEST(test_a_script_needs_its_interpreter),
        TEST(test_the_search_follows_the_path_of_the_child),
        TEST(test_the_command_knows_who_it_runs_for),
        TEST(test_what_was_meant_for_gavel_alone_is_not_passed_on),
        TEST(test_variables_of_a_child_replace_those_of_gavel),
        TEST(test_several_children_read_nothing_and_restart),
        TEST(test_hooks_and_health_are_planned),
        TEST(test_what_runs_once_ends_with_its_command),
        TEST(test_exactly_one_place_says_what_to_run),
        TEST(test_what_the_system_refuses_is_told_with_its_line),
        TEST(test_arguments_that_no_system_takes_are_refused),
        TEST(test_another_user_is_for_root_only),
        TEST(test_without_an_election_there_is_nobody_to_hand_over_to),
        TEST(test_a_command_may_use_what_the_kill_lead_leaves),
        TEST(test_graces_of_all_children_fit_together),
        cmocka_unit_test(test_the_lease_that_is_proposed_adds_up),
        cmocka_unit_test(test_the_lease_that_is_proposed_for_sessions_adds_up),
        cmocka_unit_test(test_what_no_lease_can_heal_gets_no_advice),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
