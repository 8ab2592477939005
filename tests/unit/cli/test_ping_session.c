/* SPDX-License-Identifier: Apache-2.0 */

/* The rounds of `gavel store ping` on a store with sessions, which is played here. */
#include "cli/store/ping_state.h"

#include "os/wakeup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define NEWS_MAX 16

/* A store with one group and one session. */
struct played {
    struct store store;
    struct store_session session;
    struct store_news news[NEWS_MAX];
    size_t news_count;
    int fd; /* readable all the time */
    bool is_member;
    uint64_t instance;
    uint64_t revision;
    struct record record;
    /* What is to happen. */
    unsigned in_use;         /* so many heartbeats are refused: another ping is there */
    unsigned held_by_others; /* so many find a mandate that somebody claimed */
    bool elects_later;       /* it is told by news, and not by the answer */
    bool is_election_due;    /* when the news that there are have been taken */
    bool tells_late;         /* and before that of the mandate that was released last */
    bool never_opens;
    enum gavel_status release_fails;
    enum gavel_status leave_fails;
    /* What was asked. */
    size_t heartbeats;
    size_t releases;
    size_t leaves;
    size_t others; /* what is never asked of such a store */
    struct store_session_options options;
};

static struct store_news *tell(struct played *played, enum store_news_kind kind)
{
    struct store_news *news = &played->news[played->news_count++];

    assert_true(played->news_count <= NEWS_MAX);
    memset(news, 0, sizeof *news);
    news->kind = kind;
    news->session = played->session;
    return news;
}

static struct store_news *tell_record(struct played *played)
{
    struct store_news *news = tell(played, STORE_NEWS_RECORD);

    (void)snprintf(news->group, sizeof news->group, PING_GROUP);
    news->is_found = news->is_ours = true;
    news->record = played->record;
    return news;
}

static void elect(struct played *played)
{
    played->record.held = true;
    played->record.epoch = played->record.version = ++played->revision;
    (void)snprintf(played->record.holder, sizeof played->record.holder, PING_GROUP);
}

static void show(const struct played *played, struct store_reply *reply)
{
    reply->found = true;
    reply->record = played->record;
    reply->is_ours = played->record.held && strcmp(played->record.holder, PING_GROUP) == 0;
    reply->session = played->session.number;
    reply->revision = played->revision;
}

static void take_heartbeat(struct played *played, const struct store_request *request,
                           struct store_reply *reply)
{
    played->heartbeats++;
    assert_true(request->campaign.stands);
    assert_int_equal(request->session, played->session.number);
    assert_string_equal(request->registration.id, PING_GROUP);
    if (played->in_use > 0) {
        played->in_use--;
        reply->status = GAVEL_ERR_ID_IN_USE;
        return;
    }
    assert_false(played->is_member); /* it has left before */
    assert_true(request->registration.instance != 0);
    assert_true(request->registration.instance != played->instance);
    played->is_member = true;
    played->instance = request->registration.instance;
    if (played->held_by_others > 0) {
        played->held_by_others--;
        show(played, reply);
        reply->record.held = true;
        (void)snprintf(reply->record.holder, sizeof reply->record.holder, "another");
        return;
    }
    if (played->elects_later) {
        show(played, reply);
        if (played->tells_late)
            tell_record(played)->record.held = true;
        played->is_election_due = true;
        return;
    }
    elect(played);
    show(played, reply);
}

static void take_release(struct played *played, const struct store_request *request,
                         struct store_reply *reply)
{
    played->releases++;
    assert_true(request->leaves);
    assert_int_equal(request->session, played->session.number);
    if (played->release_fails != GAVEL_OK) {
        reply->status = played->release_fails;
        return;
    }
    assert_true(played->is_member && played->record.held);
    assert_int_equal(request->record.epoch, played->record.epoch);
    played->is_member = played->record.held = false;
    played->record.version = ++played->revision;
    show(played, reply);
}

static void take_leave(struct played *played, const struct store_request *request, struct store_reply *reply)
{
    played->leaves++;
    reply->status = played->leave_fails;
    if (played->leave_fails != GAVEL_OK)
        return;
    if (!played->is_member || request->registration.instance != played->instance)
        reply->status = GAVEL_ERR_NOT_FOUND;
    played->is_member = false;
    played->record.held = false;
}

static void play(struct store *store, const struct store_request *requests, struct store_reply *replies,
                 size_t count)
{
    struct played *played = (struct played *)store;

    for (size_t i = 0; i < count; i++) {
        assert_string_equal(requests[i].group, PING_GROUP);
        switch (requests[i].op) {
        case STORE_READ:
            show(played, &replies[i]);
            break;
        case STORE_HEARTBEAT:
            assert_true(requests[i].candidate_timeout_ms > 0); /* a cluster refuses it otherwise */
            take_heartbeat(played, &requests[i], &replies[i]);
            break;
        case STORE_RELEASE:
            take_release(played, &requests[i], &replies[i]);
            break;
        case STORE_LEAVE:
            take_leave(played, &requests[i], &replies[i]);
            break;
        default:
            played->others++;
            break;
        }
    }
}

static enum gavel_status open_session(struct store *store, const struct store_session_options *options,
                                      struct gavel_error *error)
{
    struct played *played = (struct played *)store;

    (void)error;
    played->options = *options;
    if (played->never_opens)
        return GAVEL_OK;
    played->session = (struct store_session){.number = 7, .deadline = NEVER / 2, .lasts = NS_PER_S};
    (void)tell(played, STORE_NEWS_SESSION);
    return GAVEL_OK;
}

static bool take(struct store *store, struct store_news *ret_news)
{
    struct played *played = (struct played *)store;

    if (played->news_count == 0) {
        if (played->is_election_due) {
            elect(played);
            (void)tell_record(played);
        }
        played->is_election_due = false;
        return false;
    }
    *ret_news = played->news[0];
    memmove(played->news, played->news + 1, --played->news_count * sizeof *played->news);
    return true;
}

static int push_fd(struct store *store) { return ((struct played *)store)->fd; }

static const struct store_driver driver = {.capabilities = {.name = "played", .has_sessions = true},
                                           .run = play,
                                           .open_session = open_session,
                                           .news = take,
                                           .push_fd = push_fd};

struct scene {
    struct played played;
    struct cli cli;
    struct ping_result result;
    struct gavel_error error;
    struct ping ping;
};

static int set_up(void **state)
{
    struct scene *scene = calloc(1, sizeof *scene);

    assert_non_null(scene);
    scene->played.store.driver = &driver;
    scene->played.fd = wakeup_open();
    wakeup_ring(scene->played.fd);
    scene->cli.config.settings.drift_ppm = 1000;
    scene->result.store = &driver.capabilities;
    scene->ping = (struct ping){.cli = &scene->cli,
                                .result = &scene->result,
                                .store = &scene->played.store,
                                .signals = -1,
                                .error = &scene->error};
    *state = scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;

    for (size_t i = 0; i < PING_OPS; i++)
        samples_done(&scene->result.series[i]);
    wakeup_close(&scene->played.fd);
    free(scene);
    return 0;
}

static size_t counted(const struct scene *scene, enum ping_op op) { return scene->result.series[op].count; }

static void test_a_round_reads_campaigns_and_leaves_nothing_behind(void **state)
{
    struct scene *scene = *state;

    assert_int_equal(ping_session_begin(&scene->ping), GAVEL_OK);
    assert_true(scene->played.options.names_process); /* should it be killed, nobody waits */
    assert_int_equal(scene->played.options.lease_ms, PING_LEASE_MS);
    for (size_t i = 1; i <= 3; i++) {
        assert_int_equal(ping_session_round(&scene->ping), GAVEL_OK);
        assert_int_equal(counted(scene, PING_READ), i);
        assert_int_equal(counted(scene, PING_CAMPAIGN), i);
        assert_int_equal(counted(scene, PING_RELEASE), i);
        assert_false(scene->played.is_member);
        assert_false(scene->played.record.held);
    }
    assert_int_equal(counted(scene, PING_CLAIM) + counted(scene, PING_RENEW), 0);
    assert_int_equal(ping_session_leave(&scene->ping, &scene->error), GAVEL_OK);
    assert_int_equal(scene->played.leaves + scene->played.others, 0); /* it went with the release */
}

static void test_an_election_may_be_told_by_news(void **state)
{
    struct scene *scene = *state;

    assert_int_equal(ping_session_begin(&scene->ping), GAVEL_OK);
    scene->played.elects_later = true;
    for (int i = 0; i < 3; i++)
        assert_int_equal(ping_session_round(&scene->ping), GAVEL_OK);
    assert_int_equal(scene->played.releases, 3);
    assert_false(scene->played.is_member);
}

static void test_other_pings_are_waited_for_and_not_measured(void **state)
{
    struct scene *scene = *state;

    assert_int_equal(ping_session_begin(&scene->ping), GAVEL_OK);
    scene->played.in_use = 3;
    scene->played.held_by_others = 2;
    assert_int_equal(ping_session_round(&scene->ping), GAVEL_OK);
    assert_int_equal(scene->played.heartbeats, 6);
    assert_int_equal(scene->played.leaves, 2); /* so as not to be elected when the other has gone */
    assert_int_equal(counted(scene, PING_CAMPAIGN), 1);
    assert_int_equal(scene->result.failed[PING_CAMPAIGN], 0);
}

static void test_a_signal_ends_the_wait_for_others(void **state)
{
    struct scene *scene = *state;

    assert_int_equal(ping_session_begin(&scene->ping), GAVEL_OK);
    scene->played.in_use = UINT32_MAX;
    scene->result.signal_number = 15;
    assert_int_equal(ping_session_round(&scene->ping), GAVEL_ERR_STOPPED);
    assert_int_equal(scene->played.heartbeats, 1);
    assert_int_equal(counted(scene, PING_CAMPAIGN), 0);
}

static void test_what_a_failed_release_leaves_is_left(void **state)
{
    struct scene *scene = *state;

    assert_int_equal(ping_session_begin(&scene->ping), GAVEL_OK);
    scene->played.release_fails = GAVEL_ERR_TIMEOUT;
    assert_int_equal(ping_session_round(&scene->ping), GAVEL_ERR_TIMEOUT);
    assert_int_equal(scene->result.failed[PING_RELEASE], 1);
    assert_true(scene->played.is_member);
    scene->played.leave_fails = GAVEL_ERR_STORE_UNAVAILABLE;
    assert_int_equal(ping_session_leave(&scene->ping, &scene->error), GAVEL_ERR_STORE_UNAVAILABLE);
    scene->played.leave_fails = GAVEL_OK;
    assert_int_equal(ping_session_leave(&scene->ping, &scene->error), GAVEL_OK);
    assert_false(scene->played.is_member);
    assert_int_equal(ping_session_leave(&scene->ping, &scene->error), GAVEL_OK);
    assert_int_equal(scene->played.leaves, 2); /* nothing is left to leave */
}

static void test_nothing_is_left_to_leave_in_a_session_that_is_lost(void **state)
{
    struct scene *scene = *state;

    assert_int_equal(ping_session_begin(&scene->ping), GAVEL_OK);
    scene->played.release_fails = GAVEL_ERR_SESSION_GONE;
    assert_int_equal(ping_session_round(&scene->ping), GAVEL_ERR_SESSION_GONE);
    scene->played.release_fails = GAVEL_OK;
    scene->played.is_member = scene->played.record.held = false;
    scene->played.session.number = 8;
    (void)tell(&scene->played, STORE_NEWS_SESSION);
    assert_int_equal(ping_session_round(&scene->ping), GAVEL_OK); /* in the next one it goes on */
    assert_int_equal(scene->played.leaves, 0);
}

static void test_a_mandate_of_the_round_before_is_not_taken_for_this_one(void **state)
{
    struct scene *scene = *state;

    assert_int_equal(ping_session_begin(&scene->ping), GAVEL_OK);
    assert_int_equal(ping_session_round(&scene->ping), GAVEL_OK);
    scene->played.elects_later = scene->played.tells_late = true;
    assert_int_equal(ping_session_round(&scene->ping), GAVEL_OK); /* it releases the epoch that is meant */
}

static void test_a_cluster_that_opens_no_session_is_told(void **state)
{
    struct scene *scene = *state;

    scene->played.never_opens = true;
    assert_int_equal(ping_session_begin(&scene->ping), GAVEL_ERR_STORE_UNAVAILABLE);
    assert_non_null(strstr(scene->error.message, "has a leader"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_round_reads_campaigns_and_leaves_nothing_behind),
        TEST(test_an_election_may_be_told_by_news),
        TEST(test_other_pings_are_waited_for_and_not_measured),
        TEST(test_a_signal_ends_the_wait_for_others),
        TEST(test_what_a_failed_release_leaves_is_left),
        TEST(test_nothing_is_left_to_leave_in_a_session_that_is_lost),
        TEST(test_a_mandate_of_the_round_before_is_not_taken_for_this_one),
        TEST(test_a_cluster_that_opens_no_session_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
