/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the findings of the testbed rest on: a run without faults has none, a
 * program gives up only what it can say that it gives up, and programs are
 * expected to find only nodes that they know.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/raft/members.h"
#include "sim/session/world.h"

#define DURATION (4 * NS_PER_S)
#define ALL_FAULTS UINT64_MAX

static int begin(void **state)
{
    *state = testbed_new();
    return 0;
}

static int end(void **state)
{
    testbed_free(*state);
    return 0;
}

/* One run without faults, to its end. */
static struct testbed *play(void **state, uint64_t seed)
{
    struct testbed *testbed = *state;
    struct session_profile profile;

    session_profile_draw(&profile, seed, 3, 3, DURATION, ALL_FAULTS);
    assert_int_equal(profile.faults, 0);
    testbed_play(testbed, &profile, seed, NULL);
    assert_int_equal(testbed->cluster->broken, RAFT_INVARIANT_NONE);
    assert_true(testbed->is_healed);
    return testbed;
}

static void test_nothing_goes_wrong_in_a_run_without_faults(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const struct testbed *testbed = play(state, seed);

        assert_true(testbed->seen[SESSION_SIGHT_SESSIONS] >= 3);
        assert_int_equal(testbed->seen[SESSION_SIGHT_STALLS], 0);
    }
}

/* Somebody who works in a group with this role, at the end of one of the runs. */
static struct program *find_worker(void **state, enum role role, unsigned *ret_group)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct testbed *testbed = play(state, seed);

        for (unsigned i = 0; i < testbed->profile.programs; i++)
            for (unsigned group = 0; group < testbed->profile.groups; group++) {
                const struct candidacy *candidacy = &testbed->programs[i].candidacies[group];

                if (testbed->profile.program[i].roles[group] != role || !candidacy->works ||
                    candidacy->is_asking || candidacy->is_leaving || candidacy->must_look)
                    continue;
                *ret_group = group;
                return &testbed->programs[i];
            }
    }
    fail_msg("nobody works");
    return NULL;
}

/* It has asked so much without an answer that there is no room for more. */
static void fill(struct program *program)
{
    for (unsigned i = 0; i < PENDING_MAX; i++)
        if (program->pending[i].kind == PENDING_NONE)
            program->pending[i] = (struct pending){.kind = PENDING_NOTE, .give_up_at = NEVER};
    assert_false(pending_has_room(program));
}

/* Asked to hand over, it goes on leading until it can say that it gives up. */
static void hand_over_when_there_is_room(void **state, enum role role,
                                         void (*act)(struct program *program, unsigned group))
{
    unsigned group = 0;
    struct program *program = find_worker(state, role, &group);
    struct candidacy *candidacy = &program->candidacies[group];
    uint64_t epoch = candidacy->epoch;

    fill(program);
    candidacy->drain_at = 1;
    act(program, group);
    assert_true(candidacy->epoch == epoch);
    assert_true(candidacy->void_up_to < epoch);
    assert_false(candidacy->is_leaving);
    program->pending[0].kind = PENDING_NONE;
    act(program, group);
    assert_true(candidacy->epoch == 0);
    assert_true(candidacy->is_leaving);
    assert_false(candidacy->works);
}

static void test_a_leader_without_room_for_a_request_does_not_give_up(void **state)
{
    hand_over_when_there_is_room(state, ROLE_CAMPAIGN, campaign_act);
}

static void test_a_holder_of_a_lease_without_room_for_a_request_does_not_give_up(void **state)
{
    hand_over_when_there_is_room(state, ROLE_LEASE, lease_act);
}

static void test_a_look_without_room_is_made_later(void **state)
{
    unsigned group = 0;
    struct program *program = find_worker(state, ROLE_CAMPAIGN, &group);
    struct candidacy *candidacy = &program->candidacies[group];

    candidacy->is_looking = false;
    fill(program);
    pending_ask(program, PENDING_LOOK, group);
    assert_false(candidacy->is_looking);
    assert_true(candidacy->must_look);
    campaign_act(program, group);
    assert_true(candidacy->must_look);
    program->pending[0].kind = PENDING_NONE;
    campaign_act(program, group);
    assert_true(candidacy->is_looking);
    assert_false(candidacy->must_look);
}

static void test_programs_find_only_healed_members_among_those_they_know(void **state)
{
    struct testbed *testbed = *state;
    struct cluster *cluster = testbed->cluster;
    struct profile profile;
    struct host *first = &cluster->hosts[0];

    cluster_profile_plain(&profile, 4, 500 * NS_PER_US, NS_PER_MS);
    cluster_begin(cluster, &profile, 7);
    assert_true(cluster_advance(cluster, 2 * NS_PER_S));
    host_die(cluster, first, false, "dies");
    assert_true(cluster_advance(cluster, 4 * NS_PER_S));
    host_start(cluster, first);
    assert_true(cluster_advance(cluster, 6 * NS_PER_S));
    assert_non_null(cluster_worker(cluster));
    assert_ptr_not_equal(cluster_worker(cluster), first);
    testbed->profile.cluster.nodes = 1; /* they know of the first node, the others were added */
    cluster->healed = 0xe;
    assert_false(testbed_is_reachable(testbed));
    cluster->healed = 0xf;
    assert_true(testbed_is_reachable(testbed));
    assert_true(members_ask(cluster, first, false));
    assert_true(cluster_advance(cluster, cluster->now + 2 * NS_PER_S));
    assert_true(host_is_up(first));
    assert_false(testbed_is_reachable(testbed));
    testbed->profile.cluster.nodes = 2;
    assert_true(testbed_is_reachable(testbed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_goes_wrong_in_a_run_without_faults, begin, end),
        cmocka_unit_test_setup_teardown(test_a_leader_without_room_for_a_request_does_not_give_up, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_a_holder_of_a_lease_without_room_for_a_request_does_not_give_up,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_a_look_without_room_is_made_later, begin, end),
        cmocka_unit_test_setup_teardown(test_programs_find_only_healed_members_among_those_they_know, begin,
                                        end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
