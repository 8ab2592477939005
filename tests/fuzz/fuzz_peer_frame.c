/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as a frame from a peer. Whatever decodes must encode, and must
 * then stay the same: what a node repeats is what it has understood.
 */
#include "target.h"

#include "base/assert.h"
#include "wire/peer.h"

#include <stdlib.h>
#include <string.h>

/* Encodes what these bytes mean; false if they are no frame, or one of a newer program. */
static bool repeat(const uint8_t *bytes, size_t size, uint8_t **ret_bytes, size_t *ret_size)
{
    struct peer_frame frame;
    const char *reason = NULL;

    if (peer_frame_decode(bytes, size, &frame, &reason) != GAVEL_OK) {
        ASSERT(reason);
        return false;
    }
    if (frame.kind == PEER_UNKNOWN) {
        peer_frame_done(&frame);
        return false;
    }
    ASSERT(peer_frame_encode(&frame, ret_bytes, ret_size) == GAVEL_OK);
    peer_frame_done(&frame);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t *once, *twice;
    size_t once_size, twice_size;

    if (!repeat(bytes, size, &once, &once_size))
        return 0;
    ASSERT(peer_frame_length(once) == once_size - PEER_LENGTH_BYTES);
    ASSERT(repeat(once + PEER_LENGTH_BYTES, once_size - PEER_LENGTH_BYTES, &twice, &twice_size));
    ASSERT(once_size == twice_size);
    ASSERT(memcmp(once, twice, once_size) == 0);
    free(once);
    free(twice);
    return 0;
}
