/* SPDX-License-Identifier: Apache-2.0 */

/* URLs of stores on servers: what is taken apart, and what is refused. */
#include "store/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const options[] = {"table", "tls", NULL};
static const struct url_form form = {
    .scheme = "db", .example = "db://user@host:1/name", .port = 99, .hosts_max = 3, .options = options};

static void test_all_parts_are_taken_apart(void **state)
{
    struct url url;

    (void)state;
    assert_int_equal(url_parse(&form, "//a%40b@h1:1,[::1]:2,h3/na%2Fme?table=x%26y&tls", &url, NULL),
                     GAVEL_OK);
    assert_string_equal(url.user, "a@b");
    assert_int_equal(url.host_count, 3);
    assert_string_equal(url.hosts[0].name, "h1");
    assert_int_equal(url.hosts[0].port, 1);
    assert_string_equal(url.hosts[1].name, "::1");
    assert_int_equal(url.hosts[1].port, 2);
    assert_string_equal(url.hosts[2].name, "h3");
    assert_int_equal(url.hosts[2].port, 99);
    assert_string_equal(url.path, "na/me");
    assert_string_equal(url_option(&url, "table"), "x&y");
    assert_string_equal(url_option(&url, "tls"), "");
    assert_null(url_option(&url, "nothing"));
    url_done(&url);
    url_done(&url); /* twice does no harm */
}

static void test_only_a_host_is_enough(void **state)
{
    struct url url;

    (void)state;
    assert_int_equal(url_parse(&form, "//h", &url, NULL), GAVEL_OK);
    assert_null(url.user);
    assert_string_equal(url.path, "");
    assert_int_equal(url.option_count, 0);
    url_done(&url);
}

static void test_what_makes_no_sense_is_refused_with_a_sentence(void **state)
{
    static const char *const bad[] = {
        "",
        "h/x",
        "//",
        "///x",
        "//h:0",
        "//h:65536",
        "//h:x",
        "//h:",
        "//@h",
        "//h,,i",
        "//a,b,c,d",
        "//[::1",
        "//[::1]x",
        "//h%",
        "//h%0a",
        "//h/%zz",
        "//h?tls=%01",
        "//h?nothing=1",
        "//h?tls&tls",
        "//u%00@h",
        "//h/\x7f",
        "//h?table=%",
        "//h?=x",
        "//h?tls=1&table=2&tls=3",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct gavel_error error = {0};
        struct url url;

        if (url_parse(&form, bad[i], &url, &error) != GAVEL_ERR_INVALID)
            fail_msg("\"%s\" was taken", bad[i]);
        assert_true(error.message[0]);
        url_done(&url);
    }
}

static void test_a_password_is_refused_and_not_repeated(void **state)
{
    struct gavel_error error = {0};
    struct url url;

    (void)state;
    assert_int_equal(url_parse(&form, "//me:hunter2@h/x", &url, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "password"));
    assert_null(strstr(error.message, "hunter2"));
    url_done(&url);
}

static void test_yes_and_no_have_several_names(void **state)
{
    struct url url;
    bool value = false;

    (void)state;
    assert_int_equal(url_parse(&form, "//h?tls=off&table=maybe", &url, NULL), GAVEL_OK);
    assert_int_equal(url_option_bool(&url, "tls", true, &value, NULL), GAVEL_OK);
    assert_false(value);
    assert_int_equal(url_option_bool(&url, "nothing", true, &value, NULL), GAVEL_OK);
    assert_true(value);
    assert_int_equal(url_option_bool(&url, "table", true, &value, NULL), GAVEL_ERR_INVALID);
    url_done(&url);
}

static void test_loopback_is_known_by_its_number_not_by_its_beginning(void **state)
{
    (void)state;
    assert_true(url_host_is_loopback("127.0.0.1"));
    assert_true(url_host_is_loopback("127.8.9.1"));
    assert_true(url_host_is_loopback("localhost"));
    assert_true(url_host_is_loopback("::1"));
    assert_false(url_host_is_loopback("127.example.org"));
    assert_false(url_host_is_loopback("128.0.0.1"));
    assert_false(url_host_is_loopback("localhost.example.org"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_parts_are_taken_apart),
        cmocka_unit_test(test_only_a_host_is_enough),
        cmocka_unit_test(test_what_makes_no_sense_is_refused_with_a_sentence),
        cmocka_unit_test(test_a_password_is_refused_and_not_repeated),
        cmocka_unit_test(test_yes_and_no_have_several_names),
        cmocka_unit_test(test_loopback_is_known_by_its_number_not_by_its_beginning),
    };

    return cmocka_run_group_tests_name("url", tests, NULL, NULL);
}
