/* SPDX-License-Identifier: Apache-2.0 */

/* The few lines of C that the README shows, inside the program that they leave out. */
#include <gavel/gavel.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void start(struct gavel_candidate *me, uint64_t epoch, void *user)
{
    (void)me, (void)user;
    printf("I lead, with epoch %" PRIu64 "\n", epoch);
}

static void stop(struct gavel_candidate *me, enum gavel_reason why, void *user)
{
    (void)me, (void)user;
    printf("I stopped: %s\n", gavel_reason_name(why));
}

static _Noreturn void die(const char *message)
{
    fprintf(stderr, "%s\n", message);
    exit(1);
}

int main(void)
{
    struct gavel_candidate *me;
    struct gavel_error error;
    struct gavel *gavel;
    sigset_t signals;
    int number;

    setvbuf(stdout, NULL, _IOLBF, 0);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL); /* before the threads of the library start */
#include "../../docs/examples/join.inc"
    return 0;
}
