/* SPDX-License-Identifier: Apache-2.0 */

/* Clients that read slowly, or not at all: what is kept for them has a bound. */

#include "clients_frontend.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

/* Four times what is remembered. (A million gives the same picture, and takes four times as long.) */
#define CHANGES (4 * TABLE_HISTORY_CHANGES_MAX)
#define VALUE_BYTES 100

/* What a change of such a note takes at the very least. */
#define CHANGE_BYTES VALUE_BYTES
/* What the kernel may keep for a connection on the way. */
#define KERNEL_BYTES (16u << 20)

static uint64_t changes_sent(struct clients_frontend *frontend)
{
    struct clients_counts counts;

    clients_count(frontend->clients, &counts);
    return counts.changes;
}

/* Reads what was kept for it: each change after the one before, up to the end of the watch. */
static uint64_t read_to_the_end(struct talker *talker, uint64_t revision, uint64_t *ret_read)
{
    uint64_t read = 0;

    for (;;) {
        Gavel__ClientFrame *frame = talk_next(talker);

        assert_non_null(frame);
        if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_WATCH_ENDED) {
            assert_int_equal(frame->watch_ended->status, GAVEL_ERR_FORGOTTEN);
            revision = frame->watch_ended->revision;
            client_frame_free(frame);
            *ret_read = read;
            return revision;
        }
        assert_int_equal(frame->what_case, GAVEL__CLIENT_FRAME__WHAT_CHANGES);
        for (size_t i = 0; i < frame->changes->n_changes; i++)
            assert_int_equal(frame->changes->changes[i]->revision, ++revision);
        read += frame->changes->n_changes;
        client_frame_free(frame);
    }
}

static void test_far_more_changes_than_are_remembered_to_a_slow_reader(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker slow, quick;
    Gavel__ClientFrame *frame;
    uint64_t first, last = 0, ended, read, told = 0;

    clients_frontend_start_with(frontend,
                                (struct clients_patience){60 * NS_PER_S, 60 * NS_PER_S, 60 * NS_PER_S});
    talk_unix(&slow, frontend);
    talk_hello(&slow);
    first = play_put_many(frontend, "g", 1, VALUE_BYTES);
    talk_watching(&slow, (struct watch_wish){.watch = 1, .group = "g"});
    for (size_t i = 0; i < CHANGES / TABLE_OPS_MAX; i++) {
        last = play_put_many(frontend, "g", TABLE_OPS_MAX, VALUE_BYTES);
        talk_trickle(&slow, 4096); /* slow, but not stuck */
    }
    /* As much as it has read, as the kernel keeps, and as we do: not more. */
    assert_true(changes_sent(frontend) * CHANGE_BYTES <
                slow.count + KERNEL_BYTES + CLIENTS_OUTPUT_PAUSE + CLIENTS_SLICE_BYTES);
    /* Others are not held up by it. */
    talk_unix(&quick, frontend);
    talk_hello(&quick);
    talk_watching(&quick, (struct watch_wish){.watch = 1, .group = "g", .after = last - 1000});
    while (told < last) {
        frame = talk_expect(&quick, GAVEL__CLIENT_FRAME__WHAT_CHANGES);
        told = frame->changes->revision;
        client_frame_free(frame);
    }
    /* What it was told is without a gap; then it is said that there is one. */
    ended = read_to_the_end(&slow, first, &read);
    assert_true(ended > first + read && ended <= last);
    assert_true(read > 0 && read < CHANGES / 2);
    talk_watching(&slow, (struct watch_wish){.watch = 1, .group = "g", .after = last});
    talk_change(&slow, 1, GAVEL__CHANGE__KIND__NOTE_PUT, "g", play_put_many(frontend, "g", 1, 1));
    assert_int_equal(play_cut(frontend), 0);
    talk_end(&slow);
    talk_end(&quick);
}

static void test_a_reader_that_comes_back_in_time_misses_nothing(void **state)
{
    enum { PUTS = 30000 };
    struct clients_frontend *frontend = *state;
    struct talker talker;
    uint64_t revision, last = 0;

    clients_frontend_start_with(frontend,
                                (struct clients_patience){60 * NS_PER_S, 60 * NS_PER_S, 60 * NS_PER_S});
    talk_tcp(&talker, frontend);
    talk_hello(&talker);
    revision = play_put_many(frontend, "g", 1, VALUE_BYTES);
    talk_watching(&talker, (struct watch_wish){.watch = 1, .prefix = "g"});
    for (size_t i = 0; i < PUTS / 300; i++)
        last = play_put_many(frontend, "g", 300, 900);
    while (revision < last) {
        Gavel__ClientFrame *frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES);

        for (size_t i = 0; i < frame->changes->n_changes; i++)
            assert_int_equal(frame->changes->changes[i]->revision, ++revision);
        assert_int_equal(frame->changes->revision, revision);
        client_frame_free(frame);
    }
    talk_expect_silence(&talker);
    talk_end(&talker);
}

static void test_a_reader_that_is_stuck_is_cut_off(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker stuck, good;
    Gavel__ClientFrame *frame;

    clients_frontend_start_with(frontend,
                                (struct clients_patience){20 * NS_PER_S, 20 * NS_PER_S, NS_PER_S / 2});
    talk_unix(&stuck, frontend);
    talk_unix(&good, frontend);
    talk_hello(&stuck);
    talk_hello(&good);
    talk_watching(&stuck, (struct watch_wish){.watch = 1, .group = "g"});
    talk_watching(&good, (struct watch_wish){.watch = 1, .group = "h"});
    for (size_t i = 0; i < 100; i++)
        (void)play_put_many(frontend, "g", 100, 1000);
    WAIT_UNTIL(play_cut(frontend) == 1);
    talk_change(&good, 1, GAVEL__CHANGE__KIND__NOTE_PUT, "h", play_put_many(frontend, "h", 1, 1));
    while ((frame = talk_next(&stuck))) /* what was on the way; then the end */
        client_frame_free(frame);
    talk_end(&stuck);
    talk_end(&good);
}

static void test_whoever_asks_and_does_not_read_is_not_read_either(void **state)
{
    static const char value[TABLE_NOTE_BYTES_MAX];
    struct clients_frontend *frontend = *state;
    struct clients_counts counts;
    struct talker talker;
    Gavel__Ask ask;
    Gavel__ClientFrame frame;
    uint8_t *bytes;
    size_t size;

    gavel__ask__init(&ask);
    gavel__client_frame__init(&frame);
    ask.kind = GAVEL__ASK__KIND__NOTE;
    ask.is_local = true;
    ask.group = ask.key = (char *)(uintptr_t) "g";
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ASK;
    frame.ask = &ask;
    assert_int_equal(client_frame_pack(&frame, &bytes, &size), GAVEL_OK);
    clients_frontend_start_with(frontend,
                                (struct clients_patience){20 * NS_PER_S, 20 * NS_PER_S, NS_PER_S / 2});
    (void)play_put(frontend, "g", "g", value, sizeof value);
    talk_unix(&talker, frontend);
    talk_hello(&talker);
    for (;;) { /* 64 KiB for a few bytes, until nobody takes them any more */
        struct pollfd poll_fd = {.fd = talker.fd, .events = POLLOUT};

        if (poll(&poll_fd, 1, 200) == 0 || send(talker.fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            break;
    }
    WAIT_UNTIL(play_cut(frontend) == 1);
    clients_count(frontend->clients, &counts);
    assert_true(counts.lookups * sizeof value < KERNEL_BYTES + CLIENTS_OUTPUT_PAUSE);
    free(bytes);
    talk_end(&talker);
}

static void test_a_change_for_more_watches_than_can_be_kept_ends_the_connection(void **state)
{
    enum { WATCHES = 1000 };
    static const char value[TABLE_NOTE_BYTES_MAX];
    struct clients_frontend *frontend = *state;
    struct talker greedy, good;

    talk_unix(&greedy, frontend);
    talk_unix(&good, frontend);
    talk_hello(&greedy);
    talk_hello(&good);
    talk_watching(&good, (struct watch_wish){.watch = 1, .group = "g"});
    for (uint64_t i = 0; i < WATCHES; i++) /* 64 MiB for one change */
        talk_watching(&greedy, (struct watch_wish){.watch = i, .group = "g"});
    talk_change(&good, 1, GAVEL__CHANGE__KIND__NOTE_PUT, "g",
                play_put(frontend, "g", "k", value, sizeof value));
    talk_refused(&greedy, "more at once than this node can keep");
    assert_int_equal(changes_sent(frontend), 1);
    talk_end(&greedy);
    talk_end(&good);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, clients_frontend_setup, clients_frontend_teardown)
#define STOPPED(test)                                                                                        \
    cmocka_unit_test_setup_teardown(test, clients_frontend_setup_stopped, clients_frontend_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STOPPED(test_far_more_changes_than_are_remembered_to_a_slow_reader),
        STOPPED(test_a_reader_that_comes_back_in_time_misses_nothing),
        STOPPED(test_a_reader_that_is_stuck_is_cut_off),
        STOPPED(test_whoever_asks_and_does_not_read_is_not_read_either),
        WITH(test_a_change_for_more_watches_than_can_be_kept_ends_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
