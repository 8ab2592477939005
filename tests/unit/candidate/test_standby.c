/* SPDX-License-Identifier: Apache-2.0 */

/* A claim that came too late: when the next one follows. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "core/candidate/candidate.h"

struct fixture {
    struct candidate candidate;
    struct candidate_actions actions;
    gavel_ms now;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct candidate_config config = {
        .group = "g", .id = "me", .eligible = true, .seed = 1, .clock = STORE_CLOCK_STEADY};

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
static void feed(struct fixture *f, struct candidate_event event)
{
    event.now = ns_from_ms(++f->now);
    candidate_step(&f->candidate, &event, &f->actions);
}

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

    if (!call)
        fail_msg("no %s is under way", store_op_name(op));
    feed(f, (struct candidate_event){.kind = CANDIDATE_REPLY, .reply = {.call = call->id, .reply = &reply}});
}

/* Milliseconds until that operation is under way. */
static gavel_ms await(struct fixture *f, enum store_op op)
{
    gavel_ms began = f->now;

    for (int i = 0; i < 20000 && !pending(f, op); i++)
        feed(f, (struct candidate_event){.kind = CANDIDATE_TICK});
    assert_non_null(pending(f, op));
    return f->now - began;
}

static struct store_reply record(uint64_t version, bool is_held, uint64_t nonce)
{
    return (struct store_reply){
        .found = true,
        .expired = !is_held,
        .remaining_ms = is_held ? 60000 : 0,
        .record = {.epoch = 7,
                   .version = version,
                   .nonce = {1, nonce},
                   .lease_ms = 60000,
                   .held = is_held,
                   .process = {.pid = 1},
                   .holder = "other"},
    };
}

/* Another leads with version 3; its process dies, and we have claimed. */
static void claim_after_a_death(struct fixture *f)
{
    feed(f, (struct candidate_event){.kind = CANDIDATE_START});
    answer(f, STORE_HEARTBEAT, (struct store_reply){0});
    answer(f, STORE_READ, record(3, true, 1));
    (void)await(f, STORE_READ);
    answer(f, STORE_READ, record(3, true, 1));
    feed(f, (struct candidate_event){.kind = CANDIDATE_HOLDER_DIED, .holder_died = {.nonce = {1, 1}}});
    (void)await(f, STORE_READ);
    answer(f, STORE_READ, record(3, true, 1));
    assert_int_equal(f->candidate.state, CANDIDATE_CLAIMING);
}

static void test_a_claim_that_a_release_came_before_is_repeated_at_once(void **state)
{
    struct fixture *f = *state;
    struct store_reply released = record(4, false, 1);

    claim_after_a_death(f);
    released.status = GAVEL_ERR_CONFLICT;
    answer(f, STORE_CLAIM, released);
    (void)await(f, STORE_READ);
    answer(f, STORE_READ, record(4, false, 1));
    assert_true(await(f, STORE_CLAIM) <= 2);
}

static void test_a_claim_that_is_refused_for_no_visible_reason_is_not_repeated_at_once(void **state)
{
    struct fixture *f = *state;
    struct store_reply refused = record(3, true, 1);

    claim_after_a_death(f);
    refused.status = GAVEL_ERR_CONFLICT;
    answer(f, STORE_CLAIM, refused);
    (void)await(f, STORE_READ);
    answer(f, STORE_READ, record(3, true, 1));
    assert_true(await(f, STORE_CLAIM) > 50);
}

static void test_whoever_was_faster_is_left_alone(void **state)
{
    struct fixture *f = *state;
    struct store_reply lost = record(5, true, 2);

    claim_after_a_death(f);
    lost.status = GAVEL_ERR_CONFLICT;
    answer(f, STORE_CLAIM, lost);
    (void)await(f, STORE_READ);
    answer(f, STORE_READ, record(5, true, 2));
    for (int i = 0; i < 400; i++)
        feed(f, (struct candidate_event){.kind = CANDIDATE_TICK});
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_claim_that_a_release_came_before_is_repeated_at_once),
        TEST(test_a_claim_that_is_refused_for_no_visible_reason_is_not_repeated_at_once),
        TEST(test_whoever_was_faster_is_left_alone),
    };

    return cmocka_run_group_tests_name("candidate: standing by", tests, NULL, NULL);
}
