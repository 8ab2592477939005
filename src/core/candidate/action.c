/* SPDX-License-Identifier: Apache-2.0 */

/* What a step returns. */

#include "core/candidate/internal.h"

struct candidate_action *act(struct candidate *c, enum candidate_action_kind kind)
{
    struct candidate_action *action;

    ASSERT(c->actions->count < CANDIDATE_ACTIONS_MAX);
    action = &c->actions->items[c->actions->count++];
    action->kind = kind;
    return action;
}

struct gavel_event *emit(struct candidate *c, enum gavel_event_kind kind)
{
    struct candidate_action *action = act(c, CANDIDATE_EMIT);

    action->event = (struct gavel_event){
        .kind = kind,
        .at_ns = c->now,
        .group = c->group,
        .candidate = c->id,
        .leader = "",
        .previous = "",
        .message = "",
        .phase = c->phase,
        .previous_phase = c->phase,
    };
    return &action->event;
}
