/* SPDX-License-Identifier: Apache-2.0 */

/* What a store promises of mandates. */
#include "conformance.h"

#include <string.h>

/* A store whose clock is not the holder's waits a little longer than the lease. */
#define DRIFT_OF(lease_ms) ((lease_ms) / 100)

static void test_nothing_is_found_in_an_empty_store(void **state)
{
    struct fixture *f = *state;
    struct store_reply reply = expect(f->a, ask_read("g"), GAVEL_OK);

    assert_false(reply.found);
    assert_int_equal(reply.record.version, 0);
    assert_int_equal(reply.record.epoch, 0);
}

static void test_a_claim_is_seen_by_all(void **state)
{
    struct fixture *f = *state;
    struct store_request claim = ask_claim("g", "one", 7, 0);
    struct store_reply won;
    struct store_reply seen;

    (void)strcpy(claim.record.address, "127.0.0.1:4242");
    won = expect(f->a, claim, GAVEL_OK);
    seen = expect(f->b, ask_read_own("g", "one", 7), GAVEL_OK);
    assert_true(won.record.epoch > 0);
    assert_true(won.record.version > 0);
    assert_true(seen.found);
    assert_false(seen.expired);
    assert_true(seen.record.held);
    assert_int_equal(seen.record.epoch, won.record.epoch);
    assert_int_equal(seen.record.version, won.record.version);
    assert_int_equal(seen.record.lease_ms, 60000);
    assert_string_equal(seen.record.holder, "one");
    assert_string_equal(seen.record.address, "127.0.0.1:4242");
    assert_true(nonce_equal(seen.record.nonce, test_nonce("one", 7)));
    assert_int_equal(seen.record.process.pid, claim.record.process.pid);
    assert_int_equal(seen.record.process.start_ticks, claim.record.process.start_ticks);
    assert_int_equal(seen.record.process.pid_ns, claim.record.process.pid_ns);
    assert_string_equal(seen.record.process.boot_id, claim.record.process.boot_id);
    assert_true(seen.record.since_wall_ms > 0);
}

static void test_a_claim_on_a_record_that_someone_made_is_refused(void **state)
{
    struct fixture *f = *state;
    struct store_reply lost;

    (void)expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK);
    lost = expect(f->b, ask_claim("g", "two", 2, 0), GAVEL_ERR_CONFLICT);
    assert_string_equal(lost.record.holder, "one");
    assert_string_equal(expect(f->b, ask_read("g"), GAVEL_OK).record.holder, "one");
}

static void test_a_claim_with_a_stale_version_is_refused(void **state)
{
    struct fixture *f = *state;
    struct store_reply old = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK);
    struct store_reply now = expect(f->a, ask_claim("g", "one", 2, old.record.version), GAVEL_OK);

    assert_int_not_equal(old.record.version, now.record.version);
    (void)expect(f->b, ask_claim("g", "two", 2, old.record.version), GAVEL_ERR_CONFLICT);
    assert_string_equal(expect(f->a, ask_read("g"), GAVEL_OK).record.holder, "one");
    /* Whoever knows that the holder is gone may claim the version of today. */
    assert_true(expect(f->b, ask_claim("g", "two", 2, now.record.version), GAVEL_OK).record.epoch >
                now.record.epoch);
}

static void test_the_epoch_grows_over_release_and_takeover(void **state)
{
    struct fixture *f = *state;
    struct store_request claim = ask_claim("g", "one", 1, 0);
    struct store_reply reply = expect(f->a, claim, GAVEL_OK);
    uint64_t epoch = reply.record.epoch;

    assert_true(epoch > 0);
    reply = expect(f->a, ask_release("g", "one", 1, epoch), GAVEL_OK);
    assert_int_equal(reply.record.epoch, epoch);
    reply = expect(f->b, ask_read("g"), GAVEL_OK);
    assert_int_equal(reply.record.epoch, epoch);
    assert_true(reply.found);
    assert_false(reply.record.held);
    claim = ask_claim("g", "two", 2, reply.record.version);
    claim.must_be_expired = true; /* a released lease does not run */
    reply = expect(f->b, claim, GAVEL_OK);
    epoch = higher(reply.record.epoch, epoch);
    reply = expect(f->a, ask_claim("g", "one", 3, reply.record.version), GAVEL_OK);
    epoch = higher(reply.record.epoch, epoch);
    assert_int_equal(expect(f->b, ask_read("g"), GAVEL_OK).record.epoch, epoch);
}

static void test_the_epoch_grows_over_expiry(void **state)
{
    struct fixture *f = *state;
    struct store_request claim = ask_claim("g", "one", 1, 0);
    struct store_reply reply;
    uint64_t epoch;

    claim.record.lease_ms = 20;
    reply = expect(f->b, claim, GAVEL_OK);
    epoch = reply.record.epoch;
    reply = claim_expired(f, f->a, ask_claim("g", "two", 2, reply.record.version));
    epoch = higher(reply.record.epoch, epoch);
    assert_int_equal(expect(f->b, ask_read("g"), GAVEL_OK).record.epoch, epoch);
}

/* Standbys time the lease themselves, so the store must not claim to know. */
static void test_without_a_clock_a_held_mandate_never_expires(void **state)
{
    struct fixture *f = *state;
    struct store_request claim = ask_claim("g", "one", 1, 0);
    struct store_reply seen;
    gavel_ns began = clock_now();

    claim.record.lease_ms = 1;
    (void)expect(f->a, claim, GAVEL_OK);
    do
        seen = expect(f->b, ask_read("g"), GAVEL_OK);
    while (clock_now() - began <= 5 * NS_PER_MS);
    assert_false(seen.expired);
    assert_int_equal(seen.remaining_ms, -1);
    claim = ask_claim("g", "two", 2, seen.record.version);
    claim.must_be_expired = true; /* it cannot tell, and leaves that to who asks */
    (void)higher(expect(f->b, claim, GAVEL_OK).record.epoch, seen.record.epoch);
}

static void test_the_epoch_is_higher_than_any_that_the_claimant_knows(void **state)
{
    struct fixture *f = *state;
    struct store_request claim = ask_claim("g", "one", 1, 0);
    uint64_t epoch;

    claim.record.epoch = 4100000; /* the store was put back to before those */
    epoch = higher(expect(f->a, claim, GAVEL_OK).record.epoch, 4100000);
    claim = ask_claim("g", "one", 2, expect(f->a, ask_read("g"), GAVEL_OK).record.version);
    claim.record.epoch = 7; /* and a claimant that knows less gets the next one all the same */
    (void)higher(expect(f->a, claim, GAVEL_OK).record.epoch, epoch);
}

static void test_a_running_lease_is_not_claimed_as_expired(void **state)
{
    struct fixture *f = *state;
    struct store_reply held = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK);
    struct store_request claim = ask_claim("g", "two", 2, held.record.version);
    struct store_reply seen = expect(f->b, ask_read("g"), GAVEL_OK);

    assert_true(seen.remaining_ms > 0);
    assert_true(seen.remaining_ms <= 60000 + DRIFT_OF(60000));
    claim.must_be_expired = true;
    (void)expect(f->b, claim, GAVEL_ERR_CONFLICT);
    assert_int_equal(expect(f->b, ask_read("g"), GAVEL_OK).record.epoch, held.record.epoch);
}

static void test_an_expired_lease_is_claimed_and_its_holder_refused(void **state)
{
    struct fixture *f = *state;
    struct store_request claim = ask_claim("g", "one", 1, 0);
    gavel_ns sent_at = clock_now();
    struct record held;

    claim.record.lease_ms = 30;
    held = expect(f->a, claim, GAVEL_OK).record;
    await_expiry(f->b, "g");
    assert_true(clock_now() - sent_at >= ns_from_ms(30)); /* not a moment too early */
    (void)higher(claim_expired(f, f->b, ask_claim("g", "two", 2, held.version)).record.epoch, held.epoch);
    (void)expect(f->a, ask_renew("g", "one", 1, held.epoch), GAVEL_ERR_NOT_HOLDER);
}

static void test_a_renewal_makes_the_lease_run_anew(void **state)
{
    struct fixture *f = *state;
    struct store_request claim = ask_claim("g", "one", 1, 0);
    struct store_request renew;
    struct store_reply reply;

    claim.record.lease_ms = 20;
    renew = ask_renew("g", "one", 1, expect(f->a, claim, GAVEL_OK).record.epoch);
    await_expiry(f->b, "g");
    renew.record.lease_ms = 50000; /* nobody has claimed it, so it may go on, and with another lease */
    (void)expect(f->a, renew, GAVEL_OK);
    reply = expect(f->b, ask_read("g"), GAVEL_OK);
    assert_false(reply.expired);
    assert_int_equal(reply.record.lease_ms, 50000);
    assert_in_range(reply.remaining_ms, 40000, 50000 + DRIFT_OF(50000));
    assert_int_equal(reply.record.epoch, renew.record.epoch);
}

static void test_a_renewal_by_a_non_holder_is_refused(void **state)
{
    struct fixture *f = *state;
    uint64_t epoch;

    (void)expect(f->b, ask_renew("g", "two", 2, 1), GAVEL_ERR_NOT_HOLDER); /* there is nothing to renew */
    epoch = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;
    (void)expect(f->b, ask_renew("g", "two", 1, epoch), GAVEL_ERR_NOT_HOLDER);
    (void)expect(f->b, ask_renew("g", "one", 2, epoch), GAVEL_ERR_NOT_HOLDER); /* its id, another claim */
    (void)expect(f->b, ask_renew("g", "one", 1, epoch + 1),
                 GAVEL_ERR_NOT_HOLDER); /* an epoch that it does not have */
    (void)expect(f->a, ask_renew("g", "one", 1, epoch), GAVEL_OK);
    (void)expect(f->a, ask_release("g", "one", 1, epoch), GAVEL_OK);
    (void)expect(f->a, ask_renew("g", "one", 1, epoch), GAVEL_ERR_NOT_HOLDER);
}

static void test_a_release_by_a_non_holder_is_refused(void **state)
{
    struct fixture *f = *state;
    uint64_t epoch;

    (void)expect(f->b, ask_release("g", "two", 2, 1), GAVEL_ERR_NOT_HOLDER);
    epoch = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;
    (void)expect(f->b, ask_release("g", "two", 1, epoch), GAVEL_ERR_NOT_HOLDER);
    (void)expect(f->b, ask_release("g", "one", 2, epoch), GAVEL_ERR_NOT_HOLDER);
    (void)expect(f->b, ask_release("g", "one", 1, epoch + 1), GAVEL_ERR_NOT_HOLDER);
    assert_true(expect(f->b, ask_read("g"), GAVEL_OK).record.held);
    (void)expect(f->a, ask_release("g", "one", 1, epoch), GAVEL_OK);
    (void)expect(f->a, ask_release("g", "one", 1, epoch), GAVEL_ERR_NOT_HOLDER);
}

static void test_a_release_names_a_successor_until_the_next_claim(void **state)
{
    struct fixture *f = *state;
    uint64_t epoch = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;
    struct store_request release = ask_release("g", "one", 1, epoch);
    struct store_reply seen;

    (void)strcpy(release.record.successor, "two");
    (void)expect(f->a, release, GAVEL_OK);
    seen = expect(f->b, ask_read("g"), GAVEL_OK);
    assert_string_equal(seen.record.successor, "two");
    assert_string_equal(seen.record.holder, "one"); /* tells of the last mandate */
    (void)expect(f->b, ask_claim("g", "two", 2, seen.record.version), GAVEL_OK);
    assert_string_equal(expect(f->a, ask_read("g"), GAVEL_OK).record.successor, "");
}

/* Whoever ends the work of a holder that was killed releases for it, by its nonce, and says so. */
static void test_a_release_for_the_dead_is_told_from_one_that_was_given_up(void **state)
{
    const struct fixture *f = *state;
    struct store_reply claimed = expect(f->a, ask_claim("g", "a", 1, 0), GAVEL_OK), seen;
    struct store_request release = ask_release("g", "a", 1, 0),
                         forced = ask_wish("g", claimed.record.epoch, "");

    assert_int_equal(claimed.record.loss, GAVEL_LOSS_NONE);
    forced.record.wish_force = true; /* the mark must not be taken for this, nor this for the mark */
    (void)expect(f->a, forced, GAVEL_OK);
    assert_true(expect(f->b, ask_read("g"), GAVEL_OK).record.wish_force);
    release.record.loss = GAVEL_LOSS_KILLED;
    release.record.nonce.low++;
    (void)expect(f->b, release, GAVEL_ERR_NOT_HOLDER);
    assert_true(expect(f->b, ask_read("g"), GAVEL_OK).record.held);
    release.record.nonce.low--;
    (void)expect(f->b, release, GAVEL_OK);
    seen = expect(f->a, ask_read("g"), GAVEL_OK);
    assert_false(seen.record.held);
    assert_false(seen.record.done);
    assert_int_equal(seen.record.loss, GAVEL_LOSS_KILLED);
    assert_string_equal(seen.record.holder, "a");
    assert_int_equal(seen.record.epoch, claimed.record.epoch);

    claimed = expect(f->b, ask_claim("g", "b", 1, seen.record.version), GAVEL_OK);
    assert_int_equal(claimed.record.loss, GAVEL_LOSS_NONE);
    seen = expect(f->a, ask_read("g"), GAVEL_OK);
    assert_false(seen.record.wish_force && seen.record.wish_epoch == seen.record.epoch);
    assert_int_equal(seen.record.loss, GAVEL_LOSS_NONE);
    (void)expect(f->b, ask_release("g", "b", 1, claimed.record.epoch), GAVEL_OK);
    assert_int_equal(expect(f->a, ask_read("g"), GAVEL_OK).record.loss, GAVEL_LOSS_NONE);
}

static void test_a_lost_answer_to_a_claim_is_settled_by_its_nonce(void **state)
{
    struct fixture *f = *state;
    struct store_reply found;
    uint64_t epoch =
        expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch; /* and the answer is lost */

    found = expect(f->a, ask_renew("g", "one", 1, 0), GAVEL_OK);
    assert_int_equal(found.record.epoch, epoch);
    /* The claim of somebody else, or of a namesake, is not taken for one's own. */
    (void)expect(f->b, ask_renew("g", "one", 2, 0), GAVEL_ERR_NOT_HOLDER);
    (void)expect(f->b, ask_renew("g", "two", 1, 0), GAVEL_ERR_NOT_HOLDER);
    /* Sending the same claim again changes nothing. */
    (void)expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_ERR_CONFLICT);
    assert_int_equal(expect(f->a, ask_read("g"), GAVEL_OK).record.epoch, epoch);
    (void)expect(f->a, ask_release("g", "one", 1, 0), GAVEL_OK);
}

static void test_the_version_changes_with_every_write_but_not_with_a_wish(void **state)
{
    struct fixture *f = *state;
    bool renews_silently = store_capabilities(f->a)->renews_silently;
    struct record claimed = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    uint64_t epoch = claimed.epoch;
    uint64_t versions[4] = {claimed.version};

    versions[1] = expect(f->a, ask_renew("g", "one", 1, epoch), GAVEL_OK).record.version;
    (void)expect(f->b, ask_wish("g", epoch, "two"), GAVEL_OK);
    assert_int_equal(expect(f->a, ask_read("g"), GAVEL_OK).record.version, versions[1]);
    versions[2] = expect(f->a, ask_release("g", "one", 1, epoch), GAVEL_OK).record.version;
    versions[3] = expect(f->b, ask_claim("g", "two", 2, versions[2]), GAVEL_OK).record.version;
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < i; j++) {
            if (renews_silently && i == 1) /* whoever waits is not woken for nothing */
                assert_int_equal(versions[i], versions[j]);
            else
                assert_int_not_equal(versions[i], versions[j]);
        }
    }
    assert_int_equal(expect(f->a, ask_read("g"), GAVEL_OK).record.version, versions[3]);
}

static void test_a_wish_reaches_the_holder_and_ends_with_its_epoch(void **state)
{
    struct fixture *f = *state;
    struct store_request wish = ask_wish("g", 1, "two");
    struct store_reply reply;
    uint64_t epoch;

    (void)expect(f->b, wish, GAVEL_ERR_NOT_HOLDER);
    epoch = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;
    wish.record.wish_epoch = epoch;
    wish.record.wish_force = true;
    (void)expect(f->b, wish, GAVEL_OK);
    reply = expect(f->a, ask_renew("g", "one", 1, epoch), GAVEL_OK);
    assert_int_equal(reply.record.wish_epoch, epoch);
    assert_true(reply.record.wish_force);
    assert_string_equal(reply.record.wish_successor, "two");
    (void)expect(f->a, ask_release("g", "one", 1, epoch), GAVEL_OK);
    (void)expect(f->b, ask_wish("g", epoch, "three"), GAVEL_ERR_NOT_HOLDER); /* nobody is left to hand over */
    reply = expect(f->a, ask_read("g"), GAVEL_OK);
    reply = expect(f->b, ask_claim("g", "two", 2, reply.record.version), GAVEL_OK);
    assert_int_not_equal(reply.record.wish_epoch, reply.record.epoch);
    (void)expect(f->a, ask_wish("g", epoch, "three"), GAVEL_ERR_NOT_HOLDER); /* of an old epoch */
    assert_int_not_equal(expect(f->a, ask_read("g"), GAVEL_OK).record.wish_epoch, reply.record.epoch);
}

static void test_groups_are_independent_and_listed_in_order(void **state)
{
    struct fixture *f = *state;
    struct store_request request = {.op = STORE_GROUPS, .give_up_at = NEVER};
    struct store_reply reply;

    (void)expect(f->a, ask_claim("beta", "one", 1, 0), GAVEL_OK);
    (void)expect(f->a, ask_claim("alpha", "two", 2, 0), GAVEL_OK);
    (void)expect(f->a, ask_release("alpha", "two", 2, 0), GAVEL_OK);
    (void)expect(f->a, ask_claim("gamma", "one", 3, 0), GAVEL_OK);
    assert_int_equal(store_call(f->b, &request, &reply), GAVEL_OK);
    assert_int_equal(reply.group_count, 3);
    assert_string_equal(reply.groups[0].group, "alpha");
    assert_false(reply.groups[0].record.held);
    assert_string_equal(reply.groups[1].group, "beta");
    assert_string_equal(reply.groups[1].record.holder, "one");
    if (store_capabilities(f->b)->clock == STORE_CLOCK_NONE)
        assert_int_equal(reply.groups[1].remaining_ms, -1);
    else
        assert_true(reply.groups[1].remaining_ms > 0);
    assert_false(reply.groups[1].expired);
    assert_string_equal(reply.groups[2].group, "gamma");
    store_reply_done(&reply);
}

static void expect_listed(struct store *store, const char *prefix, const char *const *names, size_t count)
{
    struct store_request request = {.op = STORE_GROUPS, .give_up_at = NEVER, .prefix = prefix};
    struct store_reply reply;

    assert_int_equal(store_call(store, &request, &reply), GAVEL_OK);
    assert_int_equal(reply.group_count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(reply.groups[i].group, names[i]);
    assert_false(reply.has_more);
    store_reply_done(&reply);
}

static void test_groups_are_listed_by_what_they_begin_with(void **state)
{
    static const char *const names[] = {"once",   "once/x", "once:",         "once:%a", "once:B",
                                        "once:a", "once:b", "once:\u00fc/1", "once;a",  "z"};
    struct fixture *f = *state;
    struct store_request request = {.op = STORE_GROUPS, .give_up_at = NEVER};
    struct store_reply reply;
    char longer[NAME_MAX_BYTES + 2];

    for (size_t i = 0; i < 10; i++)
        (void)expect(f->a, ask_claim(names[i], "one", i, 0), GAVEL_OK);
    expect_listed(f->b, NULL, names, 10);
    expect_listed(f->b, "", names, 10);
    expect_listed(f->b, "once", names, 9);
    expect_listed(f->b, "once:", names + 2, 6);
    expect_listed(f->b, "once/", names + 1, 1);
    expect_listed(f->b, "once:%", names + 3, 1); /* as it is, and not as a pattern */
    expect_listed(f->b, "once:_", NULL, 0);
    expect_listed(f->b, "once:b", names + 6, 1);
    expect_listed(f->b, "once:\u00fc", names + 7, 1);
    expect_listed(f->b, "zz", NULL, 0);
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    request.prefix = longer;
    assert_int_equal(store_call(f->b, &request, &reply), GAVEL_ERR_INVALID);
    store_reply_done(&reply);
}

static void test_a_record_of_a_future_version_is_refused(void **state)
{
    struct fixture *f = *state;
    struct store_request list = {.op = STORE_GROUPS, .give_up_at = NEVER};
    struct store_reply reply;

    (void)expect(f->a, ask_claim("new", "one", 1, 0), GAVEL_OK);
    (void)expect(f->a, ask_claim("old", "one", 2, 0), GAVEL_OK);
    f->driver->write_future_record(f->url, "new");
    (void)expect(f->a, ask_read("new"), GAVEL_ERR_STORE_TOO_NEW);
    (void)expect(f->a, ask_claim("new", "two", 2, 0), GAVEL_ERR_STORE_TOO_NEW);
    (void)expect(f->a, ask_claim("new", "two", 2, 1), GAVEL_ERR_STORE_TOO_NEW);
    (void)expect(f->a, ask_renew("new", "one", 1, 1), GAVEL_ERR_STORE_TOO_NEW);
    (void)expect(f->a, ask_release("new", "one", 1, 1), GAVEL_ERR_STORE_TOO_NEW);
    (void)expect(f->a, ask_wish("new", 1, ""), GAVEL_ERR_STORE_TOO_NEW);
    (void)expect(f->a, ask_renew("old", "one", 2, 0), GAVEL_OK); /* the other groups work on */
    assert_int_equal(store_call(f->b, &list, &reply), GAVEL_OK);
    assert_int_equal(reply.group_count, 1);
    assert_string_equal(reply.groups[0].group, "old");
    store_reply_done(&reply);
}

static void test_waiting_ends_when_the_record_changes(void **state)
{
    struct fixture *f = *state;
    uint64_t version = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record.version;
    gavel_ns began = clock_now();

    store_wait(f->b, "g", 0, began + 120 * NS_PER_S); /* it differs already */
    assert_true(clock_now() - began < 60 * NS_PER_S);
    began = clock_now();
    store_wait(f->b, "g", version, began + 20 * NS_PER_MS);
    assert_true(clock_now() - began >= 20 * NS_PER_MS); /* nothing changed */
    store_wait(f->b, "g", version, began);              /* the past ends at once */
}

const struct conformance_test conformance_mandate_tests[] = {
#define TEST(name, needs)                                                                                    \
    {                                                                                                        \
#name, name, needs                                                                                   \
    }
    TEST(test_nothing_is_found_in_an_empty_store, NEEDS_ELECTION),
    TEST(test_a_claim_is_seen_by_all, NEEDS_ELECTION),
    TEST(test_a_claim_on_a_record_that_someone_made_is_refused, NEEDS_ELECTION),
    TEST(test_a_claim_with_a_stale_version_is_refused, NEEDS_ELECTION),
    TEST(test_the_epoch_grows_over_release_and_takeover, NEEDS_ELECTION),
    TEST(test_the_epoch_grows_over_expiry, NEEDS_CLOCK),
    TEST(test_without_a_clock_a_held_mandate_never_expires, NEEDS_ELECTION | NEEDS_NO_CLOCK),
    TEST(test_the_epoch_is_higher_than_any_that_the_claimant_knows, NEEDS_ELECTION),
    TEST(test_a_running_lease_is_not_claimed_as_expired, NEEDS_CLOCK),
    TEST(test_an_expired_lease_is_claimed_and_its_holder_refused, NEEDS_CLOCK),
    TEST(test_a_renewal_makes_the_lease_run_anew, NEEDS_CLOCK),
    TEST(test_a_renewal_by_a_non_holder_is_refused, NEEDS_ELECTION),
    TEST(test_a_release_by_a_non_holder_is_refused, NEEDS_ELECTION),
    TEST(test_a_release_names_a_successor_until_the_next_claim, NEEDS_ELECTION),
    TEST(test_a_release_for_the_dead_is_told_from_one_that_was_given_up, NEEDS_ELECTION),
    TEST(test_a_lost_answer_to_a_claim_is_settled_by_its_nonce, NEEDS_ELECTION),
    TEST(test_the_version_changes_with_every_write_but_not_with_a_wish, NEEDS_ELECTION),
    TEST(test_a_wish_reaches_the_holder_and_ends_with_its_epoch, NEEDS_ELECTION),
    TEST(test_groups_are_independent_and_listed_in_order, NEEDS_ELECTION),
    TEST(test_groups_are_listed_by_what_they_begin_with, NEEDS_ELECTION),
    TEST(test_a_record_of_a_future_version_is_refused, NEEDS_FORMAT),
    TEST(test_waiting_ends_when_the_record_changes, NEEDS_ELECTION),
    {0},
};
