/* SPDX-License-Identifier: Apache-2.0 */

/* The children of the configuration file: what is read, and that every mistake has its line. */
#include "yaml_fixture.h"

#include "base/prng.h"

#include <signal.h>

#define MUTATIONS 5000

static enum gavel_status load_text(struct fixture *f, const char *text)
{
    return load(f, text, strlen(text));
}

/* A child with this line, beside its command; the line is the third one. */
static void assert_line_refused(struct fixture *f, const char *line, const char *words)
{
    char text[512], prefix[128];

    snprintf(text, sizeof text, "children:\n  - command: x\n    %s\n", line);
    snprintf(prefix, sizeof prefix, "%s:3: ", f->name);
    assert_int_equal(load_text(f, text), GAVEL_ERR_INVALID);
    if (strncmp(f->error.message, prefix, strlen(prefix)) != 0 || !strstr(f->error.message, words))
        fail_msg("\"%s\" gives: %s", line, f->error.message);
}

static void assert_file_refused(struct fixture *f, const char *text, int line, const char *words)
{
    char prefix[128];

    snprintf(prefix, sizeof prefix, "%s:%d: ", f->name, line);
    assert_int_equal(load_text(f, text), GAVEL_ERR_INVALID);
    if (strncmp(f->error.message, prefix, strlen(prefix)) != 0 || !strstr(f->error.message, words))
        fail_msg("line %d, \"%s\": %s", line, words, f->error.message);
}

static void test_everything_that_a_child_can_say_is_read(void **state)
{
    struct fixture *f = *state;
    const struct run_file *file = &f->values.children;
    const struct run_child *db = &file->children[0], *web = &file->children[1];

    assert_int_equal(load_text(f, "lease: 5s\n"
                                  "children:\n"
                                  "  - name: db\n"
                                  "    command: [./bin/postgres, --foreground, '']\n"
                                  "    directory: /srv/db\n"
                                  "    user: postgres\n"
                                  "    environment: {PORT: \"5432\", EMPTY: \"\", A.b: 1}\n"
                                  "    grace: 3s\n"
                                  "    term_signal: INT\n"
                                  "    on_exit: resign\n"
                                  "    ready: {command: ./is-ready, timeout: 20s}\n"
                                  "  - command: cd /srv && exec ./web | tee log\n"
                                  "    ready: {fd: 3}\n"
                                  "group: jobs\n"),
                     GAVEL_OK);
    assert_int_equal(file->count, 2);
    assert_int_equal(db->line, 3);
    assert_string_equal(db->name, "db");
    assert_string_equal(db->command[0], "./bin/postgres");
    assert_string_equal(db->command[2], "");
    assert_null(db->command[3]);
    assert_string_equal(db->directory, "/srv/db");
    assert_string_equal(db->user, "postgres");
    assert_string_equal(db->environment[0], "PORT=5432");
    assert_string_equal(db->environment[1], "EMPTY=");
    assert_string_equal(db->environment[2], "A.b=1");
    assert_null(db->environment[3]);
    assert_int_equal(db->grace_ms, 3000);
    assert_int_equal(db->term_signal, SIGINT);
    assert_true(db->has_on_exit);
    assert_int_equal(db->on_exit, ON_EXIT_RESIGN);
    assert_int_equal(db->ready, READY_BY_COMMAND);
    assert_string_equal(db->ready_command[2], "./is-ready");
    assert_int_equal(db->ready_timeout_ms, 20000);
    assert_int_equal(web->line, 12);
    assert_string_equal(web->name, "cd");
    assert_string_equal(web->command[0], "/bin/sh");
    assert_string_equal(web->command[1], "-c");
    assert_string_equal(web->command[2], "cd /srv && exec ./web | tee log");
    assert_null(web->command[3]);
    assert_null(web->environment);
    assert_int_equal(web->grace_ms, -1);
    assert_false(web->has_on_exit);
    assert_int_equal(web->ready, READY_BY_FD);
    assert_int_equal(web->ready_fd, 3);
    assert_int_equal(web->ready_timeout_ms, RUN_READY_TIMEOUT_MS);
    assert_string_equal(setting_values_text(&f->values, "lease"),
                        "5s"); /* settings around it are read, too */
    assert_string_equal(setting_values_text(&f->values, "group"), "jobs");
}

static void test_a_child_is_named_after_its_program(void **state)
{
    static const struct {
        const char *command, *name;
    } cases[] = {{"[/usr/bin/sleep, 5]", "sleep"},    {"[sleep]", "sleep"},       {"[./a/]", "a/"},
                 {"  /opt/x/run.sh --now", "run.sh"}, {"(cd x; ls)", "sh"},       {"ls;pwd", "ls"},
                 {"[/bin/sh, -c, exec y]", "exec"},   {"[/bin/sh, script]", "sh"}};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[128];

        snprintf(text, sizeof text, "children:\n  - command: %s\n", cases[i].command);
        assert_int_equal(load_text(f, text), GAVEL_OK);
        assert_string_equal(f->values.children.children[0].name, cases[i].name);
    }
}

static void test_mistakes_in_a_child_are_blamed_on_their_lines(void **state)
{
    struct fixture *f = *state;

    assert_line_refused(f, "graze: 3s", "did you mean \"grace\"?");
    assert_line_refused(f, "command: y", "is on line 2 already");
    assert_line_refused(f, "[a]: y", "plain word");
    assert_line_refused(f, "name:", "has no value");
    assert_line_refused(f, "name: ''", "empty");
    assert_line_refused(f, "name: [a]", "one plain value");
    assert_line_refused(f, "name: \"a\\nb\"", "control character");
    assert_line_refused(f, "name: \"a\\0b\"", "NUL byte");
    assert_line_refused(f, "name: aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggg",
                        "64 bytes");
    assert_line_refused(f, "directory: ''", "empty");
    assert_line_refused(f, "directory: {a: b}", "one plain value");
    assert_line_refused(f, "user: ''", "empty");
    assert_line_refused(f, "environment: A=1", "mapping");
    assert_line_refused(f, "environment: [A]", "mapping");
    assert_line_refused(f, "environment: {A: 1, B: 2, A: 3}", "given twice");
    assert_line_refused(f, "environment: {A: }", "write \"\" for an empty one");
    assert_line_refused(f, "environment: {A=B: 1}", "cannot be the name");
    assert_line_refused(f, "environment: {'': 1}", "cannot be the name");
    assert_line_refused(f, "environment: {A: [1]}", "one plain value");
    assert_line_refused(f, "environment: {[A]: 1}", "one plain value");
    assert_line_refused(f, "environment: {GAVEL_EPOCH: 1}", "set by gavel itself");
    assert_line_refused(f, "grace: soon", "\"soon\"");
    assert_line_refused(f, "grace: -1s", "negative");
    assert_line_refused(f, "grace: 31d", "30 days");
    assert_line_refused(f, "term_signal: KILL", "can catch");
    assert_line_refused(f, "term_signal: 0", "not a signal");
    assert_line_refused(f, "term_signal: NONSENSE", "not a signal");
    assert_line_refused(f, "on_exit: explode", "stop, resign, restart");
    assert_line_refused(f, "ready: 3", "key: value");
    assert_line_refused(f, "ready: {}", "either a command or an fd");
    assert_line_refused(f, "ready: {timeout: 3s}", "either a command or an fd");
    assert_line_refused(f, "ready: {fd: 3, command: x}", "either a command or an fd");
    assert_line_refused(f, "ready: {fd: 2}", "from 3 to 255");
    assert_line_refused(f, "ready: {fd: 256}", "from 3 to 255");
    assert_line_refused(f, "ready: {fd: -3}", "from 3 to 255");
    assert_line_refused(f, "ready: {fd: 4294967299}", "from 3 to 255");
    assert_line_refused(f, "ready: {fd: three}", "from 3 to 255");
    assert_line_refused(f, "ready: {fd: 3, timeout: 0}", "from 1 ms");
    assert_line_refused(f, "ready: {fds: 3}", "did you mean \"fd\"?");
    assert_line_refused(f, "ready: {fd: 3, fd: 4}", "already");
    assert_line_refused(f, "ready: {command: ''}", "empty");
    assert_line_refused(f, "<<: {grace: 3s}", "no key \"<<\"");
}

static void test_lists_of_another_shape_are_refused(void **state)
{
    struct fixture *f = *state;

    assert_file_refused(f, "group: a\nchildren: []\n", 2, "empty list");
    assert_file_refused(f, "children:\n", 1, "must be a list");
    assert_file_refused(f, "children: {command: x}\n", 1, "must be a list");
    assert_file_refused(f, "children: x\n", 1, "must be a list");
    assert_file_refused(f, "children:\n  - x\n", 2, "key: value");
    assert_file_refused(f, "children:\n  - [x]\n", 2, "key: value");
    assert_file_refused(f, "children:\n  - name: x\n", 2, "no command");
    assert_file_refused(f, "children:\n  - command: []\n", 2, "empty list");
    assert_file_refused(f, "children:\n  - command: ['']\n", 2, "must be the program");
    assert_file_refused(f, "children:\n  - command: ' '\n", 2, "empty");
    assert_file_refused(f, "children:\n  - command: [a, [b]]\n", 2, "one plain value");
    assert_file_refused(f, "children:\n  - command: [a, ~]\n", 2, "no value");
    assert_file_refused(f, "children:\n  - command: {a: b}\n", 2, "a list");
    assert_file_refused(f, "children:\n  - command: x\n  - command: ./x\n", 3, "give this one a name");
    assert_file_refused(f, "children:\n  - command: x\n  - command: y\n    name: x\n", 3,
                        "choose another name");
    assert_file_refused(f, "children:\n  - command: x\nlease: 1s\nchildren:\n  - command: y\n", 4,
                        "on line 1 already");
    assert_file_refused(f, "children:\n  - &a {command: x}\n  - *a\n", 3, "no aliases");
    assert_file_refused(f, "childrem:\n  - command: x\n", 1, "did you mean \"children\"?");
    assert_file_refused(f, "lease: 5s\nchildren:\n  - command: x\nnonsense: 1\n", 4, "\"nonsense\"");
}

static void test_there_is_a_limit_to_children(void **state)
{
    struct fixture *f = *state;
    char text[4096] = "children:\n";

    for (int i = 0; i < CHILDREN_MAX; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "  - command: x%d\n", i);
    assert_int_equal(load_text(f, text), GAVEL_OK);
    assert_int_equal(f->values.children.count, CHILDREN_MAX);
    strcat(text, "  - command: y\n");
    assert_file_refused(f, text, CHILDREN_MAX + 2, "too many");
}

/* A good file with bytes changed and taken away at random: refused in words, or taken. */
static void test_mangled_children_are_refused_in_words_or_taken(void **state)
{
    static const char good[] =
        "children:\n  - name: db\n    command: [a, b]\n    environment: {A: \"1\"}\n    grace: 1s\n"
        "    ready: {fd: 3, timeout: 1s}\n  - command: x\n    on_exit: stop\n    term_signal: INT\n";
    struct fixture *f = *state;
    struct prng prng;
    int refused = 0;

    prng_seed(&prng, 1);
    for (int i = 0; i < MUTATIONS; i++) {
        char bytes[sizeof good];
        size_t length = 1 + prng_below(&prng, sizeof good - 1);
        enum gavel_status status;

        length = prng_chance(&prng, 500) ? sizeof good - 1 : length;
        memcpy(bytes, good, length);
        for (uint64_t n = prng_below(&prng, 4); n > 0; n--)
            bytes[prng_below(&prng, length)] = prng_chance(&prng, 500)
                                                   ? "\n:-[]{}&*!|>'\"%@`#? \t\0"[prng_below(&prng, 22)]
                                                   : (char)prng_next(&prng);
        status = load(f, bytes, length);
        assert_true(status == GAVEL_OK || status == GAVEL_ERR_INVALID);
        refused += status != GAVEL_OK;
        assert_int_equal(status != GAVEL_OK, f->error.message[0] != '\0');
    }
    assert_in_range(refused, MUTATIONS / 10, MUTATIONS - 1); /* both ways were taken */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_everything_that_a_child_can_say_is_read),
        TEST(test_a_child_is_named_after_its_program),
        TEST(test_mistakes_in_a_child_are_blamed_on_their_lines),
        TEST(test_lists_of_another_shape_are_refused),
        TEST(test_there_is_a_limit_to_children),
        TEST(test_mangled_children_are_refused_in_words_or_taken),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
