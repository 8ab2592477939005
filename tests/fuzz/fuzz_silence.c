/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as what a leader and a voter tell each other of sessions. Whatever decodes must encode, and stay
 * the same; and a voter takes it. */
#include "target.h"

#include "base/assert.h"
#include "core/session/silence.h"

#include <stdlib.h>
#include <string.h>

static bool repeat(const uint8_t *bytes, size_t size, uint8_t **ret_bytes, size_t *ret_size)
{
    struct silence_message message;

    if (silence_decode(bytes, size, &message) != GAVEL_OK)
        return false;
    ASSERT(silence_encode(&message, ret_bytes, ret_size) == GAVEL_OK);
    silence_message_done(&message);
    return true;
}

/* What it says is wild; no instant may be later than now. */
static void take(const uint8_t *bytes, size_t size)
{
    const gavel_ns now = INT64_C(1000) * NS_PER_S;
    struct silence silence;
    struct silence_message message;

    ASSERT(silence_decode(bytes, size, &message) == GAVEL_OK);
    silence_init(&silence, 1000, 0);
    if (!message.is_answer) {
        silence_led(&silence, message.term);
        silence_take(&silence, now, &message);
        for (size_t i = 0; i < message.mark_count; i++)
            ASSERT(silence_heard_at(&silence, message.marks[i].revisions[0]) <= now);
    }
    silence_message_done(&message);
    silence_done(&silence);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t *once, *twice;
    size_t once_size, twice_size;

    if (!repeat(bytes, size, &once, &once_size))
        return 0;
    ASSERT(repeat(once, once_size, &twice, &twice_size));
    ASSERT(once_size == twice_size);
    ASSERT(memcmp(once, twice, once_size) == 0);
    take(once, once_size);
    free(once);
    free(twice);
    return 0;
}
