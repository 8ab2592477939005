/* SPDX-License-Identifier: Apache-2.0 */

/* Files with secrets: what is read, what is refused, and that nothing is waited for. */
#include "store/secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/gavel-secret-XXXXXX";
static char path[60];

static int set_up(void **state)
{
    (void)state;
    (void)strcpy(directory + sizeof directory - 7, "XXXXXX");
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/secret", directory);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)unlink(path); /* not every test makes it */
    assert_int_equal(rmdir(directory), 0);
    return 0;
}

static void write_file(const char *text, size_t size)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void assert_refused(const char *name, const char *words)
{
    struct secret secret = {0};
    const char *why = NULL;

    assert_int_equal(secret_read(name, &secret, &why), GAVEL_ERR_STORE_DENIED);
    assert_non_null(strstr(why, words));
    assert_null(secret.text);
}

static void test_a_file_is_read_as_it_is(void **state)
{
    struct secret secret = {0};
    const char *why;

    (void)state;
    write_file("a:b\r\n\nc", 7);
    assert_int_equal(secret_read(path, &secret, &why), GAVEL_OK);
    assert_string_equal(secret.text, "a:b\r\n\nc");
    secret_done(&secret);
    assert_null(secret.text);
    write_file("", 0);
    assert_int_equal(secret_read(path, &secret, &why), GAVEL_OK);
    assert_string_equal(secret.text, "");
    secret_done(&secret);
    secret_free(NULL);
}

static void test_what_is_no_file_is_refused_at_once(void **state)
{
    (void)state;
    assert_refused(path, "No such file");
    assert_refused("", "No such file");
    assert_refused(directory, "Is a directory");
    assert_refused("/dev/null", "a pipe or a device");
    assert_int_equal(mkfifo(path, 0600), 0); /* opening it would wait for a writer */
    assert_refused(path, "a pipe or a device");
}

static void test_what_is_too_large_or_no_text_is_refused(void **state)
{
    char *large = malloc(SECRET_FILE_MAX + 1);
    struct secret secret = {0};
    const char *why;

    (void)state;
    assert_non_null(large);
    memset(large, 'x', SECRET_FILE_MAX + 1);
    write_file(large, SECRET_FILE_MAX + 1);
    assert_refused(path, "larger than 256 KiB");
    write_file(large, SECRET_FILE_MAX);
    assert_int_equal(secret_read(path, &secret, &why), GAVEL_OK);
    assert_int_equal(strlen(secret.text), SECRET_FILE_MAX);
    secret_done(&secret);
    write_file("a\0b", 3);
    assert_refused(path, "not text");
    /* It says that it is empty, and cannot be read. */
    assert_refused("/proc/self/mem", "Input/output error");
    free(large);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_file_is_read_as_it_is),
        TEST(test_what_is_no_file_is_refused_at_once),
        TEST(test_what_is_too_large_or_no_text_is_refused),
    };

    return cmocka_run_group_tests_name("secrets in files", tests, NULL, NULL);
}
