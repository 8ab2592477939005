/* SPDX-License-Identifier: Apache-2.0 */

/* Groups of candidates with sessions: who is granted the mandate, and when. */
#include "table_fixture.h"

#include <stdio.h>

#define FIRST GAVEL__POLICY__POLICY_FIRST
#define LEXICOGRAPHIC GAVEL__POLICY__POLICY_LEXICOGRAPHIC
#define PRIORITY GAVEL__POLICY__POLICY_PRIORITY

static int setup(void **state)
{
    if (table_fixture_setup(state) != 0)
        return -1;
    for (uint64_t session = 1; session <= 4; session++) {
        if (open_session(*state, session) != GAVEL_OK)
            return -1;
    }
    return 0;
}

static void end(struct table_fixture *fixture, uint64_t session)
{
    assert_int_equal(close_session(fixture, session, GAVEL__ENDING__ENDING_EXPIRED), GAVEL_OK);
}

static void test_first_who_comes_leads_and_the_others_queue(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t epoch;

    fixture->cursor = (struct table_cursor){fixture->table.revision, UINT32_MAX};
    assert_int_equal(campaign(fixture, 2, "g", "z"), GAVEL_OK);
    epoch = assert_leader(fixture, "g", "z");
    assert_int_equal(epoch, fixture->result.epoch);
    assert_int_equal(epoch, fixture->result.revision);
    assert_int_equal(epoch, fixture->result.version);
    next_change(fixture, GAVEL__CHANGE__KIND__JOINED, "g", "z");
    assert_int_equal(next_change(fixture, GAVEL__CHANGE__KIND__ELECTED, "g", "z")->epoch, epoch);
    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_OK);
    assert_int_equal(fixture->result.epoch, epoch);
    assert_int_equal(campaign(fixture, 3, "g", "b"), GAVEL_OK);
    assert_string_equal(table_group_next_in_line(group_named(fixture, "g"))->id, "a");
    end(fixture, 2);
    assert_true(assert_leader(fixture, "g", "a") > epoch);
    assert_string_equal(group_named(fixture, "g")->previous_holder, "z");
    assert_int_equal(group_named(fixture, "g")->last_ending, GAVEL__ENDING__ENDING_EXPIRED);
    end(fixture, 1);
    assert_leader(fixture, "g", "b");
    end(fixture, 3);
    assert_leader(fixture, "g", NULL);
    assert_int_equal(campaign(fixture, 4, "g", "d"), GAVEL_OK);
    assert_leader(fixture, "g", "d");
}

static void test_lexicographic_takes_the_lowest_id(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(campaign_with(fixture, 1, "g", "m", 0, LEXICOGRAPHIC, false), GAVEL_OK);
    assert_int_equal(campaign(fixture, 2, "g", "b"), GAVEL_OK);
    assert_int_equal(campaign(fixture, 3, "g", "a"), GAVEL_OK);
    assert_leader(fixture, "g", "m"); /* nobody is replaced */
    end(fixture, 1);
    assert_leader(fixture, "g", "a");
    end(fixture, 3);
    assert_leader(fixture, "g", "b");
}

static void test_priority_takes_the_highest_and_then_who_came_first(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(campaign_with(fixture, 1, "g", "m", 0, PRIORITY, false), GAVEL_OK);
    assert_int_equal(campaign_with(fixture, 2, "g", "z", 5, PRIORITY, false), GAVEL_OK);
    assert_int_equal(campaign_with(fixture, 3, "g", "a", 5, PRIORITY, false), GAVEL_OK);
    assert_int_equal(campaign_with(fixture, 4, "g", "b", -5, PRIORITY, false), GAVEL_OK);
    end(fixture, 1);
    assert_leader(fixture, "g", "z");
    end(fixture, 2);
    assert_leader(fixture, "g", "a");
    end(fixture, 3);
    assert_leader(fixture, "g", "b");
}

static void test_who_is_not_eligible_waits_until_it_is(void **state)
{
    struct table_fixture *fixture = *state;
    Gavel__Campaign message;

    gavel__campaign__init(&message);
    message.group = mutable("g");
    message.id = mutable("a");
    message.is_ineligible = true;
    assert_int_equal(campaign_as(fixture, 1, &message), GAVEL_OK);
    assert_leader(fixture, "g", NULL);
    assert_int_equal(fixture->result.epoch, 0);
    assert_int_equal(fixture->result.version, 0);
    message.is_ineligible = false;
    assert_int_equal(campaign_as(fixture, 1, &message), GAVEL_OK);
    assert_leader(fixture, "g", "a");
}

static void test_campaign_again_changes_what_is_said_and_keeps_the_place(void **state)
{
    struct table_fixture *fixture = *state;
    Gavel__Campaign message;
    uint8_t metadata[] = {1, 0, 2};
    uint64_t joined;
    uint64_t revision;

    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_OK);
    joined = table_candidate_find(group_named(fixture, "g"), "a")->joined_revision;
    revision = fixture->table.revision;
    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_OK); /* nothing new */
    assert_int_equal(fixture->table.revision, revision);
    fixture->cursor = (struct table_cursor){revision, UINT32_MAX};
    gavel__campaign__init(&message);
    message.group = mutable("g");
    message.id = mutable("a");
    message.address = mutable("elsewhere");
    message.metadata.data = metadata;
    message.metadata.len = sizeof metadata;
    assert_int_equal(campaign_as(fixture, 1, &message), GAVEL_OK);
    assert_int_equal(fixture->table.revision, revision + 1);
    assert_string_equal(next_change(fixture, GAVEL__CHANGE__KIND__CHANGED, "g", "a")->address, "elsewhere");
    assert_int_equal(table_candidate_find(group_named(fixture, "g"), "a")->joined_revision, joined);
    assert_string_equal(group_named(fixture, "g")->address, "elsewhere"); /* it leads */
    assert_int_equal(assert_leader(fixture, "g", "a"), revision);
    assert_int_equal(campaign(fixture, 1, "g", "b"), GAVEL_ERR_STATE);
    assert_int_equal(campaign(fixture, 2, "g", "a"), GAVEL_ERR_ID_IN_USE);
    assert_int_equal(register_candidate(fixture, "g", "a", 9, 0), GAVEL_ERR_ID_IN_USE);
    assert_int_equal(register_candidate(fixture, "g", "r", 9, 0), GAVEL_OK);
    assert_int_equal(campaign(fixture, 2, "g", "r"), GAVEL_ERR_ID_IN_USE);
}

static void test_terms_of_a_group_are_not_changed_under_others(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_OK);
    assert_int_equal(group_named(fixture, "g")->policy, FIRST);
    assert_int_equal(campaign_with(fixture, 1, "g", "a", 0, PRIORITY, true), GAVEL_OK); /* alone */
    assert_int_equal(group_named(fixture, "g")->policy, PRIORITY);
    assert_true(group_named(fixture, "g")->preempts);
    assert_int_equal(campaign_with(fixture, 2, "g", "b", 0, FIRST, false), GAVEL_ERR_CONFLICT);
    assert_null(table_candidate_find(group_named(fixture, "g"), "b"));
    assert_int_equal(campaign_with(fixture, 2, "g", "b", 0, PRIORITY, true), GAVEL_OK);
    assert_int_equal(campaign(fixture, 3, "g", "c"), GAVEL_OK);
    assert_int_equal(campaign_with(fixture, 1, "g", "a", 0, LEXICOGRAPHIC, true), GAVEL_ERR_CONFLICT);
    end(fixture, 2);
    end(fixture, 3);
    assert_int_equal(campaign_with(fixture, 1, "g", "a", 0, LEXICOGRAPHIC, false), GAVEL_OK);
    assert_false(group_named(fixture, "g")->preempts);
    assert_int_equal(campaign_with(fixture, 4, "g", "d", 0, LEXICOGRAPHIC, true), GAVEL_ERR_CONFLICT);
}

static void test_withdrawing_hands_the_mandate_to_the_next(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t epoch;

    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_OK);
    epoch = fixture->result.epoch;
    assert_int_equal(campaign(fixture, 2, "g", "b"), GAVEL_OK);
    assert_int_equal(withdraw(fixture, 2, "g", epoch, false), GAVEL_ERR_NOT_HOLDER);
    assert_int_equal(withdraw(fixture, 1, "g", epoch - 1, false), GAVEL_ERR_NOT_HOLDER);
    assert_int_equal(withdraw(fixture, 3, "g", 0, false), GAVEL_ERR_NOT_FOUND);
    assert_int_equal(withdraw(fixture, 1, "nothing", 0, false), GAVEL_ERR_NOT_FOUND);
    assert_int_equal(withdraw(fixture, 1, "g", epoch, false), GAVEL_OK);
    assert_leader(fixture, "g", "b");
    assert_int_equal(group_named(fixture, "g")->last_ending, GAVEL__ENDING__ENDING_RESIGNED);
    assert_null(table_candidate_find(group_named(fixture, "g"), "a"));
}

static void test_who_withdraws_and_stays_is_last(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t epoch;

    assert_int_equal(campaign_with(fixture, 1, "g", "a", 9, PRIORITY, false), GAVEL_OK);
    assert_int_equal(campaign_with(fixture, 2, "g", "b", 1, PRIORITY, false), GAVEL_OK);
    assert_int_equal(campaign_with(fixture, 3, "g", "c", 1, PRIORITY, false), GAVEL_OK);
    assert_int_equal(withdraw(fixture, 1, "g", 0, true), GAVEL_OK);
    assert_leader(fixture, "g", "b"); /* although its number is lower */
    assert_string_equal(TAILQ_LAST(&group_named(fixture, "g")->candidates, table_candidates)->id, "a");
    assert_int_equal(withdraw(fixture, 2, "g", 0, false), GAVEL_OK);
    assert_leader(fixture, "g", "a"); /* it has waited one turn */
    assert_int_equal(withdraw(fixture, 3, "g", 0, false), GAVEL_OK);
    epoch = assert_leader(fixture, "g", "a");
    assert_int_equal(withdraw(fixture, 1, "g", epoch, true), GAVEL_OK);
    assert_true(assert_leader(fixture, "g", "a") > epoch); /* there is nobody else */
}

static void test_wish_is_fulfilled_by_the_leader_withdrawing(void **state)
{
    struct table_fixture *fixture = *state;
    uint64_t epoch;

    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_OK);
    epoch = fixture->result.epoch;
    assert_int_equal(campaign(fixture, 2, "g", "b"), GAVEL_OK);
    assert_int_equal(campaign(fixture, 3, "g", "c"), GAVEL_OK);
    assert_int_equal(wish(fixture, "g", epoch + 1, "c"), GAVEL_ERR_NOT_HOLDER);
    assert_int_equal(wish(fixture, "g", epoch, "nobody"), GAVEL_ERR_NOT_FOUND);
    assert_int_equal(wish(fixture, "g", epoch, "a"), GAVEL_ERR_STATE);
    assert_false(group_named(fixture, "g")->has_attention);
    fixture->cursor = (struct table_cursor){fixture->table.revision, UINT32_MAX};
    assert_int_equal(wish(fixture, "g", epoch, "c"), GAVEL_OK);
    assert_int_equal(fixture->result.version, epoch); /* a wish does not change it */
    assert_string_equal(next_change(fixture, GAVEL__CHANGE__KIND__WISHED, "g", "a")->successor, "c");
    assert_true(group_named(fixture, "g")->has_attention);
    assert_string_equal(table_group_next_in_line(group_named(fixture, "g"))->id, "c");
    assert_int_equal(wish_over(fixture, "g", epoch), GAVEL_OK);
    next_change(fixture, GAVEL__CHANGE__KIND__WISH_OVER, "g", "a");
    assert_false(group_named(fixture, "g")->has_attention);
    assert_int_equal(assert_leader(fixture, "g", "a"), epoch);
    assert_int_equal(wish(fixture, "g", epoch, "c"), GAVEL_OK);
    assert_int_equal(withdraw(fixture, 1, "g", epoch, true), GAVEL_OK);
    assert_leader(fixture, "g", "c"); /* not b, who is next in the queue */
    assert_int_equal(group_named(fixture, "g")->last_ending, GAVEL__ENDING__ENDING_HANDED_OVER);
    assert_int_equal(group_named(fixture, "g")->wish_epoch, 0);
    assert_false(group_named(fixture, "g")->has_attention);
}

static void test_successor_that_is_gone_is_replaced_by_the_next(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_OK);
    assert_int_equal(campaign(fixture, 2, "g", "b"), GAVEL_OK);
    assert_int_equal(campaign(fixture, 3, "g", "c"), GAVEL_OK);
    assert_int_equal(wish(fixture, "g", group_named(fixture, "g")->epoch, "c"), GAVEL_OK);
    end(fixture, 3);
    end(fixture, 1);
    assert_leader(fixture, "g", "b");
}

static void test_better_candidate_draws_attention_only_where_the_group_preempts(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(campaign_with(fixture, 1, "calm", "a", 1, PRIORITY, false), GAVEL_OK);
    assert_int_equal(campaign_with(fixture, 2, "calm", "b", 2, PRIORITY, false), GAVEL_OK);
    assert_false(group_named(fixture, "calm")->has_attention);
    assert_null(table_group_better(group_named(fixture, "calm")));
    assert_int_equal(campaign_with(fixture, 1, "keen", "a", 1, PRIORITY, true), GAVEL_OK);
    assert_int_equal(campaign_with(fixture, 2, "keen", "b", 1, PRIORITY, true), GAVEL_OK);
    assert_false(group_named(fixture, "keen")->has_attention);
    assert_int_equal(campaign_with(fixture, 3, "keen", "c", 2, PRIORITY, true), GAVEL_OK);
    assert_true(group_named(fixture, "keen")->has_attention);
    assert_ptr_equal(table_attention_from(&fixture->table, ""), group_named(fixture, "keen"));
    assert_string_equal(table_group_better(group_named(fixture, "keen"))->id, "c");
    assert_leader(fixture, "keen", "a"); /* when is for the expiry to say */
    end(fixture, 3);
    assert_false(group_named(fixture, "keen")->has_attention);
    assert_null(table_attention_from(&fixture->table, ""));
}

static void test_group_goes_when_nothing_is_left_but_never_with_an_epoch(void **state)
{
    struct table_fixture *fixture = *state;
    Gavel__Campaign message;
    uint64_t epoch;

    gavel__campaign__init(&message);
    message.group = mutable("brief");
    message.id = mutable("a");
    message.is_ineligible = true;
    assert_int_equal(campaign_as(fixture, 1, &message), GAVEL_OK);
    fixture->cursor = (struct table_cursor){fixture->table.revision, UINT32_MAX};
    assert_int_equal(withdraw(fixture, 1, "brief", 0, false), GAVEL_OK);
    assert_null(table_group_find(&fixture->table, "brief"));
    next_change(fixture, GAVEL__CHANGE__KIND__LEFT, "brief", "a");
    next_change(fixture, GAVEL__CHANGE__KIND__GROUP_GONE, "brief", "");
    assert_int_equal(campaign(fixture, 1, "kept", "a"), GAVEL_OK);
    epoch = fixture->result.epoch;
    assert_int_equal(withdraw(fixture, 1, "kept", 0, false), GAVEL_OK);
    assert_int_equal(assert_leader(fixture, "kept", NULL), epoch);
    assert_int_equal(fixture->table.group_count, 1);
}

static void test_candidates_are_shown_in_the_order_of_the_queue(void **state)
{
    struct table_fixture *fixture = *state;
    Gavel__Candidate *shown;
    Gavel__Group group;
    size_t count;

    assert_int_equal(campaign_with(fixture, 1, "g", "z", 4, PRIORITY, true), GAVEL_OK);
    assert_int_equal(register_candidate(fixture, "g", "r", 9, 0), GAVEL_OK);
    assert_int_equal(campaign(fixture, 2, "g", "a"), GAVEL_OK);
    assert_int_equal(table_candidates_show(group_named(fixture, "g"), &shown, &count), GAVEL_OK);
    assert_int_equal(count, 3);
    assert_string_equal(shown[0].id, "z");
    assert_int_equal(shown[0].session, 1);
    assert_int_equal(shown[0].priority, 4);
    assert_string_equal(shown[1].id, "r");
    assert_int_equal(shown[1].session, 0);
    assert_int_equal(shown[1].instance, 9);
    assert_string_equal(shown[2].id, "a");
    free(shown);
    table_group_show(group_named(fixture, "g"), &group);
    assert_string_equal(group.holder, "z");
    assert_int_equal(group.session, 1);
    assert_int_equal(group.lease_ms, 2000);
    assert_int_equal(group.policy, PRIORITY);
    assert_true(group.preempts);
    assert_int_equal(group.n_candidates, 0);
    assert_null(group.process);
}

static void test_limits_of_groups_and_candidates(void **state)
{
    struct table_fixture *fixture = *state;

    fixture->table.group_count = TABLE_GROUPS_MAX; /* as if */
    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_ERR_STORE_FULL);
    assert_true(strlen(fixture->result.why) > 0);
    assert_int_equal(claim(fixture, "g", "h", 1, 0, 0), GAVEL_ERR_STORE_FULL);
    assert_int_equal(put_note(fixture, "g", "k", "v", 0, UINT64_MAX), GAVEL_ERR_STORE_FULL);
    fixture->table.group_count = 0;
    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_OK);
    group_named(fixture, "g")->candidate_count = TABLE_CANDIDATES_MAX;
    assert_int_equal(campaign(fixture, 2, "g", "b"), GAVEL_ERR_STORE_FULL);
    assert_int_equal(register_candidate(fixture, "g", "r", 1, 0), GAVEL_ERR_STORE_FULL);
    group_named(fixture, "g")->candidate_count = 1;
    assert_int_equal(campaign(fixture, 2, "g", "b"), GAVEL_OK);
}

static enum gavel_status campaign_in(struct table_fixture *fixture, size_t number)
{
    char name[32];

    (void)snprintf(name, sizeof name, "group-%zu", number);
    return campaign(fixture, 1, name, "a");
}

static void test_one_session_is_a_candidate_of_so_many_groups_and_of_no_more(void **state)
{
    struct table_fixture *fixture = *state;
    struct table_session *session = table_session_find(&fixture->table, 1);
    struct table copy = {0};
    uint8_t *bytes;
    size_t size;

    for (size_t i = 0; i < TABLE_CANDIDACIES_MAX; i++)
        assert_int_equal(campaign_in(fixture, i), GAVEL_OK);
    assert_int_equal(campaign_in(fixture, TABLE_CANDIDACIES_MAX), GAVEL_ERR_STORE_FULL);
    assert_string_equal(fixture->result.why, "the session has reached its limit of groups; open another");
    assert_null(table_group_find(&fixture->table, "group-131072"));
    assert_int_equal(campaign_in(fixture, 7), GAVEL_OK); /* where it is one already */
    assert_int_equal(campaign(fixture, 2, "group-7", "b"), GAVEL_OK);
    assert_int_equal(withdraw(fixture, 1, "group-7", 0, false), GAVEL_OK);
    assert_int_equal(campaign_in(fixture, TABLE_CANDIDACIES_MAX), GAVEL_OK);
    assert_int_equal(session->candidate_count, TABLE_CANDIDACIES_MAX);

    /* A snapshot has the same limit. */
    assert_int_equal(table_snapshot_encode(&fixture->table, &bytes, &size), GAVEL_OK);
    assert_int_equal(table_snapshot_decode(&copy, bytes, size), GAVEL_OK);
    assert_int_equal(table_session_find(&copy, 1)->candidate_count, TABLE_CANDIDACIES_MAX);
    free(bytes);
    session->candidate_count--; /* as if */
    assert_int_equal(campaign_in(fixture, TABLE_CANDIDACIES_MAX + 1), GAVEL_OK);
    assert_int_equal(table_snapshot_encode(&fixture->table, &bytes, &size), GAVEL_OK);
    assert_int_equal(table_snapshot_decode(&copy, bytes, size), GAVEL_ERR_STORE_DAMAGED);
    free(bytes);
    table_done(&copy);
    session->candidate_count++; /* as it is */

    for (size_t i = 0; i < TABLE_CANDIDACIES_MAX / TABLE_CLOSE_PART; i++) {
        assert_null(i > 0 ? table_session_find(&fixture->table, 1) : NULL);
        assert_int_equal(close_session(fixture, 1, GAVEL__ENDING__ENDING_EXPIRED), GAVEL_OK);
    }
    assert_true(table_session_find_any(&fixture->table, 1) != NULL); /* one more than "as if" */
    assert_int_equal(close_session(fixture, 1, GAVEL__ENDING__ENDING_EXPIRED), GAVEL_OK);
    assert_null(table_session_find_any(&fixture->table, 1));
    assert_leader(fixture, "group-7", "b");
    assert_leader(fixture, "group-8", NULL);
}

static void test_under_older_rules_a_session_has_fewer_groups_and_leaves_them_at_once(void **state)
{
    struct table_fixture *fixture = *state;

    fixture->version = TABLE_VERSION_0_7 - 1;
    for (size_t i = 0; i < TABLE_CANDIDACIES_MAX_0_6; i++)
        assert_int_equal(campaign_in(fixture, i), GAVEL_OK);
    assert_int_equal(campaign_in(fixture, TABLE_CANDIDACIES_MAX_0_6), GAVEL_ERR_STORE_FULL);
    fixture->version = TABLE_VERSION_0_7;
    assert_int_equal(campaign_in(fixture, TABLE_CANDIDACIES_MAX_0_6), GAVEL_OK);
    fixture->version = TABLE_VERSION_0_7 - 1;
    assert_int_equal(close_part(fixture, 1, GAVEL__ENDING__ENDING_EXPIRED, 3), GAVEL_OK);
    assert_null(table_session_find_any(&fixture->table, 1));
    assert_leader(fixture, "group-0", NULL);
    assert_leader(fixture, "group-16384", NULL);
}

static void test_session_that_ends_leaves_its_groups_in_parts(void **state)
{
    struct table_fixture *fixture = *state;
    struct table copy = {0};
    uint8_t *bytes;
    size_t size;

    for (size_t i = 0; i < 5; i++)
        assert_int_equal(campaign_in(fixture, i), GAVEL_OK);
    assert_int_equal(campaign(fixture, 2, "group-0", "b"), GAVEL_OK);
    assert_int_equal(campaign(fixture, 2, "group-4", "b"), GAVEL_OK);
    assert_int_equal(campaign(fixture, 2, "other", "b"), GAVEL_OK);
    assert_int_equal(campaign(fixture, 1, "other", "a"), GAVEL_OK); /* it stands by there */
    fixture->cursor = (struct table_cursor){fixture->table.revision, UINT32_MAX};
    assert_int_equal(close_part(fixture, 1, GAVEL__ENDING__ENDING_DEAD, 2), GAVEL_OK);
    next_change(fixture, GAVEL__CHANGE__KIND__VACANT, "group-0", "a");
    next_change(fixture, GAVEL__CHANGE__KIND__LEFT, "group-0", "a");
    next_change(fixture, GAVEL__CHANGE__KIND__ELECTED, "group-0", "b");
    next_change(fixture, GAVEL__CHANGE__KIND__VACANT, "group-1", "a");
    next_change(fixture, GAVEL__CHANGE__KIND__LEFT, "group-1", "a");
    next_change(fixture, GAVEL__CHANGE__KIND__SESSION_ENDED, "", "");
    assert_no_change(fixture);
    assert_leader(fixture, "group-4", "a"); /* not yet */

    /* It is over: nobody finds it, and it gets nothing more. */
    assert_null(table_session_find(&fixture->table, 1));
    assert_int_equal(campaign(fixture, 1, "group-9", "a"), GAVEL_ERR_SESSION_GONE);
    assert_int_equal(withdraw(fixture, 1, "group-4", 0, false), GAVEL_ERR_SESSION_GONE);
    assert_int_equal(open_session(fixture, 1), GAVEL_ERR_ID_IN_USE);
    end(fixture, 2);
    assert_leader(fixture, "other", NULL); /* and not to the one that has ended */
    assert_null(table_group_next_in_line(group_named(fixture, "other")));

    /* So it is for who has it from a snapshot. */
    assert_int_equal(table_snapshot_encode(&fixture->table, &bytes, &size), GAVEL_OK);
    assert_int_equal(table_snapshot_decode(&copy, bytes, size), GAVEL_OK);
    assert_same_table(&fixture->table, &copy);
    assert_null(table_session_find(&copy, 1));
    assert_false(SLIST_EMPTY(&copy.ending_sessions));
    free(bytes);
    table_done(&copy);

    fixture->cursor = (struct table_cursor){fixture->table.revision, UINT32_MAX};
    assert_int_equal(close_part(fixture, 1, GAVEL__ENDING__ENDING_EXPIRED, 1), GAVEL_OK);
    next_change(fixture, GAVEL__CHANGE__KIND__VACANT, "group-2", "a");
    assert_int_equal(group_named(fixture, "group-2")->last_ending, GAVEL__ENDING__ENDING_DEAD);
    next_change(fixture, GAVEL__CHANGE__KIND__LEFT, "group-2", "a");
    assert_no_change(fixture);
    assert_int_equal(close_part(fixture, 1, GAVEL__ENDING__ENDING_EXPIRED, 0), GAVEL_OK);
    assert_null(table_session_find_any(&fixture->table, 1));
    assert_true(SLIST_EMPTY(&fixture->table.ending_sessions));
    assert_leader(fixture, "group-4", NULL);
    assert_int_equal(close_part(fixture, 1, GAVEL__ENDING__ENDING_EXPIRED, 0), GAVEL_OK); /* long done */
    assert_int_equal(open_session(fixture, 1), GAVEL_OK);
}

/* ---- what a candidate of a store needs ---- */

static enum gavel_status campaign_patiently(struct table_fixture *fixture, uint64_t session, const char *id,
                                            bool is_patient)
{
    Gavel__Campaign message;

    gavel__campaign__init(&message);
    message.group = mutable("g");
    message.id = mutable(id);
    message.is_patient = is_patient;
    return campaign_as(fixture, session, &message);
}

static void test_who_is_patient_does_not_replace_a_lost_leader_until_it_says_so(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_OK);
    assert_int_equal(campaign_patiently(fixture, 2, "b", true), GAVEL_OK);
    assert_string_equal(table_group_next_in_line(group_named(fixture, "g"))->id, "b");
    end(fixture, 1);
    assert_leader(fixture, "g", NULL);
    assert_false(group_named(fixture, "g")->has_attention); /* nothing comes due by time */
    assert_null(table_group_next_in_line(group_named(fixture, "g")));
    assert_int_equal(campaign_patiently(fixture, 2, "b", false), GAVEL_OK);
    assert_leader(fixture, "g", "b");
}

static void test_who_is_patient_takes_a_mandate_that_was_given_up(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_OK);
    assert_int_equal(campaign_patiently(fixture, 2, "b", true), GAVEL_OK);
    assert_int_equal(withdraw(fixture, 1, "g", 0, false), GAVEL_OK);
    assert_leader(fixture, "g", "b");
    assert_int_equal(close_session(fixture, 2, GAVEL__ENDING__ENDING_CLOSED), GAVEL_OK);
    assert_int_equal(campaign_patiently(fixture, 3, "c", true), GAVEL_OK);
    assert_leader(fixture, "g", "c");
}

static void test_to_come_back_needs_no_patience(void **state)
{
    struct table_fixture *fixture = *state;

    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_OK);
    assert_int_equal(campaign_patiently(fixture, 2, "b", true), GAVEL_OK);
    end(fixture, 1);
    assert_int_equal(campaign_patiently(fixture, 3, "a", true), GAVEL_OK);
    assert_leader(fixture, "g", "a");
}

static void test_who_withdraws_may_name_the_next(void **state)
{
    struct table_fixture *fixture = *state;
    Gavel__Withdraw message;

    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_OK);
    assert_int_equal(campaign(fixture, 2, "g", "b"), GAVEL_OK);
    assert_int_equal(campaign(fixture, 3, "g", "c"), GAVEL_OK);
    gavel__withdraw__init(&message);
    message.group = mutable("g");
    message.stays = true;
    message.successor = mutable("c");
    assert_int_equal(withdraw_as(fixture, 1, &message), GAVEL_OK);
    assert_leader(fixture, "g", "c");
    assert_int_equal(group_named(fixture, "g")->last_ending, GAVEL__ENDING__ENDING_HANDED_OVER);
    message.successor = mutable("nobody");
    assert_int_equal(withdraw_as(fixture, 3, &message), GAVEL_OK);
    assert_leader(fixture, "g", "b"); /* one that is not there holds nothing up */
}

static enum gavel_status observe(struct table_fixture *fixture, const char *group, const char *id,
                                 bool is_ineligible)
{
    Gavel__Register message;
    Gavel__Op op;

    gavel__register__init(&message);
    gavel__op__init(&op);
    message.group = mutable(group);
    message.id = mutable(id);
    message.instance = 9;
    message.is_ineligible = is_ineligible;
    op.what_case = GAVEL__OP__WHAT_REGISTER_CANDIDATE;
    op.register_candidate = &message;
    return apply_op(fixture, 0, 0, &op);
}

/* A candidate of a store that never claims; by the rules of 0.6.0 it is waited for all the same. */
static void test_nobody_waits_for_a_successor_that_is_not_eligible(void **state)
{
    struct table_fixture *fixture = *state;
    Gavel__Withdraw message;

    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_OK);
    assert_int_equal(campaign(fixture, 2, "g", "b"), GAVEL_OK);
    assert_int_equal(observe(fixture, "g", "o", true), GAVEL_OK);
    gavel__withdraw__init(&message);
    message.group = mutable("g");
    message.stays = true;
    message.successor = mutable("o");
    assert_int_equal(withdraw_as(fixture, 1, &message), GAVEL_OK);
    assert_leader(fixture, "g", "b");
    /* One that is eligible is; until it says that it is not. */
    assert_int_equal(observe(fixture, "g", "o", false), GAVEL_OK);
    assert_int_equal(withdraw_as(fixture, 2, &message), GAVEL_OK);
    assert_leader(fixture, "g", NULL);
    fixture->version = 1;
    assert_int_equal(observe(fixture, "g", "o", true), GAVEL_OK);
    assert_leader(fixture, "g", NULL);
    fixture->version = TABLE_VERSION;
    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_OK); /* it changes nothing */
    assert_int_equal(observe(fixture, "g", "o", false), GAVEL_OK);
    assert_int_equal(observe(fixture, "g", "o", true), GAVEL_OK);
    assert_leader(fixture, "g", "a");
}

static void test_a_mandate_that_is_given_up_too_late_counts_as_lost(void **state)
{
    struct table_fixture *fixture = *state;
    Gavel__Withdraw message;

    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_OK);
    assert_int_equal(campaign_patiently(fixture, 2, "b", true), GAVEL_OK);
    gavel__withdraw__init(&message);
    message.group = mutable("g");
    message.epoch = assert_leader(fixture, "g", "a");
    message.ending = GAVEL__ENDING__ENDING_LAPSED;
    assert_int_equal(withdraw_as(fixture, 1, &message), GAVEL_OK);
    assert_leader(fixture, "g", NULL);
    assert_int_equal(group_named(fixture, "g")->last_ending, GAVEL__ENDING__ENDING_LAPSED);
    message.ending = GAVEL__ENDING__ENDING_EXPIRED;
    assert_int_equal(withdraw_as(fixture, 2, &message), GAVEL_ERR_INVALID);
}

static void test_work_that_is_done_closes_the_group_with_the_mandate(void **state)
{
    struct table_fixture *fixture = *state;
    Gavel__Withdraw message;
    uint64_t epoch;

    assert_int_equal(campaign(fixture, 1, "g", "a"), GAVEL_OK);
    assert_int_equal(campaign(fixture, 2, "g", "b"), GAVEL_OK);
    epoch = assert_leader(fixture, "g", "a");
    gavel__withdraw__init(&message);
    message.group = mutable("g");
    message.is_done = true;
    message.stays = true;                                                   /* nobody stays */
    assert_int_equal(withdraw_as(fixture, 1, &message), GAVEL_ERR_INVALID); /* without an epoch */
    message.epoch = epoch + 1;
    assert_int_equal(withdraw_as(fixture, 1, &message), GAVEL_ERR_NOT_HOLDER);
    message.epoch = epoch;
    assert_int_equal(withdraw_as(fixture, 2, &message), GAVEL_ERR_NOT_HOLDER);
    fixture->cursor = (struct table_cursor){fixture->table.revision, UINT32_MAX};
    assert_int_equal(withdraw_as(fixture, 1, &message), GAVEL_OK);
    next_change(fixture, GAVEL__CHANGE__KIND__VACANT, "g", "a");
    assert_int_equal(next_change(fixture, GAVEL__CHANGE__KIND__DONE, "g", "a")->epoch, epoch);
    assert_leader(fixture, "g", NULL);
    assert_true(group_named(fixture, "g")->is_done);
    assert_null(table_candidate_find(group_named(fixture, "g"), "a"));
    assert_int_equal(campaign(fixture, 3, "g", "c"), GAVEL_ERR_DONE);
    assert_int_equal(withdraw_as(fixture, 1, &message), GAVEL_ERR_NOT_FOUND); /* not a second time */
}

static void test_epochs_begin_above_what_a_candidate_knows(void **state)
{
    struct table_fixture *fixture = *state;
    Gavel__Campaign message;
    uint64_t revision;

    gavel__campaign__init(&message);
    message.group = mutable("g");
    message.id = mutable("a");
    message.epoch_at_least = 5000;
    assert_int_equal(campaign_as(fixture, 1, &message), GAVEL_OK);
    assert_int_equal(assert_leader(fixture, "g", "a"), 5001);
    revision = fixture->table.revision;
    assert_int_equal(campaign_as(fixture, 1, &message), GAVEL_OK); /* it is so already */
    assert_int_equal(fixture->table.revision, revision);
    message.epoch_at_least = 6000;
    assert_int_equal(campaign_as(fixture, 1, &message), GAVEL_OK); /* nothing else is new */
    assert_int_equal(fixture->table.revision, 6001);
    assert_int_equal(assert_leader(fixture, "g", "a"), 5001);
    message.epoch_at_least = UINT64_MAX;
    assert_int_equal(campaign_as(fixture, 1, &message), GAVEL_ERR_STORE_FULL);
    assert_int_equal(fixture->table.revision, 6001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_first_who_comes_leads_and_the_others_queue, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_lexicographic_takes_the_lowest_id, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_priority_takes_the_highest_and_then_who_came_first, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_who_is_not_eligible_waits_until_it_is, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_campaign_again_changes_what_is_said_and_keeps_the_place, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_terms_of_a_group_are_not_changed_under_others, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_withdrawing_hands_the_mandate_to_the_next, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_who_withdraws_and_stays_is_last, setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_wish_is_fulfilled_by_the_leader_withdrawing, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_successor_that_is_gone_is_replaced_by_the_next, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_better_candidate_draws_attention_only_where_the_group_preempts,
                                        setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_group_goes_when_nothing_is_left_but_never_with_an_epoch, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_candidates_are_shown_in_the_order_of_the_queue, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(
            test_under_older_rules_a_session_has_fewer_groups_and_leaves_them_at_once, setup,
            table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_session_that_ends_leaves_its_groups_in_parts, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_one_session_is_a_candidate_of_so_many_groups_and_of_no_more,
                                        setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_limits_of_groups_and_candidates, setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_who_is_patient_does_not_replace_a_lost_leader_until_it_says_so,
                                        setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_who_is_patient_takes_a_mandate_that_was_given_up, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_to_come_back_needs_no_patience, setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_who_withdraws_may_name_the_next, setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_nobody_waits_for_a_successor_that_is_not_eligible, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_a_mandate_that_is_given_up_too_late_counts_as_lost, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_work_that_is_done_closes_the_group_with_the_mandate, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_epochs_begin_above_what_a_candidate_knows, setup,
                                        table_fixture_teardown),
    };

    return cmocka_run_group_tests_name("table election", tests, NULL, NULL);
}
