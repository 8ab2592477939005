/* SPDX-License-Identifier: Apache-2.0 */

/* "Did you mean …?": close words are found, far ones are not offered. */
#include "config/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *suggest(const char *typed)
{
    static const char *const words[] = {"elect", "leader", "status", "candidates",
                                        "watch", "resign", "lease"};
    struct suggestion suggestion;

    suggestion_init(&suggestion, typed);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        suggestion_offer(&suggestion, words[i]);
    return suggestion.best;
}

static void test_close_word_is_found(void **state)
{
    (void)state;
    assert_string_equal(suggest("leadr"), "leader");   /* one is missing */
    assert_string_equal(suggest("leaader"), "leader"); /* one too many */
    assert_string_equal(suggest("laeder"), "leader");  /* two are swapped */
    assert_string_equal(suggest("resigm"), "resign");  /* one is wrong */
    assert_string_equal(suggest("candidate"), "candidates");
    assert_string_equal(suggest("lese"), "lease");
    assert_string_equal(suggest("leader"), "leader");
}

static void test_far_word_is_not_offered(void **state)
{
    char long_word[200];

    (void)state;
    memset(long_word, 'x', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';
    assert_null(suggest("xyzzy"));
    assert_null(suggest(""));
    assert_null(suggest("q"));
    assert_null(suggest(long_word));
}

static void test_closest_wins(void **state)
{
    struct suggestion suggestion;

    (void)state;
    suggestion_init(&suggestion, "stop-grase");
    suggestion_offer(&suggestion, "stop-margin");
    suggestion_offer(&suggestion, "stop-grace");
    suggestion_offer(&suggestion, "epoch-grace");
    assert_string_equal(suggestion.best, "stop-grace");
}

static void test_a_word_more_or_less_is_close(void **state)
{
    struct suggestion suggestion;

    (void)state;
    suggestion_init(&suggestion, "token");
    suggestion_offer(&suggestion, "tokenizer");
    assert_null(suggestion.best);
    suggestion_offer(&suggestion, "token-file");
    assert_string_equal(suggestion.best, "token-file");
    suggestion_init(&suggestion, "token_file");
    suggestion_offer(&suggestion, "token");
    assert_string_equal(suggestion.best, "token");
    suggestion_init(&suggestion, "tls"); /* the beginning of too much */
    suggestion_offer(&suggestion, "tls-revoked");
    assert_null(suggestion.best);
    suggestion_init(&suggestion, "stop-grac");
    suggestion_offer(&suggestion, "stop");
    suggestion_offer(&suggestion, "stop-grace");
    assert_string_equal(suggestion.best, "stop-grace");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_close_word_is_found),
        cmocka_unit_test(test_far_word_is_not_offered),
        cmocka_unit_test(test_closest_wins),
        cmocka_unit_test(test_a_word_more_or_less_is_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
