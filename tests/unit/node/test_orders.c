/* SPDX-License-Identifier: Apache-2.0 */

/* What operators order, of nodes that are named. */
#include "members_fixture.h"

static void test_a_transfer_is_answered_when_its_target_works(void **state)
{
    struct fixture *f = *state;
    unsigned leader, target;

    run(f, 3 * NS_PER_S);
    leader = leader_of(f);
    target = (leader + 1) % 3;
    assert_int_equal(order(f, leader, NODE_TRANSFER, name_of(target)), GAVEL_OK);
    assert_int_equal(f->nodes[leader].answers, 0); /* it leads, and has not said that it works */
    (void)feed(
        f, leader,
        (struct node_event){
            .kind = NODE_SAID,
            .said = {.node = target + 1, .term = f->nodes[target].node.raft.state.term, .is_working = true}});
    assert_int_equal(f->nodes[leader].answers, 1);
    assert_int_equal(f->nodes[leader].status, GAVEL_OK);
    assert_string_equal(f->nodes[leader].text + 1, " leads now");
    assert_int_equal(leader_of(f), target);
}

static void test_an_order_at_a_follower_is_sent_to_the_leader(void **state)
{
    struct fixture *f = *state;
    unsigned other;

    assert_int_equal(order(f, 0, NODE_STEP_DOWN, ""), GAVEL_ERR_NOT_LEADER);
    assert_int_equal(f->nodes[0].status, GAVEL_ERR_NO_LEADER);
    run(f, 3 * NS_PER_S);
    other = (leader_of(f) + 1) % 3;
    assert_int_equal(order(f, other, NODE_MEMBER_REMOVE, "a"), GAVEL_ERR_NOT_LEADER);
    assert_int_equal(f->nodes[other].status, GAVEL_ERR_NOT_LEADER);
    assert_string_equal(f->nodes[other].text + 1, " leads; ask it");
}

static void test_an_order_is_answered_when_its_time_is_up(void **state)
{
    struct fixture *f = *state;
    struct node_order late = {.id = 1, .kind = NODE_STEP_DOWN, .timeout = 50 * NS_PER_MS};
    unsigned leader;

    run(f, 3 * NS_PER_S);
    leader = leader_of(f);
    f->nodes[leader].stops_late = true;
    assert_int_equal(feed(f, leader, (struct node_event){.kind = NODE_ORDER, .order = &late}), GAVEL_OK);
    f->now += 200 * NS_PER_MS;
    (void)feed(f, leader, (struct node_event){.kind = NODE_TICK});
    assert_int_equal(f->nodes[leader].answers, 1);
    assert_int_equal(f->nodes[leader].status, GAVEL_ERR_TIMEOUT);
    assert_string_equal(f->nodes[leader].text, "the work has not stopped yet");
}

/* Also if the lease lapses, which ends the leading, but not the work. */
static void test_a_step_down_is_answered_when_the_work_has_stopped(void **state)
{
    struct fixture *f = *state;
    struct node_order down = {.id = 1, .kind = NODE_STEP_DOWN, .timeout = 60 * NS_PER_S};
    unsigned leader;

    run(f, 3 * NS_PER_S);
    leader = leader_of(f);
    f->nodes[leader].stops_late = true;
    assert_int_equal(feed(f, leader, (struct node_event){.kind = NODE_ORDER, .order = &down}), GAVEL_OK);
    f->nodes[leader].is_cut = true;
    run(f, 2 * NS_PER_S);
    assert_int_not_equal(f->nodes[leader].node.raft.role, RAFT_LEADER);
    assert_int_equal(f->nodes[leader].answers, 0);
    f->nodes[leader].stops_late = false;
    run(f, 20 * NS_PER_MS);
    assert_int_equal(f->nodes[leader].answers, 1);
    assert_int_equal(f->nodes[leader].status, GAVEL_OK);
}

static void test_the_first_members_get_records(void **state)
{
    struct fixture *f = *state;
    struct member_record record;

    run(f, 3 * NS_PER_S);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(has_record(f, i, &record));
        assert_true(record.is_learned);
        assert_true(record.is_voter);
    }
    assert_false(has_record(f, 3, &record));
}

static void test_a_member_comes_and_goes_by_its_record(void **state)
{
    struct fixture *f = *state;
    struct member_record record;
    unsigned leader;

    run(f, 3 * NS_PER_S);
    leader = leader_of(f);
    assert_int_equal(order(f, leader, NODE_MEMBER_ADD, "d"), GAVEL_OK);
    run(f, NS_PER_S);
    assert_int_equal(f->nodes[leader].status, GAVEL_OK);
    assert_string_equal(
        f->nodes[leader].text,
        "d is a learner now and becomes a voter once it has caught up and answers in time for a lease");
    run(f, 3 * NS_PER_S);
    assert_true(member(f, 3)->is_voter);
    assert_int_equal(order(f, leader, NODE_MEMBER_ADD, "d"), GAVEL_ERR_STATE);
    assert_string_equal(f->nodes[leader].text, "d is a member already");
    assert_int_equal(order(f, leader, NODE_MEMBER_DEMOTE, "d"), GAVEL_OK);
    run(f, 2 * NS_PER_S);
    assert_string_equal(f->nodes[leader].text, "d is a learner now");
    assert_false(member(f, 3)->is_voter);
    assert_int_equal(order(f, leader, NODE_MEMBER_REMOVE, "d"), GAVEL_OK);
    run(f, 3 * NS_PER_S);
    assert_string_equal(f->nodes[leader].text, "d is no longer a member; stop its gaveld");
    assert_null(member(f, 3));
    assert_false(has_record(f, 3, &record));
    assert_int_equal(f->nodes[leader].answers, 4);
}

static void test_what_cannot_be_is_refused(void **state)
{
    struct fixture *f = *state;
    struct node_order taken = {.id = 1, .kind = NODE_MEMBER_ADD, .name = "d", .address = "b:1"};
    unsigned leader;

    run(f, 3 * NS_PER_S);
    leader = leader_of(f);
    assert_int_equal(feed(f, leader, (struct node_event){.kind = NODE_ORDER, .order = &taken}),
                     GAVEL_ERR_INVALID);
    assert_string_equal(f->nodes[leader].text, "b:1 is the address of b");
    assert_int_equal(order(f, leader, NODE_MEMBER_PROMOTE, "d"), GAVEL_ERR_NOT_FOUND);
    assert_int_equal(order(f, leader, NODE_TRANSFER, "d"), GAVEL_ERR_NOT_FOUND);
    assert_int_equal(order(f, leader, NODE_TRANSFER, name_of(leader)), GAVEL_ERR_DONE);
    assert_int_equal(f->nodes[leader].status, GAVEL_OK);
    assert_int_equal(f->nodes[leader].answers, 4);
}

/* Nobody goes on with a removal that was never begun, so nobody says so. */
static void test_a_removal_that_waited_in_vain_says_so(void **state)
{
    struct fixture *f = *state;
    struct node_order late = {.id = 1, .kind = NODE_MEMBER_REMOVE, .timeout = 20 * NS_PER_MS};
    unsigned leader, other;

    run(f, 3 * NS_PER_S);
    leader = leader_of(f);
    other = leader == 0 ? 1 : 0;
    (void)snprintf(late.name, sizeof late.name, "%s", name_of(other));
    assert_int_equal(order(f, leader, NODE_MEMBER_ADD, "d"), GAVEL_OK);
    for (unsigned i = 0; i < NODES; i++) /* the change is under way, and goes no further */
        f->nodes[i].is_cut = i != leader;
    while (f->nodes[leader].node.raft.config_index <= f->nodes[leader].node.raft.commit) {
        f->now += NS_PER_MS;
        (void)feed(f, leader, (struct node_event){.kind = NODE_TICK});
        assert_int_equal(f->nodes[leader].node.raft.role, RAFT_LEADER);
    }
    assert_int_equal(feed(f, leader, (struct node_event){.kind = NODE_ORDER, .order = &late}), GAVEL_OK);
    f->now += 20 * NS_PER_MS;
    (void)feed(f, leader, (struct node_event){.kind = NODE_TICK});
    assert_int_equal(f->nodes[leader].status, GAVEL_ERR_TIMEOUT);
    assert_non_null(strstr(f->nodes[leader].text, "is still a member: its removal did not begin"));
}

/* Each of two finds room for one more; together they would be one too many. */
static void test_those_who_are_being_added_count(void **state)
{
    struct fixture *f = *state;
    unsigned leader;
    char name[] = "e";

    run(f, 3 * NS_PER_S);
    leader = leader_of(f);
    for (unsigned i = 0; i < NODES; i++)
        f->nodes[i].is_cut = i != leader; /* so none of them is a member before the next is asked for */
    for (unsigned i = 0; i < RAFT_MEMBERS_MAX - 3; i++, name[0]++)
        assert_int_equal(order(f, leader, NODE_MEMBER_ADD, name), GAVEL_OK);
    assert_int_equal(f->nodes[leader].answers, 0);
    assert_int_equal(order(f, leader, NODE_MEMBER_ADD, name), GAVEL_ERR_STATE);
    assert_string_equal(f->nodes[leader].text,
                        "there are 16 members already, with those that are being added, which is the most");
}

/* A log that clients write to is never applied to its end, and members change all the same. */
static void test_members_change_while_entries_are_on_their_way(void **state)
{
    struct fixture *f = *state;
    const uint8_t bytes[] = {0};
    const struct raft_entry entry = {.kind = RAFT_ENTRY_DATA, .data = bytes, .size = sizeof bytes};
    unsigned leader;

    run(f, 3 * NS_PER_S);
    leader = leader_of(f);
    assert_int_equal(order(f, leader, NODE_MEMBER_ADD, "d"), GAVEL_OK);
    (void)step(f, &f->nodes[leader],
               (struct node_event){.kind = NODE_RAFT,
                                   .raft = {.kind = RAFT_PROPOSE, .propose = {&entry, .count = 1}}});
    assert_true(raft_log_last(&f->nodes[leader].node.raft.log) > f->nodes[leader].node.raft.applied);
    (void)step(f, &f->nodes[leader], (struct node_event){.kind = NODE_TICK});
    assert_non_null(member(f, 3));
}

static void test_work_that_failed_ends_its_own_claim_only(void **state)
{
    struct fixture *f = *state;
    struct node_claim claim;
    unsigned leader;

    run(f, 3 * NS_PER_S);
    leader = leader_of(f);
    claim = f->nodes[leader].node.claim;
    (void)feed(f, leader,
               (struct node_event){.kind = NODE_WORK_FAILED, .failed = {claim.term, claim.lease_epoch - 1}});
    assert_true(f->nodes[leader].node.claim.is_held);
    (void)feed(f, leader,
               (struct node_event){.kind = NODE_WORK_FAILED, .failed = {claim.term, claim.lease_epoch}});
    assert_false(f->nodes[leader].node.claim.is_held);
    run(f, NS_PER_S);
    assert_int_not_equal(leader_of(f), leader);
}

static void test_a_node_that_ends_hands_over_first(void **state)
{
    struct fixture *f = *state;
    unsigned leader;

    run(f, 3 * NS_PER_S);
    leader = leader_of(f);
    assert_false(node_has_left(&f->nodes[leader].node, f->now));
    f->nodes[leader].stops_late = true;
    (void)feed(f, leader, (struct node_event){.kind = NODE_STOP, .stop.timeout = NS_PER_S});
    assert_false(node_has_left(&f->nodes[leader].node, f->now)); /* its work still stops */
    assert_true(node_has_left(&f->nodes[leader].node, f->now + NS_PER_S));
    f->nodes[leader].stops_late = false;
    run(f, 50 * NS_PER_MS);
    assert_true(node_has_left(&f->nodes[leader].node, f->now));
    assert_int_not_equal(leader_of(f), leader);
    assert_int_equal(order(f, leader, NODE_STEP_DOWN, ""), GAVEL_ERR_STATE);
    assert_string_equal(f->nodes[leader].text, "this node is stopping; ask another");
}

static void test_a_greeting_makes_an_address_known(void **state)
{
    struct fixture *f = *state;
    const struct node_described said = {.id = 9, .name = "i", .address = "i:1", .api = "i:2"};

    (void)step(f, &f->nodes[0], (struct node_event){.kind = NODE_GREETED, .greeting = &said});
    assert_int_equal(f->actions.count, 1);
    assert_int_equal(f->actions.items[0].kind, NODE_ADDRESSES);
    assert_string_equal(node_addresses_find(&f->nodes[0].node.members.addresses, 9)->api, "i:2");
    (void)step(f, &f->nodes[0], (struct node_event){.kind = NODE_GREETED, .greeting = &said});
    assert_int_equal(f->actions.count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_transfer_is_answered_when_its_target_works),
        TEST(test_an_order_at_a_follower_is_sent_to_the_leader),
        TEST(test_an_order_is_answered_when_its_time_is_up),
        TEST(test_a_step_down_is_answered_when_the_work_has_stopped),
        TEST(test_the_first_members_get_records),
        TEST(test_a_member_comes_and_goes_by_its_record),
        TEST(test_what_cannot_be_is_refused),
        TEST(test_a_removal_that_waited_in_vain_says_so),
        TEST(test_those_who_are_being_added_count),
        TEST(test_members_change_while_entries_are_on_their_way),
        TEST(test_work_that_failed_ends_its_own_claim_only),
        TEST(test_a_node_that_ends_hands_over_first),
        TEST(test_a_greeting_makes_an_address_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
