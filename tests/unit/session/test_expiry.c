/* SPDX-License-Identifier: Apache-2.0 */

/* What comes due by time: never early, whatever became of the leader, and in portions. */
#include "frontend_fixture.h"

#define TTL_MS 1000
#define TTL ns_stretch(MS(TTL_MS), DRIFT_PPM)

static void open_session(struct fixture *f, uint64_t session)
{
    must(f, session, 1, op_open(f, session, TTL_MS));
}

static bool is_open(const struct fixture *f, uint64_t session)
{
    return table_session_find(&f->table, session) != NULL;
}

/* ---- sessions ---- */

static void test_a_silent_session_ends_after_its_time_to_live(void **state)
{
    struct fixture *f = *state;
    gavel_ns began_at = f->now;

    open_session(f, 7);
    run_until(f, began_at + TTL - 1);
    assert_int_equal(f->log_count, 1);
    run_until(f, began_at + TTL);
    assert_int_equal(f->log_count, 2);
    commit(f);
    assert_false(is_open(f, 7));
    assert_int_equal(f->frontend.counts.expired, 1);
}

static void test_a_keep_alive_puts_the_end_off(void **state)
{
    struct fixture *f = *state;

    open_session(f, 7);
    for (int i = 0; i < 5; i++) {
        run_until(f, f->now + MS(900));
        assert_int_equal(keep_alive(f, 7)->n_gone, 0);
    }
    run_until(f, f->now + TTL - 1);
    assert_int_equal(f->log_count, 1);
    run_until(f, f->now + 1);
    assert_int_equal(f->log_count, 2);
}

static void test_a_new_leader_gives_every_session_its_whole_time(void **state)
{
    struct fixture *f = *state;

    open_session(f, 7);
    run_until(f, f->now + TTL - 1);
    fixture_change_leader(f);
    run_until(f, f->now + TTL - 1);
    assert_int_equal(f->log_count, 1);
    run_until(f, f->now + 1);
    assert_int_equal(f->log_count, 2);
}

static void test_a_stalled_leader_gives_every_session_its_whole_time(void **state)
{
    struct fixture *f = *state;

    open_session(f, 7);
    f->now += 10 * TTL; /* no ticks: it did not run */
    frontend_tick(&f->frontend, f->now, true, false, 1);
    flush(f);
    assert_int_equal(f->frontend.counts.stalls, 1);
    run_until(f, f->now + TTL - 1);
    frontend_tick(&f->frontend, f->now, true, true, 1); /* the caller knows of another stall */
    flush(f);
    run_until(f, f->now + TTL - 1);
    assert_int_equal(f->log_count, 1);
    run_until(f, f->now + 1);
    assert_int_equal(f->log_count, 2);
}

static void test_a_stall_shows_by_what_is_asked_too(void **state)
{
    struct fixture *f = *state;
    uint64_t version = must(f, 0, 0, op_claim(f, "g", "one", 1, 0))->version;

    f->now +=
        10 * TTL; /* the claim comes before the first tick, and maybe before renewals that wait as well */
    assert_int_equal(request(f, 0, 0, op_claim(f, "g", "two", 2, version))->results[0]->status,
                     GAVEL_ERR_CONFLICT);
    assert_int_equal(f->frontend.counts.stalls, 1);
}

static void test_what_has_arrived_during_a_short_stall_is_heard_first(void **state)
{
    struct fixture *f = *state;

    open_session(f, 7);
    run_until(f, f->now + TTL - MS(100));
    f->now += MS(200);
    frontend_tick(&f->frontend, f->now, true, false, 1);
    flush(f);
    assert_int_equal(f->log_count, 1);
    assert_int_equal(keep_alive(f, 7)->n_gone, 0);
    run_until(f, f->now + MS(500));
    assert_int_equal(f->log_count, 1);
    assert_int_equal(f->frontend.counts.stalls, 0);
}

static void test_a_leader_that_had_no_lease_begins_again(void **state)
{
    struct fixture *f = *state;

    open_session(f, 7);
    run_until(f, f->now + MS(500));
    f->is_working = false;
    run_until(f, f->now + 5 * TTL);
    assert_int_equal(f->log_count, 1);
    assert_int_equal(frontend_wake_at(&f->frontend), NEVER);
    f->is_working = true;
    run_until(f, f->now + TTL);
    assert_int_equal(f->log_count, 1);
    run_until(f, f->now + MS(20));
    assert_int_equal(f->log_count, 2);
}

static void test_a_session_whose_end_is_proposed_is_not_kept(void **state)
{
    struct fixture *f = *state;
    const Gavel__Kept *kept;

    open_session(f, 7);
    run_until(f, f->now + TTL);
    kept = keep_alive(f, 7);
    assert_int_equal(kept->status, GAVEL_OK);
    assert_int_equal(kept->n_gone, 1);
    assert_int_equal(kept->gone[0], 7);
    must(f, 7, 2, op_open(f, 7, TTL_MS)); /* applied behind the end */
    assert_int_equal(f->log_count, 3);
    assert_true(is_open(f, 7)); /* a new one of this name */
    assert_int_equal(keep_alive(f, 7)->n_gone, 0);
}

static void test_a_repeated_opening_is_refused_while_the_end_is_proposed(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *open = op_open(f, 7, TTL_MS);

    open_session(f, 7);
    run_until(f, f->now + TTL);
    send_request(f, 7, 1, 1, &open);
    assert_int_equal(last_reply(f)->status, GAVEL_ERR_SESSION_GONE);
}

static void test_an_opening_on_its_way_through_the_log_counts_at_once(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *open = op_open(f, 7, TTL_MS);

    open_session(f, 7);
    run_until(f, f->now + TTL - MS(10));
    send_request(f, 7, 2, 1, &open);
    flush(f);
    run_until(f, f->now + TTL - 1);
    assert_int_equal(f->log_count, 2); /* no end stands behind it */
    commit(f);
    assert_int_equal(last_reply(f)->results[0]->status, GAVEL_OK);
    run_until(f, f->now + TTL - 1);
    assert_int_equal(f->log_count, 2);
}

static void test_an_end_that_cannot_be_proposed_is_tried_again(void **state)
{
    struct fixture *f = *state;

    open_session(f, 7);
    f->propose_status = GAVEL_ERR_STATE;
    run_until(f, f->now + TTL + MS(20));
    assert_int_equal(keep_alive(f, 7)->n_gone, 0);   /* nothing is under way: it lives */
    f->propose_status = GAVEL_ERR_STORE_UNAVAILABLE; /* too much is not committed */
    run_until(f, f->now + TTL + MS(20));
    f->propose_status = GAVEL_OK;
    run_until(f, f->now + MS(200));
    assert_int_equal(f->log_count, 2);
}

static void test_the_end_of_a_session_is_lost_with_its_leader(void **state)
{
    struct fixture *f = *state;

    open_session(f, 7);
    run_until(f, f->now + TTL);
    assert_int_equal(f->log_count, 2);
    f->log_count = f->applied; /* the next leader never had it */
    free(f->log[1].bytes);
    fixture_change_leader(f);
    assert_int_equal(keep_alive(f, 7)->n_gone, 0);
}

/* A transfer of the leadership that fails: the same leader goes on in the same term, and so does its log. */
static void test_an_end_in_the_log_is_under_way_after_a_pause(void **state)
{
    struct fixture *f = *state;

    open_session(f, 7);
    run_until(f, f->now + TTL);
    assert_int_equal(f->log_count, 2);
    frontend_close(&f->frontend);
    collect(f);
    frontend_open(&f->frontend, f->term, f->now);
    assert_int_equal(keep_alive(f, 7)->n_gone, 1);
    run_until(f, f->now + TTL);
    assert_int_equal(f->log_count, 2); /* and is not proposed again */
    commit(f);
    assert_false(is_open(f, 7));
    assert_int_equal(f->frontend.waiting_count, 0);
}

static void test_many_sessions_end_in_portions(void **state)
{
    struct fixture *f = *state;
    enum { MANY = 10000 };
    size_t before;
    size_t ticks = 0;

    for (uint64_t id = 1; id <= MANY; id++) {
        f->op_count = 0;
        open_session(f, id * 7919);
        if (f->reply_count > REPLIES_MAX / 2) {
            while (f->reply_count > 0)
                client_frame_free(f->replies[--f->reply_count]);
            while (f->log_count > 0)
                free(f->log[--f->log_count].bytes);
            f->applied = 0;
            f->table.index = 0;
        }
    }
    run_until(f, f->now + TTL - 1);
    assert_int_equal(f->table.session_count, MANY);
    f->now = ns_max(f->now + 1, frontend_wake_at(&f->frontend));
    while (f->table.session_count > 0) {
        before = f->log_count;
        frontend_tick(&f->frontend, f->now, true, false, 1);
        flush(f);
        assert_in_range(f->log_count - before, 0, 2);
        commit(f);
        f->now = ns_max(f->now, frontend_wake_at(&f->frontend));
        assert_true(ticks++ < 2000);
    }
    assert_int_equal(f->frontend.counts.expired, MANY);
    assert_in_range(ticks, MANY / (2 * TABLE_OPS_MAX), 100);
}

static void test_nothing_wakes_the_expiry_when_nothing_is_due(void **state)
{
    struct fixture *f = *state;

    run_until(f, f->now + MS(20));
    assert_int_equal(frontend_wake_at(&f->frontend), NEVER);
    open_session(f, 7);
    assert_int_equal(frontend_wake_at(&f->frontend), f->now + TTL);
    keep_alive(f, 7);
    run_until(f, f->now + MS(20));
    assert_int_equal(frontend_wake_at(&f->frontend), f->now - MS(20) + TTL);
    must(f, 7, 2, op_close(f, 7));
    run_until(f, f->now + TTL + MS(20));
    assert_int_equal(frontend_wake_at(&f->frontend), NEVER);
    frontend_close(&f->frontend);
    collect(f);
    assert_int_equal(frontend_wake_at(&f->frontend), NEVER);
}

static void test_only_those_that_are_gone_are_named(void **state)
{
    struct fixture *f = *state;
    uint64_t sessions[] = {5, 7, 6, 8};
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__ClientFrame *taken;
    Gavel__KeepAlive alive = GAVEL__KEEP_ALIVE__INIT;
    const Gavel__Kept *kept;

    open_session(f, 7);
    open_session(f, 8);
    alive.n_sessions = 4;
    alive.sessions = sessions;
    alive.tag = 33;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE;
    frame.keep_alive = &alive;
    taken = &frame; /* nothing of a keep-alive is kept */
    frontend_take(&f->frontend, f->now, true, 1, (struct frontend_ticket){.origin = 2, .tag = 44}, &taken,
                  (struct table_packed){0});
    collect(f);
    kept = f->replies[f->reply_count - 1]->kept;
    assert_int_equal(f->tickets[f->reply_count - 1].origin, 2);
    assert_int_equal(f->tickets[f->reply_count - 1].tag, 44);
    assert_int_equal(kept->tag, 33);
    assert_int_equal(kept->n_gone, 2);
    assert_int_equal(kept->gone[0], 5);
    assert_int_equal(kept->gone[1], 6);
    assert_int_equal(f->frontend.counts.keep_alives, 4);
}

/* ---- groups ---- */

/* "one" has a lease of a second, and a candidate with a session waits. */
static void let_wait(struct fixture *f)
{
    must(f, 0, 0, op_claim(f, "g", "one", 1, 0));
    must(f, 7, 1, op_open(f, 7, 60000));
    must(f, 7, 2, op_campaign(f, "g", "two"));
}

static void test_a_lease_that_runs_out_lapses_if_a_session_waits(void **state)
{
    struct fixture *f = *state;
    gavel_ns began_at = f->now;

    let_wait(f);
    run_until(f, began_at + TTL - 1);
    assert_int_equal(f->log_count, 3);
    run_until(f, began_at + TTL);
    assert_int_equal(f->log_count, 4);
    commit(f);
    assert_string_equal(group_of(f, "g")->holder, "two");
    assert_int_equal(f->frontend.counts.lapsed, 1);
}

static void test_a_lease_that_is_renewed_does_not_lapse(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *renew = op_renew(f, "g", "one", 1);

    let_wait(f);
    run_until(f, f->now + MS(900));
    must(f, 0, 0, renew);
    run_until(f, f->now + TTL - 1);
    assert_int_equal(f->log_count, 3);
    run_until(f, f->now + 1);
    send_request(f, 0, 0, 1, &renew); /* too late: it stands behind the lapse */
    flush(f);
    assert_int_equal(f->log_count, 5);
    commit(f);
    assert_int_equal(last_reply(f)->results[0]->status, GAVEL_ERR_NOT_HOLDER);
}

/* "low" leads, "high" is better and waits. */
static void let_prefer(struct fixture *f, uint32_t min_mandate_ms)
{
    Gavel__Op *low = op_campaign(f, "g", "low");
    Gavel__Op *high = op_campaign(f, "g", "high");

    low->campaign->policy = GAVEL__POLICY__POLICY_PRIORITY;
    low->campaign->preempts = true;
    low->campaign->min_mandate_ms = min_mandate_ms;
    high->campaign->priority = 5;
    must(f, 7, 1, op_open(f, 7, 86400000));
    must(f, 7, 2, low);
    must(f, 8, 1, op_open(f, 8, 86400000));
    must(f, 8, 2, high);
}

static void test_a_better_candidate_preempts_after_the_minimum_mandate(void **state)
{
    struct fixture *f = *state;
    gavel_ns began_at = f->now;
    struct table_group *group;

    let_prefer(f, 3000);
    group = group_of(f, "g");
    run_until(f, began_at + MS(3000) - 1);
    assert_int_equal(f->log_count, 4);
    run_until(f, began_at + MS(3000) + MS(60));
    assert_int_equal(f->log_count, 5); /* once, though it is not applied yet */
    commit(f);
    assert_int_equal(group->wish_epoch, group->epoch);
    assert_string_equal(group->wish_successor, "high");
    assert_int_equal(group->wish_timeout_ms, FRONTEND_DRAIN_MS);
    must(f, 7, 3, op_withdraw(f, "g"));
    assert_string_equal(group->holder, "high");
    run_until(f, f->now + MS(5000));
    assert_int_equal(f->log_count, 6);
}

static void test_a_hand_over_that_takes_too_long_is_rolled_back(void **state)
{
    struct fixture *f = *state;
    gavel_ns wished_at;
    struct table_group *group;

    let_prefer(f, 0);
    group = group_of(f, "g");
    run_until(f, f->now + MS(20));
    commit(f);
    assert_int_equal(group->wish_epoch, group->epoch);
    wished_at = f->now;
    run_until(f, wished_at + MS(FRONTEND_DRAIN_MS) - 1);
    assert_int_equal(f->log_count, 5);
    run_until(f, wished_at + MS(FRONTEND_DRAIN_MS));
    assert_int_equal(f->log_count, 6);
    commit(f);
    assert_int_equal(group->wish_epoch, 0);
    assert_string_equal(group->holder, "low");
    run_until(f, f->now + MS(59000)); /* it is left alone for a minute */
    assert_int_equal(f->log_count, 6);
    run_until(f, f->now + MS(1001));
    assert_int_equal(f->log_count, 7);
}

static void test_a_new_leader_gives_a_hand_over_its_whole_time(void **state)
{
    struct fixture *f = *state;

    let_prefer(f, 0);
    run_until(f, f->now + MS(20));
    commit(f);
    run_until(f, f->now + MS(FRONTEND_DRAIN_MS - 1000));
    fixture_change_leader(f);
    run_until(f, f->now + MS(FRONTEND_DRAIN_MS) - 1);
    assert_int_equal(f->log_count, 5);
    run_until(f, f->now + 1);
    assert_int_equal(f->log_count, 6);
}

static void test_a_wish_of_a_store_has_no_limit(void **state)
{
    struct fixture *f = *state;

    must(f, 0, 0, op_claim(f, "g", "one", 1, 0));
    must(f, 0, 0, op_wish(f, "g", "two"));
    run_until(f, f->now + 600 * NS_PER_S);
    assert_int_equal(f->log_count, 2);
    assert_int_equal(frontend_wake_at(&f->frontend), NEVER);
}

#define GROUPS 2000
#define MIN_MANDATE_MS 5000

/* In each group one leads whom another preempts, after the minimum mandate. */
static void let_prefer_in_many(struct fixture *f)
{
    static char names[GROUPS][16];
    Gavel__Op *ops[500];

    must(f, 1, 1, op_open(f, 1, TABLE_TTL_MAX_MS));
    must(f, 2, 1, op_open(f, 2, TABLE_TTL_MAX_MS));
    for (size_t first = 0; first < GROUPS; first += 500) {
        for (uint64_t session = 1; session <= 2; session++) {
            f->op_count = 0; /* those before are in the log */
            for (size_t i = 0; i < 500; i++) {
                (void)snprintf(names[first + i], sizeof names[first + i], "g%04zu", first + i);
                ops[i] = op_campaign(f, names[first + i], session == 1 ? "low" : "high");
                ops[i]->campaign->policy = GAVEL__POLICY__POLICY_PRIORITY;
                ops[i]->campaign->priority = session == 1 ? 1 : 2;
                ops[i]->campaign->preempts = true;
                ops[i]->campaign->min_mandate_ms = MIN_MANDATE_MS;
            }
            assert_int_equal(request_all(f, session, 2 + first / 500, 500, ops)->status, GAVEL_OK);
        }
    }
}

static size_t count_looked_at(const struct fixture *f)
{
    size_t count = 0;

    for (struct table_group *group = table_group_from(&f->table, ""); group; group = table_group_next(group))
        count += !f->frontend.expiry.is_in_round || strcmp(group->name, f->frontend.expiry.group) < 0;
    return count;
}

static size_t count_wished(const struct fixture *f)
{
    size_t count = 0;

    for (struct table_group *group = table_group_from(&f->table, ""); group; group = table_group_next(group))
        count += group->wish_epoch != 0;
    return count;
}

static void test_many_groups_are_looked_at_in_portions(void **state)
{
    struct fixture *f = *state;
    gavel_ns began_at = f->now;

    let_prefer_in_many(f);
    frontend_tick(&f->frontend, f->now, true, false, 1);
    flush(f);
    assert_in_range(count_looked_at(f), 1, GROUPS - 1);
    assert_int_equal(frontend_wake_at(&f->frontend), f->now + MS(1));
    f->now += MS(1);
    frontend_tick(&f->frontend, f->now, true, false, 1);
    flush(f);
    assert_int_equal(count_looked_at(f), GROUPS);
    assert_int_equal(f->log_count, 10); /* nothing is due yet */

    /* Everybody has a turn soon after it is due, also if something is applied before each tick. */
    run_until(f, began_at + MS(MIN_MANDATE_MS) - 1);
    assert_int_equal(f->log_count, 10);
    for (size_t i = 0; i < 10; i++) {
        f->op_count = 0;
        must(f, 0, 0, op_put(f, "notes", "k", "v"));
        f->now += MS(1);
        frontend_tick(&f->frontend, f->now, true, false, 1);
        flush(f);
        commit(f);
    }
    assert_int_equal(count_wished(f), GROUPS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_silent_session_ends_after_its_time_to_live),
        TEST(test_a_keep_alive_puts_the_end_off),
        TEST(test_a_new_leader_gives_every_session_its_whole_time),
        TEST(test_a_stalled_leader_gives_every_session_its_whole_time),
        TEST(test_a_stall_shows_by_what_is_asked_too),
        TEST(test_what_has_arrived_during_a_short_stall_is_heard_first),
        TEST(test_a_leader_that_had_no_lease_begins_again),
        TEST(test_a_session_whose_end_is_proposed_is_not_kept),
        TEST(test_a_repeated_opening_is_refused_while_the_end_is_proposed),
        TEST(test_an_opening_on_its_way_through_the_log_counts_at_once),
        TEST(test_an_end_that_cannot_be_proposed_is_tried_again),
        TEST(test_the_end_of_a_session_is_lost_with_its_leader),
        TEST(test_an_end_in_the_log_is_under_way_after_a_pause),
        TEST(test_many_sessions_end_in_portions),
        TEST(test_nothing_wakes_the_expiry_when_nothing_is_due),
        TEST(test_only_those_that_are_gone_are_named),
        TEST(test_a_lease_that_runs_out_lapses_if_a_session_waits),
        TEST(test_a_lease_that_is_renewed_does_not_lapse),
        TEST(test_a_better_candidate_preempts_after_the_minimum_mandate),
        TEST(test_a_hand_over_that_takes_too_long_is_rolled_back),
        TEST(test_a_new_leader_gives_a_hand_over_its_whole_time),
        TEST(test_a_wish_of_a_store_has_no_limit),
        TEST(test_many_groups_are_looked_at_in_portions),
    };

    return cmocka_run_group_tests_name("expiry", tests, NULL, NULL);
}
