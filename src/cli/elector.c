/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The main thread does the work and listens to the driver; the callbacks run
 * on libgavel's thread. A mutex makes each act whole, so that on_demoted can
 * return only when the work has really stopped.
 */
#include "cli/elector.h"

#include "os/clock.h"

#include <gavel/gavel.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ACT_EVERY_NS NS_PER_MS
#define LISTEN_NS NS_PER_S

struct elector {
    const struct post *post;
    struct elector_plan plan;
    pthread_mutex_t work; /* guards what follows */
    uint64_t epoch;       /* 0: must not work */
    gavel_ns last_act;
    gavel_ns deadline; /* of the mandate, as last known */
};

static gavel_ns mandate_deadline(const struct gavel_candidate *candidate)
{
    int64_t until = 0;

    return gavel_answer(candidate, &until) == GAVEL_NOT_LEADER ? 0 : until;
}

static void on_elected(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    struct elector *elector = user;
    gavel_ns at = clock_now();
    gavel_ns deadline = mandate_deadline(candidate);

    /* Before the work may begin, so that nothing is ever done under a mandate that is not on record. */
    post_mark(elector->post, MARK_ELECTED, epoch, at, getpid());
    (void)pthread_mutex_lock(&elector->work);
    elector->epoch = epoch;
    elector->last_act = 0;
    elector->deadline = deadline;
    (void)pthread_mutex_unlock(&elector->work);
}

/*
 * One that was frozen past its deadline may have had a write under way. The
 * fence is there for that write, so it is made here, where a successor is
 * known to have written: the log must refuse it.
 */
static void write_too_late(const struct elector *elector, uint64_t epoch, gavel_ns at)
{
    if (elector->plan.works && witness_highest_epoch(elector->post->witness) > epoch)
        (void)witness_beat(elector->post->witness, elector->post->member, epoch,
                           at); /* the witness counts it */
}

static void on_demoted(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    struct elector *elector = user;

    (void)candidate;
    (void)pthread_mutex_lock(&elector->work);
    struct mark mark = {.kind = MARK_STOPPED,
                        .member = elector->post->member,
                        .epoch = elector->epoch,
                        .last_act = elector->last_act,
                        .deadline = elector->deadline,
                        .value = reason};
    elector->epoch = 0;
    (void)pthread_mutex_unlock(&elector->work);

    mark.at = clock_now();
    witness_mark(elector->post->witness, &mark);
    if (mark.deadline && mark.at > mark.deadline)
        write_too_late(elector, mark.epoch, mark.at);
}

/* Dead or a zombie. A pid that is another process by now counts as alive, which errs on the strict side. */
static bool is_dead(pid_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd death = {.fd = pidfd, .events = POLLIN};

    if (pidfd < 0)
        return errno == ESRCH;
    bool dead = poll(&death, 1, 0) == 1;
    (void)close(pidfd);
    return dead;
}

/* Writes down the death of the leader of that epoch if it is one and can be seen from here. */
static void witness_death(const struct post *post, uint64_t epoch)
{
    size_t count;
    const struct mark *marks = witness_marks(post->witness, &count);

    for (size_t i = 0; i < count; i++) {
        if (mark_kind(&marks[i]) != MARK_ELECTED || marks[i].epoch != epoch ||
            !is_dead((pid_t)marks[i].value))
            continue;
        witness_mark(
            post->witness,
            &(struct mark){.kind = MARK_DEAD, .member = marks[i].member, .epoch = epoch, .at = clock_now()});
    }
}

static void on_event(struct gavel_candidate *candidate, const struct gavel_event *event, void *user)
{
    struct elector *elector = user;

    (void)candidate;
    if (event->kind == GAVEL_EVENT_LEADER_CHANGED && event->leader[0] &&
        strcmp(event->leader, elector->post->name) != 0)
        post_mark(elector->post, MARK_KNOWS, event->epoch, clock_now(), 0);
    else if (event->kind == GAVEL_EVENT_LEADER_DOWN)
        witness_death(elector->post, event->epoch);
    else if (event->kind == GAVEL_EVENT_STOPPED && event->status)
        post_mark(elector->post, MARK_FAILED, 0, clock_now(), event->status);
}

/*
 * One act, if this process may. The time is read before the question, so that
 * a beat's time is one at which it led: a process that is frozen in between
 * gets "no" when it wakes. If it is frozen after the answer, only the fence
 * helps, and it does.
 */
static void act(struct elector *elector, const struct gavel_candidate *candidate)
{
    struct witness *witness = elector->post->witness;
    gavel_ns deadline = mandate_deadline(candidate);

    (void)pthread_mutex_lock(&elector->work);
    gavel_ns at = clock_now();
    if (elector->epoch && gavel_is_leader(candidate)) {
        if (witness_beat(witness, elector->post->member, elector->epoch, at))
            elector->last_act = at;
        elector->deadline = ns_max(elector->deadline, deadline);
    } else if (elector->plan.is_saboteur && witness_highest_epoch(witness)) {
        /* With the epoch of whoever leads, which no fence can tell from the real one. */
        (void)witness_beat(witness, elector->post->member, witness_highest_epoch(witness), at);
    }
    (void)pthread_mutex_unlock(&elector->work);
}

static void serve(struct elector *elector, struct gavel_candidate *candidate)
{
    gavel_ns step = elector->plan.works || elector->plan.is_saboteur ? ACT_EVERY_NS : LISTEN_NS;

    for (;;) {
        char letter = post_listen(elector->post, clock_now() + step);
        if (letter == CREW_QUIT)
            return;
        if (letter == CREW_RESIGN) {
            post_mark(elector->post, MARK_RESIGN, gavel_epoch(candidate), clock_now(), 0);
            (void)gavel_resign(candidate, NULL); /* one that no longer leads has nothing to give up */
        }
        if (elector->plan.works)
            act(elector, candidate);
    }
}

int elector_run(const struct post *post, void *user)
{
    struct elector elector = {
        .post = post, .plan = *(const struct elector_plan *)user, .work = PTHREAD_MUTEX_INITIALIZER};
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_join_options join = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_candidate *candidate;
    struct gavel_error error = {0};
    struct gavel *gavel = NULL;

    options.store = post->crew->store;
    join.candidate = post->name;
    join.subscriber = (struct gavel_subscriber){
        .on_elected = on_elected, .on_demoted = on_demoted, .on_event = on_event, .user = &elector};
    /*
     * One that was frozen past its deadline shall go back to standby and go
     * on, to be seen in the timeline. It may: every write is fenced by its
     * epoch. A program whose writes are not keeps the default, to abort.
     */
    join.overrun = GAVEL_OVERRUN_REPORT;

    enum gavel_status status = gavel_open(&options, &gavel, &error);
    if (!status)
        status = gavel_join(gavel, &join, &candidate, &error);
    if (status) {
        (void)fprintf(stderr, "gavel: %s cannot take part: %s\n", post->name, error.message);
        post_mark(post, MARK_FAILED, 0, clock_now(), status);
    } else {
        post_mark(post, MARK_JOINED, 0, clock_now(), getpid());
        serve(&elector, candidate);
    }
    (void)gavel_close(gavel); /* not from a callback, so it cannot be refused */
    return status ? 1 : 0;
}
