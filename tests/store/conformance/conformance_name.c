/* SPDX-License-Identifier: Apache-2.0 */

/* Names at their limits and beyond, durations that make no sense, and calls that come too late. */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#define LONGEST 255

/* Names that a careless driver would mangle. */
static const char *const odd_names[] = {
    "a b",
    "it's",
    "\"quoted\"",
    "100%",
    "%s%n",
    "a/b/../c",
    "/",
    "..",
    "?epoch=3",
    "grüße",
    "日本語",
    "😀",
    "a;DROP TABLE groups;--",
    "\\",
    "*",
    "_",
    "A",
    "a",
    "-",
    "--group",
    "x\xc2\xa0y",
    "'",
    "''",
    "null",
    "0",
};

static void test_odd_names_are_kept_as_they_are(void **state)
{
    struct fixture *f = *state;
    struct store_request list = {.op = STORE_GROUPS, .give_up_at = NEVER};
    struct store_reply reply;
    size_t count = sizeof odd_names / sizeof *odd_names;

    for (size_t i = 0; i < count; i++) {
        const char *name = odd_names[i];

        (void)expect(f->a, ask_claim(name, name, i, 0), GAVEL_OK);
        (void)expect(f->a, ask_heartbeat(name, name, i + 1, 1), GAVEL_OK);
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = odd_names[i];
        struct store_request candidates = ask_candidates(name);

        reply = expect(f->b, ask_read_own(name, name, i), GAVEL_OK);
        assert_string_equal(reply.record.holder, name);
        assert_true(nonce_equal(reply.record.nonce, test_nonce(name, i)));
        assert_int_equal(store_call(f->b, &candidates, &reply), GAVEL_OK);
        assert_int_equal(reply.registration_count, 1);
        assert_string_equal(reply.registrations[0].id, name);
        store_reply_done(&reply);
        (void)expect(f->a, ask_renew(name, name, i, 0), GAVEL_OK);
    }
    assert_int_equal(store_call(f->b, &list, &reply), GAVEL_OK);
    assert_int_equal(reply.group_count, count);
    store_reply_done(&reply);
}

static void test_the_longest_names_are_good_and_longer_ones_are_refused(void **state)
{
    struct fixture *f = *state;
    char longest[LONGEST + 1];
    char longer[LONGEST + 2];
    struct store_request request;

    memset(longest, 'n', LONGEST);
    longest[LONGEST] = '\0';
    memset(longer, 'n', LONGEST + 1);
    longer[LONGEST + 1] = '\0';
    (void)expect(f->a, ask_claim(longest, longest, 1, 0), GAVEL_OK);
    assert_string_equal(expect(f->b, ask_read(longest), GAVEL_OK).record.holder, longest);
    (void)expect(f->a, ask_heartbeat(longest, longest, 1, 1), GAVEL_OK);
    (void)expect(f->a, ask_read(longer), GAVEL_ERR_INVALID);
    (void)expect(f->a, ask_claim(longer, "one", 1, 0), GAVEL_ERR_INVALID);
    request = ask_claim("g", "one", 1, 0);
    memset(request.record.holder, 'n', sizeof request.record.holder); /* does not even end */
    (void)expect(f->a, request, GAVEL_ERR_INVALID);
    request = ask_heartbeat("g", "one", 1, 1);
    memset(request.registration.id, 'n', sizeof request.registration.id);
    (void)expect(f->a, request, GAVEL_ERR_INVALID);
    request = ask_heartbeat("g", "one", 1, 1);
    memset(request.registration.address, '1', sizeof request.registration.address);
    (void)expect(f->a, request, GAVEL_ERR_INVALID);
    request = ask_claim("g", "one", 1, 0);
    memset(request.record.address, '1', sizeof request.record.address);
    (void)expect(f->a, request, GAVEL_ERR_INVALID);
}

static void test_names_that_are_none_are_refused(void **state)
{
    static const char *const bad[] = {"",        "a\nb",     "\x7f",         "\xff",
                                      "caf\xe9", "\xc0\xaf", "\xed\xa0\x80", "\t"};
    struct fixture *f = *state;

    (void)expect(f->a, ask_read(NULL), GAVEL_ERR_INVALID);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)expect(f->a, ask_read(bad[i]), GAVEL_ERR_INVALID);
        (void)expect(f->a, ask_claim(bad[i], "one", 1, 0), GAVEL_ERR_INVALID);
        (void)expect(f->a, ask_claim("g", bad[i], 1, 0), GAVEL_ERR_INVALID);
        (void)expect(f->a, ask_renew("g", bad[i], 1, 0), GAVEL_ERR_INVALID);
        (void)expect(f->a, ask_release("g", bad[i], 1, 0), GAVEL_ERR_INVALID);
        (void)expect(f->a, ask_heartbeat("g", bad[i], 1, 1), GAVEL_ERR_INVALID);
        (void)expect(f->a, ask_leave("g", bad[i], 1), GAVEL_ERR_INVALID);
        (void)expect(f->a, ask_candidates(bad[i]), GAVEL_ERR_INVALID);
        if (*bad[i])
            (void)expect(f->a, ask_wish("g", 1, bad[i]), GAVEL_ERR_INVALID); /* "" stands for anybody */
    }
}

static void test_absurd_durations_are_refused(void **state)
{
    static const gavel_ms absurd[] = {0, -1, INT64_MIN, INT64_MAX, INT64_C(31622400001)};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
        struct store_request claim = ask_claim("g", "one", 1, 0);
        struct store_request renew = ask_renew("g", "one", 1, 0);
        struct store_request beat = ask_heartbeat("g", "one", 1, 1);
        struct store_request list = ask_candidates("g");

        claim.record.lease_ms = renew.record.lease_ms = absurd[i];
        beat.candidate_timeout_ms = list.candidate_timeout_ms = absurd[i];
        (void)expect(f->a, claim, GAVEL_ERR_INVALID);
        (void)expect(f->a, renew, GAVEL_ERR_INVALID);
        (void)expect(f->a, beat, GAVEL_ERR_INVALID);
        (void)expect(f->a, list, GAVEL_ERR_INVALID);
    }
}

static void test_a_death_is_refused_where_nobody_has_begun_a_session(void **state)
{
    struct fixture *f = *state;
    struct store_request died = ask_claim("g", "one", 1, 0);
    struct store_reply left;

    (void)expect(f->a, died, GAVEL_OK);
    died.op = STORE_DIED;
    (void)expect(f->a, died, GAVEL_ERR_STORE_UNSUPPORTED);
    left = expect(f->a, ask_read("g"), GAVEL_OK);
    assert_true(left.record.held);
    assert_int_equal(left.session, 0);
}

static void test_a_call_that_comes_too_late_is_not_begun(void **state)
{
    struct fixture *f = *state;
    struct store_request claim = ask_claim("g", "one", 1, 0);
    struct store_request beat = ask_heartbeat("g", "one", 1, 1);

    claim.give_up_at = beat.give_up_at = clock_now() - 1;
    (void)expect(f->a, claim, GAVEL_ERR_TIMEOUT);
    (void)expect(f->a, beat, GAVEL_ERR_TIMEOUT);
    assert_false(expect(f->b, ask_read("g"), GAVEL_OK).found);
    (void)expect(f->a, ask_heartbeat("g", "one", 2, 1), GAVEL_OK); /* no other instance was noted */
}

const struct conformance_test conformance_name_tests[] = {
#define TEST(name, needs)                                                                                    \
    {                                                                                                        \
#name, name, needs                                                                                   \
    }
    TEST(test_odd_names_are_kept_as_they_are, NEEDS_ELECTION),
    TEST(test_the_longest_names_are_good_and_longer_ones_are_refused, NEEDS_ELECTION),
    TEST(test_names_that_are_none_are_refused, 0),
    TEST(test_a_death_is_refused_where_nobody_has_begun_a_session, NEEDS_ELECTION),
    TEST(test_absurd_durations_are_refused, 0),
    TEST(test_a_call_that_comes_too_late_is_not_begun, NEEDS_ELECTION),
    {0},
};
