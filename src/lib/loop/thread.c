/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/loop/thread.h"

#include <errno.h>
#include <signal.h>

enum gavel_status thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *argument)
{
    sigset_t all, before;
    pthread_t thread;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        return error == EAGAIN ? GAVEL_ERR_NO_MEMORY : GAVEL_ERR_IO;
    (void)pthread_setname_np(thread, name); /* only for people who look at the process */
    *ret_thread = thread;
    return GAVEL_OK;
}
