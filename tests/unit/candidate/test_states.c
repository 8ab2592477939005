/* SPDX-License-Identifier: Apache-2.0 */

/* The table of states against the diagram, and what a step may and may not do in each of them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "core/candidate/candidate.h"

static void test_table_has_the_edges_of_the_diagram(void **state)
{
    static const char expected[] = "idle: observing ended\n"
                                   "observing: standby ended\n"
                                   "standby: claiming preparing stopping ended\n"
                                   "claiming: standby preparing stopping\n"
                                   "preparing: leading stopping\n"
                                   "leading: stopping\n"
                                   "stopping: standby\n"
                                   "ended:\n";
    char printed[1024] = "";
    size_t n = 0;

    (void)state;
    for (int from = 0; from < CANDIDATE_STATE_COUNT; from++) {
        n += (size_t)snprintf(printed + n, sizeof printed - n,
                              "%s:", candidate_state_name((enum candidate_state)from));
        for (int to = 0; to < CANDIDATE_STATE_COUNT; to++)
            if (candidate_may_move((enum candidate_state)from, (enum candidate_state)to))
                n += (size_t)snprintf(printed + n, sizeof printed - n, " %s",
                                      candidate_state_name((enum candidate_state)to));
        n += (size_t)snprintf(printed + n, sizeof printed - n, "\n");
    }
    assert_string_equal(printed, expected);
}

struct fixture {
    struct candidate candidate;
    struct candidate_actions actions;
};

static int setup(void **state)
{
    static struct fixture fixture;
    struct candidate_config config = {
        .group = "g", .id = "me", .store = "gavel://h1:7600", .eligible = true, .seed = 1};

    assert_int_equal(gavel_settings_preset("local", &config.settings), GAVEL_OK);
    assert_int_equal(candidate_init(&fixture.candidate, &config, NULL), GAVEL_OK);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    candidate_done(&f->candidate);
    return 0;
}

static void feed(struct fixture *f, enum candidate_event_kind kind, gavel_ms at)
{
    candidate_step(&f->candidate, &(struct candidate_event){.kind = kind, .now = ns_from_ms(at)},
                   &f->actions);
}

/* Answers the call of that operation, which must be under way. */
static void answer(struct fixture *f, enum store_op op, struct store_reply reply, gavel_ms at)
{
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        const struct candidate_call *call = &f->candidate.calls[slot];

        if (call->is_pending && call->op == op) {
            candidate_step(&f->candidate,
                           &(struct candidate_event){.kind = CANDIDATE_REPLY,
                                                     .now = ns_from_ms(at),
                                                     .reply = {.call = call->id, .reply = &reply}},
                           &f->actions);
            return;
        }
    }
    fail_msg("no %s is under way", store_op_name(op));
}

static const struct candidate_action *find(const struct fixture *f, enum candidate_action_kind kind)
{
    for (size_t i = 0; i < f->actions.count; i++)
        if (f->actions.items[i].kind == kind)
            return &f->actions.items[i];
    return NULL;
}

/* Brings the candidate to lead: claim sent at 10 ms, answered at 12 ms. */
static void lead(struct fixture *f)
{
    feed(f, CANDIDATE_START, 1);
    answer(f, STORE_HEARTBEAT, (struct store_reply){0}, 5);
    answer(f, STORE_READ, (struct store_reply){0}, 5);
    answer(f, STORE_READ, (struct store_reply){0}, 10); /* what was seen while observing may be old */
    assert_int_equal(f->candidate.state, CANDIDATE_CLAIMING);
    answer(f, STORE_CLAIM, (struct store_reply){.record = {.epoch = 7, .version = 3}}, 12);
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
}

static void test_mandate_counts_from_the_send_and_is_published_before_the_work_starts(void **state)
{
    struct fixture *f = *state;
    const struct candidate_action *mandate;

    lead(f);
    mandate = find(f, CANDIDATE_MANDATE);
    assert_non_null(mandate);
    assert_true(mandate < find(f, CANDIDATE_WORK_START));
    assert_int_equal(mandate->mandate.epoch, 7);
    /* sent at 10 ms: 2000 ms less 0.1 % drift and 50 ms margin, and the work has 500 ms to stop */
    assert_int_equal(ms_from_ns(mandate->mandate.deadline), 10 + 2000 - 2 - 50 - 1);
    assert_int_equal(mandate->mandate.deadline - mandate->mandate.stop_at, ns_from_ms(500));
    assert_true(candidate_is_leader(&f->candidate, mandate->mandate.stop_at - 1));
    assert_false(candidate_is_leader(&f->candidate, mandate->mandate.stop_at));
}

static void test_release_is_sent_only_after_the_work_has_stopped(void **state)
{
    struct fixture *f = *state;

    lead(f);
    candidate_step(&f->candidate,
                   &(struct candidate_event){
                       .kind = CANDIDATE_RESIGN, .now = ns_from_ms(20), .resign = {.successor = ""}},
                   &f->actions);
    assert_non_null(find(f, CANDIDATE_WORK_STOP));
    assert_null(find(f, CANDIDATE_CALL));
    feed(f, CANDIDATE_TICK, 100);
    assert_null(find(f, CANDIDATE_CALL));
    feed(f, CANDIDATE_WORK_STOPPED, 120);
    assert_int_equal(find(f, CANDIDATE_CALL)->call.request.op, STORE_RELEASE);
    assert_int_equal(find(f, CANDIDATE_CALL)->call.request.record.epoch, 7);
    answer(f, STORE_RELEASE, (struct store_reply){0}, 121);
    assert_non_null(find(f, CANDIDATE_RING));
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
}

static void test_renewal_answered_after_the_stop_time_does_not_bring_the_mandate_back(void **state)
{
    struct fixture *f = *state;
    gavel_ms stop_ms;

    lead(f);
    stop_ms = ms_from_ns(f->candidate.stop_at) + 1;
    feed(f, CANDIDATE_TICK, stop_ms - 10); /* the renewal goes out */
    answer(f, STORE_RENEW, (struct store_reply){.record = {.epoch = 7, .version = 4}}, stop_ms);
    assert_int_equal(f->candidate.state, CANDIDATE_STOPPING);
    assert_false(candidate_is_leader(&f->candidate, ns_from_ms(stop_ms)));
}

static void test_failing_renewals_answer_unknown_until_the_stop_time(void **state)
{
    struct fixture *f = *state;
    gavel_ns until = 0;

    lead(f);
    assert_int_equal(candidate_answer(&f->candidate, ns_from_ms(13), &until), CANDIDATE_LEADER);
    feed(f, CANDIDATE_TICK, 600);
    answer(f, STORE_RENEW, (struct store_reply){.status = GAVEL_ERR_STORE_UNAVAILABLE}, 610);
    assert_int_equal(candidate_answer(&f->candidate, ns_from_ms(611), &until), CANDIDATE_UNKNOWN_UNTIL);
    assert_int_equal(until, f->candidate.stop_at);
    assert_int_equal(candidate_answer(&f->candidate, until, &until), CANDIDATE_NOT_LEADER);
}

static void test_ineligible_candidate_observes_and_never_claims(void **state)
{
    struct fixture *f = *state;

    candidate_step(&f->candidate,
                   &(struct candidate_event){.kind = CANDIDATE_SET_ELIGIBLE, .now = 0, .eligible = false},
                   &f->actions);
    feed(f, CANDIDATE_START, 1);
    answer(f, STORE_HEARTBEAT, (struct store_reply){0}, 5);
    answer(f, STORE_READ, (struct store_reply){0}, 5);
    answer(f, STORE_READ, (struct store_reply){0}, 10);
    for (gavel_ms at = 11; at < 10000; at += 50)
        feed(f, CANDIDATE_TICK, at);
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
}

static void test_a_flood_of_doorbells_costs_at_most_one_look_in_twenty_milliseconds(void **state)
{
    struct fixture *f = *state;
    unsigned looks = 0;

    lead(f);
    for (gavel_ms at = 1000; at < 1400; at++) {
        feed(f, CANDIDATE_DOORBELL, at);
        if (find(f, CANDIDATE_CALL) && f->candidate.calls[SLOT_MANDATE].is_pending) {
            looks++;
            answer(f, STORE_RENEW, (struct store_reply){.record = {.epoch = 7, .version = 4 + looks}}, at);
        }
    }
    assert_in_range(looks, 5, 21);
}

static void test_a_store_that_is_silent_is_named(void **state)
{
    struct fixture *f = *state;

    feed(f, CANDIDATE_START, 1);
    for (gavel_ms at = 6; at < 8000; at += 10) /* nobody answers */
        feed(f, CANDIDATE_TICK, at);
    assert_string_equal(f->candidate.trouble,
                        "gavel://h1:7600 did not answer in time; it may be overloaded, frozen or cut off");
}

static void test_what_an_open_breaker_held_back_goes_out_when_a_doorbell_closes_it(void **state)
{
    struct fixture *f = *state;

    feed(f, CANDIDATE_START, 1);
    answer(f, STORE_HEARTBEAT, (struct store_reply){0}, 5);
    answer(f, STORE_READ, (struct store_reply){.found = true, .remaining_ms = 9000, .record = {.held = true}},
           5);
    for (gavel_ms at = 6; at < 8000; at += 10) /* nobody answers */
        feed(f, CANDIDATE_TICK, at);
    assert_int_equal(f->candidate.breaker.state, BREAKER_OPEN);
    assert_false(f->candidate.calls[SLOT_BEAT].is_pending);
    feed(f, CANDIDATE_DOORBELL, 9000);
    answer(f, STORE_READ, (struct store_reply){.found = true, .remaining_ms = 9000, .record = {.held = true}},
           9001);
    assert_int_equal(f->candidate.breaker.state, BREAKER_CLOSED);
    assert_true(f->candidate.calls[SLOT_BEAT].is_pending);
    assert_true(f->candidate.calls[SLOT_LIST].is_pending);
}

static void test_a_store_of_a_newer_version_ends_the_candidate_with_its_words(void **state)
{
    struct fixture *f = *state;

    feed(f, CANDIDATE_START, 1);
    answer(f, STORE_READ,
           (struct store_reply){.status = GAVEL_ERR_STORE_TOO_NEW,
                                .message = "written by a newer gavel; update"},
           5);
    answer(f, STORE_LEAVE, (struct store_reply){0}, 6);
    assert_int_equal(f->candidate.state, CANDIDATE_ENDED);
    assert_int_equal(find(f, CANDIDATE_EMIT)->event.kind, GAVEL_EVENT_STOPPED);
    assert_int_equal(find(f, CANDIDATE_EMIT)->event.status, GAVEL_ERR_STORE_TOO_NEW);
    assert_string_equal(find(f, CANDIDATE_EMIT)->event.message, "written by a newer gavel; update");
}

static void test_heartbeats_do_not_make_up_for_failing_looks(void **state)
{
    struct fixture *f = *state;
    gavel_ms at = 1;

    feed(f, CANDIDATE_START, at);
    while (f->candidate.breaker.state == BREAKER_CLOSED && at < 10000) {
        at += 10;
        feed(f, CANDIDATE_TICK, at);
        if (f->candidate.calls[SLOT_BEAT].is_pending)
            answer(f, STORE_HEARTBEAT, (struct store_reply){0}, at);
        if (f->candidate.calls[SLOT_MANDATE].is_pending)
            answer(f, STORE_READ,
                   (struct store_reply){.status = GAVEL_ERR_STORE_DAMAGED, .message = "put it back"}, at);
    }
    assert_int_equal(f->candidate.breaker.state, BREAKER_OPEN);
    assert_string_equal(find(f, CANDIDATE_EMIT)->event.message, "put it back");
}

static void test_force_replaces_only_the_leader_that_was_seen(void **state)
{
    struct fixture *f = *state;
    struct candidate_event event = {.kind = CANDIDATE_ENSURE,
                                    .now = ns_from_ms(20),
                                    .ensure = {.epoch = 0, .force = true, .desired = ""}};

    lead(f);
    assert_int_equal(candidate_leader_epoch(&f->candidate), 7);
    candidate_step(&f->candidate, &event, &f->actions); /* asked for when nobody led */
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    event.ensure.epoch = 7;
    candidate_step(&f->candidate, &event, &f->actions);
    assert_int_equal(f->candidate.state, CANDIDATE_STOPPING);
    assert_int_equal(candidate_leader_epoch(&f->candidate), 0);
}

static void test_bad_names_are_refused(void **state)
{
    struct candidate candidate;
    struct candidate_config config = {.group = "", .id = "me", .eligible = true};
    struct gavel_error error;

    (void)state;
    assert_int_equal(gavel_settings_preset("local", &config.settings), GAVEL_OK);
    assert_int_equal(candidate_init(&candidate, &config, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "group name"));
    config.group = "g";
    config.id = "\xff";
    assert_int_equal(candidate_init(&candidate, &config, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "candidate id"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_has_the_edges_of_the_diagram),
        TEST(test_mandate_counts_from_the_send_and_is_published_before_the_work_starts),
        TEST(test_release_is_sent_only_after_the_work_has_stopped),
        TEST(test_renewal_answered_after_the_stop_time_does_not_bring_the_mandate_back),
        TEST(test_failing_renewals_answer_unknown_until_the_stop_time),
        TEST(test_ineligible_candidate_observes_and_never_claims),
        TEST(test_a_flood_of_doorbells_costs_at_most_one_look_in_twenty_milliseconds),
        TEST(test_a_store_that_is_silent_is_named),
        TEST(test_what_an_open_breaker_held_back_goes_out_when_a_doorbell_closes_it),
        TEST(test_a_store_of_a_newer_version_ends_the_candidate_with_its_words),
        TEST(test_heartbeats_do_not_make_up_for_failing_looks),
        TEST(test_force_replaces_only_the_leader_that_was_seen),
        cmocka_unit_test(test_bad_names_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
