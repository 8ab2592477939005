/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/node/consensus.h"

#include "os/clock.h"

#include <sys/timerfd.h>

/* Wakes up for Raft exactly when it is due, on the clock that counts suspend. */
static void arm(struct consensus *c)
{
    gavel_ns at = raft_wake_at(&c->raft);
    struct itimerspec alarm;

    if (c->is_over || at == c->armed_at)
        return;
    alarm = clock_alarm(at);
    c->armed_at = at;
    (void)timerfd_settime(c->timer_fd, TFD_TIMER_ABSTIME, &alarm, NULL); /* fails only for bad arguments */
}

/* Of our own heartbeats: the others count on them. */
static void count_lateness(struct consensus *c, gavel_ns now)
{
    const struct raft *raft = &c->raft;

    if (raft->role == RAFT_LEADER && raft->heartbeat_at != NEVER &&
        now - raft->heartbeat_at > raft->settings.heartbeat / 2)
        c->draft.counters.late_heartbeats++;
}

enum gavel_status consensus_ask(struct consensus *c, struct raft_event event)
{
    enum gavel_status status;

    event.now = clock_now();
    count_lateness(c, event.now);
    status = raft_step(&c->raft, &event, &c->actions);
    consensus_carry_out(c);
    while (c->has_stopped) {
        struct raft_event stopped = {.kind = RAFT_WORK_STOPPED, .now = clock_now()};

        c->has_stopped = false;
        consensus_work_stopped(c);
        (void)raft_step(&c->raft, &stopped, &c->actions); /* refused only if it was not asked for */
        consensus_carry_out(c);
    }
    consensus_extend_work(c);
    if (c->config_index != c->raft.config_index || c->generation != c->raft.state.generation)
        consensus_members_in_force(c);
    if (c->told_founding != c->raft.founding)
        consensus_tell_founding(c);
    consensus_publish(c);
    if (c->is_status_due)
        consensus_send_status(c);
    if (c->pending)
        consensus_look_at_pending(c);
    consensus_settle_sessions(c);
    arm(c);
    return status;
}

void consensus_feed(struct consensus *c, struct raft_event event)
{
    if (!c->is_over)
        (void)consensus_ask(c, event); /* what is refused is told by Raft itself */
}

void consensus_end(struct consensus *c, int exit_code)
{
    if (c->is_over)
        return;
    c->is_over = true;
    c->exit_code = exit_code;
    (void)event_base_loopbreak(c->base); /* fails only without a base */
}
