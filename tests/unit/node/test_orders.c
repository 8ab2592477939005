/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What operators order, of nodes that are named: the test is the network and the
 * disks, which lose nothing and take no time, and the operator.
 */
#include "core/node/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NODES 4
#define PACKETS_MAX 4096

struct one {
    struct node node;
    struct table table;
    uint64_t written;
    uint64_t synced;
    bool is_cut;
    bool stops_late; /* its work stops when the test says so */
    bool must_stop;
    unsigned answers;
    enum gavel_status status; /* of the newest answer */
    char text[NODE_ORDER_TEXT_BYTES];
};

struct packet {
    unsigned to;
    struct raft_message message;
    struct raft_entry entries[64];
};

struct fixture {
    struct one nodes[NODES];
    gavel_ns now;
    struct node_actions actions;
    struct packet packets[PACKETS_MAX]; /* a ring */
    size_t first;
    size_t count;
};

static bool verify_cb(void *context, const struct raft_certificate *certificate)
{
    (void)context;
    (void)certificate;
    return true;
}

static void sign_cb(void *context, struct raft_certificate *certificate)
{
    (void)context;
    memset(certificate->mac, 1, sizeof certificate->mac);
}

static raft_id id_of_name(const char *name) { return (raft_id)(name[0] - 'a' + 1); }

static void introduce(struct node *node)
{
    static const struct node_described nodes[NODES] = {{.id = 1, .name = "a", .address = "a:1", .api = ""},
                                                       {.id = 2, .name = "b", .address = "b:1", .api = ""},
                                                       {.id = 3, .name = "c", .address = "c:1", .api = ""},
                                                       {.id = 4, .name = "d", .address = "d:1", .api = ""}};

    node_introduce(node, id_of_name, nodes, NODES);
}

/* a, b and c are the members; d waits to be added. */
static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct raft_settings settings;

    if (!f)
        return -1;
    raft_settings_default(&settings);
    settings.verify = verify_cb;
    settings.sign = sign_cb;
    settings.auto_failover = true;
    f->now = 1000 * NS_PER_S;
    assert_int_equal(node_actions_init(&f->actions), GAVEL_OK);
    for (unsigned i = 0; i < NODES; i++) {
        struct raft_restore restore = {.seed = i + 1};
        struct gavel_error error = {0};

        restore.state = (struct raft_state){.cluster = 7, .generation = 1, .id = i + 1, .incarnation = 1};
        for (unsigned k = 0; k < 3 && i < 3; k++)
            restore.snapshot.config.members[restore.snapshot.config.count++] =
                (struct raft_member){.id = k + 1, .is_voter = true};
        assert_int_equal(
            node_init(&f->nodes[i].node, &f->nodes[i].table, &settings, &restore, f->now, &error), GAVEL_OK);
        introduce(&f->nodes[i].node);
    }
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < NODES; i++) {
        node_done(&f->nodes[i].node);
        table_done(&f->nodes[i].table);
    }
    node_actions_done(&f->actions);
    free(f);
    return 0;
}

static void send(struct fixture *f, const struct one *one, const struct raft_message *message)
{
    struct packet *packet = &f->packets[(f->first + f->count) % PACKETS_MAX];

    if (one->is_cut || f->nodes[message->to - 1].is_cut)
        return;
    assert_true(f->count < PACKETS_MAX);
    packet->to = (unsigned)message->to - 1;
    packet->message = *message;
    if (message->kind == RAFT_MSG_APPEND && message->append.entry_count > 0) {
        assert_true(message->append.entry_count <= 64);
        memcpy(packet->entries, message->append.entries,
               message->append.entry_count * sizeof *message->append.entries);
        packet->message.append.entries = packet->entries;
    }
    f->count++;
}

static void carry_out(struct fixture *f, struct one *one)
{
    for (size_t i = 0; i < f->actions.count; i++) {
        const struct node_action *action = &f->actions.items[i];

        if (action->kind == NODE_PERSIST)
            one->written = action->persist->seq;
        else if (action->kind == NODE_SEND)
            send(f, one, action->message);
        else if (action->kind == NODE_WORK_STOP)
            one->must_stop = true;
        else if (action->kind == NODE_ORDERED) {
            one->answers++;
            one->status = action->ordered.status;
            (void)snprintf(one->text, sizeof one->text, "%s", action->ordered.text);
        }
    }
}

static enum gavel_status step(struct fixture *f, struct one *one, struct node_event event)
{
    enum gavel_status status;

    event.now = f->now;
    node_step(&one->node, &event, &f->actions);
    status = f->actions.status;
    carry_out(f, one);
    while (node_has_next(&one->node)) {
        node_step(&one->node, &(struct node_event){.kind = NODE_NEXT, .now = f->now}, &f->actions);
        carry_out(f, one);
    }
    return status;
}

/* Disks, and work that stops at once. */
static bool settle(struct fixture *f)
{
    bool has_done = false;

    for (unsigned i = 0; i < NODES; i++) {
        struct one *one = &f->nodes[i];

        if (one->synced < one->written) {
            one->synced = one->written;
            (void)step(
                f, one,
                (struct node_event){.kind = NODE_RAFT, .raft = {.kind = RAFT_PERSISTED, .seq = one->synced}});
            has_done = true;
        }
        if (one->must_stop && !one->stops_late) {
            one->must_stop = false;
            (void)step(f, one, (struct node_event){.kind = NODE_RAFT, .raft = {.kind = RAFT_WORK_STOPPED}});
            has_done = true;
        }
    }
    return has_done;
}

static enum gavel_status feed(struct fixture *f, unsigned which, struct node_event event)
{
    enum gavel_status status = step(f, &f->nodes[which], event);

    while (f->count > 0 || settle(f)) {
        static struct packet packet;

        if (f->count == 0)
            continue;
        packet = f->packets[f->first];
        f->first = (f->first + 1) % PACKETS_MAX;
        f->count--;
        if (packet.message.kind == RAFT_MSG_APPEND)
            packet.message.append.entries = packet.entries;
        if (!f->nodes[packet.to].is_cut)
            (void)step(f, &f->nodes[packet.to],
                       (struct node_event){.kind = NODE_RAFT,
                                           .raft = {.kind = RAFT_RECEIVE, .message = &packet.message}});
    }
    return status;
}

static void run(struct fixture *f, gavel_ns length)
{
    for (gavel_ns until = f->now + length; f->now < until; f->now += NS_PER_MS)
        for (unsigned i = 0; i < NODES; i++) {
            if (f->now >= node_timer_at(&f->nodes[i].node))
                (void)feed(f, i, (struct node_event){.kind = NODE_RAFT, .raft = {.kind = RAFT_TIMER}});
            if (f->now / NS_PER_MS % 100 == 0)
                (void)feed(f, i, (struct node_event){.kind = NODE_TICK});
        }
}

static unsigned leader_of(const struct fixture *f)
{
    for (unsigned i = 0; i < NODES; i++)
        if (f->nodes[i].node.claim.is_held)
            return i;
    fail_msg("nobody works");
    return 0;
}

static enum gavel_status order(struct fixture *f, unsigned which, enum node_order_kind kind, const char *name)
{
    struct node_order order = {.id = 1, .kind = kind};

    (void)snprintf(order.name, sizeof order.name, "%s", name);
    (void)snprintf(order.address, sizeof order.address, "%s:1", name);
    return feed(f, which, (struct node_event){.kind = NODE_ORDER, .order = &order});
}

static const char *name_of(unsigned which)
{
    static const char *const names[] = {"a", "b", "c", "d"};

    return names[which];
}

static const struct raft_member *member(const struct fixture *f, unsigned which)
{
    return raft_config_find(&f->nodes[leader_of(f)].node.raft.config, which + 1);
}

static bool has_record(const struct fixture *f, unsigned which, struct member_record *ret_record)
{
    return member_record_find(&f->nodes[leader_of(f)].table, name_of(which), ret_record);
}

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

/* Replicas would differ if a member got a command that it reads by other rules. */
static void test_commands_are_meant_by_rules_that_all_members_know(void **state)
{
    struct fixture *f = *state;
    struct node_described said = {.name = "b", .address = "b:1", .api = ""};
    unsigned leader;

    run(f, 3 * NS_PER_S);
    leader = leader_of(f);
    assert_int_equal(f->nodes[leader].node.frontend.table_version, 0);
    for (unsigned i = 0; i < 3; i++) {
        if (i == leader)
            continue;
        assert_int_equal(f->nodes[leader].node.frontend.table_version, 0);
        said.id = i + 1;
        said.table_version = TABLE_VERSION + i; /* one of them is newer */
        (void)feed(f, leader, (struct node_event){.kind = NODE_GREETED, .greeting = &said});
    }
    assert_int_equal(f->nodes[leader].node.frontend.table_version, TABLE_VERSION);
    said.table_version = 1; /* it was started again, with an older program */
    (void)feed(f, leader, (struct node_event){.kind = NODE_GREETED, .greeting = &said});
    assert_int_equal(f->nodes[leader].node.frontend.table_version, 1);
    run(f, 200 * NS_PER_MS);
    assert_int_equal(f->nodes[leader].node.frontend.table_version, 1);
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
        TEST(test_commands_are_meant_by_rules_that_all_members_know),
        TEST(test_a_greeting_makes_an_address_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
