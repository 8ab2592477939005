/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Decision: a hash of 64 bits of our own. LMDB has no checksums. The crc32 of
 * zlib would be one more library for 32 bits, and its own table is slower than
 * the disk. This is a dozen lines: eight bytes at a time, each step of which
 * can be undone. So a change within eight bytes that stand together always
 * changes the result; any other passes with a chance of one in 2^64. It keeps
 * out accidents, not forgers: whoever can write into the directory is trusted.
 *
 * The constants are odd, so that multiplying by them can be undone: the 64 bits
 * after the point of the golden ratio and of the square root of three.
 */
#include "disk/checksum.h"

#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)
#define ROOT UINT64_C(0xBB67AE8584CAA73B)

static uint64_t turn(uint64_t value, unsigned by) { return value << by | value >> (64 - by); }

static uint64_t mix(uint64_t sum, uint64_t word)
{
    sum ^= turn(word * GOLDEN, 29) * ROOT;
    return turn(sum, 31) * GOLDEN + ROOT;
}

static uint64_t word_at(const uint8_t *bytes, size_t size)
{
    uint64_t word = 0;

    for (size_t i = 0; i < size; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

uint64_t checksum_add(uint64_t before, const uint8_t *bytes, size_t size)
{
    uint64_t sum = mix(before, size);
    size_t at = 0;

    for (; size - at >= 8; at += 8)
        sum = mix(sum, word_at(bytes + at, 8));
    if (at < size)
        sum = mix(sum, word_at(bytes + at, size - at));
    sum ^= sum >> 32;
    sum *= ROOT;
    return sum ^ sum >> 29;
}
