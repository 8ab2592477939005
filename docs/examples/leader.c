/* SPDX-License-Identifier: Apache-2.0 */

#include <gavel/gavel.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

static void elected(struct gavel_candidate *me, uint64_t epoch, void *user)
{
    (void)me, (void)user;
    printf("I lead, with epoch %" PRIu64 "\n", epoch); /* start the work; pass the epoch along */
}

static void demoted(struct gavel_candidate *me, enum gavel_reason why, void *user)
{
    (void)me, (void)user;
    printf("I stopped: %s\n", gavel_reason_name(why)); /* nothing of the work may go on after this */
}

int main(void)
{
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_join_options join = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_error error;
    struct gavel_candidate *me;
    struct gavel *gavel;
    sigset_t stop;
    int number;

    setvbuf(stdout, NULL, _IOLBF, 0);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    sigprocmask(SIG_BLOCK, &stop, NULL); /* before the threads of the library start */

    join.group = "nightly";
    join.subscriber.on_elected = elected;
    join.subscriber.on_demoted = demoted;
    if (gavel_open(&options, &gavel, &error) != GAVEL_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    if (gavel_join(gavel, &join, &me, &error) != GAVEL_OK) {
        fprintf(stderr, "%s\n", error.message);
        gavel_close(gavel);
        return 1;
    }
    sigwait(&stop, &number);
    gavel_close(gavel); /* stops the work, hands over, leaves */
    return 0;
}
