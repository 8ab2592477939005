/* SPDX-License-Identifier: Apache-2.0 */

#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TESTS_MAX 128
#define LIMIT (60 * NS_PER_S) /* for anything that a test waits for */

struct nonce test_nonce(const char *id, uint64_t n)
{
    struct nonce nonce = {.high = UINT64_C(1469598103934665603), .low = n};

    for (; *id; id++)
        nonce.high = (nonce.high ^ (unsigned char)*id) * UINT64_C(1099511628211);
    return nonce;
}

static struct store_request ask(enum store_op op, const char *group)
{
    return (struct store_request){.op = op, .group = group, .give_up_at = clock_now() + LIMIT};
}

static struct store_request ask_as(enum store_op op, const char *group, const char *id, uint64_t n)
{
    struct store_request request = ask(op, group);

    (void)snprintf(request.record.holder, sizeof request.record.holder, "%s", id);
    request.record.nonce = test_nonce(id, n);
    request.record.lease_ms = 60000;
    return request;
}

struct store_request ask_read(const char *group) { return ask(STORE_READ, group); }

struct store_request ask_read_own(const char *group, const char *holder, uint64_t attempt)
{
    struct store_request request = ask_read(group);

    request.record.nonce = test_nonce(holder, attempt);
    return request;
}

struct store_request ask_claim(const char *group, const char *id, uint64_t n, uint64_t expected_version)
{
    struct store_request request = ask_as(STORE_CLAIM, group, id, n);

    request.expected_version = expected_version;
    assert_int_equal(process_self(&request.record.process), GAVEL_OK);
    return request;
}

struct store_request ask_renew(const char *group, const char *id, uint64_t n, uint64_t epoch)
{
    struct store_request request = ask_as(STORE_RENEW, group, id, n);

    request.record.epoch = epoch;
    return request;
}

struct store_request ask_release(const char *group, const char *id, uint64_t n, uint64_t epoch)
{
    struct store_request request = ask_as(STORE_RELEASE, group, id, n);

    request.record.epoch = epoch;
    return request;
}

struct store_request ask_wish(const char *group, uint64_t epoch, const char *successor)
{
    struct store_request request = ask(STORE_ASK, group);

    request.record.wish_epoch = epoch;
    (void)snprintf(request.record.wish_successor, sizeof request.record.wish_successor, "%s", successor);
    return request;
}

struct store_request ask_heartbeat(const char *group, const char *id, uint64_t instance, uint64_t beats)
{
    struct store_request request = ask(STORE_HEARTBEAT, group);

    (void)snprintf(request.registration.id, sizeof request.registration.id, "%s", id);
    request.registration.instance = instance;
    request.registration.beats = beats;
    request.registration.eligible = true;
    request.candidate_timeout_ms = 60000;
    assert_int_equal(process_self(&request.registration.process), GAVEL_OK);
    return request;
}

struct store_request ask_leave(const char *group, const char *id, uint64_t instance)
{
    struct store_request request = ask(STORE_LEAVE, group);

    (void)snprintf(request.registration.id, sizeof request.registration.id, "%s", id);
    request.registration.instance = instance;
    return request;
}

struct store_request ask_candidates(const char *group)
{
    struct store_request request = ask(STORE_CANDIDATES, group);

    request.candidate_timeout_ms = 60000;
    return request;
}

struct store_reply expect(struct store *store, struct store_request request, enum gavel_status status)
{
    struct store_reply reply;
    enum gavel_status got = store_call(store, &request, &reply);

    if (got != status)
        print_error("%s: %s instead of %s: %s\n", store_op_name(request.op), gavel_status_name(got),
                    gavel_status_name(status), reply.message);
    assert_int_equal(got, status);
    assert_int_equal(reply.status, status);
    /* A failure says something to a person, a success nothing. */
    assert_true((reply.message[0] != '\0') == (status != GAVEL_OK));
    store_reply_done(&reply);
    return reply;
}

void await_expiry(struct store *store, const char *group)
{
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    gavel_ns limit = clock_now() + LIMIT;

    while (!expect(store, ask_read(group), GAVEL_OK).expired) {
        assert_true(clock_now() < limit);
        (void)nanosleep(&pause, NULL);
    }
}

struct store_reply claim_expired(const struct fixture *fixture, struct store *store,
                                 struct store_request claim)
{
    gavel_ns limit = clock_now() + LIMIT;
    struct store_reply reply;

    claim.must_be_expired = true;
    for (;;) {
        await_expiry(store, claim.group);
        if (!fixture->driver->may_count_anew || clock_now() > limit)
            return expect(store, claim, GAVEL_OK);
        if (store_call(store, &claim, &reply) == GAVEL_OK) {
            store_reply_done(&reply);
            return reply;
        }
        assert_int_equal(reply.status, GAVEL_ERR_CONFLICT);
        store_reply_done(&reply);
    }
}

uint64_t higher(uint64_t number, uint64_t before)
{
    assert_true(number > before);
    return number;
}

static int set_up(void **state)
{
    const struct conformance_driver *driver = *state;
    struct gavel_error error;
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    fixture->driver = driver;
    driver->make_url(fixture->url, sizeof fixture->url);
    if (store_open(fixture->url, &fixture->a, &error) != GAVEL_OK ||
        store_open(fixture->url, &fixture->b, &error) != GAVEL_OK) {
        print_error("%s: %s\n", fixture->url, error.message);
        store_close(fixture->a);
        free(fixture);
        return -1;
    }
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    store_close(fixture->a);
    store_close(fixture->b);
    if (fixture->driver->remove_url)
        fixture->driver->remove_url(fixture->url);
    free(fixture);
    return 0;
}

static bool applies(const struct conformance_driver *driver, const struct store_capabilities *capabilities,
                    unsigned needs)
{
    if ((needs & NEEDS_ELECTION) && capabilities->is_fixed)
        return false;
    if ((needs & NEEDS_PROCESSES) && !capabilities->is_shared)
        return false;
    if ((needs & NEEDS_CLOCK) && (capabilities->clock == STORE_CLOCK_NONE || capabilities->is_fixed))
        return false;
    if ((needs & NEEDS_NO_CLOCK) && capabilities->clock != STORE_CLOCK_NONE)
        return false;
    if ((needs & NEEDS_PUSH) && !capabilities->has_push)
        return false;
    if ((needs & NEEDS_FREEZE) && !driver->freeze)
        return false;
    return !(needs & NEEDS_FORMAT) || driver->write_future_record;
}

int conformance_run(const struct conformance_driver *driver)
{
    static const struct conformance_test *const parts[] = {
        conformance_mandate_tests, conformance_done_tests,       conformance_registry_tests,
        conformance_name_tests,    conformance_concurrent_tests, conformance_push_tests,
        conformance_late_tests,
    };
    struct CMUnitTest tests[TESTS_MAX] = {0};
    char url[512];
    size_t count = 0;

    (void)snprintf(url, sizeof url, "%s:", driver->name);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        for (const struct conformance_test *test = parts[i]; test->name; test++) {
            if (!applies(driver, store_capabilities_of(url), test->needs)) {
                print_message("%s: does not apply: %s\n", driver->name, test->name);
                continue;
            }
            assert_true(count < TESTS_MAX);
            tests[count++] = (struct CMUnitTest){
                .name = test->name,
                .test_func = test->run,
                .setup_func = set_up,
                .teardown_func = tear_down,
                .initial_state = (void *)(uintptr_t)driver, /* cmocka wants it without const */
            };
        }
    }
    return _cmocka_run_group_tests(driver->name, tests, count, NULL, NULL);
}
