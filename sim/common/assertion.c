/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/common/assertion.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The run under way; assertions know nothing of worlds, so this one thing is global. */
static assertion_cb watcher;
static void *watched;

void assertion_watch(assertion_cb tell, void *context)
{
    watcher = tell;
    watched = context;
}

_Noreturn void assert_failed(const char *condition, const char *file, int line)
{
    const char *slash = strrchr(file, '/');
    char what[256];

    (void)snprintf(what, sizeof what, "\"%s\" does not hold at %s:%d", condition, slash ? slash + 1 : file,
                   line); /* cut off if too long */
    if (watcher)
        watcher(watched, what);
    (void)fprintf(stderr, "gavel-sim: a bug: %s\n", what);
    abort();
}
