/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The parts of the cluster's world that all its findings rest on: a seed means
 * one run, messages are whole copies, disks lose what they must and nothing
 * else, frozen nodes hear what waited for them, and a run without faults has
 * none.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/common/args.h"
#include "sim/raft/members.h"
#include "sim/raft/simulator.h"
#include "sim/raft/world.h"

#include <stdlib.h>
#include <string.h>

#define DURATION (10 * NS_PER_S)

static int begin(void **state)
{
    *state = cluster_new();
    return 0;
}

static int end(void **state)
{
    cluster_free(*state);
    return 0;
}

/* Three nodes, no faults, until somebody works. */
static struct cluster *begin_seed(void **state, unsigned nodes, uint64_t seed)
{
    struct cluster *cluster = *state;
    struct profile profile;

    cluster_profile_plain(&profile, nodes, 500 * NS_PER_US, NS_PER_MS);
    cluster_begin(cluster, &profile, seed);
    assert_true(cluster_advance(cluster, 2 * NS_PER_S));
    assert_non_null(cluster_worker(cluster));
    return cluster;
}

static struct cluster *begin_plain(void **state, unsigned nodes) { return begin_seed(state, nodes, 7); }

static void test_a_seed_means_one_run(void **state)
{
    struct run_options options = {.seed = 3, .duration = DURATION};
    struct run_result first;
    struct run_result second;
    struct run_result other;

    raft_simulator.run(*state, &options, &first);
    options.seed = 4;
    raft_simulator.run(*state, &options, &other);
    options.seed = 3;
    raft_simulator.run(*state, &options, &second);
    assert_true(first.hash == second.hash);
    assert_true(first.events == second.events);
    assert_false(first.hash == other.hash);
}

static void test_nothing_goes_wrong_in_a_run_without_faults(void **state)
{
    struct run_options options = {.duration = DURATION, .without = FAULT_BIT(FAULT_COUNT) - 1};
    const struct cluster *cluster = *state;
    struct run_result result;

    for (options.seed = 1; options.seed <= 20; options.seed++) {
        raft_simulator.run(*state, &options, &result);
        assert_null(result.broken);
        assert_true(cluster->healed != 0);
        assert_int_equal(result.faults, 0);
        assert_int_equal(cluster->counts.seen[SIGHT_RESTARTS], 0);
        assert_true(raft_referee_counts(cluster->referee)->claims > 0);
        assert_true(cluster->counts.acknowledged > 0);
        assert_true(cluster->counts.acts > 0);
    }
}

static void test_a_fault_switched_off_leaves_the_others_as_they_were(void **state)
{
    struct profile with;
    struct profile without;
    struct prng prng;

    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        prng_seed(&prng, seed);
        cluster_profile_draw(&with, &prng, 0, DURATION, 0);
        prng_seed(&prng, seed);
        cluster_profile_draw(&without, &prng, 0, DURATION, FAULT_BIT(FAULT_CRASH));
        assert_true(without.faults == (with.faults & ~FAULT_BIT(FAULT_CRASH)));
        without.faults = with.faults;
        assert_memory_equal(&with, &without, sizeof with);
    }
}

static void test_the_settings_of_all_seeds_add_up(void **state)
{
    struct profile profile;
    struct prng prng;

    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        prng_seed(&prng, seed);
        cluster_profile_draw(&profile, &prng, 0, DURATION, 0);
        for (unsigned i = 0; i < SLOTS_MAX; i++)
            assert_int_equal(raft_settings_check(&profile.settings[i], NULL), GAVEL_OK);
        assert_true(profile.link_min >= 0);
        assert_true(profile.link_max >= profile.link_min);
    }
}

static void test_a_message_is_a_copy_of_all_it_points_to(void **state)
{
    struct cluster *cluster = *state;
    uint8_t bytes[] = "first";
    struct raft_entry entry = {.term = 1, .kind = RAFT_ENTRY_DATA, .size = sizeof bytes, .data = bytes};
    struct raft_message body = {.kind = RAFT_MSG_APPEND, .append = {.entries = &entry, .entry_count = 1}};
    const struct message *message = net_copy(cluster, &body);
    const struct message *other;

    memset(bytes, 'x', sizeof bytes - 1);
    entry.size = 1;
    other = net_copy(cluster, &body);
    assert_ptr_not_equal(message, other);
    assert_int_equal(message->body.append.entries[0].size, sizeof bytes);
    assert_string_equal((const char *)message->body.append.entries[0].data, "first");
    assert_int_equal(other->body.append.entries[0].data[0], 'x');
}

/* The number of entries on the disk of a node that dies just after a proposal. */
static size_t lost_by_crash(void **state, uint64_t seed, uint64_t faults, size_t *ret_before)
{
    struct cluster *cluster = begin_seed(state, 3, seed);
    struct host *leader = cluster_worker(cluster);

    *ret_before = leader->disk.snapshot.index + leader->disk.entry_count;
    cluster->profile.faults = faults;
    cluster->profile.survive_per_mille = 1000;
    for (int i = 0; i < 8; i++)
        assert_int_equal(client_propose(cluster, leader, 1, 8), GAVEL_OK);
    assert_true(leader->disk.queue_count >= 8);
    host_die(cluster, leader, false, "dies");
    assert_int_equal(leader->disk.queue_count, 0);
    return leader->disk.snapshot.index + leader->disk.entry_count;
}

static void test_a_crash_loses_what_was_not_synced(void **state)
{
    size_t before;
    size_t after = lost_by_crash(state, 7, 0, &before);

    assert_true(after == before);
}

static void test_a_prefix_of_unsynced_writes_may_survive(void **state)
{
    bool has_some = false;

    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct cluster *cluster = *state;
        size_t before;
        size_t after = lost_by_crash(state, seed, FAULT_BIT(FAULT_SURVIVE), &before);

        assert_true(after >= before && after <= before + cluster->counts.proposals);
        has_some |= after > before;
    }
    assert_true(has_some);
}

static void test_a_node_starts_with_what_its_disk_has(void **state)
{
    struct cluster *cluster = begin_plain(state, 3);
    struct host *host = cluster_worker(cluster);
    uint64_t incarnation = host->node.raft.state.incarnation;
    raft_term term = host->disk.state.term;
    raft_index last;

    host_die(cluster, host, false, "dies");
    last = host->disk.snapshot.index + host->disk.entry_count;
    host_start(cluster, host);
    assert_true(host->node.raft.state.incarnation == incarnation + 1);
    assert_true(host->node.raft.state.term == term);
    assert_true(raft_log_last(&host->node.raft.log) == last);
    assert_true(cluster_advance(cluster, cluster->now + 3 * NS_PER_S));
    assert_non_null(cluster_worker(cluster));
}

static void test_a_frozen_node_does_nothing_and_hears_later_what_waited(void **state)
{
    struct cluster *cluster = begin_plain(state, 3);
    struct host *leader = cluster_worker(cluster);
    struct host *host = &cluster->hosts[leader->slot == 0];
    raft_index commit;

    host_freeze(cluster, host, cluster->now + 100 * NS_PER_MS, false);
    commit = host->node.raft.commit;
    assert_int_equal(client_propose(cluster, leader, 1, 8), GAVEL_OK);
    assert_true(cluster_advance(cluster, cluster->now + 99 * NS_PER_MS));
    assert_true(leader->node.raft.commit > commit);
    assert_true(host->node.raft.commit == commit);
    assert_true(cluster_advance(cluster, cluster->now + 60 * NS_PER_MS));
    assert_true(host->node.raft.commit > commit);
}

static void test_a_leader_that_is_frozen_has_its_work_ended_by_the_watchdog(void **state)
{
    struct cluster *cluster = begin_plain(state, 3);
    struct host *leader = cluster_worker(cluster);

    host_freeze(cluster, leader, NEVER, false);
    assert_true(cluster_advance(cluster, cluster->now + NS_PER_S));
    assert_false(leader->work.runs);
    assert_int_equal(cluster->counts.seen[SIGHT_WATCHDOGS], 1);
    assert_non_null(cluster_worker(cluster));
    assert_ptr_not_equal(cluster_worker(cluster), leader);
}

static void test_nothing_passes_a_cut_and_all_passes_once_mended(void **state)
{
    struct cluster *cluster = begin_plain(state, 3);
    const struct host *leader = cluster_worker(cluster);

    for (unsigned i = 0; i < 3; i++)
        net_cut(cluster, leader->slot, i, NEVER, ALL_KINDS);
    assert_true(cluster_advance(cluster, cluster->now + 2 * NS_PER_S));
    assert_ptr_not_equal(cluster_worker(cluster), leader);
    for (unsigned i = 0; i < 3; i++)
        net_mend(cluster, leader->slot, i);
    assert_true(cluster_advance(cluster, cluster->now + NS_PER_S));
    assert_int_equal(leader->node.raft.role, RAFT_FOLLOWER);
    assert_true(leader->node.raft.commit + 5 > cluster_worker(cluster)->node.raft.commit);
}

static void test_a_mac_is_good_only_for_its_certificate(void **state)
{
    struct cluster *cluster = begin_plain(state, 1);
    struct raft_certificate certificate = {.kind = RAFT_CERT_OBITUARY, .node = 1, .incarnation = 2};

    guard_sign(cluster, &certificate);
    assert_true(guard_verify_cb(cluster, &certificate));
    certificate.incarnation++;
    assert_false(guard_verify_cb(cluster, &certificate));
    certificate.incarnation--;
    certificate.mac[31] ^= 1;
    assert_false(guard_verify_cb(cluster, &certificate));
}

static void test_a_majority_is_never_spared(void **state)
{
    struct cluster *cluster = begin_plain(state, 3);

    assert_true(members_decide(cluster, 7));
    assert_true(members_decide(cluster, 3));
    assert_false(members_decide(cluster, 1));
    assert_true(members_can_spare(cluster, &cluster->hosts[0]));
    host_die(cluster, &cluster->hosts[0], false, "dies");
    cluster->hosts[0].state = HOST_DAMAGED;
    assert_false(members_can_spare(cluster, &cluster->hosts[1]));
}

static void test_names_of_faults_are_read_and_others_refused(void **state)
{
    uint64_t faults = 0;

    (void)state;
    assert_true(args_faults(&raft_simulator, "loss,stranger", &faults));
    assert_true(faults == (FAULT_BIT(FAULT_LOSS) | FAULT_BIT(FAULT_STRANGER)));
    assert_false(args_faults(&raft_simulator, "loss,los", &faults));
    assert_true(faults == (FAULT_BIT(FAULT_LOSS) | FAULT_BIT(FAULT_STRANGER)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_seed_means_one_run, begin, end),
        cmocka_unit_test_setup_teardown(test_nothing_goes_wrong_in_a_run_without_faults, begin, end),
        cmocka_unit_test(test_a_fault_switched_off_leaves_the_others_as_they_were),
        cmocka_unit_test(test_the_settings_of_all_seeds_add_up),
        cmocka_unit_test_setup_teardown(test_a_message_is_a_copy_of_all_it_points_to, begin, end),
        cmocka_unit_test_setup_teardown(test_a_crash_loses_what_was_not_synced, begin, end),
        cmocka_unit_test_setup_teardown(test_a_prefix_of_unsynced_writes_may_survive, begin, end),
        cmocka_unit_test_setup_teardown(test_a_node_starts_with_what_its_disk_has, begin, end),
        cmocka_unit_test_setup_teardown(test_a_frozen_node_does_nothing_and_hears_later_what_waited, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_a_leader_that_is_frozen_has_its_work_ended_by_the_watchdog,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_nothing_passes_a_cut_and_all_passes_once_mended, begin, end),
        cmocka_unit_test_setup_teardown(test_a_mac_is_good_only_for_its_certificate, begin, end),
        cmocka_unit_test_setup_teardown(test_a_majority_is_never_spared, begin, end),
        cmocka_unit_test(test_names_of_faults_are_read_and_others_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
