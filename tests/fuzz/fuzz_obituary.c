/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as a datagram. What decodes encodes to the same bytes: there is one way to write an obituary. */
#include "target.h"

#include "base/assert.h"
#include "wire/peer.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct raft_certificate certificate;
    uint8_t again[OBITUARY_BYTES];
    uint64_t cluster, generation;

    if (!obituary_decode(bytes, size, &cluster, &generation, &certificate))
        return 0;
    ASSERT(size == OBITUARY_BYTES);
    ASSERT(obituary_encode(cluster, generation, &certificate, again) == OBITUARY_BYTES);
    ASSERT(memcmp(bytes, again, size) == 0);
    return 0;
}
