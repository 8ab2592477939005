/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a store with sessions shows late, in another order, once more or of a
 * former self; and wishes and new epochs that come and go while it leads.
 */

#include "session_fixture.h"

/* A hand-over in one write: the group was vacant with this version before it was led with it. */
static struct store_reply vacant_before(const struct fixture *f, uint64_t version)
{
    struct store_reply reply = shown(f, version, "other", false);

    reply.record.epoch = version - 1;
    return reply;
}

static void test_a_vacancy_of_the_same_version_hides_no_grant(void **state)
{
    struct fixture *f = *state;

    follow(f);
    tell(f, shown(f, 8, "third", true));
    tell(f, vacant_before(f, 8));
    assert_int_equal(candidate_leader_epoch(&f->candidate), 8);
    assert_true(f->candidate.seen.record.held);
}

static void test_a_vacancy_of_the_same_version_stops_no_leader(void **state)
{
    struct fixture *f = *state;

    follow(f);
    tell(f, vacant_before(f, 8));
    tell(f, shown(f, 8, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    tell(f, vacant_before(f, 8));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    assert_true(f->candidate.is_ours);
}

static void test_of_two_wishes_the_one_with_the_higher_revision_counts(void **state)
{
    struct fixture *f = *state;
    struct store_reply over, wish;

    lead(f);
    over = wish = shown(f, 7, "me", true);
    over.revision = 12;
    wish.record.wish_epoch = 7;
    wish.revision = 11;
    tell(f, over); /* before it was told that there was one */
    tell(f, wish);
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    wish.revision = 13;
    tell(f, wish);
    assert_int_equal(f->candidate.state, CANDIDATE_STOPPING);
}

static void test_a_group_that_is_gone_is_newer_if_the_store_has_come_further(void **state)
{
    struct fixture *f = *state;
    struct store_reply gone;

    follow(f);
    gone = shown(f, 0, "", false);
    tell(f, gone);
    assert_true(f->candidate.seen.is_found);
    gone.revision = 9;
    tell(f, gone);
    assert_false(f->candidate.seen.is_found);
    tell(f, shown(f, 5, "other", true)); /* late */
    assert_false(f->candidate.seen.is_found);
}

static void test_a_mandate_of_a_former_self_is_released(void **state)
{
    struct fixture *f = *state;
    struct store_reply joined;
    gavel_ms seen_at;

    begin(f);
    answer(f, STORE_READ, shown(f, 6, "me", true));
    joined = shown(f, 6, "me", true);
    joined.revision = 7; /* when we joined; what is granted to us comes with that, or later */
    answer(f, STORE_HEARTBEAT, joined);
    list_nobody(f);
    seen_at = f->now;
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
    assert_true(candidate_wake_at(&f->candidate) <= ns_from_ms(seen_at + 1000));
    assert_int_equal(await(f, STORE_RELEASE).record.epoch, 6);
    assert_true(f->now > seen_at + 5);
    answer(f, STORE_RELEASE, shown(f, 8, "me", true)); /* granted anew */
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    assert_int_equal(f->candidate.epoch, 8);
}

static void test_an_epoch_that_was_ours_is_released_if_the_store_still_shows_it(void **state)
{
    struct fixture *f = *state;

    lead(f);
    tell(f, shown(f, 9, "other", true));
    work_stopped(f);
    tell(f, shown(f, 10, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    resign(f);
    work_stopped(f);
    answer(f, STORE_RELEASE, (struct store_reply){.status = GAVEL_ERR_NOT_HOLDER, .session = 1});
    feed(f, (struct candidate_event){.kind = CANDIDATE_DOORBELL});
    (void)await(f, STORE_READ);
    answer(f, STORE_READ, shown(f, 10, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
    assert_int_equal(await(f, STORE_RELEASE).record.epoch, 10);
    answer(f, STORE_RELEASE, (struct store_reply){.status = GAVEL_ERR_STORE_UNAVAILABLE});
    assert_null(sent(f, STORE_RELEASE)); /* in a while */
    (void)await(f, STORE_RELEASE);
    answer(f, STORE_RELEASE, shown(f, 12, "other", true));
    pass(f, 3000);
    assert_null(pending(f, STORE_RELEASE));
}

static void test_an_epoch_below_the_fence_is_released(void **state)
{
    struct fixture *f = *state;

    follow(f); /* epoch 5 */
    open_session(f, 2);
    tick(f);
    answer(f, STORE_HEARTBEAT, shown(f, 4, "me", true)); /* a store that was put back */
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
    answer(f, STORE_READ, shown(f, 4, "me", true));
    assert_int_equal(await(f, STORE_RELEASE).record.epoch, 4);
}

static void test_the_answer_of_an_orphan_that_comes_after_an_election_ends_nothing(void **state)
{
    struct fixture *f = *state;
    struct store_reply joined;

    begin(f);
    joined = shown(f, 6, "me", true);
    joined.revision = 7;
    answer(f, STORE_READ, shown(f, 6, "me", true));
    answer(f, STORE_HEARTBEAT, joined);
    (void)await(f, STORE_RELEASE);
    tell(f, shown(f, 8, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    answer(f, STORE_RELEASE, shown(f, 8, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
}

/* Leads, and is asked to hand over to "b", whom nobody has heard of. */
static struct store_reply lead_with_a_wish(struct fixture *f)
{
    struct store_reply wish;

    lead(f);
    wish = shown(f, 7, "me", true);
    wish.revision = 8;
    wish.record.wish_epoch = 7;
    (void)strcpy(wish.record.wish_successor, "b");
    tell(f, wish);
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    return wish;
}

static void test_a_wish_that_is_over_is_forgotten(void **state)
{
    struct fixture *f = *state;
    struct registration b = {.instance = 5, .eligible = true, .id = "b"};
    struct store_reply over;

    (void)lead_with_a_wish(f);
    over = shown(f, 7, "me", true);
    over.revision = 9;
    tell(f, over);
    if (!pending(f, STORE_CANDIDATES))
        (void)await(f, STORE_CANDIDATES);
    answer(f, STORE_CANDIDATES, (struct store_reply){.registrations = &b, .registration_count = 1});
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    pass(f, 5000);
    assert_null(pending(f, STORE_CANDIDATES));
}

static void test_a_wish_for_one_who_is_not_there_is_looked_after_less_and_less(void **state)
{
    struct fixture *f = *state;
    unsigned lists = 0;

    (void)lead_with_a_wish(f);
    for (gavel_ms until = f->now + 60000; f->now < until;) {
        if (pending(f, STORE_CANDIDATES)) {
            lists++;
            list_nobody(f);
        }
        pass(f, 1);
    }
    assert_in_range(lists, 15, 40); /* every 3 s, when it has not come for so long */
}

/* Has asked for a new epoch, and resigns in favour of "b" before that was answered. */
static void resign_while_renewing(struct fixture *f)
{
    f->config.settings.max_mandate_ms = 8000;
    lead(f);
    assert_int_equal(await(f, STORE_HEARTBEAT).campaign.renews_epoch, 7);
    feed(f, (struct candidate_event){.kind = CANDIDATE_RESIGN, .resign = {.successor = "b"}});
    assert_int_equal(f->candidate.state, CANDIDATE_STOPPING);
}

static void test_a_resignation_gives_up_the_new_epoch_that_it_meets(void **state)
{
    struct fixture *f = *state;
    struct store_reply refused;

    resign_while_renewing(f);
    work_stopped(f);
    assert_int_equal(sent(f, STORE_RELEASE)->record.epoch, 7);
    refused = shown(f, 9, "me", true);
    refused.status = GAVEL_ERR_NOT_HOLDER;
    answer(f, STORE_RELEASE, refused);
    assert_int_equal(f->candidate.state, CANDIDATE_STOPPING);
    assert_int_equal(sent(f, STORE_RELEASE)->record.epoch, 9);
    assert_string_equal(sent(f, STORE_RELEASE)->record.successor, "b");
    answer(f, STORE_RELEASE, shown(f, 11, "b", true));
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
}

static void test_a_resignation_gives_up_a_new_epoch_that_it_has_heard_of(void **state)
{
    struct fixture *f = *state;

    resign_while_renewing(f);
    answer(f, STORE_HEARTBEAT, shown(f, 9, "me", true));
    work_stopped(f);
    assert_int_equal(sent(f, STORE_RELEASE)->record.epoch, 9);
    assert_string_equal(sent(f, STORE_RELEASE)->record.successor, "b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_vacancy_of_the_same_version_hides_no_grant),
        TEST(test_a_vacancy_of_the_same_version_stops_no_leader),
        TEST(test_of_two_wishes_the_one_with_the_higher_revision_counts),
        TEST(test_a_group_that_is_gone_is_newer_if_the_store_has_come_further),
        TEST(test_a_mandate_of_a_former_self_is_released),
        TEST(test_an_epoch_that_was_ours_is_released_if_the_store_still_shows_it),
        TEST(test_an_epoch_below_the_fence_is_released),
        TEST(test_the_answer_of_an_orphan_that_comes_after_an_election_ends_nothing),
        TEST(test_a_wish_that_is_over_is_forgotten),
        TEST(test_a_wish_for_one_who_is_not_there_is_looked_after_less_and_less),
        TEST(test_a_resignation_gives_up_the_new_epoch_that_it_meets),
        TEST(test_a_resignation_gives_up_a_new_epoch_that_it_has_heard_of),
    };

    return cmocka_run_group_tests_name("candidate: what a session is shown", tests, NULL, NULL);
}
