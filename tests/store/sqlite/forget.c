/* SPDX-License-Identifier: Apache-2.0 */

/* Records of `gavel once` that are deleted when their time is over, and the epochs that go on above them. */
#include "store/conformance/conformance.h"
#include "store/scratch.h"
#include "store/sqlite/sqlite.h"

#include "base/outcome.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_MS INT64_C(86400000)
#define KEPT_DAYS 90
#define EPOCH 17 /* of the key that is deleted */

/* SQLite's memory comes from here, so that any single allocation can be refused; 0: none is. */
static long refused_one;
static const sqlite3_mem_methods *true_memory;

static bool is_refused(void) { return refused_one > 0 && --refused_one == 0; }

static void *get_memory(int size) { return is_refused() ? NULL : true_memory->xMalloc(size); }

static void *change_memory(void *memory, int size)
{
    return is_refused() ? NULL : true_memory->xRealloc(memory, size);
}

/* Work that was done, by a worker whose clock said `ended`. */
static void do_work(struct store *store, const char *group, int64_t ended)
{
    const struct outcome outcome = {
        .ended_wall_ms = ended, .took_ms = 1, .attempts = 1, .keep_s = KEPT_DAYS * DAY_MS / 1000};
    uint64_t epoch = expect(store, ask_claim(group, "one", 1, 0), GAVEL_OK).record.epoch;
    struct store_request release = ask_release(group, "one", 1, epoch);

    release.record.done = true;
    outcome_write(&outcome, release.record.successor);
    (void)expect(store, release, GAVEL_OK);
}

static bool is_kept(struct store *store, const char *group)
{
    return expect(store, ask_read(group), GAVEL_OK).found;
}

/* As if the record of a group had been written by an earlier boot, with its clock at `wall_ms`. */
static void age(const char *file, const char *group, int64_t wall_ms)
{
    char sql[400];

    (void)snprintf(sql, sizeof sql,
                   "UPDATE groups SET since_wall_ms = %lld, renewed_wall_ms = %lld,"
                   " applied_boot_id = '00000000-0000-4000-8000-000000000000' WHERE name = '%s'",
                   (long long)wall_ms, (long long)wall_ms, group);
    scratch_sql(file, sql);
}

static void test_a_record_whose_time_is_over_goes_with_the_next_success(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    int64_t now = clock_wall_ms();

    do_work(store, "once:old", now - (KEPT_DAYS + 1) * DAY_MS);
    do_work(store, "once:young", now - (KEPT_DAYS - 1) * DAY_MS);
    age(s->file, "once:old", now - (KEPT_DAYS + 1) * DAY_MS);
    age(s->file, "once:young", now - (KEPT_DAYS - 1) * DAY_MS);
    do_work(store, "once:next", now);
    assert_false(is_kept(store, "once:old"));
    assert_true(is_kept(store, "once:young"));
    store_close(store);
}

static void test_a_worker_whose_clock_is_behind_keeps_its_record(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    int64_t now = clock_wall_ms();

    /* Only at the end of its work: the record itself began later than that. */
    do_work(store, "once:set-back", 0);
    age(s->file, "once:set-back", now - (KEPT_DAYS - 1) * DAY_MS);
    /* From the start of the machine, until its clock was set. */
    do_work(store, "once:no-clock", 0);
    scratch_sql(s->file,
                "UPDATE groups SET since_wall_ms = 0, renewed_wall_ms = 0 WHERE name = 'once:no-clock'");
    do_work(store, "once:next", now);
    assert_true(is_kept(store, "once:set-back"));
    assert_true(is_kept(store, "once:no-clock"));
    store_close(store);
}

/* The records of this boot are as old as the clock that never steps says, whatever the other one does. */
static void test_a_clock_that_is_ahead_takes_no_record_of_this_boot(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    struct sqlite_store *sqlite = (struct sqlite_store *)store;
    int64_t now = clock_wall_ms(), ahead = now + 10 * 365 * DAY_MS;

    do_work(store, "once:now", now);
    do_work(store, "once:before", now);
    age(s->file, "once:before", now);
    assert_int_equal(sqlite3_exec(sqlite->db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite_forget_outcomes(sqlite, clock_now(), ahead), SQLITE_OK);
    assert_int_equal(sqlite3_exec(sqlite->db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_true(is_kept(store, "once:now"));
    assert_false(is_kept(store, "once:before")); /* the wall clock is all there is */
    assert_int_equal(sqlite3_exec(sqlite->db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(
        sqlite_forget_outcomes(sqlite, clock_now() + (KEPT_DAYS + 1) * ns_from_ms(DAY_MS), ahead), SQLITE_OK);
    assert_int_equal(sqlite3_exec(sqlite->db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_false(is_kept(store, "once:now"));
    store_close(store);
}

/* A file in which a key of that epoch was deleted. */
static struct store *open_with_floor(const struct scratch *s)
{
    struct store *store = open_store(s->file);
    char sql[100];

    (void)snprintf(sql, sizeof sql, "INSERT INTO marks VALUES ('floor', %d)", EPOCH);
    scratch_sql(s->file, sql);
    return store;
}

static void test_a_deleted_key_goes_on_above_its_epochs(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_with_floor(s);
    struct store_reply reply = expect(store, ask_claim("once:old", "one", 1, 0), GAVEL_OK);

    assert_int_equal(reply.record.epoch, EPOCH + 1);
    assert_int_equal(reply.record.version, EPOCH + 1);
    store_close(store);
}

static int deny_marks(void *user, int action, const char *table, const char *column, const char *database,
                      const char *trigger)
{
    (void)user;
    (void)column;
    (void)database;
    (void)trigger;
    return action == SQLITE_READ && table && strcmp(table, "marks") == 0 ? SQLITE_DENY : SQLITE_OK;
}

static void test_without_the_floor_nothing_of_a_batch_is_done(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_with_floor(s);
    struct sqlite_store *sqlite = (struct sqlite_store *)store;
    struct store_request requests[2];
    struct store_reply replies[2];

    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    requests[0] = ask_release("g", "one", 1, EPOCH + 1);
    requests[1] = ask_claim("once:old", "one", 1, 0);
    assert_int_equal(sqlite3_set_authorizer(sqlite->db, deny_marks, NULL), SQLITE_OK);
    store_run(store, requests, replies, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(replies[i].status, GAVEL_ERR_STORE_DENIED);
        store_reply_done(&replies[i]);
    }
    assert_int_equal(sqlite3_set_authorizer(sqlite->db, NULL, NULL), SQLITE_OK);
    assert_false(is_kept(store, "once:old"));
    assert_true(expect(store, ask_read("g"), GAVEL_OK).record.held);
    store_close(store);
}

static void test_a_floor_that_makes_no_sense_is_damage(void **state)
{
    static const char *const values[] = {"0", "-5", "'seventeen'", "9223372036854775807"};

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct scratch *s = *state;
        struct store *store = open_with_floor(s);
        char sql[100];

        (void)snprintf(sql, sizeof sql, "UPDATE marks SET value = %s WHERE name = 'floor'", values[i]);
        scratch_sql(s->file, sql);
        (void)expect(store, ask_claim("once:old", "one", 1, 0), GAVEL_ERR_STORE_DAMAGED);
        store_close(store);
        scratch_sql(s->file, "DELETE FROM marks WHERE name = 'floor'");
    }
}

/* Whichever allocation fails: the claim fails, or its epoch is above. */
static void test_no_lack_of_memory_hides_the_floor(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_with_floor(s);
    int failures = 0;
    bool is_reached = true;

    for (long which = 1; is_reached; which++) {
        struct store_request claim = ask_claim("once:old", "one", 1, 0);
        struct store_reply reply;

        refused_one = which;
        if (store_call(store, &claim, &reply) != GAVEL_OK)
            failures++;
        else
            assert_int_equal(reply.record.epoch, EPOCH + 1);
        is_reached = refused_one == 0;
        refused_one = 0;
        store_reply_done(&reply);
        scratch_sql(s->file, "DELETE FROM groups");
    }
    assert_true(failures > 0);
    store_close(store);
}

/* One of before 0.7.0, to which nobody could add the table yet. */
static void test_a_file_without_marks_has_no_floor(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);

    scratch_sql(s->file, "DROP TABLE marks");
    assert_int_equal(expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch, 1);
    do_work(store, "once:old", 0);
    age(s->file, "once:old", 0);
    do_work(store, "once:next", clock_wall_ms());
    assert_true(is_kept(store, "once:old")); /* its epoch could not be remembered */
    store_close(store);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_set_up, scratch_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_record_whose_time_is_over_goes_with_the_next_success),
        TEST(test_a_worker_whose_clock_is_behind_keeps_its_record),
        TEST(test_a_clock_that_is_ahead_takes_no_record_of_this_boot),
        TEST(test_a_deleted_key_goes_on_above_its_epochs),
        TEST(test_without_the_floor_nothing_of_a_batch_is_done),
        TEST(test_a_floor_that_makes_no_sense_is_damage),
        TEST(test_no_lack_of_memory_hides_the_floor),
        TEST(test_a_file_without_marks_has_no_floor),
    };
    static sqlite3_mem_methods before, ours;

    /* Before its first use. */
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &before) || sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0))
        return EXIT_FAILURE;
    true_memory = &before;
    ours = before;
    ours.xMalloc = get_memory;
    ours.xRealloc = change_memory;
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &ours))
        return EXIT_FAILURE;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
