/* SPDX-License-Identifier: Apache-2.0 */

#include "session_bench.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

int bench_set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    gavel_ns limit = clock_now() + LIMIT;
    struct store *store = NULL;
    struct gavel_error error = {0};
    struct store_reply reply;

    assert_non_null(bench);
    test_cluster_start(&bench->cluster);
    while (store_open(bench->cluster.url, &store, &error) != GAVEL_OK) {
        if (error.status != GAVEL_ERR_STORE_UNAVAILABLE || clock_now() >= limit)
            fail_msg("%s", error.message);
    }
    reply = expect(store, ask_read("nothing"), GAVEL_OK); /* there is a leader */
    assert_false(reply.found);
    store_close(store);
    *state = bench;
    return 0;
}

int bench_tear_down(void **state)
{
    struct bench *bench = *state;

    for (int i = 0; i < SEATS; i++)
        seat_close(&bench->seats[i]);
    test_cluster_stop(&bench->cluster);
    free(bench);
    return 0;
}

struct seat *seat_open(struct bench *bench, int which, gavel_ms lease_ms)
{
    struct seat *seat = &bench->seats[which];
    const struct store_session_options options = {
        .lease_ms = lease_ms, .drift_ppm = 1000, .names_process = true, .key = &seat->key};
    struct gavel_error error = {0};

    assert_null(seat->store);
    seat->store = open_store(bench->cluster.url);
    if (store_open_session(seat->store, &options, &error) != GAVEL_OK)
        fail_msg("%s", error.message);
    return seat;
}

struct seat *seat_ready(struct bench *bench, int which, gavel_ms lease_ms)
{
    struct seat *seat = seat_open(bench, which, lease_ms);

    assert_int_not_equal(seat_await(seat, STORE_NEWS_SESSION, NULL).session.number, 0);
    return seat;
}

void seat_close(struct seat *seat)
{
    store_close(seat->store);
    *seat = (struct seat){0};
}

static void expect_in_order(const struct store_session *before, const struct store_news *news)
{
    const struct store_session *after = &news->session;
    bool is_same = before->number == after->number;

    if (news->kind == STORE_NEWS_SESSION)
        assert_false(is_same);
    else
        assert_true(is_same);
    if (news->kind == STORE_NEWS_SESSION && before->number != 0) {
        assert_int_equal(after->number, 0); /* no two without an end in between */
        assert_true(after->former_deadline >= before->deadline);
    }
    if (news->kind == STORE_NEWS_DEADLINE)
        assert_true(after->deadline > before->deadline);
    if (news->kind == STORE_NEWS_RECORD || news->kind == STORE_NEWS_HINT) {
        assert_int_not_equal(after->number, 0);
        assert_int_equal(after->deadline, before->deadline);
        assert_true(news->group[0]);
    }
    if (news->kind == STORE_NEWS_RECORD && news->is_found)
        assert_true(news->record.version <= news->revision);
    if (after->number == 0)
        assert_int_equal(after->deadline, 0);
    assert_true(after->lasts > 0);
}

bool seat_take(struct seat *seat, struct store_news *ret_news)
{
    if (!store_news(seat->store, ret_news))
        return false;
    expect_in_order(&seat->session, ret_news);
    seat->session = ret_news->session;
    return true;
}

static void await_some(struct seat *seat, gavel_ns until)
{
    struct pollfd fd = {.fd = store_push_fd(seat->store), .events = POLLIN};
    gavel_ns left = ns_max(until - clock_now(), 0);

    assert_true(fd.fd >= 0);
    (void)poll(&fd, 1, (int)ms_from_ns(left) + 1); /* the caller looks again */
}

struct store_news seat_await(struct seat *seat, enum store_news_kind kind, const char *group)
{
    gavel_ns until = clock_now() + LIMIT;
    struct store_news news;

    for (;;) {
        while (seat_take(seat, &news))
            if (news.kind == kind && (!group || strcmp(news.group, group) == 0))
                return news;
        assert_true(clock_now() < until);
        await_some(seat, until);
    }
}

struct record seat_await_mandate(struct seat *seat, const char *group, bool is_ours)
{
    struct store_news news;

    do
        news = seat_await(seat, STORE_NEWS_RECORD, group);
    while (!news.record.held || news.is_ours != is_ours);
    return news.record;
}

void seat_idle(struct seat *seat, gavel_ns time)
{
    gavel_ns until = clock_now() + time;
    struct store_news news;

    while (clock_now() < until) {
        while (seat_take(seat, &news))
            continue;
        await_some(seat, until);
    }
}

struct store_request ask_campaign(const struct seat *seat, const char *group, const char *id,
                                  uint64_t instance)
{
    struct store_request request = ask_heartbeat(group, id, instance, 1);

    request.session = seat->session.number;
    request.campaign.stands = true;
    request.give_up_at = clock_now() + LIMIT;
    return request;
}

struct store_request ask_give_up(const struct seat *seat, const char *group, const char *id, uint64_t epoch)
{
    struct store_request request = ask_release(group, id, 0, epoch);

    request.session = seat->session.number;
    request.give_up_at = clock_now() + LIMIT;
    return request;
}

struct store_request ask_go(const struct seat *seat, const char *group, const char *id, uint64_t instance)
{
    struct store_request request = ask_leave(group, id, instance);

    request.session = seat->session.number;
    request.give_up_at = clock_now() + LIMIT;
    return request;
}
