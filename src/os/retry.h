/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A predecessor that was killed holds its ports and its lock until the kernel
 * has taken it apart, which can take a while on a busy machine, or if it had
 * much memory. Whoever is started in its place at once tries again for a
 * second before it takes them for somebody else's.
 *
 *     struct retry retry = {0};
 *
 *     do
 *         failure = take();
 *     while (failure == EADDRINUSE && retry_wait(&retry));
 */
#ifndef OS_RETRY_H
#define OS_RETRY_H

#include "base/time.h"

#include <stdbool.h>

#define RETRY_FOR_MS 1000

struct retry {
    gavel_ns until; /* 0: it has not failed yet */
};

/* Waits for a moment; false if the second is over. */
bool retry_wait(struct retry *retry);

#endif
