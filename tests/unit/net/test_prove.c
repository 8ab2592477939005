/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Strangers may greet, and never send. Each case is an attack: without the secret, without being a member,
 * before the proof, with a generation that nobody sealed, by an answer that was made for another connection.
 */
#include "world.h"

#include "net/prove.h"

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
    struct world *world = world_new();

    for (size_t i = 0; i < SIDES_MAX; i++) {
        struct transport_settings *settings = &world_side(world, i)->settings;

        memset(settings->key, 42, sizeof settings->key);
        settings->has_secret = true;
        settings->takes_strangers = false;
    }
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    world_free(*state);
    return 0;
}

/* An attacker at the port of a, who calls itself b. */
struct attacker {
    struct world *world;
    int fd;
    struct peer_hello hello;
};

static void attack(struct attacker *attacker, struct world *world)
{
    struct side *a = world_side(world, 0), *b = world_side(world, 1);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(a->port)};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    attacker->world = world;
    attacker->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(attacker->fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(fcntl(attacker->fd, F_SETFL, O_NONBLOCK), 0);
    attacker->hello = b->settings.self;
    attacker->hello.version_min = attacker->hello.version_max = PEER_VERSION_MAX;
    attacker->hello.to = a->id;
    attacker->hello.process = 7;
    attacker->hello.has_nonce = true;
    memset(attacker->hello.nonce, 9, sizeof attacker->hello.nonce);
}

static void send_frame(struct attacker *attacker, const struct peer_frame *frame)
{
    uint8_t *bytes;
    size_t size;

    assert_int_equal(peer_frame_encode(frame, &bytes, &size), GAVEL_OK);
    assert_int_equal(write(attacker->fd, bytes, size), (ssize_t)size);
    free(bytes);
}

static void send_hello(struct attacker *attacker)
{
    send_frame(attacker, &(struct peer_frame){.kind = PEER_HELLO, .hello = attacker->hello});
}

/* The next frame of a; what it points to is not kept. */
static struct peer_frame receive(struct attacker *attacker)
{
    uint8_t bytes[PEER_FIRST_FRAME_MAX + PEER_LENGTH_BYTES];
    size_t size = 0, wanted = PEER_LENGTH_BYTES;
    struct peer_frame frame;
    const char *reason = "";

    world_limit_begin(attacker->world);
    while (size < wanted) {
        ssize_t got = read(attacker->fd, bytes + size, wanted - size);

        if (got > 0)
            size += (size_t)got;
        else
            world_turn(attacker->world, "an answer to the attacker", __FILE__, __LINE__);
        if (size == PEER_LENGTH_BYTES)
            wanted = PEER_LENGTH_BYTES + peer_frame_length(bytes);
    }
    if (peer_frame_decode(bytes + PEER_LENGTH_BYTES, size - PEER_LENGTH_BYTES, &frame, &reason) != GAVEL_OK)
        fail_msg("%s", reason);
    peer_frame_done(&frame);
    return frame;
}

static void expect_refused(struct attacker *attacker, const char *text)
{
    struct side *a = world_side(attacker->world, 0);
    struct peer_frame frame = receive(attacker);

    if (frame.kind == PEER_WELCOME)
        frame = receive(attacker);
    assert_int_equal(frame.kind, PEER_REFUSAL);
    if (!strstr(frame.text, text))
        fail_msg("\"%s\" is not in: %s", text, frame.text);
    assert_int_equal(a->message_count, 0);
    assert_null(find_news(a, TRANSPORT_GREETED));
    (void)close(attacker->fd);
}

static struct raft_message huge_append(struct world *world)
{
    struct raft_message message = heartbeat(world_side(world, 1), world_side(world, 0), 5);

    message.term = RAFT_NUMBER_MAX - 1;
    return message;
}

/* b is a member, and somebody else uses its name. */
static void begin(struct attacker *attacker, struct world *world)
{
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    world_start(a);
    world_peer(a, b, "127.0.0.1:1");
    attack(attacker, world);
}

static void test_nodes_that_share_the_secret_speak(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);
    struct raft_message message = heartbeat(b, a, 5);

    world_start(a);
    world_start(b);
    world_connect(world);
    WAIT_FOR(world, is_up(b, a) && link_of(a, b).is_heard);
    transport_send(b->transport, &message);
    WAIT_FOR(world, a->message_count == 1);
}

static void test_another_secret_is_refused_by_both(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    b->settings.key[0]++;
    world_start(a);
    world_start(b);
    world_connect(world);
    WAIT_FOR(world, find_news_about(a, TRANSPORT_REFUSED, "do not have the same secret of cluster \"test\""));
    WAIT_FOR(world, find_news_about(b, TRANSPORT_REFUSED, "do not have the same secret of cluster \"test\""));
    world_run_for(world, 100);
    assert_null(find_news(a, TRANSPORT_UP));
    assert_null(find_news(a, TRANSPORT_GREETED));
}

static void test_nothing_is_taken_before_the_proof(void **state)
{
    struct world *world = *state;
    struct attacker attacker;
    struct raft_message message = huge_append(world);

    begin(&attacker, world);
    send_hello(&attacker);
    send_frame(&attacker, &(struct peer_frame){.kind = PEER_MESSAGE, .message = message});
    expect_refused(&attacker, "it sends before it has proven who it is");
}

static void test_a_guess_is_no_proof(void **state)
{
    struct world *world = *state;
    struct attacker attacker;
    struct raft_message message = huge_append(world);

    begin(&attacker, world);
    send_hello(&attacker);
    send_frame(&attacker, &(struct peer_frame){.kind = PEER_PROOF});
    send_frame(&attacker, &(struct peer_frame){.kind = PEER_MESSAGE, .message = message});
    expect_refused(&attacker, "do not have the same secret");
}

/* What a says of itself is no answer to what a asks. */
static void test_an_answer_cannot_be_sent_back(void **state)
{
    struct world *world = *state;
    struct attacker attacker;
    struct peer_frame welcome, proof = {.kind = PEER_PROOF};

    begin(&attacker, world);
    send_hello(&attacker);
    welcome = receive(&attacker);
    assert_int_equal(welcome.kind, PEER_WELCOME);
    memcpy(proof.proof, welcome.hello.proof, sizeof proof.proof);
    send_frame(&attacker, &proof);
    expect_refused(&attacker, "do not have the same secret");
}

/* A proof that was heard on one connection says nothing on the next: the nonce is another. */
static void test_a_proof_is_good_for_one_connection(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0);
    struct attacker attacker;
    struct peer_frame welcome, proof = {.kind = PEER_PROOF};

    begin(&attacker, world);
    send_hello(&attacker);
    welcome = receive(&attacker);
    prove_make(a->settings.key, PROVE_DIALLED, &attacker.hello, welcome.hello.nonce, proof.proof);
    (void)close(attacker.fd);
    attack(&attacker, world);
    send_hello(&attacker);
    send_frame(&attacker, &proof);
    expect_refused(&attacker, "do not have the same secret");
}

static void test_who_proves_nothing_is_refused_without_tls(void **state)
{
    struct world *world = *state;
    struct attacker attacker;

    begin(&attacker, world);
    attacker.hello.has_nonce = false;
    send_hello(&attacker);
    expect_refused(&attacker, "b does not prove that it has the secret");
}

/* Nodes of before 0.7.0 need not prove anything where their certificate must do, and they tell no directory:
 * who tells one can prove itself, and is not let off by leaving the nonce out. */
static void test_who_tells_a_directory_must_prove(void **state)
{
    struct world *world = *state;
    struct attacker attacker;

    world_side(world, 0)->settings.has_secret = false; /* as with TLS, nothing is asked of the old */
    begin(&attacker, world);
    attacker.hello.has_nonce = false;
    attacker.hello.directory = 5;
    send_hello(&attacker);
    expect_refused(&attacker, "b does not prove that it has the secret");
}

/* Nobody is put out of his place by somebody who cannot prove anything. */
static void test_a_member_keeps_its_connection_whoever_greets(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);
    struct attacker attacker;

    world_start(a);
    world_start(b);
    world_connect(world);
    WAIT_FOR(world, is_up(b, a) && link_of(a, b).is_heard);
    attack(&attacker, world);
    attacker.hello.incarnation = 1000;
    send_hello(&attacker);
    (void)receive(&attacker);
    world_run_for(world, 100);
    (void)close(attacker.fd);
    assert_true(link_of(a, b).is_heard);
    assert_true(is_up(b, a));
    assert_int_equal(count_news(a, TRANSPORT_LOST), 0);
}

/* The whole secret does not make a member. */
static void test_who_is_no_member_is_refused(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    world_start(a);
    world_start(b);
    world_peer(b, a, NULL);
    WAIT_FOR(world, find_news_about(b, TRANSPORT_REFUSED, "b is not a member of cluster \"test\""));
    WAIT_FOR(world, find_news_about(a, TRANSPORT_REFUSED, "gavel member add b"));
    assert_null(find_news(a, TRANSPORT_GREETED));
    /* Once it is one, it comes in. */
    world_peer(a, b, NULL);
    WAIT_FOR(world, is_up(b, a) && link_of(a, b).is_heard);
}

/* A node that was away for long does not know those who lead now. */
static void test_who_proves_a_newer_configuration_is_let_in(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    b->settings.self.config_index = 18;
    world_start(a);
    transport_set_members(a->transport, &a->id, 1, 17);
    world_start(b);
    world_peer(b, a, NULL);
    WAIT_FOR(world, is_up(b, a));
    WAIT_FOR(world, find_news(a, TRANSPORT_GREETED));
}

static void test_who_was_removed_is_refused(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    b->settings.self.config_index = 17;
    world_start(a);
    transport_set_members(a->transport, &a->id, 1, 17);
    world_start(b);
    world_peer(b, a, NULL);
    WAIT_FOR(world, find_news_about(b, TRANSPORT_REFUSED, "b is not a member"));
    /* As long as its removal is not committed it is one. */
    transport_set_members(a->transport, &b->id, 1, 17);
    WAIT_FOR(world, is_up(b, a));
}

static void test_a_member_that_is_removed_loses_its_connection(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    world_start(a);
    world_start(b);
    world_connect(world);
    WAIT_FOR(world, is_up(b, a) && link_of(a, b).is_heard);
    transport_set_peers(a->transport, NULL, 0);
    WAIT_FOR(world, find_news_about(b, TRANSPORT_REFUSED, "b is not a member"));
}

/* A later generation ends a node; so it must be sealed. */
static void test_a_generation_that_nobody_sealed_is_not_believed(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0);
    struct attacker attacker;

    begin(&attacker, world);
    attacker.hello.generation = 1000;
    send_hello(&attacker);
    expect_refused(&attacker, "b in generation 1000");
    WAIT_FOR(world, find_news_about(a, TRANSPORT_REFUSED, "in generation 1000"));
    assert_false(find_news(a, TRANSPORT_REFUSED)->has_hello);
    /* The seal of another number is none. */
    attack(&attacker, world);
    attacker.hello.generation = 2;
    prove_generation(a->settings.key, &attacker.hello);
    attacker.hello.generation = 3;
    send_hello(&attacker);
    expect_refused(&attacker, "b in generation 3");
    WAIT_FOR(world, find_news_about(a, TRANSPORT_REFUSED, "in generation 3"));
    assert_false(find_news(a, TRANSPORT_REFUSED)->has_hello);
}

static void test_a_sealed_generation_is_believed(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    b->settings.self.generation = 2;
    world_start(a);
    world_start(b);
    world_connect(world);
    WAIT_FOR(world, find_news(a, TRANSPORT_REFUSED));
    assert_true(find_news(a, TRANSPORT_REFUSED)->has_hello);
    assert_int_equal(find_news(a, TRANSPORT_REFUSED)->hello.generation, 2);
}

static bool is_refused_or_disowned(const struct side *side, const char *text)
{
    return find_news_about(side, TRANSPORT_REFUSED, text) || find_news(side, TRANSPORT_DISOWNED);
}

/* Whoever is told that the cluster refuses its data directory ends. The seal of a generation is no proof of
 * that: it is told to everybody who greets. */
static void test_a_directory_is_refused_only_by_who_has_the_secret(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0);
    struct attacker attacker;
    struct peer_frame refusal = {.kind = PEER_REFUSAL, .is_directory = true};

    begin(&attacker, world);
    prove_generation(a->settings.key, &attacker.hello); /* as b says it to anybody */
    attacker.hello.config_index = 1000;
    refusal.hello = attacker.hello;
    (void)snprintf(refusal.text, sizeof refusal.text, "b knows another directory of a");
    send_frame(&attacker, &refusal); /* instead of a greeting … */
    WAIT_FOR(world, is_refused_or_disowned(a, "another directory of a"));
    assert_null(find_news(a, TRANSPORT_DISOWNED));
    (void)close(attacker.fd);
    attack(&attacker, world);
    send_hello(&attacker);
    (void)snprintf(refusal.text, sizeof refusal.text, "once more");
    refusal.hello.has_proof = true;
    memcpy(refusal.hello.proof, receive(&attacker).hello.proof, sizeof refusal.hello.proof);
    send_frame(&attacker, &refusal); /* … and instead of a proof, with what a itself has said */
    WAIT_FOR(world, is_refused_or_disowned(a, "once more"));
    assert_null(find_news(a, TRANSPORT_DISOWNED));
    (void)close(attacker.fd);
}

static void test_who_was_dialled_refuses_a_directory(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    b->verdict = TRANSPORT_REFUSES_DIRECTORY;
    world_start(a);
    world_start(b);
    world_peer(a, b, NULL);
    world_peer(b, a, "127.0.0.1:1"); /* a member, though it cannot be dialled */
    WAIT_FOR(world, find_news_about(a, TRANSPORT_DISOWNED, "another directory is a"));
}

static void test_who_dials_refuses_a_directory(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    b->verdict = TRANSPORT_REFUSES_DIRECTORY;
    world_start(a);
    world_start(b);
    world_peer(a, b, "127.0.0.1:1");
    world_peer(b, a, NULL);
    WAIT_FOR(world, find_news_about(a, TRANSPORT_DISOWNED, "another directory is a"));
}

/* Its directory is right, so it need not end. */
static void test_who_is_refused_for_its_program_is_not_disowned(void **state)
{
    struct world *world = *state;
    struct side *a = world_side(world, 0), *b = world_side(world, 1);

    b->verdict = TRANSPORT_REFUSES;
    world_start(a);
    world_start(b);
    world_peer(a, b, NULL);
    world_peer(b, a, "127.0.0.1:1"); /* a member, though it cannot be dialled */
    WAIT_FOR(world, find_news_about(a, TRANSPORT_REFUSED, "another directory is a"));
    assert_null(find_news(a, TRANSPORT_DISOWNED));
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(test_nodes_that_share_the_secret_speak),
        CASE(test_another_secret_is_refused_by_both),
        CASE(test_nothing_is_taken_before_the_proof),
        CASE(test_a_guess_is_no_proof),
        CASE(test_an_answer_cannot_be_sent_back),
        CASE(test_a_proof_is_good_for_one_connection),
        CASE(test_who_proves_nothing_is_refused_without_tls),
        CASE(test_who_tells_a_directory_must_prove),
        CASE(test_a_member_keeps_its_connection_whoever_greets),
        CASE(test_who_is_no_member_is_refused),
        CASE(test_who_proves_a_newer_configuration_is_let_in),
        CASE(test_who_was_removed_is_refused),
        CASE(test_a_member_that_is_removed_loses_its_connection),
        CASE(test_a_generation_that_nobody_sealed_is_not_believed),
        CASE(test_a_sealed_generation_is_believed),
        CASE(test_a_directory_is_refused_only_by_who_has_the_secret),
        CASE(test_who_was_dialled_refuses_a_directory),
        CASE(test_who_dials_refuses_a_directory),
        CASE(test_who_is_refused_for_its_program_is_not_disowned),
    };

    return cmocka_run_group_tests_name("prove", tests, NULL, NULL);
}
