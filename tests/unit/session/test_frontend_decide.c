/* SPDX-License-Identifier: Apache-2.0 */

/* What only the leader of the cluster can decide: leases that run, ids in use, hand-overs; and what is under
 * way meanwhile. */
#include "frontend_fixture.h"

#define CLAIM_TOO_LATE "the claim on group \"g\" came too late: its record has changed or its lease runs"
#define NOT_HELD "the mandate of group \"g\" is not held as the call says; read it again"

/* "one" holds the lease mandate of g; returns the version. */
static uint64_t hold(struct fixture *f) { return must(f, 0, 0, op_claim(f, "g", "one", 1, 0))->version; }

static void expect_result(const Gavel__Reply *reply, enum gavel_status status, const char *message)
{
    assert_int_equal(reply->status, GAVEL_OK);
    assert_int_equal(reply->n_results, 1);
    assert_string_equal(reply->results[0]->message, message);
    assert_int_equal(reply->results[0]->status, status);
}

/* ---- claims over a lease that has run out ---- */

static void test_a_claim_is_refused_while_the_lease_runs(void **state)
{
    struct fixture *f = *state;
    uint64_t version = hold(f);
    gavel_ns ends_at = f->now + ns_stretch(MS(1000), DRIFT_PPM);
    const Gavel__Reply *reply;

    run_until(f, ends_at - 1);
    reply = request(f, 0, 0, op_claim(f, "g", "two", 2, version));
    expect_result(reply, GAVEL_ERR_CONFLICT, CLAIM_TOO_LATE);
    assert_string_equal(reply->results[0]->group->holder, "one");
    assert_int_equal(f->log_count, 1);
    run_until(f, ends_at);
    assert_string_equal(must(f, 0, 0, op_claim(f, "g", "two", 2, version))->group->holder, "two");
}

static void test_a_new_leader_counts_a_whole_lease_before_it_lets_claims_pass(void **state)
{
    struct fixture *f = *state;
    uint64_t version = hold(f);

    run_until(f, f->now + MS(900));
    fixture_change_leader(f);
    run_until(f, f->now + MS(1000));
    expect_result(request(f, 0, 0, op_claim(f, "g", "two", 2, version)), GAVEL_ERR_CONFLICT, CLAIM_TOO_LATE);
    run_until(f, f->now + MS(2));
    must(f, 0, 0, op_claim(f, "g", "two", 2, version));
}

/* The outcome of a claim over the mandate before says nothing about a claim over this one. */
static void test_a_late_claim_does_not_hide_one_that_is_under_way(void **state)
{
    struct fixture *f = *state;
    uint64_t version = hold(f);
    Gavel__Op *claims[3] = {op_claim(f, "g", "two", 2, version), op_claim(f, "g", "three", 3, version)};
    Gavel__Op *renew = op_renew(f, "g", "two", 2);
    size_t answered;

    run_until(f, f->now + MS(1002));
    send_request(f, 0, 0, 1, &claims[0]);
    send_request(f, 0, 0, 1, &claims[1]);
    flush(f);
    commit_one(f); /* two leads; the claim of three is not applied for longer than a lease */
    assert_string_equal(group_of(f, "g")->holder, "two");
    run_until(f, f->now + MS(1002));
    claims[2] = op_claim(f, "g", "four", 4, group_of(f, "g")->version);
    send_request(f, 0, 0, 1, &claims[2]);
    flush(f);
    commit_one(f); /* that of three comes too late */
    answered = f->reply_count;
    send_request(f, 0, 0, 1, &renew);
    assert_int_equal(f->reply_count, answered); /* no promise now: it waits behind the claim of four */
    flush(f);
    commit(f);
    assert_string_equal(group_of(f, "g")->holder, "four");
    assert_int_not_equal(last_reply(f)->results[0]->status, GAVEL_OK);
}

static void test_a_claim_for_a_version_that_may_come_is_refused(void **state)
{
    struct fixture *f = *state;
    uint64_t version = hold(f);

    run_until(f, f->now + MS(2000));
    expect_result(request(f, 0, 0, op_claim(f, "g", "two", 2, version + 1)), GAVEL_ERR_CONFLICT,
                  CLAIM_TOO_LATE);
    assert_int_equal(f->log_count, 1);
}

static void test_a_released_group_is_claimed_at_its_version(void **state)
{
    struct fixture *f = *state;
    uint64_t version;

    hold(f);
    version = must(f, 0, 0, op_release(f, "g", "one", 1))->version;
    must(f, 0, 0, op_claim(f, "g", "two", 2, version));
    assert_int_equal(f->frontend.waiting_count, 0);
}

/* Whoever ended its work knows the nonce, and nobody else may say that a holder was killed. */
static void test_a_release_for_a_killed_holder_goes_into_the_log_as_one_of_the_dead(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *stranger = op_release(f, "g", "one", 7), *killed = op_release(f, "g", "one", 1);

    hold(f);
    stranger->release->is_killed = killed->release->is_killed = true;
    assert_int_equal(request(f, 0, 0, stranger)->results[0]->status, GAVEL_ERR_NOT_HOLDER);
    assert_true(group_of(f, "g")->is_held);
    must(f, 0, 0, killed);
    assert_false(group_of(f, "g")->is_held);
    assert_int_equal(group_of(f, "g")->last_ending, GAVEL__ENDING__ENDING_DEAD);
    assert_int_equal(f->frontend.waiting_count, 0);
}

static void test_no_renewal_is_answered_while_a_claim_is_under_way(void **state)
{
    struct fixture *f = *state;
    uint64_t version = hold(f);
    Gavel__Op *claim = op_claim(f, "g", "two", 2, version);
    Gavel__Op *renew = op_renew(f, "g", "one", 1);

    run_until(f, f->now + MS(1002));
    send_request(f, 0, 0, 1, &claim);
    send_request(f, 0, 0, 1, &renew);
    assert_int_equal(f->reply_count, 1);
    flush(f);
    assert_int_equal(f->log_count, 3); /* the renewal stands behind the claim */
    commit(f);
    assert_int_equal(f->replies[1]->reply->results[0]->status, GAVEL_OK);
    expect_result(last_reply(f), GAVEL_ERR_NOT_HOLDER, NOT_HELD);
    must(f, 0, 0, op_renew(f, "g", "two", 2));
    assert_int_equal(f->log_count, 3); /* the flag is gone: no log again */
}

static void test_a_claim_that_fails_lets_renewals_pass_again(void **state)
{
    struct fixture *f = *state;
    uint64_t version = hold(f);
    Gavel__Op *claim = op_claim(f, "g", "two", 2, version);
    Gavel__Op *renew = op_renew(f, "g", "one", 1);

    claim->claim->epoch_at_least = UINT64_MAX; /* the table has no higher one */
    run_until(f, f->now + MS(1002));
    send_request(f, 0, 0, 1, &claim);
    send_request(f, 0, 0, 1, &renew);
    flush(f);
    commit(f);
    assert_int_equal(f->replies[1]->reply->results[0]->status, GAVEL_ERR_STORE_FULL);
    expect_result(last_reply(f), GAVEL_OK, "");
    must(f, 0, 0, op_renew(f, "g", "one", 1));
    assert_int_equal(f->log_count, 3);
}

static void test_the_outcome_of_one_claim_does_not_hide_another(void **state)
{
    struct fixture *f = *state;
    uint64_t version = hold(f);
    Gavel__Op *bad = op_claim(f, "g", "two", 2, version);
    Gavel__Op *good = op_claim(f, "g", "three", 3, version);
    Gavel__Op *renew = op_renew(f, "g", "one", 1);

    bad->claim->epoch_at_least = UINT64_MAX;
    run_until(f, f->now + MS(1002));
    send_request(f, 0, 0, 1, &bad);
    send_request(f, 0, 0, 1, &good);
    flush(f);
    commit_one(f);
    send_request(f, 0, 0, 1, &renew);
    flush(f);
    commit(f);
    expect_result(last_reply(f), GAVEL_ERR_NOT_HOLDER, NOT_HELD);
    assert_string_equal(group_of(f, "g")->holder, "three");
}

/* Otherwise the claim would stand behind it in the log, and both would be told that they lead. */
static void test_a_renewal_on_its_way_through_the_log_counts_at_once(void **state)
{
    struct fixture *f = *state;
    uint64_t version = hold(f);
    Gavel__Op *longer = op_renew(f, "g", "one", 1);
    Gavel__Op *claim = op_claim(f, "g", "two", 2, version);

    longer->renew->lease_ms = 3000;
    run_until(f, f->now + MS(1002));
    send_request(f, 0, 0, 1, &longer);
    flush(f);
    send_request(f, 0, 0, 1, &claim);
    expect_result(last_reply(f), GAVEL_ERR_CONFLICT, CLAIM_TOO_LATE);
    commit(f);
    expect_result(last_reply(f), GAVEL_OK, "");
}

static void test_a_session_mandate_is_not_claimed(void **state)
{
    struct fixture *f = *state;

    must(f, 7, 1, op_open(f, 7, 2000));
    must(f, 7, 2, op_campaign(f, "g", "one"));
    expect_result(request(f, 0, 0, op_claim(f, "g", "two", 2, group_of(f, "g")->version)), GAVEL_ERR_CONFLICT,
                  CLAIM_TOO_LATE);
}

/* ---- registrations ---- */

static void test_an_id_of_another_that_is_heard_is_in_use(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *other = op_register(f, "g", "one", 2, 1);
    const Gavel__Reply *reply;

    must(f, 0, 0, op_register(f, "g", "one", 1, 41));
    run_until(f, f->now + MS(1000));
    reply = request(f, 0, 0, other);
    expect_result(
        reply, GAVEL_ERR_ID_IN_USE,
        "the id \"one\" is used by another live candidate of group \"g\" (process 0); choose another "
        "id or stop that process");
    assert_int_equal(reply->results[0]->other_instance,
                     table_candidate_find(group_of(f, "g"), "one")->joined_revision);
    assert_int_equal(reply->results[0]->other_beats, 41);
    run_until(f, f->now + MS(1));
    must(f, 0, 0, other); /* silent for longer than the time-out */
    assert_int_equal(table_candidate_find(group_of(f, "g"), "one")->instance, 2);
    other = op_register(f, "g", "one", 3, 1);
    other->register_candidate->replaces_instance = 2; /* known to be gone */
    must(f, 0, 0, other);
}

static void test_an_id_of_a_session_is_in_use(void **state)
{
    struct fixture *f = *state;

    must(f, 7, 1, op_open(f, 7, 2000));
    must(f, 7, 2, op_campaign(f, "g", "one"));
    run_until(f, f->now + MS(1500));
    assert_int_equal(request(f, 0, 0, op_register(f, "g", "one", 2, 1))->results[0]->status,
                     GAVEL_ERR_ID_IN_USE);
}

static void test_those_long_silent_are_forgotten_when_another_comes(void **state)
{
    struct fixture *f = *state;

    must(f, 0, 0, op_register(f, "g", "one", 1, 1));
    run_until(f, f->now + MS(10000));
    must(f, 0, 0, op_register(f, "g", "two", 2, 1));
    assert_non_null(table_candidate_find(group_of(f, "g"), "one"));
    run_until(f, f->now + MS(1));
    must(f, 0, 0, op_register(f, "g", "three", 3, 1));
    assert_null(table_candidate_find(group_of(f, "g"), "one"));
    assert_non_null(table_candidate_find(group_of(f, "g"), "two"));
}

static void test_a_time_out_beyond_all_bounds_ends_nobody(void **state)
{
    const int64_t bad[] = {INT64_MIN, -1, TABLE_LEASE_MAX_MS + 1, INT64_MAX / 10 + 1, INT64_MAX};
    struct fixture *f = *state;
    Gavel__Op *other = op_register(f, "g", "two", 2, 1);
    Gavel__Op *thief = op_register(f, "g", "one", 3, 1);

    must(f, 0, 0, op_register(f, "g", "one", 1, 1));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        other->register_candidate->timeout_ms = thief->register_candidate->timeout_ms = bad[i];
        assert_int_equal(request(f, 0, 0, other)->status, GAVEL_ERR_INVALID);
        assert_int_equal(request(f, 0, 0, thief)->status, GAVEL_ERR_INVALID);
        assert_int_equal(f->log_count, 1);
    }
    other->register_candidate->timeout_ms = TABLE_LEASE_MAX_MS;
    must(f, 0, 0, other);
    assert_int_equal(group_of(f, "g")->candidate_count, 2);
    assert_int_equal(table_candidate_find(group_of(f, "g"), "one")->instance, 1);
}

static void test_whoever_beats_while_it_is_forgotten_is_registered_again(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *two = op_register(f, "g", "two", 2, 1);
    Gavel__Op *one = op_register(f, "g", "one", 1, 2);

    must(f, 0, 0, op_register(f, "g", "one", 1, 1));
    run_until(f, f->now + MS(10001));
    send_request(f, 0, 0, 1, &two);
    send_request(f, 0, 0, 1, &one);
    flush(f);
    commit(f);
    assert_int_equal(
        heard_candidate(&f->frontend.heard, table_candidate_find(group_of(f, "g"), "one"))->beats, 2);
}

/* An older program that beat has died; the newer one has a session, and the same id. */
static void test_who_beat_and_fell_silent_does_not_keep_its_id_from_a_session(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *ops[] = {op_open(f, 8, 60000), op_campaign(f, "h", "one")};
    Gavel__Op *campaign = op_campaign(f, "g", "one");

    must(f, 0, 0, op_register(f, "g", "one", 1, 1));
    must(f, 0, 0, op_register(f, "h", "one", 2, 1));
    must(f, 7, 1, op_open(f, 7, 86400000));
    campaign->campaign->timeout_ms = 1000;
    run_until(f, f->now + MS(1000));
    assert_int_equal(request(f, 7, 2, campaign)->results[0]->status, GAVEL_ERR_ID_IN_USE);
    must(f, 0, 0, op_register(f, "g", "one", 1, 2)); /* it lives */
    run_until(f, f->now + MS(1000));
    assert_int_equal(request(f, 7, 3, campaign)->results[0]->status, GAVEL_ERR_ID_IN_USE);
    fixture_change_leader(f);
    run_until(f, f->now + MS(1000));
    assert_int_equal(request(f, 7, 4, campaign)->results[0]->status, GAVEL_ERR_ID_IN_USE);
    run_until(f, f->now + MS(1));
    must(f, 7, 5, campaign);
    assert_string_equal(group_of(f, "g")->holder, "one");
    assert_int_equal(group_of(f, "g")->candidate_count, 1);
    run_until(
        f,
        f->now + MS(59001)); /* without a time-out it is a minute; also for whoever opens a session by that */
    assert_int_equal(request_all(f, 8, 1, 2, ops)->results[1]->status, GAVEL_OK);
    assert_string_equal(group_of(f, "h")->holder, "one");
}

/* ---- hand-overs ---- */

static void test_a_wish_is_refused_in_words(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *spectator = op_campaign(f, "g", "spectator");
    Gavel__Op *leader = op_campaign(f, "g", "one");

    expect_result(request(f, 0, 0, op_wish(f, "g", "")), GAVEL_ERR_NOT_FOUND, "there is no group \"g\"");
    must(f, 0, 0, op_put(f, "g", "k", "v"));
    expect_result(request(f, 0, 0, op_wish(f, "g", "")), GAVEL_ERR_NO_LEADER,
                  "group \"g\" has no leader that could hand over");
    leader->campaign->min_mandate_ms = 500;
    must(f, 7, 1, op_open(f, 7, 2000));
    must(f, 7, 2, leader);
    expect_result(request(f, 0, 0, op_wish(f, "g", "")), GAVEL_ERR_NOT_FOUND,
                  "group \"g\" has no other eligible candidate that could take over");
    expect_result(request(f, 0, 0, op_wish(f, "g", "two")), GAVEL_ERR_NOT_FOUND,
                  "\"two\" is not a candidate of group \"g\"");
    expect_result(request(f, 0, 0, op_wish(f, "g", "one")), GAVEL_ERR_STATE,
                  "\"one\" leads group \"g\" already");
    spectator->campaign->is_ineligible = true;
    must(f, 8, 1, op_open(f, 8, 2000));
    must(f, 8, 2, spectator);
    expect_result(request(f, 0, 0, op_wish(f, "g", "spectator")), GAVEL_ERR_NOT_FOUND,
                  "\"spectator\" is not eligible in group \"g\"");
    must(f, 9, 1, op_open(f, 9, 2000));
    must(f, 9, 2, op_campaign(f, "g", "two"));
    run_until(f, f->now + MS(100));
    expect_result(request(f, 0, 0, op_wish(f, "g", "two")), GAVEL_ERR_STATE,
                  "the minimum mandate of \"one\" in group \"g\" runs for another 400 ms; wait, or force it");
}

static void test_a_hand_over_goes_to_whom_it_was_wished_for(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *leader = op_campaign(f, "g", "one");
    Gavel__Op *forced = op_wish(f, "g", "three");
    Gavel__Op *stale = op_wish(f, "g", "two");

    leader->campaign->min_mandate_ms = 500;
    for (uint64_t session = 7; session < 10; session++)
        must(f, session, 1, op_open(f, session, 5000));
    must(f, 7, 2, leader);
    must(f, 8, 2, op_campaign(f, "g", "two"));
    must(f, 9, 2, op_campaign(f, "g", "three"));
    forced->wish->is_forced = true;
    must(f, 0, 0, forced);
    assert_int_equal(group_of(f, "g")->wish_epoch, group_of(f, "g")->epoch);
    assert_int_equal(group_of(f, "g")->wish_timeout_ms, FRONTEND_DRAIN_MS);
    stale->wish->epoch = group_of(f, "g")->epoch;
    must(f, 7, 3, op_withdraw(f, "g"));
    assert_string_equal(group_of(f, "g")->holder, "three");
    expect_result(request(f, 0, 0, stale), GAVEL_ERR_NOT_HOLDER, NOT_HELD);
}

static void test_a_wish_for_a_lease_mandate_is_written_as_on_every_store(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *wish = op_wish(f, "g", "nobody-knows");
    Gavel__Op *early = op_wish(f, "g", "");

    early->wish->epoch = 4;
    expect_result(request(f, 0, 0, early), GAVEL_ERR_NOT_HOLDER, NOT_HELD);
    hold(f);
    assert_int_equal(must(f, 0, 0, wish)->group->wish_epoch, group_of(f, "g")->epoch);
    assert_int_equal(group_of(f, "g")->wish_timeout_ms, 0);
    assert_string_equal(group_of(f, "g")->wish_successor, "nobody-knows");
}

/* ---- what stands in the log ---- */

/* Behind it is only the version of the rules that it is meant by. */
static void expect_at_the_end(const struct fixture *f, size_t which, const uint8_t *bytes, size_t size)
{
    const uint8_t version[] = {0x30, TABLE_VERSION};
    const uint8_t *end;

    assert_true(which < f->log_count);
    assert_true(f->log[which].size > size + sizeof version);
    end = f->log[which].bytes + f->log[which].size - sizeof version;
    assert_memory_equal(end, version, sizeof version);
    assert_memory_equal(end - size, bytes, size);
}

/* Packed by another library, with the fields in another order than ours. */
static void test_an_operation_stands_in_the_log_as_it_was_asked_for(void **state)
{
    static const uint8_t bytes[] = {0x22, 0x0c,                                      /* Request */
                                    0x08, 0x05,                                      /* tag */
                                    0x2a, 0x08,                                      /* ops */
                                    0x7a, 0x06, 0x12, 0x01, 0x6b, 0x0a, 0x01, 0x67}; /* key, group */
    struct fixture *f = *state;
    Gavel__ClientFrame *frame;
    Gavel__Command *command;
    const char *reason;

    assert_int_equal(client_frame_unpack(bytes, sizeof bytes, &frame, &reason), GAVEL_OK);
    frontend_take(&f->frontend, f->now, true, 1, (struct frontend_ticket){.tag = 1}, &frame,
                  (struct table_packed){.bytes = bytes, .size = sizeof bytes});
    assert_null(frame);
    flush(f);
    assert_int_equal(f->log_count, 1);
    expect_at_the_end(f, 0, bytes + 6, sizeof bytes - 6);
    command = command_of(f, 0);
    assert_int_equal(command->n_ops, 1);
    assert_string_equal(command->ops[0]->put_note->group, "g");
    assert_string_equal(command->ops[0]->put_note->key, "k");
    gavel__command__free_unpacked(command, NULL);
    commit(f);
    assert_int_equal(last_reply(f)->results[0]->status, GAVEL_OK);
}

static void expect_op_at_the_end(const struct fixture *f, size_t which, const Gavel__Op *op)
{
    uint8_t bytes[256];

    assert_true(gavel__op__get_packed_size(op) <= sizeof bytes);
    expect_at_the_end(f, which, bytes, gavel__op__pack(op, bytes));
}

static void test_an_opening_and_its_campaign_stand_in_the_log_as_they_were_asked_for(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *ops[] = {op_open(f, 7, 2000), op_campaign(f, "g", "one")};

    assert_int_equal(request_all(f, 7, 1, 2, ops)->n_results, 2);
    assert_int_equal(f->log_count, 2);
    expect_op_at_the_end(f, 0, ops[0]);
    expect_op_at_the_end(f, 1, ops[1]);
}

/* Its epoch is the leader's to say; the other one stands there as it was asked for. */
static void test_only_what_was_decided_anew_is_packed_anew(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *ops[] = {op_wish(f, "g", "two"), op_put(f, "g", "k", "v")};
    Gavel__Command *command;

    hold(f);
    assert_int_equal(request_all(f, 0, 0, 2, ops)->n_results, 2);
    expect_op_at_the_end(f, f->log_count - 1, ops[1]);
    command = command_of(f, f->log_count - 1);
    assert_int_equal(command->ops[0]->wish->epoch, group_of(f, "g")->epoch);
    gavel__command__free_unpacked(command, NULL);
}

/* ---- candidates with a session ---- */

/* A session of that machine, with a process unless pid is 0. */
static void open_on(struct fixture *f, uint64_t session, const char *boot_id, uint64_t pid_ns, int32_t pid)
{
    Gavel__Op *open = op_open(f, session, 2000);
    Gavel__Process process;

    gavel__process__init(&process);
    process.boot_id = (char *)(uintptr_t)boot_id;
    process.pid_ns = pid_ns;
    process.pid = pid;
    open->open_session->process = pid != 0 ? &process : NULL;
    must(f, session, 1, open);
}

/* It campaigns. */
static const Gavel__OpResult *enter(struct fixture *f, uint64_t session, const char *id, int32_t pid)
{
    open_on(f, session, "boot", 0, pid);
    return must(f, session, 2, op_campaign(f, "g", id));
}

static void test_a_campaign_shows_the_group_and_whose_it_is(void **state)
{
    struct fixture *f = *state;
    const Gavel__OpResult *result = enter(f, 7, "a", 70);

    assert_string_equal(result->group->holder, "a");
    assert_int_equal(result->group->session, 7); /* its own */
    assert_int_equal(result->group->epoch, result->epoch);
    result = enter(f, 8, "b", 80);
    assert_string_equal(result->group->holder, "a");
    assert_int_not_equal(result->group->session, 7); /* another's is not shown */
    assert_int_not_equal(result->group->session, 8);
}

static void test_an_id_in_use_is_told_with_the_keep_alives_of_its_session(void **state)
{
    struct fixture *f = *state;
    const Gavel__Reply *reply;
    size_t entries;

    enter(f, 7, "a", 0);
    must(f, 8, 1, op_open(f, 8, 2000));
    entries = f->log_count;
    reply = request(f, 8, 2, op_campaign(f, "g", "a"));
    assert_int_equal(reply->results[0]->status, GAVEL_ERR_ID_IN_USE);
    assert_int_equal(f->log_count, entries); /* nothing for the log */
    assert_int_equal(reply->results[0]->other_instance,
                     table_candidate_find(group_of(f, "g"), "a")->joined_revision);
    assert_int_equal(reply->results[0]->other_beats, 0);
    keep_alive(f, 7);
    reply = request(f, 8, 3, op_campaign(f, "g", "a"));
    assert_int_equal(reply->results[0]->other_beats, 1);
}

static void test_who_yields_takes_part_by_the_terms_of_the_group(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *first = op_campaign(f, "g", "a");
    Gavel__Op *second = op_campaign(f, "g", "b");

    must(f, 7, 1, op_open(f, 7, 2000));
    must(f, 8, 1, op_open(f, 8, 2000));
    first->campaign->policy = GAVEL__POLICY__POLICY_LEXICOGRAPHIC;
    first->campaign->yields = true;
    must(f, 7, 2, first);
    assert_int_equal(group_of(f, "g")->policy, GAVEL__POLICY__POLICY_LEXICOGRAPHIC);
    second->campaign->policy = GAVEL__POLICY__POLICY_PRIORITY;
    second->campaign->preempts = true;
    assert_int_equal(request(f, 8, 2, second)->results[0]->status, GAVEL_ERR_CONFLICT);
    second->campaign->yields = true;
    must(f, 8, 3, second);
    assert_int_equal(group_of(f, "g")->policy, GAVEL__POLICY__POLICY_LEXICOGRAPHIC);
    assert_false(group_of(f, "g")->preempts);
}

static void test_a_death_that_a_candidate_has_seen_ends_the_session(void **state)
{
    struct fixture *f = *state;
    uint64_t epoch = enter(f, 7, "a", 70)->epoch;

    enter(f, 8, "b", 80);
    expect_result(request(f, 8, 3, op_died(f, "g", epoch + 1, 70)), GAVEL_ERR_NOT_HOLDER, NOT_HELD);
    expect_result(request(f, 8, 4, op_died(f, "g", epoch, 71)), GAVEL_ERR_STATE,
                  "the mandate of group \"g\" does not end with that process");
    assert_string_equal(group_of(f, "g")->holder, "a");
    must(f, 8, 5, op_died(f, "g", epoch, 70));
    assert_null(table_session_find(&f->table, 7));
    assert_string_equal(group_of(f, "g")->holder, "b"); /* the same entry has the next leader */
    assert_int_equal(group_of(f, "g")->last_ending, GAVEL__ENDING__ENDING_DEAD);
}

/* The process of a leader is shown to everybody. */
static void test_nobody_is_believed_who_cannot_have_seen_a_death(void **state)
{
    static const char denied[] =
        "only a candidate of group \"g\" whose own process runs on the leader's machine, in the same pid namespace, may report that it is dead";
    struct fixture *f = *state;
    uint64_t epoch = enter(f, 7, "a", 70)->epoch;

    expect_result(request(f, 0, 0, op_died(f, "g", epoch, 70)), GAVEL_ERR_DENIED, denied);
    open_on(f, 8, "boot", 0, 80); /* takes part in another group only */
    must(f, 8, 2, op_campaign(f, "h", "b"));
    expect_result(request(f, 8, 3, op_died(f, "g", epoch, 70)), GAVEL_ERR_DENIED, denied);
    open_on(f, 9, "other", 0, 90); /* on another machine */
    must(f, 9, 2, op_campaign(f, "g", "c"));
    expect_result(request(f, 9, 3, op_died(f, "g", epoch, 70)), GAVEL_ERR_DENIED, denied);
    open_on(f, 10, "boot", 5, 100); /* in a container */
    must(f, 10, 2, op_campaign(f, "g", "d"));
    expect_result(request(f, 10, 3, op_died(f, "g", epoch, 70)), GAVEL_ERR_DENIED, denied);
    open_on(f, 11, "boot", 0, 0); /* who knows where */
    must(f, 11, 2, op_campaign(f, "g", "e"));
    expect_result(request(f, 11, 3, op_died(f, "g", epoch, 70)), GAVEL_ERR_DENIED, denied);
    assert_string_equal(group_of(f, "g")->holder, "a");
    assert_int_equal(group_of(f, "g")->epoch, epoch);
    assert_int_equal(keep_alive(f, 7)->n_gone, 0);
}

static void test_a_session_without_a_process_does_not_end_with_one(void **state)
{
    struct fixture *f = *state;
    uint64_t epoch = enter(f, 7, "a", 0)->epoch;

    enter(f, 8, "b", 80);
    expect_result(request(f, 8, 3, op_died(f, "g", epoch, 70)), GAVEL_ERR_STATE,
                  "the mandate of group \"g\" does not end with that process");
    assert_non_null(table_session_find(&f->table, 7));
}

/* What would be skipped is refused, or left out if it is a hint. */
static void test_while_a_node_may_be_older_the_log_says_nothing_new(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *campaign = op_campaign(f, "g", "b");
    Gavel__Op *renewal = op_campaign(f, "g", "a");
    Gavel__Op *done = op_withdraw(f, "g");
    Gavel__Op *hint = op_withdraw(f, "g");
    uint64_t epoch;

    f->frontend.table_version = 1;
    epoch = enter(f, 7, "a", 0)->epoch;
    must(f, 8, 1, op_open(f, 8, 2000));
    campaign->campaign->is_patient = true;
    campaign->campaign->epoch_at_least = f->table.revision; /* it is so already */
    must(f, 8, 2, campaign);
    assert_false(table_candidate_find(group_of(f, "g"), "b")->is_patient);
    campaign->campaign->epoch_at_least = f->table.revision + 100;
    assert_int_equal(request(f, 8, 3, campaign)->results[0]->status, GAVEL_ERR_STORE_UNSUPPORTED);
    renewal->campaign->renews_epoch = epoch;
    assert_int_equal(request(f, 7, 3, renewal)->results[0]->status, GAVEL_ERR_STORE_UNSUPPORTED);
    assert_int_equal(group_of(f, "g")->epoch, epoch);
    done->withdraw->is_done = true;
    done->withdraw->epoch = epoch;
    assert_int_equal(request(f, 7, 3, done)->results[0]->status, GAVEL_ERR_STORE_UNSUPPORTED);
    hint->withdraw->ending = GAVEL__ENDING__ENDING_LAPSED;
    hint->withdraw->successor = (char *)(uintptr_t) "b";
    must(f, 7, 4, hint);
    assert_int_equal(group_of(f, "g")->last_ending, GAVEL__ENDING__ENDING_RESIGNED);
    assert_string_equal(group_of(f, "g")->holder, "b");
}

/* Whose withdrawal it is would be skipped: then the one that is there now could be withdrawn by it. */
static void test_while_a_node_may_be_older_only_who_is_there_withdraws(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *former = op_withdraw(f, "g");

    f->frontend.table_version = 1;
    enter(f, 7, "b", 0);
    former->withdraw->id = (char *)(uintptr_t) "a";
    assert_int_equal(request(f, 7, 3, former)->results[0]->status, GAVEL_ERR_STORE_UNSUPPORTED);
    assert_string_equal(group_of(f, "g")->holder, "b");
    f->frontend.table_version = TABLE_VERSION;
    assert_int_equal(request(f, 7, 4, former)->results[0]->status, GAVEL_ERR_NOT_FOUND);
    f->frontend.table_version = 1;
    former->withdraw->id = (char *)(uintptr_t) "b";
    must(f, 7, 5, former);
    assert_int_equal(group_of(f, "g")->candidate_count, 0);
}

/* Nobody leads while the group waits for a candidate that does not come. */
static void test_who_withdraws_names_only_who_will_come(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *observer = op_register(f, "g", "o", 5, 1);
    Gavel__Op *name = op_withdraw(f, "g");
    Gavel__Command *command;

    enter(f, 7, "a", 0);
    enter(f, 8, "b", 0);
    observer->register_candidate->is_ineligible = true;
    must(f, 0, 0, observer);
    must(f, 0, 0, op_register(f, "g", "s", 6, 1)); /* one of a store that falls silent */
    name->withdraw->stays = true;
    name->withdraw->successor = (char *)(uintptr_t) "o";
    must(f, 7, 3, name);
    assert_string_equal(group_of(f, "g")->holder, "b");
    command = command_of(f, f->log_count - 1);
    assert_string_equal(command->ops[0]->withdraw->successor, "");
    gavel__command__free_unpacked(command, NULL);
    while (f->now < 1000 * NS_PER_S + MS(2500)) {
        run_until(f, f->now + MS(500));
        (void)keep_alive(f, 7);
        (void)keep_alive(f, 8);
    }
    name->withdraw->successor = (char *)(uintptr_t) "s";
    must(f, 8, 3, name);
    assert_string_equal(group_of(f, "g")->holder, "a");
    must(f, 0, 0, op_register(f, "g", "s", 6, 2)); /* it is back */
    must(f, 7, 4, name);
    assert_false(group_of(f, "g")->is_held);
    assert_string_equal(group_of(f, "g")->successor, "s");
}

/* The leader reads its own entries as the others do, whatever stands in them. */
static void test_commands_say_by_which_rules_they_are_meant(void **state)
{
    struct fixture *f = *state;
    Gavel__Command *command;

    for (uint32_t version = 0; version <= TABLE_VERSION; version++) {
        Gavel__Op *op = op_put(f, "g", "k", "v");

        f->frontend.table_version = version;
        send_request(f, 0, 0, 1, &op);
        flush(f);
        command = command_of(f, f->log_count - 1);
        assert_int_equal(command->table_version, version);
        gavel__command__free_unpacked(command, NULL);
        assert_int_equal(frontend_command(&f->frontend, f->log_count, 1, f->log[f->log_count - 1].size) !=
                             NULL,
                         version == TABLE_VERSION);
        commit(f);
    }
}

static void test_an_opening_with_a_campaign_that_is_refused_opens_nothing(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *ops[] = {op_open(f, 7, 2000), op_campaign(f, "g", "a")};

    f->frontend.table_version = 1;
    ops[1]->campaign->epoch_at_least = f->table.revision + 100;
    assert_int_equal(request_all(f, 7, 1, 2, ops)->status, GAVEL_ERR_STORE_UNSUPPORTED);
    assert_null(table_session_find(&f->table, 7));
    f->frontend.table_version = TABLE_VERSION;
    assert_int_equal(request_all(f, 7, 1, 2, ops)->results[1]->status, GAVEL_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_claim_is_refused_while_the_lease_runs),
        TEST(test_a_new_leader_counts_a_whole_lease_before_it_lets_claims_pass),
        TEST(test_a_late_claim_does_not_hide_one_that_is_under_way),
        TEST(test_a_claim_for_a_version_that_may_come_is_refused),
        TEST(test_a_released_group_is_claimed_at_its_version),
        TEST(test_a_release_for_a_killed_holder_goes_into_the_log_as_one_of_the_dead),
        TEST(test_no_renewal_is_answered_while_a_claim_is_under_way),
        TEST(test_a_claim_that_fails_lets_renewals_pass_again),
        TEST(test_the_outcome_of_one_claim_does_not_hide_another),
        TEST(test_a_renewal_on_its_way_through_the_log_counts_at_once),
        TEST(test_a_session_mandate_is_not_claimed),
        TEST(test_an_id_of_another_that_is_heard_is_in_use),
        TEST(test_an_id_of_a_session_is_in_use),
        TEST(test_those_long_silent_are_forgotten_when_another_comes),
        TEST(test_a_time_out_beyond_all_bounds_ends_nobody),
        TEST(test_whoever_beats_while_it_is_forgotten_is_registered_again),
        TEST(test_who_beat_and_fell_silent_does_not_keep_its_id_from_a_session),
        TEST(test_a_wish_is_refused_in_words),
        TEST(test_a_hand_over_goes_to_whom_it_was_wished_for),
        TEST(test_a_wish_for_a_lease_mandate_is_written_as_on_every_store),
        TEST(test_an_operation_stands_in_the_log_as_it_was_asked_for),
        TEST(test_an_opening_and_its_campaign_stand_in_the_log_as_they_were_asked_for),
        TEST(test_only_what_was_decided_anew_is_packed_anew),
        TEST(test_a_campaign_shows_the_group_and_whose_it_is),
        TEST(test_an_id_in_use_is_told_with_the_keep_alives_of_its_session),
        TEST(test_who_yields_takes_part_by_the_terms_of_the_group),
        TEST(test_a_death_that_a_candidate_has_seen_ends_the_session),
        TEST(test_nobody_is_believed_who_cannot_have_seen_a_death),
        TEST(test_a_session_without_a_process_does_not_end_with_one),
        TEST(test_while_a_node_may_be_older_the_log_says_nothing_new),
        TEST(test_while_a_node_may_be_older_only_who_is_there_withdraws),
        TEST(test_who_withdraws_names_only_who_will_come),
        TEST(test_commands_say_by_which_rules_they_are_meant),
        TEST(test_an_opening_with_a_campaign_that_is_refused_opens_nothing),
    };

    return cmocka_run_group_tests_name("frontend_decide", tests, NULL, NULL);
}
