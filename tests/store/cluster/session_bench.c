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
    *state = bench; /* what there is of it is taken down, also if there is no more */
    test_cluster_start(&bench->cluster);
    while (store_open(bench->cluster.url, &store, &error) != GAVEL_OK) {
        if (error.status != GAVEL_ERR_STORE_UNAVAILABLE || clock_now() >= limit)
            fail_msg("%s", error.message);
    }
    reply = expect(store, ask_read("nothing"), GAVEL_OK); /* there is a leader */
    assert_false(reply.found);
    store_close(store);
    return 0;
}

int bench_empty(void **state)
{
    struct bench *bench = *state;

    for (int i = 0; i < HOLDERS; i++)
        holder_close(&bench->holders[i]);
    return 0;
}

int bench_tear_down(void **state)
{
    struct bench *bench = *state;

    (void)bench_empty(state); /* always 0 */
    test_cluster_stop(&bench->cluster);
    free(bench);
    return 0;
}

struct holder *holder_open(struct bench *bench, int which, gavel_ms lease_ms)
{
    struct holder *holder = &bench->holders[which];
    const struct store_session_options options = {
        .lease_ms = lease_ms, .drift_ppm = 1000, .names_process = true, .key = &holder->key};
    struct gavel_error error = {0};

    assert_null(holder->store);
    holder->store = open_store(bench->cluster.url);
    if (store_open_session(holder->store, &options, &error) != GAVEL_OK)
        fail_msg("%s", error.message);
    return holder;
}

struct holder *holder_ready(struct bench *bench, int which, gavel_ms lease_ms)
{
    struct holder *holder = holder_open(bench, which, lease_ms);

    assert_int_not_equal(holder_await(holder, STORE_NEWS_SESSION, NULL).session.number, 0);
    return holder;
}

void holder_close(struct holder *holder)
{
    store_close(holder->store);
    *holder = (struct holder){0};
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

bool holder_take(struct holder *holder, struct store_news *ret_news)
{
    if (!store_news(holder->store, ret_news))
        return false;
    expect_in_order(&holder->session, ret_news);
    holder->session = ret_news->session;
    return true;
}

static void await_some(struct holder *holder, gavel_ns until)
{
    struct pollfd fd = {.fd = store_push_fd(holder->store), .events = POLLIN};
    gavel_ns left = ns_max(until - clock_now(), 0);

    assert_true(fd.fd >= 0);
    (void)poll(&fd, 1, (int)ms_from_ns(left) + 1); /* the caller looks again */
}

struct store_news holder_await(struct holder *holder, enum store_news_kind kind, const char *group)
{
    gavel_ns until = clock_now() + LIMIT;
    struct store_news news;

    for (;;) {
        while (holder_take(holder, &news))
            if (news.kind == kind && (!group || strcmp(news.group, group) == 0))
                return news;
        assert_true(clock_now() < until);
        await_some(holder, until);
    }
}

struct record holder_await_mandate(struct holder *holder, const char *group, bool is_ours)
{
    struct store_news news;

    do
        news = holder_await(holder, STORE_NEWS_RECORD, group);
    while (!news.record.held || news.is_ours != is_ours);
    return news.record;
}

void holder_take_all(struct holder *holder)
{
    struct store_news news;

    while (holder_take(holder, &news))
        continue;
}

void holder_idle(struct holder *holder, gavel_ns time)
{
    gavel_ns until = clock_now() + time;

    while (clock_now() < until) {
        holder_take_all(holder);
        await_some(holder, until);
    }
}

struct store_request ask_campaign(const struct holder *holder, const char *group, const char *id,
                                  uint64_t instance)
{
    struct store_request request = ask_heartbeat(group, id, instance, 1);

    request.session = holder->session.number;
    request.campaign.stands = true;
    request.give_up_at = clock_now() + LIMIT;
    return request;
}

struct store_request ask_give_up(const struct holder *holder, const char *group, const char *id,
                                 uint64_t epoch)
{
    struct store_request request = ask_release(group, id, 0, epoch);

    request.session = holder->session.number;
    request.give_up_at = clock_now() + LIMIT;
    return request;
}

struct store_request ask_go(const struct holder *holder, const char *group, const char *id, uint64_t instance)
{
    struct store_request request = ask_leave(group, id, instance);

    request.session = holder->session.number;
    request.give_up_at = clock_now() + LIMIT;
    return request;
}
