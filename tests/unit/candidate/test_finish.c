/* SPDX-License-Identifier: Apache-2.0 */

/* Work that is done for good: what is sent when, and what the candidate says of how it ended. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "core/candidate/candidate.h"

struct fixture {
    struct candidate candidate;
    struct candidate_actions actions;
    gavel_ms now;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct candidate_config config = {.group = "g", .id = "me", .eligible = true, .seed = 1};

    assert_non_null(f);
    assert_int_equal(gavel_settings_preset("local", &config.settings), GAVEL_OK);
    assert_int_equal(candidate_init(&f->candidate, &config, NULL), GAVEL_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    candidate_done(&f->candidate);
    free(f);
    return 0;
}

/* A millisecond later. */
static void feed(struct fixture *f, enum candidate_event_kind kind)
{
    candidate_step(&f->candidate, &(struct candidate_event){.kind = kind, .now = ns_from_ms(++f->now)},
                   &f->actions);
}

/* The call under way of that operation, or NULL. */
static const struct candidate_call *pending(const struct fixture *f, enum store_op op)
{
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        if (f->candidate.calls[slot].is_pending && f->candidate.calls[slot].op == op)
            return &f->candidate.calls[slot];
    return NULL;
}

static void answer(struct fixture *f, enum store_op op, struct store_reply reply)
{
    const struct candidate_call *call = pending(f, op);
    struct candidate_event event = {.kind = CANDIDATE_REPLY, .now = ns_from_ms(++f->now)};

    if (!call)
        fail_msg("no %s is under way", store_op_name(op));
    event.reply.call = call->id;
    event.reply.reply = &reply;
    candidate_step(&f->candidate, &event, &f->actions);
}

static const struct store_request *sent(const struct fixture *f, enum store_op op)
{
    for (size_t i = 0; i < f->actions.count; i++)
        if (f->actions.items[i].kind == CANDIDATE_CALL && f->actions.items[i].call.request.op == op)
            return &f->actions.items[i].call.request;
    return NULL;
}

/* Lets time pass until that operation is under way. */
static void await(struct fixture *f, enum store_op op)
{
    for (int i = 0; i < 20000 && !pending(f, op); i++) {
        feed(f, CANDIDATE_TICK);
        if (op != STORE_HEARTBEAT && pending(f, STORE_HEARTBEAT))
            answer(f, STORE_HEARTBEAT, (struct store_reply){0});
    }
    assert_non_null(pending(f, op));
}

/* The record of our claim, as the store has it. */
static struct store_reply ours(const struct fixture *f, bool is_held, bool is_done)
{
    return (struct store_reply){
        .found = true,
        .record = {.epoch = 7,
                   .version = 3,
                   .nonce = f->candidate.nonce,
                   .lease_ms = 2000,
                   .held = is_held,
                   .done = is_done,
                   .holder = "me"},
    };
}

static struct store_reply another(bool is_held, bool is_done)
{
    return (struct store_reply){
        .found = true,
        .record = {.epoch = 8,
                   .version = 5,
                   .nonce = {1, 2},
                   .lease_ms = 2000,
                   .held = is_held,
                   .done = is_done,
                   .holder = "other"},
    };
}

static void lead(struct fixture *f)
{
    feed(f, CANDIDATE_START);
    answer(f, STORE_HEARTBEAT, (struct store_reply){0});
    answer(f, STORE_READ, (struct store_reply){0});
    answer(f, STORE_READ, (struct store_reply){0});
    answer(f, STORE_CLAIM, (struct store_reply){.record = {.epoch = 7, .version = 3}});
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
}

/* Leaves, and compares the last event. */
static const struct gavel_event *expect_end(struct fixture *f, enum gavel_status status)
{
    answer(f, STORE_LEAVE, (struct store_reply){0});
    assert_int_equal(f->candidate.state, CANDIDATE_ENDED);
    for (size_t i = 0; i < f->actions.count; i++) {
        const struct gavel_event *event = &f->actions.items[i].event;

        if (f->actions.items[i].kind != CANDIDATE_EMIT || event->kind != GAVEL_EVENT_STOPPED)
            continue;
        assert_int_equal(event->status, status);
        assert_true((event->message[0] != '\0') == (status != GAVEL_OK));
        return event;
    }
    fail_msg("no stopped event");
    return NULL;
}

static void test_the_group_is_closed_only_after_the_work_has_stopped(void **state)
{
    struct fixture *f = *state;
    const struct store_request *release;

    lead(f);
    feed(f, CANDIDATE_FINISH);
    assert_int_equal(f->candidate.state, CANDIDATE_STOPPING);
    assert_false(candidate_is_leader(&f->candidate, ns_from_ms(f->now)));
    assert_null(sent(f, STORE_RELEASE));
    feed(f, CANDIDATE_WORK_STOPPED);
    release = sent(f, STORE_RELEASE);
    assert_non_null(release);
    assert_true(release->record.done);
    assert_int_equal(release->record.epoch, 7);
    assert_true(nonce_equal(release->record.nonce, f->candidate.nonce));
    answer(f, STORE_RELEASE, ours(f, false, true));
    (void)expect_end(f, GAVEL_OK);
}

static void tell_outcome(struct fixture *f, int exit_code)
{
    candidate_step(
        &f->candidate,
        &(struct candidate_event){
            .kind = CANDIDATE_OUTCOME,
            .now = ns_from_ms(++f->now),
            .outcome = {.exit_code = exit_code, .ended_wall_ms = 1000, .took_ms = 50, .keep_s = 60}},
        &f->actions);
}

static void test_the_release_leaves_the_outcome_in_the_record(void **state)
{
    struct fixture *f = *state;
    struct outcome outcome;

    lead(f);
    f->candidate.attempts = 2; /* as the record said that it claimed */
    tell_outcome(f, 0);
    feed(f, CANDIDATE_FINISH);
    feed(f, CANDIDATE_WORK_STOPPED);
    assert_true(outcome_read(sent(f, STORE_RELEASE)->record.successor, &outcome));
    assert_true(sent(f, STORE_RELEASE)->record.done);
    assert_int_equal(outcome.exit_code, 0);
    assert_int_equal(outcome.took_ms, 50);
    assert_int_equal(outcome.attempts, 3);
    assert_int_equal(outcome.keep_s, 60);
}

static void test_a_failure_leaves_its_outcome_too_and_closes_nothing(void **state)
{
    struct fixture *f = *state;
    struct outcome outcome;

    lead(f);
    tell_outcome(f, 3);
    feed(f, CANDIDATE_STOP);
    feed(f, CANDIDATE_WORK_STOPPED);
    assert_true(outcome_read(sent(f, STORE_RELEASE)->record.successor, &outcome));
    assert_false(sent(f, STORE_RELEASE)->record.done);
    assert_int_equal(outcome.exit_code, 3);
    assert_int_equal(outcome.attempts, 1);
}

static void test_a_resignation_does_not_close_the_group(void **state)
{
    struct fixture *f = *state;

    lead(f);
    candidate_step(&f->candidate,
                   &(struct candidate_event){
                       .kind = CANDIDATE_RESIGN, .now = ns_from_ms(++f->now), .resign = {.successor = ""}},
                   &f->actions);
    feed(f, CANDIDATE_WORK_STOPPED);
    assert_false(sent(f, STORE_RELEASE)->record.done);
}

static void test_a_lost_answer_is_settled_by_reading_the_nonce_back(void **state)
{
    struct fixture *f = *state;

    lead(f);
    feed(f, CANDIDATE_FINISH);
    feed(f, CANDIDATE_WORK_STOPPED);
    answer(f, STORE_RELEASE, (struct store_reply){.status = GAVEL_ERR_STORE_UNAVAILABLE, .message = "away"});
    assert_int_equal(f->candidate.state, CANDIDATE_STOPPING);
    await(f, STORE_READ);
    answer(f, STORE_READ, ours(f, true, false)); /* it has not arrived: once more */
    assert_true(sent(f, STORE_RELEASE)->record.done);
    answer(f, STORE_RELEASE, (struct store_reply){.status = GAVEL_ERR_NOT_HOLDER, .message = "not held"});
    await(f, STORE_READ);
    answer(f, STORE_READ, ours(f, false, true)); /* it had, after all */
    (void)expect_end(f, GAVEL_OK);
}

static void test_who_took_over_meanwhile_is_not_touched(void **state)
{
    struct fixture *f = *state;

    lead(f);
    feed(f, CANDIDATE_FINISH);
    feed(f, CANDIDATE_WORK_STOPPED);
    answer(f, STORE_RELEASE, (struct store_reply){.status = GAVEL_ERR_STORE_UNAVAILABLE, .message = "away"});
    await(f, STORE_READ);
    answer(f, STORE_READ, another(true, false));
    assert_null(sent(f, STORE_RELEASE));
    (void)expect_end(f, GAVEL_ERR_NOT_HOLDER);
}

static void test_another_that_was_faster_is_named(void **state)
{
    struct fixture *f = *state;
    const struct gavel_event *stopped;

    lead(f);
    feed(f, CANDIDATE_FINISH);
    feed(f, CANDIDATE_WORK_STOPPED);
    answer(f, STORE_RELEASE, (struct store_reply){.status = GAVEL_ERR_NOT_HOLDER, .message = "not held"});
    await(f, STORE_READ);
    answer(f, STORE_READ, another(false, true));
    stopped = expect_end(f, GAVEL_ERR_DONE);
    assert_string_equal(stopped->previous, "other");
    assert_int_equal(stopped->epoch, 8);
    assert_non_null(strstr(stopped->message, "\"other\" with epoch 8"));
}

static void test_a_store_that_cannot_keep_it_is_not_asked_again(void **state)
{
    struct fixture *f = *state;
    const struct gavel_event *stopped;

    lead(f);
    feed(f, CANDIDATE_FINISH);
    feed(f, CANDIDATE_WORK_STOPPED);
    answer(f, STORE_RELEASE,
           (struct store_reply){.status = GAVEL_ERR_STORE_UNSUPPORTED, .message = "use another store"});
    stopped = expect_end(f, GAVEL_ERR_STORE_UNSUPPORTED);
    assert_non_null(strstr(stopped->message, "use another store"));
}

static void test_a_store_that_stays_away_is_given_up_after_deadline_and_lease(void **state)
{
    struct fixture *f = *state;
    gavel_ns deadline;

    lead(f);
    deadline = f->candidate.deadline;
    feed(f, CANDIDATE_FINISH);
    feed(f, CANDIDATE_WORK_STOPPED);
    while (f->candidate.state == CANDIDATE_STOPPING && f->now < 60000) {
        assert_true(candidate_wake_at(&f->candidate) != NEVER);
        feed(f, CANDIDATE_TICK); /* nobody answers */
    }
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
    assert_true(ns_from_ms(f->now) >= deadline + ns_from_ms(2000));
    assert_true(ns_from_ms(f->now) <= deadline + ns_from_ms(2000 + 2 * 500 + 200));
    (void)expect_end(f, GAVEL_ERR_TIMEOUT);
}

static void test_a_claim_that_is_answered_done_ends_the_candidate(void **state)
{
    struct fixture *f = *state;
    struct store_reply done = another(false, true);
    const struct gavel_event *stopped;

    feed(f, CANDIDATE_START);
    answer(f, STORE_HEARTBEAT, (struct store_reply){0});
    answer(f, STORE_READ, (struct store_reply){0});
    answer(f, STORE_READ, (struct store_reply){0});
    done.status = GAVEL_ERR_DONE;
    answer(f, STORE_CLAIM, done);
    assert_null(sent(f, STORE_RELEASE));
    stopped = expect_end(f, GAVEL_ERR_DONE);
    assert_string_equal(stopped->previous, "other");
    assert_int_equal(f->candidate.breaker.failures, 0); /* a refusal is no failure of the store */
}

static void test_a_group_seen_done_is_not_claimed(void **state)
{
    struct fixture *f = *state;

    feed(f, CANDIDATE_START);
    answer(f, STORE_HEARTBEAT, (struct store_reply){0});
    answer(f, STORE_READ, another(false, true));
    assert_null(sent(f, STORE_CLAIM));
    (void)expect_end(f, GAVEL_ERR_DONE);
}

static void test_a_leader_that_lapses_may_still_close_what_nobody_took(void **state)
{
    struct fixture *f = *state;

    lead(f);
    while (f->candidate.state == CANDIDATE_LEADING && f->now < 10000)
        feed(f, CANDIDATE_TICK); /* no renewal is answered */
    assert_int_equal(f->candidate.reason, GAVEL_REASON_LAPSED);
    feed(f, CANDIDATE_FINISH);
    feed(f, CANDIDATE_WORK_STOPPED);
    assert_true(sent(f, STORE_RELEASE)->record.done);
    answer(f, STORE_RELEASE, ours(f, false, true));
    (void)expect_end(f, GAVEL_OK);
}

static void test_a_finish_after_the_release_changes_nothing_and_says_so(void **state)
{
    struct fixture *f = *state;

    lead(f);
    feed(f, CANDIDATE_STOP);
    feed(f, CANDIDATE_WORK_STOPPED);
    assert_false(sent(f, STORE_RELEASE)->record.done);
    feed(f, CANDIDATE_FINISH);
    answer(f, STORE_RELEASE, ours(f, false, false));
    (void)expect_end(f, GAVEL_ERR_NOT_HOLDER);
}

static void test_a_claim_under_way_that_is_won_closes_the_group(void **state)
{
    struct fixture *f = *state;

    feed(f, CANDIDATE_START);
    answer(f, STORE_HEARTBEAT, (struct store_reply){0});
    answer(f, STORE_READ, (struct store_reply){0});
    answer(f, STORE_READ, (struct store_reply){0});
    feed(f, CANDIDATE_FINISH);
    answer(f, STORE_CLAIM, (struct store_reply){.record = {.epoch = 7, .version = 3}});
    assert_true(sent(f, STORE_RELEASE)->record.done);
    answer(f, STORE_RELEASE, ours(f, false, true));
    (void)expect_end(f, GAVEL_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_group_is_closed_only_after_the_work_has_stopped),
        TEST(test_the_release_leaves_the_outcome_in_the_record),
        TEST(test_a_failure_leaves_its_outcome_too_and_closes_nothing),
        TEST(test_a_resignation_does_not_close_the_group),
        TEST(test_a_lost_answer_is_settled_by_reading_the_nonce_back),
        TEST(test_who_took_over_meanwhile_is_not_touched),
        TEST(test_another_that_was_faster_is_named),
        TEST(test_a_store_that_cannot_keep_it_is_not_asked_again),
        TEST(test_a_store_that_stays_away_is_given_up_after_deadline_and_lease),
        TEST(test_a_claim_that_is_answered_done_ends_the_candidate),
        TEST(test_a_group_seen_done_is_not_claimed),
        TEST(test_a_leader_that_lapses_may_still_close_what_nobody_took),
        TEST(test_a_finish_after_the_release_changes_nothing_and_says_so),
        TEST(test_a_claim_under_way_that_is_won_closes_the_group),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
