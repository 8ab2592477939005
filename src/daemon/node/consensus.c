/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/node/consensus.h"

#include "base/assert.h"
#include "os/clock.h"

#include <sys/timerfd.h>

/* Wakes up for Raft exactly when it is due, on the clock that counts suspend. */
static void arm(struct consensus *c)
{
    gavel_ns at = raft_wake_at(&c->node.raft);
    struct itimerspec alarm;

    if (c->ending.is_over || at == c->loop.armed_at)
        return;
    alarm = clock_alarm(at);
    c->loop.armed_at = at;
    (void)timerfd_settime(c->loop.timer_fd, TFD_TIMER_ABSTIME, &alarm,
                          NULL); /* fails only for bad arguments */
}

/* Of our own heartbeats: the others count on them. */
static void count_lateness(struct consensus *c, gavel_ns now)
{
    const struct raft *raft = &c->node.raft;

    if (raft->role == RAFT_LEADER && raft->heartbeat_at != NEVER &&
        now - raft->heartbeat_at > raft->settings.heartbeat / 2)
        c->draft.counters.late_heartbeats++;
}

/* One step. Readers of the table wait only for those that change it. */
static void step(struct consensus *c, struct node_event *event)
{
    bool must_lock = event->kind == NODE_NEXT && node_changes_table(&c->node);

    event->now = clock_now();
    event->wall_ms = clock_wall_ms();
    if (must_lock)
        table_box_lock(&c->shared->table);
    node_step(&c->node, event, &c->actions);
    if (must_lock)
        table_box_unlock(&c->shared->table);
    c->has_stepped = c->has_stepped || c->actions.has_stepped;
    consensus_carry_out(c);
}

/* Nothing of the work is left: Raft need not wait until all clients are answered. */
static void tell_stopped(struct consensus *c)
{
    if (c->ending.is_over || !c->work.has_stopped || node_has_todo(&c->node))
        return;
    c->work.has_stopped = false;
    consensus_work_stopped(c);
    step(c, &(struct node_event){.kind = NODE_RAFT, .raft.kind = RAFT_WORK_STOPPED});
}

static void step_next(struct consensus *c)
{
    while (!c->ending.is_over && node_has_next(&c->node)) {
        step(c, &(struct node_event){.kind = NODE_NEXT});
        tell_stopped(c);
    }
}

static enum gavel_status step_all(struct consensus *c, struct node_event *event)
{
    enum gavel_status status;

    step(c, event);
    status = c->actions.status;
    tell_stopped(c);
    step_next(c);
    if (!c->ending.is_over && c->work.has_failed) {
        c->work.has_failed = false;
        step(c, &(struct node_event){.kind = NODE_WORK_FAILED,
                                     .failed = {c->node.claim.term, c->node.claim.lease_epoch}});
        tell_stopped(c);
        step_next(c);
    }
    return status;
}

static void step_unsent(struct consensus *c)
{
    struct node_event event = {.kind = NODE_UNSENT,
                               .unsent = {.numbers = c->unsent.numbers, .count = c->unsent.count}};

    if (c->ending.is_over || c->unsent.count == 0)
        return;
    (void)step_all(c, &event); /* sends nothing itself: what is doubted is tried later */
    ASSERT(c->unsent.count == event.unsent.count);
    c->unsent.count = 0;
}

/* After steps of Raft: what others are told of it. */
static void tell_others(struct consensus *c)
{
    c->has_stepped = false;
    if (c->told.config_index != c->node.raft.config_index ||
        c->told.generation != c->node.raft.state.generation)
        consensus_members_in_force(c);
    if (c->told.founding != c->node.raft.founding)
        consensus_tell_founding(c);
    consensus_publish(c);
    if (c->told.is_status_due)
        consensus_send_status(c);
}

enum gavel_status consensus_step(struct consensus *c, struct node_event event)
{
    enum gavel_status status;

    if (c->ending.is_over)
        return GAVEL_ERR_STOPPED; /* it may have ended in the middle of what it had to do */
    status = step_all(c, &event);
    step_unsent(c);
    if (c->ending.is_over)
        return status;
    consensus_extend_work(c);
    consensus_arm_sessions(c);
    if (c->has_stepped)
        tell_others(c);
    consensus_send_answers(c);
    arm(c);
    return status;
}

enum gavel_status consensus_ask(struct consensus *c, struct raft_event event)
{
    count_lateness(c, clock_now());
    return consensus_step(c, (struct node_event){.kind = NODE_RAFT, .raft = event});
}

void consensus_feed(struct consensus *c, struct raft_event event)
{
    if (!c->ending.is_over)
        (void)consensus_ask(c, event); /* what is refused is told by Raft itself */
}

void consensus_end(struct consensus *c, int exit_code)
{
    if (c->ending.is_over)
        return;
    c->ending.is_over = true;
    c->ending.exit_code = exit_code;
    (void)event_base_loopbreak(c->loop.base); /* fails only without a base */
}
