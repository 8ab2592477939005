/* SPDX-License-Identifier: Apache-2.0 */

/* Connections between nodes: they come up, carry what is sent in order, and come back. */
#include "world.h"

#include "net/seal.h"
#include "os/clock.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SNAPSHOT_BYTES ((size_t)20 << 20)

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
    WAIT_FOR(world, link_of(a, b).is_heard && link_of(b, a).is_heard); /* they have proven themselves, too */
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
    assert_true(link_of(a, b).is_heard);
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

static void test_three_nodes_hear_each_others_status(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1), *c = world_side(world, 2);
    struct peer_status status = {.node = a->id, .term = 7, .is_leader = true};

    world_start(c);
    start_two(world);
    WAIT_FOR(world, is_up(a, c) && is_up(c, a) && is_up(b, c) && is_up(c, b));
    transport_send_status(a->transport, &status);
    WAIT_FOR(world, b->status_count == 1 && c->status_count == 1);
    assert_int_equal(c->status.node, a->id);
    assert_int_equal(c->status.term, 7);
    assert_true(c->status.is_leader);
}

static void test_a_node_that_comes_back_is_connected_again(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);
    struct raft_message message = heartbeat(a, b, 5);

    a->settings.retry_max = 3600 * NS_PER_S; /* nobody is dialled again in this test, unless for a reason */
    start_two(world);
    world_stop(b);
    /* Of the connection that a dialled, and of the one that b dialled. */
    WAIT_FOR(world, count_news(a, TRANSPORT_LOST) == 2);
    assert_int_equal(find_news(a, TRANSPORT_LOST)->peer, b->id);
    assert_false(is_up(a, b));
    assert_false(link_of(a, b).is_heard);
    transport_send(a->transport, &message);
    assert_int_equal(link_of(a, b).dropped, 1);
    WAIT_FOR(world, link_of(a, b).is_breaker_open);
    assert_string_equal(link_of(a, b).trouble, "cannot connect: Connection refused");
    assert_int_equal(count_news(a, TRANSPORT_FAILED), 1);
    assert_int_equal(count_news(a, TRANSPORT_OPENED), 1);

    world_start(b);
    world_connect(world);
    WAIT_FOR(world,
             is_up(a, b) && is_up(b, a)); /* not after the long back-off: who dials us is dialled back */
    assert_int_equal(count_news(a, TRANSPORT_CLOSED), 1);
    assert_int_equal(link_of(a, b).connects, 2);
    assert_string_equal(link_of(a, b).trouble, "");
    transport_send(a->transport, &message);
    WAIT_FOR(world, b->message_count == 1);
}

/* A process of its own, which writes the port that it listens on and then turns its loop until it is
 * killed. */
static pid_t start_child(uint16_t parent_port, uint16_t *ret_port)
{
    int ends[2];
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        struct world *world = world_new();
        struct side *a = world_side(world, 0), *b = world_side(world, 1);

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        world_start(b);
        a->port = parent_port;
        if (write(ends[1], &b->port, sizeof b->port) != sizeof b->port)
            _exit(1);
        world_peer(b, a, NULL);
        (void)event_base_dispatch(world->base);
        _exit(0);
    }
    assert_int_equal(read(ends[0], ret_port, sizeof *ret_port), sizeof *ret_port);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return pid;
}

static void test_a_node_that_is_killed_is_noticed_at_once(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);
    pid_t pid;

    world_start(a);
    pid = start_child(a->port, &b->port);
    world_peer(a, b, NULL);
    WAIT_FOR(world, is_up(a, b) && link_of(a, b).is_heard);
    assert_int_equal(kill(pid, SIGKILL), 0);
    WAIT_FOR(world,
             count_news(a, TRANSPORT_LOST) == 2); /* by the end of the connections: nothing else tells */
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_the_last_words_of_a_node_that_ends_arrive(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);
    struct raft_message message = heartbeat(a, b, 77);

    start_two(world);
    transport_send(a->transport, &message);
    transport_flush(a->transport);
    world_stop(a);
    WAIT_FOR(world, b->message_count == 1);
    assert_int_equal(b->messages[0].append.round, 77);
}

static void test_a_snapshot_passes_and_heartbeats_between_its_chunks(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);
    struct raft_message beat = heartbeat(a, b, 1), snapshot;
    uint8_t *bytes = malloc(SNAPSHOT_BYTES);
    size_t beats_before = 0, sent = 0;
    uint64_t sum = 0;

    for (size_t i = 0; i < SNAPSHOT_BYTES; i++) {
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
        sum = sum * 31 + bytes[i];
    }
    start_two(world);
    snapshot = snapshot_of(a, b, bytes, SNAPSHOT_BYTES);
    transport_send(a->transport, &snapshot);
    transport_send(a->transport, &snapshot); /* while one is under way, another is dropped */
    assert_int_equal(link_of(a, b).dropped, 1);
    memset(bytes, 0, SNAPSHOT_BYTES); /* it was copied */
    free(bytes);
    world_limit_begin(world);
    while (b->snapshot_count == 0) {
        beats_before = b->message_count;
        if (sent == b->message_count) {
            transport_send(a->transport, &beat);
            sent++;
        }
        world_turn(world, "the snapshot arrives", __FILE__, __LINE__);
    }
    /* Each goes when the one before has come, and what the kernel holds, up to half of the snapshot on a busy
     * machine, goes before it. */
    assert_true(beats_before >= 2);
    assert_int_equal(b->snapshot.size, SNAPSHOT_BYTES);
    assert_int_equal(b->snapshot.index, 5);
    assert_int_equal(b->snapshot_sum, sum);
}

static void test_an_empty_snapshot_passes(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);
    struct raft_message snapshot = snapshot_of(a, b, NULL, 0);

    start_two(world);
    transport_send(a->transport, &snapshot);
    transport_send(a->transport, &snapshot);
    WAIT_FOR(world, b->snapshot_count == 2);
    assert_int_equal(b->snapshot.size, 0);
}

static void test_a_peer_by_name_is_looked_up(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);
    char address[64];

    world_start(a);
    world_start(b);
    (void)snprintf(address, sizeof address, "localhost:%u", (unsigned)b->port);
    world_peer(a, b, address);
    WAIT_FOR(world, is_up(a, b));
    world_peer(a, b, "no-such-host.invalid:7400");
    WAIT_FOR(world, find_news_about(a, TRANSPORT_FAILED, "the name cannot be looked up"));
    /* Stopping while a question is open must not wait for the answer. */
    world_peer(a, b, "neither-this-one.invalid:7400");
    world_run_for(world, 1);
    world_stop(a);
}

static void test_a_peer_that_is_removed_is_let_go(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);
    struct transport_link link;

    start_two(world);
    transport_set_peers(a->transport, NULL, 0);
    assert_false(transport_link_of(a->transport, b->id, &link));
    WAIT_FOR(world, !link_of(b, a).is_heard);
    assert_true(is_up(b, a)); /* it may still speak; whether anybody listens is for Raft to say */
    world_peer(a, b, NULL);
    WAIT_FOR(world, is_up(a, b) && link_of(b, a).is_heard);
    assert_true(link_of(a, b).is_heard);
}

/* The caller may change everything from within a callback. */
static void drop_all_peers(struct side *side, const struct raft_message *message)
{
    (void)message;
    transport_set_peers(side->transport, NULL, 0);
}

static void test_peers_may_be_changed_from_a_callback(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    start_two(world);
    b->on_message = drop_all_peers;
    for (uint64_t round = 1; round <= 3; round++) {
        struct raft_message message = heartbeat(a, b, round);

        transport_send(a->transport, &message);
    }
    WAIT_FOR(world, b->message_count == 3);
    WAIT_FOR(world, !link_of(a, b).is_heard);
}

static void test_a_message_to_nobody_we_know_is_dropped(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *c = world_side(world, 2);
    struct raft_message message = heartbeat(a, c, 1);

    start_two(world);
    transport_send(a->transport, &message);
    assert_true(is_up(a, world_side(world, 1)));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_two_nodes_greet_each_other),
        CASE(test_messages_arrive_in_order),
        CASE(test_three_nodes_hear_each_others_status),
        CASE(test_a_node_that_comes_back_is_connected_again),
        CASE(test_a_node_that_is_killed_is_noticed_at_once),
        CASE(test_the_last_words_of_a_node_that_ends_arrive),
        CASE(test_a_snapshot_passes_and_heartbeats_between_its_chunks),
        CASE(test_an_empty_snapshot_passes),
        CASE(test_a_peer_by_name_is_looked_up),
        CASE(test_a_peer_that_is_removed_is_let_go),
        CASE(test_peers_may_be_changed_from_a_callback),
        CASE(test_a_message_to_nobody_we_know_is_dropped),
    };

    return cmocka_run_group_tests_name("transport", tests, NULL, NULL);
}
