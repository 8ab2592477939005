/* SPDX-License-Identifier: Apache-2.0 */

/* What a candidate of a session says and asks, and when: mostly nothing. */

#include "session_fixture.h"

/* The calls of that many milliseconds; each is answered as if nothing had changed since. */
static unsigned calls_within(struct fixture *f, gavel_ms ms, struct store_reply unchanged)
{
    unsigned calls = 0;

    for (gavel_ms until = f->now + ms; f->now < until;) {
        keep_alive(f);
        tick(f);
        for (size_t i = 0; i < f->actions.count; i++)
            calls += f->actions.items[i].kind == CANDIDATE_CALL;
        unchanged.session = f->session.number;
        for (int op = STORE_READ; op <= STORE_CANDIDATES; op++)
            if (pending(f, (enum store_op)op))
                answer(f, (enum store_op)op, unchanged);
    }
    return calls;
}

static struct store_reply lost(struct fixture *f, uint64_t version)
{
    struct store_reply reply = shown(f, version, "other", false);

    reply.record.epoch = version - 1;
    reply.record.loss = GAVEL_LOSS_KILLED;
    return reply;
}

static void test_nothing_is_sent_by_time(void **state)
{
    struct fixture *f = *state;

    follow(f);
    assert_true(candidate_wake_at(&f->candidate) == NEVER);
    assert_int_equal(calls_within(f, 60000, shown(f, 5, "other", true)), 0);
}

static void test_a_leader_sends_nothing_by_time(void **state)
{
    struct fixture *f = *state;

    lead(f);
    assert_int_equal(calls_within(f, 60000, shown(f, 7, "me", true)), 0);
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
}

static void test_it_joins_before_a_session_is_open(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(candidate_init(&f->candidate, &f->config, NULL), GAVEL_OK);
    feed(f, (struct candidate_event){.kind = CANDIDATE_START});
    assert_int_equal(sent(f, STORE_HEARTBEAT)->session, 0);
    assert_true(sent(f, STORE_HEARTBEAT)->campaign.stands);
    answer(f, STORE_READ, (struct store_reply){0});
    open_session(f, 4);
    answer(f, STORE_HEARTBEAT, shown(f, 7, "me", true));
    assert_null(sent(f, STORE_HEARTBEAT));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
}

static void test_a_new_session_is_told_who_we_are(void **state)
{
    struct fixture *f = *state;

    follow(f);
    open_session(f, 2);
    tick(f);
    assert_int_equal(sent(f, STORE_HEARTBEAT)->session, 2);
    assert_int_equal(sent(f, STORE_READ)->session, 2);
    answer(f, STORE_HEARTBEAT, shown(f, 5, "other", true));
    answer(f, STORE_READ, shown(f, 5, "other", true));
    list_nobody(f);
    assert_int_equal(calls_within(f, 5000, shown(f, 5, "other", true)), 0);
}

static void test_another_session_while_a_heartbeat_is_under_way_is_told_anew(void **state)
{
    struct fixture *f = *state;
    uint64_t call;
    struct store_reply late;

    begin(f);
    call = pending(f, STORE_HEARTBEAT)->id;
    late = shown(f, 7, "me", true);
    open_session(f, 2);
    tick(f);
    assert_int_equal(sent(f, STORE_HEARTBEAT)->session, 2);
    feed(f, (struct candidate_event){.kind = CANDIDATE_REPLY, .reply = {.call = call, .reply = &late}});
    assert_int_equal(f->candidate.state, CANDIDATE_OBSERVING); /* of a session that is gone */
}

static void test_a_heartbeat_without_an_answer_is_sent_again(void **state)
{
    struct fixture *f = *state;

    begin(f);
    f->actions.count = 0;
    assert_int_equal(await(f, STORE_HEARTBEAT).session, 1);
    answer(f, STORE_HEARTBEAT, (struct store_reply){.status = GAVEL_ERR_STORE_UNAVAILABLE});
    assert_null(pending(f, STORE_HEARTBEAT)); /* not at once */
    (void)await(f, STORE_HEARTBEAT);
}

static void test_a_breaker_that_held_a_heartbeat_back_is_closed_by_a_look(void **state)
{
    struct fixture *f = *state;
    int i = 0;

    follow(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_SET_ELIGIBLE, .eligible = false});
    while (f->candidate.breaker.state == BREAKER_CLOSED && i++ < 20000) { /* nobody answers */
        keep_alive(f);
        tick(f);
    }
    assert_int_equal(f->candidate.breaker.state, BREAKER_OPEN);
    assert_true(candidate_wake_at(&f->candidate) != NEVER);
    for (i = 0; i < 60000 && !pending(f, STORE_READ); i++) {
        keep_alive(f);
        tick(f);
    }
    answer(f, STORE_READ, shown(f, 5, "other", true));
    assert_int_equal(f->candidate.breaker.state, BREAKER_CLOSED);
    assert_false(await(f, STORE_HEARTBEAT).campaign.stands);
}

/* "other" leads, and so many calls have failed that the breaker is open, for longer than a minute. */
static void open_breaker(struct fixture *f)
{
    f->config.settings.breaker_reset_ms = 90000;
    follow(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_SET_ELIGIBLE, .eligible = false});
    feed(f, (struct candidate_event){.kind = CANDIDATE_SET_ELIGIBLE, .eligible = true});
    for (int i = 0; i < 20000 && f->candidate.breaker.state == BREAKER_CLOSED; i++)
        pass(f, 1); /* nobody answers */
    assert_int_equal(f->candidate.breaker.state, BREAKER_OPEN);
    pass(f, 5000);
}

static void test_a_push_closes_the_breaker_by_a_look(void **state)
{
    struct fixture *f = *state;

    open_breaker(f);
    tell(f, shown(f, 8, "third", true));
    assert_non_null(pending(f, STORE_READ));
    answer(f, STORE_READ, shown(f, 8, "third", true));
    assert_int_equal(f->candidate.breaker.state, BREAKER_CLOSED);
}

static void test_a_leader_asks_for_a_new_epoch_through_an_open_breaker(void **state)
{
    struct fixture *f = *state;

    f->config.settings.max_mandate_ms = 8000;
    f->config.settings.breaker_reset_ms = 90000;
    lead(f);
    f->candidate.breaker.state = BREAKER_OPEN;
    f->candidate.breaker.retry_at = ns_from_ms(f->now + 90000);
    f->candidate.breaker.failed_at = ns_from_ms(f->now + 80000);
    assert_int_equal(await(f, STORE_HEARTBEAT).campaign.renews_epoch, 7);
}

static void test_news_that_no_look_has_shown_yet_is_looked_for_again_soon(void **state)
{
    struct fixture *f = *state;

    open_breaker(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_DOORBELL});
    assert_non_null(pending(f, STORE_READ)); /* which nobody answers */
    f->actions.count = 0;
    (void)await(f, STORE_READ);
    answer(f, STORE_READ, shown(f, 8, "me", true));
    (void)await(f, STORE_HEARTBEAT); /* what the breaker had held back */
    answer(f, STORE_HEARTBEAT, shown(f, 8, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
}

static void test_a_list_that_fails_does_not_shut_the_breaker_for_good(void **state)
{
    struct fixture *f = *state;

    begin(f);
    answer(f, STORE_HEARTBEAT, shown(f, 5, "other", true));
    answer(f, STORE_READ, shown(f, 5, "other", true));
    for (int i = 0; i < 20000 && f->candidate.breaker.state == BREAKER_CLOSED; i++) {
        if (pending(f, STORE_READ))
            answer(f, STORE_READ, (struct store_reply){.status = GAVEL_ERR_STORE_UNAVAILABLE});
        pass(f, 1); /* nobody answers a listing */
    }
    assert_int_equal(f->candidate.breaker.state, BREAKER_OPEN);
    for (int i = 0; i < 60000 && !pending(f, STORE_READ); i++)
        pass(f, 1);
    answer(f, STORE_READ, shown(f, 5, "other", true));
    assert_int_equal(f->candidate.breaker.state, BREAKER_CLOSED);
}

static void test_a_heartbeat_says_the_highest_epoch_and_the_terms(void **state)
{
    struct fixture *f = *state;
    struct store_request request;

    f->config.settings.policy = GAVEL_POLICY_PRIORITY;
    f->config.settings.min_mandate_ms = 123;
    f->config.settings.preempt = true;
    follow(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_SET_ELIGIBLE, .eligible = false});
    request = *sent(f, STORE_HEARTBEAT);
    assert_int_equal(request.campaign.epoch_at_least, 5);
    assert_int_equal(request.campaign.policy, GAVEL_POLICY_PRIORITY);
    assert_int_equal(request.campaign.min_mandate_ms, 123);
    assert_true(request.campaign.preempts);
    assert_int_equal(request.campaign.renews_epoch, 0);
}

static void test_ineligible_and_back_are_said_once_each(void **state)
{
    struct fixture *f = *state;

    follow(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_SET_ELIGIBLE, .eligible = false});
    assert_false(sent(f, STORE_HEARTBEAT)->campaign.stands);
    assert_false(sent(f, STORE_HEARTBEAT)->registration.eligible);
    answer(f, STORE_HEARTBEAT, shown(f, 5, "other", true));
    assert_int_equal(calls_within(f, 2000, shown(f, 5, "other", true)), 0);
    feed(f, (struct candidate_event){.kind = CANDIDATE_SET_ELIGIBLE, .eligible = true});
    assert_true(sent(f, STORE_HEARTBEAT)->campaign.stands);
    answer(f, STORE_HEARTBEAT, shown(f, 5, "other", true));
    assert_int_equal(calls_within(f, 2000, shown(f, 5, "other", true)), 0);
}

static void test_who_leads_and_resigns_goes_on_standing(void **state)
{
    struct fixture *f = *state;

    lead(f);
    resign(f);
    assert_null(sent(f, STORE_HEARTBEAT));
    work_stopped(f);
    answer(f, STORE_RELEASE, shown(f, 8, "other", true));
    list_nobody(f);
    assert_null(pending(f, STORE_HEARTBEAT)); /* it has said so */
    assert_true(f->candidate.is_standing);
}

static void test_another_leader_is_looked_at_once_and_watched(void **state)
{
    struct fixture *f = *state;
    struct store_reply named;

    follow(f);
    tell(f, shown(f, 8, "third", true));
    assert_null(find(f, CANDIDATE_CALL)); /* all of them are told at once */
    assert_true(candidate_wake_at(&f->candidate) <= ns_from_ms(f->now + 500));
    (void)await(f, STORE_READ);
    named = shown(f, 8, "third", true);
    named.record.process.pid = 99;
    answer(f, STORE_READ, named);
    assert_int_equal(find(f, CANDIDATE_WATCH)->watch.process.pid, 99);
    tell(f, shown(f, 8, "third", true)); /* names no process */
    assert_null(find(f, CANDIDATE_UNWATCH));
    (void)await(f, STORE_CANDIDATES);
    list_nobody(f);
    assert_int_equal(calls_within(f, 5000, shown(f, 8, "third", true)), 0);
}

/* "other" leads, and we watch its process. */
static struct nonce watch(struct fixture *f)
{
    struct store_reply named;

    follow(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_DOORBELL});
    (void)await(f, STORE_READ);
    named = shown(f, 5, "other", true);
    named.record.process.pid = 99;
    answer(f, STORE_READ, named);
    return find(f, CANDIDATE_WATCH)->watch.nonce;
}

static void test_a_death_is_told_to_the_store(void **state)
{
    struct fixture *f = *state;
    struct nonce nonce = watch(f);

    feed(f, (struct candidate_event){.kind = CANDIDATE_HOLDER_DIED, .holder_died = {.nonce = nonce}});
    assert_int_equal(sent(f, STORE_DIED)->record.epoch, 5);
    assert_int_equal(sent(f, STORE_DIED)->record.process.pid, 99);
    assert_int_equal(sent(f, STORE_DIED)->session, 1);
    f->actions.count = 0;
    (void)await(f, STORE_DIED); /* nobody answered the first */
    answer(f, STORE_DIED, (struct store_reply){.session = 1});
    assert_non_null(pending(f, STORE_READ));
    answer(f, STORE_READ, shown(f, 8, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
}

static void test_the_death_of_a_former_leader_is_not_told_of_its_successor(void **state)
{
    struct fixture *f = *state;
    struct nonce nonce = watch(f);
    struct store_reply named;

    tell(f, shown(f, 8, "third", true));
    (void)await(f, STORE_READ);
    named = shown(f, 8, "third", true);
    named.record.process.pid = 100;
    answer(f, STORE_READ, named);
    feed(f, (struct candidate_event){.kind = CANDIDATE_HOLDER_DIED, .holder_died = {.nonce = nonce}});
    assert_null(pending(f, STORE_DIED));
}

static void test_a_death_waits_for_a_session(void **state)
{
    struct fixture *f = *state;
    struct nonce nonce = watch(f);

    open_session(f, 0);
    feed(f, (struct candidate_event){.kind = CANDIDATE_HOLDER_DIED, .holder_died = {.nonce = nonce}});
    assert_null(pending(f, STORE_DIED));
    open_session(f, 2);
    tick(f);
    assert_int_equal(sent(f, STORE_DIED)->session, 2);
}

static void test_a_takeover_delay_is_waited_for_after_a_loss(void **state)
{
    struct fixture *f = *state;
    gavel_ms lost_at;

    f->config.settings.takeover_delay_ms = 1000;
    follow(f);
    assert_true(f->candidate.said.is_patient);
    tell(f, lost(f, 8));
    lost_at = f->now;
    assert_int_equal(candidate_wake_at(&f->candidate), ns_from_ms(lost_at + 1000));
    assert_false(await(f, STORE_HEARTBEAT).campaign.is_patient);
    assert_int_equal(f->now, lost_at + 1000);
    answer(f, STORE_HEARTBEAT, shown(f, 9, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    assert_true(sent(f, STORE_HEARTBEAT)->campaign.is_patient); /* for the next time */
}

static void test_patience_returns_when_another_leads(void **state)
{
    struct fixture *f = *state;

    f->config.settings.takeover_delay_ms = 1000;
    follow(f);
    tell(f, lost(f, 8));
    (void)await(f, STORE_HEARTBEAT);
    answer(f, STORE_HEARTBEAT, shown(f, 9, "third", true));
    assert_true(sent(f, STORE_HEARTBEAT)->campaign.is_patient);
    answer(f, STORE_HEARTBEAT, shown(f, 9, "third", true));
}

static void test_a_takeover_delay_ends_with_the_vacancy(void **state)
{
    struct fixture *f = *state;

    f->config.settings.takeover_delay_ms = 1000;
    follow(f);
    tell(f, lost(f, 8));
    pass(f, 500);
    tell(f, shown(f, 9, "third", true));
    tell(f, lost(f, 11)); /* another vacancy has a wait of its own */
    pass(f, 900);
    assert_true(f->candidate.is_patient);
    pass(f, 200);
    assert_false(f->candidate.is_patient);
}

static void test_a_vacancy_that_a_new_session_shows_has_a_wait_of_its_own(void **state)
{
    struct fixture *f = *state;

    f->config.settings.takeover_delay_ms = 1000;
    follow(f);
    tell(f, lost(f, 8));
    pass(f, 1100);
    assert_false(f->candidate.is_patient);
    open_session(f, 2); /* what else was missed is not known yet */
    tick(f);
    assert_true(sent(f, STORE_HEARTBEAT)->campaign.is_patient);
    answer(f, STORE_HEARTBEAT, lost(f, 11));
    assert_true(f->candidate.is_patient);
}

static void test_a_better_one_is_first_after_a_takeover_delay(void **state)
{
    struct fixture *f = *state;
    struct registration better = {.instance = 5, .eligible = true, .id = "a"};
    gavel_ms lost_at;

    f->config.settings.takeover_delay_ms = 1000;
    f->config.settings.policy = GAVEL_POLICY_LEXICOGRAPHIC;
    follow(f);
    feed(f, (struct candidate_event){.kind = CANDIDATE_DOORBELL});
    answer(f, STORE_READ, shown(f, 5, "other", true));
    tell(f, shown(f, 6, "third", true));
    (void)await(f, STORE_CANDIDATES);
    answer(f, STORE_CANDIDATES, (struct store_reply){.registrations = &better, .registration_count = 1});
    tell(f, lost(f, 8));
    lost_at = f->now;
    while (f->candidate.is_patient && f->now < lost_at + 5000)
        pass(f, 1);
    assert_int_equal(f->now, lost_at + 1000 + 100);
}

static void test_a_vacancy_without_a_loss_needs_no_wait(void **state)
{
    struct fixture *f = *state;

    f->config.settings.takeover_delay_ms = 1000;
    follow(f);
    tell(f, shown(f, 8, "other", false));
    pass(f, 2000);
    assert_true(f->candidate.is_patient); /* the store grants it all the same */
}

/* Candidates whose policy is by id, that observe for a second. */
static void begin_cold(struct fixture *f)
{
    f->config.settings.policy = GAVEL_POLICY_LEXICOGRAPHIC;
    f->config.settings.observation_ms = 1000;
    begin(f);
    assert_false(sent(f, STORE_HEARTBEAT)->campaign.stands);
    assert_false(sent(f, STORE_HEARTBEAT)->registration.eligible);
    answer(f, STORE_HEARTBEAT, shown(f, 0, "", false));
    answer(f, STORE_READ, shown(f, 0, "", false));
    list_nobody(f);
}

static void list(struct fixture *f, const char *id, bool is_eligible)
{
    struct registration other = {.instance = 5, .beats = 1, .eligible = is_eligible};

    (void)await(f, STORE_CANDIDATES);
    (void)strcpy(other.id, id);
    answer(f, STORE_CANDIDATES, (struct store_reply){.registrations = &other, .registration_count = 1});
}

static void test_who_observes_does_not_stand(void **state)
{
    struct fixture *f = *state;

    begin_cold(f);
    pass(f, 990);
    assert_false(f->candidate.is_standing);
    list(f, "worse", true); /* it lists anew when it has observed */
    assert_in_range(f->now, 1000, 1020);
    assert_true(await(f, STORE_HEARTBEAT).campaign.stands);
    assert_in_range(f->now, 1000, 1030);
}

static void test_a_better_one_that_observes_is_waited_for(void **state)
{
    struct fixture *f = *state;
    gavel_ms listed_at;

    begin_cold(f);
    pass(f, 990);
    list(f, "a", false);
    listed_at = f->now;
    while (!f->candidate.is_standing && f->now < 10000) {
        if (pending(f, STORE_HEARTBEAT)) /* that it has observed */
            answer(f, STORE_HEARTBEAT, shown(f, 0, "", false));
        keep_alive(f);
        tick(f);
    }
    /* A whole observation by our clock, and one stagger for what it takes to say so. */
    assert_in_range(f->now, listed_at + 1100, listed_at + 1105);
}

static void test_at_a_cold_start_a_takeover_delay_counts_from_our_turn(void **state)
{
    struct fixture *f = *state;
    gavel_ms stood_at;

    f->config.settings.takeover_delay_ms = 1500;
    f->config.settings.policy = GAVEL_POLICY_LEXICOGRAPHIC;
    f->config.settings.observation_ms = 1000;
    begin(f);
    answer(f, STORE_HEARTBEAT, lost(f, 4)); /* by a power cut */
    answer(f, STORE_READ, lost(f, 4));
    while (!f->candidate.is_standing && f->now < 5000) {
        list_nobody(f);
        pass(f, 1);
    }
    stood_at = f->now;
    assert_true(stood_at >= 1000);
    while (f->candidate.is_patient && f->now < 9000) {
        list_nobody(f);
        pass(f, 1);
    }
    assert_in_range(f->now, stood_at + 1498, stood_at + 1500);
}

static void test_who_joins_at_a_cold_start_and_sees_an_election_stands_at_once(void **state)
{
    struct fixture *f = *state;

    begin_cold(f);
    pass(f, 990);
    list(f, "a", false);
    pass(f, 100);
    assert_false(f->candidate.is_standing);
    tell(f, shown(f, 4, "a", true));
    assert_true(f->candidate.is_standing);
}

static void test_an_election_before_the_observation_ended_waits_for_it(void **state)
{
    struct fixture *f = *state;

    begin_cold(f);
    tell(f, shown(f, 4, "a", true));
    pass(f, 900);
    assert_false(f->candidate.is_standing);
    pass(f, 200);
    assert_true(f->candidate.is_standing);
}

/* Answers heartbeats for so long with an instance that has our id and `beats` keep-alives. */
static void refuse_for(struct fixture *f, gavel_ms ms, uint64_t beats)
{
    struct store_reply in_use = {
        .status = GAVEL_ERR_ID_IN_USE, .other_instance = 3, .other_beats = beats, .message = "in use"};

    for (gavel_ms until = f->now + ms; f->now < until;) {
        if (pending(f, STORE_HEARTBEAT))
            answer(f, STORE_HEARTBEAT, in_use);
        list_nobody(f);
        pass(f, 1);
    }
}

static void test_an_id_of_one_that_is_silent_is_waited_for(void **state)
{
    struct fixture *f = *state;

    begin(f);
    answer(f, STORE_READ, shown(f, 5, "other", true));
    refuse_for(f, 60000, 8); /* its session may have a longer time to live than ours */
    refuse_for(f, 2000, 1);  /* another leader of the cluster counts anew */
    assert_false(f->candidate.is_stopping);
    if (!pending(f, STORE_HEARTBEAT))
        (void)await(f, STORE_HEARTBEAT);
    answer(f, STORE_HEARTBEAT, shown(f, 7, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
}

static void test_an_id_of_one_that_lives_is_given_up(void **state)
{
    struct fixture *f = *state;

    begin(f);
    answer(f, STORE_READ, shown(f, 5, "other", true));
    refuse_for(f, 2000, 1);
    refuse_for(f, 2000, 3);
    assert_null(pending(f, STORE_LEAVE)); /* one that was under way when it died, say */
    refuse_for(f, 2000, 5);
    answer(f, STORE_LEAVE, (struct store_reply){.status = GAVEL_ERR_NOT_FOUND});
    assert_int_equal(find(f, CANDIDATE_EMIT)->event.status, GAVEL_ERR_ID_IN_USE);
}

static void test_nobody_asks_the_leader_to_hand_over_without_a_session(void **state)
{
    struct fixture *f = *state;

    follow(f);
    open_session(f, 0);
    feed(f, (struct candidate_event){.kind = CANDIDATE_ENSURE,
                                     .ensure = {.epoch = 5, .force = true, .desired = ""}});
    assert_null(pending(f, STORE_ASK));
    open_session(f, 2);
    pass(f, 600); /* a look that is under way may take its time */
    assert_non_null(pending(f, STORE_ASK));
}

static void test_who_observes_releases_what_is_shown_as_its_own(void **state)
{
    struct fixture *f = *state;
    struct store_reply joined;

    f->config.settings.policy = GAVEL_POLICY_LEXICOGRAPHIC;
    f->config.settings.observation_ms = 3000;
    begin(f);
    joined = shown(f, 6, "me", true);
    joined.revision = 7;
    answer(f, STORE_HEARTBEAT, joined);
    assert_int_equal(await(f, STORE_RELEASE).record.epoch, 6);
    assert_int_equal(f->candidate.state, CANDIDATE_OBSERVING);
}

static void test_nobody_stands_in_sessions_that_are_too_short_to_stop_in(void **state)
{
    struct fixture *f = *state;
    gavel_ms seen_at;

    f->session.lasts = ns_from_ms(550); /* grace and margin */
    begin(f);
    assert_false(sent(f, STORE_HEARTBEAT)->campaign.stands);
    assert_non_null(strstr(f->candidate.trouble, "550 ms"));
    answer(f, STORE_HEARTBEAT, shown(f, 7, "me", true)); /* all the same */
    answer(f, STORE_READ, shown(f, 7, "me", true));
    seen_at = f->now;
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
    (void)await(f, STORE_RELEASE);
    assert_true(f->now > seen_at + 5);
}

static void test_a_death_that_the_store_does_not_believe_is_told_once(void **state)
{
    static const enum gavel_status finals[] = {GAVEL_ERR_STATE, GAVEL_ERR_DENIED};
    struct fixture *f = *state;
    struct nonce nonce = watch(f);
    struct store_reply named = shown(f, 5, "other", true);

    named.record.process.pid = 99;
    for (size_t i = 0; i < sizeof finals / sizeof *finals; i++) {
        feed(f, (struct candidate_event){.kind = CANDIDATE_HOLDER_DIED, .holder_died = {.nonce = nonce}});
        answer(f, STORE_DIED, (struct store_reply){.status = finals[i], .session = 1});
        answer(f, STORE_READ, named);
        assert_int_equal(calls_within(f, 5000, shown(f, 5, "other", true)), 0);
        assert_int_equal(f->candidate.breaker.failures, 0);
    }
}

static void ensure(struct fixture *f, const char *desired)
{
    feed(f, (struct candidate_event){.kind = CANDIDATE_ENSURE, .ensure = {.epoch = 5, .desired = desired}});
    if (!pending(f, STORE_ASK))
        answer(f, STORE_READ, shown(f, 5, "other", true));
}

static void test_a_wish_that_comes_too_early_is_asked_again_later(void **state)
{
    struct fixture *f = *state;
    gavel_ms asked_at;

    follow(f);
    ensure(f, "third");
    answer(f, STORE_ASK, (struct store_reply){.status = GAVEL_ERR_STATE, .session = 1});
    asked_at = f->now;
    assert_int_equal(f->candidate.breaker.failures, 0);
    if (pending(f, STORE_READ))
        answer(f, STORE_READ, shown(f, 5, "other", true));
    assert_true(candidate_wake_at(&f->candidate) != NEVER);
    f->actions.count = 0;
    assert_string_equal(await(f, STORE_ASK).record.wish_successor, "third");
    assert_true(f->now >= asked_at + f->config.settings.election_interval_ms);
    answer(f, STORE_ASK, (struct store_reply){.status = GAVEL_ERR_STATE, .session = 1});
    answer(f, STORE_READ, shown(f, 9, "fourth", true)); /* it was not meant for this one */
    assert_int_equal(candidate_leader_epoch(&f->candidate), 9);
    pass(f, 3000);
    assert_null(pending(f, STORE_ASK));
}

static void test_a_wish_for_one_who_is_not_there_is_answered(void **state)
{
    struct fixture *f = *state;

    follow(f);
    ensure(f, "nobody");
    answer(f, STORE_ASK, (struct store_reply){.status = GAVEL_ERR_NOT_FOUND, .session = 1});
    assert_int_equal(f->candidate.breaker.failures, 0);
    answer(f, STORE_READ, shown(f, 5, "other", true));
    assert_int_equal(calls_within(f, 5000, shown(f, 5, "other", true)), 0);
}

static void test_a_leader_that_is_superseded_looks_again_also_with_an_open_breaker(void **state)
{
    struct fixture *f = *state;

    lead(f);
    tell(f, shown(f, 7, "me", true)); /* so that the next one does not make the breaker try */
    f->candidate.breaker.state = BREAKER_OPEN;
    f->candidate.breaker.retry_at = ns_from_ms(f->now + 500);
    tell(f, shown(f, 9, "other", true));
    assert_int_equal(f->candidate.state, CANDIDATE_STOPPING);
    pass(f, 20);
    work_stopped(f);
    assert_true(candidate_wake_at(&f->candidate) != NEVER);
    (void)await(f, STORE_READ);
    answer(f, STORE_READ, shown(f, 9, "other", true));
    assert_int_equal(f->candidate.breaker.state, BREAKER_CLOSED);
}

/* Otherwise the breaker waits for its outcome for ever, and lets nothing through. */
static void test_a_look_of_the_breaker_that_is_forgotten_is_made_again(void **state)
{
    struct fixture *f = *state;

    follow(f);
    f->candidate.breaker = (struct breaker){.state = BREAKER_OPEN,
                                            .opened_at = ns_from_ms(f->now),
                                            .failed_at = ns_from_ms(f->now),
                                            .retry_at = ns_from_ms(f->now + 500)};
    feed(f, (struct candidate_event){.kind = CANDIDATE_DOORBELL});
    (void)await(f, STORE_READ); /* is not answered … */
    assert_int_equal(f->candidate.breaker.state, BREAKER_HALF_OPEN);
    tell(f, shown(f, 9, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    resign(f);
    work_stopped(f); /* … since its place is taken … */
    assert_non_null(pending(f, STORE_RELEASE));
    open_session(f, 2); /* … by what has nothing to end any more */
    tick(f);
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
    (void)await(f, STORE_READ);
    answer(f, STORE_READ, shown(f, 10, "", false));
    assert_int_equal(await(f, STORE_HEARTBEAT).session, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_is_sent_by_time),
        TEST(test_a_leader_sends_nothing_by_time),
        TEST(test_it_joins_before_a_session_is_open),
        TEST(test_a_new_session_is_told_who_we_are),
        TEST(test_another_session_while_a_heartbeat_is_under_way_is_told_anew),
        TEST(test_a_heartbeat_without_an_answer_is_sent_again),
        TEST(test_a_breaker_that_held_a_heartbeat_back_is_closed_by_a_look),
        TEST(test_a_push_closes_the_breaker_by_a_look),
        TEST(test_a_leader_asks_for_a_new_epoch_through_an_open_breaker),
        TEST(test_news_that_no_look_has_shown_yet_is_looked_for_again_soon),
        TEST(test_a_list_that_fails_does_not_shut_the_breaker_for_good),
        TEST(test_a_heartbeat_says_the_highest_epoch_and_the_terms),
        TEST(test_ineligible_and_back_are_said_once_each),
        TEST(test_who_leads_and_resigns_goes_on_standing),
        TEST(test_another_leader_is_looked_at_once_and_watched),
        TEST(test_a_death_is_told_to_the_store),
        TEST(test_the_death_of_a_former_leader_is_not_told_of_its_successor),
        TEST(test_a_death_waits_for_a_session),
        TEST(test_a_takeover_delay_is_waited_for_after_a_loss),
        TEST(test_patience_returns_when_another_leads),
        TEST(test_a_takeover_delay_ends_with_the_vacancy),
        TEST(test_a_vacancy_that_a_new_session_shows_has_a_wait_of_its_own),
        TEST(test_a_better_one_is_first_after_a_takeover_delay),
        TEST(test_a_vacancy_without_a_loss_needs_no_wait),
        TEST(test_who_observes_does_not_stand),
        TEST(test_a_better_one_that_observes_is_waited_for),
        TEST(test_at_a_cold_start_a_takeover_delay_counts_from_our_turn),
        TEST(test_who_joins_at_a_cold_start_and_sees_an_election_stands_at_once),
        TEST(test_an_election_before_the_observation_ended_waits_for_it),
        TEST(test_an_id_of_one_that_is_silent_is_waited_for),
        TEST(test_an_id_of_one_that_lives_is_given_up),
        TEST(test_nobody_asks_the_leader_to_hand_over_without_a_session),
        TEST(test_who_observes_releases_what_is_shown_as_its_own),
        TEST(test_nobody_stands_in_sessions_that_are_too_short_to_stop_in),
        TEST(test_a_death_that_the_store_does_not_believe_is_told_once),
        TEST(test_a_wish_that_comes_too_early_is_asked_again_later),
        TEST(test_a_wish_for_one_who_is_not_there_is_answered),
        TEST(test_a_leader_that_is_superseded_looks_again_also_with_an_open_breaker),
        TEST(test_a_look_of_the_breaker_that_is_forgotten_is_made_again),
    };

    return cmocka_run_group_tests_name("candidate: standing by session", tests, NULL, NULL);
}
