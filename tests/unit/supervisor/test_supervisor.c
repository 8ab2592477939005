/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The supervisor, driven as the guard drives it, with a tree of its own that
 * remembers what lives. Time is passed in, so a minute takes no time.
 */
#include "core/supervisor/supervisor.h"

#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MS NS_PER_MS
#define EXIT_3 (3 << 8)

/* A supervisor and what its actions have brought about. */
struct stage {
    struct supervisor supervisor;
    struct supervisor_actions actions;
    gavel_ns now;
    gavel_ns stop_at;
    gavel_ns kill_at;
    char said[512]; /* the actions since the last look, in short */
};

static void note(struct stage *stage, const struct supervisor_action *action)
{
    char text[32];
    size_t used = strlen(stage->said);

    if (action->kind == SUPERVISOR_KILL_TREE)
        (void)snprintf(text, sizeof text, "kill-tree ");
    else if (action->kind == SUPERVISOR_SPAWN && action->slot == SLOT_HOOK)
        (void)snprintf(text, sizeof text, "%s ", action->demoted ? "hook-demoted" : "hook-elected");
    else if (action->kind == SUPERVISOR_SPAWN && action->slot == SLOT_CHECK)
        (void)snprintf(text, sizeof text, "check-%zu ", action->child);
    else
        (void)snprintf(text, sizeof text, "%s-%zu ",
                       action->kind == SUPERVISOR_SPAWN       ? "spawn"
                       : action->kind == SUPERVISOR_TERM_SLOT ? "term"
                                                              : "kill",
                       action->slot);
    (void)snprintf(stage->said + used, sizeof stage->said - used, "%s", text);
}

static void feed(struct stage *stage, enum supervisor_event_kind kind, size_t slot, int status)
{
    const struct supervisor_event event = {
        .kind = kind,
        .now = stage->now,
        .stop_at = stage->stop_at,
        .kill_at = stage->kill_at,
        .epoch = 7,
        .slot = slot,
        .status = status,
    };

    supervisor_step(&stage->supervisor, &event, &stage->actions);
    for (size_t i = 0; i < stage->actions.count; i++)
        note(stage, &stage->actions.items[i]);
}

static void tick(struct stage *stage, gavel_ns after)
{
    stage->now += after;
    feed(stage, SUPERVISOR_TICK, 0, 0);
}

/* What was done since the last look must be this, in this order. */
static void expect(struct stage *stage, const char *said)
{
    size_t length = strlen(stage->said);

    if (length > 0)
        stage->said[length - 1] = '\0';
    assert_string_equal(stage->said, said);
    stage->said[0] = '\0';
}

static void expect_state(const struct stage *stage, enum supervisor_state state)
{
    assert_string_equal(supervisor_state_name(stage->supervisor.state), supervisor_state_name(state));
}

static void expect_cause(const struct stage *stage, enum supervisor_cause cause)
{
    assert_string_equal(supervisor_cause_name(stage->supervisor.cause), supervisor_cause_name(cause));
}

static struct supervisor_rules plain_rules(size_t children, enum on_exit on_exit)
{
    struct supervisor_rules rules = {
        .child_count = children,
        .hook_timeout = 1000 * MS,
        .restart_limit = 3,
        .restart_window = 5000 * MS,
    };

    for (size_t i = 0; i < children; i++)
        rules.children[i] =
            (struct child_rule){.on_exit = on_exit, .grace = 300 * MS, .ready_timeout = 2000 * MS};
    return rules;
}

static void begin(struct stage *stage, const struct supervisor_rules *rules)
{
    *stage = (struct stage){.now = 1000 * MS, .stop_at = 60000 * MS, .kill_at = 60400 * MS};
    supervisor_init(&stage->supervisor, rules);
    feed(stage, SUPERVISOR_START, 0, 0);
}

static void test_children_start_in_order_and_stop_in_reverse(void **state)
{
    struct supervisor_rules rules = plain_rules(3, ON_EXIT_STOP);
    struct stage stage;

    (void)state;
    begin(&stage, &rules);
    expect(&stage, "spawn-0 spawn-1 spawn-2");
    expect_state(&stage, SUPERVISOR_RUNNING);
    feed(&stage, SUPERVISOR_STOP, 0, 0);
    expect(&stage, "term-2");
    feed(&stage, SUPERVISOR_EXITED, 2, 0);
    expect(&stage, "kill-2"); /* what it left behind */
    feed(&stage, SUPERVISOR_SLOT_EMPTY, 2, 0);
    expect(&stage, "term-1");
    tick(&stage, 300 * MS); /* it ignores the signal */
    expect(&stage, "kill-1");
    feed(&stage, SUPERVISOR_EXITED, 1, 9);
    feed(&stage, SUPERVISOR_SLOT_EMPTY, 1, 0);
    expect(&stage, "term-0");
    feed(&stage, SUPERVISOR_EXITED, 0, 0);
    feed(&stage, SUPERVISOR_SLOT_EMPTY, 0, 0);
    expect(&stage, "kill-0 kill-tree");
    expect_state(&stage, SUPERVISOR_CLEARING);
    feed(&stage, SUPERVISOR_TREE_EMPTY, 0, 0);
    expect_state(&stage, SUPERVISOR_EMPTY);
    expect_cause(&stage, CAUSE_ORDERED);
}

static void test_a_child_starts_only_when_the_one_before_is_ready(void **state)
{
    struct supervisor_rules rules = plain_rules(3, ON_EXIT_STOP);
    struct stage stage;

    (void)state;
    rules.children[0].ready = READY_BY_FD;
    rules.children[1].ready = READY_BY_COMMAND;
    begin(&stage, &rules);
    expect(&stage, "spawn-0");
    feed(&stage, SUPERVISOR_READY, 1, 0); /* of a child that is not awaited */
    expect(&stage, "");
    feed(&stage, SUPERVISOR_READY, 0, 0);
    expect(&stage, "spawn-1 check-1");
    feed(&stage, SUPERVISOR_EXITED, SLOT_CHECK, EXIT_3);
    expect(&stage, "");
    tick(&stage, 100 * MS);
    expect(&stage, "check-1");
    feed(&stage, SUPERVISOR_EXITED, SLOT_CHECK, 0);
    expect(&stage, "spawn-2");
    expect_state(&stage, SUPERVISOR_RUNNING);
}

static void test_a_child_that_is_not_ready_in_time_stops_everything(void **state)
{
    struct supervisor_rules rules = plain_rules(2, ON_EXIT_RESTART);
    struct stage stage;

    (void)state;
    rules.children[0].ready = READY_BY_COMMAND;
    begin(&stage, &rules);
    expect(&stage, "spawn-0 check-0");
    tick(&stage, 2000 * MS);
    expect(&stage, "kill-33 term-0");
    expect_cause(&stage, CAUSE_NOT_READY);
    assert_int_equal(stage.supervisor.cause_slot, 0);
}

static void test_a_restart_waits_until_nothing_of_the_old_one_is_left(void **state)
{
    struct supervisor_rules rules = plain_rules(2, ON_EXIT_RESTART);
    struct stage stage;

    (void)state;
    begin(&stage, &rules);
    expect(&stage, "spawn-0 spawn-1");
    feed(&stage, SUPERVISOR_EXITED, 1, EXIT_3);
    expect(&stage, "kill-1");
    tick(&stage, 50 * MS);
    expect(&stage, "");
    feed(&stage, SUPERVISOR_SLOT_EMPTY, 1, 0);
    expect(&stage, "spawn-1"); /* and the other one is left alone */
    expect_state(&stage, SUPERVISOR_RUNNING);
}

static void fail_and_restart(struct stage *stage)
{
    feed(stage, SUPERVISOR_EXITED, 0, EXIT_3);
    expect(stage, "kill-0");
    feed(stage, SUPERVISOR_SLOT_EMPTY, 0, 0);
    expect(stage, "spawn-0");
}

static void test_more_restarts_than_the_limit_in_the_window_stop_everything(void **state)
{
    struct supervisor_rules rules = plain_rules(1, ON_EXIT_RESTART);
    struct stage stage;

    (void)state;
    begin(&stage, &rules);
    expect(&stage, "spawn-0");
    for (int i = 0; i < 3; i++) {
        tick(&stage, 1000 * MS);
        fail_and_restart(&stage);
    }
    tick(&stage, 1000 * MS);
    feed(&stage, SUPERVISOR_EXITED, 0, EXIT_3); /* the fourth in four seconds */
    expect(&stage, "kill-tree");
    expect_cause(&stage, CAUSE_LIMIT);
    assert_int_equal(stage.supervisor.cause_status, EXIT_3);
}

static void test_restarts_that_are_far_apart_go_on_for_ever(void **state)
{
    struct supervisor_rules rules = plain_rules(1, ON_EXIT_RESTART);
    struct stage stage;

    (void)state;
    begin(&stage, &rules);
    expect(&stage, "spawn-0");
    stage.stop_at = stage.kill_at = NEVER;
    for (int i = 0; i < 250; i++) {
        tick(&stage, 1700 * MS);
        fail_and_restart(&stage);
    }
    assert_int_equal(stage.supervisor.restart_total, 250);
}

static void test_a_limit_of_zero_allows_no_restart(void **state)
{
    struct supervisor_rules rules = plain_rules(1, ON_EXIT_RESTART);
    struct stage stage;

    (void)state;
    rules.restart_limit = 0;
    begin(&stage, &rules);
    feed(&stage, SUPERVISOR_EXITED, 0, 0);
    expect(&stage, "spawn-0 kill-tree");
    expect_cause(&stage, CAUSE_LIMIT);
}

static void test_the_end_of_a_command_stops_the_others_and_its_status_is_kept(void **state)
{
    struct supervisor_rules rules = plain_rules(2, ON_EXIT_STOP);
    struct stage stage;

    (void)state;
    rules.children[1].on_exit = ON_EXIT_RESIGN;
    begin(&stage, &rules);
    feed(&stage, SUPERVISOR_EXITED, 0, EXIT_3);
    expect(&stage, "spawn-0 spawn-1 term-1");
    expect_cause(&stage, CAUSE_ENDED);
    feed(&stage, SUPERVISOR_EXITED, 1, 15); /* a consequence, not a cause */
    expect_cause(&stage, CAUSE_ENDED);
    assert_int_equal(stage.supervisor.cause_slot, 0);
    assert_int_equal(stage.supervisor.cause_status, EXIT_3);
}

static void test_the_stop_begins_when_the_mandate_says_and_not_before(void **state)
{
    struct supervisor_rules rules = plain_rules(1, ON_EXIT_STOP);
    struct stage stage;

    (void)state;
    begin(&stage, &rules);
    expect(&stage, "spawn-0");
    stage.now = stage.stop_at - 1;
    tick(&stage, 0);
    expect(&stage, "");
    stage.stop_at += 1000 * MS; /* renewed at the last moment */
    stage.kill_at += 1000 * MS;
    tick(&stage, 1);
    expect(&stage, "");
    stage.now = stage.stop_at;
    tick(&stage, 0);
    expect(&stage, "term-0");
    expect_cause(&stage, CAUSE_LAPSED);
}

static void test_everything_is_killed_when_the_time_comes_whatever_the_state(void **state)
{
    struct supervisor_rules rules = plain_rules(2, ON_EXIT_RESTART);
    struct stage stage;

    (void)state;
    rules.has_on_demoted = true;
    rules.children[1].grace = 10000 * MS; /* more than there is */
    begin(&stage, &rules);
    stage.now = stage.stop_at;
    tick(&stage, 0);
    expect(&stage, "spawn-0 spawn-1 term-1");
    stage.now = stage.kill_at;
    tick(&stage, 0);
    expect(&stage, "kill-tree");
    feed(&stage, SUPERVISOR_TREE_EMPTY, 0, 0);
    expect(&stage, ""); /* no time for the hook */
    expect_state(&stage, SUPERVISOR_EMPTY);
}

static void test_nothing_is_started_without_time_left(void **state)
{
    struct supervisor_rules rules = plain_rules(1, ON_EXIT_STOP);
    struct stage stage = {.now = 60000 * MS, .stop_at = 60000 * MS, .kill_at = 60400 * MS};

    (void)state;
    supervisor_init(&stage.supervisor, &rules);
    feed(&stage, SUPERVISOR_START, 0, 0);
    expect(&stage, "");
    expect_state(&stage, SUPERVISOR_EMPTY);
    expect_cause(&stage, CAUSE_LAPSED);
    assert_int_equal(stage.supervisor.epoch, 7);
}

static void test_the_hooks_frame_the_children(void **state)
{
    struct supervisor_rules rules = plain_rules(1, ON_EXIT_STOP);
    struct stage stage;

    (void)state;
    rules.has_on_elected = rules.has_on_demoted = true;
    begin(&stage, &rules);
    expect(&stage, "hook-elected");
    feed(&stage, SUPERVISOR_EXITED, SLOT_HOOK, 0);
    expect(&stage, "spawn-0");
    feed(&stage, SUPERVISOR_STOP, 0, 0);
    feed(&stage, SUPERVISOR_EXITED, 0, 0);
    feed(&stage, SUPERVISOR_SLOT_EMPTY, 0, 0);
    expect(&stage, "term-0 kill-0 kill-tree");
    feed(&stage, SUPERVISOR_TREE_EMPTY, 0, 0);
    expect(&stage, "hook-demoted");
    expect_state(&stage, SUPERVISOR_HOOK_DEMOTED);
    tick(&stage, 1000 * MS); /* it hangs */
    expect(&stage, "kill-tree");
    feed(&stage, SUPERVISOR_TREE_EMPTY, 0, 0);
    expect_state(&stage, SUPERVISOR_EMPTY);
}

static void test_a_hook_that_fails_or_hangs_starts_nothing(void **state)
{
    struct supervisor_rules rules = plain_rules(1, ON_EXIT_STOP);
    struct stage stage;

    (void)state;
    rules.has_on_elected = true;
    begin(&stage, &rules);
    feed(&stage, SUPERVISOR_EXITED, SLOT_HOOK, EXIT_3);
    expect(&stage, "hook-elected kill-tree");
    expect_cause(&stage, CAUSE_HOOK_FAILED);
    begin(&stage, &rules);
    tick(&stage, 1000 * MS);
    expect(&stage, "hook-elected kill-tree");
    assert_int_equal(stage.supervisor.cause_status, -1);
}

static void test_a_start_is_obeyed_only_when_nothing_is_left(void **state)
{
    struct supervisor_rules rules = plain_rules(1, ON_EXIT_STOP);
    struct stage stage;

    (void)state;
    begin(&stage, &rules);
    feed(&stage, SUPERVISOR_KILL, 0, 0);
    expect(&stage, "spawn-0 kill-tree");
    feed(&stage, SUPERVISOR_START, 0, 0);
    expect(&stage, "");
    feed(&stage, SUPERVISOR_EXITED, 0, 9);
    feed(&stage, SUPERVISOR_START, 0, 0); /* its orphans may be left */
    expect(&stage, "");
    feed(&stage, SUPERVISOR_TREE_EMPTY, 0, 0);
    feed(&stage, SUPERVISOR_START, 0, 0);
    expect(&stage, "spawn-0");
}

/* What lives in the random test below, and what the promises say about it. */
struct world {
    struct stage stage;
    bool lives[SUPERVISOR_SLOTS];
    bool is_killing[SUPERVISOR_SLOTS];
    bool is_killing_tree;
    bool has_orphan;
};

static void obey(struct world *world)
{
    const struct stage *stage = &world->stage;

    for (size_t i = 0; i < stage->actions.count; i++) {
        const struct supervisor_action *action = &stage->actions.items[i];

        switch (action->kind) {
        case SUPERVISOR_SPAWN:
            assert_false(world->lives[action->slot]);
            assert_true(stage->now < stage->kill_at);
            if (!(action->slot == SLOT_HOOK && action->demoted))
                assert_true(stage->now < stage->stop_at);
            world->lives[action->slot] = true;
            break;
        case SUPERVISOR_KILL_SLOT:
            world->is_killing[action->slot] = true;
            break;
        case SUPERVISOR_KILL_TREE:
            world->is_killing_tree = true;
            break;
        case SUPERVISOR_TERM_SLOT:
            assert_true(world->lives[action->slot]);
            break;
        }
    }
}

static void step(struct world *world, enum supervisor_event_kind kind, size_t slot, int status)
{
    world->stage.said[0] = '\0';
    feed(&world->stage, kind, slot, status);
    obey(world);
}

static void check_promises(const struct world *world)
{
    const struct supervisor *supervisor = &world->stage.supervisor;
    bool lives = world->has_orphan;

    for (size_t i = 0; i < SUPERVISOR_SLOTS; i++)
        lives = lives || world->lives[i];
    if (supervisor->state == SUPERVISOR_EMPTY)
        assert_false(lives);
    if (world->stage.now >= world->stage.kill_at && supervisor->state != SUPERVISOR_EMPTY)
        assert_true(world->is_killing_tree);
}

static void happen(struct world *world, struct prng *prng)
{
    size_t slot = (size_t)prng_below(prng, SUPERVISOR_SLOTS);
    struct stage *stage = &world->stage;
    bool lives = world->has_orphan;

    stage->now += (gavel_ns)prng_below(prng, 200) * MS;
    switch (prng_below(prng, 10)) {
    case 0:
        if (stage->supervisor.state == SUPERVISOR_EMPTY) {
            stage->stop_at = stage->now + (gavel_ns)prng_below(prng, 3000) * MS;
            stage->kill_at = stage->stop_at + (gavel_ns)prng_below(prng, 500) * MS;
        }
        step(world, SUPERVISOR_START, 0, 0);
        break;
    case 1:
        step(world, prng_below(prng, 4) ? SUPERVISOR_STOP : SUPERVISOR_KILL, 0, 0);
        break;
    case 2:
    case 3:
        if (!world->lives[slot])
            break;
        world->lives[slot] = false;
        world->has_orphan = world->has_orphan || prng_below(prng, 3) == 0;
        step(world, SUPERVISOR_EXITED, slot, prng_below(prng, 2) ? 0 : EXIT_3);
        break;
    case 4:
        if (slot < stage->supervisor.rules.child_count && world->lives[slot])
            step(world, SUPERVISOR_READY, slot, 0);
        break;
    case 5:
    case 6:
        if (world->is_killing[slot] && !world->lives[slot]) {
            world->is_killing[slot] = false;
            step(world, SUPERVISOR_SLOT_EMPTY, slot, 0);
        } else if (world->is_killing[slot]) {
            world->lives[slot] = false;
            step(world, SUPERVISOR_EXITED, slot, 9);
        }
        break;
    case 7:
        for (size_t i = 0; i < SUPERVISOR_SLOTS; i++)
            lives = lives || world->lives[i];
        if (world->is_killing_tree && lives) {
            memset(world->lives, 0,
                   sizeof world->lives); /* the guard tells no ends then, only the last word */
            world->has_orphan = false;
        } else if (world->is_killing_tree) {
            world->is_killing_tree = false;
            memset(world->is_killing, 0, sizeof world->is_killing);
            step(world, SUPERVISOR_TREE_EMPTY, 0, 0);
        }
        break;
    default:
        if (stage->supervisor.state == SUPERVISOR_RUNNING && prng_below(prng, 2)) {
            stage->stop_at += 500 * MS; /* renewed */
            stage->kill_at += 500 * MS;
        }
        step(world, SUPERVISOR_TICK, 0, 0);
        break;
    }
}

static void test_promises_hold_in_random_lives(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct supervisor_rules rules = plain_rules(1 + seed % 4, ON_EXIT_RESTART);
        struct world world = {.stage = {.now = 1000 * MS}};
        struct prng prng;

        prng_seed(&prng, seed);
        rules.has_on_elected = seed % 3 == 0;
        rules.has_on_demoted = seed % 2 == 0;
        for (size_t i = 0; i < rules.child_count; i++) {
            rules.children[i].on_exit = (enum on_exit)prng_below(&prng, 3);
            rules.children[i].ready = (enum ready_kind)prng_below(&prng, 3);
        }
        supervisor_init(&world.stage.supervisor, &rules);
        for (int i = 0; i < 400; i++) {
            happen(&world, &prng);
            step(&world, SUPERVISOR_TICK, 0, 0); /* time may have passed without an event */
            check_promises(&world);
        }
    }
}

static void test_the_table_of_states_is_the_diagram(void **state)
{
    static const char diagram[] = "empty: hook_elected starting\n"
                                  "hook_elected: starting clearing\n"
                                  "starting: running stopping clearing\n"
                                  "running: stopping clearing\n"
                                  "stopping: clearing\n"
                                  "clearing: empty hook_demoted\n"
                                  "hook_demoted: clearing\n";
    char table[512] = "";

    (void)state;
    for (int from = 0; from < SUPERVISOR_STATE_COUNT; from++) {
        strcat(table, supervisor_state_name((enum supervisor_state)from));
        strcat(table, ":");
        for (int to = 0; to < SUPERVISOR_STATE_COUNT; to++) {
            if (!supervisor_may_move((enum supervisor_state)from, (enum supervisor_state)to))
                continue;
            strcat(table, " ");
            strcat(table, supervisor_state_name((enum supervisor_state)to));
        }
        strcat(table, "\n");
    }
    assert_string_equal(table, diagram);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_children_start_in_order_and_stop_in_reverse),
        cmocka_unit_test(test_a_child_starts_only_when_the_one_before_is_ready),
        cmocka_unit_test(test_a_child_that_is_not_ready_in_time_stops_everything),
        cmocka_unit_test(test_a_restart_waits_until_nothing_of_the_old_one_is_left),
        cmocka_unit_test(test_more_restarts_than_the_limit_in_the_window_stop_everything),
        cmocka_unit_test(test_restarts_that_are_far_apart_go_on_for_ever),
        cmocka_unit_test(test_a_limit_of_zero_allows_no_restart),
        cmocka_unit_test(test_the_end_of_a_command_stops_the_others_and_its_status_is_kept),
        cmocka_unit_test(test_the_stop_begins_when_the_mandate_says_and_not_before),
        cmocka_unit_test(test_everything_is_killed_when_the_time_comes_whatever_the_state),
        cmocka_unit_test(test_nothing_is_started_without_time_left),
        cmocka_unit_test(test_the_hooks_frame_the_children),
        cmocka_unit_test(test_a_hook_that_fails_or_hangs_starts_nothing),
        cmocka_unit_test(test_a_start_is_obeyed_only_when_nothing_is_left),
        cmocka_unit_test(test_promises_hold_in_random_lives),
        cmocka_unit_test(test_the_table_of_states_is_the_diagram),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
