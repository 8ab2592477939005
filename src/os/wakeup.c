/* SPDX-License-Identifier: Apache-2.0 */

#include "os/wakeup.h"

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int wakeup_open(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void wakeup_ring(int fd)
{
    const uint64_t one = 1;

    (void)!write(fd, &one, sizeof one); /* full means that it is readable already */
}

void wakeup_clear(int fd)
{
    uint64_t times;

    (void)!read(fd, &times, sizeof times); /* nothing to read: somebody else has */
}

void wakeup_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* it has nothing to lose */
    *fd = -1;
}
