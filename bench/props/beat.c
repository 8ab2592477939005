/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The order of the first lines matters. The predecessor is looked for before
 * this one says that it begins: if it is still there by then, two commands
 * ran at once, whatever the clocks say.
 */
#include "bench/props/beat.h"

#include "bench/props/rig.h"
#include "os/clock.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_MISUSED 2

/* Whatever happens to the driver, nobody beats for longer. */
#define LIFETIME_S 600

struct beater {
    struct shared_log *shared_log;
    uint32_t member;
    uint64_t epoch; /* 0: not run by gavel */
    gavel_ns every; /* 0: only once */
};

static void note(const struct beater *beater, enum mark_kind kind, int64_t value)
{
    shared_log_mark(beater->shared_log, &(struct mark){.kind = kind,
                                                       .member = beater->member,
                                                       .epoch = beater->epoch,
                                                       .at = clock_now(),
                                                       .value = value});
}

/* The last one that began before us under a mandate; NULL if we are the first. */
static const struct mark *predecessor(const struct shared_log *shared_log)
{
    size_t count;
    const struct mark *marks = shared_log_marks(shared_log, &count);

    while (count--)
        if (mark_kind(&marks[count]) == MARK_ELECTED && marks[count].epoch)
            return &marks[count];
    return NULL;
}

static void look_back(const struct beater *beater)
{
    const struct mark *before = predecessor(beater->shared_log);

    if (!beater->epoch || !before)
        return;
    enum mark_kind kind = rig_is_dead((pid_t)before->value) ? MARK_DEAD : MARK_OVERLAP;
    shared_log_mark(
        beater->shared_log,
        &(struct mark){.kind = kind, .member = before->member, .epoch = before->epoch, .at = clock_now()});
}

static void beat_until_told(const struct beater *beater, const sigset_t *told)
{
    struct timespec pause = {.tv_sec = beater->every / NS_PER_S, .tv_nsec = beater->every % NS_PER_S};

    if (beater->every == 0) {
        while (sigwaitinfo(told, NULL) < 0)
            ;
        return;
    }
    do
        (void)shared_log_beat(beater->shared_log, beater->member, beater->epoch,
                              clock_now()); /* the shared log counts what it refuses */
    while (sigtimedwait(told, NULL, &pause) < 0);
}

int beat_main(int argc, char **argv)
{
    const char *epoch = getenv("GAVEL_EPOCH");
    struct beater beater = {.epoch = epoch ? strtoull(epoch, NULL, 10) : 0};
    sigset_t told;

    if (argc != 4 || shared_log_map((int)strtol(argv[1], NULL, 10), &beater.shared_log) != GAVEL_OK)
        return EXIT_MISUSED;
    beater.member = (uint32_t)strtoul(argv[2], NULL, 10);
    beater.every = strtoll(argv[3], NULL, 10) * NS_PER_US;
    (void)alarm(LIFETIME_S);
    sigemptyset(&told);
    sigaddset(&told, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &told, NULL); /* before it begins, so that a stop is always in order */

    look_back(&beater);
    note(&beater, MARK_GUARD, getppid());
    note(&beater, MARK_ELECTED, getpid());
    beat_until_told(&beater, &told);
    note(&beater, MARK_STOPPED, 0);
    return 0;
}
