/* SPDX-License-Identifier: Apache-2.0 */

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void assert_failed(const char *condition, const char *file, int line)
{
    (void)fprintf(stderr, "gavel: a bug: \"%s\" does not hold at %s:%d; please report it with this line\n",
                  condition, file, line); /* we are about to abort: nothing can be done if it fails */
    abort();
}
