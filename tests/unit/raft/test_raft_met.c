/* SPDX-License-Identifier: Apache-2.0 */

/* What a node that starts makes of what its disk has of the directories of others. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "core/raft/raft.h"

struct fixture {
    struct raft raft;
    struct raft_actions actions;
    struct raft_settings settings;
    struct raft_restore restore;
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

/* Node 1 of 1, 2 and 3, of which 3 is a learner; nobody is bound yet. */
static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    raft_settings_default(&f->settings);
    f->settings.verify = verify;
    f->settings.sign = sign;
    f->restore.state =
        (struct raft_state){.cluster = 5, .generation = 1, .id = 1, .incarnation = 2, .directory = 100};
    f->restore.snapshot.config = (struct raft_config){
        .count = 3,
        .binds = true,
        .members = {{.id = 1, .is_voter = true}, {.id = 2, .is_voter = true}, {.id = 3}}};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    raft_done(&f->raft);
    free(f);
    return 0;
}

static void has_met(struct fixture *f, raft_id id, uint64_t directory)
{
    f->restore.state.met[f->restore.state.met_count++] =
        (struct raft_met){.id = id, .directory = directory, .incarnation = 1, .start = 9};
}

static void begin(struct fixture *f)
{
    assert_int_equal(raft_init(&f->raft, &f->settings, &f->restore, NS_PER_S, NULL), GAVEL_OK);
}

static enum raft_trust trust(const struct fixture *f, raft_id id, uint64_t directory)
{
    const struct raft_claimant claimant = {.id = id, .directory = directory, .incarnation = 2, .start = 10};

    return raft_trust(&f->raft, &claimant);
}

static void test_a_voter_that_is_not_bound_has_the_directory_that_was_met(void **state)
{
    struct fixture *f = *state;

    has_met(f, 2, 200);
    has_met(f, 2, 150); /* one that was kept: it had another before */
    begin(f);
    assert_int_equal(trust(f, 2, 200), RAFT_TRUSTED);
    assert_int_equal(trust(f, 2, 201), RAFT_OTHER_DIRECTORY);
    assert_int_equal(trust(f, 2, 150), RAFT_OTHER_DIRECTORY);
}

static void test_a_learner_that_is_not_bound_may_have_been_replaced(void **state)
{
    struct fixture *f = *state;

    has_met(f, 3, 300);
    begin(f);
    assert_int_equal(trust(f, 3, 300), RAFT_TRUSTED);
    assert_int_equal(trust(f, 3, 301), RAFT_TRUSTED);
}

static void test_a_hello_of_a_voter_that_is_not_bound_is_a_meeting(void **state)
{
    struct fixture *f = *state;
    const struct raft_claimant greeting = {
        .id = 2, .directory = 200, .incarnation = 2, .start = 10, .bound_at = 4};
    struct raft_event event = {.kind = RAFT_MET, .now = NS_PER_S, .met = &greeting};

    begin(f);
    assert_int_equal(trust(f, 2, 201), RAFT_TRUSTED);
    assert_int_equal(raft_step(&f->raft, &event, &f->actions), GAVEL_OK);
    assert_int_equal(trust(f, 2, 201), RAFT_OTHER_DIRECTORY);
    assert_true(f->raft.has_begun);
}

/* Lets time pass, and looks at what is written. */
static void test_that_something_is_committed_is_kept_while_the_log_is_empty(void **state)
{
    struct fixture *f = *state;
    struct raft_event event = {.kind = RAFT_TIMER, .now = NS_PER_S};

    has_met(f, 2, 200);
    has_met(f, 0, 0);
    begin(f);
    assert_true(f->raft.has_begun);
    assert_int_equal(f->raft.former_count, 0);
    assert_int_equal(raft_step(&f->raft, &event, &f->actions), GAVEL_OK);
    event.now += 2 * NS_PER_S;
    assert_int_equal(raft_step(&f->raft, &event, &f->actions), GAVEL_OK);
    assert_int_equal(f->raft.state.met_count, 2);
    assert_int_equal(f->raft.state.met[0].id, 2);
    assert_int_equal(f->raft.state.met[1].id, 0);
}

/* Node 2 leads: one entry, after index 1 or at the beginning. */
static void append(struct fixture *f, raft_term term, raft_index prev, const struct raft_entry *entry)
{
    const struct raft_message message = {.kind = RAFT_MSG_APPEND,
                                         .from = 2,
                                         .to = 1,
                                         .cluster = 5,
                                         .generation = 1,
                                         .incarnation = 1,
                                         .directory = 200,
                                         .start = 9,
                                         .term = term,
                                         .append = {.prev_index = prev,
                                                    .prev_term = prev,
                                                    .lease_epoch = 1,
                                                    .round = 1,
                                                    .entries = entry,
                                                    .entry_count = 1}};
    const struct raft_event event = {.kind = RAFT_RECEIVE, .now = NS_PER_S, .message = &message};

    assert_int_equal(raft_step(&f->raft, &event, &f->actions), GAVEL_OK);
}

static void test_a_removal_that_is_truncated_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct raft_config less = f->restore.snapshot.config;
    uint8_t bytes[RAFT_CONFIG_BYTES_MAX];
    const struct raft_entry first = {.term = 1, .kind = RAFT_ENTRY_NOOP};
    const struct raft_entry other = {.term = 2, .kind = RAFT_ENTRY_NOOP};
    struct raft_entry removal = {.term = 1, .kind = RAFT_ENTRY_CONFIG, .data = bytes};

    f->restore.snapshot.config.members[2].is_voter = true;
    less.count = 2;
    removal.size = (uint32_t)raft_config_encode(&less, bytes);
    has_met(f, 3, 300);
    begin(f);
    append(f, 1, 0, &first);
    append(f, 1, 1, &removal);
    assert_int_equal(f->raft.config.count, 2);
    append(f, 2, 1, &other);
    assert_int_equal(f->raft.config.count, 3);
    assert_int_equal(trust(f, 3, 300), RAFT_TRUSTED);
    assert_int_equal(trust(f, 3, 301), RAFT_OTHER_DIRECTORY);
}

static bool has_kept(const struct fixture *f, raft_id id, uint64_t directory)
{
    for (size_t i = 0; i < f->raft.former_count; i++)
        if (f->raft.former[i].id == id && f->raft.former[i].directory == directory)
            return true;
    return false;
}

static void test_many_directories_of_one_member_displace_no_others(void **state)
{
    struct fixture *f = *state;
    const uint64_t count = RAFT_MEMBERS_MAX - 3;

    has_met(f, 60, 600);
    for (uint64_t i = 0; i < count; i++)
        has_met(f, 50, 500 + i);
    has_met(f, 61, 610);
    has_met(f, 62, 620);
    begin(f);
    assert_int_equal(f->raft.former_count, RAFT_MEMBERS_MAX - 2); /* two are for the members */
    assert_true(has_kept(f, 60, 600));
    assert_true(has_kept(f, 61, 610));
    assert_true(has_kept(f, 62, 620));
    assert_false(has_kept(f, 50, 500));
    assert_false(has_kept(f, 50, 501));
    assert_true(has_kept(f, 50, 500 + count - 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_voter_that_is_not_bound_has_the_directory_that_was_met),
        TEST(test_a_learner_that_is_not_bound_may_have_been_replaced),
        TEST(test_a_hello_of_a_voter_that_is_not_bound_is_a_meeting),
        TEST(test_that_something_is_committed_is_kept_while_the_log_is_empty),
        TEST(test_a_removal_that_is_truncated_changes_nothing),
        TEST(test_many_directories_of_one_member_displace_no_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
