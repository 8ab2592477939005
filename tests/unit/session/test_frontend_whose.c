/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A session is for who opened it. Each case is somebody else, who knows its id, and tries to use it; and what
 * is shown to everybody: neither ids of sessions nor nonces.
 */
#include "frontend_fixture.h"

#define HOLDER 111
#define OTHER 222
#define SESSION 0x5e551011

/* A request by this principal, on its way. */
static void send_by(struct fixture *f, uint64_t principal, uint64_t session, uint64_t id, Gavel__Op *op)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Request request = GAVEL__REQUEST__INIT;

    if (op->what_case == GAVEL__OP__WHAT_OPEN_SESSION)
        op->open_session->principal = principal; /* as its node does */
    request.tag = ++f->tags;
    request.session = session;
    request.id = id;
    request.n_ops = 1;
    request.ops = &op;
    request.has_principal = true;
    request.principal = principal;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request;
    take_frame(f, 0, &frame);
    collect(f);
}

/* And done; the reply. */
static const Gavel__Reply *request_by(struct fixture *f, uint64_t principal, uint64_t session, uint64_t id,
                                      Gavel__Op *op)
{
    send_by(f, principal, session, id, op);
    flush(f);
    commit(f);
    return last_reply(f);
}

/* Whether the session counts as kept. */
static bool keeps(struct fixture *f, uint64_t principal, bool is_told)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__KeepAlive keep = GAVEL__KEEP_ALIVE__INIT;
    uint64_t session = SESSION;

    keep.n_sessions = 1;
    keep.sessions = &session;
    keep.n_principals = is_told;
    keep.principals = &principal;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE;
    frame.keep_alive = &keep;
    take_frame(f, 0, &frame);
    collect(f);
    return f->replies[f->reply_count - 1]->kept->n_gone == 0;
}

static void lead(struct fixture *f)
{
    assert_int_equal(request_by(f, HOLDER, SESSION, 1, op_open(f, SESSION, 2000))->status, GAVEL_OK);
    assert_int_equal(request_by(f, HOLDER, SESSION, 2, op_campaign(f, "g", "one"))->status, GAVEL_OK);
    assert_true(group_of(f, "g")->is_held);
}

static void expect_refused(struct fixture *f, const Gavel__Reply *reply)
{
    assert_int_equal(reply->status, GAVEL_ERR_SESSION_GONE);
    assert_non_null(strstr(reply->message, "belongs to another client"));
    assert_non_null(table_session_find(&f->table, SESSION));
    assert_true(group_of(f, "g")->is_held);
}

static void test_nobody_else_closes_a_session(void **state)
{
    struct fixture *f = *state;

    lead(f);
    expect_refused(f, request_by(f, OTHER, 0, 0, op_close(f, SESSION)));
    expect_refused(f, request_by(f, OTHER, SESSION, 3, op_close(f, SESSION)));
    expect_refused(f, request_by(f, 0, 0, 0, op_close(f, SESSION))); /* a connection of nobody */
    assert_int_equal(request_by(f, HOLDER, SESSION, 4, op_close(f, SESSION))->status, GAVEL_OK);
    assert_null(table_session_find(&f->table, SESSION));
}

static void test_nobody_else_gives_up_its_mandate(void **state)
{
    struct fixture *f = *state;

    lead(f);
    expect_refused(f, request_by(f, OTHER, SESSION, 3, op_withdraw(f, "g")));
    assert_int_equal(request_by(f, HOLDER, SESSION, 4, op_withdraw(f, "g"))->status, GAVEL_OK);
    assert_false(group_of(f, "g")->is_held);
}

static void test_nobody_else_campaigns_with_it(void **state)
{
    struct fixture *f = *state;

    lead(f);
    expect_refused(f, request_by(f, OTHER, SESSION, 3, op_campaign(f, "h", "two")));
    assert_null(table_group_find(&f->table, "h"));
}

static void test_nobody_else_keeps_it_alive(void **state)
{
    struct fixture *f = *state;

    lead(f);
    run_until(f, f->now + MS(1500));
    assert_false(keeps(f, OTHER, true));
    expect_refused(f,
                   request_by(f, OTHER, SESSION, 1, op_open(f, SESSION, 2000))); /* nor by opening it again */
    expect_refused(f, request_by(f, OTHER, SESSION, 2, op_campaign(f, "g", "one"))); /* nor by repeating */
    run_until(f, f->now + MS(700));
    commit(f);
    assert_null(table_session_find(&f->table, SESSION));
}

/* Its client comes through another node, or another leader answers: the table knows whose it is. */
/* A node merges what its clients ask, and reads the answer by session. */
static void test_another_client_in_the_same_frame_does_not_end_it(void **state)
{
    struct fixture *f = *state;
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__KeepAlive keep = GAVEL__KEEP_ALIVE__INIT;
    uint64_t sessions[] = {SESSION, SESSION, SESSION};
    uint64_t principals[] = {OTHER, HOLDER, OTHER};

    lead(f);
    keep.n_sessions = keep.n_principals = 3;
    keep.sessions = sessions;
    keep.principals = principals;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE;
    frame.keep_alive = &keep;
    take_frame(f, 0, &frame);
    collect(f);
    assert_int_equal(f->replies[f->reply_count - 1]->kept->n_gone, 0);
    principals[1] = OTHER; /* nobody of them is its owner */
    take_frame(f, 0, &frame);
    collect(f);
    assert_int_equal(f->replies[f->reply_count - 1]->kept->n_gone, 3);
    assert_true(keeps(f, HOLDER, true));
}

static void test_the_holder_goes_on_under_another_leader(void **state)
{
    struct fixture *f = *state;

    lead(f);
    fixture_change_leader(f);
    assert_true(keeps(f, HOLDER, true));
    assert_false(keeps(f, OTHER, true));
    expect_refused(f, request_by(f, OTHER, SESSION, 3, op_withdraw(f, "g")));
    assert_int_equal(request_by(f, HOLDER, SESSION, 3, op_open(f, SESSION, 2000))->status, GAVEL_OK);
}

static void test_a_snapshot_knows_whose_it_is(void **state)
{
    struct fixture *f = *state;
    struct table copy = {0};
    uint8_t *bytes;
    size_t size;

    lead(f);
    assert_int_equal(table_snapshot_encode(&f->table, &bytes, &size), GAVEL_OK);
    assert_int_equal(table_snapshot_decode(&copy, bytes, size), GAVEL_OK);
    assert_int_equal(table_session_find(&copy, SESSION)->principal, HOLDER);
    free(bytes);
    table_done(&copy);
}

/* During an upgrade: a node of before 0.7.0 does not tell who asks, and a session of before has no owner. */
static void test_what_older_nodes_ask_is_done(void **state)
{
    struct fixture *f = *state;

    lead(f);
    assert_true(keeps(f, 0, false));
    must(f, SESSION, 3, op_campaign(f, "h", "one"));
    must(f, 7, 1, op_open(f, 7, 2000));
    assert_int_equal(request_by(f, OTHER, 7, 2, op_close(f, 7))->status, GAVEL_OK);
}

/* A campaign by HTTP whose client has gone before its session was open. */
static void test_an_end_that_overtakes_its_opening_is_asked_for_again(void **state)
{
    struct fixture *f = *state;

    send_by(f, HOLDER, SESSION, 1, op_open(f, SESSION, 2000));
    send_by(f, HOLDER, 0, 0, op_close(f, SESSION));
    assert_int_equal(last_reply(f)->status, GAVEL_ERR_STORE_UNAVAILABLE);
    send_by(f, OTHER, 0, 0, op_close(f, SESSION)); /* who learns nothing by it */
    assert_int_equal(last_reply(f)->status, GAVEL_OK);
    flush(f);
    commit(f);
    assert_non_null(table_session_find(&f->table, SESSION));
    assert_int_equal(request_by(f, HOLDER, 0, 0, op_close(f, SESSION))->status, GAVEL_OK);
    assert_null(table_session_find(&f->table, SESSION));
}

/* ---- what is shown ---- */

static const Gavel__Group *look(struct fixture *f, Gavel__Ask__Kind kind, uint64_t nonce)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Ask ask;

    gavel__ask__init(&ask);
    ask.kind = kind;
    ask.group = (char *)(uintptr_t) "g";
    ask.nonce_low = nonce;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ASK;
    frame.ask = &ask;
    take_frame(f, 0, &frame);
    collect(f);
    assert_int_equal(f->replies[f->reply_count - 1]->answer->n_groups, 1);
    return f->replies[f->reply_count - 1]->answer->groups[0];
}

static void test_the_id_of_a_session_is_shown_to_nobody(void **state)
{
    struct fixture *f = *state;
    const Gavel__Group *group;

    lead(f);
    group = look(f, GAVEL__ASK__KIND__CANDIDATES, 0);
    assert_int_not_equal(group->session, SESSION);
    assert_int_not_equal(group->session, 0);
    assert_int_equal(group->n_candidates, 1);
    assert_int_not_equal(group->candidates[0]->session, SESSION);
    assert_int_equal(group->candidates[0]->session, group->session); /* and yet they can be told apart */
    group = look(f, GAVEL__ASK__KIND__GROUPS, 0);
    assert_int_not_equal(group->session, SESSION);
}

static void test_a_nonce_is_shown_to_who_knows_it(void **state)
{
    struct fixture *f = *state;
    const uint64_t nonce = 0x1234567;
    const Gavel__OpResult *result = must(f, 0, 0, op_claim(f, "g", "one", nonce, 0));
    const Gavel__Group *group;
    uint64_t stand_in;

    assert_int_equal(result->group->nonce_low, nonce); /* it has just said it */
    group = look(f, GAVEL__ASK__KIND__GROUP, 0);
    stand_in = group->nonce_low;
    assert_int_not_equal(stand_in, nonce);
    assert_int_not_equal(group->nonce_high, 0);
    assert_int_equal(look(f, GAVEL__ASK__KIND__GROUP, 99)->nonce_low, stand_in);
    assert_int_equal(look(f, GAVEL__ASK__KIND__GROUPS, nonce)->nonce_low, stand_in);
    group = look(f, GAVEL__ASK__KIND__GROUP, nonce);
    assert_int_equal(group->nonce_low, nonce);
    assert_int_equal(group->nonce_high, 0);
    /* A refused claim is told who holds it, and not by what. */
    result = request(f, 0, 0, op_claim(f, "g", "two", 99, 0))->results[0];
    assert_int_equal(result->group->nonce_low, stand_in);
    /* The stand-in releases nothing. */
    result = request(f, 0, 0, op_release(f, "g", "one", stand_in))->results[0];
    assert_int_equal(result->status, GAVEL_ERR_NOT_HOLDER);
    assert_true(group_of(f, "g")->is_held);
}

/* ---- candidates that beat ---- */

static const Gavel__Candidate *listed(struct fixture *f, uint64_t instance)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Ask ask;

    gavel__ask__init(&ask);
    ask.kind = GAVEL__ASK__KIND__CANDIDATES;
    ask.group = (char *)(uintptr_t) "g";
    ask.instance = instance;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ASK;
    frame.ask = &ask;
    take_frame(f, 0, &frame);
    collect(f);
    assert_int_equal(f->replies[f->reply_count - 1]->answer->groups[0]->n_candidates, 1);
    return f->replies[f->reply_count - 1]->answer->groups[0]->candidates[0];
}

static Gavel__Op *op_replace(struct fixture *f, uint64_t instance, uint64_t replaces)
{
    Gavel__Op *op = op_register(f, "g", "one", instance, 1);

    op->register_candidate->replaces_instance = replaces;
    return op;
}

static void test_an_instance_is_shown_to_who_knows_it(void **state)
{
    struct fixture *f = *state;
    const uint64_t instance = 0x1234567;
    uint64_t shown;

    must(f, 0, 0, op_register(f, "g", "one", instance, 1));
    shown = listed(f, 0)->instance;
    assert_int_not_equal(shown, instance);
    assert_int_not_equal(shown, 0);
    assert_int_equal(listed(f, 99)->instance, shown);
    assert_int_equal(listed(f, instance)->instance, instance);
    /* What is shown neither leaves nor beats. */
    must(f, 0, 0, op_leave(f, "g", "one", shown));
    assert_int_equal(listed(f, 0)->instance, shown);
    assert_int_equal(request(f, 0, 0, op_register(f, "g", "one", shown, 2))->results[0]->status,
                     GAVEL_ERR_ID_IN_USE);
    assert_int_equal(request(f, 0, 0, op_register(f, "g", "one", 99, 2))->results[0]->other_instance, shown);
    /* But it names who has died. */
    must(f, 0, 0, op_replace(f, 99, shown));
    assert_int_equal(listed(f, 99)->instance, 99);
}

static void test_who_is_called_dead_and_beats_has_its_place_again(void **state)
{
    struct fixture *f = *state;

    must(f, 0, 0, op_register(f, "g", "one", 1111, 1));
    must(f, 0, 0, op_replace(f, 2222, listed(f, 0)->instance));
    must(f, 0, 0, op_register(f, "g", "one", 2222, 2));
    must(f, 0, 0, op_register(f, "g", "one", 1111, 2));
    assert_int_equal(listed(f, 1111)->instance, 1111);
    /* Nobody is believed any more who says so. */
    assert_int_equal(request(f, 0, 0, op_register(f, "g", "one", 2222, 3))->results[0]->status,
                     GAVEL_ERR_ID_IN_USE);
    assert_int_equal(request(f, 0, 0, op_replace(f, 2222, listed(f, 0)->instance))->results[0]->status,
                     GAVEL_ERR_ID_IN_USE);
    assert_int_equal(request(f, 0, 0, op_replace(f, 3333, listed(f, 0)->instance))->results[0]->status,
                     GAVEL_ERR_ID_IN_USE);
    must(f, 0, 0, op_register(f, "g", "one", 1111, 3));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_nobody_else_closes_a_session),
        CASE(test_nobody_else_gives_up_its_mandate),
        CASE(test_nobody_else_campaigns_with_it),
        CASE(test_nobody_else_keeps_it_alive),
        CASE(test_another_client_in_the_same_frame_does_not_end_it),
        CASE(test_the_holder_goes_on_under_another_leader),
        CASE(test_a_snapshot_knows_whose_it_is),
        CASE(test_what_older_nodes_ask_is_done),
        CASE(test_an_end_that_overtakes_its_opening_is_asked_for_again),
        CASE(test_the_id_of_a_session_is_shown_to_nobody),
        CASE(test_a_nonce_is_shown_to_who_knows_it),
        CASE(test_an_instance_is_shown_to_who_knows_it),
        CASE(test_who_is_called_dead_and_beats_has_its_place_again),
    };

    return cmocka_run_group_tests_name("frontend whose", tests, NULL, NULL);
}
