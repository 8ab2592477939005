/* SPDX-License-Identifier: Apache-2.0 */

/* Messages are printed as the system prints them, and what is too long for them ends after a word. */
#include "base/message.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PATH "/srv/applications/nightly/state/gavel/elections/of/the/whole/company.db"

__attribute__((format(printf, 3, 4))) static void write_in(char *buffer, size_t size, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    message_write(buffer, size, format, arguments);
    va_end(arguments);
}

#define EXPECT(wanted, ...)                                                                                  \
    do {                                                                                                     \
        char text_[256];                                                                                     \
                                                                                                             \
        write_in(text_, sizeof text_, __VA_ARGS__);                                                          \
        assert_string_equal(text_, wanted);                                                                  \
    } while (0)

/* Against the system, with everything that our messages use. */
#define EXPECT_SAME(...)                                                                                     \
    do {                                                                                                     \
        char wanted_[256];                                                                                   \
                                                                                                             \
        (void)snprintf(wanted_, sizeof wanted_, __VA_ARGS__);                                                \
        EXPECT(wanted_, __VA_ARGS__);                                                                        \
    } while (0)

static void test_what_is_short_enough_is_printed_as_ever(void **state)
{
    (void)state;
    EXPECT_SAME("nothing");
    EXPECT_SAME("%s, %.60s and %%%c", "one", "two", 'x');
    EXPECT_SAME("%d %i %u %x %#o %hhu %hd", -5, 6, 7u, 0xabcu, 8, (unsigned char)200, (short)-3);
    EXPECT_SAME("%ld %lu %lld %llu %zu %zd %jd %td", -1L, 2UL, INT64_MIN + 0LL, UINT64_MAX + 0ULL, (size_t)3,
                (ssize_t)-4, (intmax_t)-5, (ptrdiff_t)6);
    EXPECT_SAME("%" PRId64 " %" PRIu64 " %08" PRIx64 " %5d|%-5d|%+d|%05.1f", INT64_C(-9), UINT64_C(10),
                UINT64_C(0xbeef), 42, 42, 42, 3.14159);
    EXPECT_SAME("%g %.3g %.1f %e %.*f", 0.25, 1234.5, 99.95, 1e9, 3, 2.5);
    EXPECT_SAME("%.*s|%*s|%-8s|%8.3s|%s", 3, "abcdef", 6, "ab", "left", "right", "");
    EXPECT_SAME("%p", (void *)0);
    EXPECT_SAME("%.10s and %.12s", "2026-11-15T12:00:00", "0123456789abcdef");
}

static void test_a_value_is_cut_after_a_whole_word(void **state)
{
    (void)state;
    EXPECT("the store /srv/applications/nightly/state/gavel/elections/of/the/… is gone",
           "the store %.60s is gone", PATH);
    EXPECT("\"this is what somebody wrote to say that it…\" is too long", "\"%.45s\" is too long",
           "this is what somebody wrote to say that it cannot be done");
    EXPECT("h1:7600,h2:7600,h3:7600,h4:7600,…", "%.36s", "h1:7600,h2:7600,h3:7600,h4:7600,h5:7600");
    EXPECT(PATH, "%.71s", PATH);
}

/* A name of one word has no better end; a character stays whole. */
static void test_a_long_word_is_cut_between_characters(void **state)
{
    char word[200];

    (void)state;
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    EXPECT("\"xxxxxxxxxxxxxxxxxxxxxxxxxxx…\"", "\"%.30s\"", word);
    for (size_t i = 0; i + 2 < sizeof word - 1; i += 2)
        memcpy(word + i, "ü", 2);
    EXPECT("üüüüüüüüüüüüü…", "%.30s", word);
}

static void test_a_message_that_does_not_fit_ends_after_a_word(void **state)
{
    char small[32], tiny[4];

    (void)state;
    write_in(small, sizeof small, "cannot open %s: %s; check its path", "the file", "permission denied");
    assert_string_equal(small, "cannot open the file:…");
    write_in(small, sizeof small, "%s", "just as much as there is room.x");
    assert_string_equal(small, "just as much as there is room.x");
    write_in(tiny, sizeof tiny, "%s", "abcdef");
    assert_string_equal(tiny, "abc");
    write_in(tiny, 1, "%d", 5);
    assert_string_equal(tiny, "");
}

/* What is cut has its ellipsis within the precision, so that no caller's arithmetic is wrong. */
static void test_a_cut_value_is_no_longer_than_it_may_be(void **state)
{
    char text[256], format[16];

    (void)state;
    for (int most = MESSAGE_CUT_LEAST; most < 100; most++) {
        const char *as = format;

        (void)snprintf(format, sizeof format, "%%.%ds", most);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        write_in(text, sizeof text, as, PATH PATH);
#pragma GCC diagnostic pop
        assert_true(strlen(text) <= (size_t)most);
        assert_true(strlen(text) > (size_t)most / 2 - 3);
        assert_string_equal(text + strlen(text) - 3, "…");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_short_enough_is_printed_as_ever),
        cmocka_unit_test(test_a_value_is_cut_after_a_whole_word),
        cmocka_unit_test(test_a_long_word_is_cut_between_characters),
        cmocka_unit_test(test_a_message_that_does_not_fit_ends_after_a_word),
        cmocka_unit_test(test_a_cut_value_is_no_longer_than_it_may_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
