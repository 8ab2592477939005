/* SPDX-License-Identifier: Apache-2.0 */

/* Mandates that last as long as a session: what makes a candidate lead, and what ends it. */

#include "session_fixture.h"

static void expect_reason(const struct fixture *f, enum gavel_reason reason)
{
    const struct candidate_action *stop = find(f, CANDIDATE_WORK_STOP);

    assert_non_null(stop);
    assert_int_equal(stop->work_stop.reason, reason);
    assert_int_equal(f->candidate.state, CANDIDATE_STOPPING);
}

static void test_the_answer_to_a_heartbeat_elects(void **state)
{
    struct fixture *f = *state;
    const struct candidate_action *mandate;

    begin(f);
    answer(f, STORE_READ, shown(f, 0, "", false));
    assert_null(pending(f, STORE_CLAIM));
    answer(f, STORE_HEARTBEAT, shown(f, 7, "me", true));
    mandate = find(f, CANDIDATE_MANDATE);
    assert_non_null(mandate);
    assert_true(mandate < find(f, CANDIDATE_WORK_START));
    assert_int_equal(mandate->mandate.epoch, 7);
    assert_int_equal(mandate->mandate.deadline, f->session.deadline - ns_from_ms(50));
    assert_int_equal(mandate->mandate.deadline - mandate->mandate.stop_at, ns_from_ms(500));
    assert_int_equal(candidate_stop_lead(&f->candidate), ns_from_ms(550));
}

/* In the words of the driver, which it gives up a moment before. */
static void test_a_cluster_that_is_silent_is_said_to_need_a_majority(void **state)
{
    struct fixture *f = *state;

    begin(f);
    pass(f, 8000); /* nobody answers */
    assert_non_null(f->candidate.trouble);
    assert_string_equal(
        f->candidate.trouble,
        "the store has not answered in time: it has no leader, or is overloaded; a majority of its nodes must run and reach each other");
}

static void test_a_push_and_a_read_elect(void **state)
{
    struct fixture *f = *state;

    follow(f);
    tell(f, shown(f, 8, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    resign(f);
    work_stopped(f);
    answer(f, STORE_RELEASE, shown(f, 10, "other", true));
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
    feed(f, (struct candidate_event){.kind = CANDIDATE_DOORBELL});
    (void)await(f, STORE_READ);
    answer(f, STORE_READ, shown(f, 12, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    assert_int_equal(f->candidate.epoch, 12);
}

static void test_a_push_before_the_first_heartbeat_was_answered_elects_nobody(void **state)
{
    struct fixture *f = *state;

    begin(f);
    answer(f, STORE_READ, shown(f, 6, "me", true)); /* of whoever had this session before us */
    tell(f, shown(f, 6, "me", true));
    assert_null(find(f, CANDIDATE_WORK_START));
    answer(f, STORE_HEARTBEAT, shown(f, 7, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
}

/* As the store shows what another candidate of our store object holds: in our session, under its own id. */
static struct store_reply held_beside_us(const struct fixture *f, uint64_t version)
{
    struct store_reply reply = shown(f, version, "beside", true);

    reply.is_ours = true;
    return reply;
}

static void test_what_is_held_by_another_id_in_our_session_is_not_ours(void **state)
{
    struct fixture *f = *state;

    follow(f);
    tell(f, held_beside_us(f, 8));
    assert_null(find(f, CANDIDATE_WORK_START));
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
    assert_int_equal(candidate_leader_epoch(&f->candidate), 8);
}

static void test_another_id_in_our_session_supersedes(void **state)
{
    struct fixture *f = *state;

    lead(f);
    tell(f, held_beside_us(f, 9));
    expect_reason(f, GAVEL_REASON_SUPERSEDED);
}

static void test_the_release_may_elect_again_with_a_new_epoch(void **state)
{
    struct fixture *f = *state;

    lead(f);
    resign(f);
    work_stopped(f);
    answer(f, STORE_RELEASE, shown(f, 9, "me", true)); /* nobody else was there */
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    assert_int_equal(f->candidate.epoch, 9);
}

static void test_a_release_whose_answer_is_overtaken_by_a_grant_elects(void **state)
{
    struct fixture *f = *state;

    lead(f);
    resign(f);
    work_stopped(f);
    tell(f, shown(f, 9, "me", true)); /* the next one has given up already */
    assert_int_equal(f->candidate.state, CANDIDATE_STOPPING);
    answer(f, STORE_RELEASE, shown(f, 8, "other", true)); /* as it was then */
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    assert_int_equal(f->candidate.epoch, 9);
}

static void test_an_old_push_brings_back_nothing(void **state)
{
    struct fixture *f = *state;

    lead(f);
    resign(f);
    work_stopped(f);
    answer(f, STORE_RELEASE, shown(f, 8, "other", true));
    tell(f, shown(f, 7, "me", true)); /* late */
    tell(f, shown(f, 7, "me", true)); /* and again */
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
    assert_int_equal(candidate_leader_epoch(&f->candidate), 8);
}

static void test_an_epoch_that_was_given_up_is_not_taken_up_again(void **state)
{
    struct fixture *f = *state;

    lead(f);
    resign(f);
    work_stopped(f);
    answer(f, STORE_RELEASE, (struct store_reply){.status = GAVEL_ERR_NOT_HOLDER, .session = 1});
    tell(f, shown(f, 7, "me", true)); /* the very version that is known */
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
}

static void test_a_push_that_is_repeated_starts_the_work_once(void **state)
{
    struct fixture *f = *state;

    follow(f);
    tell(f, shown(f, 8, "me", true));
    assert_non_null(find(f, CANDIDATE_WORK_START));
    tell(f, shown(f, 8, "me", true));
    assert_null(find(f, CANDIDATE_WORK_START));
    assert_null(find(f, CANDIDATE_MANDATE));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
}

static void test_an_answer_of_a_former_session_elects_nobody(void **state)
{
    struct fixture *f = *state;
    struct store_reply late;

    follow(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_DOORBELL});
    (void)await(f, STORE_READ);
    late = shown(f, 8, "me", true);
    open_session(f, 2);
    answer(f, STORE_READ, late);
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
    assert_non_null(pending(f, STORE_HEARTBEAT)); /* in the new one it says again who it is … */
    answer(f, STORE_HEARTBEAT, shown(f, 9, "other", true));
    (void)await(f, STORE_READ); /* … and looks again */
}

static void test_a_session_that_lapses_by_the_clock_ends_the_mandate(void **state)
{
    struct fixture *f = *state;
    gavel_ns deadline;

    lead(f);
    deadline = f->candidate.deadline;
    f->now = ms_from_ns(f->candidate.stop_at) - 2;
    tick(f);
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    assert_true(candidate_is_leader(&f->candidate, f->candidate.stop_at - 1));
    assert_false(candidate_is_leader(&f->candidate, f->candidate.stop_at));
    tick(f);
    expect_reason(f, GAVEL_REASON_LAPSED);
    assert_int_equal(find(f, CANDIDATE_WORK_STOP)->work_stop.deadline, deadline);
    keep_alive(f); /* acknowledged too late */
    tick(f);
    assert_int_equal(f->candidate.state, CANDIDATE_STOPPING);
    work_stopped(f);
    assert_int_equal(sent(f, STORE_RELEASE)->record.loss, GAVEL_LOSS_LAPSED);
}

static void test_a_later_deadline_is_learnt_with_whatever_event_comes(void **state)
{
    struct fixture *f = *state;

    lead(f);
    f->now = ms_from_ns(f->candidate.stop_at) + 100; /* nobody woke us meanwhile, and nobody had to */
    keep_alive(f);
    tick(f);
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    assert_int_equal(f->candidate.deadline, f->session.deadline - ns_from_ms(50));
}

static void test_the_end_of_the_session_is_no_reason_to_be_woken(void **state)
{
    struct fixture *f = *state;

    lead(f);
    assert_true(candidate_wake_at(&f->candidate) == NEVER);
}

static void test_another_session_ends_the_mandate_while_leading(void **state)
{
    struct fixture *f = *state;

    lead(f);
    f->now += 100;
    open_session(f, 2);
    tick(f);
    expect_reason(f, GAVEL_REASON_LAPSED);
    assert_int_equal(find(f, CANDIDATE_WORK_STOP)->work_stop.deadline,
                     ns_from_ms(f->now + 500)); /* somebody else may lead already */
    assert_int_equal(find(f, CANDIDATE_MANDATE)->mandate.epoch, 0);
    work_stopped(f);
    assert_null(pending(f, STORE_RELEASE)); /* it ended with its session */
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
}

static void test_no_session_ends_the_mandate_too(void **state)
{
    struct fixture *f = *state;

    lead(f);
    open_session(f, 0);
    tick(f);
    expect_reason(f, GAVEL_REASON_LAPSED);
}

static void test_another_session_ends_the_mandate_while_preparing(void **state)
{
    struct fixture *f = *state;

    f->config.settings.preparation_ms = 300;
    begin(f);
    answer(f, STORE_READ, shown(f, 0, "", false));
    answer(f, STORE_HEARTBEAT, shown(f, 7, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_PREPARING);
    open_session(f, 2);
    tick(f);
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
    assert_null(pending(f, STORE_RELEASE));
    pass(f, 400);
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
}

static void test_another_session_while_stopping_leaves_nothing_to_release(void **state)
{
    struct fixture *f = *state;

    lead(f);
    resign(f);
    open_session(f, 2);
    tick(f);
    assert_int_equal(f->candidate.state, CANDIDATE_STOPPING); /* the work still runs */
    work_stopped(f);
    assert_null(pending(f, STORE_RELEASE));
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
}

static void test_another_session_while_a_release_is_under_way_ends_the_wait(void **state)
{
    struct fixture *f = *state;
    uint64_t call;

    lead(f);
    resign(f);
    work_stopped(f);
    call = pending(f, STORE_RELEASE)->id;
    open_session(f, 2);
    tick(f);
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
    feed(f, (struct candidate_event){
                .kind = CANDIDATE_REPLY,
                .reply = {.call = call, .reply = &(struct store_reply){.status = GAVEL_ERR_SESSION_GONE}}});
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
}

static void test_a_release_comes_after_the_work_and_says_its_session(void **state)
{
    struct fixture *f = *state;

    lead(f);
    resign(f);
    assert_null(pending(f, STORE_RELEASE));
    pass(f, 50);
    assert_null(pending(f, STORE_RELEASE));
    work_stopped(f);
    assert_int_equal(sent(f, STORE_RELEASE)->session, 1);
    assert_int_equal(sent(f, STORE_RELEASE)->record.epoch, 7);
}

static void test_a_release_without_an_answer_is_sent_again(void **state)
{
    struct fixture *f = *state;

    lead(f);
    resign(f);
    work_stopped(f);
    f->actions.count = 0;
    assert_int_equal(await(f, STORE_RELEASE).record.epoch, 7); /* after the time-out of the first */
    answer(f, STORE_RELEASE, (struct store_reply){.status = GAVEL_ERR_STORE_UNAVAILABLE});
    assert_int_equal(await(f, STORE_RELEASE).record.epoch, 7);
    answer(f, STORE_RELEASE, shown(f, 8, "other", true));
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
}

static void test_a_newer_record_of_another_supersedes(void **state)
{
    struct fixture *f = *state;

    lead(f);
    tell(f, shown(f, 9, "other", true));
    expect_reason(f, GAVEL_REASON_SUPERSEDED);
    work_stopped(f);
    assert_null(pending(f, STORE_RELEASE));
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
}

static void test_a_read_that_shows_nobody_supersedes(void **state)
{
    struct fixture *f = *state;

    lead(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_DOORBELL});
    (void)await(f, STORE_READ);
    answer(f, STORE_READ, shown(f, 8, "me", false));
    expect_reason(f, GAVEL_REASON_SUPERSEDED);
}

static void test_an_older_record_of_another_does_not_supersede(void **state)
{
    struct fixture *f = *state;

    lead(f);
    tell(f, shown(f, 6, "other", true));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
}

static void test_a_wish_that_a_push_shows_is_obeyed(void **state)
{
    struct fixture *f = *state;
    struct store_reply wish;

    lead(f);
    wish = shown(f, 7, "me", true); /* a wish does not change the version */
    wish.record.wish_epoch = 7;
    tell(f, wish);
    expect_reason(f, GAVEL_REASON_RESIGNED);
}

static void test_a_wish_waits_for_the_minimum_mandate(void **state)
{
    struct fixture *f = *state;
    struct store_reply wish;

    f->config.settings.min_mandate_ms = 3000;
    lead(f);
    wish = shown(f, 7, "me", true);
    wish.record.wish_epoch = 7;
    tell(f, wish);
    pass(f, 2500);
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    assert_true(candidate_wake_at(&f->candidate) != NEVER);
    (void)await(f, STORE_READ);
    answer(f, STORE_READ, wish);
    assert_int_equal(f->candidate.state, CANDIDATE_STOPPING);
}

static void test_a_mandate_that_comes_while_stopping_is_withdrawn(void **state)
{
    struct fixture *f = *state;

    follow(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_STOP});
    assert_non_null(pending(f, STORE_LEAVE)); /* which withdraws, whatever was granted before */
    tell(f, shown(f, 8, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
    answer(f, STORE_LEAVE, (struct store_reply){.session = 1});
    assert_int_equal(f->candidate.state, CANDIDATE_ENDED);
}

static void test_an_election_while_the_work_stops_is_taken_up_only_after_it(void **state)
{
    struct fixture *f = *state;

    lead(f);
    resign(f);
    tell(f, shown(f, 9, "me", true)); /* a new epoch that we had asked for, say */
    assert_int_equal(f->candidate.state, CANDIDATE_STOPPING);
    assert_null(find(f, CANDIDATE_WORK_START));
    work_stopped(f);
    assert_int_equal(sent(f, STORE_RELEASE)->record.epoch, 7);
    answer(f, STORE_RELEASE,
           (struct store_reply){.status = GAVEL_ERR_NOT_HOLDER,
                                .found = true,
                                .is_ours = true,
                                .session = 1,
                                .record = shown(f, 9, "me", true).record});
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    assert_int_equal(f->candidate.epoch, 9);
}

static void test_a_mandate_that_comes_while_ineligible_is_released_at_once(void **state)
{
    struct fixture *f = *state;

    follow(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_SET_ELIGIBLE, .eligible = false});
    assert_false(sent(f, STORE_HEARTBEAT)->campaign.stands);
    tell(f, shown(f, 8, "me", true)); /* was granted before that arrived */
    assert_null(find(f, CANDIDATE_WORK_START));
    assert_int_equal(sent(f, STORE_RELEASE)->record.epoch, 8);
    answer(f, STORE_RELEASE, shown(f, 9, "other", true));
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
}

static void test_a_leader_that_leaves_stops_releases_and_leaves(void **state)
{
    struct fixture *f = *state;

    lead(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_STOP});
    assert_null(pending(f, STORE_LEAVE));
    work_stopped(f);
    assert_true(sent(f, STORE_RELEASE)->leaves);
    answer(f, STORE_RELEASE, shown(f, 8, "other", true));
    assert_int_equal(f->candidate.state, CANDIDATE_ENDED);
}

static void test_a_loss_is_told_with_the_release_that_leaves(void **state)
{
    struct fixture *f = *state;

    lead(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_STOP, .stop = {.loss = GAVEL_LOSS_KILLED}});
    assert_null(sent(f, STORE_HEARTBEAT)); /* it could arrive after that, and join again */
    work_stopped(f);
    assert_true(sent(f, STORE_RELEASE)->leaves);
    assert_int_equal(sent(f, STORE_RELEASE)->record.loss, GAVEL_LOSS_KILLED);
    answer(f, STORE_RELEASE, (struct store_reply){.status = GAVEL_ERR_STORE_UNAVAILABLE});
    assert_null(pending(f, STORE_HEARTBEAT));
    assert_int_equal(await(f, STORE_RELEASE).record.loss, GAVEL_LOSS_KILLED);
    answer(f, STORE_RELEASE, (struct store_reply){.status = GAVEL_ERR_NOT_FOUND}); /* the first was applied */
    assert_int_equal(f->candidate.state, CANDIDATE_ENDED);
}

static void test_a_release_that_ended_nothing_does_not_replace_the_leave(void **state)
{
    struct fixture *f = *state;

    lead(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_STOP});
    work_stopped(f);
    answer(f, STORE_RELEASE, (struct store_reply){.status = GAVEL_ERR_NOT_HOLDER, .session = 1});
    assert_non_null(pending(f, STORE_LEAVE));
}

static void test_a_mandate_that_leaves_no_time_is_given_up_for_a_while(void **state)
{
    struct fixture *f = *state;
    gavel_ms left_at;

    f->config.settings.preparation_ms = 300;
    begin(f);
    answer(f, STORE_READ, shown(f, 0, "", false));
    list_nobody(f);
    answer(f, STORE_HEARTBEAT, shown(f, 7, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_PREPARING);
    f->now = ms_from_ns(f->candidate.stop_at); /* no keep-alive was answered */
    tick(f);
    assert_true(sent(f, STORE_RELEASE)->leaves);
    assert_null(pending(f, STORE_HEARTBEAT));
    keep_alive(f);
    answer(f, STORE_RELEASE, shown(f, 8, "me", false));
    left_at = f->now;
    assert_true(await(f, STORE_HEARTBEAT).campaign.stands);
    assert_true(f->now >= left_at + 10);
    answer(f, STORE_HEARTBEAT, shown(f, 9, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_PREPARING);
}

static void test_who_leaves_says_so_again_while_the_session_lasts(void **state)
{
    struct fixture *f = *state;

    follow(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_STOP});
    f->actions.count = 0;
    (void)await(f, STORE_LEAVE); /* nobody answered the first */
    open_session(f, 2);
    tick(f);
    assert_int_equal(f->candidate.state, CANDIDATE_ENDED);
}

static void test_who_leaves_without_a_session_waits_for_a_heartbeat_under_way(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(candidate_init(&f->candidate, &f->config, NULL), GAVEL_OK);
    feed(f, (struct candidate_event){.kind = CANDIDATE_START});
    assert_int_equal(sent(f, STORE_HEARTBEAT)->session, 0);
    feed(f, (struct candidate_event){.kind = CANDIDATE_STOP});
    assert_int_equal(f->candidate.state, CANDIDATE_OBSERVING);
    open_session(f, 1); /* with which the heartbeat may have gone */
    tick(f);
    assert_int_equal(sent(f, STORE_LEAVE)->session, 1);
    answer(f, STORE_LEAVE, (struct store_reply){.session = 1});
    assert_int_equal(f->candidate.state, CANDIDATE_ENDED);
}

static void test_a_new_epoch_is_asked_for_and_the_work_goes_on(void **state)
{
    struct fixture *f = *state;
    struct store_request asked;

    f->config.settings.max_mandate_ms = 8000;
    lead(f);
    assert_true(candidate_wake_at(&f->candidate) > ns_from_ms(5000));
    asked = await(f, STORE_HEARTBEAT);
    assert_int_equal(asked.campaign.renews_epoch, 7);
    assert_true(f->now > 5000);
    answer(f, STORE_HEARTBEAT, shown(f, 9, "me", true));
    assert_int_equal(find(f, CANDIDATE_MANDATE)->mandate.epoch, 9);
    assert_null(find(f, CANDIDATE_WORK_START));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    pass(f, 4000);
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
}

static void test_without_a_new_epoch_the_term_ends(void **state)
{
    struct fixture *f = *state;

    f->config.settings.max_mandate_ms = 8000;
    lead(f);
    (void)await(f, STORE_HEARTBEAT);
    answer(f, STORE_HEARTBEAT, shown(f, 7, "me", true)); /* not this time */
    while (f->candidate.state == CANDIDATE_LEADING && f->now < 10000) {
        f->now = ms_from_ns(candidate_wake_at(&f->candidate)) - 1; /* it is woken for that */
        keep_alive(f);
        tick(f);
    }
    expect_reason(f, GAVEL_REASON_TERM_OVER);
    assert_in_range(f->now, 7000, 8000);
}

/* Finishes; the release is under way. */
static void finish(struct fixture *f)
{
    lead(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_FINISH});
    work_stopped(f);
    assert_true(sent(f, STORE_RELEASE)->record.done);
}

static void test_an_ok_that_does_not_show_the_group_closed_is_no_success(void **state)
{
    struct fixture *f = *state;

    finish(f);
    answer(f, STORE_RELEASE, shown(f, 9, "other", true)); /* of a leader of the cluster that skips "done" */
    assert_int_equal(f->candidate.state, CANDIDATE_ENDED);
    assert_int_equal(find(f, CANDIDATE_EMIT)->event.status, GAVEL_ERR_STORE_UNSUPPORTED);
    assert_non_null(strstr(find(f, CANDIDATE_EMIT)->event.message, "may be done again"));
}

static void test_a_group_that_was_reopened_since_was_closed(void **state)
{
    struct fixture *f = *state;
    struct store_reply reopened;

    finish(f);
    reopened = shown(f, 12, "other", true);
    reopened.revision = 9; /* of the release, which was answered once more */
    answer(f, STORE_RELEASE, reopened);
    assert_int_equal(find(f, CANDIDATE_EMIT)->event.status, GAVEL_OK);
}

static void test_work_that_is_done_closes_the_group(void **state)
{
    struct fixture *f = *state;
    struct store_reply done = shown(f, 8, "me", false);

    done.session = 1;
    done.record.epoch = 7;
    done.record.done = true;
    finish(f);
    answer(f, STORE_RELEASE, done);
    assert_null(pending(f, STORE_LEAVE)); /* it went with the group */
    assert_int_equal(find(f, CANDIDATE_EMIT)->event.status, GAVEL_OK);
}

/* Finishes; the release gets no answer, and then the record is read back. */
static void finish_without_an_answer(struct fixture *f)
{
    lead(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_FINISH});
    work_stopped(f);
    f->actions.count = 0;
    (void)await(f, STORE_READ);
}

static void test_a_success_is_recorded_if_the_record_is_done_with_our_epoch(void **state)
{
    struct fixture *f = *state;
    struct store_reply done = shown(f, 8, "me", false);

    finish_without_an_answer(f);
    done.session = 1;
    done.record.epoch = 7;
    done.record.done = true;
    answer(f, STORE_READ, done);
    answer(f, STORE_LEAVE, (struct store_reply){.status = GAVEL_ERR_NOT_FOUND});
    assert_int_equal(find(f, CANDIDATE_EMIT)->event.status, GAVEL_OK);
}

static void test_a_success_of_another_epoch_is_not_ours(void **state)
{
    struct fixture *f = *state;
    struct store_reply done = shown(f, 9, "me", false);

    finish_without_an_answer(f);
    done.session = 1;
    done.record.done = true; /* by a former or later self */
    answer(f, STORE_READ, done);
    answer(f, STORE_LEAVE, (struct store_reply){.status = GAVEL_ERR_NOT_FOUND});
    assert_int_equal(find(f, CANDIDATE_EMIT)->event.status, GAVEL_ERR_DONE);
}

static void test_a_release_as_done_that_was_lost_is_sent_again(void **state)
{
    struct fixture *f = *state;

    finish_without_an_answer(f);
    answer(f, STORE_READ, shown(f, 7, "me", true));
    assert_true(sent(f, STORE_RELEASE)->record.done);
}

static void test_a_session_that_ends_while_a_success_is_recorded_is_looked_after(void **state)
{
    struct fixture *f = *state;
    struct store_reply done = shown(f, 8, "me", false);

    lead(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_FINISH});
    work_stopped(f);
    open_session(f, 2);
    tick(f);
    done.session = 2;
    done.record.epoch = 7;
    done.record.done = true; /* it had been applied before the session ended */
    answer(f, STORE_READ, done);
    answer(f, STORE_LEAVE, (struct store_reply){.status = GAVEL_ERR_NOT_FOUND});
    assert_int_equal(find(f, CANDIDATE_EMIT)->event.status, GAVEL_OK);
}

static void test_a_group_that_is_done_ends_its_candidates(void **state)
{
    struct fixture *f = *state;
    struct store_reply done;

    follow(f);
    done = shown(f, 6, "other", false);
    done.record.done = true;
    tell(f, done);
    answer(f, STORE_LEAVE, (struct store_reply){.session = 1});
    assert_int_equal(f->candidate.state, CANDIDATE_ENDED);
    assert_int_equal(find(f, CANDIDATE_EMIT)->event.status, GAVEL_ERR_DONE);
}

static void test_a_heartbeat_that_is_refused_since_the_group_is_done_ends_the_candidate(void **state)
{
    struct fixture *f = *state;
    struct store_reply done;

    begin(f);
    done = shown(f, 6, "other", false);
    done.status = GAVEL_ERR_DONE;
    done.record.done = true;
    answer(f, STORE_HEARTBEAT, done);
    answer(f, STORE_LEAVE, (struct store_reply){.status = GAVEL_ERR_NOT_FOUND});
    assert_int_equal(find(f, CANDIDATE_EMIT)->event.status, GAVEL_ERR_DONE);
}

static void test_a_session_that_is_lost_leaves_the_work_the_time_of_its_last_keep_alive(void **state)
{
    struct fixture *f = *state;

    lead(f);
    f->now += 3600000; /* in which nobody woke us */
    keep_alive(f);
    f->now += 1700;
    open_session(f, 0);
    tick(f);
    expect_reason(f, GAVEL_REASON_LAPSED);
    assert_int_equal(find(f, CANDIDATE_WORK_STOP)->work_stop.deadline,
                     f->session.former_deadline - ns_from_ms(50));
    assert_true(find(f, CANDIDATE_WORK_STOP)->work_stop.deadline > ns_from_ms(f->now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_answer_to_a_heartbeat_elects),
        TEST(test_a_cluster_that_is_silent_is_said_to_need_a_majority),
        TEST(test_a_push_and_a_read_elect),
        TEST(test_a_push_before_the_first_heartbeat_was_answered_elects_nobody),
        TEST(test_what_is_held_by_another_id_in_our_session_is_not_ours),
        TEST(test_another_id_in_our_session_supersedes),
        TEST(test_the_release_may_elect_again_with_a_new_epoch),
        TEST(test_a_release_whose_answer_is_overtaken_by_a_grant_elects),
        TEST(test_an_old_push_brings_back_nothing),
        TEST(test_an_epoch_that_was_given_up_is_not_taken_up_again),
        TEST(test_a_push_that_is_repeated_starts_the_work_once),
        TEST(test_an_answer_of_a_former_session_elects_nobody),
        TEST(test_a_session_that_lapses_by_the_clock_ends_the_mandate),
        TEST(test_a_later_deadline_is_learnt_with_whatever_event_comes),
        TEST(test_the_end_of_the_session_is_no_reason_to_be_woken),
        TEST(test_another_session_ends_the_mandate_while_leading),
        TEST(test_no_session_ends_the_mandate_too),
        TEST(test_another_session_ends_the_mandate_while_preparing),
        TEST(test_another_session_while_stopping_leaves_nothing_to_release),
        TEST(test_another_session_while_a_release_is_under_way_ends_the_wait),
        TEST(test_a_release_comes_after_the_work_and_says_its_session),
        TEST(test_a_release_without_an_answer_is_sent_again),
        TEST(test_a_newer_record_of_another_supersedes),
        TEST(test_a_read_that_shows_nobody_supersedes),
        TEST(test_an_older_record_of_another_does_not_supersede),
        TEST(test_a_wish_that_a_push_shows_is_obeyed),
        TEST(test_a_wish_waits_for_the_minimum_mandate),
        TEST(test_a_mandate_that_comes_while_stopping_is_withdrawn),
        TEST(test_an_election_while_the_work_stops_is_taken_up_only_after_it),
        TEST(test_a_mandate_that_comes_while_ineligible_is_released_at_once),
        TEST(test_a_leader_that_leaves_stops_releases_and_leaves),
        TEST(test_a_loss_is_told_with_the_release_that_leaves),
        TEST(test_a_release_that_ended_nothing_does_not_replace_the_leave),
        TEST(test_a_mandate_that_leaves_no_time_is_given_up_for_a_while),
        TEST(test_who_leaves_says_so_again_while_the_session_lasts),
        TEST(test_who_leaves_without_a_session_waits_for_a_heartbeat_under_way),
        TEST(test_a_new_epoch_is_asked_for_and_the_work_goes_on),
        TEST(test_without_a_new_epoch_the_term_ends),
        TEST(test_an_ok_that_does_not_show_the_group_closed_is_no_success),
        TEST(test_a_group_that_was_reopened_since_was_closed),
        TEST(test_work_that_is_done_closes_the_group),
        TEST(test_a_success_is_recorded_if_the_record_is_done_with_our_epoch),
        TEST(test_a_success_of_another_epoch_is_not_ours),
        TEST(test_a_release_as_done_that_was_lost_is_sent_again),
        TEST(test_a_session_that_ends_while_a_success_is_recorded_is_looked_after),
        TEST(test_a_group_that_is_done_ends_its_candidates),
        TEST(test_a_heartbeat_that_is_refused_since_the_group_is_done_ends_the_candidate),
        TEST(test_a_session_that_is_lost_leaves_the_work_the_time_of_its_last_keep_alive),
    };

    return cmocka_run_group_tests_name("candidate: mandates of a session", tests, NULL, NULL);
}
