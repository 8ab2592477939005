/* SPDX-License-Identifier: Apache-2.0 */

/* The main thread listens to the driver; the callbacks run on libgavel's thread. */
#include "bench/props/elector.h"

#include "os/clock.h"

#include <gavel/gavel.h>

#include <string.h>
#include <unistd.h>

#define LISTEN_NS NS_PER_S

struct elector {
    const struct post *post;
    uint64_t epoch; /* that it leads with; for the callbacks only */
};

static void on_elected(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    gavel_ns at = clock_now();
    struct elector *elector = user;

    (void)candidate;
    elector->epoch = epoch;
    post_mark(elector->post, MARK_ELECTED, epoch, at, getpid());
}

static void on_demoted(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    const struct elector *elector = user;

    (void)candidate;
    post_mark(elector->post, MARK_STOPPED, elector->epoch, clock_now(), reason);
}

/* Writes down the death of the leader of that epoch if it is one and can be seen from here. */
static void witness_death(const struct post *post, uint64_t epoch)
{
    size_t count;
    const struct mark *marks = witness_marks(post->witness, &count);

    for (size_t i = 0; i < count; i++) {
        if (mark_kind(&marks[i]) != MARK_ELECTED || marks[i].epoch != epoch ||
            !crew_is_dead((pid_t)marks[i].value))
            continue;
        witness_mark(
            post->witness,
            &(struct mark){.kind = MARK_DEAD, .member = marks[i].member, .epoch = epoch, .at = clock_now()});
    }
}

static void on_event(struct gavel_candidate *candidate, const struct gavel_event *event, void *user)
{
    const struct post *post = ((const struct elector *)user)->post;

    (void)candidate;
    if (event->kind == GAVEL_EVENT_LEADER_CHANGED && event->leader[0] &&
        strcmp(event->leader, post->name) != 0)
        post_mark(post, MARK_KNOWS, event->epoch, clock_now(), 0);
    else if (event->kind == GAVEL_EVENT_LEADER_DOWN)
        witness_death(post, event->epoch);
    else if (event->kind == GAVEL_EVENT_STOPPED && event->status)
        post_mark(post, MARK_FAILED, 0, clock_now(), event->status);
}

static void serve(const struct post *post, struct gavel_candidate *candidate)
{
    for (;;) {
        char letter = post_listen(post, clock_now() + LISTEN_NS);
        if (letter == CREW_QUIT)
            return;
        if (letter == CREW_RESIGN) {
            post_mark(post, MARK_RESIGN, gavel_epoch(candidate), clock_now(), 0);
            (void)gavel_resign(candidate, NULL); /* one that no longer leads has nothing to give up */
        }
    }
}

int elector_run(const struct post *post, void *user)
{
    struct elector elector = {.post = post};
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_join_options join = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_candidate *candidate;
    struct gavel_error error = {0};
    struct gavel *gavel = NULL;

    options.store = user ? (const char *)user : post->crew->store;
    join.candidate = post->name;
    join.subscriber = (struct gavel_subscriber){
        .on_elected = on_elected, .on_demoted = on_demoted, .on_event = on_event, .user = &elector};

    enum gavel_status status = gavel_open(&options, &gavel, &error);
    if (!status)
        status = gavel_join(gavel, &join, &candidate, &error);
    if (status) {
        (void)fprintf(stderr, "gavel: %s cannot take part: %s\n", post->name, error.message);
        post_mark(post, MARK_FAILED, 0, clock_now(), status);
    } else {
        post_mark(post, MARK_JOINED, 0, clock_now(), getpid());
        serve(post, candidate);
    }
    (void)gavel_close(gavel); /* not from a callback, so it cannot be refused */
    return status ? 1 : 0;
}
