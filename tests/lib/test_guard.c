/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Programs with a guard, as real processes on one SQLite file. They tell
 * nobody who they are, so nobody but the guard can see that they are dead, and
 * their leases are so long that nothing else explains a change of leader.
 * argv[1] plays the candidates (role.c), argv[2] is gavel-guard.
 */
#include "actor.h"

#include "os/clock.h"
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A new guard comes at most every ten seconds. */
#define NEXT_GUARD_MS 40000

/* How long something must not happen. That it does not cannot be waited for. */
#define QUIET_MS 300

/* A guard, found by what it guards. */
struct sought {
    pid_t program;
    pid_t but_not; /* this one, which is known already */
    pid_t guard;
};

static bool is_guard_of(const char *pid, pid_t program)
{
    char path[300], text[64] = "", wanted[64];
    FILE *file;
    size_t length;

    (void)snprintf(path, sizeof path, "/proc/%s/cmdline", pid);
    file = fopen(path, "r");
    if (!file)
        return false; /* it has ended meanwhile */
    length = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    for (size_t i = 0; i + 1 < length; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    (void)snprintf(wanted, sizeof wanted, "gavel-guard %d", (int)program);
    return strcmp(text, wanted) == 0;
}

static bool finds_guard(void *argument)
{
    struct sought *sought = argument;
    DIR *processes = opendir("/proc");
    const struct dirent *entry;

    assert_non_null(processes);
    sought->guard = 0;
    while ((entry = readdir(processes)) && sought->guard == 0) {
        pid_t pid = (pid_t)atoi(entry->d_name);

        if (pid > 0 && pid != sought->but_not && is_guard_of(entry->d_name, sought->program))
            sought->guard = pid;
    }
    (void)closedir(processes);
    return sought->guard != 0;
}

/* A pidfd of the guard of a process; it is there as soon as gavel_open() has returned. */
static int guard_of(const struct actor *actor, pid_t *ret_pid)
{
    struct sought sought = {.program = actor->pid};
    int fd;

    if (!finds_guard(&sought))
        fail_msg("process %d has no guard", (int)actor->pid);
    fd = (int)syscall(SYS_pidfd_open, sought.guard, 0);
    assert_true(fd >= 0);
    if (ret_pid)
        *ret_pid = sought.guard;
    return fd;
}

static bool ends(int pidfd, int limit_ms)
{
    struct pollfd fd = {.fd = pidfd, .events = POLLIN};

    return poll(&fd, 1, limit_ms) == 1;
}

static void kill_by(int pidfd, int signal)
{
    assert_int_equal(syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0), 0);
}

static struct record record_of(const struct stage *stage)
{
    const struct store_request request = {
        .op = STORE_READ, .group = "jobs", .give_up_at = clock_now() + ns_from_ms(LIMIT_MS)};
    struct store_reply reply;
    struct gavel_error error;
    struct store *store;

    assert_int_equal(store_open(stage->scene->url, &store, &error), GAVEL_OK);
    assert_int_equal(store_call(store, &request, &reply), GAVEL_OK);
    store_close(store);
    return reply.record;
}

static void test_guard_passes_the_gavel_on_when_its_program_is_killed(void **state)
{
    struct actor a, b;
    unsigned long long epoch = start_pair(&a, &b, *state, "patient", "abort", "0");
    int guard = guard_of(&a, NULL);

    assert_int_equal(record_of(*state).process.pid, 0); /* nobody else can know */
    actor_kill(&a, SIGKILL);
    assert_true(expect_number(&b, "elected ", PROMPT_MS) > epoch);
    assert_true(ends(guard, LIMIT_MS));
    (void)close(guard);
    (void)actor_wait(&a);
    actor_dismiss(&b);
}

static void test_guard_releases_nothing_while_its_program_is_stopped(void **state)
{
    struct actor a, b;
    unsigned long long epoch = start_pair(&a, &b, *state, "patient", "abort", "0");
    int guard = guard_of(&a, NULL);

    actor_kill(&a, SIGSTOP);
    assert_false(ends(guard, QUIET_MS));
    assert_true(record_of(*state).held);
    assert_int_equal(record_of(*state).epoch, epoch);
    actor_kill(&a, SIGKILL);
    assert_true(expect_number(&b, "elected ", PROMPT_MS) > epoch);
    (void)close(guard);
    (void)actor_wait(&a);
    actor_dismiss(&b);
}

static void test_guard_ends_when_the_handle_is_closed(void **state)
{
    struct actor a;
    int guard;

    actor_start(&a, *state, "a", "patient", "abort", "0");
    expect(&a, "elected", LIMIT_MS);
    guard = guard_of(&a, NULL);
    assert_false(ends(guard, 0));
    actor_dismiss(&a);
    assert_true(ends(guard, LIMIT_MS));
    assert_false(record_of(*state).held);
    (void)close(guard);
}

static void test_signals_that_can_be_blocked_do_not_end_a_guard(void **state)
{
    struct actor a;
    int guard;

    actor_start(&a, *state, "a", "patient", "abort", "0");
    expect(&a, "elected", LIMIT_MS);
    guard = guard_of(&a, NULL);
    kill_by(guard, SIGTERM);
    kill_by(guard, SIGINT);
    kill_by(guard, SIGHUP);
    assert_false(ends(guard, QUIET_MS));
    actor_dismiss(&a);
    assert_true(ends(guard, LIMIT_MS));
    (void)close(guard);
}

static void test_program_whose_guard_is_killed_leads_on_and_gets_another(void **state)
{
    struct actor a, b;
    unsigned long long epoch = start_pair(&a, &b, *state, "patient", "abort", "0");
    struct sought next = {.program = a.pid};
    int guard = guard_of(&a, &next.but_not);

    kill_by(guard, SIGKILL);
    assert_true(ends(guard, LIMIT_MS));
    (void)close(guard);
    tell(&a, "ask\n");
    expect(&a, "leads yes", LIMIT_MS);
    assert_true(comes_true(finds_guard, &next, NEXT_GUARD_MS));
    tell(&a, "ask\n");
    expect(&a, "leads yes", LIMIT_MS);
    actor_kill(&a, SIGKILL);
    assert_true(expect_number(&b, "elected ", PROMPT_MS) > epoch);
    (void)actor_wait(&a);
    actor_dismiss(&b);
}

static void test_lease_decides_where_the_guard_is_killed_too(void **state)
{
    struct actor a, b;
    unsigned long long epoch = start_pair(&a, &b, *state, "quick", "abort", "0");
    int guard = guard_of(&a, NULL);

    kill_by(guard, SIGKILL);
    actor_kill(&a, SIGKILL);
    (void)actor_wait(&a);
    assert_true(expect_number(&b, "elected ", LIMIT_MS) > epoch);
    (void)close(guard);
    actor_dismiss(&b);
}

static void test_program_never_hears_of_its_guard(void **state)
{
    struct actor a;
    int guard;

    actor_start(&a, *state, "a", "patient", "abort", "0");
    expect(&a, "elected", LIMIT_MS);
    tell(&a, "wait\n");
    expect(&a, "wait none 0", LIMIT_MS);
    guard = guard_of(&a, NULL);
    kill_by(guard, SIGKILL);
    assert_true(ends(guard, LIMIT_MS));
    (void)close(guard);
    tell(&a, "wait\n");
    expect(&a, "wait none 0", LIMIT_MS);
    actor_dismiss(&a);
}

/* A pipe that it kept open would keep whoever reads from the program waiting after its death. */
static void test_guard_has_nothing_of_what_the_program_has_open(void **state)
{
    char path[300], target[300];
    const struct dirent *entry;
    struct actor a;
    DIR *directory;
    int count = 0;
    pid_t pid;

    actor_start(&a, *state, "a", "patient", "abort", "0");
    expect(&a, "elected", LIMIT_MS);
    (void)close(guard_of(&a, &pid));
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    directory = opendir(path);
    assert_non_null(directory);
    while ((entry = readdir(directory))) {
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);

        if (length < 0)
            continue; /* "." and ".." */
        target[length] = '\0';
        count++;
        if (atoi(entry->d_name) <= STDERR_FILENO)
            assert_string_equal(target, "/dev/null");
        assert_null(strstr(target, "pipe:"));
        assert_null(strstr(target, ".stderr"));
        assert_null(strstr(target, "eventpoll"));
    }
    assert_true(count >= 6);
    (void)closedir(directory);
    assert_int_not_equal(getsid(pid), getsid(a.pid));
    actor_dismiss(&a);
}

static void test_guard_waits_for_a_store_that_is_away(void **state)
{
    const struct stage *stage = *state;
    struct actor a, b;
    unsigned long long epoch = start_pair(&a, &b, stage, "patient", "abort", "0");
    int guard = guard_of(&a, NULL);
    char away[160];

    (void)snprintf(away, sizeof away, "%s.away", stage->scene->path);
    assert_int_equal(rename(stage->scene->path, away), 0);
    actor_kill(&a, SIGKILL);
    (void)actor_wait(&a);
    assert_false(ends(guard, QUIET_MS));
    assert_int_equal(rename(away, stage->scene->path), 0);
    assert_true(expect_number(&b, "elected ", PROMPT_MS) > epoch);
    assert_true(ends(guard, LIMIT_MS));
    (void)close(guard);
    actor_dismiss(&b);
}

/* execve(2) ends the threads that did the work, but no process: the lease decides, and the guard goes. */
static void test_guard_goes_when_its_program_becomes_another(void **state)
{
    struct actor a, b;
    unsigned long long epoch = start_pair(&a, &b, *state, "quick", "abort", "0");
    int guard = guard_of(&a, NULL);

    tell(&a, "turn\n");
    expect(&a, "turned", LIMIT_MS);
    assert_true(expect_number(&b, "elected ", LIMIT_MS) > epoch);
    assert_true(ends(guard, LIMIT_MS));
    assert_int_equal(kill(a.pid, 0), 0);
    (void)close(guard);
    actor_dismiss(&a); /* its input ends, and so does it */
    actor_dismiss(&b);
}

/* What gavel_open() says of a guard that cannot be had. */
static void refuses(const struct stage *stage, const char *program, const char *because)
{
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_error error = {0};
    struct gavel *gavel = NULL;

    options.store = stage->scene->url;
    options.guard = true;
    options.guard_program = program;
    assert_int_equal(gavel_open(&options, &gavel, &error), GAVEL_ERR_IO);
    assert_null(gavel);
    assert_non_null(strstr(error.message, program));
    if (!strstr(error.message, because))
        fail_msg("\"%s\" does not say \"%s\"", error.message, because);
    assert_non_null(strstr(error.message, "guard = false"));
}

static void test_open_fails_without_a_guard_and_says_what_to_do(void **state)
{
    refuses(*state, "/nowhere/gavel-guard", "No such file or directory");
    refuses(*state, "/", "Permission denied");
    refuses(*state, "/bin/true", "ended without a word");
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void test_environment_names_the_guard_unless_the_program_does(void **state)
{
    const struct stage *stage = *state;
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_error error = {0};
    struct gavel *gavel = NULL;

    options.store = stage->scene->url;
    options.guard = true;
    assert_int_equal(setenv("GAVEL_GUARD", "/nowhere/else", 1), 0);
    assert_int_equal(gavel_open(&options, &gavel, &error), GAVEL_ERR_IO);
    assert_non_null(strstr(error.message, "/nowhere/else"));
    options.guard_program = stage->guard;
    assert_int_equal(gavel_open(&options, &gavel, &error), GAVEL_OK);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    assert_int_equal(unsetenv("GAVEL_GUARD"), 0);
}

static void test_store_that_is_not_shared_needs_no_guard(void **state)
{
    static const char *const urls[] = {"memory:guard", "none:"};
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_error error = {0};
    struct gavel *gavel = NULL;

    (void)state;
    options.guard = true;
    options.guard_program = "/nowhere/gavel-guard";
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        options.store = urls[i];
        assert_int_equal(gavel_open(&options, &gavel, &error), GAVEL_OK);
        assert_int_equal(gavel_close(gavel), GAVEL_OK);
    }
}

int main(int argc, char **argv)
{
    struct stage stage = {.role = argc > 2 ? argv[1] : NULL, .guard = argc > 2 ? argv[2] : NULL};
#define ON_STAGE(test) cmocka_unit_test_prestate_setup_teardown(test, stage_setup, stage_teardown, &stage)
    const struct CMUnitTest tests[] = {
        ON_STAGE(test_guard_passes_the_gavel_on_when_its_program_is_killed),
        ON_STAGE(test_guard_releases_nothing_while_its_program_is_stopped),
        ON_STAGE(test_guard_ends_when_the_handle_is_closed),
        ON_STAGE(test_signals_that_can_be_blocked_do_not_end_a_guard),
        ON_STAGE(test_program_whose_guard_is_killed_leads_on_and_gets_another),
        ON_STAGE(test_lease_decides_where_the_guard_is_killed_too),
        ON_STAGE(test_program_never_hears_of_its_guard),
        ON_STAGE(test_guard_has_nothing_of_what_the_program_has_open),
        ON_STAGE(test_guard_waits_for_a_store_that_is_away),
        ON_STAGE(test_guard_goes_when_its_program_becomes_another),
        ON_STAGE(test_open_fails_without_a_guard_and_says_what_to_do),
        ON_STAGE(test_environment_names_the_guard_unless_the_program_does),
        ON_STAGE(test_store_that_is_not_shared_needs_no_guard),
    };

    if (!stage.role) {
        (void)fprintf(stderr, "usage: %s ROLE_PROGRAM GUARD_PROGRAM\n", argv[0]);
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("lib guard", tests, NULL, NULL);
}
