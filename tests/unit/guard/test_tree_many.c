/* SPDX-License-Identifier: Apache-2.0 */

/* Trees that grow while they are ended, and large ones. GAVEL_TEST_PROCESSES=10000 makes the large one
 * larger. */
#include "tree_owner.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define BOMB_MAX 200 /* alive at once; whoever is reaped makes room for another */
#define BOMB_READY 100
#define COMET_READY 20

/* Kills and reaps without a pause, as the guard does. */
static void end_what_grows(struct tree_owner *owner)
{
    pid_t pid;
    int status;

    while (!tree_is_empty(&owner->tree)) {
        (void)tree_signal(&owner->tree, SIGKILL, 0);
        while (tree_reap(&pid, &status))
            atomic_fetch_sub(&owner->stage->live, 1);
        CHECK(clock_now() < owner->stage->until);
    }
    CHECK(tree_owner_sees_all_dead(owner));
}

static bool takes_room(struct stage *stage)
{
    int live = atomic_load(&stage->live);

    return live < BOMB_MAX && atomic_compare_exchange_strong(&stage->live, &live, live + 1);
}

/* The end of the stage ends it too, should the test fail. */
static void burst(struct tree_owner *owner, bool has_sessions)
{
    struct stage *stage = owner->stage;

    while (clock_now() < stage->until) {
        if (!takes_room(stage)) {
            (void)sched_yield();
            continue;
        }
        switch (fork()) {
        case 0:
            if (has_sessions)
                (void)setsid();
            atomic_fetch_add(&stage->births, 1);
            break;
        case -1:
            atomic_fetch_sub(&stage->live, 1);
            break;
        default:
            break;
        }
    }
    _exit(0);
}

static void be_bomb(struct tree_owner *owner)
{
    (void)setsid();
    burst(owner, false);
}

static void be_bomb_of_sessions(struct tree_owner *owner) { burst(owner, true); }

static void await_births(struct tree_owner *owner, long births)
{
    while (atomic_load(&owner->stage->births) < births) {
        CHECK(clock_now() < owner->stage->until);
        tree_owner_pause();
    }
}

static void end_bomb(struct tree_owner *owner)
{
    (void)tree_owner_child(owner, be_bomb);
    await_births(owner, BOMB_READY);
    end_what_grows(owner);
}

static void test_a_fork_bomb_does_not_escape(void **state)
{
    (void)state;
    tree_owner_run(CONTAIN_WALK, end_bomb);
}

static void end_bomb_of_sessions(struct tree_owner *owner)
{
    (void)tree_owner_child(owner, be_bomb_of_sessions);
    await_births(owner, BOMB_READY);
    end_what_grows(owner);
}

static void test_a_fork_bomb_with_a_session_each_does_not_escape(void **state)
{
    (void)state;
    tree_owner_run(CONTAIN_WALK, end_bomb_of_sessions);
}

static void end_bomb_in_one_call(struct tree_owner *owner)
{
    (void)tree_owner_child(owner, be_bomb_of_sessions);
    await_births(owner, BOMB_READY);
    CHECK(tree_end(&owner->tree, owner->stage->until));
    CHECK(tree_owner_sees_all_dead(owner));
}

static void test_a_fork_bomb_is_ended_by_one_call(void **state)
{
    (void)state;
    tree_owner_run(CONTAIN_WALK, end_bomb_in_one_call);
}

/* Always one process, never the same one for long, and each in a session of its own. */
static void be_comet(struct tree_owner *owner)
{
    while (clock_now() < owner->stage->until) {
        if (fork() != 0)
            _exit(0);
        (void)setsid();
        atomic_fetch_add(&owner->stage->births, 1);
    }
    _exit(0);
}

static void end_comet(struct tree_owner *owner)
{
    (void)tree_owner_child(owner, be_comet);
    await_births(owner, COMET_READY);
    end_what_grows(owner);
}

static void test_a_process_that_keeps_forking_away_is_caught(void **state)
{
    (void)state;
    tree_owner_run(CONTAIN_WALK, end_comet);
}

static int process_count(void)
{
    const char *text = getenv("GAVEL_TEST_PROCESSES");

    return text ? atoi(text) : 2000;
}

/* Half of them in the session of their parent, half in their own. */
static void be_many(struct tree_owner *owner)
{
    int count = process_count();

    (void)setsid();
    for (int i = 1; i < count; i++) {
        pid_t pid = fork();

        CHECK(pid >= 0);
        if (pid == 0) {
            if (i % 2)
                (void)setsid();
            tree_owner_live(owner);
        }
    }
    tree_owner_live(owner);
}

static void end_many(struct tree_owner *owner)
{
    (void)tree_owner_child(owner, be_many);
    tree_owner_await(owner, process_count());
    CHECK(tree_count(&owner->tree, SIZE_MAX, NULL) == (size_t)process_count());
    CHECK(tree_end(&owner->tree, clock_now() + LIMIT));
    CHECK(tree_owner_sees_all_dead(owner));
}

static void test_thousands_of_processes_are_ended(void **state)
{
    (void)state;
    tree_owner_run(CONTAIN_WALK, end_many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fork_bomb_does_not_escape),
        cmocka_unit_test(test_a_fork_bomb_with_a_session_each_does_not_escape),
        cmocka_unit_test(test_a_fork_bomb_is_ended_by_one_call),
        cmocka_unit_test(test_a_process_that_keeps_forking_away_is_caught),
        cmocka_unit_test(test_thousands_of_processes_are_ended),
    };

    return cmocka_run_group_tests_name("trees that grow", tests, NULL, NULL);
}
