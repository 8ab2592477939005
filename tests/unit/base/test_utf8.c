/* SPDX-License-Identifier: Apache-2.0 */

#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Writes c in exactly so many bytes, whether or not that is its shortest form. */
static void encode(uint32_t c, size_t length, char *ret_bytes)
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    if (length == 1) {
        ret_bytes[0] = (char)c;
    } else {
        for (size_t i = length - 1; i > 0; i--) {
            ret_bytes[i] = (char)(0x80 | (c & 0x3f));
            c >>= 6;
        }
        ret_bytes[0] = (char)(lead[length] | c);
    }
    ret_bytes[length] = '\0';
}

static size_t shortest(uint32_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }

static void test_every_character_is_read_in_its_shortest_form_only(void **state)
{
    char bytes[5];

    (void)state;
    for (uint32_t c = 1; c <= 0x10ffff; c++) {
        uint32_t got = 0;
        bool is_surrogate = c >= 0xd800 && c <= 0xdfff;

        encode(c, shortest(c), bytes);
        assert_int_equal(utf8_decode(bytes, &got), is_surrogate ? 0 : shortest(c));
        assert_int_equal(got, is_surrogate ? 0 : c);
        for (size_t longer = shortest(c) + 1; longer <= 4; longer++) {
            encode(c, longer, bytes);
            assert_int_equal(utf8_decode(bytes, &got), 0);
        }
    }
}

static void test_beyond_the_last_character_is_refused(void **state)
{
    uint32_t c = 7;

    (void)state;
    assert_int_equal(utf8_decode("\xf4\x90\x80\x80", &c), 0);
    assert_int_equal(utf8_decode("\xf8\x88\x80\x80\x80", &c), 0);
    assert_int_equal(utf8_decode("\xff", &c), 0);
    assert_int_equal(c, 7);
}

static void test_a_string_that_ends_within_a_character_is_refused(void **state)
{
    uint32_t c = 7;

    (void)state;
    assert_int_equal(utf8_decode("\xc3", &c), 0);
    assert_int_equal(utf8_decode("\xe2\x82", &c), 0);
    assert_int_equal(utf8_decode("\xf0\x9f\x94", &c), 0);
    assert_int_equal(utf8_decode("\x80", &c), 0);
    assert_int_equal(utf8_decode("\xc3\x28", &c), 0);
    assert_int_equal(c, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_character_is_read_in_its_shortest_form_only),
        cmocka_unit_test(test_beyond_the_last_character_is_refused),
        cmocka_unit_test(test_a_string_that_ends_within_a_character_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
