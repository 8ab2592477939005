/* SPDX-License-Identifier: Apache-2.0 */

#include "os/retry.h"

#include "os/clock.h"

#include <time.h>

#define PAUSE_MS 10

bool retry_wait(struct retry *retry)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * NS_PER_MS};
    gavel_ns now = clock_now();

    if (retry->until == 0)
        retry->until = now + ns_from_ms(RETRY_FOR_MS);
    if (now >= retry->until)
        return false;
    (void)nanosleep(&pause, NULL); /* tries again a little early if a signal cuts it short */
    return true;
}
