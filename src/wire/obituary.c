/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The datagram of an obituary, numbers with the highest byte first:
 *
 *      0  "gvob"           8  cluster        24  node           40  0
 *      4  version, 0 0 0  16  generation     32  incarnation    48  mac
 */

#include "base/assert.h"
#include "wire/peer.h"

#include <string.h>

enum { VERSION = 1, MAC_AT = 48 };

static const uint8_t head[8] = {'g', 'v', 'o', 'b', VERSION, 0, 0, 0};

_Static_assert(MAC_AT + RAFT_MAC_BYTES == OBITUARY_BYTES, "the layout has gaps");

static void put(uint8_t *bytes, uint64_t number)
{
    for (int i = 7; i >= 0; i--) {
        bytes[i] = (uint8_t)number;
        number >>= 8;
    }
}

static uint64_t get(const uint8_t *bytes)
{
    uint64_t number = 0;

    for (int i = 0; i < 8; i++)
        number = number << 8 | bytes[i];
    return number;
}

size_t obituary_encode(uint64_t cluster, uint64_t generation, const struct raft_certificate *certificate,
                       uint8_t bytes[OBITUARY_BYTES])
{
    ASSERT(certificate->kind == RAFT_CERT_OBITUARY);
    memcpy(bytes, head, sizeof head);
    put(bytes + 8, cluster);
    put(bytes + 16, generation);
    put(bytes + 24, certificate->node);
    put(bytes + 32, certificate->incarnation);
    put(bytes + 40, 0);
    memcpy(bytes + MAC_AT, certificate->mac, RAFT_MAC_BYTES);
    return OBITUARY_BYTES;
}

bool obituary_decode(const uint8_t *bytes, size_t size, uint64_t *ret_cluster, uint64_t *ret_generation,
                     struct raft_certificate *ret_certificate)
{
    if (size != OBITUARY_BYTES || memcmp(bytes, head, sizeof head) != 0 || get(bytes + 40) != 0)
        return false;
    *ret_cluster = get(bytes + 8);
    *ret_generation = get(bytes + 16);
    *ret_certificate = (struct raft_certificate){
        .kind = RAFT_CERT_OBITUARY, .node = get(bytes + 24), .incarnation = get(bytes + 32)};
    memcpy(ret_certificate->mac, bytes + MAC_AT, RAFT_MAC_BYTES);
    return true;
}
