/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the driver `s3` makes of the answers of servers: those that ignore
 * conditions, fail after they have written, refuse for whatever reason, want
 * an ETag in their own form; and how many requests things take.
 */
#include "fake.h"
#include "store/conformance/conformance.h"
#include "store/s3/cost.h"
#include "store/s3/s3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STATE "p/plugin=coordinator/namespace=g/state.json"

struct bench {
    struct s3_fake fake;
    char url[256];
    struct store *a;
    struct store *b;
};

static void set_environment(void)
{
    static const char *const others[] = {
        "AWS_SESSION_TOKEN", "AWS_REGION",  "AWS_DEFAULT_REGION",          "AWS_ENDPOINT_URL_S3",
        "AWS_ENDPOINT_URL",  "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CA_BUNDLE"};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(unsetenv(others[i]), 0);
    assert_int_equal(setenv("AWS_ACCESS_KEY_ID", "AKIATEST", 1), 0);
    assert_int_equal(setenv("AWS_SECRET_ACCESS_KEY", "testsecret", 1), 0);
}

static int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);

    assert_non_null(bench);
    set_environment();
    s3_fake_start(&bench->fake);
    s3_fake_url(&bench->fake, bench->url, sizeof bench->url);
    assert_int_equal(store_open(bench->url, &bench->a, NULL), GAVEL_OK);
    assert_int_equal(store_open(bench->url, &bench->b, NULL), GAVEL_OK);
    (void)s3_fake_counts(&bench->fake);
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    store_close(bench->a);
    store_close(bench->b);
    s3_fake_stop(&bench->fake);
    free(bench);
    return 0;
}

static void expect_counts(struct bench *b, int puts, int gets, int lists)
{
    struct fake_counts counts = s3_fake_counts(&b->fake);

    assert_int_equal(counts.puts, puts);
    assert_int_equal(counts.gets, gets);
    assert_int_equal(counts.lists, lists);
}

static void expect_probe(struct bench *b, enum gavel_status status, const char *says)
{
    struct gavel_error error = {0};

    assert_int_equal(store_probe(b->a, &error), status);
    if (*says && !strstr(error.message, says))
        fail_msg("\"%s\" is not in: %s", says, error.message);
    assert_int_equal(b->fake.count, 0); /* nothing is left behind */
}

static void test_a_server_that_keeps_conditions_passes_the_probe(void **state)
{
    struct bench *b = *state;

    expect_probe(b, GAVEL_OK, "");
    assert_int_equal(((struct s3_store *)b->a)->quoting, S3_QUOTED);
    b->fake.wants_bare = true;
    expect_probe(b, GAVEL_OK, "");
    assert_int_equal(((struct s3_store *)b->a)->quoting, S3_BARE);
}

static void test_a_server_that_ignores_conditions_is_refused(void **state)
{
    struct bench *b = *state;

    b->fake.ignores_if_none_match = b->fake.ignores_if_match = true;
    expect_probe(b, GAVEL_ERR_STORE_UNSUPPORTED, "ignores If-None-Match");
    b->fake.ignores_if_none_match = false;
    expect_probe(b, GAVEL_ERR_STORE_UNSUPPORTED, "ignores If-Match");
    b->fake.ignores_if_match = false;
    b->fake.has_one_etag = true;
    expect_probe(b, GAVEL_ERR_STORE_UNSUPPORTED, "the same ETag");
    b->fake.has_one_etag = false;
    s3_fake_trouble(&b->fake, FAKE_REFUSES, 1, 501, "NotImplemented");
    expect_probe(b, GAVEL_ERR_STORE_UNSUPPORTED, "If-None-Match");
    expect_probe(b, GAVEL_OK, "");
}

static void test_a_probe_that_fails_for_the_moment_may_be_tried_again(void **state)
{
    struct bench *b = *state;

    s3_fake_trouble(&b->fake, FAKE_WRITES_AND_FAILS, 1, 500, "InternalError");
    expect_probe(b, GAVEL_ERR_STORE_UNAVAILABLE, "tried again");
    s3_fake_trouble(&b->fake, FAKE_CUTS, 1, 0, "");
    expect_probe(b, GAVEL_ERR_STORE_UNAVAILABLE, "");
    s3_fake_trouble(&b->fake, FAKE_REFUSES, 1, 403, "AccessDenied");
    expect_probe(b, GAVEL_ERR_STORE_DENIED, "put");
    expect_probe(b, GAVEL_OK, "");
}

static void test_without_a_probe_the_form_of_etags_is_found_out(void **state)
{
    struct bench *b = *state;
    uint64_t epoch = expect(b->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;

    b->fake.wants_bare = true;
    (void)s3_fake_counts(&b->fake);
    (void)expect(b->a, ask_renew("g", "one", 1, epoch), GAVEL_OK);
    expect_counts(b, 2, 1, 0); /* quoted, a look, bare */
    (void)expect(b->a, ask_renew("g", "one", 1, epoch), GAVEL_OK);
    expect_counts(b, 1, 0, 0); /* once and for all */
    (void)expect(b->b, ask_release("g", "one", 1, epoch), GAVEL_OK);
    assert_false(expect(b->a, ask_read("g"), GAVEL_OK).record.held);
}

/* Both begin without knowing, side by side, and one finds out before the other is refused. */
static void test_a_batch_finds_out_the_form_of_etags_together(void **state)
{
    struct bench *b = *state;
    struct store_request requests[] = {ask_renew("g", "one", 1, 0), ask_renew("h", "one", 1, 0)};
    struct store_reply replies[2];

    (void)expect(b->a, ask_claim("g", "one", 1, 0), GAVEL_OK);
    (void)expect(b->a, ask_claim("h", "one", 1, 0), GAVEL_OK);
    b->fake.wants_bare = true;
    b->fake.late = "namespace=h/state.json";
    store_run(b->a, requests, replies, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(replies[i].status, GAVEL_OK);
        store_reply_done(&replies[i]);
    }
}

/* Each ends as if nothing had happened: the write is found when it is read back. */
static void test_a_write_whose_answer_is_a_failure_is_found_again(void **state)
{
    static const struct {
        enum fake_trouble trouble;
        int status;
        const char *code;
    } troubles[] = {
        {FAKE_WRITES_AND_FAILS, 500, "InternalError"},
        {FAKE_WRITES_AND_FAILS, 502, ""},
        {FAKE_WRITES_AND_FAILS, 503, "SlowDown"},
        {FAKE_WRITES_AND_FAILS, 503, ""},
        {FAKE_WRITES_AND_FAILS, 504, ""},
        {FAKE_WRITES_AND_FAILS, 412, "PreconditionFailed"}, /* sent twice by somebody on the way */
        {FAKE_WRITES_AND_FAILS, 409, "ConditionalRequestConflict"},
        {FAKE_WRITES_AND_CUTS, 0, ""}};
    struct bench *b = *state;
    struct record record = {0};

    for (size_t i = 0; i < sizeof troubles / sizeof *troubles; i++) {
        struct record claimed;

        s3_fake_trouble(&b->fake, troubles[i].trouble, 1, troubles[i].status, troubles[i].code);
        claimed = expect(b->a, ask_claim("g", "one", i, record.version), GAVEL_OK).record;
        assert_true(claimed.epoch > record.epoch);
        s3_fake_trouble(&b->fake, troubles[i].trouble, 1, troubles[i].status, troubles[i].code);
        record = expect(b->a, ask_renew("g", "one", i, claimed.epoch), GAVEL_OK).record;
        assert_int_equal(record.version, claimed.version + 1);
        s3_fake_trouble(&b->fake, troubles[i].trouble, 1, troubles[i].status, troubles[i].code);
        (void)expect(b->a, ask_heartbeat("g", "one", 7, i + 1), GAVEL_OK);
        s3_fake_trouble(&b->fake, troubles[i].trouble, 1, troubles[i].status, troubles[i].code);
        record = expect(b->a, ask_release("g", "one", i, claimed.epoch), GAVEL_OK).record;
        assert_false(record.held);
        assert_int_equal(expect(b->b, ask_read("g"), GAVEL_OK).record.version, record.version);
    }
}

static void test_a_write_that_was_not_done_is_a_failure_and_nothing_has_changed(void **state)
{
    static const struct {
        enum fake_trouble trouble;
        int status;
        const char *code;
    } troubles[] = {
        {FAKE_REFUSES, 500, "InternalError"}, {FAKE_REFUSES, 503, "SlowDown"}, {FAKE_CUTS, 0, ""}};
    struct bench *b = *state;
    struct record held = expect(b->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;

    for (size_t i = 0; i < sizeof troubles / sizeof *troubles; i++) {
        s3_fake_trouble(&b->fake, troubles[i].trouble, 1, troubles[i].status, troubles[i].code);
        (void)expect(b->a, ask_renew("g", "one", 1, held.epoch), GAVEL_ERR_STORE_UNAVAILABLE);
        s3_fake_trouble(&b->fake, troubles[i].trouble, 1, troubles[i].status, troubles[i].code);
        (void)expect(b->b, ask_claim("h", "two", 2, 0), GAVEL_ERR_STORE_UNAVAILABLE);
        assert_int_equal(expect(b->b, ask_read("g"), GAVEL_OK).record.version, held.version);
        assert_false(expect(b->b, ask_read("h"), GAVEL_OK).found);
    }
    (void)expect(b->a, ask_renew("g", "one", 1, held.epoch), GAVEL_OK);
}

static void test_an_overloaded_server_is_asked_no_more_than_what_became_of_it(void **state)
{
    struct bench *b = *state;
    uint64_t epoch = expect(b->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;

    (void)s3_fake_counts(&b->fake);
    s3_fake_trouble(&b->fake, FAKE_REFUSES, 1, 503, "SlowDown");
    (void)expect(b->a, ask_renew("g", "one", 1, epoch), GAVEL_ERR_STORE_UNAVAILABLE);
    expect_counts(b, 1, 1, 0);
    s3_fake_trouble(&b->fake, FAKE_REFUSES, 1, 429, ""); /* no 5xx: it was not carried out */
    (void)expect(b->a, ask_renew("g", "one", 1, epoch), GAVEL_ERR_STORE_UNAVAILABLE);
    expect_counts(b, 1, 0, 0);
}

/* Somebody else writes at the same instant, again and again, for a while or for good. */
static void test_a_conflict_that_passes_is_settled_and_one_that_stays_is_given_up(void **state)
{
    struct bench *b = *state;
    uint64_t epoch = expect(b->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;

    (void)expect(b->a, ask_renew("g", "one", 1, epoch), GAVEL_OK); /* the form of ETags is known */
    s3_fake_trouble(&b->fake, FAKE_REFUSES, 2, 409, "ConditionalRequestConflict");
    (void)expect(b->a, ask_renew("g", "one", 1, epoch), GAVEL_OK);
    s3_fake_trouble(&b->fake, FAKE_REFUSES, 1000, 409, "ConditionalRequestConflict");
    (void)s3_fake_counts(&b->fake);
    (void)expect(b->a, ask_renew("g", "one", 1, epoch), GAVEL_ERR_STORE_UNAVAILABLE);
    assert_in_range(s3_fake_counts(&b->fake).puts, 2, 20);
}

/* The write of a wish between our look and our renewal costs a look, not the mandate. */
static void test_a_renewal_goes_on_over_what_others_wrote(void **state)
{
    struct bench *b = *state;
    struct record held = expect(b->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    struct record renewed;

    (void)expect(b->b, ask_wish("g", held.epoch, "two"), GAVEL_OK);
    (void)s3_fake_counts(&b->fake);
    renewed = expect(b->a, ask_renew("g", "one", 1, held.epoch), GAVEL_OK).record;
    assert_int_equal(renewed.version, held.version + 1);
    assert_string_equal(renewed.wish_successor, "two");
    expect_counts(b, 2, 1, 0);
}

/* A leader at its maximum claims its own record, with the nonce it has, for a new epoch. A refusal on the way
 * must not make it take the mandate it has for the one it asks for. */
static void test_a_new_epoch_is_not_mistaken_for_the_old_one(void **state)
{
    struct bench *b = *state;
    struct record held = expect(b->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    struct record again;

    (void)expect(b->b, ask_wish("g", held.epoch, "two"), GAVEL_OK); /* another ETag, the same version */
    again = expect(b->a, ask_claim("g", "one", 1, held.version), GAVEL_OK).record;
    assert_true(again.epoch > held.epoch);
    s3_fake_trouble(&b->fake, FAKE_REFUSES, 1, 412, "PreconditionFailed");
    held = expect(b->a, ask_claim("g", "one", 1, again.version), GAVEL_OK).record;
    assert_true(held.epoch > again.epoch);
    s3_fake_trouble(&b->fake, FAKE_CUTS, 1, 0, "");
    (void)expect(b->a, ask_claim("g", "one", 1, held.version), GAVEL_ERR_STORE_UNAVAILABLE);
}

static void test_every_refusal_says_what_to_do(void **state)
{
    static const struct {
        int number;
        const char *code;
        enum gavel_status status;
        const char *says;
    } refusals[] = {
        {404, "NoSuchBucket", GAVEL_ERR_STORE_DENIED, "create it"},
        {403, "InvalidAccessKeyId", GAVEL_ERR_STORE_DENIED, "AWS_ACCESS_KEY_ID"},
        {403, "SignatureDoesNotMatch", GAVEL_ERR_STORE_DENIED, "AWS_SECRET_ACCESS_KEY"},
        {403, "AccessDenied", GAVEL_ERR_STORE_DENIED, "get, put, delete and list"},
        {400, "ExpiredToken", GAVEL_ERR_STORE_DENIED, "expired"},
        {403, "RequestTimeTooSkewed", GAVEL_ERR_STORE_UNAVAILABLE, "clocks"},
        {400, "AuthorizationHeaderMalformed", GAVEL_ERR_STORE_DENIED, "region="},
        {301, "PermanentRedirect", GAVEL_ERR_STORE_DENIED, "region="},
        {301, "", GAVEL_ERR_STORE_DENIED, "region="},
        {307, "", GAVEL_ERR_STORE_DENIED, "endpoint="},
        {403, "", GAVEL_ERR_STORE_DENIED, "denies us access"},
        {401, "Odd", GAVEL_ERR_STORE_DENIED, "Odd"},
        {503, "SlowDown", GAVEL_ERR_STORE_UNAVAILABLE, "slow down"},
        {503, "", GAVEL_ERR_STORE_UNAVAILABLE, "overloaded"},
        {429, "TooManyRequests", GAVEL_ERR_STORE_UNAVAILABLE, "overloaded"},
        {500, "InternalError", GAVEL_ERR_STORE_UNAVAILABLE, "InternalError"},
        {418, "", GAVEL_ERR_IO, "418"},
    };
    struct bench *b = *state;

    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct store_request requests[] = {ask_read("g"), ask_claim("g", "one", 1, 0),
                                                 ask_candidates("g")};
        struct gavel_error error = {0};
        struct store *store = NULL;

        b->fake.is_denying = true;
        b->fake.status = refusals[i].number;
        b->fake.code = refusals[i].code;
        assert_int_equal(store_open(b->url, &store, &error), refusals[i].status);
        if (!strstr(error.message, refusals[i].says))
            fail_msg("\"%s\" is not in: %s", refusals[i].says, error.message);
        for (size_t k = 0; k < 3; k++) {
            struct store_reply reply;

            assert_int_equal(store_call(b->a, &requests[k], &reply), refusals[i].status);
            assert_non_null(strstr(reply.message, refusals[i].says));
            store_reply_done(&reply);
        }
    }
    b->fake.is_denying = false;
    (void)expect(b->a, ask_claim("g", "one", 1, 0), GAVEL_OK); /* without opening it again */
}

static void test_what_is_no_object_store_is_refused(void **state)
{
    struct bench *b = *state;
    struct gavel_error error = {0};
    struct store *store = NULL;

    b->fake.is_no_s3 = true;
    assert_int_equal(store_open(b->url, &store, &error), GAVEL_ERR_STORE_UNSUPPORTED);
    assert_non_null(strstr(error.message, "not an S3 server"));
    (void)expect(b->a, ask_read("g"), GAVEL_ERR_STORE_DAMAGED);
    (void)expect(b->a, ask_candidates("g"), GAVEL_ERR_STORE_UNSUPPORTED);
}

static void test_a_state_that_gavel_did_not_write_is_not_overwritten(void **state)
{
    static const char *const texts[] = {
        "", "{", "[]", "{\"format\": 1}", "{\"format\": 1, \"leaderId\": 5}", "null"};
    struct bench *b = *state;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        s3_fake_write(&b->fake, STATE, texts[i]);
        (void)expect(b->a, ask_read("g"), GAVEL_ERR_STORE_DAMAGED);
        (void)expect(b->a, ask_claim("g", "one", 1, 0), GAVEL_ERR_STORE_DAMAGED);
        assert_string_equal(b->fake.objects[0].body, texts[i]);
    }
    s3_fake_write(&b->fake, STATE, "{\"format\": 99}");
    (void)expect(b->a, ask_claim("g", "one", 1, 0), GAVEL_ERR_STORE_TOO_NEW);
}

static size_t listed(struct store *store, const char *group)
{
    struct store_request list = ask_candidates(group);
    struct store_reply reply;
    size_t count;

    assert_int_equal(store_call(store, &list, &reply), GAVEL_OK);
    count = reply.registration_count;
    for (size_t i = 1; i < count; i++)
        assert_true(strcmp(reply.registrations[i - 1].id, reply.registrations[i].id) < 0);
    store_reply_done(&reply);
    return count;
}

static void test_what_is_no_registration_is_left_out_of_the_list(void **state)
{
    struct bench *b = *state;

    (void)expect(b->a, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    (void)expect(b->a, ask_heartbeat("g", "two", 2, 1), GAVEL_OK);
    s3_fake_write(&b->fake, "p/plugin=coordinator/namespace=g/workers/worker=bad.json", "{}");
    s3_fake_write(&b->fake, "p/plugin=coordinator/namespace=g/workers/worker=new.json", "{\"format\": 2}");
    s3_fake_write(&b->fake, "p/plugin=coordinator/namespace=g/workers/worker=odd%.json",
                  b->fake.objects[0].body);
    s3_fake_write(&b->fake, "p/plugin=coordinator/namespace=g/workers/worker=other.json",
                  b->fake.objects[0].body);
    s3_fake_write(&b->fake, "p/plugin=coordinator/namespace=g/workers/worker=sub/dir.json", "x");
    assert_int_equal(listed(b->b, "g"), 2);
}

static void test_a_list_of_many_pages_is_whole(void **state)
{
    struct bench *b = *state;

    for (unsigned i = 0; i < 11; i++) {
        char id[16];

        (void)snprintf(id, sizeof id, "c%u", i);
        (void)expect(b->a, ask_heartbeat("g", id, i + 1, 1), GAVEL_OK);
    }
    ((struct s3_store *)b->b)->page_size = 3;
    (void)s3_fake_counts(&b->fake);
    assert_int_equal(listed(b->b, "g"), 11);
    expect_counts(b, 0, 11, 4);
    assert_int_equal(listed(b->b, "g"), 11);
    expect_counts(b, 0, 0, 4); /* nothing has changed, so nothing is read */
    (void)expect(b->a, ask_heartbeat("g", "c4", 5, 2), GAVEL_OK);
    (void)s3_fake_counts(&b->fake);
    assert_int_equal(listed(b->b, "g"), 11);
    expect_counts(b, 0, 0, 4); /* a beat and nothing else */
}

/* The registration of that id in the list of the group; it is there. */
static struct registration seen_as(struct store *store, const char *id)
{
    struct store_request list = ask_candidates("g");
    struct registration found = {0};
    struct store_reply reply;

    assert_int_equal(store_call(store, &list, &reply), GAVEL_OK);
    for (size_t i = 0; i < reply.registration_count; i++)
        if (strcmp(reply.registrations[i].id, id) == 0)
            found = reply.registrations[i];
    store_reply_done(&reply);
    assert_string_equal(found.id, id);
    return found;
}

static void test_a_beat_is_seen_in_the_list_and_a_change_is_read(void **state)
{
    struct bench *b = *state;
    struct store_request beat = ask_heartbeat("g", "one", 1, 1);

    beat.registration.since_wall_ms =
        1234; /* nothing that differs from run to run: one in a thousand changes */
    beat.registration.process = (struct process_id){0}; /* does not show, and none of these */
    (void)expect(b->a, beat, GAVEL_OK);
    assert_int_equal(seen_as(b->b, "one").beats, 1);
    for (beat.registration.beats = 2; beat.registration.beats < 6; beat.registration.beats++) {
        (void)expect(b->a, beat, GAVEL_OK);
        (void)s3_fake_counts(&b->fake);
        assert_int_equal(seen_as(b->b, "one").beats, beat.registration.beats);
        expect_counts(b, 0, 0, 1);
    }
    beat.registration.priority = 7; /* whatever it is that changes */
    (void)expect(b->a, beat, GAVEL_OK);
    assert_int_equal(seen_as(b->b, "one").priority, 7);
    beat.registration.eligible = false;
    (void)expect(b->a, beat, GAVEL_OK);
    assert_false(seen_as(b->b, "one").eligible);
    (void)strcpy(beat.registration.address, "10.0.0.7:41000");
    (void)expect(b->a, beat, GAVEL_OK);
    assert_string_equal(seen_as(b->b, "one").address, "10.0.0.7:41000");
    beat.replaces_instance = 1;
    beat.registration.instance = 2;
    (void)expect(b->a, beat, GAVEL_OK);
    assert_int_equal(seen_as(b->b, "one").instance, 2);
}

/* The heartbeats of a leader and two standbys, as the candidates send them, against the sum that people are
 * shown. */
static void test_things_take_as_many_requests_as_is_said(void **state)
{
    enum { BEATS = 2 * S3_LISTS_PER_READ };
    struct bench *b = *state;
    struct gavel_settings settings = {
        .heartbeat_ms = 1000, .election_interval_ms = 1000, .candidate_timeout_ms = 1000};
    struct s3_requests hour = s3_requests_per_hour(&settings, 2, 1);
    struct store *c;
    struct store *stores[3] = {b->a, b->b, NULL};
    static const char *const ids[] = {"one", "two", "three"};
    uint64_t epoch = expect(b->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;

    assert_int_equal(store_open(b->url, &c, NULL), GAVEL_OK);
    stores[2] = c;
    (void)expect(b->a, ask_renew("g", "one", 1, epoch), GAVEL_OK);
    for (uint64_t beat = 0; beat <= BEATS; beat++) {
        (void)expect(b->a, ask_renew("g", "one", 1, epoch), GAVEL_OK);
        for (size_t i = 0; i < 3; i++)
            (void)expect(stores[i], ask_heartbeat("g", ids[i], i + 1, beat + 1), GAVEL_OK);
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(listed(stores[i], "g"), 3);
        (void)expect(b->b, ask_read("g"), GAVEL_OK);
        (void)expect(c, ask_read("g"), GAVEL_OK);
        if (beat == 0)
            (void)s3_fake_counts(&b->fake); /* the first is only to get going */
    }
    expect_counts(b, (int)(hour.puts / 3600 * BEATS + 0.5), (int)(hour.gets / 3600 * BEATS + 0.5),
                  (int)(hour.lists / 3600 * BEATS + 0.5));
    store_close(c);
}

static void test_a_session_token_is_sent_and_signed(void **state)
{
    struct bench *b = *state;
    struct store *store;

    assert_int_equal(setenv("AWS_SESSION_TOKEN", "to/ken==", 1), 0);
    assert_int_equal(store_open(b->url, &store, NULL), GAVEL_OK);
    assert_string_equal(b->fake.token, "to/ken==");
    assert_non_null(strstr(b->fake.authorization, "AKIATEST/"));
    assert_non_null(strstr(b->fake.authorization, "/us-east-1/s3/aws4_request"));
    assert_non_null(strstr(b->fake.authorization, "x-amz-content-sha256"));
    assert_non_null(strstr(b->fake.authorization, "x-amz-security-token"));
    store_close(store);
}

static void write_profile(const char *path, const char *key)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fprintf(file, "[default]\naws_access_key_id = %s\naws_secret_access_key = s\n", key) > 0);
    assert_int_equal(fclose(file), 0);
}

static void test_credentials_that_rotate_are_read_again(void **state)
{
    struct bench *b = *state;
    char path[] = "/tmp/gavel-s3-XXXXXX";
    char url[400];
    struct store_request both[] = {ask_renew("g", "one", 1, 0), ask_read("h")};
    struct store_reply replies[2];
    struct store *store;
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    (void)close(fd);
    write_profile(path, "OLDKEY");
    (void)snprintf(url, sizeof url, "%s&credentials=%s", b->url, path);
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    b->fake.status = 403;
    b->fake.code = "ExpiredToken";
    b->fake.needed = "NEWKEY/";
    write_profile(path, "NEWKEY");      /* as whatever rotates them does, before the old ones end */
    store_run(store, both, replies, 2); /* both are refused, and one reads the file for both */
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(replies[i].status, GAVEL_OK);
        store_reply_done(&replies[i]);
    }
    (void)expect(store, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    assert_int_equal(listed(store, "g"), 1);
    b->fake.needed = "NEXTKEY/"; /* and one that nobody has told us of */
    (void)expect(store, ask_renew("g", "one", 1, 0), GAVEL_ERR_STORE_DENIED);
    store_close(store);
    assert_int_equal(unlink(path), 0);
}

/* What was seen last decides nothing against us: others may have changed it since. */
static void test_a_refusal_is_given_only_after_a_fresh_look(void **state)
{
    struct bench *b = *state;
    struct record first;
    struct record second;

    assert_false(expect(b->b, ask_read("g"), GAVEL_OK).found);
    first = expect(b->a, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    second = expect(b->b, ask_claim("g", "two", 2, first.version), GAVEL_OK).record;
    (void)expect(b->a, ask_release("g", "two", 2, second.epoch), GAVEL_OK);
    first = expect(b->a, ask_read("g"), GAVEL_OK).record;
    (void)expect(b->a, ask_claim("g", "two", 3, first.version), GAVEL_OK);
    (void)expect(b->b, ask_renew("g", "two", 3, 0), GAVEL_OK); /* of a claim that it has not seen */
}

/* Two that notice it in one batch do not stumble over each other. */
static void test_those_long_silent_are_removed(void **state)
{
    const struct timespec pause = {.tv_nsec = 15 * NS_PER_MS};
    struct bench *b = *state;
    struct store_request beats[] = {ask_heartbeat("g", "two", 2, 1), ask_heartbeat("g", "three", 3, 1)};
    struct store_reply replies[2];
    gavel_ns began;

    (void)expect(b->a, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    began = clock_now();
    while (clock_now() - began <= 20 * NS_PER_MS)
        (void)nanosleep(&pause, NULL);
    beats[0].candidate_timeout_ms = beats[1].candidate_timeout_ms = 1; /* ten of which have passed */
    store_run(b->a, beats, replies, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(replies[i].status, GAVEL_OK);
        store_reply_done(&replies[i]);
    }
    for (size_t i = 0; i < b->fake.count; i++)
        assert_null(strstr(b->fake.objects[i].key, "worker=one"));
}

/* A process that was asleep wakes up and beats: it has not seen the others since, but that is not their
 * fault. */
static void test_nobody_is_removed_for_not_having_been_looked_at(void **state)
{
    const struct timespec pause = {.tv_nsec = 15 * NS_PER_MS};
    struct bench *b = *state;
    struct store_request beat = ask_heartbeat("g", "two", 2, 1);
    gavel_ns began;

    (void)expect(b->a, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    assert_int_equal(listed(b->b, "g"), 1);
    began = clock_now();
    while (clock_now() - began <= 20 * NS_PER_MS)
        (void)nanosleep(&pause, NULL);
    beat.candidate_timeout_ms = 1; /* ten of which have passed */
    (void)expect(b->b, beat, GAVEL_OK);
    assert_int_equal(s3_fake_counts(&b->fake).deletes, 0);
    assert_int_equal(listed(b->b, "g"), 2);
    began = clock_now();
    while (clock_now() - began <= 2 * NS_PER_MS) /* a time-out later */
        (void)nanosleep(&pause, NULL);
    beat.registration.beats = 2;
    (void)expect(b->b, beat, GAVEL_OK);
    assert_int_equal(s3_fake_counts(&b->fake).deletes, 1);
}

static void test_a_deleted_registration_is_made_anew(void **state)
{
    struct bench *b = *state;

    (void)expect(b->a, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    (void)expect(b->b, ask_leave("g", "one", 1), GAVEL_OK); /* by somebody who took it for dead */
    assert_int_equal(listed(b->a, "g"), 0);
    (void)expect(b->a, ask_heartbeat("g", "one", 1, 2), GAVEL_OK);
    assert_int_equal(listed(b->b, "g"), 1);
}

static void test_names_that_make_too_long_a_key_are_refused(void **state)
{
    struct bench *b = *state;
    char slashes[NAME_MAX_BYTES + 1];
    struct store_reply reply;
    struct store_request beat;

    memset(slashes, '/', NAME_MAX_BYTES);
    slashes[NAME_MAX_BYTES] = '\0';
    (void)expect(b->a, ask_claim(slashes, slashes, 1, 0), GAVEL_OK); /* 255 bytes that all need encoding */
    assert_string_equal(expect(b->b, ask_read(slashes), GAVEL_OK).record.holder, slashes);
    (void)expect(b->a, ask_heartbeat(slashes, "one", 1, 1), GAVEL_OK);
    assert_int_equal(listed(b->b, slashes), 1);
    beat = ask_heartbeat(slashes, slashes, 1, 1);
    assert_int_equal(store_call(b->a, &beat, &reply), GAVEL_ERR_INVALID);
    assert_non_null(strstr(reply.message, "shorter"));
    store_reply_done(&reply);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_server_that_keeps_conditions_passes_the_probe),
        TEST(test_a_server_that_ignores_conditions_is_refused),
        TEST(test_a_probe_that_fails_for_the_moment_may_be_tried_again),
        TEST(test_without_a_probe_the_form_of_etags_is_found_out),
        TEST(test_a_batch_finds_out_the_form_of_etags_together),
        TEST(test_a_write_whose_answer_is_a_failure_is_found_again),
        TEST(test_a_write_that_was_not_done_is_a_failure_and_nothing_has_changed),
        TEST(test_an_overloaded_server_is_asked_no_more_than_what_became_of_it),
        TEST(test_a_conflict_that_passes_is_settled_and_one_that_stays_is_given_up),
        TEST(test_a_renewal_goes_on_over_what_others_wrote),
        TEST(test_a_new_epoch_is_not_mistaken_for_the_old_one),
        TEST(test_every_refusal_says_what_to_do),
        TEST(test_what_is_no_object_store_is_refused),
        TEST(test_a_state_that_gavel_did_not_write_is_not_overwritten),
        TEST(test_what_is_no_registration_is_left_out_of_the_list),
        TEST(test_a_list_of_many_pages_is_whole),
        TEST(test_a_beat_is_seen_in_the_list_and_a_change_is_read),
        TEST(test_things_take_as_many_requests_as_is_said),
        TEST(test_a_session_token_is_sent_and_signed),
        TEST(test_credentials_that_rotate_are_read_again),
        TEST(test_a_refusal_is_given_only_after_a_fresh_look),
        TEST(test_those_long_silent_are_removed),
        TEST(test_nobody_is_removed_for_not_having_been_looked_at),
        TEST(test_a_deleted_registration_is_made_anew),
        TEST(test_names_that_make_too_long_a_key_are_refused),
    };

    return cmocka_run_group_tests_name("s3 answers", tests, NULL, NULL);
}
