/* SPDX-License-Identifier: Apache-2.0 */

/* The forwarder: everything that is asked is answered once, whatever becomes of leaders and clients. */
#include "forwarder_fixture.h"

#include "base/prng.h"

static void test_what_is_asked_goes_to_the_leader_and_comes_back_with_its_tag(void **state)
{
    struct fixture *f = *state;

    set_leader(f, 3, 7);
    ask_write(f, 11, 5, 77, 0);
    ask_question(f, 12, 5);
    assert_int_equal(f->delivered, 2);
    assert_int_equal(f->deliveries[0].node, 3);
    assert_int_equal(f->deliveries[0].tag, 5);
    assert_int_not_equal(f->deliveries[0].number, f->deliveries[1].number);
    assert_int_not_equal(f->deliveries[0].number, 0);
    reply(f, f->deliveries[1], GAVEL_OK);
    reply(f, f->deliveries[0], GAVEL_ERR_SESSION_GONE);
    assert_int_equal(f->answered, 2);
    assert_answer(f, 0, 12, 5, GAVEL_OK);
    assert_int_equal(f->answers[0].what, GAVEL__CLIENT_FRAME__WHAT_ANSWER);
    assert_answer(f, 1, 11, 5, GAVEL_ERR_SESSION_GONE);
    assert_int_equal(f->answers[1].what, GAVEL__CLIENT_FRAME__WHAT_REPLY);
    assert_int_equal(forwarder_wake_at(&f->forwarder), f->now + FORWARDER_AGAIN);
    pass(f, 10 * NS_PER_S);
    assert_int_equal(forwarder_wake_at(&f->forwarder), NEVER);
    assert_int_equal(f->answered, 2);
}

static void test_without_a_leader_everything_waits_until_there_is_one(void **state)
{
    struct fixture *f = *state;

    ask_write(f, 1, 1, 77, 0);
    ask_write(f, 1, 2, 0, 0);
    ask_question(f, 2, 3);
    pass(f, NS_PER_S);
    assert_int_equal(f->delivered, 0);
    set_leader(f, 2, 1);
    assert_int_equal(f->delivered, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(f->deliveries[i].tag, i + 1); /* in order */
    assert_int_equal(f->forwarder.counts.again, 0);
}

static void test_without_any_leader_it_is_told_that_nothing_was_done(void **state)
{
    struct fixture *f = *state;

    ask_write(f, 1, 1, 0, 100);
    ask_write(f, 1, 2, 77, 0);
    pass(f, 99 * NS_PER_MS);
    assert_int_equal(f->answered, 0);
    pass(f, NS_PER_MS);
    assert_answer(f, 0, 1, 1, GAVEL_ERR_STORE_UNAVAILABLE);
    assert_string_equal(f->answers[0].message, "the cluster has no leader at the moment; try again");
    pass(f, FORWARDER_TIMEOUT);
    assert_answer(f, 1, 1, 2, GAVEL_ERR_STORE_UNAVAILABLE);
    assert_int_equal(f->answered, 2);
    assert_int_equal(f->forwarder.counts.timed_out, 2);
}

static void test_a_new_leader_is_asked_again(void **state)
{
    struct fixture *f = *state;

    set_leader(f, 3, 7);
    ask_write(f, 1, 1, 77, 0);
    ask_question(f, 1, 2);
    set_leader(f, 0, 8);
    assert_int_equal(f->delivered, 2);
    set_leader(f, 2, 8);
    assert_int_equal(f->delivered, 4);
    assert_int_equal(f->deliveries[2].node, 2);
    assert_int_equal(f->deliveries[2].number, f->deliveries[0].number);
    /* The old one may have been faster after all: its answer is as good. */
    reply(f, f->deliveries[0], GAVEL_OK);
    reply(f, f->deliveries[2], GAVEL_OK);
    assert_int_equal(f->answered, 1);
    /* The same node in a new term is another leader. */
    set_leader(f, 2, 9);
    assert_int_equal(f->delivered, 5);
    assert_int_equal(f->deliveries[4].tag, 2);
    set_leader(f, 2, 9);
    assert_int_equal(f->delivered, 5);
}

static void test_a_write_without_a_session_is_not_carried_to_another_leader(void **state)
{
    struct fixture *f = *state;

    set_leader(f, 3, 7);
    ask_write(f, 1, 1, 0, 0);
    set_leader(f, 0, 8);
    assert_int_equal(f->answered, 0);
    set_leader(f, 2, 8);
    assert_int_equal(f->delivered, 1);
    assert_int_equal(f->answered, 1);
    assert_answer(f, 0, 1, 1, GAVEL_ERR_TIMEOUT);
    assert_string_equal(f->answers[0].message, "the outcome is not known; read it back");
    reply(f, f->deliveries[0], GAVEL_OK);
    assert_int_equal(f->answered, 1);
}

static void test_a_write_without_a_session_waits_for_a_leader_that_was_out_of_sight(void **state)
{
    struct fixture *f = *state;

    set_leader(f, 3, 7);
    ask_write(f, 1, 1, 0, 0);
    set_leader(f, 0, 7);
    set_leader(f, 3, 7);
    pass(f, NS_PER_S);
    assert_int_equal(f->delivered, 1);
    reply(f, f->deliveries[0], GAVEL_OK);
    assert_answer(f, 0, 1, 1, GAVEL_OK);
}

static void test_what_the_leader_refuses_is_carried_again_soon(void **state)
{
    struct fixture *f = *state;

    set_leader(f, 3, 7);
    ask_write(f, 1, 1, 77, 0);
    ask_write(f, 1, 2, 0, 0); /* refused means not done: it may be carried again, too */
    ask_question(f, 1, 3);
    for (size_t i = 0; i < 3; i++)
        reply(f, f->deliveries[i], GAVEL_ERR_NOT_LEADER);
    assert_int_equal(f->answered, 0);
    pass(f, FORWARDER_RETRY - 1);
    assert_int_equal(f->delivered, 3);
    pass(f, 1);
    assert_int_equal(f->delivered, 6);
    for (size_t i = 3; i < 6; i++)
        reply(f, f->deliveries[i], GAVEL_OK);
    assert_int_equal(f->answered, 3);
    for (size_t i = 0; i < 3; i++)
        assert_answer(f, i, 1, i + 1, GAVEL_OK);
}

static void test_a_refusal_that_comes_again_has_no_write_carried_twice(void **state)
{
    struct fixture *f = *state;

    set_leader(f, 3, 7);
    ask_write(f, 1, 1, 0, 0);
    reply(f, f->deliveries[0], GAVEL_ERR_NOT_LEADER);
    pass(f, FORWARDER_RETRY);
    assert_int_equal(f->delivered, 2);
    reply(f, f->deliveries[0], GAVEL_ERR_NOT_LEADER); /* of the first time, once more */
    pass(f, FORWARDER_RETRY);
    assert_int_equal(f->delivered, 2);
    reply(f, f->deliveries[1], GAVEL_OK);
    assert_int_equal(f->answered, 1);
    assert_answer(f, 0, 1, 1, GAVEL_OK);
}

static void test_a_write_that_was_refused_to_the_end_was_not_done(void **state)
{
    struct fixture *f = *state;

    set_leader(f, 3, 7);
    ask_write(f, 1, 1, 0, 100);
    reply(f, f->deliveries[0], GAVEL_ERR_NOT_LEADER);
    set_leader(f, 0, 8);
    pass(f, NS_PER_S);
    assert_answer(f, 0, 1, 1, GAVEL_ERR_STORE_UNAVAILABLE);
}

static void test_a_leader_that_refuses_is_tried_with_a_few_and_then_asked_everything(void **state)
{
    struct fixture *f = *state;
    const size_t count = 1000;

    set_leader(f, 3, 7);
    for (size_t i = 0; i < count; i++)
        ask_write(f, 1, i + 1, 100 + i, 0);
    assert_int_equal(f->delivered, count);
    for (size_t i = 0; i < count; i++)
        reply(f, f->deliveries[i], GAVEL_ERR_NOT_LEADER);
    for (int i = 0; i < 4; i++) {
        size_t before = f->delivered;

        pass(f, FORWARDER_RETRY);
        assert_int_equal(f->delivered - before, FORWARDER_PROBES);
        assert_int_equal(f->deliveries[before].tag, 1); /* the oldest */
        for (size_t j = before; j < before + FORWARDER_PROBES; j++)
            reply(f, f->deliveries[j], GAVEL_ERR_NOT_LEADER);
        ask_write(f, 1, 5000, 50, 0); /* newcomers wait in line */
        assert_int_equal(f->delivered, before + FORWARDER_PROBES);
    }
    pass(f, FORWARDER_RETRY);
    reply(f, f->deliveries[f->delivered - 1], GAVEL_OK);
    assert_in_range(f->delivered, count + 4 * FORWARDER_PROBES + FORWARDER_PORTION,
                    count + 4 * FORWARDER_PROBES + FORWARDER_PORTION + FORWARDER_PROBES);
    pass(f, FORWARDER_MORE); /* in portions */
    assert_int_equal(f->delivered, count + 4 * FORWARDER_PROBES + count + 4);
}

static void test_a_way_that_is_full_is_tried_again(void **state)
{
    struct fixture *f = *state;

    set_leader(f, 3, 7);
    f->is_unreachable = true;
    ask_write(f, 1, 1, 0, 0);
    ask_write(f, 1, 2, 77, 50);
    pass(f, 60 * NS_PER_MS);
    assert_answer(f, 0, 1, 2, GAVEL_ERR_STORE_UNAVAILABLE);
    assert_string_equal(f->answers[0].message, "the leader of the cluster could not be reached; try again");
    f->is_unreachable = false;
    pass(f, FORWARDER_RETRY);
    assert_int_equal(f->delivered, 1);
    reply(f, f->deliveries[0], GAVEL_OK);
    assert_answer(f, 1, 1, 1, GAVEL_OK);
}

static void test_without_an_answer_only_what_may_be_repeated_is_carried_again(void **state)
{
    struct fixture *f = *state;

    set_leader(f, 3, 7);
    ask_write(f, 1, 1, 77, 1200);
    ask_write(f, 1, 2, 0, 1200);
    pass(f, FORWARDER_AGAIN - 1);
    assert_int_equal(f->delivered, 2);
    pass(f, 1);
    assert_int_equal(f->delivered, 3);
    assert_int_equal(f->deliveries[2].tag, 1);
    assert_int_equal(f->forwarder.counts.again, 1);
    pass(f, NS_PER_S);
    assert_int_equal(f->answered, 2);
    assert_answer(f, 0, 1, 1, GAVEL_ERR_TIMEOUT);
    assert_string_equal(f->answers[0].message, "the leader of the cluster did not answer in time; ask again");
    assert_answer(f, 1, 1, 2, GAVEL_ERR_TIMEOUT);
    assert_string_equal(f->answers[1].message, "the outcome is not known; read it back");
}

static void test_a_time_out_without_end_is_cut(void **state)
{
    struct fixture *f = *state;

    ask_write(f, 1, 1, 77, UINT32_MAX);
    pass(f, FORWARDER_TIMEOUT_MAX - 1);
    assert_int_equal(f->answered, 0);
    pass(f, 1);
    assert_int_equal(f->answered, 1);
}

static void test_answers_that_are_late_or_repeated_or_to_something_else_are_harmless(void **state)
{
    struct fixture *f = *state;
    struct delivery wrong;

    set_leader(f, 3, 7);
    ask_write(f, 1, 1, 77, 0);
    wrong = f->deliveries[0];
    wrong.what = GAVEL__CLIENT_FRAME__WHAT_ASK;
    reply(f, wrong, GAVEL_OK);
    wrong.what = GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE;
    reply(f, wrong, GAVEL_OK);
    wrong = f->deliveries[0];
    wrong.number += 1;
    reply(f, wrong, GAVEL_OK);
    assert_int_equal(f->answered, 0);
    reply(f, f->deliveries[0], GAVEL_OK);
    reply(f, f->deliveries[0], GAVEL_OK);
    reply(f, f->deliveries[0], GAVEL_ERR_NOT_LEADER);
    assert_int_equal(f->answered, 1);
    pass(f, 10 * NS_PER_S);
    assert_int_equal(f->delivered, 1);
    assert_int_equal(f->answered, 1);
}

static void test_a_client_that_is_gone_hears_nothing_but_its_writes_go_on(void **state)
{
    struct fixture *f = *state;
    uint64_t sessions[] = {10};

    ask_write(f, 1, 1, 77, 0);
    ask_question(f, 1, 2);
    keep_alive(f, 1, 3, 1, sessions);
    keep_alive(f, 2, 4, 1, sessions);
    ask_question(f, 2, 5);
    forwarder_forget(&f->forwarder, 1);
    forwarder_forget(&f->forwarder, 12345);
    set_leader(f, 3, 7);
    pass(f, FORWARDER_GATHER);
    assert_int_equal(f->delivered, 3);
    assert_int_equal(f->deliveries[0].tag, 1);
    assert_int_equal(f->deliveries[1].tag, 5);
    for (size_t i = 0; i < 3; i++)
        reply(f, f->deliveries[i], GAVEL_OK);
    assert_int_equal(f->answered, 2);
    assert_answer(f, 0, 2, 5, GAVEL_OK);
    assert_answer(f, 1, 2, 4, GAVEL_OK);
}

static void test_what_is_too_much_is_refused_at_once(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < FORWARDER_FORWARDINGS_MAX; i++)
        ask_question(f, 1, i);
    assert_int_equal(f->answered, 0);
    ask_write(f, 2, 5, 77, 0);
    assert_answer(f, 0, 2, 5, GAVEL_ERR_STORE_UNAVAILABLE);
    ask_question(f, 2, 6);
    assert_answer(f, 1, 2, 6, GAVEL_ERR_STORE_UNAVAILABLE);
    assert_int_equal(f->answers[1].what, GAVEL__CLIENT_FRAME__WHAT_ANSWER);
    forwarder_forget(&f->forwarder, 1);
    ask_question(f, 2, 8);
    assert_int_equal(f->answered, 2);
}

static void ask_large(struct fixture *f, uint64_t tag, size_t size, size_t op_count)
{
    Gavel__ClientFrame frame;
    Gavel__Request request;
    Gavel__Op op;
    Gavel__Op **ops = calloc(op_count, sizeof *ops);
    Gavel__PutNote note;
    uint8_t *value = calloc(1, size > 0 ? size : 1);

    gavel__client_frame__init(&frame);
    gavel__request__init(&request);
    gavel__op__init(&op);
    gavel__put_note__init(&note);
    note.value = (ProtobufCBinaryData){.len = size, .data = value};
    op.what_case = GAVEL__OP__WHAT_PUT_NOTE;
    op.put_note = &note;
    for (size_t i = 0; i < op_count; i++)
        ops[i] = &op;
    request.tag = tag;
    request.session = 1;
    request.n_ops = op_count;
    request.ops = ops;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request;
    take(f, 1, &frame);
    free(ops);
    free(value);
}

static void test_what_is_too_large_is_refused_at_once(void **state)
{
    struct fixture *f = *state;
    size_t taken = 0;

    ask_large(f, 1, CLIENT_FRAME_MAX, 1);
    assert_answer(f, 0, 1, 1, GAVEL_ERR_TOO_LARGE);
    ask_large(f, 2, CLIENT_FRAME_MAX - 50, 1); /* a frame, but not with what nodes put around it */
    assert_answer(f, 1, 1, 2, GAVEL_ERR_TOO_LARGE);
    ask_large(f, 3, 0, TABLE_OPS_MAX + 1);
    assert_answer(f, 2, 1, 3, GAVEL_ERR_INVALID);
    assert_string_equal(f->answers[2].message, "more operations than a request may have");
    /* Many that are large are bounded by what they take. */
    while (f->answered == 3 && taken < FORWARDER_FORWARDINGS_MAX) {
        ask_large(f, 4, 4000000, 1);
        taken++;
    }
    assert_answer(f, 3, 1, 4, GAVEL_ERR_STORE_UNAVAILABLE);
    assert_true(taken <= FORWARDER_BYTES_MAX / 4000000 + 2);
}

static void test_other_frames_are_not_for_the_leader(void **state)
{
    struct fixture *f = *state;
    Gavel__ClientFrame frame;
    Gavel__Watch watch;

    gavel__client_frame__init(&frame);
    take(f, 1, &frame);
    gavel__watch__init(&watch);
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_WATCH;
    frame.watch = &watch;
    take(f, 1, &frame);
    assert_int_equal(f->answered, 2);
    assert_answer(f, 1, 1, 0, GAVEL_ERR_INVALID);
}

static void test_a_forwarder_that_never_was_can_be_done(void **state)
{
    struct forwarder forwarder;

    (void)state;
    memset(&forwarder, 0, sizeof forwarder);
    forwarder_done(&forwarder);
    assert_int_equal(forwarder.count, 0);
}

/* Everything at random; then peace, and each question must have been answered exactly once. */
static void test_whatever_happens_everything_is_answered_exactly_once(void **state)
{
    struct fixture *f = *state;

    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct prng prng;
        size_t asked = 0, replied = 0;
        uint8_t *outcomes = calloc(1, TAGS_MAX);
        uint64_t session = 5;

        prng_seed(&prng, seed);
        f->delivered = f->answered = 0;
        memset(f->is_at_frontend, 0, sizeof f->is_at_frontend);
        for (int step = 0; step < 2000; step++) {
            uint64_t dice = prng_next(&prng) % 100;

            if (dice < 40 && asked + 1 < TAGS_MAX) {
                uint64_t kind = prng_next(&prng) % 4;

                asked++;
                if (kind == 0)
                    keep_alive(f, 1, asked, 1, &session);
                else if (kind == 1)
                    ask_question(f, 1, asked);
                else
                    ask_write(f, 1, asked, kind == 2 ? 7 : 0, (uint32_t)(prng_next(&prng) % 3000));
            } else if (dice < 75 && replied < f->delivered) {
                reply(f, f->deliveries[replied++], dice < 50 ? GAVEL_ERR_NOT_LEADER : GAVEL_OK);
            } else if (dice < 80 && f->delivered > 0) {
                reply(f, f->deliveries[prng_next(&prng) % f->delivered], GAVEL_OK);
            } else if (dice < 84) {
                set_leader(f, prng_next(&prng) % 4, 1 + prng_next(&prng) % 3);
            } else if (dice < 87) {
                f->is_unreachable = !f->is_unreachable;
            } else {
                pass(f, (gavel_ns)(prng_next(&prng) % (30 * NS_PER_MS)));
            }
        }
        pass(f, FORWARDER_TIMEOUT);
        assert_int_equal(f->forwarder.count, 0);
        assert_int_equal(f->forwarder.bytes, 0);
        assert_null(f->forwarder.gathering);
        assert_int_equal(forwarder_wake_at(&f->forwarder), NEVER);
        for (size_t i = 0; i < f->answered; i++) {
            assert_in_range(f->answers[i].tag, 1, asked);
            assert_int_equal(outcomes[f->answers[i].tag]++, 0);
        }
        assert_int_equal(f->answered, asked);
        free(outcomes);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* A write that opens the session of its client, and may go on to campaign. */
static void ask_opening(struct fixture *f, uint64_t client, uint64_t tag, uint64_t session)
{
    Gavel__ClientFrame frame;
    Gavel__Request request;
    Gavel__OpenSession open;
    Gavel__Op op;
    Gavel__Op *ops[] = {&op};

    gavel__client_frame__init(&frame);
    gavel__request__init(&request);
    gavel__open_session__init(&open);
    gavel__op__init(&op);
    open.session = session;
    open.ttl_ms = 2000;
    open.name = (char[]){"P"};
    op.what_case = GAVEL__OP__WHAT_OPEN_SESSION;
    op.open_session = &open;
    request.tag = tag;
    request.session = session;
    request.id = 1;
    request.n_ops = 1;
    request.ops = ops;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request;
    take(f, client, &frame);
}

/* Packed by the thread of the client: what travels to the leader are these very bytes, however often. */
static void test_what_is_packed_already_is_carried_as_it_is(void **state)
{
    struct fixture *f = *state;
    struct forwarder_question question;
    struct forwarder_delivery delivery;
    Gavel__ClientFrame frame;
    Gavel__Ask ask;
    const uint8_t *bytes;
    const char *reason;

    gavel__client_frame__init(&frame);
    gavel__ask__init(&ask);
    ask.tag = 9;
    ask.group = (char[]){"g"};
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ASK;
    frame.ask = &ask;
    assert_int_equal(forwarder_question_pack(&frame, &question, &reason), GAVEL_OK);
    bytes = question.bytes;
    assert_int_equal(forwarder_take_question(&f->forwarder, f->now, 1, &question), GAVEL_OK);
    assert_null(question.bytes); /* taken */
    for (uint64_t leader = 2; leader <= 3; leader++) {
        forwarder_leader(&f->forwarder, f->now, leader, 7 + leader);
        assert_true(forwarder_take_delivery(&f->forwarder, &delivery));
        assert_int_equal(delivery.node, leader);
        assert_ptr_equal(delivery.bytes, bytes + CLIENT_LENGTH_BYTES);
        assert_int_equal(delivery.size, question.size - CLIENT_LENGTH_BYTES);
    }
}

/* The thread of the client finds what the leader could not take; the forwarder would answer the same. */
static void test_what_the_leader_could_not_take_is_not_packed(void **state)
{
    struct forwarder_question question = {0};
    Gavel__ClientFrame frame;
    Gavel__Ask ask;
    const char *reason = "";

    (void)state;
    gavel__client_frame__init(&frame);
    gavel__ask__init(&ask);
    ask.group = (char[]){"\xff"};
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ASK;
    frame.ask = &ask;
    assert_int_equal(forwarder_question_pack(&frame, &question, &reason), GAVEL_ERR_INVALID);
    assert_string_equal(reason, "text that is not UTF-8");
    assert_null(question.bytes);
}

static void test_no_session_is_opened_for_a_client_that_is_gone(void **state)
{
    struct fixture *f = *state;

    ask_opening(f, 1, 1, 77);
    ask_opening(f, 2, 2, 78);
    forwarder_forget(&f->forwarder, 1);
    set_leader(f, 3, 7);
    assert_int_equal(f->delivered, 1);
    assert_int_equal(f->deliveries[0].tag, 2);
    /* It is under way: that leader may open it, but no other is asked. */
    forwarder_forget(&f->forwarder, 2);
    set_leader(f, 2, 8);
    pass(f, NS_PER_S);
    assert_int_equal(f->delivered, 1);
    assert_int_equal(f->answered, 0);
    assert_int_equal(f->forwarder.count, 0);
    /* Nor the same again, if it has refused, or does not answer. */
    ask_opening(f, 4, 4, 79);
    ask_opening(f, 5, 5, 80);
    assert_int_equal(f->delivered, 3);
    forwarder_forget(&f->forwarder, 4);
    forwarder_forget(&f->forwarder, 5);
    reply(f, f->deliveries[1], GAVEL_ERR_NOT_LEADER);
    pass(f, FORWARDER_AGAIN + NS_PER_MS);
    assert_int_equal(f->delivered, 3);
    assert_int_equal(f->forwarder.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_what_is_asked_goes_to_the_leader_and_comes_back_with_its_tag),
        CASE(test_without_a_leader_everything_waits_until_there_is_one),
        CASE(test_without_any_leader_it_is_told_that_nothing_was_done),
        CASE(test_a_new_leader_is_asked_again),
        CASE(test_no_session_is_opened_for_a_client_that_is_gone),
        CASE(test_what_is_packed_already_is_carried_as_it_is),
        CASE(test_what_the_leader_could_not_take_is_not_packed),
        CASE(test_a_write_without_a_session_is_not_carried_to_another_leader),
        CASE(test_a_write_without_a_session_waits_for_a_leader_that_was_out_of_sight),
        CASE(test_what_the_leader_refuses_is_carried_again_soon),
        CASE(test_a_refusal_that_comes_again_has_no_write_carried_twice),
        CASE(test_a_write_that_was_refused_to_the_end_was_not_done),
        CASE(test_a_leader_that_refuses_is_tried_with_a_few_and_then_asked_everything),
        CASE(test_a_way_that_is_full_is_tried_again),
        CASE(test_without_an_answer_only_what_may_be_repeated_is_carried_again),
        CASE(test_a_time_out_without_end_is_cut),
        CASE(test_answers_that_are_late_or_repeated_or_to_something_else_are_harmless),
        CASE(test_a_client_that_is_gone_hears_nothing_but_its_writes_go_on),
        CASE(test_what_is_too_much_is_refused_at_once),
        CASE(test_what_is_too_large_is_refused_at_once),
        CASE(test_other_frames_are_not_for_the_leader),
        CASE(test_a_forwarder_that_never_was_can_be_done),
        CASE(test_whatever_happens_everything_is_answered_exactly_once),
    };

    return cmocka_run_group_tests_name("forwarder", tests, NULL, NULL);
}
