/* SPDX-License-Identifier: Apache-2.0 */

/* Many at once: claimers in threads and in processes, and requests in one batch. */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLAIMERS 16
#define GROUPS 8           /* each claimed by all at once */
#define ROUNDS 12          /* take-overs by each … */
#define ROUNDS_OF_SERVER 3 /* … of which each costs both sides some milliseconds */

/* Who won what; shared between the claimers, be they threads or processes. */
struct score {
    int rounds;
    atomic_int ready;
    atomic_int winners[GROUPS]; /* of a group that nobody held */
    /* The epochs of the group that all take from each other, by claimer and in the order it got them. */
    atomic_ullong epochs[CLAIMERS][ROUNDS];
    atomic_int failures; /* anything that is neither won nor lost */
};

struct claimer {
    const char *url;
    struct score *score;
    int number;
};

static void wait_for_all(struct score *score)
{
    gavel_ns limit = clock_now() + 10 * NS_PER_S;

    atomic_fetch_add(&score->ready, 1);
    while (atomic_load(&score->ready) < CLAIMERS && clock_now() < limit)
        (void)usleep(100); /* all begin together, or this claimer alone after the limit */
}

static void claim_vacant(struct claimer *claimer, struct store *store, const char *id)
{
    for (int i = 0; i < GROUPS; i++) {
        char group[16];
        struct store_reply reply;
        struct store_request claim;
        enum gavel_status status;

        (void)snprintf(group, sizeof group, "group-%d", i);
        claim = ask_claim(group, id, 1, 0);
        claim.give_up_at = clock_now() + 60 * NS_PER_S;
        status = store_call(store, &claim, &reply);
        store_reply_done(&reply);
        if (status == GAVEL_OK && reply.record.epoch > 0)
            atomic_fetch_add(&claimer->score->winners[i], 1);
        else if (status != GAVEL_ERR_CONFLICT)
            atomic_fetch_add(&claimer->score->failures, 1);
    }
}

/* Takes the group from whoever has it, as one who knows that the holder is dead. */
static void take_over(struct claimer *claimer, struct store *store, const char *id)
{
    gavel_ns limit = clock_now() + 60 * NS_PER_S;

    for (uint64_t taken = 0; taken < (uint64_t)claimer->score->rounds && clock_now() < limit;) {
        struct store_request read = ask_read("prey");
        struct store_request claim;
        struct store_reply reply;
        enum gavel_status status;

        read.give_up_at = limit;
        status = store_call(store, &read, &reply);
        store_reply_done(&reply);
        if (status != GAVEL_OK) {
            atomic_fetch_add(&claimer->score->failures, 1);
            return;
        }
        claim = ask_claim("prey", id, taken, reply.record.version);
        claim.give_up_at = limit;
        status = store_call(store, &claim, &reply);
        store_reply_done(&reply);
        if (status == GAVEL_ERR_CONFLICT)
            continue;
        if (status != GAVEL_OK) {
            atomic_fetch_add(&claimer->score->failures, 1);
            return;
        }
        atomic_store(&claimer->score->epochs[claimer->number][taken], reply.record.epoch);
        taken++;
    }
}

static void *run_claimer(void *argument)
{
    struct claimer *claimer = argument;
    struct store *store;
    char id[32];

    (void)snprintf(id, sizeof id, "claimer-%d", claimer->number);
    if (store_open(claimer->url, &store, NULL) != GAVEL_OK) {
        atomic_fetch_add(&claimer->score->failures, 1);
        return NULL;
    }
    wait_for_all(claimer->score);
    claim_vacant(claimer, store, id);
    take_over(claimer, store, id);
    store_close(store);
    return NULL;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static struct score *new_score(const struct fixture *f)
{
    struct score *score =
        mmap(NULL, sizeof *score, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(score, MAP_FAILED);
    score->rounds = f->driver->is_server ? ROUNDS_OF_SERVER : ROUNDS;
    return score;
}

/* No epoch is given twice, and each claimer's own grow. Returns the highest. */
static uint64_t check_epochs(struct score *score)
{
    uint64_t all[CLAIMERS * ROUNDS];
    size_t count = 0;

    for (int claimer = 0; claimer < CLAIMERS; claimer++) {
        uint64_t before = 0;

        for (int round = 0; round < score->rounds; round++) {
            uint64_t epoch = atomic_load(&score->epochs[claimer][round]);

            assert_true(epoch > before);
            all[count++] = before = epoch;
        }
    }
    qsort(all, count, sizeof *all, compare_numbers);
    for (size_t i = 1; i < count; i++)
        assert_int_not_equal(all[i - 1], all[i]);
    return all[count - 1];
}

static void check_score(struct fixture *f, struct score *score)
{
    assert_int_equal(atomic_load(&score->failures), 0);
    for (int i = 0; i < GROUPS; i++)
        assert_int_equal(atomic_load(&score->winners[i]), 1); /* one of sixteen, never two, never none */
    assert_int_equal(expect(f->a, ask_read("prey"), GAVEL_OK).record.epoch, check_epochs(score));
    assert_int_equal(munmap(score, sizeof *score), 0);
}

static void test_one_of_sixteen_threads_wins(void **state)
{
    struct fixture *f = *state;
    struct score *score = new_score(f);
    struct claimer claimers[CLAIMERS];
    pthread_t threads[CLAIMERS];

    for (int i = 0; i < CLAIMERS; i++) {
        claimers[i] = (struct claimer){.url = f->url, .score = score, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_claimer, &claimers[i]), 0);
    }
    for (int i = 0; i < CLAIMERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    check_score(f, score);
}

static void test_one_of_sixteen_processes_wins(void **state)
{
    struct fixture *f = *state;
    struct score *score = new_score(f);
    pid_t pids[CLAIMERS];

    for (int i = 0; i < CLAIMERS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            struct claimer claimer = {.url = f->url, .score = score, .number = i};

            (void)run_claimer(&claimer);
            _exit(0);
        }
    }
    for (int i = 0; i < CLAIMERS; i++) {
        int status;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    check_score(f, score);
}

static void test_a_batch_answers_each_request_by_itself(void **state)
{
    struct fixture *f = *state;
    struct store_request requests[] = {
        ask_claim("a", "one", 1, 0),     ask_claim("a", "two", 2, 0), ask_read("a"),
        ask_claim("", "one", 1, 0),      ask_claim("b", "one", 3, 0), ask_renew("b", "two", 3, 0),
        ask_heartbeat("b", "one", 1, 1), ask_candidates("b"),         ask_release("b", "one", 3, 0),
        ask_claim("late", "one", 1, 0),
    };
    static const enum gavel_status wanted[] = {
        GAVEL_OK, GAVEL_ERR_CONFLICT, GAVEL_OK, GAVEL_ERR_INVALID, GAVEL_OK, GAVEL_ERR_NOT_HOLDER,
        GAVEL_OK, GAVEL_OK,           GAVEL_OK, GAVEL_ERR_TIMEOUT,
    };
    enum { COUNT = sizeof requests / sizeof *requests };
    struct store_reply replies[COUNT];

    requests[COUNT - 1].give_up_at = 1;
    store_run(f->a, requests, replies, COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(replies[i].status, wanted[i]);
    assert_string_equal(replies[2].record.holder, "one"); /* a batch sees what it has written */
    assert_int_equal(replies[7].registration_count, 1);
    for (int i = 0; i < COUNT; i++)
        store_reply_done(&replies[i]);
    assert_string_equal(expect(f->b, ask_read("a"), GAVEL_OK).record.holder, "one");
    assert_false(expect(f->b, ask_read("b"), GAVEL_OK).record.held);
    assert_false(expect(f->b, ask_read("late"), GAVEL_OK).found);
    store_run(f->a, requests, replies, 0); /* nothing asked, nothing done */
}

static void test_a_batch_of_many_groups(void **state)
{
    struct fixture *f = *state;
    enum { MANY = 300, MANY_OF_SERVER = 60 };
    int count = f->driver->is_server ? MANY_OF_SERVER : MANY;
    struct store_request *requests = test_calloc(MANY, sizeof *requests);
    struct store_reply *replies = test_calloc(MANY, sizeof *replies);
    char(*groups)[24] = test_calloc(MANY, sizeof *groups);
    uint64_t *epochs = test_calloc(MANY, sizeof *epochs);

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < count; i++) {
            (void)snprintf(groups[i], sizeof *groups, "group-%03d", i);
            requests[i] = round == 0 ? ask_claim(groups[i], "one", (uint64_t)i, 0)
                                     : ask_renew(groups[i], "one", (uint64_t)i, epochs[i]);
            requests[i].give_up_at = clock_now() + 60 * NS_PER_S;
        }
        store_run(f->a, requests, replies, (size_t)count);
        for (int i = 0; i < count; i++) {
            if (replies[i].status != GAVEL_OK)
                print_error("%s: %s\n", groups[i], replies[i].message);
            assert_int_equal(replies[i].status, GAVEL_OK);
            if (round == 0)
                epochs[i] = replies[i].record.epoch;
            assert_true(epochs[i] > 0);
            assert_int_equal(replies[i].record.epoch, epochs[i]);
            store_reply_done(&replies[i]);
        }
    }
    assert_string_equal(expect(f->b, ask_read(groups[count - 1]), GAVEL_OK).record.holder, "one");
    test_free(epochs);
    test_free(groups);
    test_free(requests);
    test_free(replies);
}

static void test_two_objects_on_one_store_see_each_other(void **state)
{
    struct fixture *f = *state;
    struct record first = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    struct record second = expect(f->b, ask_claim("g", "two", 2, first.version), GAVEL_OK).record;

    (void)expect(f->a, ask_renew("g", "one", 1, first.epoch), GAVEL_ERR_NOT_HOLDER);
    store_close(f->b);
    f->b = NULL;
    assert_string_equal(expect(f->a, ask_read("g"), GAVEL_OK).record.holder, "two"); /* it is kept */
    assert_int_equal(store_open(f->url, &f->b, NULL), GAVEL_OK);
    (void)expect(f->b, ask_renew("g", "two", 2, second.epoch), GAVEL_OK);
}

const struct conformance_test conformance_concurrent_tests[] = {
#define TEST(name, needs)                                                                                    \
    {                                                                                                        \
#name, name, needs                                                                                   \
    }
    TEST(test_one_of_sixteen_threads_wins, NEEDS_ELECTION),
    TEST(test_one_of_sixteen_processes_wins, NEEDS_ELECTION | NEEDS_PROCESSES),
    TEST(test_a_batch_answers_each_request_by_itself, NEEDS_ELECTION),
    TEST(test_a_batch_of_many_groups, NEEDS_ELECTION),
    TEST(test_two_objects_on_one_store_see_each_other, NEEDS_ELECTION),
    {0},
};
