/* SPDX-License-Identifier: Apache-2.0 */

/* The session of a client, its deadline and its requests. Time is handed in: nothing waits. */

#include "scripted.h"

#include <string.h>

#define REQUEST GAVEL__CLIENT_FRAME__WHAT_REQUEST
#define KEEP_ALIVE GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE

/* 2 s * (1 - 0.001) / (1 + 0.001), to a microsecond. */
#define SURE (INT64_C(1996003) * NS_PER_US)

static int set_up(void **state)
{
    static struct scripted s;
    struct client_settings settings = scripted_settings(3);

    scripted_begin(&s, &settings);
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    scripted_end(*state);
    return 0;
}

static void test_deadline_counts_from_the_send(void **state)
{
    struct scripted *s = *state;
    gavel_ns sent_at;
    uint64_t tag;

    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "test", 1);
    sent_at = s->now;
    tag = scripted_tag(s, REQUEST);
    s->now += 300 * NS_PER_MS;
    scripted_reply(s, tag, GAVEL_OK, 1);
    assert_int_equal(client_deadline(s->client), sent_at + SURE);
    assert_int_equal(scripted_find(s, CLIENT_DO_DEADLINE, 0)->at, sent_at + SURE);

    scripted_pass(s, sent_at + 2000 * NS_PER_MS / 3);
    sent_at = s->now;
    tag = scripted_tag(s, KEEP_ALIVE);
    s->now += 100 * NS_PER_MS;
    scripted_kept(s, tag, GAVEL_OK, 0);
    assert_int_equal(client_deadline(s->client), sent_at + SURE);
}

/* The session is opened, and its deadline looked at. */
static void open_with_drift(struct scripted *s, uint32_t drift_ppm, gavel_ns sure)
{
    gavel_ns sent_at;

    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome_drift(s, drift_ppm);
    sent_at = s->now;
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 1);
    assert_int_equal(client_deadline(s->client), sent_at + sure);
}

static void test_the_deadline_allows_for_the_clocks_of_the_cluster(void **state)
{
    struct scripted *s = *state;
    gavel_ns sent_at;

    open_with_drift(s, 10000, INT64_C(1960396) * NS_PER_US);
    scripted_event(s, CLIENT_LOST);
    while (scripted_count(s, CLIENT_DO_CONNECT) == 0)
        scripted_pass(s, client_wake_at(s->client));
    /* Another node is too old to tell: what is known holds. */
    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome_drift(s, 0);
    sent_at = s->now;
    scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_OK, 0);
    assert_int_equal(client_deadline(s->client), sent_at + INT64_C(1960396) * NS_PER_US);
}

static void test_a_cluster_with_better_clocks_does_not_lengthen_the_deadline(void **state)
{
    open_with_drift(*state, 10, SURE);
}

static void test_clocks_that_nobody_can_allow_for_are_refused(void **state)
{
    scripted_event(*state, CLIENT_CONNECTED);
    scripted_welcome_drift(*state, UINT32_MAX);
    scripted_expect_dropped(*state, "clocks that differ by more than 100000 ppm");
}

static void test_keep_alives_go_every_third_of_the_time_to_live(void **state)
{
    struct scripted *s = *state;
    gavel_ns begin = s->now;

    scripted_up(s);
    for (int i = 1; i <= 5; i++) {
        assert_int_equal(client_wake_at(s->client), begin + i * (2000 * NS_PER_MS / 3));
        assert_int_equal(scripted_pass(s, begin + i * (2000 * NS_PER_MS / 3)), 1);
        assert_int_equal(scripted_sent(s, KEEP_ALIVE)->keep_alive->sessions[0], SESSION);
        scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_OK, 0);
        assert_int_equal(client_state(s->client), CLIENT_UP);
    }
}

static void test_a_silent_connection_is_followed_by_the_next_address(void **state)
{
    struct scripted *s = *state;
    gavel_ns sent_at;

    scripted_up(s);
    scripted_pass(s, s->now + 2000 * NS_PER_MS / 3);
    assert_non_null(scripted_sent(s, KEEP_ALIVE));
    sent_at = s->now;
    scripted_pass(s, sent_at + NS_PER_S - 1);
    assert_int_equal(client_state(s->client), CLIENT_UP);
    scripted_pass(s, sent_at + NS_PER_S);
    scripted_expect_dropped(s, "keep-alive had no answer");
    assert_int_equal(scripted_count(s, CLIENT_DO_CONNECT), 1);
}

static void test_a_keep_alive_that_is_only_refused_keeps_nothing_alive(void **state)
{
    struct scripted *s = *state;
    gavel_ns deadline, first_at;

    scripted_up(s);
    deadline = client_deadline(s->client);
    scripted_pass(s, s->now + 2000 * NS_PER_MS / 3);
    first_at = s->now;
    while (client_state(s->client) == CLIENT_UP) {
        if (scripted_sent(s, KEEP_ALIVE))
            scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_ERR_NOT_LEADER, 0);
        scripted_pass(s, client_wake_at(s->client));
    }
    assert_int_equal(s->now, first_at + NS_PER_S);
    assert_int_equal(client_deadline(s->client), deadline);
}

static void test_a_reconnect_keeps_the_session_and_repeats_the_request(void **state)
{
    struct scripted *s = *state;
    gavel_ns deadline;
    uint64_t id;

    scripted_up(s);
    deadline = client_deadline(s->client);
    scripted_submit(s, 1, 1, 0, NEVER);
    id = scripted_sent(s, REQUEST)->request->id;
    s->now += NS_PER_MS;
    scripted_event(s, CLIENT_LOST);
    assert_non_null(strstr(client_trouble(s->client), "the cable was cut"));
    assert_int_equal(client_deadline(s->client), deadline);
    if (client_wake_at(s->client) > s->now)
        scripted_pass(s, client_wake_at(s->client));
    assert_int_equal(scripted_count(s, CLIENT_DO_CONNECT), 1);
    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "test", 1);
    assert_int_equal(client_state(s->client), CLIENT_UP);
    assert_int_equal(client_session(s->client), SESSION);
    assert_int_equal(scripted_sent(s, REQUEST)->request->id, id);
    assert_int_equal(scripted_sent(s, REQUEST)->request->session, SESSION);
    assert_non_null(scripted_sent(s, KEEP_ALIVE));
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 1);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->token, 1);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->status, GAVEL_OK);
}

static void test_a_repeated_opening_is_sure_only_from_its_first_send(void **state)
{
    struct scripted *s = *state;
    gavel_ns first_at;
    uint64_t id;

    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "test", 1);
    first_at = s->now;
    id = scripted_sent(s, REQUEST)->request->id;
    s->now += 700 * NS_PER_MS;
    scripted_event(s, CLIENT_LOST);
    scripted_pass(s, s->now);
    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "test", 1);
    assert_int_equal(scripted_sent(s, REQUEST)->request->id, id);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 1);
    assert_int_equal(client_deadline(s->client), first_at + SURE);
    assert_non_null(scripted_sent(s, KEEP_ALIVE)); /* which makes it sure from now on */
}

static void expect_opening(const struct scripted *s, uint64_t id, size_t campaigns)
{
    const Gavel__Request *request = scripted_sent(s, REQUEST)->request;

    assert_int_equal(request->session, client_session(s->client));
    assert_int_equal(request->id, id);
    assert_int_equal(request->n_ops, 1 + campaigns);
    assert_int_equal(request->ops[0]->what_case, GAVEL__OP__WHAT_OPEN_SESSION);
    for (size_t i = 1; i < request->n_ops; i++)
        assert_int_equal(request->ops[i]->what_case, GAVEL__OP__WHAT_CAMPAIGN);
}

static void test_campaigns_that_wait_go_with_the_opening(void **state)
{
    struct scripted *s = *state;
    gavel_ns sent_at;

    scripted_campaign(s, 1);
    scripted_campaign(s, 2);
    scripted_submit(s, 3, 1, 1, NEVER);
    scripted_campaign(s, 4);
    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "test", 1);
    expect_opening(s, 1, 2);
    sent_at = s->now;
    /* Repeated as it is, whatever else is asked for meanwhile. */
    scripted_event(s, CLIENT_LOST);
    scripted_pass(s, s->now);
    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "test", 1);
    expect_opening(s, 1, 2);
    s->now += NS_PER_MS;
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 3);
    assert_int_equal(client_state(s->client), CLIENT_UP);
    assert_int_equal(client_deadline(s->client), sent_at + SURE);
    assert_int_equal(scripted_count(s, CLIENT_DO_RESULT), 2);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 1)->token, 2);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 1)->count, 1);
    assert_int_equal(scripted_sent(s, REQUEST)->request->id, 2);
    assert_int_equal(scripted_sent(s, REQUEST)->request->n_ops, 2); /* the rest */
}

/* A leader of before 0.7.0: there is no such session, or the id was used for another request. Or one that
 * cannot do one of the campaigns. */
static void test_a_leader_that_does_not_take_both_is_asked_for_one_after_the_other(void **state)
{
    static const enum gavel_status refusals[] = {GAVEL_ERR_SESSION_GONE, GAVEL_ERR_STATE,
                                                 GAVEL_ERR_STORE_UNSUPPORTED};

    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct scripted *s = *state;

        scripted_campaign(s, 1);
        scripted_event(s, CLIENT_CONNECTED);
        scripted_welcome(s, "test", 1);
        expect_opening(s, 1, 1);
        scripted_reply(s, scripted_tag(s, REQUEST), refusals[i], 0);
        assert_int_equal(scripted_count(s, CLIENT_DO_RESULT), 0);
        expect_opening(s, 2, 0);
        scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 1);
        assert_int_equal(client_state(s->client), CLIENT_UP);
        assert_int_equal(scripted_sent(s, REQUEST)->request->id, 3);
        scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 1);
        assert_int_equal(scripted_count(s, CLIENT_DO_RESULT), 1);
        tear_down(state);
        set_up(state);
    }
}

/* Without a leader of the cluster a campaign waits no longer because it goes with the opening. */
static void test_a_campaign_that_went_with_the_opening_is_given_up_in_time(void **state)
{
    struct scripted *s = *state;
    gavel_ns sent_at, limit = s->now + 100 * NS_PER_MS;
    uint64_t tag;

    scripted_campaign_by(s, 1, limit);
    scripted_campaign(s, 2);
    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "test", 1);
    expect_opening(s, 1, 2);
    sent_at = s->now;
    s->now += NS_PER_MS;
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_ERR_NO_LEADER, 0);
    while (client_wake_at(s->client) < limit)
        scripted_pass(s, client_wake_at(s->client));
    tag = 2; /* it was asked again, and had no answer */
    assert_int_equal(client_wake_at(s->client), limit);
    scripted_pass(s, limit);
    assert_int_equal(scripted_count(s, CLIENT_DO_RESULT), 1);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->token, 1);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->status, GAVEL_ERR_TIMEOUT);
    assert_non_null(strstr(scripted_find(s, CLIENT_DO_RESULT, 0)->message, "unknown"));
    /* The session is opened without it, under a higher id, so that a late one is refused. */
    expect_opening(s, 2, 0);
    /* An answer to the request before tells nothing any more. */
    {
        uint64_t newest = scripted_tag(s, REQUEST);

        scripted_reply(s, tag, GAVEL_OK, 3);
        assert_int_equal(client_state(s->client), CLIENT_OPENING);
        assert_int_equal(scripted_count(s, CLIENT_DO_RESULT), 0);
        /* It may have been opened by the first request: what is sure counts from there. */
        scripted_reply(s, newest, GAVEL_OK, 1);
    }
    assert_int_equal(client_deadline(s->client), sent_at + SURE);
    assert_int_equal(scripted_sent(s, REQUEST)->request->id, 3);
    assert_int_equal(scripted_sent(s, REQUEST)->request->n_ops, 1);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 1);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->token, 2);
}

/* The answer is lost with the leader, which may have carried out all of the opening. What is not given up
 * with the first limit waits again, and is not what was never sent. */
static void test_a_campaign_that_was_sent_is_never_said_to_be_undone(void **state)
{
    struct scripted *s = *state;
    gavel_ns first = s->now + 100 * NS_PER_MS, second = s->now + 200 * NS_PER_MS;

    scripted_campaign_by(s, 1, first);
    scripted_campaign_by(s, 2, second);
    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "test", 1);
    expect_opening(s, 1, 2);
    scripted_event(s, CLIENT_LOST);
    scripted_campaign_by(s, 3, second); /* never sent */
    while (client_wake_at(s->client) < first)
        scripted_pass(s, client_wake_at(s->client));
    scripted_pass(s, first);
    assert_int_equal(scripted_count(s, CLIENT_DO_RESULT), 1);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->token, 1);
    assert_non_null(strstr(scripted_find(s, CLIENT_DO_RESULT, 0)->message, "unknown"));
    while (client_wake_at(s->client) < second)
        scripted_pass(s, client_wake_at(s->client));
    scripted_pass(s, second);
    assert_int_equal(scripted_count(s, CLIENT_DO_RESULT), 2);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->token, 2);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->status, GAVEL_ERR_TIMEOUT);
    assert_non_null(strstr(scripted_find(s, CLIENT_DO_RESULT, 0)->message, "unknown"));
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 1)->token, 3);
    assert_non_null(strstr(scripted_find(s, CLIENT_DO_RESULT, 1)->message, "nothing was done"));
}

static void test_close_while_an_opening_with_campaigns_is_unanswered(void **state)
{
    struct scripted *s = *state;
    uint64_t tag;

    scripted_campaign(s, 1);
    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "test", 1);
    tag = scripted_tag(s, REQUEST);
    scripted_event(s, CLIENT_CLOSE);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->status, GAVEL_ERR_STOPPED);
    scripted_reply(s, tag, GAVEL_OK, 2);
    assert_int_equal(scripted_sent(s, REQUEST)->request->ops[0]->what_case, GAVEL__OP__WHAT_CLOSE_SESSION);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 1);
    assert_int_equal(client_state(s->client), CLIENT_CLOSED);
}

static void expect_lost(const struct scripted *s)
{
    assert_int_equal(scripted_count(s, CLIENT_DO_SESSION_LOST), 1);
    assert_int_equal(scripted_find(s, CLIENT_DO_DEADLINE, 0)->at, 0);
    assert_int_equal(client_deadline(s->client), 0);
    assert_int_not_equal(client_session(s->client), SESSION);
    assert_int_not_equal(client_session(s->client), 0);
    assert_int_equal(client_state(s->client), CLIENT_OPENING);
}

static void test_a_session_that_is_gone_is_opened_anew_under_another_id(void **state)
{
    struct scripted *s = *state;
    uint64_t late;

    scripted_up(s);
    scripted_submit(s, 1, 1, 0, NEVER);
    late = scripted_tag(s, REQUEST);
    scripted_submit(s, 2, 1, 0, NEVER);
    scripted_pass(s, s->now + 2000 * NS_PER_MS / 3);
    scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_OK, SESSION);
    expect_lost(s);
    assert_int_equal(scripted_count(s, CLIENT_DO_RESULT), 2);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->token, 1);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->status, GAVEL_ERR_SESSION_GONE);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 1)->token, 2);
    assert_int_equal(scripted_sent(s, REQUEST)->request->session, client_session(s->client));
    assert_int_equal(scripted_sent(s, REQUEST)->request->id, 1);
    assert_int_equal(scripted_sent(s, REQUEST)->request->ops[0]->open_session->session,
                     client_session(s->client));
    {
        uint64_t opening = scripted_tag(s, REQUEST);
        gavel_ns sent_at = s->now;

        scripted_reply(s, late, GAVEL_OK, 1); /* of the old one: for nobody, and no mistake */
        assert_int_equal(s->actions->count, 0);
        scripted_reply(s, opening, GAVEL_OK, 1);
        assert_int_equal(client_deadline(s->client), sent_at + SURE);
    }
}

static void test_a_request_that_finds_the_session_gone_says_so(void **state)
{
    struct scripted *s = *state;

    scripted_up(s);
    scripted_submit(s, 1, 1, 0, NEVER);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_ERR_SESSION_GONE, 0);
    expect_lost(s);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->status, GAVEL_ERR_SESSION_GONE);
}

static void test_another_s_session_that_is_gone_is_none_of_ours(void **state)
{
    struct scripted *s = *state;

    scripted_up(s);
    scripted_pass(s, s->now + 2000 * NS_PER_MS / 3);
    scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_OK, SESSION + 1);
    assert_int_equal(scripted_count(s, CLIENT_DO_SESSION_LOST), 0);
    assert_int_equal(client_session(s->client), SESSION);
}

/* Ours has expired, and a stopped node that went on has carried a copy of its opening to the leader. */
static void test_a_session_that_was_opened_anew_under_our_id_is_not_ours(void **state)
{
    struct scripted *s = *state;

    s->session_revision = 7;
    assert_int_equal(client_session_number(s->client), 0);
    scripted_up(s);
    assert_int_equal(client_session_number(s->client), 7);
    scripted_pass(s, s->now + 2000 * NS_PER_MS / 3);
    scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_OK, 0);
    assert_int_equal(scripted_count(s, CLIENT_DO_SESSION_LOST), 0);
    scripted_pass(s, s->now + 2000 * NS_PER_MS / 3);
    s->session_revision = 90;
    scripted_submit(s, 1, 1, 0, NEVER);
    scripted_pass(s, s->now + 2000 * NS_PER_MS / 3);
    scripted_event(s, CLIENT_LOST);
    scripted_pass(s, s->now + 5000 * NS_PER_MS);
    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "test", 1);
    scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_OK, 0);
    expect_lost(s);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->status, GAVEL_ERR_SESSION_GONE);
    assert_int_equal(client_session_number(s->client), 0);
}

/*
 * The opening was carried out at 3 and its session was granted something, but the answer was lost. The
 * session has expired, and the copy of the opening that is answered has opened it anew at 97.
 */
static void test_what_is_older_than_our_session_is_of_a_former_one(void **state)
{
    struct scripted *s = *state;

    s->session_revision = 97;
    assert_false(client_is_own(s->client, SESSION, 3));
    assert_false(client_is_own(s->client, SESSION, 98)); /* it is not known to be open */
    scripted_up(s);
    assert_int_equal(client_session(s->client), SESSION);
    assert_false(client_is_own(s->client, SESSION, 3));
    assert_false(client_is_own(s->client, SESSION, 96));
    assert_true(client_is_own(s->client, SESSION, 97)); /* campaigns that went with the opening */
    assert_true(client_is_own(s->client, SESSION, 98));
    assert_false(client_is_own(s->client, SESSION + 1, 98));
    assert_false(client_is_own(s->client, 0, 98));
}

static void test_a_node_that_does_not_tell_which_session_it_keeps_is_believed(void **state)
{
    struct scripted *s = *state;
    uint64_t number;

    scripted_up(s);
    number = client_session_number(s->client);
    assert_true(number > UINT64_C(1) << 62);        /* no revision is that high */
    for (uint64_t told = 0; told <= 7; told += 7) { /* nobody tells; then a newer leader does */
        s->session_revision = told;
        scripted_pass(s, s->now + 2000 * NS_PER_MS / 3);
        scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_OK, 0);
        assert_int_equal(scripted_count(s, CLIENT_DO_SESSION_LOST), 0);
        assert_int_equal(client_session_number(s->client), number);
    }
    s->session_revision = 0; /* an older one leads again */
    scripted_pass(s, s->now + 2000 * NS_PER_MS / 3);
    scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_OK, 0);
    assert_int_equal(scripted_count(s, CLIENT_DO_SESSION_LOST), 0);
    s->session_revision = 8;
    scripted_pass(s, s->now + 2000 * NS_PER_MS / 3);
    scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_OK, 0);
    expect_lost(s);
    s->session_revision = 0;
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 1);
    assert_true(client_session_number(s->client) > number);
}

static void test_without_a_leader_a_request_is_tried_again_with_the_same_id(void **state)
{
    const gavel_ns pauses[] = {5 * NS_PER_MS, 10 * NS_PER_MS, 20 * NS_PER_MS, 40 * NS_PER_MS};
    struct scripted *s = *state;
    uint64_t id;

    scripted_up(s);
    scripted_submit(s, 1, 1, 0, NEVER);
    id = scripted_sent(s, REQUEST)->request->id;
    for (size_t i = 0; i < 4; i++) {
        gavel_ns refused_at = s->now;

        scripted_reply(s, scripted_tag(s, REQUEST),
                       i % 2 ? GAVEL_ERR_NOT_LEADER : GAVEL_ERR_STORE_UNAVAILABLE, 0);
        assert_int_equal(scripted_count(s, CLIENT_DO_RESULT), 0);
        assert_int_equal(client_wake_at(s->client), refused_at + pauses[i]);
        scripted_pass(s, refused_at + pauses[i]);
        assert_int_equal(scripted_sent(s, REQUEST)->request->id, id);
    }
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 1);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->status, GAVEL_OK);
}

static void test_another_failure_is_told_to_all_and_the_next_id_is_higher(void **state)
{
    struct scripted *s = *state;
    uint64_t id;

    scripted_up(s);
    scripted_submit(s, 1, 1, 0, NEVER);
    id = scripted_sent(s, REQUEST)->request->id;
    scripted_submit(s, 2, 1, 0, NEVER);
    assert_int_equal(s->actions->count, 0); /* one at a time */
    scripted_submit(s, 3, 2, 0, NEVER);
    scripted_reply(s, 3 /* hello has no tag; opening 1, request 2 */, GAVEL_OK, 1);
    scripted_expect_dropped(s, "it answers what was not asked");
    scripted_pass(s, s->now + 500 * NS_PER_MS);
    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "test", 1);
    assert_int_equal(scripted_sent(s, REQUEST)->request->id, id);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 1);
    assert_int_equal(scripted_sent(s, REQUEST)->request->id, id + 1);
    assert_int_equal(scripted_sent(s, REQUEST)->request->n_ops, 3);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_ERR_INVALID, 0);
    assert_int_equal(scripted_count(s, CLIENT_DO_RESULT), 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, i)->token, 2 + i);
        assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, i)->status, GAVEL_ERR_INVALID);
        assert_string_equal(scripted_find(s, CLIENT_DO_RESULT, i)->message, "so it is");
    }
    scripted_submit(s, 4, 1, 0, NEVER);
    assert_int_equal(scripted_sent(s, REQUEST)->request->id, id + 2);
}

static void test_submits_that_wait_go_together_and_each_gets_its_part(void **state)
{
    struct scripted *s = *state;

    scripted_up(s);
    scripted_submit(s, 1, 1, 0, NEVER);
    {
        uint64_t tag = scripted_tag(s, REQUEST);

        scripted_submit(s, 2, 200, 0, NEVER);
        scripted_submit(s, 3, 300, 0, NEVER);
        scripted_submit(s, 4, 13, 0, NEVER);
        scripted_reply(s, tag, GAVEL_OK, 1);
    }
    assert_int_equal(scripted_sent(s, REQUEST)->request->n_ops, 500);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 500);
    assert_int_equal(scripted_count(s, CLIENT_DO_RESULT), 2);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->count, 200);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->results[0]->revision, 1);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 1)->token, 3);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 1)->count, 300);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 1)->results[0]->revision, 201);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 1)->results[299]->revision, 500);
    assert_int_equal(scripted_sent(s, REQUEST)->request->n_ops, 13);
}

static void test_a_request_stays_below_half_a_mebibyte(void **state)
{
    struct scripted *s = *state;
    uint64_t tag;

    scripted_up(s);
    scripted_submit(s, 1, 1, 0, NEVER);
    tag = scripted_tag(s, REQUEST);
    for (uint64_t token = 2; token < 12; token++)
        scripted_submit(s, token, 1, 60000, NEVER);
    scripted_submit(s, 12, 10, 60000, NEVER); /* larger by itself: it goes alone */
    scripted_reply(s, tag, GAVEL_OK, 1);
    assert_int_equal(scripted_sent(s, REQUEST)->request->n_ops, 8);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 8);
    assert_int_equal(scripted_sent(s, REQUEST)->request->n_ops, 2);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 2);
    assert_int_equal(scripted_sent(s, REQUEST)->request->n_ops, 10);
}

static void test_what_a_node_will_refuse_costs_nobody_else(void **state)
{
    struct scripted *s = *state;
    uint64_t tag;

    scripted_up(s);
    scripted_submit(s, 1, 1, 0, NEVER);
    tag = scripted_tag(s, REQUEST);
    scripted_submit(s, 2, 3, 0, NEVER);
    scripted_submit(s, 3, 1, TABLE_NOTE_BYTES_MAX + 1, NEVER);
    scripted_submit(s, 4, 5, 0, NEVER);
    scripted_submit(s, 5, 1, 0, NEVER);
    scripted_reply(s, tag, GAVEL_OK, 1);
    assert_int_equal(scripted_sent(s, REQUEST)->request->n_ops, 3);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 3);
    assert_int_equal(scripted_sent(s, REQUEST)->request->n_ops, 1);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_ERR_TOO_LARGE, 0);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->token, 3);
    assert_int_equal(scripted_sent(s, REQUEST)->request->n_ops, 6);
}

static void expect_refused(const struct scripted *s, enum gavel_status status)
{
    assert_int_equal(s->actions->count, 1);
    assert_int_equal(s->actions->items[0].kind, CLIENT_DO_RESULT);
    assert_int_equal(s->actions->items[0].status, status);
    assert_true(strlen(s->actions->items[0].message) > 0);
}

static void test_submits_beyond_the_limits_are_refused_at_once(void **state)
{
    struct scripted *s = *state;

    scripted_up(s);
    scripted_submit(s, 1, 0, 0, NEVER);
    expect_refused(s, GAVEL_ERR_INVALID);
    scripted_submit(s, 1, TABLE_OPS_MAX + 1, 0, NEVER);
    expect_refused(s, GAVEL_ERR_INVALID);
    scripted_submit(s, 1, 17, 65536, NEVER);
    expect_refused(s, GAVEL_ERR_TOO_LARGE);
    scripted_event(s, CLIENT_LOST);
    for (size_t i = 0; i < 66; i++) /* a mebibyte each */
        scripted_submit(s, 1, 15, 65536, NEVER);
    assert_int_equal(scripted_count(s, CLIENT_DO_RESULT), 0);
    for (size_t i = 0; i < 4; i++)
        scripted_submit(s, 1, 15, 65536, NEVER);
    expect_refused(s, GAVEL_ERR_STORE_UNAVAILABLE);
}

static void test_results_that_do_not_fit_the_operations_end_the_connection(void **state)
{
    struct scripted *s = *state;

    scripted_up(s);
    scripted_submit(s, 1, 2, 0, NEVER);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 3);
    scripted_expect_dropped(s, "the number of results");
    assert_int_equal(scripted_count(s, CLIENT_DO_RESULT), 0); /* it is asked again, elsewhere */
}

static void test_only_what_was_never_sent_is_given_up(void **state)
{
    struct scripted *s = *state;
    gavel_ns limit = s->now + 100 * NS_PER_MS;
    uint64_t tag;

    scripted_up(s);
    scripted_submit(s, 1, 1, 0, limit);
    tag = scripted_tag(s, REQUEST);
    scripted_submit(s, 2, 1, 0, limit);
    scripted_submit(s, 3, 1, 0, limit + 1);
    assert_int_equal(scripted_pass(s, limit), 1);
    assert_int_equal(scripted_count(s, CLIENT_DO_RESULT), 1);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->token, 2);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->status, GAVEL_ERR_TIMEOUT);
    assert_int_equal(scripted_pass(s, limit + 1), 1);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->token, 3);
    scripted_reply(s, tag, GAVEL_OK, 1);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->token, 1);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->status, GAVEL_OK);
}

static void test_a_full_cluster_is_asked_again_for_a_session_and_the_trouble_says_why(void **state)
{
    struct scripted *s = *state;

    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "test", 1);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_ERR_STORE_FULL, 0);
    assert_int_equal(client_state(s->client), CLIENT_OPENING);
    assert_non_null(strstr(client_trouble(s->client), "ERR_STORE_FULL"));
    assert_int_equal(client_wake_at(s->client), s->now + 500 * NS_PER_MS);
    scripted_pass(s, s->now + 500 * NS_PER_MS);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 1);
    assert_int_equal(client_state(s->client), CLIENT_UP);
}

static void test_close_ends_the_session_after_everything_that_waits(void **state)
{
    struct scripted *s = *state;
    uint64_t tag;

    scripted_up(s);
    scripted_submit(s, 1, 1, 0, NEVER);
    tag = scripted_tag(s, REQUEST);
    scripted_submit(s, 2, 1, 0, NEVER);
    scripted_event(s, CLIENT_CLOSE);
    assert_int_equal(s->actions->count, 0);
    scripted_submit(s, 3, 1, 0, NEVER);
    expect_refused(s, GAVEL_ERR_STOPPED);
    scripted_reply(s, tag, GAVEL_OK, 1);
    assert_int_equal(scripted_sent(s, REQUEST)->request->n_ops, 2);
    assert_int_equal(scripted_sent(s, REQUEST)->request->ops[1]->what_case, GAVEL__OP__WHAT_CLOSE_SESSION);
    assert_int_equal(scripted_sent(s, REQUEST)->request->ops[1]->close_session->session, SESSION);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 2);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->token, 2);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->count, 1);
    assert_int_equal(scripted_count(s, CLIENT_DO_CLOSED), 1);
    assert_int_equal(client_state(s->client), CLIENT_CLOSED);
    assert_int_equal(client_deadline(s->client), 0);
    assert_int_equal(client_wake_at(s->client), NEVER);
    scripted_submit(s, 4, 1, 0, NEVER);
    expect_refused(s, GAVEL_ERR_STOPPED);
}

static void test_close_without_any_node_ends_at_the_deadline(void **state)
{
    struct scripted *s = *state;
    gavel_ns deadline;

    scripted_up(s);
    deadline = client_deadline(s->client);
    scripted_event(s, CLIENT_LOST);
    scripted_event(s, CLIENT_CLOSE);
    scripted_submit(s, 1, 1, 0, NEVER);
    assert_int_equal(scripted_count(s, CLIENT_DO_CLOSED), 0);
    scripted_pass(s, deadline - 1);
    assert_int_not_equal(client_state(s->client), CLIENT_CLOSED);
    scripted_pass(s, deadline);
    assert_int_equal(scripted_count(s, CLIENT_DO_CLOSED), 1);
}

static void test_close_of_a_session_that_was_never_asked_for_is_immediate(void **state)
{
    struct scripted *s = *state;

    scripted_event(s, CLIENT_CONNECTED);
    scripted_event(s, CLIENT_CLOSE);
    assert_int_equal(scripted_count(s, CLIENT_DO_CLOSED), 1);
    assert_int_equal(scripted_count(s, CLIENT_DO_DISCONNECT), 1);
}

static void test_close_while_the_opening_is_unanswered_closes_what_may_be_open(void **state)
{
    struct scripted *s = *state;

    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "test", 1);
    scripted_event(s, CLIENT_LOST);
    scripted_event(s, CLIENT_CLOSE);
    scripted_pass(s, s->now);
    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "test", 1);
    assert_int_equal(scripted_sent(s, REQUEST)->request->ops[0]->what_case, GAVEL__OP__WHAT_CLOSE_SESSION);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_ERR_SESSION_GONE, 0);
    assert_int_equal(scripted_count(s, CLIENT_DO_CLOSED), 1);
    assert_int_equal(scripted_count(s, CLIENT_DO_SESSION_LOST), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_deadline_counts_from_the_send),
        T(test_the_deadline_allows_for_the_clocks_of_the_cluster),
        T(test_a_cluster_with_better_clocks_does_not_lengthen_the_deadline),
        T(test_clocks_that_nobody_can_allow_for_are_refused),
        T(test_keep_alives_go_every_third_of_the_time_to_live),
        T(test_a_silent_connection_is_followed_by_the_next_address),
        T(test_a_keep_alive_that_is_only_refused_keeps_nothing_alive),
        T(test_a_reconnect_keeps_the_session_and_repeats_the_request),
        T(test_a_repeated_opening_is_sure_only_from_its_first_send),
        T(test_campaigns_that_wait_go_with_the_opening),
        T(test_a_leader_that_does_not_take_both_is_asked_for_one_after_the_other),
        T(test_a_campaign_that_went_with_the_opening_is_given_up_in_time),
        T(test_a_campaign_that_was_sent_is_never_said_to_be_undone),
        T(test_close_while_an_opening_with_campaigns_is_unanswered),
        T(test_a_session_that_is_gone_is_opened_anew_under_another_id),
        T(test_a_request_that_finds_the_session_gone_says_so),
        T(test_another_s_session_that_is_gone_is_none_of_ours),
        T(test_a_session_that_was_opened_anew_under_our_id_is_not_ours),
        T(test_what_is_older_than_our_session_is_of_a_former_one),
        T(test_a_node_that_does_not_tell_which_session_it_keeps_is_believed),
        T(test_without_a_leader_a_request_is_tried_again_with_the_same_id),
        T(test_another_failure_is_told_to_all_and_the_next_id_is_higher),
        T(test_submits_that_wait_go_together_and_each_gets_its_part),
        T(test_a_request_stays_below_half_a_mebibyte),
        T(test_what_a_node_will_refuse_costs_nobody_else),
        T(test_submits_beyond_the_limits_are_refused_at_once),
        T(test_results_that_do_not_fit_the_operations_end_the_connection),
        T(test_only_what_was_never_sent_is_given_up),
        T(test_a_full_cluster_is_asked_again_for_a_session_and_the_trouble_says_why),
        T(test_close_ends_the_session_after_everything_that_waits),
        T(test_close_without_any_node_ends_at_the_deadline),
        T(test_close_of_a_session_that_was_never_asked_for_is_immediate),
        T(test_close_while_the_opening_is_unanswered_closes_what_may_be_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
