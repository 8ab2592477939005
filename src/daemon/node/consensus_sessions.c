/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What clients ask, on the consensus thread: the forwarder of this node, and,
 * while it leads, the front end (src/core/session). Here they get their hands.
 *
 *     forwardings of other threads ─► forwarder ─► our own front end, or the leader's by a peer frame
 *     peer frames FORWARDING ───────► front end ─► raft_step(PROPOSE), answers to where they came from
 *
 * Neither calls the other directly: what the front end answers to this node's own
 * forwarder waits in a list until both are done. After every step of Raft
 * consensus_settle_sessions() brings everything to rest.
 */
#include "daemon/node/consensus.h"

#include "base/assert.h"
#include "base/error.h"
#include "daemon/shared/loop.h"
#include "os/clock.h"

#include <stdlib.h>
#include <string.h>

/* Whom our forwarder serves, as one number: the mailbox in the lowest bits. */
#define BOX_BITS 2
#define BOXES_MAX (1 << BOX_BITS)
/* Of forwardings between nodes; our clients' begin with 1. */
#define NUMBER_OF_DEATHS 0
/* The clients thread goes round at least so often. */
#define CLIENTS_SILENCE (250 * NS_PER_MS)
/* Turns of settling; more wait for the next event of the loop, and there is always a tick. */
#define SETTLE_TURNS 64

/* An answer of our own front end for our own forwarder. */
struct own_answer {
    STAILQ_ENTRY(own_answer) next;
    uint64_t number;
    Gavel__ClientFrame *frame;
};

/* ---- the forwarder's hands ---- */

static bool deliver(void *user, uint64_t node, uint64_t number, const Gavel__ClientFrame *frame,
                    const uint8_t *bytes, size_t size)
{
    struct consensus *c = user;
    gavel_ns now = clock_now();

    if (node != c->config->id)
        return transport_send_forwarding(
            c->transport, node, false,
            &(struct peer_forwarding){
                .number = number, .incarnation = c->raft.state.incarnation, .data = bytes, .size = size});
    frontend_take(&c->leader_frontend, now, raft_is_working(&c->raft, now), clock_wall_ms(),
                  (struct frontend_ticket){.tag = number}, frame);
    return true;
}

static void answer(void *user, uint64_t client, uint64_t tag, const Gavel__ClientFrame *frame)
{
    struct consensus *c = user;

    (void)tag; /* the frame has it */
    forwarding_answer(&c->messages, client >> BOX_BITS, c->client_boxes[client & (BOXES_MAX - 1)], frame);
}

/* ---- the front end's hands ---- */

static enum gavel_status propose(void *user, const uint8_t *const *commands, const size_t *sizes,
                                 size_t count, uint64_t *ret_first, uint64_t *ret_term)
{
    struct consensus *c = user;
    struct raft_entry *entries = calloc(count, sizeof *entries);
    enum gavel_status status;

    if (!entries)
        return GAVEL_ERR_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        entries[i] =
            (struct raft_entry){.kind = RAFT_ENTRY_DATA, .data = commands[i], .size = (uint32_t)sizes[i]};
    *ret_first = raft_log_last(&c->raft.log) + 1;
    *ret_term = c->raft.state.term;
    status = consensus_ask(c, (struct raft_event){.kind = RAFT_PROPOSE,
                                                  .propose = {.entries = entries, .count = (uint32_t)count}});
    free(entries);
    return status;
}

static void reply(void *user, struct frontend_ticket ticket, const Gavel__ClientFrame *frame)
{
    struct consensus *c = user;
    struct own_answer *own;
    uint8_t *bytes;
    size_t size;

    if (ticket.origin != 0) {
        if (client_frame_pack(frame, &bytes, &size) != GAVEL_OK)
            return; /* it is asked again */
        (void)transport_send_forwarding(c->transport, ticket.origin, true,
                                        &(struct peer_forwarding){.number = ticket.tag,
                                                                  .incarnation = ticket.incarnation,
                                                                  .data = bytes + CLIENT_LENGTH_BYTES,
                                                                  .size = size - CLIENT_LENGTH_BYTES});
        free(bytes); /* what is lost is asked again */
        return;
    }
    own = malloc(sizeof *own);
    if (!own)
        return;
    *own = (struct own_answer){.number = ticket.tag, .frame = client_frame_copy(frame)};
    if (own->frame)
        STAILQ_INSERT_TAIL(&c->own_answers, own, next);
    else
        free(own);
}

static bool take_own_answer(struct consensus *c)
{
    struct own_answer *own = STAILQ_FIRST(&c->own_answers);

    if (!own)
        return false;
    STAILQ_REMOVE_HEAD(&c->own_answers, next);
    forwarder_reply(&c->forwarder, clock_now(), own->number, own->frame);
    client_frame_free(own->frame);
    free(own);
    return true;
}

/* ---- deaths ---- */

static void tell_of_deaths(void *user, const Gavel__Op *const *ops, size_t count)
{
    struct consensus *c = user;
    Gavel__Request request = GAVEL__REQUEST__INIT;
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    uint8_t *bytes;
    size_t size;

    c->draft.counters.deaths += count;
    if (c->leader_frontend.is_open) {
        frontend_report_deaths(&c->leader_frontend, clock_now(), clock_wall_ms(), ops, count);
        event_active(c->sessions_event, EV_TIMEOUT, 0); /* whoever tells us is looking through the table */
        return;
    }
    if (c->raft.leader == 0)
        return; /* the tick tells again */
    request.n_ops = count;
    request.ops = (Gavel__Op **)(uintptr_t)ops; /* packing does not write to them */
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request;
    if (client_frame_pack(&frame, &bytes, &size) != GAVEL_OK)
        return;
    (void)transport_send_forwarding(c->transport, c->raft.leader, false,
                                    &(struct peer_forwarding){.number = NUMBER_OF_DEATHS,
                                                              .incarnation = c->raft.state.incarnation,
                                                              .data = bytes + CLIENT_LENGTH_BYTES,
                                                              .size = size - CLIENT_LENGTH_BYTES});
    free(bytes);
}

/* Under the lock of the table: whether it lives is asked afterwards. */
static void met_process(void *user, const struct table_process *process)
{
    struct consensus *c = user;

    if (c->met_count == c->met_capacity) {
        size_t capacity = c->met_capacity > 0 ? 2 * c->met_capacity : 16;
        struct table_process *grown = realloc(c->met, capacity * sizeof *grown);

        if (!grown)
            return; /* then only time tells of its death */
        c->met = grown;
        c->met_capacity = capacity;
    }
    c->met[c->met_count++] = *process;
}

/* ---- what comes in ---- */

void consensus_forwarding(struct consensus *c, raft_id peer, bool is_answer,
                          const struct peer_forwarding *forwarding)
{
    Gavel__ClientFrame *frame;
    const char *reason;
    gavel_ns now = clock_now();

    if (is_answer && forwarding->incarnation != c->raft.state.incarnation)
        return; /* for whom we were before */
    if (client_frame_unpack(forwarding->data, forwarding->size, &frame, &reason) != GAVEL_OK)
        return; /* of a newer program, or there is no memory: it is asked again, or times out */
    if (is_answer)
        forwarder_reply(&c->forwarder, now, forwarding->number, frame);
    else if (forwarding->number != NUMBER_OF_DEATHS)
        frontend_take(&c->leader_frontend, now, raft_is_working(&c->raft, now), clock_wall_ms(),
                      (struct frontend_ticket){
                          .origin = peer, .tag = forwarding->number, .incarnation = forwarding->incarnation},
                      frame);
    else if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REQUEST)
        frontend_report_deaths(&c->leader_frontend, now, clock_wall_ms(),
                               (const Gavel__Op *const *)frame->request->ops, frame->request->n_ops);
    client_frame_free(frame);
    consensus_settle_sessions(c);
}

/* Our number for a mailbox; there are as many as there are threads with clients. */
static uint64_t number_of_box(struct consensus *c, struct mailbox *box)
{
    for (uint64_t i = 0; i < BOXES_MAX; i++) {
        if (!c->client_boxes[i])
            c->client_boxes[i] = box;
        if (c->client_boxes[i] == box)
            return i;
    }
    ASSERT(!"more threads have clients than there are numbers for them");
    return 0;
}

void consensus_take_forwardings(struct consensus *c)
{
    struct mail_link *message = mailbox_take_all(&c->shared->forwardings);
    gavel_ns now = clock_now();

    while (message) {
        struct forwarding *forwarding = (struct forwarding *)message;
        uint64_t client = forwarding->client << BOX_BITS | number_of_box(c, forwarding->reply_to);
        Gavel__ClientFrame *frame = forwarding->frame;

        message = message->next;
        if (c->forwarder.count == 0 && !c->forwarder.gathering)
            forwarding_stock_clear(&c->messages); /* nobody is owed an answer */
        forwarding->frame = NULL;
        if (frame)
            forwarding_stock_keep(&c->messages, forwarding); /* it may be answered at once */
        else
            forwarding_free(forwarding);
        if (frame)
            forwarder_take(&c->forwarder, now, client, frame);
        else
            forwarder_forget(&c->forwarder, client);
        client_frame_free(frame);
    }
    consensus_settle_sessions(c);
}

/* ---- the table ---- */

enum gavel_status consensus_apply_entry(struct consensus *c, raft_index index, const struct raft_entry *entry)
{
    struct table_result *results = NULL;
    size_t count = 0;
    enum gavel_status status;
    gavel_ns now = clock_now();

    c->applying_at = now;
    table_box_lock(&c->shared->table);
    status = table_apply_ops(c->table, index, entry->data, entry->size, &results, &count);
    table_box_unlock(&c->shared->table);
    for (size_t i = 0; i < c->met_count; i++)
        process_watch_meet(&c->process_watch, &c->met[i]);
    c->met_count = 0;
    if (status != GAVEL_ERR_NO_MEMORY)
        frontend_applied(&c->leader_frontend, now, raft_is_working(&c->raft, now), index, entry->term, status,
                         results, count);
    free(results);
    return status;
}

/* ---- time ---- */

/* Whether clients may have spoken without being heard: their thread did not run. */
static bool is_stalled(const struct consensus *c, gavel_ns now)
{
    gavel_ns alive_at = atomic_load(&c->shared->clients_alive_at);

    return alive_at != 0 && now - alive_at > CLIENTS_SILENCE;
}

static void arm(struct consensus *c, gavel_ns now)
{
    gavel_ns at = ns_min(frontend_wake_at(&c->leader_frontend), forwarder_wake_at(&c->forwarder));
    gavel_ns left = at - now;
    struct timeval delay;

    if (at == NEVER || at == c->sessions_armed_at)
        return;
    if (left < 0)
        left = 0;
    delay.tv_sec = left / NS_PER_S;
    delay.tv_usec = left % NS_PER_S / 1000 + 1;
    c->sessions_armed_at = at;
    (void)event_add(c->sessions_event, &delay); /* the tick comes anyway */
}

void consensus_tick_sessions(struct consensus *c)
{
    gavel_ns now = clock_now();

    frontend_tick(&c->leader_frontend, now, raft_is_working(&c->raft, now), is_stalled(c, now),
                  clock_wall_ms());
    forwarder_tick(&c->forwarder, now);
    consensus_settle_sessions(c);
}

static void on_due(evutil_socket_t fd, short what, void *user)
{
    struct consensus *c = user;

    (void)fd;
    (void)what;
    c->sessions_armed_at = 0;
    if (!c->is_over)
        consensus_tick_sessions(c);
}

/*
 * Brings what clients asked to rest: proposes what the front end has gathered, tells the forwarder who leads,
 * and carries our own front end's answers to it. Proposing is a step of Raft, after which we are called
 * again: only the first call does anything.
 */
void consensus_settle_sessions(struct consensus *c)
{
    gavel_ns now = clock_now();

    if (c->is_settling || c->is_over || !c->forwarder.hands.user)
        return;
    c->is_settling = true;
    forwarder_leader(&c->forwarder, now, c->raft.leader, c->raft.state.term);
    for (int turn = 0; turn < SETTLE_TURNS && !c->is_over; turn++) {
        frontend_flush(&c->leader_frontend, now);
        if (!take_own_answer(c))
            break;
        while (take_own_answer(c))
            continue;
    }
    arm(c, now);
    c->is_settling = false;
}

/* ---- life ---- */

enum gavel_status consensus_begin_sessions(struct consensus *c, struct gavel_error *error)
{
    c->table->met = met_process;
    c->table->met_user = c;
    c->table->clock = &c->applying_at;
    STAILQ_INIT(&c->own_answers);
    process_watch_init(&c->process_watch, c->base, c->table, tell_of_deaths, c);
    frontend_init(&c->leader_frontend, c->table,
                  &(struct frontend_hands){.propose = propose, .reply = reply, .user = c},
                  c->config->raft.drift_ppm);
    forwarder_init(&c->forwarder, &(struct forwarder_hands){.deliver = deliver, .answer = answer, .user = c});
    c->sessions_event = evtimer_new(c->base, on_due, c);
    return c->sessions_event ? GAVEL_OK : error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
}

void consensus_end_sessions(struct consensus *c)
{
    struct own_answer *own;
    struct mail_link *message;

    while ((message = mailbox_take(&c->shared->forwardings)))
        forwarding_free((struct forwarding *)message);
    forwarding_stock_clear(&c->messages);
    while ((own = STAILQ_FIRST(&c->own_answers))) {
        STAILQ_REMOVE_HEAD(&c->own_answers, next);
        client_frame_free(own->frame);
        free(own);
    }
    loop_drop(&c->sessions_event);
    free(c->met);
    process_watch_done(&c->process_watch);
    frontend_done(&c->leader_frontend);
    forwarder_done(&c->forwarder);
}
