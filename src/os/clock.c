/* SPDX-License-Identifier: Apache-2.0 */

#include "os/clock.h"

#include <stdio.h>
#include <string.h>

int64_t clock_wall_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t); /* cannot fail with a valid clock and pointer */
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / NS_PER_MS;
}

bool clock_is_shared(void)
{
    char line[128];
    bool is_shared = true;
    FILE *file = fopen("/proc/self/timens_offsets", "re");

    if (!file)
        return true; /* a kernel without time namespaces */
    while (fgets(line, sizeof line, file)) {
        char name[32];
        long long seconds;
        long long nanoseconds;

        if (sscanf(line, "%31s %lld %lld", name, &seconds, &nanoseconds) != 3)
            continue;
        /* Newer kernels print the name, older ones the number of the clock. */
        if ((strcmp(name, "boottime") == 0 || strcmp(name, "7") == 0) && (seconds != 0 || nanoseconds != 0))
            is_shared = false;
    }
    (void)fclose(file); /* only read from */
    return is_shared;
}
