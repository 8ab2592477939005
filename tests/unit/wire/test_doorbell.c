/* SPDX-License-Identifier: Apache-2.0 */

/* The doorbell datagram: what goes in comes out, and nothing else is let in. */
#include "base/prng.h"
#include "wire/doorbell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_round_trip(const char *group)
{
    uint8_t bytes[DOORBELL_MAX_BYTES];
    char decoded[NAME_MAX_BYTES + 1] = "";
    size_t size = doorbell_encode(group, bytes);

    assert_int_equal(size, DOORBELL_HEAD_BYTES + strlen(group));
    assert_true(doorbell_decode(bytes, size, decoded));
    assert_string_equal(decoded, group);
}

static void test_every_valid_group_name_comes_back(void **state)
{
    char longest[NAME_MAX_BYTES + 1];

    (void)state;
    memset(longest, 'x', NAME_MAX_BYTES);
    longest[NAME_MAX_BYTES] = '\0';
    assert_round_trip("a");
    assert_round_trip("nightly jobs / \"50 %\"");
    assert_round_trip("gr\xc3\xbc\xc3\x9f"
                      "e");
    assert_round_trip(longest);
}

static void test_truncated_datagram_is_refused_at_every_length(void **state)
{
    uint8_t bytes[DOORBELL_MAX_BYTES];
    char decoded[NAME_MAX_BYTES + 1] = "untouched";
    size_t size = doorbell_encode("nightly", bytes);

    (void)state;
    for (size_t cut = 0; cut < size; cut++) {
        /* An exact allocation, so that the sanitizer sees a read past the end. */
        uint8_t *copy = malloc(cut > 0 ? cut : 1);

        assert_non_null(copy);
        memcpy(copy, bytes, cut);
        assert_false(doorbell_decode(copy, cut, decoded));
        free(copy);
    }
    assert_string_equal(decoded, "untouched");
}

static void test_trailing_bytes_are_refused(void **state)
{
    uint8_t bytes[DOORBELL_MAX_BYTES + 1] = {0};
    char decoded[NAME_MAX_BYTES + 1];
    size_t size = doorbell_encode("nightly", bytes);

    (void)state;
    bytes[size] = 'x';
    assert_false(doorbell_decode(bytes, size + 1, decoded));
}

static void test_every_other_head_is_refused(void **state)
{
    uint8_t bytes[DOORBELL_MAX_BYTES];
    char decoded[NAME_MAX_BYTES + 1];
    size_t size = doorbell_encode("nightly", bytes);

    (void)state;
    for (size_t at = 0; at < DOORBELL_HEAD_BYTES; at++)
        for (int value = 0; value < 256; value++) {
            uint8_t good = bytes[at];

            if (value == good)
                continue;
            bytes[at] = (uint8_t)value;
            assert_false(doorbell_decode(bytes, size, decoded));
            bytes[at] = good;
        }
}

static void test_names_that_are_no_names_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } bad[] = {
        {"gavl\1\1\0", 7},              /* empty */
        {"gavl\1\1\3a\0b", 10},         /* NUL inside */
        {"gavl\1\1\2a\n", 9},           /* control character */
        {"gavl\1\1\2\xc3(", 9},         /* broken UTF-8 */
        {"gavl\1\1\3\xed\xa0\x80", 10}, /* a surrogate */
    };
    char decoded[NAME_MAX_BYTES + 1];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(doorbell_decode((const uint8_t *)bad[i].bytes, bad[i].size, decoded));
}

static void test_random_bytes_are_refused_or_encode_to_themselves(void **state)
{
    struct prng prng;
    size_t accepted = 0;

    (void)state;
    prng_seed(&prng, 1);
    for (int round = 0; round < 200000; round++) {
        uint8_t bytes[DOORBELL_MAX_BYTES + 8];
        uint8_t again[DOORBELL_MAX_BYTES];
        char group[NAME_MAX_BYTES + 1];
        size_t size = prng_below(&prng, prng_chance(&prng, 500) ? 12 : sizeof bytes);

        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)(prng_chance(&prng, 700) ? 'a' + prng_below(&prng, 26) : prng_next(&prng));
        if (size >= DOORBELL_HEAD_BYTES && prng_chance(&prng, 800)) {
            memcpy(bytes, "gavl\1\1", 6);
            if (prng_chance(&prng, 800))
                bytes[6] = (uint8_t)(size - DOORBELL_HEAD_BYTES);
        }
        if (!doorbell_decode(bytes, size, group))
            continue;
        accepted++;
        assert_int_equal(doorbell_encode(group, again), size);
        assert_memory_equal(bytes, again, size);
    }
    /* If nothing got through, the rounds above have tested nothing. */
    assert_true(accepted > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_valid_group_name_comes_back),
        cmocka_unit_test(test_truncated_datagram_is_refused_at_every_length),
        cmocka_unit_test(test_trailing_bytes_are_refused),
        cmocka_unit_test(test_every_other_head_is_refused),
        cmocka_unit_test(test_names_that_are_no_names_are_refused),
        cmocka_unit_test(test_random_bytes_are_refused_or_encode_to_themselves),
    };

    return cmocka_run_group_tests_name("doorbell", tests, NULL, NULL);
}
