/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as a frame from a client, or from a node. Whatever unpacks must
 * pack and can be copied, and must then stay the same: what a node carries to
 * the leader is what it has understood.
 */
#include "target.h"

#include "base/assert.h"
#include "wire/client.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Packs what these bytes mean, by way of a copy; false if they are no frame. */
static bool repeat(const uint8_t *bytes, size_t size, uint8_t **ret_bytes, size_t *ret_size)
{
    Gavel__ClientFrame *frame, *copy;
    const char *reason = NULL;
    enum gavel_status status;

    if (client_frame_unpack(bytes, size, &frame, &reason) != GAVEL_OK) {
        ASSERT(reason);
        return false;
    }
    copy = client_frame_copy(frame);
    ASSERT(copy);
    ASSERT(copy->what_case == frame->what_case);
    client_frame_free(frame);
    status = client_frame_pack(copy, ret_bytes, ret_size);
    client_frame_free(copy);
    /* A negative number may be longer than it came. */
    ASSERT(status == GAVEL_OK || size > CLIENT_FRAME_MAX / 4);
    return status == GAVEL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t *once, *twice;
    size_t once_size, twice_size;

    if (!repeat(bytes, size, &once, &once_size))
        return 0;
    ASSERT(client_frame_length(once) == once_size - CLIENT_LENGTH_BYTES);
    ASSERT(repeat(once + CLIENT_LENGTH_BYTES, once_size - CLIENT_LENGTH_BYTES, &twice, &twice_size));
    ASSERT(once_size == twice_size);
    ASSERT(memcmp(once, twice, once_size) == 0);
    free(once);
    free(twice);
    return 0;
}
