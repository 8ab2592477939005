/* SPDX-License-Identifier: Apache-2.0 */

/* Connections between nodes: they come up, carry what is sent in order, and come back. */
#include "world.h"

#include "os/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int set_up(void **state)
{
    struct world *world = world_new();

    *state = world;
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

static void test_two_nodes_greet_each_other(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    strcpy(a->settings.self.api, "127.0.0.1:7501");
    start_two(world);
    assert_non_null(find_news(a, TRANSPORT_UP));
    assert_int_equal(find_news(a, TRANSPORT_UP)->peer, b->id);
    assert_string_equal(find_news(b, TRANSPORT_GREETED)->hello.api, "127.0.0.1:7501");
    assert_int_equal(find_news(b, TRANSPORT_GREETED)->hello.version_max, PEER_VERSION_MAX);
    assert_null(find_news(a, TRANSPORT_REFUSED));
    assert_null(find_news(a, TRANSPORT_BAD));
}

static void test_messages_arrive_in_order(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    start_two(world);
    for (uint64_t round = 1; round <= 1000; round++) {
        struct raft_message message = heartbeat(a, b, round);

        transport_send(a->transport, &message);
    }
    WAIT_FOR(world, b->message_count == 1000);
    for (uint64_t round = 1; round <= 1000; round++)
        assert_int_equal(b->messages[round - 1].append.round, round);
    assert_int_equal(link_of(a, b).dropped, 0);
    assert_int_equal(a->message_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_two_nodes_greet_each_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_messages_arrive_in_order, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("transport", tests, NULL, NULL);
}
