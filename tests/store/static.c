/* SPDX-License-Identifier: Apache-2.0 */

/* The driver `static` through what of the suite applies, and its own promises. */
#include "store/conformance/conformance.h"

#include <stdio.h>
#include <string.h>

static void make_url(char *url, size_t size) { (void)snprintf(url, size, "static:web-1?epoch=3"); }

static void test_others_see_the_assigned_leader_and_nothing_to_claim(void **state)
{
    struct store *store = open_store("static:web-1");
    struct store_reply reply;

    (void)state;
    (void)expect(store, ask_heartbeat("g", "web-2", 2, 1), GAVEL_OK);
    reply = expect(store, ask_read("g"), GAVEL_OK);
    assert_true(reply.found);
    assert_true(reply.record.held);
    assert_false(reply.expired);
    assert_true(reply.remaining_ms > 3600000);
    assert_string_equal(reply.record.holder, "web-1");
    assert_int_equal(reply.record.epoch, 1);
    (void)expect(store, ask_claim("g", "web-2", 2, reply.record.version), GAVEL_ERR_CONFLICT);
    (void)expect(store, ask_claim("g", "web-2", 2, 0), GAVEL_ERR_CONFLICT);
    (void)expect(store, ask_renew("g", "web-2", 2, 1), GAVEL_ERR_NOT_HOLDER);
    (void)expect(store, ask_release("g", "web-2", 2, 1), GAVEL_ERR_NOT_HOLDER);
    (void)expect(store, ask_wish("g", 1, "web-2"), GAVEL_ERR_STORE_UNSUPPORTED);
    store_close(store);
}

static void test_the_assigned_candidate_finds_a_vacant_group_and_leads(void **state)
{
    struct store *store = open_store("static:web-1?epoch=3");
    struct store_request claim;
    struct store_request release;
    struct store_reply reply;

    (void)state;
    (void)expect(store, ask_heartbeat("g", "web-1", 1, 1), GAVEL_OK);
    reply = expect(store, ask_read("g"), GAVEL_OK);
    assert_false(reply.record.held);
    claim = ask_claim("g", "web-1", 1, reply.record.version);
    claim.must_be_expired = true;
    claim.record.lease_ms = 1;
    reply = expect(store, claim, GAVEL_OK);
    assert_int_equal(reply.record.epoch, 3);
    reply = expect(store, ask_renew("g", "web-1", 1, 3), GAVEL_OK);
    assert_false(reply.expired);
    (void)expect(store, ask_renew("g", "web-1", 2, 3), GAVEL_ERR_NOT_HOLDER);
    reply = expect(store, ask_read("g"), GAVEL_OK);
    assert_true(reply.record.held);
    assert_true(nonce_equal(reply.record.nonce, test_nonce("web-1", 1)));
    release = ask_release("g", "web-1", 1, 3);
    release.record.done = true; /* there is nowhere to keep that */
    assert_non_null(strstr(expect(store, release, GAVEL_ERR_STORE_UNSUPPORTED).message, "another store"));
    (void)expect(store, ask_release("g", "web-1", 1, 3), GAVEL_OK);
    reply = expect(store, ask_read("g"), GAVEL_OK);
    assert_false(reply.record.held);
    assert_int_equal(expect(store, ask_claim("g", "web-1", 4, reply.record.version), GAVEL_OK).record.epoch,
                     3);
    store_close(store);
}

static void test_the_first_read_of_the_assigned_candidate_shows_no_other_leader(void **state)
{
    struct store *store = open_store("static:web-1");
    struct store_request requests[] = {ask_read("g"), ask_read("other"), ask_heartbeat("g", "web-1", 1, 1)};
    struct store_reply replies[3];

    (void)state;
    store_run(store, requests, replies, 3);
    assert_int_equal(replies[0].status, GAVEL_OK);
    assert_false(replies[0].record.held); /* it registers in the same batch */
    assert_true(replies[1].record.held);  /* but in that group only */
    assert_int_equal(replies[2].status, GAVEL_OK);
    store_close(store);
}

static void test_an_assignment_does_not_expire(void **state)
{
    struct store *store = open_store("static:web-1");
    struct store_request claim = ask_claim("g", "web-1", 1, 0);
    gavel_ns began = clock_now();

    (void)state;
    claim.record.lease_ms = 1;
    (void)expect(store, ask_heartbeat("g", "web-1", 1, 1), GAVEL_OK);
    (void)expect(store, claim, GAVEL_OK);
    while (clock_now() - began < 5 * NS_PER_MS)
        assert_false(expect(store, ask_read("g"), GAVEL_OK).expired);
    store_close(store);
}

static void test_the_group_is_free_again_for_the_next_instance_of_the_leader(void **state)
{
    struct store *store = open_store("static:web-1");
    struct store_reply reply;

    (void)state;
    (void)expect(store, ask_heartbeat("g", "web-1", 1, 1), GAVEL_OK);
    (void)expect(store, ask_claim("g", "web-1", 1, 0), GAVEL_OK);
    (void)expect(store, ask_leave("g", "web-1", 1),
                 GAVEL_OK); /* without a release, as after a crash of a thread */
    assert_string_equal(expect(store, ask_read("g"), GAVEL_OK).record.holder, "web-1");
    (void)expect(store, ask_heartbeat("g", "web-1", 2, 1), GAVEL_OK);
    reply = expect(store, ask_read("g"), GAVEL_OK);
    assert_false(reply.record.held);
    (void)expect(store, ask_claim("g", "web-1", 2, reply.record.version), GAVEL_OK);
    (void)expect(store, ask_renew("g", "web-1", 1, 1), GAVEL_ERR_NOT_HOLDER);
    store_close(store);
}

static void test_a_url_that_assigns_nobody_is_refused(void **state)
{
    static const char *const bad[] = {
        "static:",
        "static:?epoch=3",
        "static:web?epoch=",
        "static:web?epoch=0",
        "static:web?epoch=-1",
        "static:web?epoch=1x",
        "static:web?epoch=99999999999999999999",
        "static:a\nb",
    };

    (void)state;
    expect_bad_urls(bad, sizeof bad / sizeof *bad);
}

static void test_a_url_finds_its_driver(void **state)
{
    static const char *const no_addresses[] = {"h:x", ":1", "h:", "h:1x", "h:1,me@i", "[:1x"};
    struct store *store = NULL;
    struct gavel_error error;

    (void)state;
    assert_string_equal(store_capabilities_of("sqlite:/x")->name, "sqlite");
    assert_string_equal(store_capabilities_of("/x/y:z.db")->name, "sqlite");
    assert_string_equal(store_capabilities_of("gavel.db")->name, "sqlite");
    assert_string_equal(store_capabilities_of("memory:x")->name, "memory");
    assert_true(store_capabilities_of("static:x")->is_fixed);
    assert_null(store_capabilities_of("redis://x"));
    assert_null(store_capabilities_of(""));
    assert_null(store_capabilities_of(NULL));
    assert_int_equal(store_open("redis://x", &store, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "redis"));
    assert_non_null(strstr(error.message, "sqlite"));
    for (size_t i = 0; i < sizeof no_addresses / sizeof *no_addresses; i++) {
        assert_int_equal(store_open(no_addresses[i], &store, &error), GAVEL_ERR_INVALID);
        assert_null(strstr(error.message, "gavel://"));
    }
    assert_int_equal(store_open("", &store, &error), GAVEL_ERR_INVALID);
    assert_int_equal(store_open(NULL, &store, NULL), GAVEL_ERR_INVALID);
    assert_null(store);
    store_close(NULL);
}

int main(void)
{
    static const struct conformance_driver driver = {.name = "static", .make_url = make_url};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_others_see_the_assigned_leader_and_nothing_to_claim),
        cmocka_unit_test(test_the_assigned_candidate_finds_a_vacant_group_and_leads),
        cmocka_unit_test(test_the_first_read_of_the_assigned_candidate_shows_no_other_leader),
        cmocka_unit_test(test_an_assignment_does_not_expire),
        cmocka_unit_test(test_the_group_is_free_again_for_the_next_instance_of_the_leader),
        cmocka_unit_test(test_a_url_that_assigns_nobody_is_refused),
        cmocka_unit_test(test_a_url_finds_its_driver),
    };

    return conformance_run(&driver) + cmocka_run_group_tests_name("static only", tests, NULL, NULL);
}
