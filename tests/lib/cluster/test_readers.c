/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Programs that read nothing of what their cluster tells them: they take part in many groups, and
 * are stopped while the leaders of all of them change again and again.
 * tests/unit/daemon/test_clients_slow.c has the bounds of one connection.
 */
#include "many.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAMS 8
#define GROUPS 400
#define ROUNDS 60
/* What is told with long names, and not read, is about 250 MiB; of that nodes remember 32 MiB each, and keep
 * a little for each connection. */
#define GROWTH_MIB 288
#define ID_BYTES 240

/* ---- the program that is stopped ---- */

static bool all_see_a_leader(const struct many *many)
{
    struct gavel_leader_info leader;

    for (size_t i = 0; i < many->count; i++)
        if (gavel_leader(many->members[i].candidate, &leader) != GAVEL_OK)
            return false;
    return true;
}

/* Says that it sees all leaders; once it is told so it stands in all groups, and says that it leads them. */
static int stand_by(const char *url, const char *id)
{
    struct gavel_settings settings = many_settings(60000, 2000);
    struct many many;
    char byte;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* end with the test, also with one that fails */
    many_open(&many, url, id, GROUPS);
    many.is_ineligible = true;
    many_join_all(&many, &settings);
    while (!all_see_a_leader(&many))
        many_pause_ms(10);
    if (write(STDOUT_FILENO, "s", 1) != 1 || read(STDIN_FILENO, &byte, 1) != 1)
        return 1;
    for (size_t i = 0; i < many.count; i++)
        if (gavel_set_eligible(many.members[i].candidate, true) != GAVEL_OK)
            return 1;
    many_await_all(&many);
    many_expect_mandates(&many, url);
    if (write(STDOUT_FILENO, "l", 1) != 1)
        return 1;
    many_close(&many);
    return 0;
}

/* ---- and the one beside it ---- */

struct other {
    pid_t pid;
    int to;
    int from;
};

static struct other start_other(const char *url, int number)
{
    struct other other;
    int to[2], from[2];
    char id[16];

    (void)snprintf(id, sizeof id, "other-%d", number);
    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    other = (struct other){.pid = fork(), .to = to[1], .from = from[0]};
    assert_true(other.pid >= 0);
    if (other.pid == 0) {
        if (dup2(to[0], STDIN_FILENO) < 0 || dup2(from[1], STDOUT_FILENO) < 0)
            _exit(126);
        (void)execl("/proc/self/exe", "other", url, id, (char *)NULL);
        _exit(127);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    return other;
}

static void expect_word(const struct other *other, char word)
{
    char byte = '\0';

    assert_int_equal(read(other->from, &byte, 1), 1);
    assert_int_equal(byte, word);
}

static void end_other(const struct other *other, bool has_led)
{
    int status;

    (void)close(other->to);
    if (!has_led)
        (void)kill(other->pid, SIGKILL); /* a child of ours that is not reaped */
    assert_int_equal(waitpid(other->pid, &status, 0), other->pid);
    assert_true(has_led ? WIFEXITED(status) && WEXITSTATUS(status) == 0 : WIFSIGNALED(status));
    (void)close(other->from);
}

static void resign_again_and_again(struct many_member *member)
{
    if (member->elected <= ROUNDS)
        (void)gavel_resign(member->candidate, NULL); /* if its mandate is over, it will be elected again */
}

static size_t mib_of_nodes(const struct test_cluster *cluster)
{
    size_t mib = 0;

    for (int node = 0; node < TEST_NODES; node++)
        mib += test_cluster_mib(cluster, node);
    return mib;
}

static void test_programs_that_are_stopped_cost_the_nodes_and_the_others_nothing(void **state)
{
    struct test_cluster *cluster = *state;
    struct gavel_settings settings = many_settings(60000, 2000);
    struct other others[PROGRAMS];
    struct many many;
    size_t before;
    char id[ID_BYTES + 1];

    memset(id, 'x', ID_BYTES);
    id[ID_BYTES] = '\0';
    settings.election_interval_ms = 50; /* who has resigned stands back for two of them */
    many_open(&many, cluster->url, id, GROUPS);
    many_join_all(&many, &settings);
    for (int i = 0; i < PROGRAMS; i++)
        others[i] = start_other(cluster->url, i);
    many_await_all(&many);
    for (int i = 0; i < PROGRAMS; i++)
        expect_word(&others[i], 's');
    for (int i = 0; i < PROGRAMS; i++)
        assert_int_equal(kill(others[i].pid, SIGSTOP), 0);
    before = mib_of_nodes(cluster);
    many.on_elected = resign_again_and_again;
    for (size_t i = 0; i < many.count; i++)
        assert_int_equal(gavel_resign(many.members[i].candidate, NULL), GAVEL_OK);
    many_await(&many, &many.elected, (size_t)GROUPS * (ROUNDS + 1));
    many_await_all(&many);
    many_expect_mandates(&many, cluster->url);
    print_message("# the nodes take %zu MiB, before %zu\n", mib_of_nodes(cluster), before);
    assert_true(mib_of_nodes(cluster) < before + GROWTH_MIB);
    for (int i = 0; i < PROGRAMS; i++)
        assert_int_equal(kill(others[i].pid, SIGCONT), 0);
    assert_int_equal(write(others[0].to, "g", 1), 1);
    many_close(&many);
    expect_word(&others[0], 'l'); /* of all that it has missed it knows what counts */
    for (int i = 0; i < PROGRAMS; i++)
        end_other(&others[i], i == 0);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, many_set_up, many_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_programs_that_are_stopped_cost_the_nodes_and_the_others_nothing),
    };
    const char *options = getenv("ASAN_OPTIONS");
    char changed[400];

    if (argc == 3)
        return stand_by(argv[1], argv[2]);
    /* What a node has freed is no memory that it needs. */
    (void)snprintf(changed, sizeof changed, "%s:quarantine_size_mb=8", options ? options : "");
    (void)setenv("ASAN_OPTIONS", changed, 1);
    return cmocka_run_group_tests_name("lib cluster readers", tests, NULL, NULL);
}
