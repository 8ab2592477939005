/* SPDX-License-Identifier: Apache-2.0 */

/* Who may not speak to whom: both sides say so, and say why. And what strangers can do: nothing. */
#include "world.h"

#include "net/seal.h"
#include "os/clock.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* a dials b, which is not what a expects; both must tell this. */
static void expect_refusal(struct world *world, const char *text)
{
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    world_start(a);
    world_start(b);
    world_peer(a, b, NULL);
    WAIT_FOR(world,
             find_news_about(a, TRANSPORT_REFUSED, text) && find_news_about(b, TRANSPORT_REFUSED, text));
    assert_false(is_up(a, b));
    assert_non_null(strstr(link_of(a, b).trouble, text));
    assert_null(find_news(a, TRANSPORT_UP));
    assert_null(find_news(b, TRANSPORT_GREETED));
    /* Told once, however often it is tried. */
    WAIT_FOR(world, link_of(a, b).failures >= 3);
    assert_int_equal(count_news(a, TRANSPORT_REFUSED), 1);
    assert_int_equal(count_news(b, TRANSPORT_REFUSED), 1);
    assert_int_equal(link_of(a, b).heard_at, 0); /* or it would pass for healthy */
}

static void test_another_cluster_is_refused(void **state)
{
    struct world *world = *state;

    strcpy(world_side(world, 1)->settings.self.cluster_name, "prod");
    expect_refusal(world, "b belongs to cluster \"prod\", a to cluster \"test\"");
}

static void test_another_id_of_the_cluster_is_refused(void **state)
{
    struct world *world = *state;

    world_side(world, 1)->settings.self.cluster++;
    expect_refusal(world, "b and a have different ids of cluster \"test\"");
}

static void test_another_generation_is_refused_and_told(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    b->settings.self.generation = 2;
    expect_refusal(world, "b is in generation 2 of the cluster, a in generation 1");
    /* So that a can act on it. */
    assert_true(find_news(a, TRANSPORT_REFUSED)->has_hello);
    assert_int_equal(find_news(a, TRANSPORT_REFUSED)->hello.generation, 2);
    assert_int_equal(find_news(b, TRANSPORT_REFUSED)->hello.generation, 1);
    assert_int_equal(find_news(b, TRANSPORT_REFUSED)->peer, a->id);
}

static void test_a_node_without_a_generation_yet_is_welcome(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    b->settings.self.generation = 0;
    world_start(a);
    world_start(b);
    world_peer(a, b, NULL);
    WAIT_FOR(world, is_up(a, b));
}

static void test_another_list_of_first_members_is_refused(void **state)
{
    struct world *world = *state;

    world_side(world, 0)->settings.self.bootstrap = 1;
    world_side(world, 1)->settings.self.bootstrap = 2;
    expect_refusal(world, "b and a were bootstrapped with different members");
}

static void test_a_peer_with_our_own_id_is_refused(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    b->settings.self.node = a->id;
    strcpy(b->settings.self.name, "a");
    expect_refusal(world, "two nodes are called a");
}

static void test_a_node_that_is_not_whom_we_dialled_is_refused(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1), *c = world_side(world, 2);
    char address[64];

    world_start(a);
    world_start(c);
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", (unsigned)c->port);
    world_peer(a, b, address);
    WAIT_FOR(world, find_news_about(a, TRANSPORT_REFUSED, "a looked for another node where c is"));
    WAIT_FOR(world, find_news_about(c, TRANSPORT_REFUSED, "a looked for another node where c is"));
}

static void test_a_name_with_the_id_of_another_is_refused(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    strcpy(b->settings.self.name, "impostor");
    world_start(a);
    world_start(b);
    world_peer(a, b, NULL);
    WAIT_FOR(world, find_news_about(a, TRANSPORT_REFUSED, "impostor has the id of b"));
    WAIT_FOR(world, find_news_about(b, TRANSPORT_REFUSED, "impostor has the id of b"));
}

static void test_versions_without_a_common_one_are_refused(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    a->settings.self.version_min = 1;
    a->settings.self.version_max = 2;
    b->settings.self.version_min = 3;
    b->settings.self.version_max = 5;
    expect_refusal(world, "b speaks versions 3 to 5 of the protocol, a versions 1 to 2; upgrade a");
}

static void test_the_highest_common_version_is_chosen(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    a->settings.self.version_min = 1;
    a->settings.self.version_max = 4;
    b->settings.self.version_min = 3;
    b->settings.self.version_max = 7;
    world_start(a);
    world_start(b);
    world_peer(a, b, NULL);
    WAIT_FOR(world, is_up(a, b));
    assert_int_equal(find_news(a, TRANSPORT_GREETED)->hello.version_min, 4);
    assert_int_equal(find_news(a, TRANSPORT_GREETED)->hello.version_max, 4);
}

static void test_the_first_of_two_nodes_with_one_name_keeps_its_place(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1), *c = world_side(world, 2);

    world_start(a);
    world_start(b);
    world_peer(a, b, NULL);
    world_peer(b, a, NULL);
    WAIT_FOR(world, is_up(b, a));
    c->settings.self = b->settings.self; /* another process */
    world_start(c);
    world_peer(c, a, NULL);
    WAIT_FOR(world, find_news_about(c, TRANSPORT_REFUSED, "two nodes are called b"));
    WAIT_FOR(world, find_news_about(a, TRANSPORT_REFUSED, "two nodes are called b"));
    assert_true(is_up(b, a));
}

static void test_a_node_that_has_lost_its_memory_is_refused(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1), *c = world_side(world, 2);

    b->settings.self.incarnation = 7;
    world_start(a);
    world_start(b);
    world_peer(a, b, NULL);
    WAIT_FOR(world, is_up(a, b));
    c->settings.self = b->settings.self; /* the same node, bootstrapped again on an empty disk */
    c->settings.self.incarnation = 1;
    world_start(c);
    world_peer(c, a, NULL);
    WAIT_FOR(world, find_news_about(c, TRANSPORT_DISOWNED, "it has lost its data"));
    WAIT_FOR(world, find_news_about(a, TRANSPORT_REFUSED, "b was in incarnation 7 before and is in 1 now"));
}

/* b was there, ends, and comes back like this. */
static void expect_lost_memory(struct world *world, uint64_t incarnation, uint64_t generation)
{
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    world_start(a);
    world_start(b);
    world_peer(a, b, NULL);
    WAIT_FOR(world, is_up(a, b));
    world_stop(b);
    WAIT_FOR(world, !is_up(a, b));
    b->settings.self.incarnation = incarnation;
    b->settings.self.generation = generation;
    world_start(b);
    WAIT_FOR(world, find_news_about(a, TRANSPORT_REFUSED, "it has lost its data"));
    WAIT_FOR(world, find_news_about(b, TRANSPORT_DISOWNED, "it has lost its data"));
    assert_false(is_up(a, b));
}

static void test_a_first_incarnation_is_not_begun_twice(void **state) { expect_lost_memory(*state, 1, 1); }

static void test_a_member_does_not_join_again_on_an_empty_disk(void **state)
{
    expect_lost_memory(*state, 9, 0);
}

/* A socket of a stranger. */
static int dial(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    (void)connect(fd, (struct sockaddr *)&address, sizeof address);
    return fd;
}

static void send_frame(int fd, const struct peer_frame *frame)
{
    uint8_t *bytes;
    size_t size;

    assert_int_equal(peer_frame_encode(frame, &bytes, &size), GAVEL_OK);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    free(bytes);
}

static bool is_closed(int fd)
{
    char bytes[4096];
    ssize_t size;

    while ((size = read(fd, bytes, sizeof bytes)) > 0)
        ;
    return size == 0;
}

static void test_nobody_speaks_in_the_name_of_another(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1), *c = world_side(world, 2);
    struct peer_frame frame = {.kind = PEER_HELLO, .hello = b->settings.self};
    int fd;

    world_start(a);
    fd = dial(a->port);
    frame.hello.version_min = frame.hello.version_max = 1;
    frame.hello.to = a->id;
    send_frame(fd, &frame);
    frame = (struct peer_frame){.kind = PEER_MESSAGE, .message = heartbeat(b, a, 1)};
    send_frame(fd, &frame);
    WAIT_FOR(world, a->message_count == 1);
    frame.message = heartbeat(c, a, 2);
    send_frame(fd, &frame);
    WAIT_FOR(world, find_news_about(a, TRANSPORT_BAD, "a message in the name of another node"));
    WAIT_FOR(world, is_closed(fd));
    assert_int_equal(a->message_count, 1);
    (void)close(fd);
}

static void test_a_stranger_that_does_not_greet_is_closed(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *reason;
    } cases[] = {
        {"GET / HTTP/1.1\r\n\r\n", 18, "this is HTTP"},
        {"\x16\x03\x01\x02\x00\x01\x00", 7, "one side speaks TLS"},
        {"\xff\xff\xff\xff rubbish", 12, "bytes that are not a frame"},
        {"\x00\x00\x00\x00", 4, "bytes that are not a frame"},
        {"\x00\x00\x20\x00", 4, "bytes that are not a frame"}, /* too long for a first frame */
        {"\x00\x00\x00\x04\xff\xff\xff\xff", 8, "bytes that are not a frame"},
        {"\x00\x00\x00\x08\x0a\x06\x08\x01\x10\x01\x1a\x00", 12,
         "this is the port for other nodes (`listen:`); clients use that of `clients:` in the node's file"},
        {"", 0, "no greeting within 300 ms"},
        {"\x00\x00\x01\x00 and then silence", 21, "no greeting within 300 ms"},
    };
    struct world *world = *state;
    struct side *a = world_side(world, 0);

    a->settings.connect_timeout = 300 * NS_PER_MS;
    world_start(a);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int fd = dial(a->port);

        world_run_for(world, 1);
        assert_int_equal(write(fd, cases[i].bytes, cases[i].size), (ssize_t)cases[i].size);
        WAIT_FOR(world, is_closed(fd));
        if (!find_news_about(a, TRANSPORT_BAD, cases[i].reason))
            fail_msg("not told: %s", cases[i].reason);
        (void)close(fd);
    }
}

static void test_a_thousand_strangers_do_no_harm(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1), *c = world_side(world, 2);
    struct raft_message beat = heartbeat(a, b, 1);
    int fds[1000];
    size_t before;

    world_start(a);
    world_start(b);
    world_connect(world);
    WAIT_FOR(world, is_up(a, b) && is_up(b, a));
    before = b->news_count;
    for (size_t i = 0; i < 1000; i++) {
        fds[i] = dial(b->port);
        (void)!write(fds[i], "rubbish ", i % 9); /* it may not be connected yet */
        if (i % 50 == 0) {
            transport_send(a->transport, &beat);
            (void)event_base_loop(world->base, EVLOOP_NONBLOCK);
        }
    }
    WAIT_FOR(world, b->message_count == 20);
    /* A newcomer still gets in, although all places are taken. */
    world_start(c);
    world_connect(world);
    WAIT_FOR(world, is_up(c, b));
    assert_true(is_up(a, b));
    assert_true(is_up(b, a));
    assert_null(find_news(a, TRANSPORT_LOST));
    assert_true(b->news_count - before < 40);
    for (size_t i = 0; i < 1000; i++)
        (void)close(fds[i]);
}

static void test_a_peer_that_does_not_read_costs_a_bounded_amount(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), fd = -1;
    struct peer_frame welcome = {.kind = PEER_WELCOME, .hello = b->settings.self};
    struct raft_message beat;

    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    b->port = ntohs(address.sin_port);
    a->settings.waiting_max = 1 << 20;
    world_start(a);
    world_peer(a, b, NULL);
    WAIT_FOR(world, (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0);
    welcome.hello.version_min = welcome.hello.version_max = 1;
    welcome.hello.to = a->id;
    send_frame(fd, &welcome);
    WAIT_FOR(world, is_up(a, b));
    beat = heartbeat(a, b, 1);
    world_limit_begin(world);
    while (link_of(a, b).dropped < 1000) {
        for (int i = 0; i < 1000; i++)
            transport_send(a->transport, &beat);
        world_turn(world, "messages are dropped", __FILE__, __LINE__);
    }
    /* What waits here, and what the kernel takes at either end. */
    assert_true(link_of(a, b).sent_bytes < (1 << 20) + (16 << 20));
    (void)close(fd);
    (void)close(listener);
}

static void send_datagram(uint16_t port, const void *bytes, size_t size)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_int_equal(sendto(fd, bytes, size, 0, (struct sockaddr *)&address, sizeof address), (ssize_t)size);
    (void)close(fd);
}

static void test_obituaries_come_by_datagram_and_not_too_many(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);
    struct seal seal = {.cluster = 5, .generation = 1};
    struct raft_certificate certificate = {.kind = RAFT_CERT_OBITUARY, .node = b->id, .incarnation = 3};
    uint8_t bytes[OBITUARY_BYTES];
    const struct raft_message *message = &a->messages[0];

    seal_sign(&seal, &certificate);
    (void)obituary_encode(seal.cluster, seal.generation, &certificate, bytes);
    world_start(a);
    send_datagram(a->port, "rubbish", 7);
    send_datagram(a->port, bytes, OBITUARY_BYTES - 1);
    send_datagram(a->port, bytes, OBITUARY_BYTES);
    WAIT_FOR(world, a->message_count == 1);
    assert_int_equal(message->kind, RAFT_MSG_CERTIFICATE);
    assert_int_equal(message->from, 0);
    assert_int_equal(message->to, a->id);
    assert_int_equal(message->cluster, 5);
    assert_true(seal_verify(&seal, &message->certificate));
    for (int i = 0; i < 1000; i++) {
        send_datagram(a->port, bytes, OBITUARY_BYTES);
        if (i % 20 == 0)
            (void)event_base_loop(world->base, EVLOOP_NONBLOCK);
    }
    world_run_for(world, 20);
    assert_in_range(a->message_count, 150, 600);
}

static void try_to_listen(struct world *world, const char *listen, enum gavel_status expected,
                          const char *text)
{
    struct transport_settings settings = world_side(world, 0)->settings;
    struct transport_events events = {0};
    struct transport *transport = NULL;
    struct gavel_error error;

    settings.listen = listen;
    assert_int_equal(transport_new(world->base, &settings, &events, &transport, &error), expected);
    assert_null(transport);
    if (!strstr(error.message, text))
        fail_msg("\"%s\" does not say \"%s\"", error.message, text);
}

static void test_where_it_cannot_listen_it_says_why(void **state)
{
    struct world *world = *state;
    struct side *b = world_side(world, 1);
    char address[64];

    try_to_listen(world, "7400", GAVEL_ERR_INVALID, "is not an address");
    try_to_listen(world, "0.0.0.0:0", GAVEL_ERR_INVALID, "without TLS");
    try_to_listen(world, "192.0.2.1:0", GAVEL_ERR_INVALID, "without TLS");
    try_to_listen(world, "no-such-host.invalid:1", GAVEL_ERR_IO, "has no address");
    world_start(b);
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", (unsigned)b->port);
    try_to_listen(world, address, GAVEL_ERR_IO, "another process uses that port");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_another_cluster_is_refused),
        CASE(test_another_id_of_the_cluster_is_refused),
        CASE(test_another_generation_is_refused_and_told),
        CASE(test_a_node_without_a_generation_yet_is_welcome),
        CASE(test_another_list_of_first_members_is_refused),
        CASE(test_a_peer_with_our_own_id_is_refused),
        CASE(test_a_node_that_has_lost_its_memory_is_refused),
        CASE(test_a_first_incarnation_is_not_begun_twice),
        CASE(test_a_member_does_not_join_again_on_an_empty_disk),
        CASE(test_a_node_that_is_not_whom_we_dialled_is_refused),
        CASE(test_a_name_with_the_id_of_another_is_refused),
        CASE(test_versions_without_a_common_one_are_refused),
        CASE(test_the_highest_common_version_is_chosen),
        CASE(test_the_first_of_two_nodes_with_one_name_keeps_its_place),
        CASE(test_nobody_speaks_in_the_name_of_another),
        CASE(test_a_stranger_that_does_not_greet_is_closed),
        CASE(test_a_thousand_strangers_do_no_harm),
        CASE(test_a_peer_that_does_not_read_costs_a_bounded_amount),
        CASE(test_obituaries_come_by_datagram_and_not_too_many),
        CASE(test_where_it_cannot_listen_it_says_why),
    };

    return cmocka_run_group_tests_name("refusals", tests, NULL, NULL);
}
