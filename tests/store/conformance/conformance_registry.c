/* SPDX-License-Identifier: Apache-2.0 */

/* What a store promises of the candidates of a group. */
#include "conformance.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

/* How many candidates are listed, and whether `id` (may be NULL) is one of them. */
static size_t listed(struct store *store, struct store_request request, const char *id, bool *ret_is_there)
{
    struct store_reply reply;
    size_t count;

    assert_int_equal(store_call(store, &request, &reply), GAVEL_OK);
    count = reply.registration_count;
    for (size_t i = 0; id && i < count; i++) {
        if (strcmp(reply.registrations[i].id, id) == 0)
            *ret_is_there = true;
    }
    store_reply_done(&reply);
    return count;
}

static void test_candidates_are_listed_in_order_with_what_they_said(void **state)
{
    struct fixture *f = *state;
    struct store_request first = ask_heartbeat("g", "web-2", 11, 1);
    struct store_request list = ask_candidates("g");
    struct store_reply reply;
    int64_t since;

    assert_int_equal(listed(f->a, list, NULL, NULL), 0);
    first.registration.priority = -5;
    first.registration.eligible = false;
    first.registration.since_wall_ms = 1234567;
    (void)strcpy(first.registration.address, "127.0.0.1:99");
    (void)expect(f->a, first, GAVEL_OK);
    (void)expect(f->a, ask_heartbeat("g", "web-1", 12, 1), GAVEL_OK);
    (void)expect(f->a, ask_heartbeat("other", "web-3", 13, 1), GAVEL_OK);
    assert_int_equal(store_call(f->a, &list, &reply), GAVEL_OK);
    assert_int_equal(reply.registration_count, 2);
    since = reply.registrations[1].since_wall_ms;
    store_reply_done(&reply);
    first.registration.beats = 2;
    first.registration.priority = 6;
    (void)expect(f->a, first, GAVEL_OK);
    list.registration.instance = first.registration.instance; /* its own is shown to it by every store */
    assert_int_equal(store_call(f->a, &list, &reply), GAVEL_OK);
    assert_int_equal(reply.registration_count, 2);
    assert_string_equal(reply.registrations[0].id, "web-1");
    assert_true(reply.registrations[0].eligible);
    assert_string_equal(reply.registrations[1].id, "web-2");
    assert_int_equal(reply.registrations[1].instance, 11);
    assert_int_equal(reply.registrations[1].beats, 2);
    assert_int_equal(reply.registrations[1].priority, 6);
    assert_false(reply.registrations[1].eligible);
    /* What the candidate said, or when the store first heard of it; either way later beats do not change
     * it. */
    assert_true(since == 1234567 || since > clock_wall_ms() - 60000);
    assert_int_equal(reply.registrations[1].since_wall_ms, since);
    assert_true(reply.registrations[1].last_wall_ms >= since);
    assert_true(reply.registrations[1].last_wall_ms > 1234567);
    assert_string_equal(reply.registrations[1].address, "127.0.0.1:99");
    assert_in_range(reply.registrations[1].age_ms, 0, 60000);
    assert_int_equal(reply.registrations[1].process.pid, getpid());
    store_reply_done(&reply);
}

static void test_a_registration_is_seen_by_others(void **state)
{
    struct fixture *f = *state;
    bool is_there = false;

    (void)expect(f->a, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    assert_int_equal(listed(f->b, ask_candidates("g"), "one", &is_there), 1);
    assert_true(is_there);
}

static void test_a_silent_candidate_is_no_longer_listed(void **state)
{
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    struct fixture *f = *state;
    struct store_request list = ask_candidates("g");
    gavel_ns limit = clock_now() + 60 * NS_PER_S;

    (void)expect(f->a, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    list.candidate_timeout_ms = 10;
    while (listed(f->a, list, NULL, NULL) > 0) {
        assert_true(clock_now() < limit);
        (void)nanosleep(&pause, NULL);
    }
    assert_int_equal(listed(f->a, ask_candidates("g"), NULL, NULL),
                     1); /* for a more patient one it still counts */
    (void)expect(f->a, ask_heartbeat("g", "one", 1, 2), GAVEL_OK);
    list.candidate_timeout_ms = 60000;
    assert_int_equal(listed(f->a, list, NULL, NULL), 1);
}

/*
 * Ten time-outs of silence, and the next who beats or looks finds nothing. A
 * store without a clock has to look twice: it only knows since when it knows.
 */
static void test_those_long_silent_are_forgotten(void **state)
{
    const struct timespec pause = {.tv_nsec = 15 * NS_PER_MS};
    struct fixture *f = *state;
    bool has_clock = store_capabilities(f->a)->clock != STORE_CLOCK_NONE;
    struct store_request beat = ask_heartbeat("g", "two", 2, 1);
    struct store_request list = ask_candidates("g");
    gavel_ns began;
    size_t count;

    (void)expect(f->a, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    list.candidate_timeout_ms = beat.candidate_timeout_ms = 1; /* ten of which pass */
    began = clock_now();
    do {
        if (!has_clock)
            (void)listed(f->a, list, NULL, NULL);
        (void)nanosleep(&pause, NULL);
        beat.registration.beats++;
        (void)expect(f->a, beat, GAVEL_OK);
        count = listed(f->a, ask_candidates("g"), NULL, NULL);
        assert_true(clock_now() - began < 60 * NS_PER_S);
    } while (!has_clock && count > 1);
    assert_int_equal(count, 1);
}

static void test_an_id_of_another_live_instance_is_refused(void **state)
{
    struct fixture *f = *state;
    struct store_reply reply;

    (void)expect(f->a, ask_heartbeat("g", "one", 1, 41), GAVEL_OK);
    reply = expect(f->a, ask_heartbeat("g", "one", 2, 1), GAVEL_ERR_ID_IN_USE);
    assert_true(reply.other_instance != 0); /* itself, or what a store shows of it to others */
    assert_int_equal(reply.other_beats, 41);
    (void)expect(f->a, ask_heartbeat("other", "one", 2, 1), GAVEL_OK); /* an id is unique in its group only */
    (void)expect(f->a, ask_heartbeat("g", "one", 1, 42), GAVEL_OK);    /* the first is not disturbed */
}

static void test_an_id_is_taken_over_from_a_silent_instance(void **state)
{
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    struct fixture *f = *state;
    struct store_request beat = ask_heartbeat("g", "one", 2, 1);
    gavel_ns limit = clock_now() + 60 * NS_PER_S;
    struct store_reply reply;

    (void)expect(f->a, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    beat.candidate_timeout_ms = 20;
    while (store_call(f->a, &beat, &reply) == GAVEL_ERR_ID_IN_USE) {
        store_reply_done(&reply);
        assert_true(clock_now() < limit);
        (void)nanosleep(&pause, NULL);
    }
    assert_int_equal(reply.status, GAVEL_OK);
    (void)expect(f->a, ask_heartbeat("g", "one", 1, 2), GAVEL_ERR_ID_IN_USE); /* now it is the other's */
}

static void test_leaving_ends_the_own_registration_only(void **state)
{
    struct fixture *f = *state;

    (void)expect(f->a, ask_leave("g", "one", 1), GAVEL_OK); /* never there: nothing to do */
    (void)expect(f->a, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    (void)expect(f->a, ask_heartbeat("g", "two", 2, 1), GAVEL_OK);
    (void)expect(f->a, ask_leave("g", "one", 3), GAVEL_OK); /* another instance */
    assert_int_equal(listed(f->a, ask_candidates("g"), NULL, NULL), 2);
    (void)expect(f->a, ask_leave("g", "one", 1), GAVEL_OK);
    assert_int_equal(listed(f->a, ask_candidates("g"), NULL, NULL), 1);
    (void)expect(f->a, ask_heartbeat("g", "one", 3, 1), GAVEL_OK); /* the id is free at once */
}

static void test_a_dead_process_gives_its_id_free_and_is_not_listed(void **state)
{
    struct fixture *f = *state;
    siginfo_t info;
    bool is_there = false;
    pid_t pid;

    if (!store_capabilities(f->a)->sees_processes)
        fail_msg("a driver shared between processes that does not see them needs a test of its own");
    pid = call_and_die(f->url, ask_heartbeat("g", "one", 77, 5));
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0); /* dead, and still a zombie */
    (void)expect(f->a, ask_heartbeat("g", "two", 2, 1), GAVEL_OK);
    assert_int_equal(listed(f->a, ask_candidates("g"), "one", &is_there), 1);
    assert_false(is_there);
    (void)expect(f->a, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(listed(f->a, ask_candidates("g"), "one", &is_there), 2);
}

static void test_a_listing_has_at_most_1024_candidates(void **state)
{
    struct fixture *f = *state;
    enum { LISTED = 1024, MANY = 1030, AT_ONCE = 103 };
    struct store_request *requests = test_calloc(AT_ONCE, sizeof *requests);
    struct store_reply *replies = test_calloc(AT_ONCE, sizeof *replies);
    struct store_request list = ask_candidates("g");

    for (size_t first = 0; first < MANY; first += AT_ONCE) {
        for (size_t i = 0; i < AT_ONCE; i++) {
            char id[32];

            (void)snprintf(id, sizeof id, "candidate-%04zu", first + i);
            requests[i] = i ? requests[0] : ask_heartbeat("g", id, 1, 1);
            (void)strcpy(requests[i].registration.id, id);
            requests[i].registration.instance = first + i + 1;
            requests[i].give_up_at = clock_now() + 60 * NS_PER_S;
        }
        store_run(f->a, requests, replies, AT_ONCE);
        for (size_t i = 0; i < AT_ONCE; i++) {
            /* A store may keep no more than that. */
            if (first + i < LISTED || replies[i].status != GAVEL_ERR_STORE_FULL)
                assert_int_equal(replies[i].status, GAVEL_OK);
            store_reply_done(&replies[i]);
        }
    }
    list.give_up_at = clock_now() + 60 * NS_PER_S;
    assert_int_equal(listed(f->a, list, NULL, NULL), LISTED);
    test_free(requests);
    test_free(replies);
}

const struct conformance_test conformance_registry_tests[] = {
#define TEST(name, needs)                                                                                    \
    {                                                                                                        \
#name, name, needs                                                                                   \
    }
    TEST(test_candidates_are_listed_in_order_with_what_they_said, 0),
    TEST(test_a_registration_is_seen_by_others, NEEDS_ELECTION),
    TEST(test_a_silent_candidate_is_no_longer_listed, 0),
    TEST(test_those_long_silent_are_forgotten, 0),
    TEST(test_an_id_of_another_live_instance_is_refused, 0),
    TEST(test_an_id_is_taken_over_from_a_silent_instance, 0),
    TEST(test_leaving_ends_the_own_registration_only, 0),
    TEST(test_a_dead_process_gives_its_id_free_and_is_not_listed, NEEDS_PROCESSES),
    TEST(test_a_listing_has_at_most_1024_candidates, 0),
    {0},
};
