/* SPDX-License-Identifier: Apache-2.0 */

#include "os/entropy.h"

#include "base/assert.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

uint64_t entropy_u64(void)
{
    uint64_t value;
    ssize_t got;

    do {
        got = getrandom(&value, sizeof value, 0);
    } while (got < 0 && errno == EINTR);
    /* The kernel gives up to 256 bytes whole. Going on without them would let two claims share a nonce. */
    ASSERT(got == (ssize_t)sizeof value);
    return value;
}
