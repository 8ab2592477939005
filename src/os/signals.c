/* SPDX-License-Identifier: Apache-2.0 */

#include "os/signals.h"

#include <signal.h>

void signals_begin(int held)
{
    sigset_t blocked;

    /* None of these fails with what it is given. */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigemptyset(&blocked);
    if (held)
        (void)sigaddset(&blocked, held);
    (void)sigprocmask(SIG_SETMASK, &blocked, NULL);
}
