/* SPDX-License-Identifier: Apache-2.0 */

#include "os/interrupt.h"

#include <stddef.h>

volatile sig_atomic_t is_interrupted;

static void interrupt(int number)
{
    (void)number;
    is_interrupted = 1;
}

void interrupt_catch(int also)
{
    struct sigaction action = {.sa_handler = interrupt};

    (void)sigaction(SIGINT, &action, NULL); /* cannot fail for these */
    (void)sigaction(SIGTERM, &action, NULL);
    if (also)
        (void)sigaction(also, &action, NULL);
}
