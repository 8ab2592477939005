/* SPDX-License-Identifier: Apache-2.0 */

/* Frames of clients: what goes in comes out, and what is hostile costs little and is refused. */
#include "client_samples.h"

#include "allocator.h"
#include "core/table/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static Gavel__ClientFrame *unpack(const uint8_t *bytes, size_t size)
{
    Gavel__ClientFrame *frame;
    const char *reason = "nothing";

    if (client_frame_unpack(bytes, size, &frame, &reason) != GAVEL_OK)
        fail_msg("refused: %s", reason);
    return frame;
}

static void assert_refused(const uint8_t *bytes, size_t size, const char *expected)
{
    Gavel__ClientFrame *frame;
    const char *reason = "nothing";

    if (client_frame_unpack(bytes, size, &frame, &reason) == GAVEL_OK) {
        client_frame_free(frame);
        fail_msg("not refused: %s", expected);
    }
    assert_string_equal(reason, expected);
}

static uint8_t *pack(const Gavel__ClientFrame *frame, size_t *ret_size)
{
    uint8_t *bytes;

    assert_int_equal(client_frame_pack(frame, &bytes, ret_size), GAVEL_OK);
    assert_int_equal(client_frame_length(bytes), *ret_size - CLIENT_LENGTH_BYTES);
    return bytes;
}

static void assert_same(const Gavel__ClientFrame *a, const Gavel__ClientFrame *b)
{
    size_t a_size, b_size;
    uint8_t *a_bytes = pack(a, &a_size), *b_bytes = pack(b, &b_size);

    assert_int_equal(a->what_case, b->what_case);
    assert_int_equal(a_size, b_size);
    assert_memory_equal(a_bytes, b_bytes, a_size);
    free(a_bytes);
    free(b_bytes);
}

static void test_every_kind_of_frame_comes_out_as_it_went_in(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLIENT_SAMPLE_COUNT; i++) {
        const char *name;
        Gavel__ClientFrame *sample = client_sample_make(i, &name), *frame, *copy;
        size_t size;
        uint8_t *bytes = pack(sample, &size);

        frame = unpack(bytes + CLIENT_LENGTH_BYTES, size - CLIENT_LENGTH_BYTES);
        copy = client_frame_copy(sample);
        assert_non_null(copy);
        assert_same(sample, frame);
        assert_same(sample, copy);
        client_frame_free(sample);
        client_frame_free(frame);
        client_frame_free(copy);
        free(bytes);
    }
    client_frame_free(NULL);
}

static void test_every_operation_can_be_copied(void **state)
{
    const char *name;
    Gavel__ClientFrame *sample = client_sample_make(3, &name);

    (void)state;
    assert_int_equal(sample->what_case, GAVEL__CLIENT_FRAME__WHAT_REQUEST);
    assert_int_equal(sample->request->n_ops, gavel__op__descriptor.n_fields);
    for (size_t i = 0; i < sample->request->n_ops; i++) {
        Gavel__Op *copy = client_op_copy(sample->request->ops[i]);

        assert_non_null(copy);
        gavel__op__free_unpacked(sample->request->ops[i], NULL);
        sample->request->ops[i] = copy; /* of the same kind, as the frame still packs */
        assert_int_equal(copy->what_case, gavel__op__descriptor.fields[i].id);
    }
    client_frame_free(sample);
}

static void test_a_frame_that_is_cut_short_is_never_read_beyond_its_end(void **state)
{
    size_t refused = 0, tried = 0;

    (void)state;
    for (size_t i = 0; i < CLIENT_SAMPLE_COUNT; i++) {
        const char *name, *reason;
        Gavel__ClientFrame *sample = client_sample_make(i, &name), *frame;
        size_t size;
        uint8_t *bytes = pack(sample, &size);

        for (size_t length = 0; length < size - CLIENT_LENGTH_BYTES; length++) {
            uint8_t *cut = malloc(length > 0 ? length : 1); /* a sanitizer sees the first byte beyond */

            memcpy(cut, bytes + CLIENT_LENGTH_BYTES, length);
            tried++;
            if (client_frame_unpack(cut, length, &frame, &reason) == GAVEL_OK)
                client_frame_free(frame);
            else
                refused++;
            free(cut);
        }
        client_frame_free(sample);
        free(bytes);
    }
    assert_int_equal(refused, tried); /* the frame is one field, and its length is missed */
}

static void test_a_frame_of_a_newer_program_is_skipped(void **state)
{
    static const uint8_t newer[] = {0xa2, 0x06, 2, 'h', 'i'}; /* field 100 of ClientFrame */
    static const uint8_t whole[] = {0x5a, 3, 0x90, 0x03, 7};  /* Unwatch, with a field 50 … */
    static const uint8_t field[] = {0x5a, 2, 0x90, 0x03};     /* … that has no value */
    Gavel__ClientFrame *frame = unpack(newer, sizeof newer);

    (void)state;
    assert_int_equal(frame->what_case, 0);
    client_frame_free(frame);
    assert_refused(field, sizeof field, "bytes that are not a frame");
    frame = unpack(whole, sizeof whole);
    assert_int_equal(frame->what_case, GAVEL__CLIENT_FRAME__WHAT_UNWATCH);
    client_frame_free(frame);
}

static void test_bytes_that_no_client_of_ours_would_send_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *reason;
    } cases[] = {
        {"", 0, "a frame that says nothing"},
        {"\xff\xff\xff\xff", 4, "bytes that are not a frame"},
        {"\x22", 1, "bytes that are not a frame"},                     /* a Request without its length */
        {"\x20\x01", 2, "bytes that are not a frame"},                 /* a Request that is a number */
        {"\x23\x24", 2, "bytes that are not a frame"},                 /* a group, as nobody uses any more */
        {"\x02\x00", 2, "bytes that are not a frame"},                 /* field 0 */
        {"\x22\x00\x22\x00", 4, "the same thing is said twice"},       /* two Requests */
        {"\x22\x00\x2a\x00", 4, "the same thing is said twice"},       /* a Request and a Reply */
        {"\x42\x04\x22\x02g\0", 6, "text that is not UTF-8"},          /* Ask, group with a NUL */
        {"\x42\x04\x22\x02g\xe9", 6, "text that is not UTF-8"},        /* Latin-1 */
        {"\x42\x05\x22\x03\xed\xa0\x80", 7, "text that is not UTF-8"}, /* a surrogate */
        {"\x42\x04\x22\x7fgg", 6, "bytes that are not a frame"},       /* text beyond its message */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused((const uint8_t *)cases[i].bytes, cases[i].size, cases[i].reason);
}

/* One message in a frame: `field` of ClientFrame, `size` bytes of body, which are `unit` over and over. */
static uint8_t *flood(unsigned field, size_t size, const char *unit, size_t unit_size, size_t *ret_size)
{
    uint8_t *bytes = malloc(size + 8);

    size -= size % unit_size;
    bytes[0] = (uint8_t)(field << 3 | 2);
    for (int i = 0; i < 4; i++)
        bytes[1 + i] = (uint8_t)((size >> (7 * i) & 0x7f) | (i < 3 ? 0x80 : 0));
    for (size_t i = 0; i < size; i++)
        bytes[5 + i] = (uint8_t)unit[i % unit_size];
    *ret_size = 5 + size;
    return bytes;
}

static void test_counts_are_limited_exactly(void **state)
{
    Gavel__ClientFrame *frame;
    uint8_t *bytes;
    size_t size;

    (void)state;
    bytes = flood(4, (size_t)2 * TABLE_OPS_MAX, "\x2a\x00", 2, &size);
    frame = unpack(bytes, size);
    assert_int_equal(frame->request->n_ops, TABLE_OPS_MAX);
    client_frame_free(frame);
    free(bytes);
    bytes = flood(4, (size_t)2 * (TABLE_OPS_MAX + 1), "\x2a\x00", 2, &size);
    assert_refused(bytes, size, "more operations than a request may have");
    free(bytes);
    /* Sessions one by one, and packed. */
    bytes = flood(6, (size_t)9 * CLIENT_SESSIONS_MAX, "\x11\1\2\3\4\5\6\7\x08", 9, &size);
    frame = unpack(bytes, size);
    assert_int_equal(frame->keep_alive->n_sessions, CLIENT_SESSIONS_MAX);
    client_frame_free(frame);
    free(bytes);
    bytes = flood(6, (size_t)9 * (CLIENT_SESSIONS_MAX + 1), "\x11\1\2\3\4\5\6\7\x08", 9, &size);
    assert_refused(bytes, size, "more sessions than a keep-alive may have");
    free(bytes);
    bytes = flood(6, (size_t)10 * (CLIENT_SESSIONS_MAX + 1), "\x12\x08\1\2\3\4\5\6\7\x08", 10, &size);
    assert_refused(bytes, size, "more sessions than a keep-alive may have");
    free(bytes);
}

/* Whatever fills a frame: the memory that it takes is bounded. */
static void test_a_full_frame_of_tiny_parts_takes_a_bounded_amount_of_memory(void **state)
{
    static const struct {
        unsigned field;
        const char *unit;
        size_t unit_size;
    } cases[] = {
        {4, "\x2a\x00", 2},             /* Request: empty operations */
        {5, "\x22\x00", 2},             /* Reply: empty results */
        {6, "\x11\0\0\0\0\0\0\0\0", 9}, /* KeepAlive: sessions */
        {9, "\x2a\x00", 2},             /* Answer: empty groups */
        {9, "\x2a\x03\xba\x01\x00", 5}, /* Answer: groups with an empty candidate */
        {12, "\x12\x00", 2},            /* Changes: empty ones */
        {2, "\x32\x00", 2},             /* Welcome: empty addresses */
        {11, "\x78\x00", 2},            /* Unwatch: fields that nobody knows */
        {3, "\x0a\x01x", 3},            /* Refusal: its text again and again */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t size;
        uint8_t *bytes =
            flood(cases[i].field, CLIENT_FRAME_MAX - 16, cases[i].unit, cases[i].unit_size, &size);
        Gavel__ClientFrame *frame = NULL;
        const char *reason = "taken";

        allocator.bytes = allocator.calls = 0;
        if (client_frame_unpack(bytes, size, &frame, &reason) == GAVEL_OK)
            client_frame_free(frame);
        print_message("# %s of %zu bytes: asked for %llu KiB in %llu pieces: %s\n",
                      gavel__client_frame__descriptor.fields[cases[i].field - 1].name, size,
                      (unsigned long long)allocator.bytes >> 10, (unsigned long long)allocator.calls, reason);
        assert_true(allocator.bytes <= (size_t)32 << 20);
        free(bytes);
    }
}

static void test_without_memory_nothing_is_lost_and_it_is_said_so(void **state)
{
    const char *name, *reason;
    Gavel__ClientFrame *sample = client_sample_make(3, &name), *frame = NULL;
    enum gavel_status status = GAVEL_ERR_NO_MEMORY;
    uint64_t tries = 0;
    uint8_t *bytes = NULL;
    size_t size;

    (void)state;
    allocator.fail_after = 0;
    assert_int_equal(client_frame_pack(sample, &bytes, &size), GAVEL_ERR_NO_MEMORY);
    assert_null(client_frame_copy(sample));
    assert_null(client_op_copy(sample->request->ops[0]));
    allocator.fail_after = UINT64_MAX;
    bytes = pack(sample, &size);
    while (status == GAVEL_ERR_NO_MEMORY) {
        allocator.fail_after = tries++;
        status =
            client_frame_unpack(bytes + CLIENT_LENGTH_BYTES, size - CLIENT_LENGTH_BYTES, &frame, &reason);
        allocator.fail_after = UINT64_MAX;
    }
    assert_int_equal(status, GAVEL_OK);
    assert_true(tries > 50); /* pieces; each was missed once */
    assert_same(sample, frame);
    client_frame_free(frame);
    client_frame_free(sample);
    free(bytes);
}

static void test_large_values_and_long_lists_pass(void **state)
{
    Gavel__ClientFrame frame, *out;
    Gavel__Changes changes;
    Gavel__Change change, **list;
    size_t count = 20000, size;
    uint8_t *bytes;
    static char text[] = "a-group-of-some-name";

    (void)state;
    gavel__client_frame__init(&frame);
    gavel__changes__init(&changes);
    gavel__change__init(&change);
    change.revision = 123456;
    change.group = change.holder = change.address = change.previous_holder = text;
    change.epoch = 123455;
    list = calloc(count, sizeof(Gavel__Change *));
    for (size_t i = 0; i < count; i++)
        list[i] = &change;
    changes.n_changes = count;
    changes.changes = list;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_CHANGES;
    frame.changes = &changes;
    bytes = pack(&frame, &size);
    out = unpack(bytes + CLIENT_LENGTH_BYTES, size - CLIENT_LENGTH_BYTES);
    assert_int_equal(out->changes->n_changes, count);
    client_frame_free(out);
    free(bytes);
    changes.n_changes = 1;
    change.value.len = CLIENT_FRAME_MAX - 200;
    change.value.data = calloc(1, CLIENT_FRAME_MAX);
    bytes = pack(&frame, &size);
    out = unpack(bytes + CLIENT_LENGTH_BYTES, size - CLIENT_LENGTH_BYTES);
    assert_int_equal(out->changes->changes[0]->value.len, CLIENT_FRAME_MAX - 200);
    client_frame_free(out);
    free(bytes);
    change.value.len = CLIENT_FRAME_MAX;
    bytes = NULL;
    assert_int_equal(client_frame_pack(&frame, &bytes, &size), GAVEL_ERR_INVALID);
    assert_null(bytes);
    free(change.value.data);
    free(list);
}

static void test_a_frame_that_is_too_long_is_refused_unread(void **state)
{
    (void)state;
    assert_refused(NULL, (size_t)CLIENT_FRAME_MAX + 1, "a frame that is too long");
    assert_int_equal(client_frame_length((const uint8_t *)"\x01\x02\x03\x04"), 0x01020304);
    assert_int_equal(client_frame_length((const uint8_t *)"\xff\xff\xff\xff"), UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_of_frame_comes_out_as_it_went_in),
        cmocka_unit_test(test_every_operation_can_be_copied),
        cmocka_unit_test(test_a_frame_that_is_cut_short_is_never_read_beyond_its_end),
        cmocka_unit_test(test_a_frame_of_a_newer_program_is_skipped),
        cmocka_unit_test(test_bytes_that_no_client_of_ours_would_send_are_refused),
        cmocka_unit_test(test_counts_are_limited_exactly),
        cmocka_unit_test(test_large_values_and_long_lists_pass),
        cmocka_unit_test(test_a_full_frame_of_tiny_parts_takes_a_bounded_amount_of_memory),
        cmocka_unit_test(test_without_memory_nothing_is_lost_and_it_is_said_so),
        cmocka_unit_test(test_a_frame_that_is_too_long_is_refused_unread),
    };

    return cmocka_run_group_tests_name("client frames", tests, NULL, NULL);
}
