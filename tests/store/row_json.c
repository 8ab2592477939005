/* SPDX-License-Identifier: Apache-2.0 */

/* Records as JSON: what goes in comes out, and nothing that makes no sense is taken at its word. */
#include "store/row_json.h"
#include "base/prng.h"
#include "store/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct nonce write_number = {7, 8};

static struct mandate_row full_row(void)
{
    struct mandate_row row = {.is_found = true};
    struct record *record = &row.record;

    record->epoch = RULES_NUMBER_MAX;
    record->version = 31;
    record->nonce = (struct nonce){UINT64_MAX, 1};
    record->lease_ms = STORE_DURATION_MAX_MS;
    record->since_wall_ms = 1794837600123;
    record->renewed_wall_ms = 1794837615000;
    record->held = true;
    record->process =
        (struct process_id){"01234567-89ab-cdef-0123-456789abcdef", 4711, 4026531836, UINT64_MAX};
    memset(record->holder, '"', NAME_MAX_BYTES); /* the longest when it is escaped */
    memset(record->successor, '\\', NAME_MAX_BYTES);
    memset(record->wish_successor, 'x', NAME_MAX_BYTES);
    (void)strcpy(record->address, "[2001:db8::7]:41000");
    record->wish_epoch = RULES_NUMBER_MAX;
    record->wish_force = true;
    return row;
}

static void assert_same(const struct mandate_row *a, const struct mandate_row *b)
{
    const struct record *x = &a->record;
    const struct record *y = &b->record;

    assert_int_equal(a->is_found, b->is_found);
    assert_int_equal(x->epoch, y->epoch);
    assert_int_equal(x->version, y->version);
    assert_true(nonce_equal(x->nonce, y->nonce));
    assert_int_equal(x->lease_ms, y->lease_ms);
    assert_int_equal(x->since_wall_ms, y->since_wall_ms);
    assert_int_equal(x->renewed_wall_ms, y->renewed_wall_ms);
    assert_int_equal(x->held, y->held);
    assert_int_equal(x->done, y->done);
    assert_int_equal(x->loss, y->loss);
    assert_string_equal(x->process.boot_id, y->process.boot_id);
    assert_int_equal(x->process.pid, y->process.pid);
    assert_int_equal(x->process.pid_ns, y->process.pid_ns);
    assert_int_equal(x->process.start_ticks, y->process.start_ticks);
    assert_string_equal(x->holder, y->holder);
    assert_string_equal(x->address, y->address);
    assert_string_equal(x->successor, y->successor);
    assert_int_equal(x->wish_epoch, y->wish_epoch);
    assert_int_equal(x->wish_force, y->wish_force);
    assert_string_equal(x->wish_successor, y->wish_successor);
}

static void test_a_record_comes_back_as_it_was(void **state)
{
    struct mandate_row row = full_row();
    struct mandate_row back;
    struct nonce write;
    char *text = row_json_write(&row, write_number);

    (void)state;
    assert_non_null(text);
    assert_int_equal(row_json_read(text, strlen(text), &back, &write), ROW_JSON_GOOD);
    assert_same(&back, &row);
    assert_true(nonce_equal(write, write_number));
    free(text);
    row = (struct mandate_row){
        .is_found = true, .record = {.epoch = 1, .version = 1, .lease_ms = 1, .done = true, .holder = "a"}};
    text = row_json_write(&row, write_number);
    assert_non_null(text);
    assert_int_equal(row_json_read(text, strlen(text), &back, NULL), ROW_JSON_GOOD);
    assert_same(&back, &row);
    free(text);
}

static void test_people_can_read_it(void **state)
{
    struct mandate_row row = full_row();
    char *text;

    (void)state;
    (void)strcpy(row.record.holder, "web-1");
    row.record.lease_ms = 15000;
    text = row_json_write(&row, write_number);
    assert_non_null(strstr(text, "\"format\":1"));
    assert_non_null(strstr(text, "\"leaderId\":\"web-1\""));
    assert_non_null(strstr(text, "\"since\":\"2026-11-16T14:00:00.123Z\""));
    assert_non_null(strstr(text, "\"leaseExpiresAt\":\"2026-11-16T14:00:30.000Z\""));
    assert_non_null(strstr(text, "\"nonce\":\"ffffffffffffffff0000000000000001\""));
    free(text);
}

static void test_two_writes_never_have_the_same_bytes(void **state)
{
    struct mandate_row row = full_row();
    char *one = row_json_write(&row, (struct nonce){0, 1});
    char *two = row_json_write(&row, (struct nonce){0, 2});

    (void)state;
    assert_string_not_equal(one, two);
    free(one);
    free(two);
}

/* A hint is left out, and a clock that is far off does no harm. */
static void test_what_json_cannot_say_is_left_out(void **state)
{
    struct mandate_row row = full_row();
    struct mandate_row back;
    char *text;

    (void)state;
    (void)strcpy(row.record.address, "\xff\xfe");
    row.record.since_wall_ms = INT64_MIN;
    row.record.renewed_wall_ms = INT64_MAX - STORE_DURATION_MAX_MS;
    text = row_json_write(&row, write_number);
    assert_non_null(text);
    assert_int_equal(row_json_read(text, strlen(text), &back, NULL), ROW_JSON_GOOD);
    assert_string_equal(back.record.address, "");
    assert_int_equal(back.record.since_wall_ms, 0);
    assert_int_equal(back.record.renewed_wall_ms, 253402300799999);
    free(text);
}

#define HEX "0123456789abcdef0123456789abcdef"
#define TIME "2026-11-16T14:00:00.123Z"
#define SMALL                                                                                                \
    "{\"format\":1,\"leaderId\":\"a\",\"epoch\":7,\"version\":9,\"nonce\":\"" HEX "\",\"write\":\"" HEX      \
    "\",\"held\":true,\"done\":false,\"address\":\"\",\"leaseMs\":100,\"since\":\"" TIME                     \
    "\",\"renewedAt\":\"" TIME "\",\"successor\":\"\",\"wish\":{\"epoch\":7,\"force\":true,"                 \
    "\"successor\":\"b\"},\"process\":{\"bootId\":\"x\",\"pid\":1,\"pidNamespace\":2,\"startTicks\":3}}"

/* SMALL with the first `from` replaced. */
static enum row_json_kind read_with(const char *from, const char *to)
{
    char text[2048];
    const char *at = strstr(SMALL, from);
    struct mandate_row row;

    assert_non_null(at);
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - SMALL), SMALL, to, at + strlen(from));
    return row_json_read(text, strlen(text), &row, NULL);
}

static void test_what_no_gavel_writes_is_damage(void **state)
{
    static const char *const bad[][2] = {
        {"\"leaderId\":\"a\"", "\"leaderId\":\"\""},
        {"\"leaderId\":\"a\"", "\"leaderId\":5"},
        {"\"leaderId\":\"a\"", "\"leaderId\":\"a\\nb\""},
        {"\"leaderId\":\"a\"", "\"leaderId\":\"a\\u0000b\""},
        {"\"leaderId\":\"a\",", ""},
        {"\"leaderId\":\"a\"", "\"leaderId\":\"a\",\"leaderId\":\"b\""}, /* which of the two? */
        {"\"epoch\":7", "\"epoch\":0"},
        {"\"epoch\":7", "\"epoch\":-7"},
        {"\"epoch\":7", "\"epoch\":7.0"},
        {"\"epoch\":7", "\"epoch\":\"7\""},
        {"\"epoch\":7", "\"epoch\":9223372036854775807"}, /* nothing could follow it */
        {"\"epoch\":7", "\"epoch\":9223372036854775808"},
        {"\"version\":9", "\"version\":0"},
        {"\"version\":9", "\"version\":null"},
        {"\"nonce\":\"0", "\"nonce\":\""},
        {"\"nonce\":\"0", "\"nonce\":\"00"},
        {"\"nonce\":\"0", "\"nonce\":\"G"},
        {"\"nonce\":\"0", "\"nonce\":\"-"},
        {"\"write\":\"0", "\"write\":\"+"},
        {"\"held\":true", "\"held\":1"},
        {"\"done\":false", "\"done\":true"},                      /* never while held */
        {"\"done\":false", "\"done\":false,\"loss\":\"killed\""}, /* likewise */
        {"\"leaseMs\":100", "\"leaseMs\":0"},
        {"\"leaseMs\":100", "\"leaseMs\":-1"},
        {"\"leaseMs\":100", "\"leaseMs\":31622400001"},
        {"\"address\":\"\"",
         "\"address\":\"0123456789012345678901234567890123456789012345678901234567890123\""},
        {"\"since\":\"2026", "\"since\":\"-026"},
        {"\"since\":\"2026", "\"since\":\"26"},
        {"\"since\":\"2026", "\"since\":\"1926"},
        {"\"renewedAt\":\"2026-11-16T14:00:00.123Z\"", "\"renewedAt\":\"yesterday\""},
        {"\"wish\":{\"epoch\":7", "\"wish\":{\"epoch\":0"},
        {"\"wish\":{\"epoch\":7,", "\"wish\":{"},
        {"\"wish\":{", "\"wish\":7,\"was\":{"},
        {"\"pid\":1", "\"pid\":-1"},
        {"\"pid\":1", "\"pid\":2147483648"},
        {"\"bootId\":\"x\"", "\"bootId\":\"0123456789012345678901234567890123456\""},
        {"\"process\":{", "\"process\":[],\"was\":{"},
        {"\"format\":1", "\"format\":0"},
        {"\"format\":1", "\"format\":-1"},
        {"\"format\":1", "\"format\":\"1\""},
        {"\"format\":1,", ""},
        {"{\"format\"", "[{\"format\""},
    };

    (void)state;
    assert_int_equal(read_with("\"epoch\":7", "\"epoch\":8"), ROW_JSON_GOOD);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (read_with(bad[i][0], bad[i][1]) != ROW_JSON_DAMAGED)
            fail_msg("%s was accepted", bad[i][1]);
}

static void test_members_that_are_not_known_are_ignored_and_formats_are_not(void **state)
{
    (void)state;
    assert_int_equal(read_with("{\"format\"", "{\"colour\":[1,{\"a\":null}],\"format\""), ROW_JSON_GOOD);
    assert_int_equal(read_with("\"format\":1", "\"format\":2"), ROW_JSON_TOO_NEW);
    assert_int_equal(read_with("\"format\":1,\"leaderId\":\"a\"", "\"format\":9223372036854775807"),
                     ROW_JSON_TOO_NEW); /* whatever else a newer one needs or not */
}

static enum gavel_loss loss_with(const char *loss)
{
    struct mandate_row row = full_row();
    struct mandate_row back;
    char changed[4096];
    char *text, *at;

    row.record.held = false;
    row.record.loss = GAVEL_LOSS_KILLED;
    text = row_json_write(&row, write_number);
    assert_non_null(text);
    at = strstr(text, "\"loss\":\"killed\"");
    assert_non_null(at);
    (void)snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, loss,
                   at + strlen("\"loss\":\"killed\""));
    free(text);
    assert_int_equal(row_json_read(changed, strlen(changed), &back, NULL), ROW_JSON_GOOD);
    return back.record.loss;
}

static void test_how_a_mandate_was_lost_is_kept_and_may_be_missing_or_news(void **state)
{
    (void)state;
    assert_int_equal(loss_with("\"loss\":\"killed\""), GAVEL_LOSS_KILLED);
    assert_int_equal(loss_with("\"loss\":\"lapsed\""), GAVEL_LOSS_LAPSED);
    assert_int_equal(loss_with("\"gain\":\"killed\""), GAVEL_LOSS_NONE);   /* as 0.6.0 writes it */
    assert_int_equal(loss_with("\"loss\":\"struck\""), GAVEL_LOSS_LAPSED); /* of a later release */
}

/* In tables it stands in the column of the wish, where 0.6.0 may have left 1 when it released. */
static void test_the_column_of_the_wish_tells_of_a_loss_once_a_record_is_released(void **state)
{
    struct record held = {.held = true, .wish_force = true}, released = {.loss = GAVEL_LOSS_KILLED},
                  done = {.done = true};

    (void)state;
    assert_int_equal(rules_wish_column(&held), 1);
    rules_take_wish_column(&held, 1);
    assert_true(held.wish_force);
    assert_int_equal(held.loss, GAVEL_LOSS_NONE);
    rules_take_wish_column(&released, rules_wish_column(&released));
    assert_int_equal(released.loss, GAVEL_LOSS_KILLED);
    assert_false(released.wish_force);
    rules_take_wish_column(&released, 1);
    assert_int_equal(released.loss, GAVEL_LOSS_NONE);
    rules_take_wish_column(&released, 99);
    assert_int_equal(released.loss, GAVEL_LOSS_LAPSED);
    rules_take_wish_column(&done, 17);
    assert_int_equal(done.loss, GAVEL_LOSS_NONE);
}

static void test_a_cut_off_record_is_damage_at_every_length(void **state)
{
    struct mandate_row row = {.record.epoch = 99};
    struct nonce write = {1, 2};
    size_t size = strlen(SMALL);

    (void)state;
    for (size_t cut = 0; cut < size; cut++) {
        /* An exact allocation, so that the sanitizer sees a read past the end. */
        char *copy = malloc(cut > 0 ? cut : 1);

        assert_non_null(copy);
        memcpy(copy, SMALL, cut);
        assert_int_equal(row_json_read(copy, cut, &row, &write), ROW_JSON_DAMAGED);
        free(copy);
    }
    assert_int_equal(row.record.epoch, 99); /* untouched */
    assert_int_equal(write.low, 2);
}

static void test_a_huge_or_deep_text_is_damage(void **state)
{
    enum { SIZE = 1024 * 1024 };
    char *text = malloc(SIZE);
    struct mandate_row row;
    struct registration registration;

    (void)state;
    assert_non_null(text);
    memset(text, '[', SIZE);
    assert_int_equal(row_json_read(text, SIZE, &row, NULL), ROW_JSON_DAMAGED);
    assert_int_equal(row_json_read(text, 16000, &row, NULL), ROW_JSON_DAMAGED);
    memset(text, ' ', SIZE);
    memcpy(text, SMALL, strlen(SMALL));
    assert_int_equal(row_json_read(text, 16000, &row, NULL), ROW_JSON_GOOD);
    assert_int_equal(row_json_read(text, SIZE, &row, NULL), ROW_JSON_DAMAGED);
    assert_int_equal(registration_json_read(text, SIZE, &registration, NULL), ROW_JSON_DAMAGED);
    free(text);
}

/* What was read as good can be written, and is then read as the same. */
static void check_mutant(const char *text, size_t size, size_t *good)
{
    struct mandate_row row;
    struct mandate_row back;
    struct nonce write;
    struct registration registration;
    char *again;

    (void)registration_json_read(text, size, &registration, NULL); /* only has to survive */
    if (row_json_read(text, size, &row, &write) != ROW_JSON_GOOD)
        return;
    assert_in_range(row.record.epoch, 1, RULES_NUMBER_MAX);
    assert_in_range(row.record.version, 1, RULES_NUMBER_MAX);
    assert_in_range(row.record.lease_ms, 1, STORE_DURATION_MAX_MS);
    assert_false(row.record.held && row.record.done);
    assert_int_equal(name_check("holder", row.record.holder, NULL), GAVEL_OK);
    again = row_json_write(&row, write);
    assert_non_null(again);
    assert_int_equal(row_json_read(again, strlen(again), &back, NULL), ROW_JSON_GOOD);
    if (row.record.process.pid > 0) /* of nobody nothing is told */
        assert_same(&row, &back);
    free(again);
    ++*good;
}

static void test_hostile_bytes_do_no_harm(void **state)
{
    static const char alphabet[] = "{}[]\",:\\0123456789-+.eEtrufalsn \x80\xff\xc3\x01";
    size_t size = strlen(SMALL);
    char *copy = malloc(size);
    size_t good = 0;
    struct prng prng;

    (void)state;
    assert_non_null(copy);
    prng_seed(&prng, 20261116);
    for (int round = 0; round < 20000; round++) {
        memcpy(copy, SMALL, size);
        for (uint64_t n = 1 + prng_below(&prng, 3); n > 0; n--)
            copy[prng_below(&prng, size)] = alphabet[prng_below(&prng, sizeof alphabet - 1)];
        check_mutant(copy, size, &good);
    }
    free(copy);
    assert_in_range(good, 100, 19900); /* both ways were taken */
}

static void test_a_claim_gets_its_epoch_from_the_number_of_its_write(void **state)
{
    struct mandate_row row = full_row();
    struct mandate_row back;
    struct row_json_number number = {.epoch_offset = 100, .is_claim = true};
    char *text;

    (void)state;
    row.record.epoch = 5;
    text = row_json_write_numbered(&row, write_number, &number);
    number = (struct row_json_number){.revision = 42};
    assert_int_equal(row_json_read_numbered(text, strlen(text), &back, NULL, &number), ROW_JSON_GOOD);
    assert_int_equal(back.record.epoch, 142);
    assert_int_equal(back.record.version, 42);
    assert_int_equal(number.epoch_offset, 100);
    assert_true(number.is_claim);
    assert_int_equal(row_json_read(text, strlen(text), &back, NULL), ROW_JSON_DAMAGED); /* not for others */
    free(text);

    number.is_claim = false; /* a renewal spells it out */
    text = row_json_write_numbered(&back, write_number, &number);
    number = (struct row_json_number){.revision = 43};
    assert_int_equal(row_json_read_numbered(text, strlen(text), &back, NULL, &number), ROW_JSON_GOOD);
    assert_int_equal(back.record.epoch, 142);
    assert_int_equal(back.record.version, 43);
    assert_int_equal(number.epoch_offset, 100);
    number.revision = RULES_NUMBER_MAX; /* the sum would not fit */
    assert_int_equal(row_json_read_numbered(text, strlen(text), &back, NULL, &number), ROW_JSON_DAMAGED);
    number.revision = 0; /* no write has that number */
    assert_int_equal(row_json_read_numbered(text, strlen(text), &back, NULL, &number), ROW_JSON_DAMAGED);
    free(text);
}

static void test_a_registration_comes_back_as_it_was(void **state)
{
    struct registration r = {.instance = UINT64_MAX,
                             .beats = UINT64_MAX,
                             .since_wall_ms = 1234567,
                             .last_wall_ms = 1794837600123,
                             .priority = INT32_MIN,
                             .eligible = true,
                             .process = {"boot", 12, 13, 14},
                             .id = "web/1 \"ü\"",
                             .address = "10.0.0.7:41000"};
    struct registration back;
    struct nonce write;
    char *text = registration_json_write(&r, write_number);

    (void)state;
    assert_non_null(text);
    assert_int_equal(registration_json_read(text, strlen(text), &back, &write), ROW_JSON_GOOD);
    assert_int_equal(back.instance, r.instance);
    assert_int_equal(back.beats, r.beats);
    assert_int_equal(back.age_ms, -1);
    assert_int_equal(back.since_wall_ms, r.since_wall_ms);
    assert_int_equal(back.last_wall_ms, r.last_wall_ms);
    assert_int_equal(back.priority, r.priority);
    assert_true(back.eligible);
    assert_int_equal(back.process.pid, 12);
    assert_string_equal(back.id, r.id);
    assert_string_equal(back.address, r.address);
    assert_true(nonce_equal(write, write_number));
    for (size_t cut = 0; cut < strlen(text); cut++)
        assert_int_equal(registration_json_read(text, cut, &back, &write), ROW_JSON_DAMAGED);
    *strstr(text, "\"format\":1") = '!';
    assert_int_equal(registration_json_read(text, strlen(text), &back, &write), ROW_JSON_DAMAGED);
    free(text);
    assert_int_equal(registration_json_read("{\"format\":2}", 12, &back, &write), ROW_JSON_TOO_NEW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_record_comes_back_as_it_was),
        cmocka_unit_test(test_people_can_read_it),
        cmocka_unit_test(test_two_writes_never_have_the_same_bytes),
        cmocka_unit_test(test_what_json_cannot_say_is_left_out),
        cmocka_unit_test(test_what_no_gavel_writes_is_damage),
        cmocka_unit_test(test_members_that_are_not_known_are_ignored_and_formats_are_not),
        cmocka_unit_test(test_how_a_mandate_was_lost_is_kept_and_may_be_missing_or_news),
        cmocka_unit_test(test_the_column_of_the_wish_tells_of_a_loss_once_a_record_is_released),
        cmocka_unit_test(test_a_cut_off_record_is_damage_at_every_length),
        cmocka_unit_test(test_a_huge_or_deep_text_is_damage),
        cmocka_unit_test(test_hostile_bytes_do_no_harm),
        cmocka_unit_test(test_a_claim_gets_its_epoch_from_the_number_of_its_write),
        cmocka_unit_test(test_a_registration_comes_back_as_it_was),
    };

    return cmocka_run_group_tests_name("row_json", tests, NULL, NULL);
}
