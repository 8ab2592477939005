/* SPDX-License-Identifier: Apache-2.0 */

/* The main thread listens to the driver; the callbacks run on libgavel's thread. */
#include "bench/props/participant.h"

#include "os/clock.h"

#include <gavel/gavel.h>

#include <string.h>
#include <unistd.h>

#define LISTEN_NS NS_PER_S

struct participant {
    const struct member_context *context;
    uint64_t epoch; /* that it leads with; for the callbacks only */
};

static void on_elected(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    gavel_ns at = clock_now();
    struct participant *participant = user;

    (void)candidate;
    participant->epoch = epoch;
    member_mark(participant->context, MARK_ELECTED, epoch, at, getpid());
}

static void on_demoted(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    const struct participant *participant = user;

    (void)candidate;
    member_mark(participant->context, MARK_STOPPED, participant->epoch, clock_now(), reason);
}

/* Writes down the death of the leader of that epoch if it is one and can be seen from here. */
static void shared_log_death(const struct member_context *context, uint64_t epoch)
{
    size_t count;
    const struct mark *marks = shared_log_marks(context->shared_log, &count);

    for (size_t i = 0; i < count; i++) {
        if (mark_kind(&marks[i]) != MARK_ELECTED || marks[i].epoch != epoch ||
            !rig_is_dead((pid_t)marks[i].value))
            continue;
        shared_log_mark(
            context->shared_log,
            &(struct mark){.kind = MARK_DEAD, .member = marks[i].member, .epoch = epoch, .at = clock_now()});
    }
}

static void on_event(struct gavel_candidate *candidate, const struct gavel_event *event, void *user)
{
    const struct member_context *context = ((const struct participant *)user)->context;

    (void)candidate;
    if (event->kind == GAVEL_EVENT_LEADER_CHANGED && event->leader[0] &&
        strcmp(event->leader, context->name) != 0)
        member_mark(context, MARK_KNOWS, event->epoch, clock_now(), 0);
    else if (event->kind == GAVEL_EVENT_LEADER_DOWN)
        shared_log_death(context, event->epoch);
    else if (event->kind == GAVEL_EVENT_STOPPED && event->status != GAVEL_OK)
        member_mark(context, MARK_FAILED, 0, clock_now(), event->status);
}

static void serve(const struct member_context *context, struct gavel_candidate *candidate)
{
    for (;;) {
        char letter = member_listen(context, clock_now() + LISTEN_NS);
        if (letter == RIG_QUIT)
            return;
        if (letter == RIG_RESIGN) {
            member_mark(context, MARK_RESIGN, gavel_epoch(candidate), clock_now(), 0);
            (void)gavel_resign(candidate, NULL); /* one that no longer leads has nothing to give up */
        }
    }
}

int participant_run(const struct member_context *context, void *user)
{
    struct participant participant = {.context = context};
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_join_options join = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_candidate *candidate;
    struct gavel_error error = {0};
    struct gavel *gavel = NULL;

    options.store = user ? (const char *)user : context->rig->store;
    join.candidate = context->name;
    join.subscriber = (struct gavel_subscriber){
        .on_elected = on_elected, .on_demoted = on_demoted, .on_event = on_event, .user = &participant};

    enum gavel_status status = gavel_open(&options, &gavel, &error);
    if (status == GAVEL_OK)
        status = gavel_join(gavel, &join, &candidate, &error);
    if (status != GAVEL_OK) {
        (void)fprintf(stderr, "gavel: %s cannot take part: %s\n", context->name, error.message);
        member_mark(context, MARK_FAILED, 0, clock_now(), status);
    } else {
        member_mark(context, MARK_JOINED, 0, clock_now(), getpid());
        serve(context, candidate);
    }
    (void)gavel_close(gavel); /* not from a callback, so it cannot be refused */
    return status != GAVEL_OK ? 1 : 0;
}
