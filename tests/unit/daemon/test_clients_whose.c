/* SPDX-License-Identifier: Apache-2.0 */

/* Whose a connection is, as its node writes it into what is asked; and that ids of sessions are told only to
 * who has said them. */
#include "clients_frontend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SESSION 0x5e551011

static void hello_with(struct talker *talker, const char *secret)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__ClientHello hello;

    gavel__client_hello__init(&hello);
    hello.version_min = CLIENT_VERSION_MIN;
    hello.version_max = CLIENT_VERSION_MAX;
    hello.secret = (ProtobufCBinaryData){strlen(secret), (uint8_t *)(uintptr_t)secret};
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_HELLO;
    frame.hello = &hello;
    talk_send(talker, &frame);
    client_frame_free(talk_expect(talker, GAVEL__CLIENT_FRAME__WHAT_WELCOME));
}

/* Opens a session, and forges whose it is; what the node makes of that. */
static uint64_t principal_of(struct clients_frontend *frontend, struct talker *talker)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Request request = GAVEL__REQUEST__INIT;
    Gavel__OpenSession open;
    Gavel__Op op;
    Gavel__Op *ops = &op;
    struct forwarding *forwarding;
    uint64_t principal;

    gavel__open_session__init(&open);
    gavel__op__init(&op);
    open.session = SESSION;
    open.ttl_ms = 2000;
    open.principal = 12345;
    op.what_case = GAVEL__OP__WHAT_OPEN_SESSION;
    op.open_session = &open;
    request.tag = 1;
    request.session = SESSION;
    request.id = 1;
    request.n_ops = 1;
    request.ops = &ops;
    request.has_principal = true;
    request.principal = 12345;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request;
    talk_send(talker, &frame);
    forwarding = play_take_forwarding(frontend);
    assert_true(forwarding->frame->request->has_principal);
    principal = forwarding->frame->request->principal;
    assert_int_not_equal(principal, 12345);
    assert_int_equal(forwarding->frame->request->ops[0]->open_session->principal, principal);
    play_answer_forwarding(forwarding, GAVEL_OK);
    client_frame_free(talk_expect(talker, GAVEL__CLIENT_FRAME__WHAT_REPLY));
    return principal;
}

static void test_the_node_says_whose_a_request_is(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker one, same, other, plain, local;
    uint64_t principal;

    talk_tcp(&one, frontend);
    hello_with(&one, "0123456789abcdef");
    principal = principal_of(frontend, &one);
    assert_int_not_equal(principal, 0);
    talk_unix(&same, frontend); /* it moves from TCP to the local socket, and is the same */
    hello_with(&same, "0123456789abcdef");
    assert_int_equal(principal_of(frontend, &same), principal);
    talk_tcp(&other, frontend);
    hello_with(&other, "0123456789abcdeF");
    assert_int_not_equal(principal_of(frontend, &other), principal);
    talk_tcp(&plain, frontend); /* without a secret, and without anything that says who it is */
    talk_hello(&plain);
    assert_int_equal(principal_of(frontend, &plain), 0);
    talk_unix(&local, frontend); /* here the kernel says */
    talk_hello(&local);
    assert_int_not_equal(principal_of(frontend, &local), 0);
    talk_end(&one);
    talk_end(&same);
    talk_end(&other);
    talk_end(&plain);
    talk_end(&local);
}

static void test_keep_alives_are_stamped_too(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker talker;
    struct forwarding *forwarding;

    talk_tcp(&talker, frontend);
    hello_with(&talker, "0123456789abcdef");
    talk_keep_alive(&talker, 1, SESSION);
    forwarding = play_take_forwarding(frontend);
    assert_true(forwarding->frame->keep_alive->has_principal);
    assert_int_not_equal(forwarding->frame->keep_alive->principal, 0);
    play_answer_forwarding(forwarding, GAVEL_OK);
    talk_end(&talker);
}

/* The session that a change of the group tells. */
static uint64_t told_session(struct talker *talker)
{
    Gavel__ClientFrame *frame = talk_expect(talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES);
    uint64_t session = frame->changes->changes[0]->session;

    assert_int_equal(frame->changes->changes[0]->kind, GAVEL__CHANGE__KIND__JOINED);
    client_frame_free(frame);
    return session;
}

static void test_a_watch_tells_ids_of_sessions_to_who_has_them(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker holder, other;

    play_open(frontend, SESSION);
    talk_tcp(&holder, frontend);
    talk_hello(&holder);
    talk_keep_alive(&holder, 1, SESSION);
    play_answer_forwarding(play_take_forwarding(frontend), GAVEL_OK);
    client_frame_free(talk_expect(&holder, GAVEL__CLIENT_FRAME__WHAT_KEPT));
    talk_tcp(&other, frontend);
    talk_hello(&other);
    talk_watching(&holder, (struct watch_wish){.watch = 1, .group = "g"});
    talk_watching(&other, (struct watch_wish){.watch = 1, .group = "g"});
    play_campaign(frontend, SESSION, "g", "one");
    assert_int_equal(told_session(&holder), SESSION);
    assert_int_equal(told_session(&other), 0);
    talk_end(&holder);
    talk_end(&other);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, clients_frontend_setup, clients_frontend_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_the_node_says_whose_a_request_is),
        CASE(test_keep_alives_are_stamped_too),
        CASE(test_a_watch_tells_ids_of_sessions_to_who_has_them),
    };

    return cmocka_run_group_tests_name("clients whose", tests, NULL, NULL);
}
