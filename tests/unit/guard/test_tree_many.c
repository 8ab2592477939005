/* SPDX-License-Identifier: Apache-2.0 */

/* Trees that grow while they are ended, and large ones. GAVEL_TEST_PROCESSES=10000 makes the large one
 * larger. */
#include "warden.h"

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
static void end_what_grows(struct warden *warden)
{
    pid_t pid;
    int status;

    while (!tree_is_empty(&warden->tree)) {
        (void)tree_signal(&warden->tree, SIGKILL, 0);
        while (tree_reap(&pid, &status))
            atomic_fetch_sub(&warden->stage->live, 1);
        CHECK(clock_now() < warden->stage->until);
    }
    CHECK(warden_sees_all_dead(warden));
}

static bool takes_room(struct stage *stage)
{
    int live = atomic_load(&stage->live);

    return live < BOMB_MAX && atomic_compare_exchange_strong(&stage->live, &live, live + 1);
}

/* The end of the stage ends it too, should the test fail. */
static void burst(struct warden *warden, bool has_sessions)
{
    struct stage *stage = warden->stage;

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

static void be_bomb(struct warden *warden)
{
    (void)setsid();
    burst(warden, false);
}

static void be_bomb_of_sessions(struct warden *warden) { burst(warden, true); }

static void await_births(struct warden *warden, long births)
{
    while (atomic_load(&warden->stage->births) < births) {
        CHECK(clock_now() < warden->stage->until);
        warden_pause();
    }
}

static void end_bomb(struct warden *warden)
{
    (void)warden_child(warden, be_bomb);
    await_births(warden, BOMB_READY);
    end_what_grows(warden);
}

static void test_a_fork_bomb_does_not_escape(void **state)
{
    (void)state;
    warden_run(CONTAIN_WALK, end_bomb);
}

static void end_bomb_of_sessions(struct warden *warden)
{
    (void)warden_child(warden, be_bomb_of_sessions);
    await_births(warden, BOMB_READY);
    end_what_grows(warden);
}

static void test_a_fork_bomb_with_a_session_each_does_not_escape(void **state)
{
    (void)state;
    warden_run(CONTAIN_WALK, end_bomb_of_sessions);
}

static void end_bomb_in_one_call(struct warden *warden)
{
    (void)warden_child(warden, be_bomb_of_sessions);
    await_births(warden, BOMB_READY);
    CHECK(tree_end(&warden->tree, warden->stage->until));
    CHECK(warden_sees_all_dead(warden));
}

static void test_a_fork_bomb_is_ended_by_one_call(void **state)
{
    (void)state;
    warden_run(CONTAIN_WALK, end_bomb_in_one_call);
}

/* Always one process, never the same one for long, and each in a session of its own. */
static void be_comet(struct warden *warden)
{
    while (clock_now() < warden->stage->until) {
        if (fork() != 0)
            _exit(0);
        (void)setsid();
        atomic_fetch_add(&warden->stage->births, 1);
    }
    _exit(0);
}

static void end_comet(struct warden *warden)
{
    (void)warden_child(warden, be_comet);
    await_births(warden, COMET_READY);
    end_what_grows(warden);
}

static void test_a_process_that_keeps_forking_away_is_caught(void **state)
{
    (void)state;
    warden_run(CONTAIN_WALK, end_comet);
}

static int process_count(void)
{
    const char *text = getenv("GAVEL_TEST_PROCESSES");

    return text ? atoi(text) : 2000;
}

/* Half of them in the session of their parent, half in their own. */
static void be_many(struct warden *warden)
{
    int count = process_count();

    (void)setsid();
    for (int i = 1; i < count; i++) {
        pid_t pid = fork();

        CHECK(pid >= 0);
        if (pid == 0) {
            if (i % 2)
                (void)setsid();
            warden_live(warden);
        }
    }
    warden_live(warden);
}

static void end_many(struct warden *warden)
{
    (void)warden_child(warden, be_many);
    warden_await(warden, process_count());
    CHECK(tree_count(&warden->tree, SIZE_MAX, NULL) == (size_t)process_count());
    CHECK(tree_end(&warden->tree, clock_now() + LIMIT));
    CHECK(warden_sees_all_dead(warden));
}

static void test_thousands_of_processes_are_ended(void **state)
{
    (void)state;
    warden_run(CONTAIN_WALK, end_many);
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
