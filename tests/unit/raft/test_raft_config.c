/* SPDX-License-Identifier: Apache-2.0 */

/* Members, majorities of one half and of two, the steps of a change, and the bytes. */
#include "base/prng.h"
#include "core/raft/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VOTER .is_voter = true
#define OLD .was_voter = true
#define WITNESS .is_witness = true

/* A voter for each id of a string of digits. */
static struct raft_config voters(const char *ids)
{
    struct raft_config config = {0};

    for (; *ids; ids++)
        config.members[config.count++] = (struct raft_member){.id = (raft_id)(*ids - '0'), VOTER};
    return config;
}

static struct raft_config with_learners(struct raft_config config, const char *ids)
{
    for (; *ids; ids++)
        config.members[config.count++] = (struct raft_member){.id = (raft_id)(*ids - '0')};
    raft_config_sort(&config);
    return config;
}

static struct raft_config joined(const struct raft_config *from, const struct raft_config *target)
{
    struct raft_config joint;

    assert_int_equal(raft_config_join(from, target, &joint), GAVEL_OK);
    return joint;
}

static bool is_valid(const struct raft_config *config)
{
    const char *reason = NULL;
    enum gavel_status status = raft_config_check(config, &reason);

    assert_int_equal(status == GAVEL_OK, reason == NULL);
    return status == GAVEL_OK;
}

static bool is_in_set(const void *context, raft_id id) { return *(const uint64_t *)context >> id & 1; }

static bool decides(const struct raft_config *config, uint64_t set)
{
    return raft_config_decides(config, is_in_set, &set);
}

static int64_t value_of(const void *context, raft_id id) { return ((const int64_t *)context)[id]; }

static void test_majority_is_more_than_half_of_any_number_of_voters(void **state)
{
    static const char *const ids = "123456789";

    (void)state;
    for (size_t n = 1; n <= RAFT_VOTERS_MAX; n++) {
        struct raft_config config = voters(ids + 9 - n);

        for (uint64_t set = 0; set < 1u << 10; set++) {
            size_t of_them = 0;

            for (size_t i = 0; i < n; i++)
                of_them += is_in_set(&set, config.members[i].id);
            assert_int_equal(decides(&config, set), 2 * of_them > n);
        }
    }
}

static void test_nobody_decides_without_voters(void **state)
{
    struct raft_config nobody = {0};
    struct raft_config learners = with_learners(nobody, "123");
    struct raft_config old_only = {.is_joint = true, .count = 1, .members = {{.id = 1, OLD}}};
    int64_t values[10] = {9, 9, 9, 9};

    (void)state;
    assert_false(decides(&nobody, UINT64_MAX));
    assert_false(decides(&learners, UINT64_MAX));
    assert_false(decides(&old_only, UINT64_MAX));
    assert_int_equal(raft_config_reached(&nobody, value_of, values), 0);
    assert_int_equal(raft_config_reached(&learners, value_of, values), 0);
    assert_int_equal(raft_config_reached(&old_only, value_of, values), 0);
}

static void test_learners_count_for_nothing(void **state)
{
    struct raft_config config = with_learners(voters("123"), "45");
    int64_t values[10] = {0, 5, 1, 2, 100, 100};

    (void)state;
    assert_false(decides(&config, 1u << 1 | 1u << 4 | 1u << 5));
    assert_true(decides(&config, 1u << 1 | 1u << 2));
    assert_int_equal(raft_config_reached(&config, value_of, values), 2);
}

static void test_joint_needs_both_halves(void **state)
{
    struct raft_config from = voters("123");
    struct raft_config target = voters("345");
    struct raft_config joint = joined(&from, &target);
    int64_t values[10] = {0, 10, 10, 10, 1, 2};

    (void)state;
    assert_false(decides(&joint, 1u << 1 | 1u << 2 | 1u << 3)); /* all old, one new */
    assert_false(decides(&joint, 1u << 3 | 1u << 4 | 1u << 5)); /* all new, one old */
    assert_true(decides(&joint, 1u << 2 | 1u << 3 | 1u << 4));
    /* The old half has reached 10, the new one 2. */
    assert_int_equal(raft_config_reached(&joint, value_of, values), 2);
    values[1] = values[2] = 1;
    values[4] = 20;
    assert_int_equal(raft_config_reached(&joint, value_of, values), 1);
}

/* A random configuration of ids 1 to 9, joint or not, that passes the check. */
static struct raft_config random_config(struct prng *prng)
{
    for (;;) {
        struct raft_config config = {.is_joint = prng_chance(prng, 600)};

        for (raft_id id = 1; id <= 9; id++)
            if (prng_chance(prng, 700))
                config.members[config.count++] = (struct raft_member){
                    .id = id,
                    .priority = (uint8_t)prng_next(prng),
                    .is_voter = prng_chance(prng, 600),
                    .was_voter = config.is_joint && prng_chance(prng, 600),
                    .is_witness = prng_chance(prng, 200),
                };
        if (is_valid(&config))
            return config;
    }
}

static void test_reached_is_the_greatest_value_that_a_deciding_set_has(void **state)
{
    struct prng prng;

    (void)state;
    prng_seed(&prng, 4);
    for (int round = 0; round < 20000; round++) {
        struct raft_config config = random_config(&prng);
        int64_t values[10];
        int64_t reached;
        int64_t best = INT64_MIN;

        for (size_t i = 0; i < 10; i++)
            values[i] = prng_chance(&prng, 50) ? INT64_MAX : prng_between(&prng, -5, 5);
        for (size_t i = 0; i < 10; i++) {
            uint64_t set = 0;

            for (size_t j = 0; j < 10; j++)
                set |= (uint64_t)(values[j] >= values[i]) << j;
            if (decides(&config, set) && values[i] > best)
                best = values[i];
        }
        reached = raft_config_reached(&config, value_of, values);
        assert_int_equal(reached, best);
    }
}

static void assert_sets_meet(const struct raft_config *a, const struct raft_config *b)
{
    uint64_t all = 0x7e; /* ids 1 to 6 */

    for (uint64_t set = 0; set <= all; set += 2)
        if (decides(a, set))
            assert_false(decides(b, all & ~set));
}

static void test_deciding_sets_of_neighbouring_configurations_always_meet(void **state)
{
    size_t apart = 0;

    (void)state;
    for (unsigned from_set = 1; from_set < 64; from_set++)
        for (unsigned target_set = 1; target_set < 64; target_set += 3) {
            struct raft_config from = {0};
            struct raft_config target = {0};
            struct raft_config joint;
            struct raft_config left;

            for (unsigned bit = 0; bit < 6; bit++) {
                struct raft_member member = {.id = bit + 1, VOTER};

                if (from_set >> bit & 1)
                    from.members[from.count++] = member;
                if (target_set >> bit & 1)
                    target.members[target.count++] = member;
            }
            joint = joined(&from, &target);
            assert_sets_meet(&from, &joint);
            assert_sets_meet(&joint, &target);
            raft_config_leave(&joint, &left);
            assert_true(raft_config_same_voters(&left, &target));
            /* A direct step would be unsafe for many of these, or this test would show nothing. */
            apart += (from_set & target_set) == 0;
        }
    assert_true(apart > 100);
}

static void test_a_change_keeps_old_voters_until_it_is_done(void **state)
{
    struct raft_config from = with_learners(voters("123"), "78");
    struct raft_config target = with_learners(voters("345"), "7");
    struct raft_config joint = joined(&from, &target);
    struct raft_config plain;

    (void)state;
    assert_true(joint.is_joint);
    assert_true(is_valid(&joint));
    assert_int_equal(joint.count, 6); /* 1 to 5 and the learner that stays; 8 is gone at once */
    assert_null(raft_config_find(&joint, 8));
    assert_true(raft_config_votes(&joint, 1));
    assert_true(raft_config_votes(&joint, 5));
    assert_false(raft_config_votes(&joint, 7));
    assert_true(raft_config_find(&joint, 3)->is_voter && raft_config_find(&joint, 3)->was_voter);
    assert_false(raft_config_find(&joint, 1)->is_voter);

    raft_config_leave(&joint, &plain);
    assert_true(is_valid(&plain));
    assert_memory_equal(&plain, &target, sizeof plain);
}

static void test_what_the_target_says_of_a_member_holds(void **state)
{
    struct raft_config from = voters("12");
    struct raft_config target = voters("12");
    struct raft_config joint;

    (void)state;
    target.members[1].priority = 7;
    target.members[1].is_witness = true;
    joint = joined(&from, &target);
    assert_int_equal(joint.members[1].priority, 7);
    assert_true(joint.members[1].is_witness);
}

static void test_changes_that_cannot_be_are_refused_and_touch_nothing(void **state)
{
    struct raft_config joint = {.count = 77};
    struct raft_config from = voters("12");
    struct raft_config demoted = with_learners(voters("2"), "1");
    struct raft_config nobody = {0};
    struct raft_config many = {0};
    struct raft_config others = {0};
    struct raft_config old = voters("12");
    struct raft_config witnesses = voters("13");

    (void)state;
    assert_int_equal(raft_config_join(&from, &demoted, &joint), GAVEL_ERR_INVALID);
    assert_int_equal(raft_config_join(&from, &nobody, &joint), GAVEL_ERR_INVALID);
    /* Each is in order, together they are too many. */
    for (raft_id id = 1; id <= 9; id++) {
        many.members[many.count++] = (struct raft_member){.id = id, VOTER};
        others.members[others.count++] = (struct raft_member){.id = 9 + id, VOTER};
    }
    assert_int_equal(raft_config_join(&many, &others, &joint), GAVEL_ERR_INVALID);
    /* 1 is a real voter of the old half, 3 of the new; made a witness now, 1 would leave the old without
     * one. */
    old.members[1].is_witness = true;
    witnesses.members[0].is_witness = true;
    assert_true(is_valid(&old));
    assert_true(is_valid(&witnesses));
    assert_int_equal(raft_config_join(&old, &witnesses, &joint), GAVEL_ERR_INVALID);
    assert_int_equal(joint.count, 77);
}

static void test_new_members_begin_as_learners_in_their_place(void **state)
{
    struct raft_config config = voters("37");
    struct raft_config target = voters("159");
    struct raft_config many = {0};
    struct raft_config before;

    (void)state;
    target.members[1].is_witness = true;
    assert_int_equal(raft_config_add_learners(&config, &target), GAVEL_OK);
    assert_int_equal(config.count, 5);
    assert_true(is_valid(&config));
    assert_true(raft_config_votes(&config, 3));
    assert_false(raft_config_votes(&config, 5));
    assert_true(raft_config_find(&config, 5)->is_witness);

    for (raft_id id = 10; id < 22; id++)
        many.members[many.count++] = (struct raft_member){.id = id, VOTER};
    before = config;
    assert_int_equal(raft_config_add_learners(&config, &many), GAVEL_ERR_INVALID);
    assert_memory_equal(&config, &before, sizeof config);
}

static void test_impossible_configurations_are_named(void **state)
{
    static const struct {
        const char *reason;
        struct raft_config config;
    } bad[] = {
        {"no voter", {.count = 0}},
        {"no voter", {.count = 1, .members = {{.id = 1}}}},
        {"no old voter", {.is_joint = true, .count = 1, .members = {{.id = 1, VOTER}}}},
        {"no voter", {.is_joint = true, .count = 1, .members = {{.id = 1, OLD}}}},
        {"a member without an id", {.count = 1, .members = {{.id = 0, VOTER}}}},
        {"a member twice", {.count = 2, .members = {{.id = 4, VOTER}, {.id = 4, VOTER}}}},
        {"members out of order", {.count = 2, .members = {{.id = 4, VOTER}, {.id = 3, VOTER}}}},
        {"only witnesses vote", {.count = 2, .members = {{.id = 1, VOTER, WITNESS}, {.id = 2}}}},
        {"only witnesses vote",
         {.is_joint = true, .count = 2, .members = {{.id = 1, VOTER, OLD, WITNESS}, {.id = 2, VOTER}}}},
        {"an old voter in a configuration that is not joint",
         {.count = 1, .members = {{.id = 1, VOTER, OLD}}}},
        {"too many members", {.count = RAFT_MEMBERS_MAX + 1}},
    };
    struct raft_config many = {0};
    const char *reason;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        reason = "none";
        assert_int_equal(raft_config_check(&bad[i].config, &reason), GAVEL_ERR_INVALID);
        assert_string_equal(reason, bad[i].reason);
    }
    for (raft_id id = 1; id <= RAFT_VOTERS_MAX; id++)
        many.members[many.count++] = (struct raft_member){.id = id, VOTER};
    assert_true(is_valid(&many));
    many.members[many.count++] = (struct raft_member){.id = 100, VOTER};
    assert_int_equal(raft_config_check(&many, &reason), GAVEL_ERR_INVALID);
    assert_string_equal(reason, "too many voters");
}

static void test_same_voters_looks_at_voters_only(void **state)
{
    struct raft_config a = voters("123");
    struct raft_config b = with_learners(voters("123"), "4");
    struct raft_config c = voters("124");
    struct raft_config joint = joined(&a, &a);

    (void)state;
    b.members[0].priority = 9;
    assert_true(raft_config_same_voters(&a, &b));
    assert_true(raft_config_same_voters(&b, &a));
    assert_false(raft_config_same_voters(&a, &c));
    assert_false(raft_config_same_voters(&b, &c));
    assert_false(raft_config_same_voters(&a, &joint));
}

static void test_sort_puts_members_into_order(void **state)
{
    struct raft_config config = voters("49172");

    (void)state;
    config.members[0].priority = 4;
    raft_config_sort(&config);
    assert_true(is_valid(&config));
    assert_int_equal(raft_config_find(&config, 4)->priority, 4);
}

static void assert_round_trip(const struct raft_config *config)
{
    uint8_t bytes[RAFT_CONFIG_BYTES_MAX];
    uint8_t again[RAFT_CONFIG_BYTES_MAX];
    struct raft_config decoded;
    size_t size = raft_config_encode(config, bytes);

    assert_int_equal(raft_config_decode(bytes, size, &decoded), GAVEL_OK);
    assert_int_equal(decoded.is_joint, config->is_joint);
    assert_int_equal(decoded.count, config->count);
    assert_true(decoded.founding == config->founding && decoded.generation == config->generation);
    for (size_t i = 0; i < config->count; i++) {
        assert_int_equal(decoded.members[i].id, config->members[i].id);
        assert_int_equal(decoded.members[i].priority, config->members[i].priority);
        assert_int_equal(decoded.members[i].is_voter, config->members[i].is_voter);
        assert_int_equal(decoded.members[i].was_voter, config->members[i].was_voter);
        assert_int_equal(decoded.members[i].is_witness, config->members[i].is_witness);
        assert_int_equal(decoded.members[i].is_refused, config->members[i].is_refused);
        assert_true(decoded.members[i].directory == config->members[i].directory);
    }
    assert_int_equal(raft_config_encode(&decoded, again), size);
    assert_memory_equal(bytes, again, size);
}

static void test_every_configuration_comes_back_from_its_bytes(void **state)
{
    struct raft_config nobody = {0}; /* what a node that joins begins with */
    struct raft_config full = {.is_joint = true};
    struct prng prng;

    (void)state;
    assert_round_trip(&nobody);
    for (raft_id id = 1; id <= RAFT_MEMBERS_MAX; id++)
        full.members[full.count++] =
            (struct raft_member){.id = UINT64_MAX - 100 + id, .priority = 255, VOTER, OLD, WITNESS};
    assert_round_trip(&full);
    full.binds = true;
    for (unsigned i = 0; i < full.count; i++) {
        full.members[i].directory = UINT64_MAX - i;
        full.members[i].is_refused = i % 2;
    }
    assert_round_trip(&full);
    full.founding = UINT64_MAX;
    full.generation = 3;
    assert_round_trip(&full);
    prng_seed(&prng, 7);
    for (int round = 0; round < 1000; round++) {
        struct raft_config config = random_config(&prng);

        assert_round_trip(&config);
    }
}

/* A rolling upgrade: a node of 0.6.0 reads what it wrote itself, and nothing else. */
static void test_without_directories_the_bytes_are_those_of_0_6_0(void **state)
{
    static const uint8_t old[] = {0, 1, 5, 0, 0, 0, 0, 0, 0, 0, 2, 1};
    struct raft_config config = {.count = 1, .members = {{.id = 5, .priority = 2, VOTER}}};
    uint8_t bytes[RAFT_CONFIG_BYTES_MAX];

    (void)state;
    assert_int_equal(raft_config_encode(&config, bytes), sizeof old);
    assert_memory_equal(bytes, old, sizeof old);
    config.binds = true;
    assert_int_equal(raft_config_encode(&config, bytes), sizeof old + 8);
    assert_int_equal(bytes[0], 2);
    config.founding = 9;
    assert_int_equal(raft_config_encode(&config, bytes), sizeof old + 8 + 16);
    assert_int_equal(bytes[0], 6);
}

static void test_a_change_of_members_keeps_their_directories(void **state)
{
    struct raft_config from = voters("123");
    struct raft_config target = voters("134");
    struct raft_config joint, plain;

    (void)state;
    from.binds = true;
    for (unsigned i = 0; i < from.count; i++)
        from.members[i].directory = 100 + from.members[i].id;
    from.members[2].is_refused = true;
    from.founding = 77;
    from.generation = 2;
    assert_int_equal(raft_config_join(&from, &target, &joint), GAVEL_OK);
    raft_config_leave(&joint, &plain);
    assert_true(joint.binds && plain.binds);
    assert_true(joint.founding == 77 && plain.founding == 77);
    assert_true(joint.generation == 2 && plain.generation == 2);
    raft_config_inherit(&target, &from);
    assert_true(target.founding == 77 && target.generation == 2);
    assert_int_equal(raft_config_find(&joint, 2)->directory, 102);
    assert_int_equal(raft_config_find(&plain, 1)->directory, 101);
    assert_true(raft_config_find(&plain, 3)->is_refused);
    assert_int_equal(raft_config_find(&plain, 4)->directory, 0);
}

/* The number of a founding is there or not; it is never 0, and never without directories. */
static void test_a_founding_without_a_number_or_directories_is_refused(void **state)
{
    struct raft_config config = voters("123");
    struct raft_config decoded;
    uint8_t bytes[RAFT_CONFIG_BYTES_MAX] = {0};
    const char *reason;
    size_t size;

    (void)state;
    config.binds = true;
    config.founding = 256;
    size = raft_config_encode(&config, bytes);
    assert_int_equal(raft_config_decode(bytes, size, &decoded), GAVEL_OK);
    bytes[3] = 0;
    assert_int_equal(raft_config_decode(bytes, size, &decoded), GAVEL_ERR_INVALID);
    bytes[3] = 1;
    bytes[0] &= (uint8_t)~2; /* binds no more, and is as much shorter */
    assert_int_equal(raft_config_decode(bytes, size - (size_t)config.count * 8, &decoded), GAVEL_ERR_INVALID);
    config.binds = false;
    assert_int_equal(raft_config_check(&config, &reason), GAVEL_ERR_INVALID);
    config = (struct raft_config){.count = 1, .generation = 1, .members = {{.id = 1, VOTER}}};
    assert_int_equal(raft_config_check(&config, &reason), GAVEL_ERR_INVALID);
}

static void test_bytes_cut_short_or_too_long_are_refused(void **state)
{
    struct raft_config config = with_learners(voters("123"), "4");
    struct raft_config decoded = {.count = 77};
    uint8_t bytes[RAFT_CONFIG_BYTES_MAX + 1] = {0};
    size_t size = raft_config_encode(&config, bytes);

    (void)state;
    for (size_t cut = 0; cut <= size + 1; cut++) {
        /* An exact allocation, so that the sanitizer sees a read past the end. */
        uint8_t *copy = malloc(cut > 0 ? cut : 1);

        assert_non_null(copy);
        memcpy(copy, bytes, cut);
        if (cut != size)
            assert_int_equal(raft_config_decode(copy, cut, &decoded), GAVEL_ERR_INVALID);
        free(copy);
    }
    assert_int_equal(decoded.count, 77);
}

static void test_flipped_bits_are_refused_or_mean_what_they_say(void **state)
{
    struct raft_config config = with_learners(voters("123"), "4");
    uint8_t bytes[RAFT_CONFIG_BYTES_MAX];
    size_t size = raft_config_encode(&config, bytes);
    size_t refused = 0;

    (void)state;
    for (size_t bit = 0; bit < size * 8; bit++) {
        struct raft_config decoded;

        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (raft_config_decode(bytes, size, &decoded) == GAVEL_OK)
            assert_round_trip(&decoded);
        else
            refused++;
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_true(refused > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_majority_is_more_than_half_of_any_number_of_voters),
        cmocka_unit_test(test_nobody_decides_without_voters),
        cmocka_unit_test(test_learners_count_for_nothing),
        cmocka_unit_test(test_joint_needs_both_halves),
        cmocka_unit_test(test_reached_is_the_greatest_value_that_a_deciding_set_has),
        cmocka_unit_test(test_deciding_sets_of_neighbouring_configurations_always_meet),
        cmocka_unit_test(test_a_change_keeps_old_voters_until_it_is_done),
        cmocka_unit_test(test_what_the_target_says_of_a_member_holds),
        cmocka_unit_test(test_changes_that_cannot_be_are_refused_and_touch_nothing),
        cmocka_unit_test(test_new_members_begin_as_learners_in_their_place),
        cmocka_unit_test(test_impossible_configurations_are_named),
        cmocka_unit_test(test_same_voters_looks_at_voters_only),
        cmocka_unit_test(test_sort_puts_members_into_order),
        cmocka_unit_test(test_every_configuration_comes_back_from_its_bytes),
        cmocka_unit_test(test_without_directories_the_bytes_are_those_of_0_6_0),
        cmocka_unit_test(test_a_change_of_members_keeps_their_directories),
        cmocka_unit_test(test_a_founding_without_a_number_or_directories_is_refused),
        cmocka_unit_test(test_bytes_cut_short_or_too_long_are_refused),
        cmocka_unit_test(test_flipped_bits_are_refused_or_mean_what_they_say),
    };

    return cmocka_run_group_tests_name("raft config", tests, NULL, NULL);
}
