/* SPDX-License-Identifier: Apache-2.0 */

/* Calls that arrive twice, late or one after the other in a batch, wishes in between, and deadlines. */
#include "conformance.h"

#include <pthread.h>
#include <stdio.h>

#define SLACK (30 * NS_PER_S) /* for a machine that has much else to do; below any other patience */

static void test_a_version_is_never_used_again_and_only_grows(void **state)
{
    struct fixture *f = *state;
    bool renews_silently = store_capabilities(f->a)->renews_silently;
    struct record record = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    uint64_t epoch = record.epoch;
    uint64_t version = higher(record.version, 0);

    for (int i = 0; i < 3; i++) {
        uint64_t renewed;

        (void)expect(f->b, ask_wish("g", epoch, i % 2 ? "two" : "three"), GAVEL_OK);
        assert_int_equal(expect(f->a, ask_read("g"), GAVEL_OK).record.version, version);
        renewed = expect(f->a, ask_renew("g", "one", 1, epoch), GAVEL_OK).record.version;
        if (renews_silently)
            assert_int_equal(renewed, version);
        else
            (void)higher(renewed, version);
        version = renewed;
    }
    (void)expect(f->b, ask_wish("g", epoch, "two"), GAVEL_OK);
    version = higher(expect(f->a, ask_release("g", "one", 1, epoch), GAVEL_OK).record.version, version);
    record = expect(f->b, ask_claim("g", "two", 2, version), GAVEL_OK).record;
    version = higher(record.version, version);
    version =
        higher(expect(f->b, ask_release("g", "two", 2, record.epoch), GAVEL_OK).record.version, version);
    assert_int_equal(expect(f->a, ask_read("g"), GAVEL_OK).record.version, version);
}

/* Who read the record before the wish has still read the mandate as it is. */
static void test_a_wish_does_not_stand_in_the_way_of_a_claim(void **state)
{
    struct fixture *f = *state;
    struct record first = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    struct record second;

    (void)expect(f->a, ask_wish("g", first.epoch, "three"), GAVEL_OK);
    second = expect(f->b, ask_claim("g", "two", 2, first.version), GAVEL_OK).record;
    assert_string_equal(second.holder, "two");
    assert_int_not_equal(second.wish_epoch, second.epoch);
    (void)higher(second.epoch, first.epoch);
    (void)higher(second.version, first.version);
}

static void test_a_batch_keeps_the_order_of_what_it_does_to_a_group(void **state)
{
    struct fixture *f = *state;
    struct store_request requests[] = {
        ask_claim("g", "one", 1, 0),
        ask_renew("g", "one", 1, 0),
        ask_heartbeat("g", "one", 1, 1),
        ask_heartbeat("g", "one", 1, 2),
        ask_release("g", "one", 1, 0),
        ask_renew("g", "one", 1, 0),
        ask_claim("g", "two", 2, 0),
        ask_read("g"),
        ask_candidates("g"),
        ask_leave("g", "one", 1),
        ask_candidates("g"),
        ask_heartbeat("g", "one", 2, 1),
        ask_candidates("g"),
    };
    static const enum gavel_status wanted[] = {
        GAVEL_OK, GAVEL_OK, GAVEL_OK, GAVEL_OK, GAVEL_OK, GAVEL_ERR_NOT_HOLDER, GAVEL_ERR_CONFLICT, GAVEL_OK,
        GAVEL_OK, GAVEL_OK, GAVEL_OK, GAVEL_OK, GAVEL_OK,
    };
    enum { COUNT = sizeof requests / sizeof *requests, READ = 7, BEFORE = 8, LEFT = 10, AFTER = 12 };
    struct store_reply replies[COUNT];

    requests[AFTER].registration.instance = 2;
    store_run(f->a, requests, replies, COUNT);
    for (int i = 0; i < COUNT; i++) {
        if (replies[i].status != wanted[i])
            print_error("request %d of the batch: %s\n", i, replies[i].message);
        assert_int_equal(replies[i].status, wanted[i]);
    }
    assert_false(replies[READ].record.held);
    assert_string_equal(replies[READ].record.holder, "one");
    assert_int_equal(replies[BEFORE].registration_count, 1);
    /* A heartbeat that changes nothing is known to the leader of a cluster only, which may change
     * meanwhile. */
    assert_in_range(replies[BEFORE].registrations[0].beats, f->driver->may_count_anew ? 1 : 2, 2);
    assert_int_equal(replies[LEFT].registration_count, 0);
    assert_int_equal(replies[AFTER].registration_count, 1);
    assert_int_equal(replies[AFTER].registrations[0].instance, 2);
    for (int i = 0; i < COUNT; i++)
        store_reply_done(&replies[i]);
}

/* A network may deliver a claim twice, the second time when much has happened. */
static void test_a_late_duplicate_of_a_claim_grants_nothing(void **state)
{
    struct fixture *f = *state;
    struct store_request claim = ask_claim("g", "one", 1, 0);
    struct record first = expect(f->a, claim, GAVEL_OK).record;
    struct record now = expect(f->a, ask_release("g", "one", 1, first.epoch), GAVEL_OK).record;
    struct store_request again = ask_claim("g", "one", 3, now.version);
    struct store_reply reply;

    (void)expect(f->b, claim, GAVEL_ERR_CONFLICT);
    assert_false(expect(f->a, ask_read("g"), GAVEL_OK).record.held);
    now = expect(f->a, again, GAVEL_OK).record;
    (void)expect(f->a, ask_release("g", "one", 3, now.epoch), GAVEL_OK);
    (void)expect(f->b, again, GAVEL_ERR_CONFLICT); /* its version has been, too */
    reply = expect(f->a, ask_read("g"), GAVEL_OK);
    assert_false(reply.record.held);
    assert_int_equal(reply.record.epoch, now.epoch);
    now = expect(f->b, ask_claim("g", "two", 2, reply.record.version), GAVEL_OK).record;
    (void)expect(f->a, claim, GAVEL_ERR_CONFLICT);
    (void)expect(f->a, again, GAVEL_ERR_CONFLICT);
    reply = expect(f->a, ask_read("g"), GAVEL_OK);
    assert_string_equal(reply.record.holder, "two");
    assert_int_equal(reply.record.epoch, now.epoch);
    assert_int_equal(reply.record.version, now.version);
}

/* The same nonce again, by one whose look is older than the claim that arrived late. */
static void test_a_claim_is_not_taken_for_an_earlier_one_of_the_same_nonce(void **state)
{
    struct fixture *f = *state;
    struct record seen = expect(f->a, ask_claim("g", "two", 2, 0), GAVEL_OK).record;

    seen = expect(f->a, ask_release("g", "two", 2, seen.epoch), GAVEL_OK).record;
    assert_int_equal(expect(f->b, ask_read("g"), GAVEL_OK).record.version, seen.version);
    (void)expect(f->a, ask_claim("g", "one", 1, seen.version), GAVEL_OK);
    (void)expect(f->b, ask_claim("g", "one", 1, seen.version), GAVEL_ERR_CONFLICT);
}

struct sender {
    struct store *store;
    struct store_request claim;
    struct store_reply reply;
};

static void *send_claim(void *argument)
{
    struct sender *sender = argument;

    store_run(sender->store, &sender->claim, &sender->reply, 1);
    return NULL;
}

/*
 * Whoever is told that it is granted counts the lease from when it sent this very claim. So only the one that
 * was carried out may be answered so: the other may have been sent much later.
 */
static void test_a_claim_that_arrives_twice_at_once_is_granted_once(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 8; i++) {
        struct sender senders[2] = {{.store = f->a}, {.store = f->b}};
        struct store_reply seen;
        pthread_t thread;
        char group[16];
        int granted = 0;

        (void)snprintf(group, sizeof group, "g%d", i);
        senders[0].claim = senders[1].claim = ask_claim(group, "one", 1, 0);
        assert_int_equal(pthread_create(&thread, NULL, send_claim, &senders[0]), 0);
        (void)send_claim(&senders[1]);
        assert_int_equal(pthread_join(thread, NULL), 0);
        seen = expect(f->a, ask_read(group), GAVEL_OK);
        assert_true(seen.record.held);
        for (int k = 0; k < 2; k++) {
            if (senders[k].reply.status == GAVEL_OK) {
                granted++;
                assert_int_equal(senders[k].reply.record.epoch, seen.record.epoch);
            } else {
                assert_int_equal(senders[k].reply.status, GAVEL_ERR_CONFLICT);
            }
            store_reply_done(&senders[k].reply);
        }
        assert_int_equal(granted, 1);
    }
}

static void test_a_long_batch_ends_with_its_deadline(void **state)
{
    struct fixture *f = *state;
    enum { MANY = 400 };
    struct store_request *requests = test_calloc(MANY, sizeof *requests);
    struct store_reply *replies = test_calloc(MANY, sizeof *replies);
    char(*groups)[16] = test_calloc(MANY, sizeof *groups);
    gavel_ns limit;

    (void)expect(f->a, ask_read("g"), GAVEL_OK); /* what a first call has to do is done */
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(groups[i], sizeof *groups, "group-%03d", i);
        requests[i] = ask_claim(groups[i], "one", (uint64_t)i, 0);
    }
    limit = clock_now() + 20 * NS_PER_MS;
    for (int i = 0; i < MANY; i++)
        requests[i].give_up_at = limit;
    store_run(f->a, requests, replies, MANY);
    assert_true(clock_now() < limit + SLACK);
    for (int i = 0; i < MANY; i++) {
        if (replies[i].status != GAVEL_OK)
            assert_int_equal(replies[i].status, GAVEL_ERR_TIMEOUT);
        assert_true((replies[i].message[0] != '\0') == (replies[i].status != GAVEL_OK));
        store_reply_done(&replies[i]);
    }
    (void)expect(f->a, ask_read("g"), GAVEL_OK); /* and it goes on */
    test_free(groups);
    test_free(requests);
    test_free(replies);
}

static enum gavel_status call_within(struct store *store, struct store_request request, gavel_ns patience)
{
    struct store_reply reply;
    enum gavel_status status;
    gavel_ns began = clock_now();

    request.give_up_at = began + patience;
    status = store_call(store, &request, &reply);
    assert_true(clock_now() - began < patience + SLACK);
    store_reply_done(&reply);
    return status;
}

static void test_a_store_that_falls_silent_delays_nobody_beyond_the_deadline(void **state)
{
    const gavel_ns patience = 200 * NS_PER_MS;
    struct fixture *f = *state;
    uint64_t epoch = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;
    gavel_ns limit;
    struct store_reply seen;

    (void)expect(f->b, ask_read("g"), GAVEL_OK);
    f->driver->freeze(f->url);
    assert_int_equal(call_within(f->a, ask_renew("g", "one", 1, epoch), patience), GAVEL_ERR_TIMEOUT);
    assert_int_equal(call_within(f->a, ask_renew("g", "one", 1, epoch), patience), GAVEL_ERR_TIMEOUT);
    assert_int_equal(call_within(f->b, ask_claim("h", "two", 2, 0), patience), GAVEL_ERR_TIMEOUT);
    (void)call_within(f->b, ask_read("g"), patience); /* some can still read */
    f->driver->thaw(f->url);
    /* Whatever became of those writes, the mandate is whose it was, and both go on by themselves. */
    limit = clock_now() + 30 * NS_PER_S;
    while (call_within(f->a, ask_renew("g", "one", 1, epoch), 10 * NS_PER_S) != GAVEL_OK)
        assert_true(clock_now() < limit);
    while (call_within(f->b, ask_read("h"), 10 * NS_PER_S) != GAVEL_OK)
        assert_true(clock_now() < limit);
    seen = expect(f->b, ask_read("g"), GAVEL_OK);
    assert_int_equal(seen.record.epoch, epoch);
    assert_string_equal(seen.record.holder, "one");
    seen = expect(f->b, ask_read_own("h", "two", 2), GAVEL_OK);
    if (seen.found)
        assert_true(nonce_equal(seen.record.nonce, test_nonce("two", 2)));
}

const struct conformance_test conformance_late_tests[] = {
#define TEST(name, needs)                                                                                    \
    {                                                                                                        \
#name, name, needs                                                                                   \
    }
    TEST(test_a_version_is_never_used_again_and_only_grows, NEEDS_ELECTION),
    TEST(test_a_wish_does_not_stand_in_the_way_of_a_claim, NEEDS_ELECTION),
    TEST(test_a_batch_keeps_the_order_of_what_it_does_to_a_group, NEEDS_ELECTION),
    TEST(test_a_late_duplicate_of_a_claim_grants_nothing, NEEDS_ELECTION),
    TEST(test_a_claim_is_not_taken_for_an_earlier_one_of_the_same_nonce, NEEDS_ELECTION),
    TEST(test_a_claim_that_arrives_twice_at_once_is_granted_once, NEEDS_ELECTION),
    TEST(test_a_long_batch_ends_with_its_deadline, NEEDS_ELECTION),
    TEST(test_a_store_that_falls_silent_delays_nobody_beyond_the_deadline, NEEDS_ELECTION | NEEDS_FREEZE),
    {0},
};
