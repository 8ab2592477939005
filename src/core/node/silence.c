/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Marks between nodes (core/session/marks.h): who leads sends them to the
 * voters, and counts by its configuration who holds them. A voter takes them
 * from whom it follows, in that term, and if they are meant for this start of
 * it: what was sent to an earlier one may still be under way. As whom it has
 * started, it says in every answer.
 */
#include "core/node/internal.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/planted.h"

#include <stdlib.h>

/* Which configuration is in force. */
static uint64_t config_of(const struct node *node)
{
    uint8_t bytes[RAFT_CONFIG_BYTES_MAX];
    size_t size = raft_config_encode(&node->raft.config, bytes);
    uint64_t index = node->raft.config_index;

    return hash_bytes(hash_bytes(HASH_BEGIN, &index, sizeof index), bytes, size);
}

/* ---- what goes out ---- */

static void send(struct node *node, raft_id to, const struct silence_message *message)
{
    struct frontend_reply *bytes = calloc(1, sizeof *bytes); /* what the action borrows */
    struct node_action *action;

    if (!bytes || silence_encode(message, &bytes->bytes, &bytes->size) != GAVEL_OK) {
        free(bytes);
        return; /* it is sent again */
    }
    STAILQ_INSERT_TAIL(&node->actions->replies, bytes, next);
    action = node_act(node, NODE_FORWARD);
    if (action)
        action->forward = (struct node_forwarded){.peer = to,
                                                  .is_silence = true,
                                                  .incarnation = node->raft.state.incarnation,
                                                  .bytes = bytes->bytes,
                                                  .size = bytes->size};
}

static void send_marks(struct node *node, gavel_ns now)
{
    const struct raft_config *config = &node->raft.config;
    struct silence_message message;
    struct marks_room room;

    for (size_t i = 0; i < config->count; i++) {
        raft_id id = config->members[i].id;

        if (id == node->raft.state.id || !raft_config_votes(config, id) ||
            now < marks_send_at(&node->marks, id))
            continue;
        marks_send(&node->marks, now, id, config_of(node), &room, &message);
        send(node, id, &message);
    }
}

/* ---- what a majority knows ---- */

static int64_t acked(const void *context, raft_id id)
{
    const struct node *node = context;

    if (PLANTED(MARK_HELD_BY_ONE))
        return (int64_t)node->silence.held.number;
    if (id == node->raft.state.id)
        return (int64_t)node->silence.held.number;
    return (int64_t)marks_acked(&node->marks, id);
}

static int64_t sure(const void *context, raft_id id)
{
    const struct node *node = context;

    return id == node->raft.state.id ? NEVER : marks_sure(&node->marks, id);
}

static void answer(struct node *node, gavel_ns now)
{
    int64_t number = raft_config_reached(&node->raft.config, acked, node);

    marks_answer(&node->marks, (uint64_t)number);
    frontend_release(&node->frontend, raft_is_working(&node->raft, now), node->silence.answered);
}

/* ---- the leadership ---- */

/* Answers wait for marks only if every voter acknowledges them: nodes of before 0.7.0 do not. */
static bool may_mark(const struct node *node)
{
    return !node->never_marks && node->frontend.table_version >= TABLE_VERSION_0_7;
}

void node_silence_open(struct node *node, gavel_ns now)
{
    marks_open(&node->marks, now, node->raft.state.term, may_mark(node));
}

void node_silence_close(struct node *node, gavel_ns now) { marks_close(&node->marks, now, config_of(node)); }

void node_silence_tend(struct node *node, gavel_ns now)
{
    struct marks *marks = &node->marks;

    if (node->raft.leader != 0 && node->raft.leader != node->raft.state.id)
        silence_led(&node->silence, node->raft.state.term);
    if (!marks->is_open)
        return;
    if (!marks->is_making && may_mark(node))
        marks_begin(marks, now);
    if (now >= marks_due_at(marks))
        marks_make(marks, now, config_of(node));
    if (marks->is_making)
        answer(node, now);
    send_marks(node, now);
}

gavel_ns node_silence_at(const struct node *node)
{
    const struct raft_config *config = &node->raft.config;
    gavel_ns at = marks_due_at(&node->marks);

    for (size_t i = 0; node->marks.is_open && i < config->count; i++) {
        raft_id id = config->members[i].id;

        if (id != node->raft.state.id && raft_config_votes(config, id))
            at = ns_min(at, marks_send_at(&node->marks, id));
    }
    return at;
}

/* ---- what comes in ---- */

/* Of the leader. */
static void take_marks(struct node *node, gavel_ns now, raft_id peer, const struct silence_message *message)
{
    const struct silence_past *past;
    struct silence_message reply = {.is_answer = true, .term = message->term};

    if (node->raft.leader != peer || peer == node->raft.state.id || message->term != node->raft.state.term)
        return;
    silence_led(&node->silence, message->term);
    if (message->to_incarnation == node->raft.state.incarnation)
        silence_take(&node->silence, now, message);
    reply.held = node->silence.held.term == message->term ? node->silence.held.number : 0;
    if (message->asks) {
        past = silence_before(&node->silence, message->term);
        reply.told = past->kind;
        reply.told_term = past->held_term;
        reply.told_number = past->held_number;
        reply.told_age = ns_max(now - past->at, 0);
    }
    send(node, peer, &reply);
}

void node_take_silence(struct node *node, const struct node_moment *moment,
                       const struct node_forwarded *forwarded)
{
    struct silence_message message;

    if (silence_decode(forwarded->bytes, forwarded->size, &message) != GAVEL_OK)
        return; /* of a newer program, or there is no memory: it is sent again */
    if (!message.is_answer) {
        take_marks(node, moment->now, forwarded->peer, &message);
    } else if (marks_take(&node->marks, moment->now, forwarded->peer, forwarded->incarnation, &message)) {
        marks_learn(&node->marks, raft_config_reached(&node->raft.config, sure, node), config_of(node));
        frontend_look(&node->frontend, moment->now); /* some may end sooner than they seemed to */
    }
    silence_message_done(&message);
}
