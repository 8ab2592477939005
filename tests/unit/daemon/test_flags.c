/* SPDX-License-Identifier: Apache-2.0 */

/* The command line of gaveld, and that --help has everything that can be set. */
#include "daemon/config/flags.h"
#include "daemon/config/settings.h"
#include "daemon/exit_codes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct flags flags;
    struct gavel_error error;
};

/* Reads a line of words, separated by single spaces. */
static enum gavel_status read_line(struct fixture *f, const char *line)
{
    static char text[512];
    char *argv[16] = {0}, *save = NULL;
    int argc = 0;

    (void)snprintf(text, sizeof text, "gaveld %s", line);
    for (char *word = strtok_r(text, " ", &save); word && argc < 15; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    f->error = (struct gavel_error){0};
    return flags_read(argc, argv, NULL, &f->flags, &f->error);
}

static void assert_refused(struct fixture *f, const char *line, const char *words)
{
    assert_int_equal(read_line(f, line), GAVEL_ERR_INVALID);
    if (!strstr(f->error.message, words))
        fail_msg("\"%s\" gives: %s", line, f->error.message);
}

static void test_flags_are_read(void **state)
{
    struct fixture f = {0};

    (void)state;
    assert_int_equal(read_line(&f, "-c a.yaml --log-level debug --node=n1 --no-realtime --witness --join"),
                     GAVEL_OK);
    assert_string_equal(f.flags.input.file, "a.yaml");
    assert_int_equal(f.flags.mode, FLAGS_RUN);
    assert_true(f.flags.input.joins);
    assert_int_equal(f.flags.input.flag_count, 4);
    assert_ptr_equal(f.flags.input.flags[0].setting, &config_settings[CONFIG_OF_LOG_LEVEL]);
    assert_string_equal(f.flags.input.flags[0].text, "debug");
    assert_string_equal(f.flags.input.flags[1].text, "n1");
    assert_string_equal(f.flags.input.flags[2].text, "false");
    assert_string_equal(f.flags.input.flags[3].text, "true");
    assert_int_equal(read_line(&f, "--config=b.yaml --check-config --force-new-cluster"), GAVEL_OK);
    assert_string_equal(f.flags.input.file, "b.yaml");
    assert_int_equal(f.flags.mode, FLAGS_CHECK);
    assert_int_equal(read_line(&f, "--force-new-cluster --yes"), GAVEL_OK);
    assert_int_equal(f.flags.mode, FLAGS_FORCE);
    assert_true(f.flags.input.is_confirmed);
}

static void test_mistakes_are_named(void **state)
{
    struct fixture f = {0};

    (void)state;
    assert_refused(&f, "--lissen x", "there is no --lissen; did you mean --listen?");
    assert_refused(&f, "--chek-config", "did you mean --check-config?");
    assert_refused(&f, "--quite-else", "gaveld --help lists");
    assert_refused(&f, "--listen", "--listen needs a value");
    assert_refused(&f, "-c", "-c needs a value");
    assert_refused(&f, "a.yaml", "the file is given by --config a.yaml");
    assert_refused(&f, "help", "gaveld --help lists them");
    assert_refused(&f, "--no-listen", "there is no --no-listen");
    assert_refused(&f, "--no-witness=true", "takes no value");
    assert_refused(&f, "--yes", "--yes is for --force-new-cluster only");
    assert_refused(&f, "--join --force-new-cluster", "exclude each other");
}

static void test_help_has_every_flag_and_every_exit_code(void **state)
{
    char *text = NULL, wanted[64], flag[CONFIG_FLAG_MAX];
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    flags_print_help(out);
    assert_int_equal(fclose(out), 0);
    for (size_t i = 0; i < CONFIG_SETTINGS_COUNT; i++) {
        (void)config_setting_flag(&config_settings[i], flag);
        if (config_settings[i].argument)
            (void)snprintf(wanted, sizeof wanted, "  %s %s ", flag, config_settings[i].argument);
        else
            (void)snprintf(wanted, sizeof wanted, "  --[no-]%s ", flag + 2);
        if (!strstr(text, wanted))
            fail_msg("--help has no \"%s\"", wanted);
    }
    for (size_t i = 0; i < exit_code_count; i++)
        assert_non_null(strstr(text, exit_codes[i].text));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags_are_read),
        cmocka_unit_test(test_mistakes_are_named),
        cmocka_unit_test(test_help_has_every_flag_and_every_exit_code),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
