/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What clients ask, on the consensus thread: their frames and what peers
 * forward become events of the node, and its answers go where they belong.
 *
 *     other threads ── mailbox ──► NODE_CLIENT        NODE_ANSWER  ──► the mailbox of that thread
 *     peer frames FORWARDING ────► NODE_FORWARDED     NODE_FORWARD ──► a peer frame
 */
#include "daemon/node/consensus.h"

#include "base/assert.h"
#include "base/error.h"
#include "daemon/shared/loop.h"
#include "os/clock.h"

#include <stdlib.h>

/* Whom our forwarder serves, as one number: the mailbox in the lowest bits. */
#define BOX_BITS 2
#define BOXES_MAX (1 << BOX_BITS)
/* The clients thread goes round at least so often. */
#define CLIENTS_SILENCE (250 * NS_PER_MS)

/* ---- what goes out ---- */

static void note_unsent(struct consensus *c, uint64_t number)
{
    if (c->unsent.count == c->unsent.capacity) {
        size_t capacity = c->unsent.capacity > 0 ? 2 * c->unsent.capacity : 64;
        uint64_t *grown = realloc(c->unsent.numbers, capacity * sizeof *grown);

        if (!grown)
            return; /* it is sent again after a while */
        c->unsent.numbers = grown;
        c->unsent.capacity = capacity;
    }
    c->unsent.numbers[c->unsent.count++] = number;
}

void consensus_forward(struct consensus *c, const struct node_forwarded *forwarded)
{
    const struct peer_forwarding frame = {.number = forwarded->number,
                                          .incarnation = forwarded->incarnation,
                                          .data = forwarded->bytes,
                                          .size = forwarded->size};

    /* After one that cannot be sent, the others of this step need not be tried: all go to the leader. */
    bool is_request = !forwarded->is_answer && !forwarded->is_silence;
    bool is_hopeless = is_request && c->unsent.count > 0;
    enum peer_frame_kind kind = forwarded->is_silence  ? PEER_SILENCE
                                : forwarded->is_answer ? PEER_ANSWER
                                                       : PEER_FORWARDING;

    if (!is_hopeless && transport_send_forwarding(c->transport, forwarded->peer, kind, &frame))
        return;
    if (is_request)
        note_unsent(c, forwarded->number);
}

void consensus_answer_client(struct consensus *c, struct forwarder_answer *answer)
{
    forwarding_answer(&c->sessions.messages, answer->client >> BOX_BITS,
                      c->sessions.boxes[answer->client & (BOXES_MAX - 1)], answer->frame);
    answer->frame = NULL; /* taken */
}

/* ---- deaths ---- */

static void tell_of_deaths(void *user, const Gavel__Op *const *ops, size_t count)
{
    struct consensus *c = user;

    c->draft.counters.deaths += count;
    (void)consensus_step(c, (struct node_event){.kind = NODE_DEATHS, .deaths = {.ops = ops, .count = count}});
}

/* ---- what comes in ---- */

void consensus_forwarding(struct consensus *c, raft_id peer, enum peer_frame_kind kind,
                          const struct peer_forwarding *forwarding)
{
    if (!c->ending.is_over)
        (void)consensus_step(c, (struct node_event){.kind = NODE_FORWARDED,
                                                    .forwarded = {.peer = peer,
                                                                  .is_answer = kind == PEER_ANSWER,
                                                                  .is_silence = kind == PEER_SILENCE,
                                                                  .number = forwarding->number,
                                                                  .incarnation = forwarding->incarnation,
                                                                  .bytes = forwarding->data,
                                                                  .size = forwarding->size}});
}

/* Our number for a mailbox; there are as many as there are threads with clients. */
static uint64_t number_of_box(struct consensus *c, struct mailbox *box)
{
    for (uint64_t i = 0; i < BOXES_MAX; i++) {
        if (!c->sessions.boxes[i])
            c->sessions.boxes[i] = box;
        if (c->sessions.boxes[i] == box)
            return i;
    }
    ASSERT(!"more threads have clients than there are numbers for them");
    return 0;
}

static void take(struct consensus *c, uint64_t client, const Gavel__ClientFrame *frame,
                 struct forwarder_question *question, bool has_more)
{
    struct node_event event = {
        .kind = frame || question ? NODE_CLIENT : NODE_CLIENT_GONE,
        .client = {.id = client, .frame = frame, .question = question, .has_more = has_more}};

    if (!c->ending.is_over && consensus_step(c, event) == GAVEL_ERR_NO_MEMORY)
        forwarding_answer(&c->sessions.messages, client >> BOX_BITS,
                          c->sessions.boxes[client & (BOXES_MAX - 1)], NULL);
}

void consensus_take_forwardings(struct consensus *c)
{
    struct mail_link *message = mailbox_take_all(&c->shared->forwardings);

    while (message) {
        struct forwarding *forwarding = (struct forwarding *)message;
        uint64_t client = forwarding->client << BOX_BITS | number_of_box(c, forwarding->reply_to);
        Gavel__ClientFrame *frame = forwarding->frame;
        struct forwarder_question question = forwarding->question;

        message = message->next;
        if (c->node.forwarder.count == 0 && !c->node.forwarder.gathering)
            forwarding_stock_clear(&c->sessions.messages); /* nobody is owed an answer */
        forwarding->frame = NULL;
        forwarding->question = (struct forwarder_question){0};
        if (frame || question.bytes)
            forwarding_stock_keep(&c->sessions.messages, forwarding); /* it may be answered at once */
        else
            forwarding_free(forwarding);
        take(c, client, frame, question.bytes ? &question : NULL, message != NULL);
        client_frame_free(frame);
        forwarder_question_done(&question);
    }
}

/* ---- time ---- */

/* Whether clients may have spoken without being heard: their thread did not run. */
static bool is_stalled(const struct consensus *c, gavel_ns now)
{
    gavel_ns alive_at = atomic_load(&c->shared->clients_alive_at);

    return alive_at != 0 && now - alive_at > CLIENTS_SILENCE;
}

void consensus_arm_sessions(struct consensus *c)
{
    gavel_ns at = node_tick_at(&c->node);
    gavel_ns left;
    struct timeval delay;

    if (c->ending.is_over || at == NEVER || at == c->loop.sessions_armed_at || !c->loop.sessions_event)
        return;
    left = ns_max(at - clock_now(), 0);
    delay.tv_sec = left / NS_PER_S;
    delay.tv_usec = left % NS_PER_S / 1000 + 1;
    c->loop.sessions_armed_at = at;
    (void)event_add(c->loop.sessions_event, &delay); /* the tick comes anyway */
}

void consensus_tick_sessions(struct consensus *c)
{
    bool stalled = is_stalled(c, clock_now());

    (void)consensus_step(c, (struct node_event){.kind = NODE_TICK, .tick = {.is_stalled = stalled}});
}

static void on_due(evutil_socket_t fd, short what, void *user)
{
    struct consensus *c = user;

    (void)fd;
    (void)what;
    c->loop.sessions_armed_at = 0;
    if (!c->ending.is_over)
        consensus_tick_sessions(c);
}

/* ---- life ---- */

enum gavel_status consensus_begin_sessions(struct consensus *c, struct gavel_error *error)
{
    process_watch_init(&c->sessions.process_watch, c->loop.base, c->table, tell_of_deaths, c);
    c->loop.sessions_event = evtimer_new(c->loop.base, on_due, c);
    return c->loop.sessions_event ? GAVEL_OK : error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
}

void consensus_end_sessions(struct consensus *c)
{
    struct mail_link *message;

    while ((message = mailbox_take(&c->shared->forwardings)))
        forwarding_free((struct forwarding *)message);
    forwarding_stock_clear(&c->sessions.messages);
    loop_drop(&c->loop.sessions_event);
    process_watch_done(&c->sessions.process_watch);
}
