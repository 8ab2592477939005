/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A cluster whose table is full: GAVELD is a node whose table has a mebibyte and a
 * thousand groups (tests/unit/table). What makes room goes through, what does not fit is
 * refused with the reason, and once there is room it goes on by itself.
 */
#include "many.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS_MAX 1000
#define GROUPS 200
#define NOTE_BYTES 40000

/* The cluster may have no leader for a moment: then it is asked again. */
static bool is_final(int code, const char *answer)
{
    return code != 0 && code != 504 && (code != 503 || strstr(answer, "ERR_STORE_FULL"));
}

static int ask(const struct test_cluster *cluster, const char *method, const char *path, const char *body,
               size_t size, char *answer, size_t room)
{
    int64_t until = gavel_now_ns() + MANY_LIMIT_MS * INT64_C(1000000);
    int code;

    for (;;) {
        code =
            test_cluster_ask(cluster, test_cluster_leader(cluster), method, path, body, size, answer, room);
        if (is_final(code, answer))
            return code;
        if (gavel_now_ns() >= until)
            fail_msg("%s %s: %d %s", method, path, code, answer);
        many_pause_ms(20); /* between two looks */
    }
}

/* It is gone, by this request or by one before it that was not answered. */
static void delete_it(const struct test_cluster *cluster, const char *path)
{
    char answer[600];
    int code = ask(cluster, "DELETE", path, NULL, 0, answer, sizeof answer);

    if (code != 200 && code != 404)
        fail_msg("%s: %d %s", path, code, answer);
}

static void note_path(char *path, size_t room, int number)
{
    (void)snprintf(path, room, "/groups/fill/notes/n%d", number);
}

/* With notes that become shorter, so that nothing else fits. How many there are. */
static int fill(const struct test_cluster *cluster)
{
    static char value[NOTE_BYTES];
    size_t size = sizeof value;
    char path[64], answer[600];
    int count = 0;

    memset(value, 'v', sizeof value);
    while (size > 0) {
        int code;

        note_path(path, sizeof path, count);
        code = ask(cluster, "PUT", path, value, size, answer, sizeof answer);
        if (code == 200) {
            count++;
            continue;
        }
        assert_int_equal(code, 503);
        assert_non_null(strstr(answer, "ERR_STORE_FULL"));
        assert_non_null(strstr(answer, "the table of the cluster is full"));
        size /= 2;
    }
    return count;
}

static void expect_trouble(struct many *many, size_t from, const char *reason)
{
    pthread_mutex_lock(&many->mutex);
    for (size_t i = from; i < many->count; i++) {
        if (!strstr(many->members[i].trouble, reason))
            fail_msg("group %zu: \"%s\"", i, many->members[i].trouble);
        assert_int_equal(many->members[i].elected, 0);
    }
    pthread_mutex_unlock(&many->mutex);
}

/* All at once, so that they go to the cluster in one request. */
static void resign_all(struct many *many)
{
    for (size_t i = 0; i < many->count; i++)
        assert_int_equal(gavel_resign(many->members[i].candidate, NULL), GAVEL_OK);
}

static void join_new_groups(struct many *many, const struct test_cluster *cluster, size_t from, size_t count)
{
    struct gavel_settings settings = many_settings(60000, 2000);

    many_open(many, cluster->url, "new", from + count);
    for (size_t i = from; i < from + count; i++)
        many_join(many, i, &settings);
}

static void test_a_table_without_room_lets_everybody_resign_and_leave_and_goes_on_when_there_is_room(
    void **state)
{
    struct test_cluster *cluster = *state;
    struct gavel_settings settings = many_settings(60000, 2000);
    struct many one, two, late;
    char path[64];
    int notes;

    many_open(&one, cluster->url, "one", GROUPS);
    many_join_all(&one, &settings);
    many_await_all(&one);
    many_open(&two, cluster->url, "two", GROUPS);
    many_join_all(&two, &settings);
    join_new_groups(&late, cluster, GROUPS, 1); /* its session is open while there is room */
    many_await_all(&late);
    notes = fill(cluster);
    print_message("# %d notes\n", notes);
    resign_all(&one);
    many_await_all(&two);
    assert_int_equal(many_count(&one, &one.demoted), GROUPS);
    resign_all(&two); /* and the other way round */
    many_await_all(&one);
    for (size_t i = 0; i < GROUPS; i++)
        assert_int_equal(gavel_leave(one.members[i].candidate), GAVEL_OK);
    many_await_all(&two);
    many_expect_mandates(&two, cluster->url);
    for (int i = 0; i < notes; i++) {
        note_path(path, sizeof path, i);
        delete_it(cluster, path);
    }
    many_close(&late);
    many_close(&two);
    many_close(&one);
}

static void test_what_does_not_fit_is_refused_with_the_reason_until_it_does(void **state)
{
    struct test_cluster *cluster = *state;
    struct gavel_settings settings = many_settings(60000, 2000);
    char path[64];
    struct many many;
    int notes;

    many_open(&many, cluster->url, "one", 11);
    many_join(&many, 0, &settings);
    many_await_all(&many);
    notes = fill(cluster);
    for (size_t i = 1; i < many.count; i++)
        many_join(&many, i, &settings);
    many_await(&many, &many.troubled, 10);
    expect_trouble(&many, 1, "the table of the cluster is full");
    assert_true(gavel_is_leader(many.members[0].candidate));
    for (int i = 0; i < notes; i++) {
        note_path(path, sizeof path, i);
        delete_it(cluster, path);
    }
    many_await_all(&many);
    many_expect_mandates(&many, cluster->url);
    assert_int_equal(many_count(&many, &many.demoted), 0);
    many_close(&many);
}

static void test_beyond_the_limit_of_groups_others_must_go_first(void **state)
{
    struct test_cluster *cluster = *state;
    char path[64];
    struct many many;
    size_t led;

    join_new_groups(&many, cluster, 0, GROUPS_MAX + 10);
    many_await(&many, &many.troubled, 10);
    many_await(&many, &many.elected, GROUPS_MAX);
    led = many_count(&many, &many.elected);
    assert_int_equal(led, GROUPS_MAX);
    for (size_t i = 0, gone = 0; gone < 10; i++) { /* those that came first lead */
        assert_true(i < many.count);
        if (many.members[i].elected == 0) {
            assert_non_null(strstr(many.members[i].trouble, "limit of groups"));
            continue;
        }
        assert_int_equal(gavel_leave(many.members[i].candidate), GAVEL_OK);
        many.members[i].candidate = NULL;
        (void)snprintf(path, sizeof path, "/groups/g%zu", i);
        delete_it(cluster, path);
        gone++;
    }
    many_await_all(&many);
    many_expect_mandates(&many, cluster->url);
    assert_int_equal(many_count(&many, &many.elected), GROUPS_MAX + 10);
    many_close(&many);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, many_set_up, many_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_table_without_room_lets_everybody_resign_and_leave_and_goes_on_when_there_is_room),
        TEST(test_what_does_not_fit_is_refused_with_the_reason_until_it_does),
        TEST(test_beyond_the_limit_of_groups_others_must_go_first),
    };

    return cmocka_run_group_tests_name("lib cluster full", tests, NULL, NULL);
}
