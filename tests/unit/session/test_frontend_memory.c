/* SPDX-License-Identifier: Apache-2.0 */

/* A leader that runs out of memory, at every place where it can: everybody is answered, and nothing is done
 * halfway. */
#include "frontend_fixture.h"

#include "allocator.h"

/* Does `act` with less and less memory missing, until it goes through; returns how often it failed. */
static size_t starve(struct fixture *f, void (*act)(struct fixture *f))
{
    size_t failures = 0;

    for (uint64_t enough = 0;; enough++) {
        size_t before = f->reply_count;
        uint64_t lost = f->frontend.counts.lost;

        allocator.fail_after = enough;
        act(f);
        allocator.fail_after = UINT64_MAX;
        flush(f);
        commit(f);
        assert_int_equal(f->frontend.waiting_count, 0);
        assert_int_equal(f->frontend.waiting_bytes, 0);
        /* The reply itself may be what there was no memory for, here or in the fixture. */
        assert_int_equal(f->reply_count - before + f->frontend.counts.lost - lost, 1);
        if (f->reply_count > before && f->replies[f->reply_count - 1] && last_reply(f)->status == GAVEL_OK)
            return failures;
        failures++;
        assert_true(failures < 500);
    }
}

static void claim_over(struct fixture *f)
{
    Gavel__Op *op = op_claim(f, "g", "two", 2, group_of(f, "g")->version);

    send_request(f, 0, 0, 1, &op);
}

static void test_a_claim_without_memory_leaves_the_holder_alone(void **state)
{
    struct fixture *f = *state;

    must(f, 0, 0, op_claim(f, "g", "one", 1, 0));
    run_until(f, f->now + MS(1002));
    assert_true(starve(f, claim_over) > 3);
    assert_string_equal(group_of(f, "g")->holder, "two");
    must(f, 0, 0, op_renew(f, "g", "two", 2));
}

static void refused_batch(struct fixture *f)
{
    Gavel__Op *ops[] = {op_claim(f, "g", "two", 2, 99), op_put(f, "g", "k", "v"), op_wish(f, "nowhere", "")};

    send_request(f, 0, 0, 3, ops);
}

static void test_a_batch_without_memory_is_refused_as_a_whole(void **state)
{
    struct fixture *f = *state;

    must(f, 0, 0, op_claim(f, "g", "one", 1, 0));
    assert_true(starve(f, refused_batch) > 5);
    assert_int_equal(last_reply(f)->n_results, 3);
}

static void renew(struct fixture *f)
{
    Gavel__Op *op = op_renew(f, "g", "one", 1);

    send_request(f, 0, 0, 1, &op);
}

static void test_a_renewal_without_memory_is_refused(void **state)
{
    struct fixture *f = *state;

    must(f, 0, 0, op_claim(f, "g", "one", 1, 0));
    assert_true(starve(f, renew) > 2);
    assert_int_equal(f->log_count, 1);
}

static void test_the_expiry_without_memory_tries_again(void **state)
{
    struct fixture *f = *state;

    must(f, 7, 1, op_open(f, 7, 1000));
    allocator.fail_after = 0;
    run_until(f, f->now + MS(1500));
    allocator.fail_after = UINT64_MAX;
    assert_int_equal(f->log_count, 1);
    assert_int_equal(keep_alive(f, 7)->n_gone, 0);
    run_until(f, f->now + MS(1202));
    assert_int_equal(f->log_count, 2);
    commit(f);
    assert_null(table_session_find(&f->table, 7));
}

/* The table has had the memory that the leader lacks a moment later. */
static void apply_and_starve(struct fixture *f)
{
    struct table_outcome outcome = {0};
    size_t at = f->applied++;

    assert_int_equal(table_apply_ops(&f->table, at + 1, f->log[at].bytes, f->log[at].size, &outcome),
                     GAVEL_OK);
    allocator.fail_after = 0;
    frontend_applied(&f->frontend, f->now, f->is_working, at + 1, f->log[at].term, GAVEL_OK, outcome.results,
                     outcome.count);
    allocator.fail_after = UINT64_MAX;
    collect(f);
    table_outcome_done(&outcome);
}

static void test_a_session_opened_without_memory_ends_in_time(void **state)
{
    struct fixture *f = *state;
    enum { PLACES = 16, SHORT = PLACES + 1, HOUR_MS = 3600 * 1000 };
    Gavel__Op *open = op_open(f, SHORT, 1000);
    gavel_ns opened_at;

    /* They need all places there are, and no further look at sessions before their hour is over. */
    for (uint64_t i = 1; i <= PLACES; i++)
        must(f, i, 1, op_open(f, i, HOUR_MS));
    run_until(f, f->now + MS(1000));
    opened_at = f->now;
    send_request(f, SHORT, 1, 1, &open);
    flush(f);
    apply_and_starve(f);
    assert_non_null(table_session_find(&f->table, SHORT));
    assert_null(heard_session(&f->frontend.heard, table_session_find(&f->table, SHORT)));
    run_until(f, opened_at + MS(1000));
    assert_int_equal(f->log_count, SHORT);
    run_until(f, opened_at + MS(1500));
    commit(f);
    assert_null(table_session_find(&f->table, SHORT));
    assert_int_equal(f->frontend.counts.expired, 1);
}

static void test_a_question_without_memory_is_answered_so(void **state)
{
    struct fixture *f = *state;
    Gavel__Ask question;
    Gavel__Answer answer;
    uint64_t enough = 0;
    enum gavel_status status;

    must(f, 0, 0, op_register(f, "g", "one", 1, 1));
    gavel__ask__init(&question);
    question.kind = GAVEL__ASK__KIND__CANDIDATES;
    question.group = (char *)(uintptr_t) "g";
    do {
        allocator.fail_after = enough;
        status = frontend_answer(&f->frontend, &f->table, f->now, &question, &answer);
        allocator.fail_after = UINT64_MAX;
        assert_int_equal(answer.status, status);
        assert_int_equal(answer.n_groups, status == GAVEL_OK ? 1 : 0);
        assert_true(status == GAVEL_OK || status == GAVEL_ERR_NO_MEMORY);
        frontend_answer_done(&answer);
        assert_true(enough++ < 100);
    } while (status != GAVEL_OK);
    assert_in_range(enough, 5, 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_claim_without_memory_leaves_the_holder_alone),
        TEST(test_a_batch_without_memory_is_refused_as_a_whole),
        TEST(test_a_renewal_without_memory_is_refused),
        TEST(test_the_expiry_without_memory_tries_again),
        TEST(test_a_session_opened_without_memory_ends_in_time),
        TEST(test_a_question_without_memory_is_answered_so),
    };

    return cmocka_run_group_tests_name("frontend_memory", tests, NULL, NULL);
}
