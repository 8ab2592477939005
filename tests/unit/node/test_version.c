/* SPDX-License-Identifier: Apache-2.0 */

/* Which rules of the table a cluster uses, by what its members know (core/node/version.c). */
#include "members_fixture.h"

static void greet(struct fixture *f, unsigned which, unsigned who, uint32_t version, uint64_t incarnation)
{
    char address[8];
    const struct node_described said = {.id = who + 1,
                                        .name = name_of(who),
                                        .address = address,
                                        .api = "",
                                        .table_version = version,
                                        .incarnation = incarnation};

    (void)snprintf(address, sizeof address, "%s:1", name_of(who));
    (void)feed(f, which, (struct node_event){.kind = NODE_GREETED, .greeting = &said});
}

static uint32_t used(const struct fixture *f) { return f->nodes[leader_of(f)].node.frontend.table_version; }

/* Replicas would differ if a member got a command that it reads by other rules. */
static void test_commands_are_meant_by_rules_that_all_members_know(void **state)
{
    struct fixture *f = *state;
    unsigned leader;

    run(f, 3 * NS_PER_S);
    leader = leader_of(f);
    assert_int_equal(used(f), 0);
    greet(f, leader, (leader + 1) % 3, TABLE_VERSION + 1, 1); /* one of them is newer */
    run(f, 300 * NS_PER_MS);
    assert_int_equal(used(f), 0);
    greet(f, leader, (leader + 2) % 3, TABLE_VERSION, 1);
    run(f, 300 * NS_PER_MS);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(f->nodes[i].node.frontend.table_version, TABLE_VERSION); /* whoever leads next */
    assert_int_equal(table_digest(&f->nodes[0].table), table_digest(&f->nodes[1].table));
    assert_int_equal(table_digest(&f->nodes[0].table), table_digest(&f->nodes[2].table));
}

static void test_a_member_that_knows_only_the_old_rules_holds_the_new_ones_up(void **state)
{
    struct fixture *f = *state;
    unsigned leader;

    run(f, 3 * NS_PER_S);
    leader = leader_of(f);
    greet(f, leader, (leader + 1) % 3, TABLE_VERSION, 1);
    greet(f, leader, (leader + 2) % 3, 0, 1); /* of before 0.7.0: it tells none */
    run(f, 300 * NS_PER_MS);
    assert_int_equal(used(f), 0);
    greet(f, leader, (leader + 2) % 3, TABLE_VERSION, 2);
    run(f, 300 * NS_PER_MS);
    assert_int_equal(used(f), TABLE_VERSION);
}

/* Makes another node lead, and cuts off a third one; returns who leads. */
static unsigned change_leader(struct fixture *f, unsigned leader, unsigned next, unsigned is_down)
{
    f->nodes[is_down].is_cut = true;
    assert_int_equal(order(f, leader, NODE_TRANSFER, name_of(next)), GAVEL_OK);
    run(f, NS_PER_S);
    assert_int_equal(leader_of(f), next);
    return next;
}

/* What its predecessor heard, the next leader knows: it need not have met the member. */
static void test_a_member_that_is_down_counts_as_what_its_record_says(void **state)
{
    struct fixture *f = *state;
    struct member_record record;
    unsigned leader, next, down;

    run(f, 3 * NS_PER_S);
    leader = leader_of(f);
    next = (leader + 1) % 3;
    down = (leader + 2) % 3;
    greet(f, leader, down, TABLE_VERSION, 4);
    run(f, 300 * NS_PER_MS);
    assert_true(has_record(f, down, &record));
    assert_int_equal(record.table_version, TABLE_VERSION);
    assert_int_equal(record.incarnation, 4);
    assert_true(record.is_learned);
    assert_int_equal(used(f), 0);
    (void)change_leader(f, leader, next, down);
    assert_int_equal(node_addresses_find(&f->nodes[next].node.members.addresses, down + 1)->incarnation, 0);
    assert_int_equal(used(f), TABLE_VERSION);
}

static void test_a_member_that_is_down_and_was_never_heard_counts_as_an_old_one(void **state)
{
    struct fixture *f = *state;
    struct member_record record;
    unsigned leader, next, down;

    run(f, 3 * NS_PER_S);
    leader = leader_of(f);
    next = (leader + 1) % 3;
    down = (leader + 2) % 3;
    assert_true(has_record(f, down, &record)); /* with its address only */
    assert_int_equal(record.incarnation, 0);
    (void)change_leader(f, leader, next, down);
    greet(f, next, leader, TABLE_VERSION, 1);
    run(f, 300 * NS_PER_MS);
    assert_int_equal(used(f), 0);
}

/* A leader that was away may remember what is no longer so. */
static void test_what_was_heard_in_an_earlier_start_is_not_believed(void **state)
{
    struct fixture *f = *state;
    struct member_record record;
    unsigned leader, next, down;

    run(f, 3 * NS_PER_S);
    leader = leader_of(f);
    next = (leader + 1) % 3;
    down = (leader + 2) % 3;
    greet(f, leader, down, TABLE_VERSION, 1);
    greet(f, next, down, TABLE_VERSION, 1);
    greet(f, leader, down, 1, 2); /* an older program was installed again */
    run(f, 300 * NS_PER_MS);
    greet(f, leader, down, TABLE_VERSION, 1); /* late */
    run(f, 300 * NS_PER_MS);
    assert_true(has_record(f, down, &record));
    assert_int_equal(record.table_version, 1);
    (void)change_leader(f, leader, next, down);
    greet(f, next, leader, TABLE_VERSION, 1);
    run(f, 300 * NS_PER_MS);
    assert_true(has_record(f, down, &record));
    assert_int_equal(record.table_version, 1);
    assert_int_equal(used(f), 0);
}

static void use_new_rules(struct fixture *f)
{
    unsigned leader;

    run(f, 3 * NS_PER_S);
    leader = leader_of(f);
    greet(f, leader, (leader + 1) % 3, TABLE_VERSION, 1);
    greet(f, leader, (leader + 2) % 3, TABLE_VERSION, 1);
    run(f, 300 * NS_PER_MS);
    assert_int_equal(used(f), TABLE_VERSION);
}

/* Commands by the new rules are in the log: there is no way back, and nothing is gained by not using them. */
static void test_the_rules_in_use_never_become_older(void **state)
{
    struct fixture *f = *state;
    struct member_record record;
    unsigned leader, other;

    use_new_rules(f);
    leader = leader_of(f);
    other = (leader + 1) % 3;
    greet(f, leader, other, 1, 2);
    run(f, 300 * NS_PER_MS);
    assert_true(has_record(f, other, &record));
    assert_int_equal(record.table_version, 1);
    assert_int_equal(used(f), TABLE_VERSION);
    assert_int_equal(order(f, leader, NODE_MEMBER_ADD, "d"), GAVEL_OK); /* nobody has heard it */
    run(f, NS_PER_S);
    assert_non_null(member(f, 3));
    assert_int_equal(used(f), TABLE_VERSION);
}

/* An order writes the whole record. */
static void test_an_order_keeps_what_is_known_of_a_member(void **state)
{
    struct fixture *f = *state;
    struct member_record record;
    unsigned leader, other;

    use_new_rules(f);
    leader = leader_of(f);
    other = (leader + 1) % 3;
    greet(f, leader, other, TABLE_VERSION + 1, 2);
    assert_int_equal(order(f, leader, NODE_MEMBER_PROMOTE, name_of(other)), GAVEL_OK);
    run(f, 300 * NS_PER_MS);
    assert_true(has_record(f, other, &record));
    assert_false(record.is_learned);
    assert_int_equal(record.table_version, TABLE_VERSION + 1);
    greet(f, leader, other, TABLE_VERSION, 3);
    run(f, 300 * NS_PER_MS);
    assert_true(has_record(f, other, &record));
    assert_false(record.is_learned); /* it is still what an operator has said */
    assert_true(record.is_voter);
    assert_int_equal(record.table_version, TABLE_VERSION);
}

static void put_version(struct fixture *f, unsigned leader, uint32_t version)
{
    char value[64];
    struct table_command command = {.kind = TABLE_PUT,
                                    .key = (const uint8_t *)"gavel/version",
                                    .key_size = strlen("gavel/version"),
                                    .value = (const uint8_t *)value};
    uint8_t bytes[128];
    struct raft_entry entry = {.kind = RAFT_ENTRY_DATA, .data = bytes};

    command.value_size =
        (size_t)snprintf(value, sizeof value, "{\"table_version\":%u,\"more\":[1]}", version);
    entry.size = (uint32_t)table_command_size(&command);
    assert_true(entry.size > 0 && entry.size <= sizeof bytes);
    table_command_encode(&command, bytes);
    assert_int_equal(
        feed(f, leader,
             (struct node_event){.kind = NODE_RAFT,
                                 .raft = {.kind = RAFT_PROPOSE, .propose = {&entry, .count = 1}}}),
        GAVEL_OK);
}

/* Whatever comes after it would make another table of ours. */
static void test_a_node_that_does_not_know_the_rules_in_use_stops(void **state)
{
    struct fixture *f = *state;
    unsigned leader, other;
    raft_index index;

    use_new_rules(f);
    leader = leader_of(f);
    other = (leader + 1) % 3;
    f->nodes[leader].node.members.knows = TABLE_VERSION + 1; /* it is newer than the others */
    put_version(f, leader, TABLE_VERSION + 1);
    assert_int_equal(f->nodes[leader].failure, GAVEL_OK);
    assert_int_equal(used(f), TABLE_VERSION + 1);
    index = f->nodes[leader].table.index;
    run(f, 300 * NS_PER_MS); /* the others hear that it is committed */
    assert_int_equal(f->nodes[other].failure, GAVEL_ERR_STORE_UNSUPPORTED);
    assert_true(f->nodes[other].table.index < index);
    assert_true(node_version_is_known(&f->nodes[leader].node));
}

/* The same at its start, from its snapshot. */
static void test_a_node_knows_from_its_data_that_it_is_too_old(void **state)
{
    struct fixture *f = *state;
    struct table table = {0};
    struct node node;
    struct raft_restore restore = {.state = {.cluster = 7, .generation = 1, .id = 1, .incarnation = 2}};
    struct gavel_error error = {0};
    uint8_t *bytes;
    size_t size;
    unsigned leader;

    use_new_rules(f);
    leader = leader_of(f);
    assert_int_equal(table_snapshot_encode(&f->nodes[leader].table, &bytes, &size), GAVEL_OK);
    restore.snapshot = (struct raft_snapshot){.index = f->nodes[leader].table.index, .term = 1};
    restore.snapshot.config = f->nodes[leader].node.raft.config;
    restore.snapshot.data = bytes;
    restore.snapshot.size = size;
    restore.state.term = 1;
    assert_int_equal(node_init(&node, &table, &f->nodes[leader].node.raft.settings, &restore, f->now, &error),
                     GAVEL_OK);
    introduce(&node);
    assert_int_equal(node.frontend.table_version, TABLE_VERSION);
    assert_true(node_version_is_known(&node));
    node.members.knows = TABLE_VERSION - 1;
    assert_false(node_version_is_known(&node));
    node_done(&node);
    table_done(&table);
    free(bytes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_commands_are_meant_by_rules_that_all_members_know),
        TEST(test_a_member_that_knows_only_the_old_rules_holds_the_new_ones_up),
        TEST(test_a_member_that_is_down_counts_as_what_its_record_says),
        TEST(test_a_member_that_is_down_and_was_never_heard_counts_as_an_old_one),
        TEST(test_what_was_heard_in_an_earlier_start_is_not_believed),
        TEST(test_the_rules_in_use_never_become_older),
        TEST(test_an_order_keeps_what_is_known_of_a_member),
        TEST(test_a_node_that_does_not_know_the_rules_in_use_stops),
        TEST(test_a_node_knows_from_its_data_that_it_is_too_old),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
