/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What clients ask, inside the node:
 *
 *     a client of this node ──► forwarder ──► FORWARD to the leader, or our own front end
 *     a peer's client ─────────────────────► front end ──► commands for the log
 *     answers ◄── forwarder ◄── the leader, or our own front end
 */
#include "core/node/internal.h"

#include "base/assert.h"
#include "base/planted.h"
#include "wire/client.h"

#include <stdlib.h>

/* What a client asks the leader. */
static void take(struct node *node, const struct node_moment *moment, struct frontend_ticket ticket,
                 Gavel__ClientFrame **frame, struct table_packed packed)
{
    frontend_take(&node->frontend, moment->now, raft_is_working(&node->raft, moment->now), moment->wall_ms,
                  ticket, frame, packed);
}

void node_take_forwarded(struct node *node, const struct node_moment *moment,
                         const struct node_forwarded *forwarded)
{
    struct frontend_ticket ticket = {
        .origin = forwarded->peer, .tag = forwarded->number, .incarnation = forwarded->incarnation};

    Gavel__ClientFrame *frame;
    const char *reason;

    if (forwarded->is_silence) {
        node_take_silence(node, moment, forwarded);
        return;
    }
    if (forwarded->is_answer && forwarded->incarnation != node->raft.state.incarnation)
        return; /* for whom we were before */
    if (client_frame_unpack(forwarded->bytes, forwarded->size, &frame, &reason) != GAVEL_OK)
        return; /* of a newer program, or there is no memory: it is asked again, or times out */
    if (forwarded->is_answer)
        forwarder_reply(&node->forwarder, moment->now, forwarded->number, &frame);
    else if (forwarded->number != NODE_NUMBER_OF_DEATHS)
        take(node, moment, ticket, &frame,
             (struct table_packed){.bytes = forwarded->bytes, .size = forwarded->size});
    else if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REQUEST)
        frontend_report_deaths(&node->frontend, moment->now, moment->wall_ms,
                               (const Gavel__Op *const *)frame->request->ops, frame->request->n_ops);
    client_frame_free(frame);
}

void node_take_deaths(struct node *node, const struct node_moment *moment, const Gavel__Op *const *ops,
                      size_t count)
{
    Gavel__Request request = GAVEL__REQUEST__INIT;
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    struct node_action *action;
    size_t size;

    if (node->frontend.is_open) {
        frontend_report_deaths(&node->frontend, moment->now, moment->wall_ms, ops, count);
        return;
    }
    if (node->raft.leader == 0)
        return; /* the process watch reports it again */
    request.n_ops = count;
    request.ops = (Gavel__Op **)(uintptr_t)ops; /* packing does not write to them */
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request;
    if (client_frame_pack(&frame, &node->actions->deaths, &size) != GAVEL_OK)
        return;
    action = node_act(node, NODE_FORWARD);
    if (action)
        action->forward = (struct node_forwarded){.peer = node->raft.leader,
                                                  .number = NODE_NUMBER_OF_DEATHS,
                                                  .incarnation = node->raft.state.incarnation,
                                                  .bytes = node->actions->deaths + CLIENT_LENGTH_BYTES,
                                                  .size = size - CLIENT_LENGTH_BYTES};
}

bool node_take_own_reply(struct node *node, const struct node_moment *moment)
{
    struct frontend_reply *reply = STAILQ_FIRST(&node->own_replies);
    Gavel__ClientFrame *frame;
    const char *reason;

    if (!reply)
        return false;
    STAILQ_REMOVE_HEAD(&node->own_replies, next);
    if (PLANTED(NODE_DROPS_OWN_ANSWERS))
        reply->size = CLIENT_LENGTH_BYTES; /* an empty frame */
    if (client_frame_unpack(reply->bytes + CLIENT_LENGTH_BYTES, reply->size - CLIENT_LENGTH_BYTES, &frame,
                            &reason) == GAVEL_OK) {
        forwarder_reply(&node->forwarder, moment->now, reply->ticket.tag, &frame);
        client_frame_free(frame);
    }
    frontend_reply_free(reply);
    return true;
}

bool node_take_own_delivery(struct node *node, const struct node_moment *moment)
{
    struct forwarder_delivery delivery;
    Gavel__ClientFrame *frame;
    const char *reason;

    if (!forwarder_take_delivery(&node->forwarder, &delivery))
        return false;
    ASSERT(delivery.node == node->raft.state.id); /* others are handed out at once */
    if (client_frame_unpack(delivery.bytes, delivery.size, &frame, &reason) != GAVEL_OK) {
        forwarder_unsent(&node->forwarder, moment->now, delivery.number); /* no memory: again in a moment */
        return true;
    }
    take(node, moment, (struct frontend_ticket){.tag = delivery.number}, &frame,
         (struct table_packed){.bytes = delivery.bytes, .size = delivery.size});
    client_frame_free(frame);
    return true;
}

bool node_propose(struct node *node, const struct node_moment *moment)
{
    struct frontend_batch batch;
    struct raft_entry entries[FRONTEND_BATCH_MAX];
    raft_index first = raft_log_last(&node->raft.log) + 1;
    raft_term term = node->raft.state.term;
    enum gavel_status status;

    if (!frontend_next_batch(&node->frontend, &batch))
        return false;
    for (size_t i = 0; i < batch.count; i++)
        entries[i] = (struct raft_entry){
            .kind = RAFT_ENTRY_DATA, .data = batch.commands[i], .size = (uint32_t)batch.sizes[i]};
    status =
        node_step_raft(node, moment,
                       &(struct raft_event){.kind = RAFT_PROPOSE,
                                            .propose = {.entries = entries, .count = (uint32_t)batch.count}});
    node->actions->event.propose.entries = NULL; /* they were on our stack */
    if (PLANTED(NODE_PROPOSES_TWICE))
        status = first % 64 == 0 ? GAVEL_ERR_STATE : status;
    frontend_proposed(&node->frontend, status, first, term);
    return true;
}

/* False: there is no memory for it. */
static bool forward(struct node *node, raft_id peer, bool is_answer, uint64_t number, uint64_t incarnation,
                    const uint8_t *bytes, size_t size)
{
    struct node_action *action = node_act(node, NODE_FORWARD);

    if (action)
        action->forward = (struct node_forwarded){.peer = peer,
                                                  .is_answer = is_answer,
                                                  .number = number,
                                                  .incarnation = incarnation,
                                                  .bytes = bytes,
                                                  .size = size};
    return action;
}

void node_hand_out(struct node *node, gavel_ns now)
{
    struct node_actions *actions = node->actions;
    struct forwarder_delivery delivery;
    struct frontend_reply *reply;
    struct forwarder_answer *answer;
    uint64_t to;

    while ((reply = frontend_take_reply(&node->frontend))) {
        if (reply->ticket.origin == 0) {
            STAILQ_INSERT_TAIL(&node->own_replies, reply, next);
            continue;
        }
        STAILQ_INSERT_TAIL(&actions->replies, reply, next);
        (void)forward(node, reply->ticket.origin, true, reply->ticket.tag, reply->ticket.incarnation,
                      reply->bytes + CLIENT_LENGTH_BYTES, reply->size - CLIENT_LENGTH_BYTES);
    }
    while ((to = forwarder_delivers_to(&node->forwarder)) != 0 && to != node->raft.state.id) {
        (void)forwarder_take_delivery(&node->forwarder, &delivery); /* there is one */
        if (!forward(node, to, false, delivery.number, node->raft.state.incarnation, delivery.bytes,
                     delivery.size))
            forwarder_unsent(&node->forwarder, now, delivery.number);
    }
    while ((answer = forwarder_take_answer(&node->forwarder))) {
        struct node_action *action;

        STAILQ_INSERT_TAIL(&actions->answers, answer, next);
        if (PLANTED(NODE_FORGETS_CLIENTS))
            continue;
        action = node_act(node, NODE_ANSWER);
        if (action)
            action->answer = answer;
    }
}
