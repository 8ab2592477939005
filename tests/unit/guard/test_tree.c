/* SPDX-License-Identifier: Apache-2.0 */

/* Whoever is in the tree is found and ended; whoever is not is left alone. */
#include "guard/walk.h"
#include "tree_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

static gavel_ns soon(void) { return clock_now() + LIMIT; }

/* Three generations, each in a session of its own and deaf to SIGTERM. */
static void be_stubborn(struct tree_owner *owner)
{
    (void)signal(SIGTERM, SIG_IGN);
    for (int i = 0; i < 2; i++) {
        (void)setsid();
        if (fork() != 0)
            tree_owner_live(owner);
    }
    (void)setsid();
    tree_owner_live(owner);
}

static void end_the_stubborn(struct tree_owner *owner)
{
    (void)tree_owner_child(owner, be_stubborn);
    tree_owner_await(owner, 3);
    CHECK(tree_count(&owner->tree, SIZE_MAX, NULL) == 3);
    CHECK(tree_signal(&owner->tree, SIGTERM, 0) == 3);
    CHECK(tree_count(&owner->tree, SIZE_MAX, NULL) == 3);
    CHECK(!tree_is_empty(&owner->tree));
    CHECK(!tree_owner_sees_all_dead(owner));
    CHECK(tree_end(&owner->tree, soon()));
    CHECK(tree_owner_sees_all_dead(owner));
    CHECK(tree_is_empty(&owner->tree));
    CHECK(tree_count(&owner->tree, SIZE_MAX, NULL) == 0);
    CHECK(tree_end(&owner->tree, 0)); /* nothing to do takes no time */
}

static void test_sessions_that_ignore_sigterm_are_ended(void **state)
{
    (void)state;
    tree_owner_run(CONTAIN_WALK, end_the_stubborn);
}

static void be_polite(struct tree_owner *owner)
{
    if (fork() == 0)
        (void)setsid();
    tree_owner_live(owner);
}

static void end_the_polite(struct tree_owner *owner)
{
    pid_t pid;
    int status;

    (void)tree_owner_child(owner, be_polite);
    tree_owner_await(owner, 2);
    CHECK(tree_signal(&owner->tree, SIGTERM, 0) == 2);
    while (!tree_is_empty(&owner->tree)) {
        if (tree_reap(&pid, &status))
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
        CHECK(clock_now() < owner->stage->until);
    }
    CHECK(tree_owner_sees_all_dead(owner));
}

static void test_one_pass_reaches_every_generation(void **state)
{
    (void)state;
    tree_owner_run(CONTAIN_WALK, end_the_polite);
}

/* The classic way to get away: two forks, and nobody between is left. */
static void be_daemon(struct tree_owner *owner)
{
    if (fork() != 0)
        _exit(0);
    (void)setsid();
    if (fork() != 0)
        _exit(0);
    tree_owner_live(owner);
}

static void end_daemon(struct tree_owner *owner)
{
    pid_t pid = tree_owner_child(owner, be_daemon);
    pid_t reaped;
    int status;

    tree_owner_await(owner, 1);
    while (tree_reap(&reaped, &status))
        CHECK(reaped > 0);
    CHECK(kill(pid, 0) < 0 || waitpid(pid, &status, 0) == pid);
    CHECK(!tree_owner_sees_all_dead(owner));
    CHECK(tree_end(&owner->tree, soon()));
    CHECK(tree_owner_sees_all_dead(owner));
}

static void test_a_daemon_that_forked_twice_is_ended(void **state)
{
    (void)state;
    tree_owner_run(CONTAIN_WALK, end_daemon);
}

static void be_session_of_two(struct tree_owner *owner)
{
    (void)setsid();
    if (fork() == 0)
        (void)setpgid(0, 0);
    tree_owner_live(owner);
}

static void end_one_session(struct tree_owner *owner)
{
    pid_t first = tree_owner_child(owner, be_session_of_two);
    pid_t second = tree_owner_child(owner, be_session_of_two);
    pid_t pid;
    int status;

    tree_owner_await(owner, 4);
    CHECK(tree_signal(&owner->tree, 0, first) == 2);
    while (tree_signal(&owner->tree, SIGKILL, first) > 0)
        CHECK(clock_now() < owner->stage->until);
    while (tree_reap(&pid, &status))
        CHECK(pid != second);
    CHECK(tree_signal(&owner->tree, 0, second) == 2);
    CHECK(tree_count(&owner->tree, SIZE_MAX, NULL) == 2);
    CHECK(tree_end(&owner->tree, soon()));
    CHECK(tree_owner_sees_all_dead(owner));
}

static void test_one_session_is_ended_and_the_others_live(void **state)
{
    (void)state;
    tree_owner_run(CONTAIN_WALK, end_one_session);
}

static void end_at_once(struct tree_owner *owner)
{
    (void)owner;
    _exit(7);
}

static void look_at_the_dead(struct tree_owner *owner)
{
    pid_t pid = tree_owner_child(owner, end_at_once);
    siginfo_t info;
    pid_t reaped;
    int status;

    CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
    CHECK(tree_count(&owner->tree, SIZE_MAX, NULL) == 0);
    CHECK(!tree_is_empty(&owner->tree));
    CHECK(tree_reap(&reaped, &status));
    CHECK(reaped == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK(tree_is_empty(&owner->tree));
    CHECK(!tree_reap(&reaped, &status));
}

static void test_the_dead_do_not_count_but_the_tree_is_not_empty(void **state)
{
    (void)state;
    tree_owner_run(CONTAIN_WALK, look_at_the_dead);
}

/* Whoever started gavel may have ignored SIGCHLD, which programs inherit. */
static void test_exit_codes_are_kept_where_sigchld_was_ignored(void **state)
{
    (void)state;
    (void)signal(SIGCHLD, SIG_IGN);
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        struct tree_owner owner;
        struct gavel_error error;
        pid_t reaped = 0;

        if (tree_open(&owner.tree, CONTAIN_WALK, &error) != GAVEL_OK)
            _exit(77);
        (void)tree_owner_child(&owner, end_at_once);
        while (!tree_reap(&reaped, &status))
            CHECK(!tree_is_empty(&owner.tree));
        CHECK(WEXITSTATUS(status) == 7);
        _exit(0);
    }
    (void)signal(SIGCHLD, SIG_DFL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

static void *fork_and_live(void *user)
{
    struct tree_owner *owner = user;

    (void)fork();
    tree_owner_live(owner);
}

/* The first thread ends; another one has forked. The state of such a process reads like that of a dead
 * one. */
static void be_headless(struct tree_owner *owner)
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, fork_and_live, owner) == 0);
    pthread_exit(NULL);
}

static void end_the_headless(struct tree_owner *owner)
{
    (void)tree_owner_child(owner, be_headless);
    tree_owner_await(owner, 2);
    CHECK(tree_count(&owner->tree, SIZE_MAX, NULL) == 2);
    CHECK(tree_end(&owner->tree, soon()));
    CHECK(tree_owner_sees_all_dead(owner));
}

static void test_a_process_lives_while_one_of_its_threads_does(void **state)
{
    (void)state;
    tree_owner_run(CONTAIN_WALK, end_the_headless);
}

static void *start_one(void *user)
{
    struct tree_owner *owner = user;

    (void)tree_owner_child(owner, tree_owner_live);
    tree_owner_await(owner, 2); /* its child is listed under this thread as long as it runs */
    while (atomic_load(&owner->stage->pids[0]) == 0)
        tree_owner_pause();
    return NULL;
}

static void count_children_of_threads(struct tree_owner *owner)
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, start_one, owner) == 0);
    (void)tree_owner_child(owner, tree_owner_live);
    tree_owner_await(owner, 2);
    CHECK(tree_count(&owner->tree, SIZE_MAX, NULL) == 2);
    atomic_store(&owner->stage->pids[0], 1);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(tree_count(&owner->tree, SIZE_MAX, NULL) == 2);
    CHECK(tree_end(&owner->tree, soon()));
    CHECK(tree_owner_sees_all_dead(owner));
}

static void test_children_of_all_own_threads_are_found(void **state)
{
    (void)state;
    tree_owner_run(CONTAIN_WALK, count_children_of_threads);
}

static void take_all_descriptors(void)
{
    struct rlimit limit = {.rlim_cur = 64, .rlim_max = 64};

    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while (dup(STDERR_FILENO) >= 0)
        ;
    CHECK(errno == EMFILE);
}

static void end_without_descriptors(struct tree_owner *owner)
{
    (void)tree_owner_child(owner, be_stubborn);
    tree_owner_await(owner, 3);
    take_all_descriptors();
    CHECK(tree_signal(&owner->tree, SIGTERM, 0) == 3);
    for (size_t i = 0; i < TREE_SPARE_FDS; i++)
        CHECK(owner->tree.spare_fds[i] >= 0); /* got back after use */
    CHECK(open("/", O_RDONLY) < 0);
    CHECK(tree_end(&owner->tree, soon()));
    CHECK(tree_owner_sees_all_dead(owner));
}

static void test_a_tree_is_ended_although_no_descriptor_is_left(void **state)
{
    (void)state;
    tree_owner_run(CONTAIN_WALK, end_without_descriptors);
}

static void end_nothing_else(struct tree_owner *owner)
{
    pid_t stranger = owner->stage->pids[1];

    (void)tree_owner_child(owner, be_stubborn);
    tree_owner_await(owner, 3);
    CHECK(tree_end(&owner->tree, soon()));
    CHECK(kill(stranger, 0) == 0);
}

static void check_stranger(struct tree_owner *owner)
{
    /* Two owners of trees: the outer one has the stranger as a child, the inner one has a tree beside it. */
    pid_t stranger = tree_owner_child(owner, tree_owner_live);
    pid_t inner;
    pid_t ended;
    siginfo_t info = {0};
    int status;

    tree_owner_await(owner, 1);
    atomic_store(&owner->stage->up, 0);
    owner->stage->pids[1] = stranger;
    inner = fork();
    if (inner == 0) {
        struct tree_owner other = {.stage = owner->stage, .alive = {owner->alive[0], owner->alive[1]}};
        struct gavel_error error;

        CHECK(tree_open(&other.tree, CONTAIN_WALK, &error) == GAVEL_OK);
        end_nothing_else(&other);
        _exit(0);
    }
    ended = waitpid(inner, &status, 0);
    CHECK(ended == inner);
    CHECK(status == 0);
    CHECK(waitid(P_PID, (id_t)stranger, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0);
    CHECK(tree_end(&owner->tree, soon()));
}

static void test_processes_beside_the_tree_are_left_alone(void **state)
{
    (void)state;
    tree_owner_run(CONTAIN_WALK, check_stranger);
}

/* Whether somebody else's process may be given precedence, which takes a right. */
static bool may_hurry(pid_t pid)
{
    bool may = setpriority(PRIO_PROCESS, (id_t)pid, -20) == 0;

    if (may)
        CHECK(setpriority(PRIO_PROCESS, (id_t)pid, 0) == 0);
    return may;
}

static void hurry_the_dying(struct tree_owner *owner)
{
    pid_t first = tree_owner_child(owner, be_session_of_two);
    pid_t second = tree_owner_child(owner, be_session_of_two);
    int expected;

    tree_owner_await(owner, 4);
    expected = may_hurry(first) ? -20 : getpriority(PRIO_PROCESS, (id_t)first);
    CHECK(tree_signal(&owner->tree, SIGTERM, first) == 2);
    CHECK(getpriority(PRIO_PROCESS, (id_t)first) > -20); /* it may run code of its own */
    (void)tree_signal(&owner->tree, SIGKILL, first);
    CHECK(getpriority(PRIO_PROCESS, (id_t)first) == expected); /* not reaped, so it is there, dead or not */
    CHECK(getpriority(PRIO_PROCESS, (id_t)second) > -20);
    CHECK(tree_end(&owner->tree, soon()));
}

/* On a busy machine they would wait for their turn to die, perhaps until after the deadline. */
static void test_who_is_killed_is_given_precedence_where_that_is_permitted(void **state)
{
    (void)state;
    tree_owner_run(CONTAIN_WALK, hurry_the_dying);
}

/* The other way of walking, for kernels without lists of children. */
static void walk_over_all(struct tree_owner *owner)
{
    static struct walk walk;

    (void)tree_owner_child(owner, be_stubborn);
    (void)tree_owner_child(owner, be_session_of_two);
    tree_owner_await(owner, 5);
    walk_init(&walk, &owner->tree, 0, 0);
    walk_all(&walk);
    CHECK(walk.count == 5);
    CHECK(!walk.has_missed);
    while (!tree_is_empty(&owner->tree)) {
        pid_t pid;
        int status;

        walk_init(&walk, &owner->tree, SIGKILL, 0);
        walk_all(&walk);
        while (tree_reap(&pid, &status))
            ;
        CHECK(clock_now() < owner->stage->until);
    }
    CHECK(tree_owner_sees_all_dead(owner));
}

static void test_the_walk_over_all_processes_finds_the_same(void **state)
{
    (void)state;
    tree_owner_run(CONTAIN_WALK, walk_over_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sessions_that_ignore_sigterm_are_ended),
        cmocka_unit_test(test_one_pass_reaches_every_generation),
        cmocka_unit_test(test_a_daemon_that_forked_twice_is_ended),
        cmocka_unit_test(test_one_session_is_ended_and_the_others_live),
        cmocka_unit_test(test_who_is_killed_is_given_precedence_where_that_is_permitted),
        cmocka_unit_test(test_the_dead_do_not_count_but_the_tree_is_not_empty),
        cmocka_unit_test(test_exit_codes_are_kept_where_sigchld_was_ignored),
        cmocka_unit_test(test_a_process_lives_while_one_of_its_threads_does),
        cmocka_unit_test(test_children_of_all_own_threads_are_found),
        cmocka_unit_test(test_a_tree_is_ended_although_no_descriptor_is_left),
        cmocka_unit_test(test_processes_beside_the_tree_are_left_alone),
        cmocka_unit_test(test_the_walk_over_all_processes_finds_the_same),
    };

    return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
