/* SPDX-License-Identifier: Apache-2.0 */

/* What clients say: look-ups, forwardings, and bytes that are neither. */

#include "clients_frontend.h"

#include "base/prng.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void test_a_look_up_is_answered_from_the_own_table(void **state)
{
    struct clients_frontend *frontend = *state;
    struct clients_counts counts;
    struct talker talker;
    Gavel__ClientFrame *frame;
    uint64_t revision;

    (void)play_open(frontend, 11);
    revision = play_campaign(frontend, 11, "jobs", "a");
    talk_tcp(&talker, frontend);
    talk_hello(&talker);
    talk_ask(&talker, 5, true, "jobs");
    frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_ANSWER);
    assert_int_equal(frame->answer->tag, 5);
    assert_int_equal(frame->answer->status, GAVEL_OK);
    assert_int_equal(frame->answer->revision, revision);
    assert_int_equal(frame->answer->n_groups, 1);
    assert_string_equal(frame->answer->groups[0]->holder, "a");
    client_frame_free(frame);
    talk_ask(&talker, 6, true, "nothing");
    frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_ANSWER);
    assert_int_equal(frame->answer->tag, 6);
    assert_int_equal(frame->answer->n_groups, 0);
    client_frame_free(frame);
    talk_ask(&talker, 7, true, "");
    frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_ANSWER);
    assert_int_equal(frame->answer->tag, 7);
    assert_int_equal(frame->answer->status, GAVEL_ERR_INVALID);
    client_frame_free(frame);
    clients_count(frontend->clients, &counts);
    assert_int_equal(counts.lookups, 3);
    assert_null(mailbox_take(&frontend->frontend.forwardings)); /* nobody else was asked */
    talk_end(&talker);
}

static void ask_notes(struct talker *talker, const char *after, uint32_t limit)
{
    Gavel__Ask ask;
    Gavel__ClientFrame frame;

    gavel__ask__init(&ask);
    gavel__client_frame__init(&frame);
    ask.kind = GAVEL__ASK__KIND__NOTES;
    ask.is_local = true;
    ask.group = (char *)(uintptr_t) "g";
    ask.after = (char *)(uintptr_t)after;
    ask.limit = limit;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ASK;
    frame.ask = &ask;
    talk_send(talker, &frame);
}

static void test_a_long_list_comes_in_frames_that_are_not_too_long(void **state)
{
    enum { NOTES = 300 };
    static const char value[TABLE_NOTE_BYTES_MAX];
    struct clients_frontend *frontend = *state;
    struct talker talker;
    char key[8], after[8] = "";
    bool has_more = true;
    size_t count = 0;

    for (int i = 0; i < NOTES; i++) {
        (void)snprintf(key, sizeof key, "%03d", i);
        (void)play_put(frontend, "g", key, value, i < 100 ? sizeof value : 1);
    }
    talk_tcp(&talker, frontend);
    talk_hello(&talker);
    while (has_more) {
        Gavel__ClientFrame *frame;

        ask_notes(&talker, after, 1000);
        frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_ANSWER);
        assert_int_equal(frame->answer->status, GAVEL_OK);
        assert_true(frame->answer->n_notes > 0);
        for (size_t i = 0; i < frame->answer->n_notes; i++) {
            (void)snprintf(after, sizeof after, "%03zu", count++);
            assert_string_equal(frame->answer->notes[i]->key, after);
        }
        has_more = frame->answer->has_more;
        client_frame_free(frame);
    }
    assert_int_equal(count, NOTES);
    talk_end(&talker);
}

static void test_forwardings_go_to_the_consensus_thread_and_answers_come_back(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker one, two;
    struct forwarding *first, *second, *third;
    Gavel__ClientFrame *frame;

    talk_tcp(&one, frontend);
    talk_unix(&two, frontend);
    talk_hello(&one);
    talk_hello(&two);
    talk_request(&one, 1, 42, "g");
    first = play_take_forwarding(frontend);
    talk_keep_alive(&two, 1, 43);
    second = play_take_forwarding(frontend);
    talk_ask(&one, 2, false, "g");
    third = play_take_forwarding(frontend);
    assert_int_equal(first->frame->what_case, GAVEL__CLIENT_FRAME__WHAT_REQUEST);
    assert_int_equal(first->frame->request->session, 42);
    assert_string_equal(first->frame->request->ops[0]->withdraw->group, "g");
    assert_int_equal(second->frame->what_case, GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE);
    assert_int_equal(second->frame->keep_alive->sessions[0], 43);
    assert_int_equal(third->frame->what_case, GAVEL__CLIENT_FRAME__WHAT_ASK);
    assert_int_equal(first->client, third->client);
    assert_int_not_equal(first->client, second->client);
    play_answer_forwarding(third, GAVEL_OK);
    play_answer_forwarding(second, GAVEL_ERR_TIMEOUT);
    play_answer_forwarding(first, GAVEL_ERR_SESSION_GONE);
    frame = talk_expect(&one, GAVEL__CLIENT_FRAME__WHAT_ANSWER);
    assert_int_equal(frame->answer->tag, 2);
    client_frame_free(frame);
    frame = talk_expect(&one, GAVEL__CLIENT_FRAME__WHAT_REPLY);
    assert_int_equal(frame->reply->tag, 1);
    assert_int_equal(frame->reply->status, GAVEL_ERR_SESSION_GONE);
    client_frame_free(frame);
    frame = talk_expect(&two, GAVEL__CLIENT_FRAME__WHAT_KEPT);
    assert_int_equal(frame->kept->status, GAVEL_ERR_TIMEOUT);
    client_frame_free(frame);
    talk_end(&one);
    talk_end(&two);
}

static void test_a_client_that_is_gone_is_told_to_the_consensus_thread(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker asker, silent;
    struct forwarding *forwarding, *farewell;

    talk_tcp(&silent, frontend); /* of whom it has never heard, nor will */
    talk_hello(&silent);
    talk_end(&silent);
    talk_tcp(&asker, frontend);
    talk_hello(&asker);
    talk_request(&asker, 1, 42, "g");
    forwarding = play_take_forwarding(frontend);
    talk_end(&asker);
    farewell = play_take_forwarding(frontend);
    assert_null(farewell->frame);
    assert_int_equal(farewell->client, forwarding->client);
    forwarding_free(farewell);
    play_answer_forwarding(forwarding, GAVEL_OK); /* too late: for nobody */
    talk_tcp(&asker, frontend);
    talk_hello(&asker);
    talk_expect_silence(&asker);
    talk_end(&asker);
}

static void test_a_client_with_too_much_under_way_is_not_read(void **state)
{
    enum { ASKED = 3000, MOST = 1024 };
    struct clients_frontend *frontend = *state;
    struct forwarding *held[ASKED];
    struct talker talker;
    size_t count = 0, answered = 0;

    talk_tcp(&talker, frontend);
    talk_hello(&talker);
    for (size_t i = 0; i < ASKED; i++)
        talk_keep_alive(&talker, i, 42);
    while (count < MOST)
        held[count++] = play_take_forwarding(frontend);
    /* Another one is read meanwhile; when it has been answered, whatever was to come of the first has
     * come. */
    for (int i = 0; i < 3; i++) {
        struct talker other;

        talk_tcp(&other, frontend);
        talk_hello(&other);
        talk_expect_silence(&other);
        talk_end(&other);
    }
    assert_null(mailbox_take(&frontend->frontend.forwardings));
    while (answered < ASKED) {
        Gavel__ClientFrame *frame;

        if (answered == count)
            held[count++] = play_take_forwarding(frontend);
        play_answer_forwarding(held[answered], GAVEL_OK);
        frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_KEPT);
        assert_int_equal(frame->kept->tag, answered++);
        client_frame_free(frame);
    }
    talk_end(&talker);
}

static void test_frames_may_come_in_pieces_and_in_heaps(void **state)
{
    enum { FRAMES = 50 };
    uint8_t bytes[8192];
    size_t size = 0;
    struct talker talker;
    Gavel__Ask ask;
    Gavel__ClientFrame frame;

    gavel__ask__init(&ask);
    gavel__client_frame__init(&frame);
    ask.is_local = true;
    ask.group = (char *)(uintptr_t) "g";
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ASK;
    frame.ask = &ask;
    for (int i = 0; i < FRAMES; i++) {
        uint8_t *one;
        size_t length;

        ask.tag = (uint64_t)i;
        assert_int_equal(client_frame_pack(&frame, &one, &length), GAVEL_OK);
        assert_true(size + length <= sizeof bytes);
        memcpy(bytes + size, one, length);
        size += length;
        free(one);
    }
    talk_tcp(&talker, *state);
    talk_hello(&talker);
    for (int round = 0; round < 2; round++) {
        size_t piece = round == 0 ? 1 : size;

        for (size_t at = 0; at < size; at += piece)
            talk_bytes(&talker, bytes + at, piece);
        for (int i = 0; i < FRAMES; i++) {
            Gavel__ClientFrame *answer = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_ANSWER);

            assert_int_equal(answer->answer->tag, i);
            client_frame_free(answer);
        }
    }
    talk_end(&talker);
}

static void test_a_kind_that_is_not_known_is_skipped(void **state)
{
    static const uint8_t unknown[] = {0, 0, 0, 4, 0xf2, 0x07, 1, 'x'}; /* field 126 */
    struct talker talker;

    talk_tcp(&talker, *state);
    talk_hello(&talker);
    talk_bytes(&talker, unknown, sizeof unknown);
    talk_expect_silence(&talker);
    talk_end(&talker);
}

static void say(struct clients_frontend *frontend, bool after_hello, const void *bytes, size_t size,
                const char *words)
{
    struct talker talker;

    talk_tcp(&talker, frontend);
    if (after_hello)
        talk_hello(&talker);
    talk_bytes(&talker, bytes, size);
    talk_refused(&talker, words);
    talk_end(&talker);
}

static void test_hostile_bytes_are_refused_in_words(void **state)
{
    struct clients_frontend *frontend = *state;

    say(frontend, false, "GET / HTTP/1.1\r\n\r\n", 18, "this is HTTP");
    say(frontend, false, "\x16\x03\x01\x02\x00\x01", 6, "one side speaks TLS");
    say(frontend, false, "\0\0\0\0", 4, "no length");
    say(frontend, false, "\0\0\x10\x01", 4, "too long");
    say(frontend, true, "\0\x40\0\x01", 4, "too long");
    say(frontend, true, "\0\0\0\x03\xff\xff\xff", 7, "not a frame");
    say(frontend, true, "\0\0\0\x02\x2a\0", 6, "only nodes send"); /* an empty Reply */
    assert_int_equal(play_cut(frontend), 7);
}

static void test_random_bytes_end_a_connection_and_nothing_else(void **state)
{
    enum { ROUNDS = 200 };
    struct clients_frontend *frontend = *state;
    struct prng prng;
    struct talker good;

    prng_seed(&prng, 7);
    talk_tcp(&good, frontend);
    talk_hello(&good);
    for (int i = 0; i < ROUNDS; i++) {
        struct talker talker;
        uint8_t bytes[256];
        size_t size = 1 + prng_below(&prng, sizeof bytes);

        for (size_t k = 0; k < size; k++)
            bytes[k] = (uint8_t)prng_next(&prng);
        if (size >= 4) { /* half of them with a length that fits */
            bytes[0] = bytes[1] = bytes[2] = 0;
            bytes[3] = (uint8_t)(i % 2 ? size - 4 : bytes[3]);
        }
        talk_unix(&talker, frontend);
        if (i % 4)
            talk_hello(&talker);
        (void)send(talker.fd, bytes, size, MSG_NOSIGNAL);
        (void)shutdown(talker.fd, SHUT_WR);
        for (Gavel__ClientFrame *frame; (frame = talk_next(&talker));)
            client_frame_free(frame);
        talk_end(&talker);
    }
    talk_expect_silence(&good);
    talk_end(&good);
}

static void test_a_client_that_is_silent_for_too_long_is_cut_off(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker idle, watching, half;

    clients_frontend_start_with(frontend, (struct clients_patience){NS_PER_S * 20, NS_PER_S, NS_PER_S});
    talk_tcp(&watching, frontend);
    talk_hello(&watching);
    talk_watching(&watching, (struct watch_wish){.watch = 1, .group = "g"});
    talk_tcp(&half, frontend);
    talk_hello(&half);
    talk_watching(&half, (struct watch_wish){.watch = 1, .group = "g"});
    talk_bytes(&half, "\0\0\0\x09\x0a", 5); /* the rest of it never comes */
    talk_tcp(&idle, frontend);
    talk_hello(&idle);
    talk_refused(&idle, "sends a keep-alive");
    talk_refused(&half, "sends a keep-alive");
    talk_expect_silence(&watching); /* it may: it listens */
    talk_end(&idle);
    talk_end(&half);
    talk_end(&watching);
}

static void test_the_thread_says_that_it_is_alive(void **state)
{
    struct clients_frontend *frontend = *state;
    gavel_ns then = atomic_load(&frontend->frontend.clients_alive_at);

    assert_true(then > 0);
    WAIT_UNTIL(atomic_load(&frontend->frontend.clients_alive_at) > then + 100 * NS_PER_MS);
}

static void test_what_was_answered_last_is_written_before_the_end(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker talker;
    Gavel__ClientFrame *frame;

    talk_tcp(&talker, frontend);
    talk_hello(&talker);
    talk_request(&talker, 9, 42, "g");
    play_answer_forwarding(play_take_forwarding(frontend), GAVEL_OK);
    clients_stop(frontend->clients);
    frontend->clients = NULL;
    frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_REPLY);
    assert_int_equal(frame->reply->tag, 9);
    client_frame_free(frame);
    assert_null(talk_next(&talker));
    talk_end(&talker);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, clients_frontend_setup, clients_frontend_teardown)
#define STOPPED(test)                                                                                        \
    cmocka_unit_test_setup_teardown(test, clients_frontend_setup_stopped, clients_frontend_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_a_look_up_is_answered_from_the_own_table),
        WITH(test_a_long_list_comes_in_frames_that_are_not_too_long),
        WITH(test_forwardings_go_to_the_consensus_thread_and_answers_come_back),
        WITH(test_a_client_that_is_gone_is_told_to_the_consensus_thread),
        WITH(test_a_client_with_too_much_under_way_is_not_read),
        WITH(test_frames_may_come_in_pieces_and_in_heaps),
        WITH(test_a_kind_that_is_not_known_is_skipped),
        WITH(test_hostile_bytes_are_refused_in_words),
        WITH(test_random_bytes_end_a_connection_and_nothing_else),
        STOPPED(test_a_client_that_is_silent_for_too_long_is_cut_off),
        WITH(test_the_thread_says_that_it_is_alive),
        WITH(test_what_was_answered_last_is_written_before_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
