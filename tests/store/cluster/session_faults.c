/* SPDX-License-Identifier: Apache-2.0 */

/* Sessions while nodes die, freeze and come back. Each test has a cluster of its own. */
#include "session_bench.h"
#include "session_tests.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Until the session is known to be open for longer than now; as long as it takes. */
static void await_life(struct holder *holder)
{
    gavel_ns from = clock_now();

    while (holder->session.number == 0 || holder->session.deadline <= from + holder->session.lasts / 2) {
        struct store_news news;

        if (!holder_take(holder, &news))
            holder_idle(holder, 10 * NS_PER_MS);
        assert_true(clock_now() < from + LIMIT);
    }
}

/* A whole round: each node leads at some time, and is the one that we are connected to. */
static void test_nodes_that_restart_one_by_one_end_no_session_and_no_mandate(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, LEASE_MS);
    uint64_t number = a->session.number;
    uint64_t epoch = expect(a->store, ask_campaign(a, "g", "one", 1), GAVEL_OK).record.epoch;

    for (int node = 0; node < TEST_NODES; node++) {
        struct store_reply reply;

        test_cluster_kill(&b->cluster, node);
        await_life(a);
        reply = expect(a->store, ask_read("g"), GAVEL_OK);
        assert_true(reply.is_ours);
        assert_int_equal(reply.record.epoch, epoch);
        test_cluster_restart(&b->cluster, node);
        await_life(a);
    }
    (void)expect(a->store, ask_campaign(a, "h", "one", 2), GAVEL_OK);
    (void)holder_await_mandate(a, "h", true); /* told also on the connections that came since */
    assert_int_equal(a->session.number, number);
    assert_int_equal(expect(a->store, ask_read("g"), GAVEL_OK).record.epoch, epoch);
}

static void test_without_a_majority_the_deadline_passes_and_the_session_goes_on_afterwards(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, 1000);
    uint64_t number = a->session.number;
    struct store_request late;
    struct store_reply reply;
    gavel_ns limit;

    (void)expect(a->store, ask_campaign(a, "g", "one", 1), GAVEL_OK);
    await_life(a);
    for (int node = 0; node < TEST_NODES; node++)
        test_cluster_freeze(&b->cluster, node);
    limit = clock_now() + LIMIT;
    while (clock_now() <= a->session.deadline) {
        holder_idle(a, 50 * NS_PER_MS);
        assert_true(clock_now() < limit);
    }
    assert_int_equal(a->session.number, number); /* silence proves nothing */
    late = ask_go(a, "g", "one", 1);
    late.give_up_at = clock_now() + 100 * NS_PER_MS;
    for (int i = 0; i < 3; i++) { /* however often: it is said once */
        assert_int_equal(store_call(a->store, &late, &reply), GAVEL_ERR_TIMEOUT);
        assert_non_null(strstr(reply.message, "in time"));
        store_reply_done(&reply);
        late.give_up_at = clock_now() + 100 * NS_PER_MS;
    }
    for (int node = 0; node < TEST_NODES; node++)
        test_cluster_thaw(&b->cluster, node);
    limit = clock_now() + LIMIT;
    do { /* that was said until it was answered, or went with the session */
        holder_idle(a, 50 * NS_PER_MS);
        reply = expect(a->store, ask_read("g"), GAVEL_OK);
        assert_true(clock_now() < limit);
    } while (reply.record.held);
    await_life(a);
    assert_true(expect(a->store, ask_campaign(a, "g", "one", 3), GAVEL_OK).is_ours);
}

/* The opening goes out with the campaign and is not answered. */
static void test_a_campaign_that_was_given_up_before_its_session_was_open_leaves_nobody(void **state)
{
    struct bench *b = *state;
    const struct store_session_options options = {.lease_ms = LEASE_MS, .drift_ppm = 1000};
    struct holder *a = &b->holders[0];
    struct store_request early;
    struct store_reply reply;
    gavel_ns limit;

    a->store = open_store(b->cluster.url);
    for (int node = 0; node < TEST_NODES; node++)
        test_cluster_freeze(&b->cluster, node);
    assert_int_equal(store_open_session(a->store, &options, NULL), GAVEL_OK);
    early = ask_campaign(a, "g", "one", 1);
    early.give_up_at = clock_now() + 300 * NS_PER_MS;
    assert_int_equal(store_call(a->store, &early, &reply), GAVEL_ERR_TIMEOUT);
    store_reply_done(&reply);
    for (int node = 0; node < TEST_NODES; node++)
        test_cluster_thaw(&b->cluster, node);
    (void)holder_await(a, STORE_NEWS_SESSION, NULL);
    limit = clock_now() + LIMIT;
    do {
        struct store_request campaign = ask_campaign(a, "g", "two", 2);

        assert_true(clock_now() < limit);
        holder_idle(a, 20 * NS_PER_MS);
        store_run(a->store, &campaign, &reply, 1);
        store_reply_done(&reply);
    } while (reply.status == GAVEL_ERR_ID_IN_USE); /* the first one is in doubt, and withdrawn */
    assert_int_equal(reply.status, GAVEL_OK);
    assert_string_equal(reply.record.holder, "two");
}

static void hold_until_killed(const char *url, int ready)
{
    struct holder holder = {.store = open_store(url)};
    const struct store_session_options options = {
        .lease_ms = 60000, .drift_ppm = 1000, .names_process = true};

    if (store_open_session(holder.store, &options, NULL) != GAVEL_OK)
        _exit(1);
    (void)holder_await(&holder, STORE_NEWS_SESSION, NULL);
    if (!expect(holder.store, ask_campaign(&holder, "g", "one", 1), GAVEL_OK).is_ours ||
        write(ready, "y", 1) != 1)
        _exit(1);
    for (;;)
        (void)pause();
}

static void test_the_death_of_a_process_ends_its_session_at_once(void **state)
{
    struct bench *b = *state;
    struct holder *other;
    int ready[2], status;
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        hold_until_killed(b->cluster.url, ready[1]);
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    other = holder_ready(b, 1, LEASE_MS);
    assert_false(expect(other->store, ask_campaign(other, "g", "two", 2), GAVEL_OK).is_ours);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_string_equal(holder_await_mandate(other, "g", true).holder, "two"); /* its lease is a minute */
}

static void test_a_forked_child_has_no_session(void **state)
{
    struct bench *b = *state;
    struct holder *a = holder_ready(b, 0, LEASE_MS);
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        const struct store_session_options options = {.lease_ms = LEASE_MS};
        struct gavel_error error = {0};
        struct store_news news;
        bool is_right = store_open_session(a->store, &options, &error) == GAVEL_ERR_STATE &&
                        strstr(error.message, "in the child") && !store_news(a->store, &news) &&
                        store_close_dead(a->store, &a->key, NEVER, &error) == GAVEL_ERR_STATE;

        store_close(a->store);
        _exit(is_right ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(expect(a->store, ask_campaign(a, "g", "one", 1), GAVEL_OK).is_ours);
}

int session_faults_run(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_set_up, bench_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_nodes_that_restart_one_by_one_end_no_session_and_no_mandate),
        TEST(test_without_a_majority_the_deadline_passes_and_the_session_goes_on_afterwards),
        TEST(test_a_campaign_that_was_given_up_before_its_session_was_open_leaves_nobody),
        TEST(test_the_death_of_a_process_ends_its_session_at_once),
        TEST(test_a_forked_child_has_no_session),
    };

    return cmocka_run_group_tests_name("sessions of gavel:// and faults", tests, NULL, NULL);
}
