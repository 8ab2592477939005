/* SPDX-License-Identifier: Apache-2.0 */

/* A session that is asked for later than the connection, and keep-alives that wait for the caller. */

#include "scripted.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUEST GAVEL__CLIENT_FRAME__WHAT_REQUEST
#define KEEP_ALIVE GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE
#define WATCH GAVEL__CLIENT_FRAME__WHAT_WATCH
#define ASK GAVEL__CLIENT_FRAME__WHAT_ASK

#define PACE (2000 * NS_PER_MS / 3)
/* 2 s * (1 - 0.001) / (1 + 0.001), to a microsecond. */
#define SURE (INT64_C(1996003) * NS_PER_US)

static int set_up(void **state)
{
    static struct scripted s;
    struct client_settings settings = scripted_settings(3);

    settings.ttl_ms = 0;
    settings.session = 0;
    scripted_begin(&s, &settings);
    s.session_revision = 7;
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    scripted_end(*state);
    return 0;
}

static const struct client_open paced = {.ttl_ms = TTL_MS, .session = SESSION, .is_paced = true};
static const struct client_open unpaced = {.ttl_ms = TTL_MS, .session = SESSION};

static void greeted(struct scripted *s)
{
    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome(s, "test", 1);
}

/* To the next connection, which is greeted. */
static void connect_again(struct scripted *s)
{
    scripted_event(s, CLIENT_LOST);
    while (scripted_count(s, CLIENT_DO_CONNECT) == 0)
        scripted_pass(s, client_wake_at(s->client));
    greeted(s);
}

/* The opening is in the newest step; its answer comes at once. */
static void answer_opening(struct scripted *s)
{
    const Gavel__Request *request = scripted_sent(s, REQUEST)->request;

    assert_int_equal(request->ops[0]->what_case, GAVEL__OP__WHAT_OPEN_SESSION);
    assert_int_equal(request->session, client_session(s->client));
    assert_int_equal(request->ops[0]->open_session->session, client_session(s->client));
    assert_int_equal(request->ops[0]->open_session->ttl_ms, TTL_MS);
    scripted_reply(s, request->tag, GAVEL_OK, 1);
    assert_int_equal(client_state(s->client), CLIENT_UP);
    assert_int_equal(client_deadline(s->client), s->now + SURE);
    assert_int_equal(scripted_find(s, CLIENT_DO_DEADLINE, 0)->at, s->now + SURE);
    assert_int_equal(scripted_find(s, CLIENT_DO_DEADLINE, 0)->number, client_session_number(s->client));
}

static void up_paced(struct scripted *s)
{
    greeted(s);
    scripted_open(s, &paced);
    answer_opening(s);
}

/* The next keep-alive is sent when it is due, and answered. */
static void keep(struct scripted *s)
{
    gavel_ns sent_at;

    if (!scripted_sent(s, KEEP_ALIVE))
        assert_int_equal(scripted_pass(s, client_wake_at(s->client)), 1);
    sent_at = s->now;
    scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_OK, 0);
    assert_int_equal(client_deadline(s->client), sent_at + SURE);
    assert_int_equal(scripted_find(s, CLIENT_DO_DEADLINE, 0)->number, client_session_number(s->client));
}

/* Nothing is sent until then, whatever is due. */
static void expect_silence(struct scripted *s, gavel_ns until)
{
    gavel_ns deadline = client_deadline(s->client);

    assert_true(client_wake_at(s->client) > until);
    assert_int_equal(scripted_pass(s, until), 0);
    scripted_event(s, CLIENT_TIMER);
    assert_int_equal(s->actions->count, 0);
    assert_int_equal(client_deadline(s->client), deadline);
}

/* How far the connection has come when the session is asked for. */
static void go_to(struct scripted *s, enum client_state state)
{
    if (state != CLIENT_AWAY)
        scripted_event(s, CLIENT_CONNECTED);
    if (state == CLIENT_UP)
        scripted_welcome(s, "test", 1);
    assert_int_equal(client_state(s->client), state);
}

static void test_a_session_can_be_asked_for_in_every_state(void **state)
{
    static const enum client_state states[] = {CLIENT_AWAY, CLIENT_GREETING, CLIENT_UP};
    static const enum client_state after[] = {CLIENT_AWAY, CLIENT_GREETING, CLIENT_OPENING};

    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct scripted *s = *state;

        go_to(s, states[i]);
        assert_int_equal(client_session(s->client), 0);
        scripted_open(s, &unpaced);
        assert_int_equal(client_state(s->client), after[i]);
        assert_int_equal(client_session(s->client), SESSION);
        assert_int_equal(client_deadline(s->client), 0);
        assert_int_equal(client_session_number(s->client), 0);
        assert_int_equal(scripted_sent(s, REQUEST) != NULL, states[i] == CLIENT_UP);
        if (states[i] == CLIENT_AWAY)
            scripted_event(s, CLIENT_CONNECTED);
        if (states[i] != CLIENT_UP)
            scripted_welcome(s, "test", 1);
        answer_opening(s);
        assert_int_equal(client_session_number(s->client), 7);
        keep(s);
        tear_down(state);
        set_up(state);
    }
}

/* The connection is lost while the session is asked for, in every state. */
static void test_a_session_that_was_asked_for_outlives_connections(void **state)
{
    static const enum client_state states[] = {CLIENT_AWAY, CLIENT_GREETING, CLIENT_UP};

    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct scripted *s = *state;

        go_to(s, states[i]);
        scripted_open(s, &unpaced);
        s->now += NS_PER_MS;
        connect_again(s);
        assert_int_equal(scripted_sent(s, REQUEST)->request->id, 1);
        scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 1);
        assert_int_equal(client_state(s->client), CLIENT_UP);
        assert_int_equal(client_session(s->client), SESSION);
        tear_down(state);
        set_up(state);
    }
}

static void test_what_is_under_way_goes_on_when_a_session_is_asked_for(void **state)
{
    struct scripted *s = *state;
    uint64_t asked, watched;

    greeted(s);
    scripted_ask(s, 1, NEVER);
    asked = scripted_tag(s, ASK);
    scripted_watch(s, 2, "g", 0);
    watched = scripted_tag(s, WATCH);
    scripted_open(s, &unpaced);
    assert_int_equal(scripted_count(s, CLIENT_DO_SEND), 1); /* the opening, and nothing again */
    assert_int_equal(scripted_count(s, CLIENT_DO_DISCONNECT), 0);
    {
        uint64_t opening = scripted_tag(s, REQUEST);

        scripted_answer(s, asked, GAVEL_OK);
        assert_int_equal(scripted_find(s, CLIENT_DO_ANSWER, 0)->token, 1);
        scripted_changes(s, watched, 5, NULL);
        assert_int_equal(scripted_find(s, CLIENT_DO_WATCHING, 0)->token, 2);
        scripted_reply(s, opening, GAVEL_OK, 1);
    }
    assert_int_equal(client_state(s->client), CLIENT_UP);
    assert_int_equal(scripted_count(s, CLIENT_DO_SEND), 0);
    scripted_changes(s, watched, 9, (uint64_t[]){9, 0});
    assert_int_equal(scripted_find(s, CLIENT_DO_CHANGE, 0)->token, 2);
}

/* A shorter patience would end the connection for what was asked long before. */
static void test_a_question_under_way_has_all_of_the_new_patience(void **state)
{
    static const struct client_open hasty = {
        .ttl_ms = TTL_MS, .session = SESSION, .silence = 100 * NS_PER_MS};
    struct scripted *s = *state;
    gavel_ns from;

    greeted(s);
    scripted_ask(s, 1, NEVER);
    s->now += 900 * NS_PER_MS;
    scripted_open(s, &hasty);
    from = s->now;
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 1);
    scripted_pass(s, from + 200 * NS_PER_MS - 1);
    assert_int_equal(client_state(s->client), CLIENT_UP);
    scripted_pass(s, from + 200 * NS_PER_MS);
    scripted_expect_dropped(s, "a question had no answer within 200 ms");
}

static void test_the_silence_that_is_borne_is_that_of_the_time_to_live(void **state)
{
    struct scripted *s = *state;
    gavel_ns sent_at;

    greeted(s);
    scripted_open(s, &unpaced);
    answer_opening(s);
    scripted_pass(s, client_wake_at(s->client));
    assert_non_null(scripted_sent(s, KEEP_ALIVE));
    sent_at = s->now;
    scripted_pass(s, sent_at + NS_PER_S - 1);
    assert_int_equal(client_state(s->client), CLIENT_UP);
    scripted_pass(s, sent_at + NS_PER_S);
    scripted_expect_dropped(s, "a keep-alive had no answer within 1000 ms");
}

static void test_only_a_session_that_was_asked_for_is_waited_for(void **state)
{
    struct scripted *s = *state;

    scripted_campaign(s, 1);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->status, GAVEL_ERR_STATE);
    scripted_watch_session(s, 2);
    assert_int_equal(scripted_find(s, CLIENT_DO_GAP, 0)->status, GAVEL_ERR_INVALID);
    scripted_open(s, &unpaced);
    scripted_campaign(s, 3);
    scripted_watch_session(s, 4);
    scripted_submit(s, 5, 1, 1, NEVER);
    assert_int_equal(s->actions->count, 0);
    greeted(s);
    assert_int_equal(scripted_count(s, CLIENT_DO_SEND), 1);
    assert_int_equal(scripted_sent(s, REQUEST)->request->n_ops, 2); /* the campaign goes with it */
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 2);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->token, 3);
    assert_int_equal(scripted_sent(s, WATCH)->watch->session, SESSION);
    assert_int_equal(scripted_sent(s, REQUEST)->request->id, 2);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 1);
    assert_int_equal(scripted_find(s, CLIENT_DO_RESULT, 0)->token, 5);
}

static void test_a_session_names_the_process_and_a_later_one_too(void **state)
{
    struct scripted *s = *state;
    struct client_open open = unpaced;

    open.process = (struct table_process){.boot_id = "b", .pid = 42, .pid_ns = 3, .start_ticks = 5};
    greeted(s);
    scripted_open(s, &open);
    for (int i = 0; i < 2; i++) {
        const Gavel__OpenSession *sent = scripted_sent(s, REQUEST)->request->ops[0]->open_session;

        assert_string_equal(sent->process->boot_id, "b");
        assert_int_equal(sent->process->pid, 42);
        assert_int_equal(sent->process->pid_ns, 3);
        assert_int_equal(sent->process->start_ticks, 5);
        answer_opening(s);
        scripted_pass(s, client_wake_at(s->client));
        scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_OK, client_session(s->client));
    }
}

static void test_how_long_a_session_lasts_depends_on_the_clocks_of_the_cluster(void **state)
{
    struct scripted *s = *state;

    assert_int_equal(client_session_lasts(s->client), 0);
    scripted_open(s, &unpaced);
    assert_int_equal(client_session_lasts(s->client), SURE);
    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome_drift(s, 10000);
    assert_int_equal(client_session_lasts(s->client), INT64_C(1960396) * NS_PER_US);
    assert_int_equal(client_deadline(s->client), 0);
}

static void test_close_before_and_after_a_session_was_asked_for(void **state)
{
    struct scripted *s = *state;

    /* Nothing was sent of it. */
    scripted_open(s, &unpaced);
    scripted_event(s, CLIENT_CLOSE);
    assert_int_equal(scripted_count(s, CLIENT_DO_CLOSED), 1);
    scripted_open(s, &unpaced); /* too late: it has no effect */
    assert_int_equal(s->actions->count, 0);
    tear_down(state);
    set_up(state);
    up_paced(s);
    scripted_event(s, CLIENT_CLOSE); /* the deadline was not taken */
    assert_int_equal(scripted_sent(s, REQUEST)->request->ops[0]->what_case, GAVEL__OP__WHAT_CLOSE_SESSION);
    scripted_reply(s, scripted_tag(s, REQUEST), GAVEL_OK, 1);
    assert_int_equal(scripted_count(s, CLIENT_DO_CLOSED), 1);
    assert_int_equal(scripted_find(s, CLIENT_DO_DEADLINE, 0)->at, 0);
    assert_int_equal(scripted_find(s, CLIENT_DO_DEADLINE, 0)->number, 7);
}

static void test_an_unpaced_session_needs_nobody_who_takes(void **state)
{
    struct scripted *s = *state;

    greeted(s);
    scripted_open(s, &unpaced);
    answer_opening(s);
    for (int i = 0; i < 5; i++)
        keep(s);
}

static void test_a_paced_keep_alive_waits_until_the_deadline_is_taken(void **state)
{
    struct scripted *s = *state;
    gavel_ns opened_at;

    up_paced(s);
    opened_at = s->now;
    scripted_event(s, CLIENT_TAKEN); /* in time: at the usual pace */
    assert_int_equal(s->actions->count, 0);
    assert_int_equal(client_wake_at(s->client), opened_at + PACE);
    keep(s);
    assert_int_equal(s->now, opened_at + PACE);
    expect_silence(s, opened_at + 100 * PACE); /* nobody takes that one */
    scripted_event(s, CLIENT_TAKEN);           /* late: at once */
    assert_int_equal(scripted_count(s, CLIENT_DO_SEND), 1);
    keep(s);
    expect_silence(s, s->now + 2 * PACE);
}

static void test_who_takes_twice_has_no_more_keep_alives(void **state)
{
    struct scripted *s = *state;

    up_paced(s);
    for (int i = 0; i < 3; i++)
        scripted_event(s, CLIENT_TAKEN);
    keep(s);
    expect_silence(s, s->now + 3 * PACE);
}

static void test_a_deadline_can_be_taken_while_the_keep_alive_is_under_way(void **state)
{
    struct scripted *s = *state;
    uint64_t tag;

    up_paced(s);
    scripted_event(s, CLIENT_TAKEN);
    scripted_pass(s, client_wake_at(s->client));
    tag = scripted_tag(s, KEEP_ALIVE);
    scripted_event(s, CLIENT_TAKEN); /* of the one before, again: the next is still to be taken */
    scripted_kept(s, tag, GAVEL_OK, 0);
    expect_silence(s, s->now + 3 * PACE);
}

static void test_another_connection_keeps_no_session_that_nobody_takes(void **state)
{
    struct scripted *s = *state;

    up_paced(s);
    connect_again(s);
    assert_int_equal(client_state(s->client), CLIENT_UP);
    assert_int_equal(scripted_count(s, CLIENT_DO_SEND), 0);
    expect_silence(s, s->now + 3 * PACE);
    scripted_event(s, CLIENT_TAKEN);
    assert_non_null(scripted_sent(s, KEEP_ALIVE));
    /* That one is not answered: it gave nothing that could be taken, and is sent again. */
    connect_again(s);
    assert_non_null(scripted_sent(s, KEEP_ALIVE));
    keep(s);
}

static void test_what_is_taken_while_away_is_kept_on_the_next_connection(void **state)
{
    struct scripted *s = *state;

    up_paced(s);
    scripted_event(s, CLIENT_LOST);
    scripted_event(s, CLIENT_TAKEN);
    while (scripted_count(s, CLIENT_DO_CONNECT) == 0)
        scripted_pass(s, client_wake_at(s->client));
    greeted(s);
    keep(s);
}

static void test_a_refused_keep_alive_leaves_nothing_to_take(void **state)
{
    struct scripted *s = *state;

    up_paced(s);
    scripted_event(s, CLIENT_TAKEN);
    scripted_pass(s, client_wake_at(s->client));
    for (int i = 0; i < 3; i++) {
        scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_ERR_NOT_LEADER, 0);
        assert_int_equal(scripted_count(s, CLIENT_DO_DEADLINE), 0);
        scripted_pass(s, client_wake_at(s->client));
    }
    keep(s);
}

/* A node tells of clocks that are so bad that an answer moves nothing. */
static void test_a_deadline_that_did_not_grow_need_not_be_taken(void **state)
{
    struct scripted *s = *state;
    gavel_ns deadline;

    up_paced(s);
    deadline = client_deadline(s->client);
    scripted_event(s, CLIENT_TAKEN);
    scripted_event(s, CLIENT_LOST);
    while (scripted_count(s, CLIENT_DO_CONNECT) == 0)
        scripted_pass(s, client_wake_at(s->client));
    scripted_event(s, CLIENT_CONNECTED);
    scripted_welcome_drift(s, 100000);
    assert_true(s->now + client_session_lasts(s->client) < deadline);
    scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_OK, 0);
    assert_int_equal(scripted_count(s, CLIENT_DO_DEADLINE), 0);
    assert_int_equal(client_deadline(s->client), deadline);
    assert_int_equal(client_wake_at(s->client), s->now + PACE);
    scripted_pass(s, s->now + PACE);
    assert_non_null(scripted_sent(s, KEEP_ALIVE));
}

/* The watch tells that it has ended. The next one waits for the caller again, from its opening on. */
static void test_a_session_that_is_lost_while_nobody_takes_is_opened_anew(void **state)
{
    struct scripted *s = *state;
    uint64_t wire;

    up_paced(s);
    scripted_watch(s, 1, "g", 0);
    wire = scripted_tag(s, WATCH);
    expect_silence(s, s->now + 3 * PACE);
    scripted_session_ended(s, wire, SESSION, 40);
    assert_int_equal(scripted_find(s, CLIENT_DO_SESSION_LOST, 0)->number, 7);
    assert_int_equal(scripted_find(s, CLIENT_DO_DEADLINE, 0)->at, 0);
    assert_int_equal(scripted_find(s, CLIENT_DO_DEADLINE, 0)->number, 7);
    assert_int_equal(client_session_number(s->client), 0);
    assert_int_not_equal(client_session(s->client), SESSION);
    s->session_revision = 41;
    answer_opening(s);
    assert_int_equal(client_session_number(s->client), 41);
    expect_silence(s, s->now + 3 * PACE);
    scripted_event(s, CLIENT_TAKEN);
    keep(s);
}

static void test_who_comes_back_too_late_learns_that_the_session_is_lost(void **state)
{
    struct scripted *s = *state;

    up_paced(s);
    expect_silence(s, s->now + 100 * NS_PER_S);
    scripted_event(s, CLIENT_TAKEN);
    scripted_kept(s, scripted_tag(s, KEEP_ALIVE), GAVEL_OK, SESSION);
    assert_int_equal(scripted_find(s, CLIENT_DO_SESSION_LOST, 0)->number, 7);
    s->session_revision = 99;
    answer_opening(s);
    assert_int_equal(client_session_number(s->client), 99);
}

/* Of the caller of the next function. */
static void abort_quietly(int signal_number)
{
    (void)signal_number;
    _exit(77);
}

static bool is_a_mistake(const struct client_open *open, bool is_second)
{
    struct scripted s;
    struct client_settings settings = scripted_settings(1);
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)signal(SIGABRT, abort_quietly);
        (void)close(STDERR_FILENO);
        if (!is_second)
            settings.ttl_ms = 0;
        scripted_begin(&s, &settings);
        scripted_open(&s, open);
        scripted_end(&s);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 77;
}

static void test_a_second_or_invalid_session_is_a_mistake_of_the_caller(void **state)
{
    (void)state;
    assert_false(is_a_mistake(&unpaced, false));
    assert_true(is_a_mistake(&unpaced, true));
    assert_true(is_a_mistake(&(struct client_open){.ttl_ms = TTL_MS}, false));
    assert_true(is_a_mistake(&(struct client_open){.session = SESSION}, false));
    assert_true(
        is_a_mistake(&(struct client_open){.session = SESSION, .ttl_ms = TABLE_TTL_MIN_MS - 1}, false));
    assert_true(
        is_a_mistake(&(struct client_open){.session = SESSION, .ttl_ms = TABLE_TTL_MAX_MS + 1}, false));
    assert_true(
        is_a_mistake(&(struct client_open){.session = SESSION, .ttl_ms = TTL_MS, .silence = -1}, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_a_session_can_be_asked_for_in_every_state),
        T(test_a_session_that_was_asked_for_outlives_connections),
        T(test_what_is_under_way_goes_on_when_a_session_is_asked_for),
        T(test_a_question_under_way_has_all_of_the_new_patience),
        T(test_the_silence_that_is_borne_is_that_of_the_time_to_live),
        T(test_only_a_session_that_was_asked_for_is_waited_for),
        T(test_a_session_names_the_process_and_a_later_one_too),
        T(test_how_long_a_session_lasts_depends_on_the_clocks_of_the_cluster),
        T(test_close_before_and_after_a_session_was_asked_for),
        T(test_an_unpaced_session_needs_nobody_who_takes),
        T(test_a_paced_keep_alive_waits_until_the_deadline_is_taken),
        T(test_who_takes_twice_has_no_more_keep_alives),
        T(test_a_deadline_can_be_taken_while_the_keep_alive_is_under_way),
        T(test_another_connection_keeps_no_session_that_nobody_takes),
        T(test_what_is_taken_while_away_is_kept_on_the_next_connection),
        T(test_a_refused_keep_alive_leaves_nothing_to_take),
        T(test_a_deadline_that_did_not_grow_need_not_be_taken),
        T(test_a_session_that_is_lost_while_nobody_takes_is_opened_anew),
        T(test_who_comes_back_too_late_learns_that_the_session_is_lost),
        T(test_a_second_or_invalid_session_is_a_mistake_of_the_caller),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
