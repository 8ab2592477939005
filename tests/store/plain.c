/* SPDX-License-Identifier: Apache-2.0 */

/* Whatever stands in a store, nothing that drives a terminal comes out of it. */
#include "store/plain.h"
#include "scratch.h"
#include "store/conformance/conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_a_text_is_made_plain_in_place(void **state)
{
    static const struct {
        const char *before;
        const char *after;
    } texts[] = {
        {"", ""},
        {"web-1", "web-1"},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"a\x1b]0;title\x07", "a?]0;title?"},
        {"\x1b[2J\r\n\t\x7f", "?[2J????"},
        {"c1 \xc2\x9b", "c1 ??"},
        {"latin1 \xe9t\xe9", "latin1 ?t?"},
        {"cut \xe2\x82", "cut ??"},
        {"\xff\xfe", "??"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[64];

        (void)snprintf(text, sizeof text, "%s", texts[i].before);
        text_make_plain(text);
        assert_string_equal(text, texts[i].after);
    }
}

static void test_all_that_a_reply_tells_is_plain(void **state)
{
    struct store_reply reply = {.registration_count = 2, .group_count = 3};

    (void)state;
    reply.registrations = calloc(2, sizeof *reply.registrations);
    reply.groups = calloc(3, sizeof *reply.groups);
    assert_non_null(reply.registrations);
    assert_non_null(reply.groups);
    (void)strcpy(reply.message, "the server said \x1b[31m");
    (void)strcpy(reply.record.holder, "a\nb");
    (void)strcpy(reply.record.address, "\x1b");
    (void)strcpy(reply.record.successor, "\x9b");
    (void)strcpy(reply.record.wish_successor, "\x7f");
    (void)strcpy(reply.registrations[0].id, "\x1b[1mbad");
    (void)strcpy(reply.registrations[1].id, "good");
    (void)strcpy(reply.registrations[1].address, "127.0.0.1\x07");
    (void)strcpy(reply.groups[0].group, "good");
    (void)strcpy(reply.groups[0].record.holder, "\x1b");
    (void)strcpy(reply.groups[1].group, "a\x1b");
    (void)strcpy(reply.groups[2].group, "last");
    reply_make_plain(&reply);
    assert_string_equal(reply.message, "the server said ?[31m");
    assert_string_equal(reply.record.holder, "a?b");
    assert_string_equal(reply.record.address, "?");
    assert_string_equal(reply.record.successor, "?");
    assert_string_equal(reply.record.wish_successor, "?");
    assert_int_equal(reply.registration_count, 1);
    assert_string_equal(reply.registrations[0].id, "good");
    assert_string_equal(reply.registrations[0].address, "127.0.0.1?");
    assert_int_equal(reply.group_count, 2);
    assert_string_equal(reply.groups[0].record.holder, "?");
    assert_string_equal(reply.groups[1].group, "last");
    store_reply_done(&reply);
}

static bool tell_ugly_news(struct store *store, struct store_news *ret_news)
{
    (void)store;
    ret_news->kind = STORE_NEWS_RECORD;
    (void)strcpy(ret_news->record.holder, "a\x1b[2J");
    (void)strcpy(ret_news->record.wish_successor, "\n");
    return true;
}

static void test_news_are_plain(void **state)
{
    const struct store_driver driver = {.scheme = "ugly", .news = tell_ugly_news};
    struct store store = {.driver = &driver};
    struct store_news news;

    (void)state;
    assert_true(store_news(&store, &news));
    assert_string_equal(news.record.holder, "a?[2J");
    assert_string_equal(news.record.wish_successor, "?");
}

static void test_names_that_somebody_wrote_into_a_file_do_not_reach_a_terminal(void **state)
{
    struct scratch *s = *state;
    struct store *store = NULL;
    struct store_request list = {.op = STORE_GROUPS, .give_up_at = clock_now() + 20 * NS_PER_S};
    struct store_reply reply;

    assert_int_equal(store_open(s->file, &store, NULL), GAVEL_OK);
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    (void)expect(store, ask_claim("h", "one", 2, 0), GAVEL_OK);
    (void)expect(store, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    (void)expect(store, ask_heartbeat("g", "two", 2, 1), GAVEL_OK);
    scratch_sql(s->file,
                "UPDATE groups SET holder = 'x' || char(27) || '[2J', address = char(7) WHERE name = 'g';"
                "UPDATE groups SET name = 'h' || char(27) WHERE name = 'h';"
                "UPDATE candidates SET id = 'two' || char(10) WHERE id = 'two'");
    reply = expect(store, ask_read("g"), GAVEL_OK);
    assert_string_equal(reply.record.holder, "x?[2J");
    assert_string_equal(reply.record.address, "?");
    assert_int_equal(store_call(store, &list, &reply), GAVEL_OK);
    assert_int_equal(reply.group_count, 1);
    assert_string_equal(reply.groups[0].record.holder, "x?[2J");
    store_reply_done(&reply);
    list = (struct store_request){.op = STORE_CANDIDATES,
                                  .group = "g",
                                  .candidate_timeout_ms = 60000,
                                  .give_up_at = clock_now() + 20 * NS_PER_S};
    assert_int_equal(store_call(store, &list, &reply), GAVEL_OK);
    assert_int_equal(reply.registration_count, 1);
    assert_string_equal(reply.registrations[0].id, "one");
    store_reply_done(&reply);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_text_is_made_plain_in_place),
        cmocka_unit_test(test_all_that_a_reply_tells_is_plain),
        cmocka_unit_test(test_news_are_plain),
        cmocka_unit_test_setup_teardown(test_names_that_somebody_wrote_into_a_file_do_not_reach_a_terminal,
                                        scratch_set_up, scratch_tear_down),
    };

    return cmocka_run_group_tests_name("plain", tests, NULL, NULL);
}
