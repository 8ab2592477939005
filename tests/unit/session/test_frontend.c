/* SPDX-License-Identifier: Apache-2.0 */

/* What is asked of the leader of the cluster, and what it answers: each request once, and nothing that it
 * cannot keep. */
#include "frontend_fixture.h"

#define CLAIM_TOO_LATE "the claim on group \"g\" came too late: its record has changed or its lease runs"
#define NOT_HELD "the mandate of group \"g\" is not held as the call says; read it again"

/* "one" holds the lease mandate of g; returns the version. */
static uint64_t hold(struct fixture *f) { return must(f, 0, 0, op_claim(f, "g", "one", 1, 0))->version; }

static void expect(const Gavel__Reply *reply, enum gavel_status status, const char *message)
{
    assert_string_equal(reply->message, message);
    assert_int_equal(reply->status, status);
}

static void expect_result(const Gavel__Reply *reply, enum gavel_status status, const char *message)
{
    assert_int_equal(reply->status, GAVEL_OK);
    assert_int_equal(reply->n_results, 1);
    assert_string_equal(reply->results[0]->message, message);
    assert_int_equal(reply->results[0]->status, status);
}

/* ---- through the log ---- */

static void test_a_request_is_answered_once_it_is_applied(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *op = op_claim(f, "g", "one", 1, 0);

    send_request(f, 0, 0, 1, &op);
    assert_int_equal(f->log_count, 0);
    flush(f);
    assert_int_equal(f->log_count, 1);
    assert_int_equal(f->reply_count, 0);
    commit(f);
    assert_int_equal(f->reply_count, 1);
    expect_result(last_reply(f), GAVEL_OK, "");
    assert_int_equal(last_reply(f)->results[0]->epoch, group_of(f, "g")->epoch);
    assert_string_equal(last_reply(f)->results[0]->group->holder, "one");
    assert_int_equal(last_reply(f)->results[0]->group->remaining_ms, 1002); /* with the drift, rounded up */
    assert_int_equal(f->frontend.waiting_count, 0);
    assert_int_equal(f->frontend.waiting_bytes, 0);
}

static void test_a_closed_frontend_answers_that_it_does_not_lead(void **state)
{
    struct fixture *f = *state;
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Ask ask;
    Gavel__ClientHello hello;

    must(f, 0, 0, op_open(f, 7, 2000));
    frontend_close(&f->frontend);
    collect(f);
    assert_int_equal(request(f, 0, 0, op_put(f, "g", "k", "v"))->status, GAVEL_ERR_NOT_LEADER);
    assert_int_equal(keep_alive(f, 7)->status, GAVEL_ERR_NOT_LEADER);
    gavel__ask__init(&ask);
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ASK;
    frame.ask = &ask;
    ask.tag = 99;
    take_frame(f, 0, &frame);
    collect(f);
    assert_int_equal(f->replies[f->reply_count - 1]->answer->status, GAVEL_ERR_NOT_LEADER);
    assert_int_equal(f->replies[f->reply_count - 1]->answer->tag, 99);
    gavel__client_hello__init(&hello);
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_HELLO;
    frame.hello = &hello;
    take_frame(f, 0, &frame);
    collect(f);
    expect(last_reply(f), GAVEL_ERR_INVALID,
           "the leader of the cluster takes requests, keep-alives and questions only");
}

static void test_a_leader_without_a_lease_answers_that_it_does_not_lead(void **state)
{
    struct fixture *f = *state;

    hold(f);
    must(f, 0, 0, op_open(f, 7, 2000));
    f->is_working = false;
    assert_int_equal(request(f, 0, 0, op_renew(f, "g", "one", 1))->status, GAVEL_ERR_NOT_LEADER);
    assert_int_equal(keep_alive(f, 7)->status, GAVEL_ERR_NOT_LEADER);
}

/* ---- without the log ---- */

static void test_a_renewal_by_the_holder_needs_no_log(void **state)
{
    struct fixture *f = *state;
    uint64_t version = hold(f);
    const Gavel__OpResult *result;

    run_until(f, f->now + MS(600));
    result = must(f, 0, 0, op_renew(f, "g", "one", 1));
    assert_int_equal(f->log_count, 1);
    assert_int_equal(result->version, version);
    assert_int_equal(result->group->remaining_ms, 1002);
    assert_false(result->group->is_expired);
}

static void test_any_other_renewal_goes_to_the_log(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *longer = op_renew(f, "g", "one", 1);

    hold(f);
    longer->renew->lease_ms = 2000;
    assert_int_equal(must(f, 0, 0, longer)->group->remaining_ms, 2003);
    assert_int_equal(f->log_count, 2);
    expect_result(request(f, 0, 0, op_renew(f, "g", "two", 1)), GAVEL_ERR_NOT_HOLDER, NOT_HELD);
    expect_result(request(f, 0, 0, op_renew(f, "g", "one", 2)), GAVEL_ERR_NOT_HOLDER, NOT_HELD);
    assert_int_equal(f->log_count, 4);
}

static void test_a_heartbeat_that_changes_nothing_needs_no_log(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *moved = op_register(f, "g", "one", 1, 3);
    struct heard *heard = &f->frontend.heard;

    must(f, 0, 0, op_register(f, "g", "one", 1, 1));
    must(f, 0, 0, op_register(f, "g", "one", 1, 2));
    assert_int_equal(f->log_count, 1);
    assert_int_equal(heard_candidate(heard, table_candidate_find(group_of(f, "g"), "one"))->beats, 2);
    assert_int_equal(heard_candidate(heard, table_candidate_find(group_of(f, "g"), "one"))->beat_at, f->now);
    moved->register_candidate->priority = 5;
    must(f, 0, 0, moved);
    assert_int_equal(f->log_count, 2);
    assert_int_equal(heard_candidate(heard, table_candidate_find(group_of(f, "g"), "one"))->beats, 3);
}

static void test_a_request_without_the_log_does_not_hold_up_the_next(void **state)
{
    struct fixture *f = *state;

    must(f, 7, 1, op_open(f, 7, 2000));
    must(f, 7, 2, op_claim(f, "g", "one", 1, 0));
    for (uint64_t id = 3; id < 6; id++)
        must(f, 7, id, op_renew(f, "g", "one", 1));
    assert_int_equal(f->log_count, 2);
    must(f, 7, 6, op_put(f, "g", "k", "v"));
    assert_int_equal(table_session_find(&f->table, 7)->last_id, 6);
    expect(request(f, 7, 5, op_renew(f, "g", "one", 1)), GAVEL_ERR_STATE,
           "request 5 of the session is older than its newest, 6, and was answered already");
}

/* ---- once ---- */

static void test_a_repeated_request_is_answered_and_not_applied_again(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *put = op_put(f, "g", "k", "v");
    uint64_t revision;

    put->put_note->has_expected = true; /* a second time it would be refused */
    must(f, 7, 1, op_open(f, 7, 2000));
    revision = must(f, 7, 2, put)->revision;
    fixture_change_leader(f);
    assert_int_equal(must(f, 7, 2, put)->revision, revision);
    assert_int_equal(f->log_count, 2);
    assert_int_equal(f->frontend.counts.repeated, 1);
    assert_int_equal(f->table.revision, revision);
}

static void test_a_request_that_the_leader_was_lost_with_is_applied_once(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *put = op_put(f, "g", "k", "v");

    put->put_note->has_expected = true;
    must(f, 7, 1, op_open(f, 7, 2000));
    send_request(f, 7, 2, 1, &put);
    flush(f);
    fixture_change_leader(f);
    assert_int_equal(last_reply(f)->status, GAVEL_ERR_NOT_LEADER);
    send_request(f, 7, 2, 1, &put); /* carried again before the old entry is applied */
    flush(f);
    commit(f);
    expect_result(last_reply(f), GAVEL_OK, "");
    assert_int_equal(table_note_find(&f->table, "g", "k")->create_revision, f->table.revision);
}

static void test_a_request_under_way_is_not_proposed_twice(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *put = op_put(f, "g", "k", "v");

    must(f, 7, 1, op_open(f, 7, 2000));
    send_request(f, 7, 2, 1, &put);
    flush(f);
    send_request(f, 7, 2, 1, &put);
    flush(f);
    assert_int_equal(f->log_count, 2);
    commit(f);
    assert_int_equal(f->reply_count, 2); /* of the opening, and of the newest asker */
    assert_int_equal(f->tickets[1].tag, f->tags);
    assert_int_equal(last_reply(f)->tag, f->tags);
}

static void test_an_id_that_is_used_for_another_request_is_a_mistake(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *two[] = {op_put(f, "g", "a", "v"), op_put(f, "g", "b", "v")};

    must(f, 7, 1, op_open(f, 7, 2000));
    must(f, 7, 2, op_put(f, "g", "k", "v"));
    expect(request_all(f, 7, 2, 2, two), GAVEL_ERR_STATE,
           "the id of this request was used for another one; ids of a session only grow");
}

static void test_a_session_that_is_not_open_is_gone(void **state)
{
    struct fixture *f = *state;

    expect(request(f, 7, 1, op_put(f, "g", "k", "v")), GAVEL_ERR_SESSION_GONE,
           "the session is not open: it was closed, or expired; open another one");
    must(f, 7, 1, op_open(f, 7, 2000));
    must(f, 0, 0, op_close(f, 7)); /* whoever knows its number may close it */
    assert_int_equal(request(f, 7, 2, op_put(f, "g", "k", "v"))->status, GAVEL_ERR_SESSION_GONE);
    assert_int_equal(f->log_count, 2);
}

static void test_a_session_that_ends_while_its_request_is_under_way(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *close = op_close(f, 7);
    Gavel__Op *put = op_put(f, "g", "k", "v");

    must(f, 7, 1, op_open(f, 7, 2000));
    send_request(f, 0, 0, 1, &close);
    send_request(f, 7, 2, 1, &put);
    flush(f);
    commit(f);
    assert_int_equal(last_reply(f)->status, GAVEL_ERR_SESSION_GONE);
    assert_null(table_note_find(&f->table, "g", "k"));
}

static void test_an_opening_that_comes_again_keeps_the_session_alive(void **state)
{
    struct fixture *f = *state;

    must(f, 7, 1, op_open(f, 7, 2000));
    run_until(f, f->now + MS(1000));
    must(f, 7, 1, op_open(f, 7, 2000));
    assert_int_equal(heard_session(&f->frontend.heard, table_session_find(&f->table, 7))->heard_at, f->now);
    must(f, 7, 2, op_put(f, "g", "k", "v"));
    run_until(f, f->now + MS(1000));
    must(f, 7, 1, op_open(f, 7, 2000)); /* late, but it is open */
    assert_int_equal(heard_session(&f->frontend.heard, table_session_find(&f->table, 7))->heard_at, f->now);
    assert_int_equal(f->log_count, 2);
}

/* ---- a session that is opened by a campaign ---- */

static const Gavel__Reply *begin(struct fixture *f, uint64_t id)
{
    Gavel__Op *ops[] = {op_open(f, 7, 2000), op_campaign(f, "g", "one"), op_campaign(f, "h", "one")};

    return request_all(f, 7, id, 3, ops);
}

/* A copy of the opening comes when the session has expired: its client must learn that it is another. */
static void test_an_opening_and_a_keep_alive_tell_which_session_is_open(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *both[] = {op_open(f, 8, 2000), op_campaign(f, "g", "a")};
    Gavel__Op *open = op_open(f, 7, 2000);
    uint64_t revision = must(f, 7, 1, open)->session_revision;

    assert_int_equal(revision, table_session_find(&f->table, 7)->create_revision);
    assert_int_equal(keep_alive(f, 7)->n_revisions, 1);
    assert_int_equal(keep_alive(f, 7)->revisions[0], revision);
    assert_int_equal(keep_alive(f, 9)->revisions[0], 0);
    must(f, 7, 2, op_campaign(f, "h", "a"));
    assert_int_equal(must(f, 7, 1, open)->session_revision, revision); /* of the same one, still */
    for (int times = 0; times < 2; times++) { /* the second answer is from what is recorded */
        const Gavel__Reply *reply = request_all(f, 8, 1, 2, both);

        assert_int_equal(reply->results[0]->session_revision,
                         table_session_find(&f->table, 8)->create_revision);
        assert_int_equal(reply->results[1]->session_revision, 0);
    }
    run_until(f, f->now + MS(2500));
    commit(f);
    assert_null(table_session_find(&f->table, 7));
    assert_true(must(f, 7, 1, open)->session_revision > revision);
    assert_true(keep_alive(f, 7)->revisions[0] > revision);
}

static void test_a_session_is_opened_by_a_campaign(void **state)
{
    struct fixture *f = *state;
    const Gavel__Reply *reply = begin(f, 1);
    uint64_t epoch;

    assert_int_equal(reply->status, GAVEL_OK);
    assert_int_equal(reply->n_results, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(reply->results[i]->status, GAVEL_OK);
    epoch = reply->results[1]->epoch;
    assert_int_equal(epoch, group_of(f, "g")->epoch);
    assert_int_equal(reply->results[2]->epoch, group_of(f, "h")->epoch);
    assert_int_equal(f->log_count, 2);
    assert_int_equal(f->proposals, 1); /* together */
    /* The same again is answered from the table, by another leader, too. */
    fixture_change_leader(f);
    reply = begin(f, 1);
    assert_int_equal(reply->n_results, 3);
    assert_int_equal(reply->results[0]->status, GAVEL_OK);
    assert_int_equal(reply->results[1]->epoch, epoch);
    assert_int_equal(f->log_count, 2);
    must(f, 7, 2, op_put(f, "g", "k", "v"));
    assert_int_equal(begin(f, 1)->status, GAVEL_ERR_STATE);
}

static void test_a_campaign_that_was_lost_behind_its_opening_is_made_good(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *ops[] = {op_open(f, 7, 2000), op_campaign(f, "g", "one")};
    size_t before = f->reply_count;

    send_request(f, 7, 1, 2, ops);
    flush(f);
    commit_one(f);
    assert_non_null(table_session_find(&f->table, 7));
    assert_int_equal(f->reply_count, before); /* not before the campaign */
    f->log_count = 1;                         /* the other entry was never replicated */
    free(f->log[1].bytes);
    fixture_change_leader(f);
    assert_int_equal(last_reply(f)->status, GAVEL_ERR_NOT_LEADER);
    assert_int_equal(request_all(f, 7, 1, 2, ops)->results[1]->status, GAVEL_OK);
    assert_string_equal(group_of(f, "g")->holder, "one");
    assert_int_equal(f->table.session_count, 1);
}

static void test_a_repeat_on_its_way_is_answered_once(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *ops[] = {op_open(f, 7, 2000), op_campaign(f, "g", "one")};

    send_request(f, 7, 1, 2, ops);
    send_request(f, 7, 1, 2, ops);
    flush(f);
    commit(f);
    assert_int_equal(f->log_count, 2);
    assert_int_equal(f->reply_count, 1);
    assert_int_equal(last_reply(f)->n_results, 2);
}

static void test_nothing_but_campaigns_goes_with_an_opening(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *note[] = {op_open(f, 7, 2000), op_put(f, "g", "k", "v")};
    Gavel__Op *other[] = {op_open(f, 8, 2000), op_campaign(f, "g", "one")};

    assert_int_equal(request_all(f, 7, 1, 2, note)->status, GAVEL_ERR_SESSION_GONE);
    assert_int_equal(request_all(f, 7, 1, 2, other)->status, GAVEL_ERR_SESSION_GONE);
    assert_int_equal(f->log_count, 0);
}

/* ---- batches ---- */

static void test_a_refused_operation_keeps_its_place_among_others(void **state)
{
    struct fixture *f = *state;
    uint64_t version = hold(f);
    Gavel__Op *ops[] = {op_renew(f, "g", "one", 1), op_claim(f, "g", "two", 2, version),
                        op_put(f, "g", "k", "v"), op_register(f, "g", "x", 9, 1)};
    const Gavel__Reply *reply;

    must(f, 0, 0, op_register(f, "g", "x", 8, 41));
    must(f, 7, 1, op_open(f, 7, 2000));
    for (int round = 0; round < 2; round++) { /* the second one is answered from the table */
        reply = request_all(f, 7, 2, 4, ops);
        assert_int_equal(reply->status, GAVEL_OK);
        assert_int_equal(reply->n_results, 4);
        assert_int_equal(reply->results[0]->status, GAVEL_OK);
        assert_int_equal(reply->results[1]->status, GAVEL_ERR_CONFLICT);
        assert_string_equal(reply->results[1]->message, CLAIM_TOO_LATE);
        assert_string_equal(reply->results[1]->group->holder, "one");
        assert_int_equal(reply->results[2]->status, GAVEL_OK);
        assert_int_equal(reply->results[3]->status, GAVEL_ERR_ID_IN_USE);
        assert_int_equal(reply->results[3]->other_instance,
                         table_candidate_find(group_of(f, "g"), "x")->joined_revision);
        assert_int_equal(reply->results[3]->other_beats, round == 0 ? 41 : 0); /* not heard by this leader */
        assert_null(reply->results[3]->group);
        fixture_change_leader(f);
    }
    assert_int_equal(f->log_count, 4);
}

static void test_a_batch_of_renewals_needs_no_log(void **state)
{
    struct fixture *f = *state;
    enum { MANY = 100 };
    Gavel__Op *claims[MANY];
    Gavel__Op *renewals[MANY];
    char names[MANY][8];
    const Gavel__Reply *reply;

    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof names[i], "g%zu", i);
        claims[i] = op_claim(f, names[i], "one", i + 1, 0);
        renewals[i] = op_renew(f, names[i], "one", i + 1);
    }
    must(f, 7, 1, op_open(f, 7, 2000));
    assert_int_equal(request_all(f, 7, 2, MANY, claims)->status, GAVEL_OK);
    assert_int_equal(f->log_count, 2);
    reply = request_all(f, 7, 3, MANY, renewals);
    assert_int_equal(f->log_count, 2);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(reply->results[i]->status, GAVEL_OK);
        assert_string_equal(reply->results[i]->group->name, names[i]);
    }
}

/* ---- bad input ---- */

static void test_bad_requests_are_refused_in_words(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *put = op_put(f, "g", "k", "v");
    Gavel__Op *many[TABLE_OPS_MAX + 1];
    Gavel__Op *bad[] = {put, op_put(f, "", "k", "v")};
    Gavel__Op empty = GAVEL__OP__INIT;

    for (size_t i = 0; i <= TABLE_OPS_MAX; i++)
        many[i] = put;
    expect(request_all(f, 0, 0, 0, NULL), GAVEL_ERR_INVALID, "a request needs at least one operation");
    expect(request_all(f, 0, 0, TABLE_OPS_MAX + 1, many), GAVEL_ERR_INVALID,
           "the request has 513 operations; send at most 512 at a time");
    expect(request(f, 7, 0, put), GAVEL_ERR_INVALID,
           "a request of a session needs an id, higher than that of the one before");
    expect(request(f, 0, 3, put), GAVEL_ERR_INVALID, "a request without a session has no id");
    expect(request_all(f, 0, 0, 2, bad), GAVEL_ERR_INVALID,
           "operation 2 of 2: the group name is empty; give it 1 to 255 bytes");
    expect(request(f, 0, 0, bad[1]), GAVEL_ERR_INVALID, "the group name is empty; give it 1 to 255 bytes");
    assert_int_equal(request(f, 0, 0, &empty)->status, GAVEL_ERR_INVALID);
    expect_result(request(f, 0, 0, op_campaign(f, "g", "one")), GAVEL_ERR_INVALID,
                  "taking part in group \"g\" needs a session; open one first");
    expect_result(request(f, 0, 0, op_withdraw(f, "g")), GAVEL_ERR_INVALID,
                  "taking part in group \"g\" needs a session; open one first");
    assert_int_equal(f->log_count, 0);
    assert_int_equal(f->frontend.counts.refused, 9);
}

static void test_only_nodes_say_who_is_dead(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *close = op_close(f, 7);
    Gavel__Op *release = op_release(f, "g", "one", 1);

    must(f, 0, 0, op_open(f, 7, 2000));
    hold(f);
    close->close_session->ending = GAVEL__ENDING__ENDING_EXPIRED;
    release->release->is_dead = true;
    release->release->epoch = group_of(f, "g")->epoch;
    assert_int_equal(request(f, 0, 0, close)->status, GAVEL_ERR_INVALID);
    assert_int_equal(request(f, 0, 0, release)->status, GAVEL_ERR_INVALID);
    assert_int_equal(f->log_count, 2);
}

static void test_a_request_that_is_too_large_is_refused(void **state)
{
    struct fixture *f = *state;
    enum { MANY = 20 };
    char *value = malloc(TABLE_NOTE_BYTES_MAX + 1);
    Gavel__Op *ops[MANY];

    memset(value, 'x', TABLE_NOTE_BYTES_MAX);
    value[TABLE_NOTE_BYTES_MAX] = '\0';
    for (size_t i = 0; i < MANY; i++)
        ops[i] = op_put(f, "g", "k", value);
    expect(request_all(f, 0, 0, MANY, ops), GAVEL_ERR_INVALID,
           "the request is larger than one command may be; send its operations apart");
    free(value);
}

static void test_too_many_requests_at_once_are_refused(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *put = op_put(f, "g", "k", "v");

    for (size_t i = 0; i < FRONTEND_WAITING_MAX; i++)
        send_request(f, 0, 0, 1, &put);
    assert_int_equal(f->reply_count, 0);
    send_request(f, 0, 0, 1, &put);
    expect(last_reply(f), GAVEL_ERR_STORE_UNAVAILABLE,
           "too many requests are under way at the leader of the cluster; ask again later");
    while (f->log_count < FRONTEND_WAITING_MAX) {
        flush(f);
        commit(f);
    }
    assert_int_equal(f->reply_count, FRONTEND_WAITING_MAX + 1);
    must(f, 0, 0, put);
}

/* What comes without a request, such as the ends of sessions, is taken beyond the limit. No room is left
 * for requests then, and not a great deal. */
static void test_no_request_is_taken_beyond_the_limit_of_bytes(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *put = op_put(f, "g", "k", "v");

    for (size_t beyond = 0; beyond < 2; beyond++) {
        f->frontend.waiting_bytes = FRONTEND_WAITING_BYTES_MAX + beyond;
        send_request(f, 0, 0, 1, &put);
        f->frontend.waiting_bytes -= FRONTEND_WAITING_BYTES_MAX + beyond;
        assert_int_equal(f->reply_count, beyond + 1);
        expect(last_reply(f), GAVEL_ERR_STORE_UNAVAILABLE,
               "too many requests are under way at the leader of the cluster; ask again later");
        assert_int_equal(f->frontend.waiting_bytes, 0);
    }
    must(f, 0, 0, put);
}

/* What is committed is applied in one go, and heartbeats wait for it. */
static void test_only_so_many_operations_are_in_the_log_at_once(void **state)
{
    struct fixture *f = *state;
    enum { OPS = 500, REQUESTS = 6, FIT = FRONTEND_FLIGHT_OPS_MAX / OPS };
    Gavel__Op *many[OPS];

    for (size_t i = 0; i < OPS; i++)
        many[i] = op_put(f, "g", "k", "v");
    for (size_t i = 0; i < REQUESTS; i++)
        send_request(f, 0, 0, OPS, many);
    flush(f);
    assert_int_equal(f->log_count, FIT);
    flush(f);
    assert_int_equal(f->log_count, FIT);
    commit_one(f);
    flush(f);
    assert_int_equal(f->log_count, FIT + 1);
    commit(f);
    flush(f);
    commit(f);
    assert_int_equal(f->log_count, REQUESTS);
    assert_int_equal(f->reply_count, REQUESTS);
    assert_int_equal(f->frontend.flight_ops, 0);
}

/* ---- lost leaders ---- */

static void test_whoever_counts_from_an_answer_gets_none_after_the_lease(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *open = op_open(f, 7, 2000);
    Gavel__Op *claim = op_claim(f, "g", "one", 1, 0);
    Gavel__Op *put = op_put(f, "g", "k", "v");

    send_request(f, 7, 1, 1, &open);
    send_request(f, 0, 0, 1, &claim);
    send_request(f, 0, 0, 1, &put);
    flush(f);
    f->is_working = false;
    commit(f);
    assert_int_equal(f->replies[0]->reply->status, GAVEL_ERR_NOT_LEADER);
    assert_int_equal(f->replies[1]->reply->status,
                     GAVEL_ERR_STORE_UNAVAILABLE); /* must not be carried again */
    assert_int_equal(f->replies[2]->reply->status, GAVEL_OK);
    f->is_working = true;
    must(f, 7, 1, open);
    assert_int_equal(f->log_count, 3);
}

static void test_a_request_without_a_session_is_told_whether_it_reached_the_log(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *put = op_put(f, "g", "k", "v");

    send_request(f, 0, 0, 1, &put);
    frontend_close(&f->frontend);
    collect(f);
    assert_int_equal(last_reply(f)->status, GAVEL_ERR_NOT_LEADER);
    frontend_open(&f->frontend, f->term = 2, f->now);
    send_request(f, 0, 0, 1, &put);
    flush(f);
    frontend_close(&f->frontend);
    collect(f);
    expect(last_reply(f), GAVEL_ERR_STORE_UNAVAILABLE,
           "the leader of the cluster was lost before the outcome was known: this may have been done or not; "
           "look before asking again");
}

static void test_an_entry_of_another_term_is_not_ours(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *put = op_put(f, "g", "k", "v");

    must(f, 7, 1, op_open(f, 7, 2000));
    send_request(f, 7, 2, 1, &put);
    flush(f);
    frontend_applied(&f->frontend, f->now, true, 2, 9, GAVEL_OK, NULL, 0);
    collect(f);
    assert_int_equal(last_reply(f)->status, GAVEL_ERR_NOT_LEADER);
    assert_int_equal(f->frontend.waiting_count, 0);
}

static void test_what_cannot_be_proposed_is_refused_and_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t version = hold(f);
    Gavel__Op *claim = op_claim(f, "g", "two", 2, version);

    run_until(f, f->now + MS(1002));
    f->propose_status = GAVEL_ERR_NOT_LEADER;
    assert_int_equal(request(f, 0, 0, claim)->status, GAVEL_ERR_NOT_LEADER);
    /* While it hands over, and when it has just stepped down: the next leader takes it. */
    f->propose_status = GAVEL_ERR_STATE;
    assert_int_equal(request(f, 0, 0, claim)->status, GAVEL_ERR_NOT_LEADER);
    f->propose_status = GAVEL_ERR_NO_LEADER;
    assert_int_equal(request(f, 0, 0, claim)->status, GAVEL_ERR_NOT_LEADER);
    f->propose_status = GAVEL_ERR_NO_MEMORY;
    expect(request(f, 0, 0, claim), GAVEL_ERR_NO_MEMORY,
           "the cluster accepts no writes at the moment; try again");
    f->propose_status = GAVEL_ERR_STORE_UNAVAILABLE;
    expect(
        request(f, 0, 0, claim), GAVEL_ERR_STORE_UNAVAILABLE,
        "too many writes wait for a majority of the nodes to store them; nothing was written: look at the disks "
        "and links of the other nodes (`gavel status`), and try again");
    f->propose_status = GAVEL_OK;
    must(f, 0, 0, op_renew(f, "g", "one", 1)); /* no claim is under way */
    assert_int_equal(f->log_count, 1);
}

static void test_a_leader_that_is_lost_by_proposing_answers_everybody(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *put = op_put(f, "g", "k", "v");

    must(f, 7, 1, op_open(f, 7, 2000));
    f->closes_on_propose = true;
    send_request(f, 7, 2, 1, &put);
    send_request(f, 0, 0, 1, &put);
    flush(f);
    assert_int_equal(f->replies[1]->reply->status, GAVEL_ERR_NOT_LEADER);
    assert_int_equal(f->replies[2]->reply->status, GAVEL_ERR_STORE_UNAVAILABLE);
    commit(f);
    assert_int_equal(f->reply_count, 3);
    assert_int_equal(f->frontend.waiting_count, 0);
}

/* ---- the dead ---- */

static void test_the_dead_are_taken_off_and_nobody_is_answered(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *close = op_close(f, 7);
    Gavel__Op *release = op_release(f, "g", "", 0);
    const Gavel__Op *ops[] = {close, release, op_put(f, "g", "k", "v"), op_close(f, 8)};
    size_t replies;

    must(f, 7, 1, op_open(f, 7, 2000));
    must(f, 8, 1, op_open(f, 8, 2000));
    hold(f);
    replies = f->reply_count;
    close->close_session->ending = GAVEL__ENDING__ENDING_DEAD;
    release->release->is_dead = true;
    release->release->epoch = group_of(f, "g")->epoch;
    frontend_report_deaths(&f->frontend, f->now, 1, ops, 4);
    flush(f);
    commit(f);
    assert_null(table_session_find(&f->table, 7));
    assert_non_null(table_session_find(&f->table, 8)); /* only the dead */
    assert_false(group_of(f, "g")->is_held);
    assert_null(table_note_find(&f->table, "g", "k"));
    assert_int_equal(f->reply_count, replies);
    frontend_close(&f->frontend);
    collect(f);
    frontend_report_deaths(&f->frontend, f->now, 1, ops, 4); /* it is told again to whoever leads */
    assert_int_equal(f->frontend.waiting_count, 0);
}

/* Whoever watches tells of them until the table knows, and that may take a while. */
static void test_a_death_that_is_told_again_is_proposed_once(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *close = op_close(f, 7);
    Gavel__Op *release = op_release(f, "g", "", 0);
    const Gavel__Op *ops[] = {close, release};
    size_t before;

    must(f, 7, 1, op_open(f, 7, 2000));
    hold(f);
    before = f->log_count;
    close->close_session->ending = GAVEL__ENDING__ENDING_DEAD;
    release->release->is_dead = true;
    release->release->epoch = group_of(f, "g")->epoch;
    for (int i = 0; i < 10; i++) {
        frontend_report_deaths(&f->frontend, f->now, 1, ops, 2);
        flush(f);
    }
    assert_int_equal(f->log_count, before + 1);
    fixture_change_leader(f); /* whether it is in the log is not known: it is proposed again */
    frontend_report_deaths(&f->frontend, f->now, 1, ops, 2);
    flush(f);
    assert_int_equal(f->log_count, before + 2);
    commit(f);
    assert_null(table_session_find(&f->table, 7));
    assert_false(group_of(f, "g")->is_held);
}

/* However much clients ask at once, nobody waits longer for a leader that is gone. */
static void test_the_end_of_the_dead_does_not_wait_behind_what_clients_ask(void **state)
{
    struct fixture *f = *state;
    enum { OPS = 500, REQUESTS = 6, FIT = FRONTEND_FLIGHT_OPS_MAX / OPS };
    Gavel__Op *many[OPS];
    Gavel__Op *closes[2] = {op_close(f, 7), op_close(f, 8)};
    size_t before;

    must(f, 7, 1, op_open(f, 7, 2000));
    must(f, 8, 1, op_open(f, 8, 2000));
    before = f->log_count;
    for (size_t i = 0; i < OPS; i++)
        many[i] = op_put(f, "g", "k", "v");
    for (size_t i = 0; i < REQUESTS; i++)
        send_request(f, 0, 0, OPS, many);
    flush(f);
    assert_int_equal(f->log_count, before + FIT);
    for (size_t i = 0; i < 2; i++) {
        const Gavel__Op *op = closes[i];

        closes[i]->close_session->ending = GAVEL__ENDING__ENDING_DEAD;
        frontend_report_deaths(&f->frontend, f->now, 1, &op, 1);
    }
    commit(f);
    flush(f);
    for (size_t i = 0; i < 2; i++) { /* in their order */
        Gavel__Command *command = command_of(f, before + FIT + i);

        assert_int_equal(command->ops[0]->what_case, GAVEL__OP__WHAT_CLOSE_SESSION);
        assert_int_equal(command->ops[0]->close_session->session, 7 + i);
        gavel__command__free_unpacked(command, NULL);
    }
    while (f->applied < f->log_count) {
        commit(f);
        flush(f);
    }
    assert_int_equal(f->log_count, before + REQUESTS + 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_request_is_answered_once_it_is_applied),
        TEST(test_a_closed_frontend_answers_that_it_does_not_lead),
        TEST(test_a_leader_without_a_lease_answers_that_it_does_not_lead),
        TEST(test_a_renewal_by_the_holder_needs_no_log),
        TEST(test_any_other_renewal_goes_to_the_log),
        TEST(test_a_heartbeat_that_changes_nothing_needs_no_log),
        TEST(test_a_request_without_the_log_does_not_hold_up_the_next),
        TEST(test_a_repeated_request_is_answered_and_not_applied_again),
        TEST(test_a_request_that_the_leader_was_lost_with_is_applied_once),
        TEST(test_a_request_under_way_is_not_proposed_twice),
        TEST(test_an_id_that_is_used_for_another_request_is_a_mistake),
        TEST(test_a_session_that_is_not_open_is_gone),
        TEST(test_a_session_that_ends_while_its_request_is_under_way),
        TEST(test_an_opening_that_comes_again_keeps_the_session_alive),
        TEST(test_an_opening_and_a_keep_alive_tell_which_session_is_open),
        TEST(test_a_session_is_opened_by_a_campaign),
        TEST(test_a_campaign_that_was_lost_behind_its_opening_is_made_good),
        TEST(test_a_repeat_on_its_way_is_answered_once),
        TEST(test_nothing_but_campaigns_goes_with_an_opening),
        TEST(test_a_refused_operation_keeps_its_place_among_others),
        TEST(test_a_batch_of_renewals_needs_no_log),
        TEST(test_bad_requests_are_refused_in_words),
        TEST(test_only_nodes_say_who_is_dead),
        TEST(test_a_request_that_is_too_large_is_refused),
        TEST(test_too_many_requests_at_once_are_refused),
        TEST(test_no_request_is_taken_beyond_the_limit_of_bytes),
        TEST(test_only_so_many_operations_are_in_the_log_at_once),
        TEST(test_whoever_counts_from_an_answer_gets_none_after_the_lease),
        TEST(test_a_request_without_a_session_is_told_whether_it_reached_the_log),
        TEST(test_an_entry_of_another_term_is_not_ours),
        TEST(test_what_cannot_be_proposed_is_refused_and_leaves_nothing),
        TEST(test_a_leader_that_is_lost_by_proposing_answers_everybody),
        TEST(test_the_dead_are_taken_off_and_nobody_is_answered),
        TEST(test_a_death_that_is_told_again_is_proposed_once),
        TEST(test_the_end_of_the_dead_does_not_wait_behind_what_clients_ask),
    };

    return cmocka_run_group_tests_name("frontend", tests, NULL, NULL);
}
