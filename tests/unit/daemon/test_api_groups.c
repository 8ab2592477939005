/* SPDX-License-Identifier: Apache-2.0 */

/* Groups as others see them: pages, who leads, what changes, and hand-overs. */
#include "api_listener.h"

#include "os/clock.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static json_t *get(struct api_frontend *frontend, const char *path)
{
    struct http_answer *answer = http_ask(frontend, path, NULL, "");

    if (answer->code != 200)
        fail_msg("%s: %ld %s", path, answer->code, answer->body);
    return http_json(answer);
}

static const char *text_of(json_t *json, const char *key)
{
    return json_string_value(json_object_get(json, key));
}

static void test_who_leads_is_told_in_three_ways(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", ",\"address\":\"host:1\"");
    uint64_t epoch = listener_elected(a);
    json_t *json = get(*state, "/groups/g/leader");

    assert_int_equal(json_object_size(json), 6);
    assert_string_equal(text_of(json, "group"), "g");
    assert_string_equal(text_of(json, "leader"), "a");
    assert_string_equal(text_of(json, "address"), "host:1");
    assert_int_equal(json_integer_value(json_object_get(json, "epoch")), epoch);
    assert_true(json_integer_value(json_object_get(json, "revision")) >= (json_int_t)epoch);
    assert_int_equal(strlen(text_of(json, "since")), 24);
    json_decref(json);
    assert_int_equal(http_ask(*state, "/groups/g/leader?candidate=a", NULL, "")->code, 200);
    assert_int_equal(http_ask_method(*state, "HEAD", "/groups/g/leader?candidate=a", NULL, "")->code, 200);
    (void)http_expect_error(*state, "/groups/g/leader?candidate=b", NULL, 503, GAVEL_ERR_NO_LEADER);
    (void)http_expect_error(*state, "/groups/g/leader?candidate=", NULL, 503, GAVEL_ERR_NO_LEADER);
    assert_string_equal(http_ask(*state, "/groups/g/leader?format=sidecar", NULL, "")->body,
                        "{\"name\":\"a\"}\n");
    assert_string_equal(http_ask(*state, "/groups/g/leader/name", NULL, "")->body, "{\"name\":\"a\"}\n");
    assert_string_equal(http_ask(*state, "/groups/g/leader/name?fresh=true", NULL, "")->body,
                        "{\"name\":\"a\"}\n");
    json_decref(get(*state, "/groups/g/leader?fresh=true"));
    listener_leave(a);
}

static void test_without_a_leader_each_way_says_so(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", ",\"eligible\":false");

    listener_expect(a, "leader", "leader", "");
    (void)http_expect_error(*state, "/groups/g/leader", NULL, 503, GAVEL_ERR_NO_LEADER);
    (void)http_expect_error(*state, "/groups/g/leader?fresh=true", NULL, 503, GAVEL_ERR_NO_LEADER);
    (void)http_expect_error(*state, "/groups/g/leader?candidate=a", NULL, 503, GAVEL_ERR_NO_LEADER);
    assert_string_equal(http_ask(*state, "/groups/g/leader?format=sidecar", NULL, "")->body,
                        "{\"name\":\"\"}\n");
    (void)http_expect_error(*state, "/groups/none/leader", NULL, 404, GAVEL_ERR_NOT_FOUND);
    (void)http_expect_error(*state, "/groups/none", NULL, 404, GAVEL_ERR_NOT_FOUND);
    (void)http_expect_error(*state, "/groups/none?fresh=true", NULL, 404, GAVEL_ERR_NOT_FOUND);
    assert_string_equal(http_ask(*state, "/groups/none/leader/name", NULL, "")->body, "{\"name\":\"\"}\n");
    (void)http_expect_error(*state, "/groups/g/leader?format=xml", NULL, 400, GAVEL_ERR_INVALID);
    (void)http_expect_error(*state, "/groups/g/leader?fresh=yes", NULL, 400, GAVEL_ERR_INVALID);
    listener_leave(a);
}

static void test_a_group_has_its_candidates_and_no_session(void **state)
{
    struct listener *a =
        listener_campaign(*state, "g", "a", ",\"policy\":\"priority\",\"min_mandate_ms\":5000");
    struct listener *b =
        listener_campaign(*state, "g", "b", ",\"priority\":-7,\"metadata\":\"zone=\\u00e4\"");
    char session[17];
    json_t *json;
    json_t *second;

    listener_session(a, session);
    listener_expect(b, "leader", "leader", "a");
    assert_null(strstr(http_ask(*state, "/groups/g", NULL, "")->body, session));
    assert_null(strstr(http_ask(*state, "/groups/g?fresh=true", NULL, "")->body, session));
    assert_null(strstr(http_ask(*state, "/groups", NULL, "")->body, session));
    json = get(*state, "/groups/g?fresh=true");
    assert_string_equal(text_of(json, "policy"), "priority");
    assert_int_equal(json_integer_value(json_object_get(json, "min_mandate_ms")), 5000);
    assert_string_equal(text_of(json, "mandate"), "session");
    assert_true(json_integer_value(json_object_get(json, "remaining_ms")) > 0);
    assert_true(json_is_null(json_object_get(json, "wish")));
    assert_int_equal(json_array_size(json_object_get(json, "candidates")), 2);
    second = json_array_get(json_object_get(json, "candidates"), 1);
    assert_string_equal(text_of(second, "candidate"), "b");
    assert_string_equal(text_of(second, "metadata"), "zone=\xc3\xa4");
    assert_int_equal(json_integer_value(json_object_get(second, "priority")), -7);
    json_decref(json);
    listener_leave(a);
    listener_leave(b);
}

static void test_groups_come_in_pages(void **state)
{
    struct listener *all[7];
    char name[16];
    char path[64];
    json_t *json;
    json_t *list;
    size_t seen = 0;

    for (size_t i = 0; i < 7; i++) {
        (void)snprintf(name, sizeof name, "%s%zu", i < 5 ? "web%2F" : "x", i);
        all[i] = listener_campaign(*state, name, "a", "");
        (void)listener_elected(all[i]);
    }
    (void)snprintf(path, sizeof path, "/groups?prefix=web/&limit=2");
    for (int page = 0; page < 3; page++) {
        json = get(*state, path);
        list = json_object_get(json, "groups");
        assert_int_equal(json_array_size(list), page < 2 ? 2 : 1);
        for (size_t i = 0; i < json_array_size(list); i++) {
            (void)snprintf(name, sizeof name, "web/%zu", seen++);
            assert_string_equal(text_of(json_array_get(list, i), "group"), name);
            assert_string_equal(text_of(json_array_get(list, i), "leader"), "a");
        }
        assert_int_equal(json_is_null(json_object_get(json, "next")), page == 2);
        (void)snprintf(path, sizeof path, "/groups?prefix=web/&limit=2&after=%s",
                       page < 2 ? text_of(json, "next") : "");
        json_decref(json);
    }
    json = get(*state, "/groups?fresh=true&after=web/4");
    assert_int_equal(json_array_size(json_object_get(json, "groups")), 2);
    json_decref(json);
    (void)http_expect_error(*state, "/groups?limit=0", NULL, 400, GAVEL_ERR_INVALID);
    (void)http_expect_error(*state, "/groups?limit=1001", NULL, 400, GAVEL_ERR_INVALID);
    (void)http_expect_error(*state, "/groups?limit=x", NULL, 400, GAVEL_ERR_INVALID);
    for (size_t i = 0; i < 7; i++)
        listener_leave(all[i]);
}

static void test_names_may_be_anything_that_a_name_can_be(void **state)
{
    char name[3 * NAME_MAX_BYTES + 4] = "";
    char path[1024];
    struct listener *a = listener_campaign(*state, "%C3%A4%20%22%2F%25%3F+", "x y/\\u00e4", "");
    json_t *json;

    (void)listener_elected(a);
    json = get(*state, "/groups/%c3%a4%20%22%2f%25%3f+/leader?candidate=x%20y%2F%C3%A4");
    assert_string_equal(text_of(json, "group"), "\xc3\xa4 \"/%?+");
    assert_string_equal(text_of(json, "leader"), "x y/\xc3\xa4");
    json_decref(json);
    listener_leave(a);
    for (int i = 0; i < NAME_MAX_BYTES; i++)
        strcat(name, "%7a");
    a = listener_campaign(*state, name, "a", "");
    (void)listener_elected(a);
    (void)snprintf(path, sizeof path, "/groups/%sz", name); /* one byte more */
    (void)http_expect_error(*state, path, NULL, 400, GAVEL_ERR_INVALID);
    (void)snprintf(path, sizeof path, "/groups/%s/leader", name);
    json_decref(get(*state, path));
    listener_leave(a);
}

static void test_bad_names_are_refused(void **state)
{
    static const char *const bad[] = {"%",   "%2",  "a%zzb", "%00", "a%00",
                                      "%0A", "%ff", "a%C3",  "%7f", "%ED%A0%80"};
    char path[64];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)snprintf(path, sizeof path, "/groups/%s/leader", bad[i]);
        (void)http_expect_error(*state, path, NULL, 400, GAVEL_ERR_INVALID);
        (void)snprintf(path, sizeof path, "/groups/%s/campaign", bad[i]);
        (void)http_expect_error(*state, path, "{\"candidate\":\"a\"}", 400, GAVEL_ERR_INVALID);
        (void)snprintf(path, sizeof path, "/groups/g/notes/%s", bad[i]);
        (void)http_expect_error(*state, path, NULL, 400, GAVEL_ERR_INVALID);
    }
    (void)http_expect_error(*state, "/groups//leader", NULL, 404, GAVEL_ERR_NOT_FOUND);
    (void)http_expect_error(*state, "/groups/", NULL, 404, GAVEL_ERR_NOT_FOUND);
    (void)http_expect_error(*state, "/groups/a/b/leader", NULL, 404, GAVEL_ERR_NOT_FOUND);
    (void)http_expect_error(*state, "/groups?prefix=%00", NULL, 400, GAVEL_ERR_INVALID);
    assert_int_equal(http_ask_method(*state, "PUT", "/groups/g", NULL, "")->code, 405);
    assert_int_equal(http_ask_method(*state, "PUT", "/groups/g/notes", "x", "")->code, 405);
    assert_int_equal(http_ask_method(*state, "HEAD", "/groups/g/watch", NULL, "")->code, 405);
}

static void test_changes_come_once_and_in_order_and_a_reader_goes_on(void **state)
{
    struct listener *all = listener_get(*state, "/watch", "");
    struct listener *own = listener_get(*state, "/groups/web%2F1/watch", "");
    struct listener *web = listener_get(*state, "/watch?prefix=web/", "");
    struct listener *a = listener_campaign(*state, "web%2F1", "a", "");
    struct listener *again;
    char header[64];
    json_t *json;
    uint64_t epoch = listener_elected(a);

    assert_int_equal(http_ask_method(*state, "PUT", "/groups/x/notes/k", "other", "")->code, 200);
    assert_int_equal(http_ask_method(*state, "PUT", "/groups/web%2F1/notes/k", "v", "")->code, 200);
    listener_resign(*state, a, "web%2F1");
    listener_expect(own, "joined", "candidate", "a");
    json = listener_next(own, "elected");
    assert_int_equal(json_integer_value(json_object_get(json, "epoch")), epoch);
    assert_int_equal(json_integer_value(json_object_get(json, "revision")), epoch);
    json_decref(json);
    listener_expect(own, "note_put", "value_base64", "dg==");
    listener_expect(own, "vacant", "reason", "resigned");
    listener_expect(web, "vacant", "candidate", "a");
    listener_expect(all, "vacant", "group", "web/1");
    assert_null(strstr(own->text, "\"x\""));
    assert_null(strstr(web->text, "\"x\""));
    assert_non_null(strstr(all->text, "\"group\":\"x\",\"candidate\":null"));
    assert_null(strstr(all->text, "session"));
    (void)snprintf(header, sizeof header, "Last-Event-ID: %" PRIu64 "\r\n", epoch);
    again = listener_get(*state, "/groups/web%2F1/watch?after=0", header); /* the header is newer */
    listener_expect(again, "note_put", "key", "k");
    assert_null(strstr(again->text, "event: elected"));
    listener_leave(again);
    again = listener_get(*state, "/watch?after=0", "");
    listener_expect(again, "elected", "candidate", "a");
    listener_leave(again);
    listener_leave(all);
    listener_leave(own);
    listener_leave(web);
}

static bool is_stale(struct api_frontend *frontend, const char *path)
{
    char value[16];

    return http_header(http_ask(frontend, path, NULL, ""), "Gavel-Stale", value, sizeof value);
}

/* The changes come when it answers again. */
static void test_a_node_whose_disk_hangs_says_that_its_table_is_stale(void **state)
{
    struct api_frontend *frontend = *state;
    struct listener *all = listener_get(frontend, "/watch", "");
    struct listener *a = listener_campaign(frontend, "g", "a", "");
    struct listener *late;

    (void)listener_elected(a);
    assert_false(is_stale(frontend, "/groups"));
    frontend->frontend.is_blind = true;
    json_decref(listener_next(all, "stale"));
    listener_leave(a);
    late = listener_get(frontend, "/groups/g/watch", "");
    json_decref(listener_next(late, "stale"));
    assert_true(is_stale(frontend, "/groups"));
    assert_true(is_stale(frontend, "/groups/g"));
    assert_true(is_stale(frontend, "/groups/g/leader"));
    assert_false(is_stale(frontend, "/groups/g?fresh=true"));
    frontend->frontend.is_blind = false;
    json_decref(listener_next(all, "fresh"));
    json_decref(listener_next(late, "fresh"));
    assert_false(is_stale(frontend, "/groups"));
    assert_int_equal(http_ask_method(frontend, "PUT", "/groups/g/notes/k", "v", "")->code, 200);
    listener_expect(all, "note_put", "key", "k");
    listener_leave(late);
    listener_leave(all);
}

static void test_what_cannot_be_watched_is_refused(void **state)
{
    static const char *const bad[] = {"/watch?after=x",
                                      "/watch?after=-1",
                                      "/watch?after=1.",
                                      "/watch?after=.1",
                                      "/watch?after=1.99999999999",
                                      "/watch?after=99999999999999999999",
                                      "/groups/g/watch?after="};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        (void)http_expect_error(*state, bad[i], NULL, 400, GAVEL_ERR_INVALID);
}

/* The history is bounded, and so is what waits for a reader. */
static void test_a_watcher_that_was_away_too_long_is_told_and_goes_on(void **state)
{
    struct api_frontend *frontend = *state;
    struct listener *slow = listener_get(frontend, "/watch", "");
    struct listener *late;
    static char value[TABLE_NOTE_BYTES_MAX + 1];
    size_t rounds = TABLE_HISTORY_BYTES_MAX / TABLE_NOTE_BYTES_MAX + 64;
    json_t *json;

    memset(value, 'x', sizeof value - 1);
    for (size_t i = 0; i < rounds; i++)
        assert_int_equal(http_ask_method(frontend, "PUT", "/groups/g/notes/k", value, "")->code, 200);
    late = listener_get(frontend, "/watch?after=1", "");
    json = listener_next(late, "missed");
    assert_true(json_integer_value(json_object_get(json, "revision")) >= (json_int_t)rounds);
    json_decref(json);
    assert_int_equal(http_ask_method(frontend, "PUT", "/groups/g/notes/last", "v", "")->code, 200);
    listener_expect(late, "note_put", "key", "last");
    listener_leave(late);
    listener_leave(slow);
    assert_int_equal(http_ask(frontend, "/groups/g", NULL, "")->code, 200);
}

static void resign(struct api_frontend *frontend, const char *session, const char *more)
{
    char body[128];

    (void)snprintf(body, sizeof body, "{\"session\":\"%s\"%s}", session, more);
    assert_int_equal(http_ask(frontend, "/groups/g/resign", body, "")->code, 200);
}

struct transfer {
    struct api_frontend *frontend;
    const char *body;
    long code;
    char text[1024];
};

static void *transfer_main(void *user)
{
    struct transfer *transfer = user;
    struct http_answer *answer = http_ask(transfer->frontend, "/groups/g/transfer", transfer->body, "");

    transfer->code = answer->code;
    (void)snprintf(transfer->text, sizeof transfer->text, "%.1000s", answer->body);
    return NULL;
}

static void test_a_transfer_is_answered_when_the_other_leads(void **state)
{
    struct transfer transfer = {.frontend = *state, .body = "{\"to\":\"c\"}"};
    struct listener *a = listener_campaign(*state, "g", "a", "");
    struct listener *b;
    struct listener *c;
    char session[17];
    pthread_t thread;

    listener_session(a, session);
    (void)listener_elected(a);
    b = listener_campaign(*state, "g", "b", "");
    c = listener_campaign(*state, "g", "c", "");
    assert_int_equal(pthread_create(&thread, NULL, transfer_main, &transfer), 0);
    listener_expect(a, "hand_over", "successor", "c");
    resign(*state, session, "");
    assert_true(listener_elected(c) > 0);
    (void)pthread_join(thread, NULL);
    assert_int_equal(transfer.code, 200);
    assert_non_null(strstr(transfer.text, "\"old_leader\":\"a\",\"new_leader\":\"c\""));
    listener_expect(b, "leader", "leader", "a");
    listener_expect(b, "leader", "leader", "c");
    listener_expect(a, "demoted", "reason", "handed_over");
    listener_expect(a, "ended", "reason", "resigned");
    listener_leave(a);
    listener_leave(b);
    listener_leave(c);
}

static void test_a_transfer_that_takes_too_long_is_rolled_back(void **state)
{
    struct transfer transfer = {.frontend = *state, .body = "{\"to\":\"b\",\"timeout_ms\":300}"};
    struct listener *a = listener_campaign(*state, "g", "a", "");
    uint64_t epoch = listener_elected(a);
    struct listener *b = listener_campaign(*state, "g", "b", "");
    json_t *json;

    listener_expect(b, "leader", "leader", "a");
    (void)transfer_main(&transfer);
    assert_int_equal(transfer.code, 409);
    assert_non_null(strstr(transfer.text, "ERR_LEADER_TRANSFER_FAILED"));
    listener_expect(a, "hand_over", "successor", "b");
    json = listener_next(a, "hand_over_cancelled");
    assert_int_equal(json_integer_value(json_object_get(json, "epoch")), epoch);
    json_decref(json);
    assert_int_equal(http_ask(*state, "/groups/g/leader?candidate=a", NULL, "")->code, 200);
    listener_leave(a);
    listener_leave(b);
}

static void test_what_cannot_be_handed_over_is_refused(void **state)
{
    struct listener *a;

    (void)http_expect_error(*state, "/groups/g/transfer", "{}", 404, GAVEL_ERR_NOT_FOUND);
    a = listener_campaign(*state, "g", "a", "");
    (void)listener_elected(a);
    assert_true(http_ask(*state, "/groups/g/transfer", "{\"to\":\"nobody\",\"timeout_ms\":200}", "")->code >=
                404);
    assert_int_equal(http_ask(*state, "/groups/g/transfer", "{\"to\":\"a\"}", "")->code,
                     200); /* it does already */
    (void)http_expect_error(*state, "/groups/g/transfer", "{\"timeout_ms\":0}", 400, GAVEL_ERR_INVALID);
    (void)http_expect_error(*state, "/groups/g/transfer", "{\"to\":\"\\n\"}", 400, GAVEL_ERR_INVALID);
    listener_leave(a);
}

static void delete (struct api_frontend *frontend, const char *path, long code, const char *text)
{
    struct http_answer *answer = http_ask_method(frontend, "DELETE", path, NULL, "");

    if (answer->code != code || !strstr(answer->body, text))
        fail_msg("%s: %ld instead of %ld %s: %s", path, answer->code, code, text, answer->body);
}

static void test_a_group_is_deleted_once_nobody_uses_it(void **state)
{
    struct listener *a;
    uint64_t epoch;

    delete (*state, "/groups/g", 404, "ERR_NOT_FOUND");
    a = listener_campaign(*state, "g", "a", "");
    epoch = listener_elected(a);
    delete (*state, "/groups/g", 409, "\\\"a\\\" leads group");
    delete (*state, "/groups/g?force=true", 409, "ERR_STATE"); /* no force ends a mandate */
    delete (*state, "/groups/g?force=x", 400, "ERR_INVALID");
    listener_resign(*state, a, "g");
    assert_int_equal(http_ask_method(*state, "PUT", "/groups/g/notes/k", "v", "")->code, 200);
    delete (*state, "/groups/g", 409, "1 note");
    delete (*state, "/groups/g?force=true", 200, "\"success\":true,\"group\":\"g\"");
    (void)http_expect_error(*state, "/groups/g", NULL, 404, GAVEL_ERR_NOT_FOUND);
    a = listener_campaign(*state, "g", "a", "");
    assert_true(listener_elected(a) > epoch);
    listener_leave(a);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, api_frontend_setup, api_frontend_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_who_leads_is_told_in_three_ways),
        TEST(test_without_a_leader_each_way_says_so),
        TEST(test_a_group_has_its_candidates_and_no_session),
        TEST(test_groups_come_in_pages),
        TEST(test_names_may_be_anything_that_a_name_can_be),
        TEST(test_bad_names_are_refused),
        TEST(test_changes_come_once_and_in_order_and_a_reader_goes_on),
        TEST(test_a_node_whose_disk_hangs_says_that_its_table_is_stale),
        TEST(test_what_cannot_be_watched_is_refused),
        TEST(test_a_watcher_that_was_away_too_long_is_told_and_goes_on),
        TEST(test_a_transfer_is_answered_when_the_other_leads),
        TEST(test_a_transfer_that_takes_too_long_is_rolled_back),
        TEST(test_what_cannot_be_handed_over_is_refused),
        TEST(test_a_group_is_deleted_once_nobody_uses_it),
    };

    return cmocka_run_group_tests_name("api groups", tests, NULL, NULL);
}
