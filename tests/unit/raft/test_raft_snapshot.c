/* SPDX-License-Identifier: Apache-2.0 */

/* A follower that is sent a snapshot. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/raft/raft.h"

static bool refuse(void *context, const struct raft_certificate *certificate)
{
    (void)context;
    (void)certificate;
    return false;
}

static void leave(void *context, struct raft_certificate *certificate)
{
    (void)context;
    (void)certificate;
}

/* It was decoded first, and its leader may be dead by now: heartbeats renew promises, not this. */
static void test_a_late_snapshot_is_installed_and_renews_no_promise(void **state)
{
    static struct raft raft;
    static struct raft_actions actions;
    struct raft_settings settings;
    struct raft_restore restore = {
        .state = {.cluster = 5, .generation = 1, .id = 1, .incarnation = 1},
        .snapshot.config = {.count = 2,
                            .members = {{.id = 1, .is_voter = true}, {.id = 2, .is_voter = true}}}};
    struct raft_message message = {.kind = RAFT_MSG_APPEND,
                                   .from = 2,
                                   .to = 1,
                                   .cluster = 5,
                                   .generation = 1,
                                   .incarnation = 1,
                                   .term = 2,
                                   .append = {.lease_epoch = 1, .round = 1}};
    struct raft_event event = {.kind = RAFT_RECEIVE, .now = NS_PER_S, .message = &message};
    gavel_ns promised;

    (void)state;
    raft_settings_default(&settings);
    settings.verify = refuse;
    settings.sign = leave;
    assert_int_equal(raft_init(&raft, &settings, &restore, event.now, NULL), GAVEL_OK);
    assert_int_equal(raft_step(&raft, &event, &actions), GAVEL_OK);
    promised = raft.promise_until;
    assert_true(promised > event.now);
    event.now += NS_PER_MS;
    message.kind = RAFT_MSG_SNAPSHOT;
    message.snapshot = (struct raft_install){
        .index = 7, .index_term = 1, .config = restore.snapshot.config, .lease_epoch = 1, .round = 0};
    assert_int_equal(raft_step(&raft, &event, &actions), GAVEL_OK);
    assert_int_equal(raft.commit, 7);
    assert_true(raft.promise_until == promised);
    message.snapshot.index = 8;
    message.snapshot.round = 2; /* in time */
    assert_int_equal(raft_step(&raft, &event, &actions), GAVEL_OK);
    assert_int_equal(raft.commit, 8);
    assert_true(raft.promise_until > promised);
    raft_done(&raft);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_late_snapshot_is_installed_and_renews_no_promise),
    };

    return cmocka_run_group_tests_name("raft snapshot", tests, NULL, NULL);
}
