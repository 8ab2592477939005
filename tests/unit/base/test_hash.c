/* SPDX-License-Identifier: Apache-2.0 */

/* FNV-1a has known values; snapshots on disk and digests between nodes rely on them. */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_the_values_are_those_of_fnv_1a(void **state)
{
    (void)state;
    assert_int_equal(hash_text(HASH_BEGIN, ""), UINT64_C(0xcbf29ce484222325));
    assert_int_equal(hash_text(HASH_BEGIN, "a"), UINT64_C(0xaf63dc4c8601ec8c));
    assert_int_equal(hash_text(HASH_BEGIN, "foobar"), UINT64_C(0x85944171f73967e8));
}

static void test_bytes_and_texts_are_hashed_alike_and_in_parts(void **state)
{
    (void)state;
    assert_int_equal(hash_bytes(HASH_BEGIN, "foobar", 6), hash_text(HASH_BEGIN, "foobar"));
    assert_int_equal(hash_text(hash_bytes(HASH_BEGIN, "foo", 3), "bar"), hash_text(HASH_BEGIN, "foobar"));
    assert_int_equal(hash_text(HASH_BEGIN, "\xff\x80"), hash_bytes(HASH_BEGIN, "\xff\x80", 2));
    assert_int_not_equal(hash_bytes(HASH_BEGIN, "a", 2), hash_text(HASH_BEGIN, "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_values_are_those_of_fnv_1a),
        cmocka_unit_test(test_bytes_and_texts_are_hashed_alike_and_in_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
