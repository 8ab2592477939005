/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The driver `gavel` through the suite, against real clusters of three, and
 * what is its own. Every test has a cluster of its own; the next ones elect
 * their leader meanwhile.
 */
#include "nodes.h"
#include "store/conformance/conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define AHEAD 3
#define LIMIT (60 * NS_PER_S) /* for anything that a test waits for */

/* Those that were started and not handed out, the oldest first, and those in use. */
struct pool {
    struct test_cluster ready[AHEAD];
    size_t count;
    struct test_cluster used[AHEAD];
};

/* The suite asks for URLs and knows of nothing else. */
static struct pool pool;

/* Until a node lets us in; whether there is a leader is for the calls to wait for. */
static void await_open(const char *url)
{
    gavel_ns limit = clock_now() + LIMIT;
    struct gavel_error error = {0};
    struct store *store;

    while (store_open(url, &store, &error) != GAVEL_OK) {
        if (error.status != GAVEL_ERR_STORE_UNAVAILABLE || clock_now() >= limit)
            fail_msg("%s", error.message);
    }
    store_close(store);
}

static struct test_cluster *take_cluster(void)
{
    struct test_cluster *cluster = pool.used;

    while (cluster->directory[0] != '\0')
        assert_true(++cluster < pool.used + AHEAD);
    while (pool.count < AHEAD)
        test_cluster_start(&pool.ready[pool.count++]);
    *cluster = pool.ready[0];
    memmove(pool.ready, pool.ready + 1, --pool.count * sizeof *pool.ready);
    await_open(cluster->url);
    return cluster;
}

static void make_url(char *url, size_t size) { (void)snprintf(url, size, "%s", take_cluster()->url); }

static void remove_url(const char *url)
{
    for (size_t i = 0; i < AHEAD; i++)
        if (strcmp(pool.used[i].url, url) == 0)
            test_cluster_stop(&pool.used[i]);
}

struct bench {
    struct test_cluster *cluster;
    struct store *a;
    struct store *b;
};

static int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);

    assert_non_null(bench);
    bench->cluster = take_cluster();
    assert_int_equal(store_open(bench->cluster->url, &bench->a, NULL), GAVEL_OK);
    assert_int_equal(store_open(bench->cluster->url, &bench->b, NULL), GAVEL_OK);
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    store_close(bench->a);
    store_close(bench->b);
    test_cluster_stop(bench->cluster);
    free(bench);
    return 0;
}

static void test_a_url_that_names_no_cluster_is_refused(void **state)
{
    static const char *const bad[] = {"gavel:",
                                      "gavel:h1:7600",
                                      "gavel://",
                                      "gavel://h1",
                                      "gavel://h1:7600?nonsense=1",
                                      "gavel://192.0.2.1:7600"};

    (void)state;
    expect_bad_urls(bad, sizeof bad / sizeof *bad);
}

static void test_a_cluster_that_is_not_there_is_not_waited_for_for_long(void **state)
{
    struct gavel_error error = {0};
    struct store *store = NULL;
    gavel_ns began = clock_now();

    (void)state;
    assert_int_equal(store_open("gavel:///nowhere/n1.sock", &store, &error), GAVEL_ERR_STORE_UNAVAILABLE);
    assert_null(store);
    assert_true(clock_now() - began < LIMIT);
    assert_non_null(strstr(error.message, "/nowhere/n1.sock"));
    assert_non_null(strstr(error.message, "start gaveld"));
}

static void test_the_death_of_a_node_ends_no_mandate(void **state)
{
    struct bench *b = *state;
    uint64_t epoch = expect(b->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;
    struct store_request renew = ask_renew("g", "one", 1, epoch);
    struct store_reply reply;

    test_cluster_kill(b->cluster, 0); /* the one that we are connected to */
    renew.give_up_at = clock_now() + LIMIT;
    assert_int_equal(store_call(b->a, &renew, &reply), GAVEL_OK);
    assert_int_equal(reply.record.epoch, epoch);
    store_reply_done(&reply);
    assert_string_equal(expect(b->b, ask_read("g"), GAVEL_OK).record.holder, "one");
}

static void test_without_a_majority_a_call_says_what_is_missing_in_time(void **state)
{
    struct bench *b = *state;
    struct store_request read = ask_read("g");
    struct store_request claim = ask_claim("g", "one", 1, 0);
    struct store_reply reply;
    gavel_ns began;

    (void)expect(b->a, ask_claim("g", "one", 1, 0), GAVEL_OK);
    test_cluster_kill(b->cluster, 1);
    test_cluster_kill(b->cluster, 2);
    began = clock_now();
    /* Who led may do so until its lease is over; from then on nobody answers. */
    do {
        assert_true(clock_now() - began < LIMIT);
        read.give_up_at = clock_now() + 300 * NS_PER_MS;
        store_run(b->a, &read, &reply, 1);
        store_reply_done(&reply);
    } while (reply.status == GAVEL_OK);
    assert_int_equal(reply.status, GAVEL_ERR_TIMEOUT);
    assert_non_null(strstr(reply.message, "majority"));
    began = clock_now();
    claim.give_up_at = began + 300 * NS_PER_MS;
    assert_int_equal(store_call(b->b, &claim, &reply), GAVEL_ERR_TIMEOUT);
    assert_true(clock_now() - began >= 300 * NS_PER_MS);
    assert_true(clock_now() - began < LIMIT);
    store_reply_done(&reply);
}

static void test_a_dead_process_frees_its_mandate_long_before_the_lease_is_over(void **state)
{
    struct bench *b = *state;
    gavel_ns limit = clock_now() + LIMIT;
    struct store_reply seen;
    pid_t pid;

    pid = call_and_die(b->cluster->url, ask_claim("g", "one", 1, 0));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    seen = expect(b->a, ask_read("g"), GAVEL_OK);
    while (seen.record.held) {
        assert_true(clock_now() < limit); /* the lease is a minute */
        store_wait(b->a, "g", seen.record.version, clock_now() + NS_PER_S);
        seen = expect(b->a, ask_read("g"), GAVEL_OK);
    }
    assert_true(seen.expired);
    assert_true(expect(b->a, ask_claim("g", "two", 2, seen.record.version), GAVEL_OK).record.epoch >
                seen.record.epoch);
}

static void test_a_forked_child_is_told_to_open_a_store_of_its_own(void **state)
{
    struct bench *b = *state;

    expect_refused_in_a_child(b->a);
}

static int end_pool(void **state)
{
    (void)state;
    while (pool.count > 0)
        test_cluster_stop(&pool.ready[--pool.count]);
    return 0;
}

int main(void)
{
    static const struct conformance_driver driver = {
        .name = "gavel", .make_url = make_url, .remove_url = remove_url, .may_count_anew = true};
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_url_that_names_no_cluster_is_refused),
        cmocka_unit_test(test_a_cluster_that_is_not_there_is_not_waited_for_for_long),
        TEST(test_the_death_of_a_node_ends_no_mandate),
        TEST(test_without_a_majority_a_call_says_what_is_missing_in_time),
        TEST(test_a_dead_process_frees_its_mandate_long_before_the_lease_is_over),
        TEST(test_a_forked_child_is_told_to_open_a_store_of_its_own),
    };
    int failed = conformance_run(&driver);

    return failed + cmocka_run_group_tests_name("gavel only", tests, NULL, end_pool);
}
