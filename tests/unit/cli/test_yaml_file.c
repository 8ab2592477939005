/* SPDX-License-Identifier: Apache-2.0 */

/* The configuration file: every mistake has a line, and no bytes whatsoever do harm. */
#include "yaml_fixture.h"

#include "base/prng.h"

#define MUTATIONS 5000

static enum gavel_status load_text(struct fixture *f, const char *text)
{
    return load(f, text, strlen(text));
}

/* Loads it, and expects a refusal that names the line. */
static void assert_refused_at(struct fixture *f, const char *text, int line)
{
    char prefix[128];

    snprintf(prefix, sizeof prefix, "%s:%d: ", f->name, line);
    assert_int_equal(load_text(f, text), GAVEL_ERR_INVALID);
    if (strncmp(f->error.message, prefix, strlen(prefix)) != 0)
        fail_msg("line %d is not blamed: %s", line, f->error.message);
}

static void test_values_are_noted_with_their_lines(void **state)
{
    struct fixture *f = *state;
    const struct setting_value *lease, *group;

    assert_int_equal(load_text(f, "# comment\ngroup: 'a: b'\n\nlease:   \"5s\"\n"), GAVEL_OK);
    lease = &f->values.items[setting_by_flag("lease") - settings_table];
    group = &f->values.items[setting_by_flag("group") - settings_table];
    assert_string_equal(lease->text, "5s");
    assert_int_equal(lease->line, 4);
    assert_int_equal(lease->source, SOURCE_FILE);
    assert_string_equal(group->text, "a: b");
    assert_int_equal(group->line, 2);
}

static void test_mistakes_are_blamed_on_their_lines(void **state)
{
    struct fixture *f = *state;

    assert_refused_at(f, "lease: 5s\nnonsense: 1\n", 2);
    assert_refused_at(f, "lease: 5s\ngroup: a\n\nlease: 6s\n", 4);
    assert_refused_at(f, "lease: [5s]\n", 1);
    assert_refused_at(f, "group: a\nlease:\n", 2);
    assert_refused_at(f, "group: a\n---\nlease: 5s\n", 2);
    assert_refused_at(f, "---\n---\nbogus: 4s\n", 2);
    assert_refused_at(f, "~\n...\n---\nlease: 5s\n", 3);
    assert_refused_at(f, "\n\n- a\n", 3);
    assert_refused_at(f, "group: a\n<<: {lease: 5s}\n", 2);
    assert_refused_at(f, "group: \"a\\0b\"\n", 1);
    assert_refused_at(f, "group: a\n\tlease: 5s\n", 2);
}

static void test_a_key_of_the_table_for_flags_only_is_unknown(void **state)
{
    struct fixture *f = *state;

    assert_refused_at(f, "json: true\n", 1);
    assert_refused_at(f, "config: other.yaml\n", 1);
}

static void test_empty_files_set_nothing(void **state)
{
    static const char *const texts[] = {"", "\n", "# comment", "---", "---\n...\n", "~"};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(load_text(f, texts[i]), GAVEL_OK);
        for (size_t j = 0; j < settings_count; j++)
            assert_int_equal(f->values.items[j].source, SOURCE_NONE);
    }
}

static void test_a_file_that_is_not_there_is_an_io_error(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(yaml_file_load("/nonexistent/gavel.yaml", &f->values, &f->error), GAVEL_ERR_IO);
    assert_non_null(strstr(f->error.message, "/nonexistent/gavel.yaml"));
}

/* A good file with bytes changed, doubled and taken away at random: refused in words, or taken. */
static void test_mangled_files_are_refused_in_words_or_taken(void **state)
{
    static const char good[] = "# gavel\nstore: sqlite:/x\ngroup: \"a \\u00e4\"\ncandidate: 'b'\nlease: 5s\n"
                               "policy: priority\nextra: &a [x, {y: z}]\nprefer: *a\nmultiline: |\n  text\n";
    struct fixture *f = *state;
    struct prng prng;
    int refused = 0;

    prng_seed(&prng, 1);
    for (int i = 0; i < MUTATIONS; i++) {
        char bytes[sizeof good];
        size_t length = 1 + prng_below(&prng, sizeof good - 1);
        enum gavel_status status;

        memcpy(bytes, good, length);
        for (uint64_t n = prng_below(&prng, 6); n > 0; n--)
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_values_are_noted_with_their_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_mistakes_are_blamed_on_their_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_key_of_the_table_for_flags_only_is_unknown, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_empty_files_set_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_file_that_is_not_there_is_an_io_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_mangled_files_are_refused_in_words_or_taken, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
