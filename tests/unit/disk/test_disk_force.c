/* SPDX-License-Identifier: Apache-2.0 */

/* Cluster lost for good: what is left goes on alone, and the Raft core agrees. */
#include "data_dir.h"

#include <stdlib.h>
#include <string.h>

/* A node of the real core, its disk, and its clock. */
struct node {
    struct data_dir *directory;
    struct raft raft;
    struct raft_actions actions;
    gavel_ns now;
};

static bool verify(void *context, const struct raft_certificate *certificate)
{
    (void)context;
    (void)certificate;
    return false;
}

static void sign(void *context, struct raft_certificate *certificate)
{
    (void)context;
    (void)certificate;
}

/* Writes what the core wants written, as the disk thread does. */
static void write_down(struct node *node, const struct raft_persist *persist)
{
    size_t count = persist->first == 0 ? 0 : persist->last - persist->first + 1;
    struct raft_entry *entries = calloc(count + 1, sizeof *entries);
    struct disk_write write = {.persist = *persist, .entries = entries, .snapshot = node->raft.snapshot};

    assert_non_null(entries);
    for (size_t i = 0; i < count; i++)
        entries[i] = *raft_log_at(&node->raft.log, persist->first + i);
    assert_int_equal(disk_write(node->directory->disk, &write, 1, &node->directory->error), GAVEL_OK);
    free(entries);
}

static void feed(struct node *node, struct raft_event event)
{
    uint64_t seq = 0;

    event.now = node->now;
    assert_int_equal(raft_step(&node->raft, &event, &node->actions), GAVEL_OK);
    for (size_t i = 0; i < node->actions.count; i++) {
        const struct raft_action *action = &node->actions.items[i];

        if (action->kind == RAFT_SEND)
            fail_msg("it is alone, and sends a message");
        if (action->kind != RAFT_PERSIST)
            continue;
        seq = action->persist.seq;
        write_down(node, &action->persist);
    }
    if (seq != 0)
        feed(node, (struct raft_event){.kind = RAFT_PERSISTED, .seq = seq});
}

static struct node *node_begin(struct data_dir *f)
{
    struct node *node = calloc(1, sizeof *node);
    struct raft_restore restore = data_dir_begin(f);
    struct raft_settings settings;

    assert_non_null(node);
    raft_settings_default(&settings);
    settings.verify = verify;
    settings.sign = sign;
    restore.seed = 1;
    node->directory = f;
    node->now = NS_PER_S;
    if (raft_init(&node->raft, &settings, &restore, node->now, &f->error) != GAVEL_OK)
        fail_msg("%s", f->error.message);
    disk_restore_done(&restore);
    return node;
}

static void node_end(struct node *node)
{
    raft_done(&node->raft);
    data_dir_close(node->directory);
    free(node);
}

/* Lets time pass until it leads and may work; a second is more than it needs. */
static void node_lead(struct node *node)
{
    while (node->raft.work != RAFT_WORK_RUNNING) {
        node->now = raft_wake_at(&node->raft);
        assert_true(node->now < 2 * NS_PER_S);
        feed(node, (struct raft_event){.kind = RAFT_TIMER});
    }
    assert_true(raft_is_working(&node->raft, node->now));
}

/* A member of three with a log, a vote and a promise. The configuration may stand in an entry, too. */
static void make_member(struct data_dir *f, bool has_joint_entry)
{
    uint8_t bytes[RAFT_CONFIG_BYTES_MAX];
    struct raft_config joint;
    struct raft_entry entry = {.term = 3, .kind = RAFT_ENTRY_CONFIG, .data = bytes};
    struct disk_write writes[] = {{.persist = {.has_state = true}},
                                  {.persist = {.first = 11, .last = 11}, .entries = &entry}};
    struct raft_restore restore = data_dir_begin(f);

    three_members(&joint);
    joint.is_joint = true;
    joint.members[0].was_voter = joint.members[1].was_voter = joint.members[2].was_voter = true;
    joint.members[0].priority = 42;
    joint.members[0].is_witness = true;
    joint.members[2].is_voter = false;
    entry.size = (uint32_t)raft_config_encode(&joint, bytes);
    assert_int_equal(append(f, 1, 10, 2, 30), GAVEL_OK);
    writes[0].persist.state = state_of(&restore, 4, 2);
    writes[0].persist.state.commit = 8;
    writes[0].persist.state.promise =
        (struct raft_promise){.leader = 2, .incarnation = 1, .term = 4, .length = NS_PER_S};
    assert_int_equal(disk_write(f->disk, writes, has_joint_entry ? 2 : 1, &f->error), GAVEL_OK);
    disk_restore_done(&restore);
    data_dir_close(f);
}

static void force(struct data_dir *f, uint64_t wanted)
{
    uint64_t generation = 0;

    data_dir_open(f);
    if (disk_force_new_cluster(f->disk, &generation, &f->error) != GAVEL_OK)
        fail_msg("%s", f->error.message);
    assert_int_equal(generation, wanted);
    data_dir_close(f);
}

static void test_a_forced_cluster_keeps_the_log_and_forgets_its_promises(void **state)
{
    struct data_dir *f = *state;
    struct raft_restore restore;

    make_member(f, false);
    force(f, 2);
    restore = data_dir_reload(f);
    assert_int_equal(restore.state.generation, 2);
    assert_int_equal(restore.state.term, 4 + DISK_FORCED_TERMS); /* no token of the lost ones is as high */
    assert_int_equal(restore.state.vote, 0);
    assert_int_equal(restore.state.promise.leader, 0);
    assert_int_equal(restore.state.promise.length, 0);
    assert_int_equal(restore.state.commit, 8);
    assert_int_equal(restore.entry_count, 11);
    for (size_t i = 0; i < 10; i++)
        assert_true(is_entry(&restore.entries[i], i + 1, 2, 30));
    assert_int_equal(restore.entries[10].kind, RAFT_ENTRY_CONFIG);
    disk_restore_done(&restore);
}

static void test_a_forced_cluster_elects_itself(void **state)
{
    struct data_dir *f = *state;

    for (unsigned has_joint_entry = 0; has_joint_entry < 2; has_joint_entry++) {
        struct raft_entry entry = {.kind = RAFT_ENTRY_DATA, .size = 1, .data = (const uint8_t *)"x"};
        struct node *node;

        remove_tree(f->path);
        make_member(f, has_joint_entry);
        force(f, 2);
        node = node_begin(f);
        assert_int_equal(node->raft.config.count, 1);
        assert_int_equal(node->raft.config.members[0].id, OUR_NODE);
        assert_int_equal(node->raft.config.members[0].priority, has_joint_entry ? 42 : 0);
        assert_false(node->raft.config.members[0].is_witness); /* it must do everything now */
        node_lead(node);
        feed(node, (struct raft_event){.kind = RAFT_PROPOSE, .propose = {.entries = &entry, .count = 1}});
        assert_int_equal(node->raft.commit, raft_log_last(&node->raft.log));
        node_end(node);
        node = node_begin(f); /* and again after a restart */
        assert_int_equal(node->raft.state.generation, 2);
        node_lead(node);
        node_end(node);
    }
}

/* Terms that run out of numbers, as an attacker left them; `last` is that of the state. */
static void exhaust(struct data_dir *f, raft_term last)
{
    struct raft_entry entry = {
        .term = RAFT_NUMBER_MAX - 1, .kind = RAFT_ENTRY_DATA, .data = (const uint8_t *)"evil", .size = 4};
    struct disk_write writes[] = {{.persist = {.has_state = true}},
                                  {.persist = {.first = 11, .last = 11}, .entries = &entry},
                                  {.persist = {.first = 12, .last = 12}, .entries = &entry}};
    struct raft_restore restore;

    make_member(f, false);
    restore = data_dir_begin(f);
    writes[0].persist.state = state_of(&restore, last, 2);
    writes[0].persist.state.commit = 12;
    assert_int_equal(disk_write(f->disk, writes, 3, &f->error), GAVEL_OK);
    disk_restore_done(&restore);
    data_dir_close(f);
}

static void test_terms_that_ran_out_are_repaired(void **state)
{
    /* As an append leaves it; and as forcing a new cluster left it before 0.7.0, which does not load. */
    const raft_term lasts[] = {RAFT_NUMBER_MAX - 1, RAFT_NUMBER_MAX - 1 + DISK_FORCED_TERMS};
    struct data_dir *f = *state;

    for (size_t i = 0; i < sizeof lasts / sizeof *lasts; i++) {
        struct raft_entry entry = {.kind = RAFT_ENTRY_DATA, .size = 1, .data = (const uint8_t *)"x"};
        struct raft_restore restore;
        struct node *node;

        remove_tree(f->path);
        exhaust(f, lasts[i]);
        force(f, 2);
        restore = data_dir_reload(f);
        assert_int_equal(restore.state.term, 2 + DISK_FORCED_TERMS);
        assert_int_equal(restore.entry_count, 13);
        assert_true(is_entry(&restore.entries[9], 10, 2, 30));
        assert_int_equal(restore.entries[10].term, 2 + DISK_FORCED_TERMS);
        assert_memory_equal(restore.entries[11].data, "evil", 4);
        disk_restore_done(&restore);
        node = node_begin(f);
        node_lead(node);
        feed(node, (struct raft_event){.kind = RAFT_PROPOSE, .propose = {.entries = &entry, .count = 1}});
        assert_int_equal(node->raft.commit, raft_log_last(&node->raft.log));
        node_end(node);
    }
}

static void test_a_snapshot_of_a_term_that_ran_out_is_repaired(void **state)
{
    struct data_dir *f = *state;
    struct disk_write write = {.persist = {.has_state = true, .has_snapshot = true}};
    struct raft_restore restore;
    struct node *node;

    exhaust(f, RAFT_NUMBER_MAX - 1);
    restore = data_dir_begin(f);
    write.persist.state = restore.state;
    write.snapshot = restore.snapshot;
    write.snapshot.index = 12;
    write.snapshot.term = RAFT_NUMBER_MAX - 1;
    assert_int_equal(disk_write(f->disk, &write, 1, &f->error), GAVEL_OK);
    disk_restore_done(&restore);
    data_dir_close(f);
    force(f, 2);
    node = node_begin(f);
    assert_int_equal(node->raft.state.term, DISK_FORCED_TERMS);
    assert_int_equal(node->raft.snapshot.term, DISK_FORCED_TERMS);
    node_lead(node);
    node_end(node);
}

static void test_a_cluster_that_never_elected_can_be_forced(void **state)
{
    struct data_dir *f = *state;
    struct node *node;

    data_dir_open(f);
    data_dir_close(f);
    force(f, 2);
    force(f, 3); /* twice does no harm */
    node = node_begin(f);
    assert_int_equal(node->raft.config.count, 1);
    node_lead(node);
    node_end(node);
}

static void test_forcing_is_refused_where_there_is_nothing_to_force(void **state)
{
    struct data_dir *f = *state;
    const struct raft_state first = {.cluster = OUR_CLUSTER, .generation = 1, .id = OUR_NODE};
    const struct raft_snapshot nobody = {0};
    struct raft_restore restore;
    uint64_t generation = 9;

    assert_int_equal(data_dir_try_open(f), GAVEL_OK);
    assert_int_equal(disk_force_new_cluster(f->disk, &generation, &f->error), GAVEL_ERR_STATE);
    /* A node that waits to join has no cluster yet. */
    assert_int_equal(disk_found(f->disk, &first, &nobody, &f->error), GAVEL_OK);
    assert_int_equal(disk_force_new_cluster(f->disk, &generation, &f->error), GAVEL_ERR_STATE);
    assert_int_equal(disk_found(f->disk, &first, &nobody, &f->error), GAVEL_ERR_STATE);
    data_dir_close(f);
    remove_tree(f->path);
    restore = data_dir_begin(f);
    assert_int_equal(disk_force_new_cluster(f->disk, &generation, &f->error), GAVEL_ERR_STATE);
    assert_int_equal(generation, 9);
    disk_restore_done(&restore);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, data_dir_setup, data_dir_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_a_forced_cluster_keeps_the_log_and_forgets_its_promises),
        CASE(test_a_forced_cluster_elects_itself),
        CASE(test_terms_that_ran_out_are_repaired),
        CASE(test_a_snapshot_of_a_term_that_ran_out_is_repaired),
        CASE(test_a_cluster_that_never_elected_can_be_forced),
        CASE(test_forcing_is_refused_where_there_is_nothing_to_force),
    };

    return cmocka_run_group_tests_name("disk force", tests, NULL, NULL);
}
