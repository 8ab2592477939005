/* SPDX-License-Identifier: Apache-2.0 */

/* Work that is done for good: who may say so, and that nobody claims its group again. */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

static struct store_request ask_finish(const char *group, const char *id, uint64_t n, uint64_t epoch)
{
    struct store_request request = ask_release(group, id, n, epoch);

    request.record.done = true;
    return request;
}

static struct store_request ask_reopen(const char *group, uint64_t expected_version)
{
    struct store_request request = ask_read(group);

    request.op = STORE_REOPEN;
    request.expected_version = expected_version;
    return request;
}

static void test_a_done_release_is_seen_by_all_with_who_and_which_epoch(void **state)
{
    struct fixture *f = *state;
    struct store_reply reply;
    uint64_t epoch;

    reply = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK);
    assert_false(reply.record.done);
    epoch = reply.record.epoch;
    reply = expect(f->a, ask_finish("g", "one", 1, epoch), GAVEL_OK);
    assert_true(reply.record.done);
    reply = expect(f->b, ask_read_own("g", "one", 1), GAVEL_OK);
    assert_true(reply.found);
    assert_true(reply.record.done);
    assert_false(reply.record.held);
    assert_int_equal(reply.record.epoch, epoch);
    assert_string_equal(reply.record.holder, "one");
    assert_true(nonce_equal(reply.record.nonce, test_nonce("one", 1)));
}

static void test_a_done_group_is_never_claimed_again(void **state)
{
    struct fixture *f = *state;
    struct store_request claim;
    struct store_reply done;
    struct record held = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;

    done = expect(f->a, ask_finish("g", "one", 1, held.epoch), GAVEL_OK);
    claim = ask_claim("g", "two", 2, done.record.version);
    (void)expect(f->b, claim, GAVEL_ERR_DONE);
    claim.must_be_expired = true;
    claim.record.epoch = held.epoch + 40;
    (void)expect(f->b, claim, GAVEL_ERR_DONE);
    (void)expect(f->b, ask_claim("g", "two", 2, 0), GAVEL_ERR_DONE);
    (void)expect(f->b, ask_claim("g", "two", 2, held.version), GAVEL_ERR_DONE);
    (void)expect(f->a, ask_claim("g", "one", 1, done.record.version), GAVEL_ERR_DONE); /* nor by who did it */
    (void)expect(f->a, ask_renew("g", "one", 1, held.epoch), GAVEL_ERR_NOT_HOLDER);
    (void)expect(f->b, ask_wish("g", held.epoch, "two"), GAVEL_ERR_NOT_HOLDER);
    assert_int_equal(expect(f->b, ask_read("g"), GAVEL_OK).record.version, done.record.version);
}

static void test_the_refusal_of_a_claim_names_who_did_the_work(void **state)
{
    struct fixture *f = *state;
    uint64_t epoch = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;
    struct store_reply reply;
    char who[64];

    (void)expect(f->a, ask_finish("g", "one", 1, epoch), GAVEL_OK);
    reply = expect(f->b, ask_claim("g", "two", 2, 0), GAVEL_ERR_DONE);
    assert_true(reply.record.done);
    assert_int_equal(reply.record.epoch, epoch);
    assert_string_equal(reply.record.holder, "one");
    (void)snprintf(who, sizeof who, "\"one\" with epoch %llu;", (unsigned long long)epoch);
    assert_non_null(strstr(reply.message, who));
}

static void test_only_the_holder_says_that_the_work_is_done(void **state)
{
    struct fixture *f = *state;
    uint64_t version;
    uint64_t epoch;
    uint64_t next;

    (void)expect(f->b, ask_finish("g", "two", 2, 1), GAVEL_ERR_NOT_HOLDER);
    epoch = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;
    (void)expect(f->b, ask_finish("g", "two", 1, epoch), GAVEL_ERR_NOT_HOLDER);
    (void)expect(f->b, ask_finish("g", "one", 2, epoch), GAVEL_ERR_NOT_HOLDER); /* its id, another claim */
    (void)expect(f->b, ask_finish("g", "one", 1, epoch + 1), GAVEL_ERR_NOT_HOLDER);
    version = expect(f->a, ask_release("g", "one", 1, epoch), GAVEL_OK).record.version;
    (void)expect(f->a, ask_finish("g", "one", 1, epoch),
                 GAVEL_ERR_NOT_HOLDER); /* it has given it up before */
    next = expect(f->b, ask_claim("g", "two", 2, version), GAVEL_OK).record.epoch;
    (void)expect(f->a, ask_finish("g", "one", 1, epoch), GAVEL_ERR_NOT_HOLDER); /* another has taken over */
    assert_false(expect(f->b, ask_read("g"), GAVEL_OK).record.done);
    assert_int_equal(expect(f->b, ask_finish("g", "two", 2, next), GAVEL_OK).record.epoch, next);
}

static void test_a_lost_answer_to_a_done_release_is_settled_by_its_nonce(void **state)
{
    struct fixture *f = *state;
    struct store_reply reply;
    uint64_t epoch = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;

    (void)expect(f->a, ask_finish("g", "one", 1, 0),
                 GAVEL_OK); /* whichever epoch my nonce got; the answer is lost */
    (void)expect(f->a, ask_finish("g", "one", 1, 0), GAVEL_ERR_NOT_HOLDER);
    reply = expect(f->a, ask_read_own("g", "one", 1), GAVEL_OK);
    assert_true(reply.record.done);
    assert_true(nonce_equal(reply.record.nonce, test_nonce("one", 1)));
    /* A plain release that arrives late does not open it again. */
    (void)expect(f->a, ask_release("g", "one", 1, epoch), GAVEL_ERR_NOT_HOLDER);
    assert_true(expect(f->b, ask_read("g"), GAVEL_OK).record.done);
}

static void test_a_done_group_is_listed_and_the_others_go_on(void **state)
{
    struct fixture *f = *state;
    struct store_request list = {.op = STORE_GROUPS, .give_up_at = NEVER};
    struct store_reply reply;

    (void)expect(f->a, ask_claim("done", "one", 1, 0), GAVEL_OK);
    (void)expect(f->a, ask_claim("open", "one", 2, 0), GAVEL_OK);
    (void)expect(f->a, ask_finish("done", "one", 1, 0), GAVEL_OK);
    assert_int_equal(store_call(f->b, &list, &reply), GAVEL_OK);
    assert_int_equal(reply.group_count, 2);
    assert_string_equal(reply.groups[0].group, "done");
    assert_true(reply.groups[0].record.done);
    assert_false(reply.groups[0].record.held);
    assert_false(reply.groups[1].record.done);
    assert_true(reply.groups[1].record.held);
    store_reply_done(&reply);
    (void)expect(f->b, ask_renew("open", "one", 2, 0), GAVEL_OK);
}

static void test_a_group_that_is_opened_again_goes_on_with_its_epochs(void **state)
{
    struct fixture *f = *state;
    struct record claimed;
    uint64_t version;
    uint64_t epoch;

    (void)expect(f->b, ask_reopen("g", 0), GAVEL_ERR_CONFLICT); /* there is nothing to open */
    claimed = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    (void)expect(f->b, ask_reopen("g", claimed.version), GAVEL_ERR_CONFLICT);
    version = expect(f->a, ask_finish("g", "one", 1, claimed.epoch), GAVEL_OK).record.version;
    (void)expect(f->b, ask_reopen("g", version + 1), GAVEL_ERR_CONFLICT);
    (void)expect(f->b, ask_reopen("g", version), GAVEL_OK);
    (void)expect(f->b, ask_reopen("g", version), GAVEL_ERR_CONFLICT); /* sent twice */
    version = expect(f->a, ask_read("g"), GAVEL_OK).record.version;
    epoch = expect(f->b, ask_claim("g", "two", 2, version), GAVEL_OK).record.epoch;
    assert_true(epoch > claimed.epoch);
    assert_true(expect(f->b, ask_finish("g", "two", 2, epoch), GAVEL_OK).record.done);
    (void)expect(f->a, ask_reopen("g", version), GAVEL_ERR_CONFLICT); /* does not undo the success after it */
}

/* Where it is not removed, the store keeps none or removes it in its own time. */
static void test_a_released_record_is_removed(void **state)
{
    struct fixture *f = *state;
    bool is_conditional = f->a->driver->remove && strcmp(f->driver->name, "s3") != 0;
    gavel_ns until = clock_now() + 30 * NS_PER_S;
    uint64_t epoch = expect(f->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;
    uint64_t held = expect(f->a, ask_read("g"), GAVEL_OK).record.version;
    uint64_t released;

    (void)expect(f->a, ask_claim("gg", "one", 1, 0), GAVEL_OK);
    released = expect(f->a, ask_release("g", "one", 1, epoch), GAVEL_OK).record.version;
    if (is_conditional)
        assert_int_equal(store_remove(f->a, "g", held, until, NULL), GAVEL_OK);
    assert_true(expect(f->b, ask_read("g"), GAVEL_OK).found);
    assert_int_equal(store_remove(f->a, "g", released, until, NULL), GAVEL_OK);
    assert_int_equal(expect(f->b, ask_read("g"), GAVEL_OK).found, !f->a->driver->remove);
    assert_true(expect(f->b, ask_read("gg"), GAVEL_OK).record.held);
    if (f->a->driver->remove)
        (void)expect(f->b, ask_claim("g", "two", 2, 0), GAVEL_OK);
}

const struct conformance_test conformance_done_tests[] = {
#define TEST(name, needs)                                                                                    \
    {                                                                                                        \
#name, name, needs                                                                                   \
    }
    TEST(test_a_done_release_is_seen_by_all_with_who_and_which_epoch, NEEDS_ELECTION),
    TEST(test_a_done_group_is_never_claimed_again, NEEDS_ELECTION),
    TEST(test_the_refusal_of_a_claim_names_who_did_the_work, NEEDS_ELECTION),
    TEST(test_only_the_holder_says_that_the_work_is_done, NEEDS_ELECTION),
    TEST(test_a_lost_answer_to_a_done_release_is_settled_by_its_nonce, NEEDS_ELECTION),
    TEST(test_a_done_group_is_listed_and_the_others_go_on, NEEDS_ELECTION),
    TEST(test_a_group_that_is_opened_again_goes_on_with_its_epochs, NEEDS_ELECTION),
    TEST(test_a_released_record_is_removed, NEEDS_ELECTION),
    {0},
};
