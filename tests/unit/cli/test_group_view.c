/* SPDX-License-Identifier: Apache-2.0 */

/* A group of a cluster, made out of what a node says of it: the same words as for a group of a store. */
#include "cli/cluster/group_view.h"
#include "cli/group/leadership.h"
#include "cli/json_out.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What GET /groups/{group} answers. */
static const char held[] =
    "{\"group\":\"jobs\",\"leader\":\"web-1\",\"address\":\"10.0.0.1:80\",\"epoch\":4611686018427387905,"
    "\"since\":\"2026-11-16T11:00:00.250Z\",\"mandate\":\"session\",\"ttl_ms\":2000,\"done\":false,"
    "\"policy\":\"first\",\"min_mandate_ms\":0,\"preempt\":false,\"wish\":null,\"former_leader\":\"web-2\","
    "\"former_ending\":\"dead\",\"version\":9,\"remaining_ms\":1500,\"revision\":12,\"candidates\":["
    "{\"candidate\":\"web-1\",\"address\":\"10.0.0.1:80\",\"priority\":7,\"eligible\":true,\"has_session\":"
    "true,"
    "\"since\":\"2026-11-16T10:00:00.000Z\",\"joined_revision\":3,\"metadata\":\"blue\"},"
    "{\"candidate\":\"web-2\",\"address\":null,\"priority\":-1,\"eligible\":false,\"has_session\":true,"
    "\"since\":null,\"joined_revision\":5,\"metadata\":null}]}";

static json_t *read_json(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);

    assert_non_null(json);
    return json;
}

static void test_a_held_group_has_the_shape_of_a_leadership(void **state)
{
    static const char *const keys[] = {"group",    "state",        "leader_id", "leader_address",
                                       "epoch",    "last_leader",  "since",     "renewed",
                                       "lease_ms", "remaining_ms", "pid"};
    json_t *group = read_json(held), *leadership = group_leadership_json(group);

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_non_null(json_object_get(leadership, keys[i]));
    assert_string_equal(json_get_text(leadership, "state"), "held");
    assert_string_equal(json_get_text(leadership, "leader_id"), "web-1");
    assert_string_equal(json_get_text(leadership, "leader_address"), "10.0.0.1:80");
    assert_int_equal(json_integer_value(json_object_get(leadership, "epoch")), INT64_C(4611686018427387905));
    assert_int_equal(json_integer_value(json_object_get(leadership, "lease_ms")), 2000);
    assert_int_equal(json_integer_value(json_object_get(leadership, "remaining_ms")), 1500);
    json_decref(leadership);
    json_decref(group);
}

/* group: the fields that decide. */
static void state_is(const char *fields, const char *wanted)
{
    json_t *group = read_json(fields);

    assert_string_equal(group_state(group), wanted);
    json_decref(group);
}

static void test_how_the_last_mandate_ended_is_told_in_the_words_of_a_store(void **state)
{
    (void)state;
    state_is("{\"leader\":null,\"former_leader\":null,\"done\":false}", "empty");
    state_is("{\"leader\":null,\"former_leader\":\"a\",\"former_ending\":\"resigned\"}", "released");
    state_is("{\"leader\":null,\"former_leader\":\"a\",\"former_ending\":\"released\"}", "released");
    state_is("{\"leader\":null,\"former_leader\":\"a\",\"former_ending\":\"closed\"}", "released");
    state_is("{\"leader\":null,\"former_leader\":\"a\",\"former_ending\":\"dead\"}", "dead");
    state_is("{\"leader\":null,\"former_leader\":\"a\",\"former_ending\":\"expired\"}", "expired");
    state_is("{\"leader\":null,\"former_leader\":\"a\",\"former_ending\":\"lapsed\"}", "expired");
    state_is("{\"leader\":null,\"former_leader\":\"a\",\"former_ending\":\"released\",\"done\":true}",
             "done");
    state_is("{\"leader\":\"b\",\"former_leader\":\"a\",\"former_ending\":\"dead\"}", "held");
}

static void ended_as(const char *ending, const char *text, const char *words)
{
    json_t *group = json_pack("{s:n,s:s,s:s}", "leader", "former_leader", "a", "former_ending", ending);
    json_t *change = json_pack("{s:s,s:s}", "candidate", "a", "reason", ending);
    char buffer[256];

    assert_string_equal(group_state_text(group), text);
    assert_string_equal(group_change_words("vacant", change, buffer, sizeof buffer), words);
    json_decref(change);
    json_decref(group);
}

/* Most mandates of a cluster last as long as a session; `lapsed` may be one of a lease, or of a leader whose
 * session was kept alive too late. */
static void test_a_session_that_has_expired_is_not_called_a_lease(void **state)
{
    (void)state;
    ended_as("expired", "the last leader's session expired; no successor yet",
             "nobody leads: a did not keep its session alive");
    ended_as("lapsed", "the last leader did not renew in time; no successor yet",
             "nobody leads: a did not renew in time");
    assert_string_equal(leadership_state_ending(LEADERSHIP_LAPSED), " did not renew in time");
    assert_string_equal(leadership_state_ending(LEADERSHIP_EXPIRED), " lost its lease");
}

static void test_a_group_that_no_node_knows_is_empty(void **state)
{
    json_t *group = group_unknown("jobs"), *leadership = group_leadership_json(group),
           *list = group_candidates_json(group);

    (void)state;
    assert_string_equal(json_get_text(leadership, "group"), "jobs");
    assert_string_equal(json_get_text(leadership, "state"), "empty");
    assert_int_equal(json_integer_value(json_object_get(leadership, "epoch")), 0);
    assert_true(json_is_null(json_object_get(leadership, "leader_id")));
    assert_int_equal(json_array_size(json_object_get(list, "candidates")), 0);
    json_decref(list);
    json_decref(leadership);
    json_decref(group);
}

static void test_candidates_are_listed_with_their_leader(void **state)
{
    json_t *group = read_json(held), *json = group_candidates_json(group),
           *list = json_object_get(json, "candidates");

    (void)state;
    assert_int_equal(json_array_size(list), 2);
    assert_true(json_is_true(json_object_get(json_array_get(list, 0), "leader")));
    assert_string_equal(json_get_text(json_array_get(list, 0), "metadata"), "blue");
    assert_true(json_is_false(json_object_get(json_array_get(list, 1), "leader")));
    assert_true(json_is_false(json_object_get(json_array_get(list, 1), "eligible")));
    assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 1), "priority")), -1);
    json_decref(json);
    json_decref(group);
}

/* Answers of something that is no node, or of a later version. */
static void test_odd_answers_do_no_harm(void **state)
{
    static const char *const odd[] = {
        "{}", "{\"leader\":7,\"epoch\":\"x\",\"candidates\":{}}",
        "{\"candidates\":[1,null,{\"candidate\":[]}],\"since\":12,\"done\":\"yes\"}"};

    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        json_t *group = read_json(odd[i]), *leadership = group_leadership_json(group),
               *list = group_candidates_json(group);

        assert_string_equal(json_get_text(leadership, "state"), "empty");
        assert_int_equal(json_integer_value(json_object_get(leadership, "epoch")), 0);
        json_decref(list);
        json_decref(leadership);
        json_decref(group);
    }
}

static void test_times_are_read_as_they_are_written(void **state)
{
    (void)state;
    assert_int_equal(group_time("2026-11-16T11:00:00.250Z"), INT64_C(1794826800250));
    assert_int_equal(group_time("1970-01-01T00:00:01Z"), 1000);
    assert_int_equal(group_time(""), 0);
    assert_int_equal(group_time("yesterday"), 0);
    assert_int_equal(group_time("2026-11-16"), 0);
}

static void change_is(const char *kind, const char *fields, const char *event, const char *words)
{
    json_t *change = read_json(fields), *json = group_change_json(kind, change, 1000);
    char buffer[256];

    assert_string_equal(group_change_words(kind, change, buffer, sizeof buffer), words);
    if (event)
        assert_string_equal(json_get_text(json, "event"), event);
    else
        assert_null(json);
    json_decref(json);
    json_decref(change);
}

static void test_changes_have_the_names_that_a_store_has_for_them(void **state)
{
    (void)state;
    change_is("elected", "{\"group\":\"g\",\"candidate\":\"b\",\"epoch\":9,\"former_leader\":\"a\"}",
              "leader_changed", "b leads with epoch 9");
    change_is("vacant", "{\"group\":\"g\",\"candidate\":\"a\",\"epoch\":7,\"reason\":\"dead\"}",
              "leader_down", "nobody leads: a died");
    change_is("vacant", "{\"group\":\"g\",\"candidate\":\"a\",\"epoch\":7,\"reason\":\"resigned\"}",
              "leader_changed", "nobody leads: a gave up");
    change_is("vacant", "{\"candidate\":\"a\",\"reason\":\"something new\"}", "leader_changed",
              "nobody leads: a no longer leads");
    change_is("joined", "{\"candidate\":\"c\"}", NULL, "");
    change_is("note_put", "{\"key\":\"k\"}", NULL, "");
}

static void value_is(const char *base64, const char *bytes, size_t length)
{
    json_t *note = json_pack("{s:s}", "value_base64", base64), *again = json_object();
    size_t got = SIZE_MAX;
    char *value = group_value(note, &got);

    assert_non_null(value);
    assert_int_equal(got, length);
    assert_memory_equal(value, bytes, length);
    group_put_value(again, value, got);
    if (json_object_get(again, "value_base64"))
        assert_string_equal(json_get_text(again, "value_base64"), base64);
    else
        assert_int_equal(json_string_length(json_object_get(again, "value")), length);
    json_decref(again);
    json_decref(note);
    free(value);
}

static void test_values_come_back_as_they_were(void **state)
{
    json_t *note = json_pack("{s:s}", "value_base64", "abc"), *none = json_object();
    size_t length;

    (void)state;
    value_is("", "", 0);
    value_is("MTc=", "17", 2);
    value_is("MQ==", "1", 1);
    value_is("MTcx", "171", 3);
    value_is("AP94", "\0\377x", 3);
    assert_null(group_value(note, &length));
    assert_null(group_value(none, &length));
    assert_true(group_is_text("17", 2));
    assert_false(group_is_text("\377", 1));
    assert_false(group_is_text("a\0b", 3));
    json_decref(none);
    json_decref(note);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_held_group_has_the_shape_of_a_leadership),
        cmocka_unit_test(test_how_the_last_mandate_ended_is_told_in_the_words_of_a_store),
        cmocka_unit_test(test_a_session_that_has_expired_is_not_called_a_lease),
        cmocka_unit_test(test_a_group_that_no_node_knows_is_empty),
        cmocka_unit_test(test_candidates_are_listed_with_their_leader),
        cmocka_unit_test(test_odd_answers_do_no_harm),
        cmocka_unit_test(test_times_are_read_as_they_are_written),
        cmocka_unit_test(test_changes_have_the_names_that_a_store_has_for_them),
        cmocka_unit_test(test_values_come_back_as_they_were),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
