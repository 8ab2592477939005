/* SPDX-License-Identifier: Apache-2.0 */

/* Reports who leads: leader_changed, also to nobody, and leader_down, each once. */

#include "core/candidate/internal.h"

#include <string.h>

void leader_seen(struct candidate *c, const char *id, uint64_t epoch)
{
    struct gavel_event *event;

    fence_note(&c->fence, epoch, c->now);
    if (c->phase == GAVEL_PHASE_ELECTION && c->state == CANDIDATE_STANDBY)
        enter_phase(c, GAVEL_PHASE_READY);
    if (!c->is_leader_down && c->last_epoch == epoch && strcmp(c->last_leader, id) == 0)
        return;
    event = emit(c, GAVEL_EVENT_LEADER_CHANGED);
    /* The event lives on after this step's caller has read it, so the former name needs a place of its
     * own. */
    memcpy(c->actions->previous_leader, c->last_leader, sizeof c->actions->previous_leader);
    memmove(c->last_leader, id, strlen(id) + 1);
    event->previous = c->actions->previous_leader;
    event->leader = c->last_leader;
    event->epoch = c->last_epoch = epoch;
    c->is_leader_down = false;
}

/* Nobody leads: the leader was lost, or gave the gavel up as planned. */
void leader_gone(struct candidate *c, enum gavel_loss loss)
{
    struct gavel_event *event;

    if (c->is_leader_down || c->last_leader[0] == '\0')
        return;
    event = emit(c, loss != GAVEL_LOSS_NONE ? GAVEL_EVENT_LEADER_DOWN : GAVEL_EVENT_LEADER_CHANGED);
    event->previous = c->last_leader;
    event->epoch = c->last_epoch;
    event->how = loss;
    c->is_leader_down = true;
}
