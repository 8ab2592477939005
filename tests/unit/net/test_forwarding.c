/* SPDX-License-Identifier: Apache-2.0 */

/* Forwardings of clients between nodes: they arrive whole and in order, and never in the way of Raft. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static int set_up(void **state)
{
    *state = world_new();
    return 0;
}

static int tear_down(void **state)
{
    world_free(*state);
    return 0;
}

static void start_two(struct world *world)
{
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    world_start(a);
    world_start(b);
    world_connect(world);
    WAIT_FOR(world, is_up(a, b) && is_up(b, a));
}

static uint64_t sum_of(const uint8_t *bytes, size_t size)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + bytes[i];
    return sum;
}

static void test_an_forwarding_goes_there_and_its_answer_comes_back(void **state)
{
    static const uint8_t question[] = "who leads?", answer[] = "b does";
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);
    struct peer_forwarding forwarding = {
        .number = 7, .incarnation = 3, .data = question, .size = sizeof question};

    start_two(world);
    assert_true(transport_send_forwarding(a->transport, b->id, PEER_FORWARDING, &forwarding));
    WAIT_FOR(world, b->forwarding_count == 1);
    assert_int_equal(b->forwarding_from, a->id);
    assert_int_equal(b->forwarding.number, 7);
    assert_int_equal(b->forwarding.incarnation, 3);
    assert_int_equal(b->forwarding.size, sizeof question);
    assert_int_equal(b->forwarding_sum, sum_of(question, sizeof question));

    forwarding =
        (struct peer_forwarding){.number = 7, .incarnation = 3, .data = answer, .size = sizeof answer};
    assert_true(transport_send_forwarding(b->transport, a->id, PEER_ANSWER, &forwarding));
    WAIT_FOR(world, a->answer_count == 1);
    assert_int_equal(a->forwarding_from, b->id);
    assert_int_equal(a->forwarding_sum, sum_of(answer, sizeof answer));
    assert_int_equal(a->forwarding_count, 0);
    assert_int_equal(b->answer_count, 0);
    assert_null(find_news(a, TRANSPORT_BAD));
    assert_null(find_news(b, TRANSPORT_BAD));
}

static void test_an_forwarding_that_cannot_be_sent_is_said_so(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1), *c = world_side(world, 2);
    uint8_t *data = calloc(1, PEER_FRAME_MAX);
    struct peer_forwarding forwarding = {.number = 1, .data = data, .size = PEER_FRAME_MAX};

    start_two(world);
    assert_false(
        transport_send_forwarding(a->transport, b->id, PEER_FORWARDING, &forwarding)); /* too large */
    forwarding.size = PEER_FORWARDING_MAX;
    assert_false(
        transport_send_forwarding(a->transport, c->id, PEER_FORWARDING, &forwarding)); /* to nobody */
    assert_true(transport_send_forwarding(a->transport, b->id, PEER_FORWARDING, &forwarding));
    WAIT_FOR(world, b->forwarding_count == 1);
    assert_int_equal(b->forwarding.size, PEER_FORWARDING_MAX);
    world_stop(b);
    WAIT_FOR(world, !is_up(a, b));
    assert_false(transport_send_forwarding(a->transport, b->id, PEER_FORWARDING, &forwarding));
    free(data);
}

static void test_raft_has_room_when_forwardings_have_none(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);
    static uint8_t data[10000];
    struct peer_forwarding forwarding = {.number = 1, .data = data, .size = sizeof data};
    struct raft_message beat;
    size_t sent = 0;

    start_two(world);
    /* The loop does not turn meanwhile: everything waits. */
    while (transport_send_forwarding(a->transport, b->id, PEER_FORWARDING, &forwarding))
        sent++;
    assert_in_range(sent, (1 << 18) / sizeof data, (1 << 18) / sizeof data + 1);
    assert_int_equal(link_of(a, b).dropped, 1);
    beat = heartbeat(a, b, 9);
    transport_send(a->transport, &beat);
    assert_int_equal(link_of(a, b).dropped, 1);
    WAIT_FOR(world, b->message_count == 1);
    assert_int_equal(b->forwarding_count, sent);
    assert_true(transport_send_forwarding(a->transport, b->id, PEER_FORWARDING, &forwarding));
    WAIT_FOR(world, b->forwarding_count == sent + 1);
}

static void test_a_heartbeat_goes_before_the_answers_that_wait(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);
    static uint8_t data[10000];
    struct peer_forwarding forwarding = {.number = 1, .data = data, .size = sizeof data};
    struct raft_message beat;
    size_t sent = 0;

    a->settings.waiting_max = 4 << 20;
    start_two(world);
    while (transport_send_forwarding(a->transport, b->id, PEER_ANSWER, &forwarding))
        sent++;
    assert_in_range(sent, (2 << 20) / sizeof data, (2 << 20) / sizeof data + 1);
    assert_false(transport_send_forwarding(a->transport, b->id, PEER_FORWARDING, &forwarding));
    beat = heartbeat(a, b, 9);
    transport_send(a->transport, &beat);
    WAIT_FOR(world, b->message_count == 1);
    assert_in_range(b->answers_before, 1, (1 << 18) / sizeof data + 1);
    WAIT_FOR(world, b->answer_count == sent); /* and none is lost */
    assert_int_equal(b->forwarding_sum, sum_of(data, sizeof data));
    assert_true(transport_send_forwarding(a->transport, b->id, PEER_FORWARDING, &forwarding));
    WAIT_FOR(world, b->forwarding_count == 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_an_forwarding_goes_there_and_its_answer_comes_back),
        CASE(test_an_forwarding_that_cannot_be_sent_is_said_so),
        CASE(test_raft_has_room_when_forwardings_have_none),
        CASE(test_a_heartbeat_goes_before_the_answers_that_wait),
    };

    return cmocka_run_group_tests_name("forwardings", tests, NULL, NULL);
}
