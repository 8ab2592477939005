/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/candidate/granting.h"

#include "base/assert.h"
#include "sim/candidate/network.h"
#include "sim/candidate/trace.h"
#include "sim/candidate/world.h"

#include <stdio.h>
#include <string.h>

/* The client takes the drift of both sides off it, and what is left is to be the lease less drift. */
static gavel_ms ttl_of_lease(const struct gavel_settings *s)
{
    return ms_from_ns(ns_stretch(ns_from_ms(s->lease_ms), s->drift_ppm)) + 1;
}

/* As long as the lease, or as an operator has set it: longer, shorter, or too short to work. */
static gavel_ms draw_ttl(struct world *world, unsigned slot, bool is_free)
{
    const struct gavel_settings *s = &world->profile.settings[slot];
    gavel_ms lease = ttl_of_lease(s);
    gavel_ms drawn = world_between(world, STREAM_CLUSTER, lease, 3 * lease);
    gavel_ms tiny = world_between(world, STREAM_CLUSTER, 1, s->stop_grace_ms + s->stop_margin_ms + 1);
    bool is_tiny = prng_chance(&world->streams[STREAM_CLUSTER], 60);

    if (!is_free)
        return lease;
    return is_tiny && slot > 0 && world->profile.cold_start == 0 ? tiny : drawn;
}

void granting_begin(struct world *world)
{
    bool is_free = prng_chance(&world->streams[STREAM_CLUSTER], 500);

    memset(&world->granting, 0, sizeof world->granting);
    for (unsigned slot = 0; slot < SLOTS_MAX; slot++)
        world->granting.ttl_ms[slot] = draw_ttl(world, slot, is_free);
    world->granting.is_old = prng_chance(&world->streams[STREAM_CLUSTER], 50);
}

gavel_ms granting_ttl_ms(const struct world *world, unsigned slot) { return world->granting.ttl_ms[slot]; }

bool granting_is_short(const struct world *world, unsigned slot)
{
    const struct gavel_settings *s = &world->profile.settings[slot];
    gavel_ms drift = 2 * world->granting.ttl_ms[slot] * s->drift_ppm / 1000000 + 1;

    return world->profile.has_sessions &&
           world->granting.ttl_ms[slot] <= s->stop_grace_ms + s->stop_margin_ms + drift;
}

static gavel_ns store_now(const struct world *world) { return clock_local(&world->store.clock, world->now); }

struct open_session *granting_session(struct world *world, uint64_t number)
{
    for (size_t i = 0; i < world->granting.session_count; i++)
        if (world->granting.sessions[i].number == number)
            return &world->granting.sessions[i];
    return NULL;
}

struct standing *granting_standing(struct world *world, const char *id)
{
    for (size_t i = 0; i < world->granting.standing_count; i++)
        if (strcmp(world->granting.standings[i].registration.id, id) == 0)
            return &world->granting.standings[i];
    return NULL;
}

static void remove_standing(struct world *world, struct standing *standing)
{
    struct granting *granting = &world->granting;

    *standing = granting->standings[--granting->standing_count];
}

static void end_session(struct world *world, uint64_t number, enum gavel_loss loss)
{
    struct granting *granting = &world->granting;
    struct open_session *session = granting_session(world, number);
    unsigned previous_slot = election_replaced_slot(world);

    granting->revision++;
    TRACE(world, NULL, "store: session %llu of %s ends (%s)", (unsigned long long)number,
          session->slot < SLOTS_MAX ? world->processes[session->slot].label : "nobody",
          gavel_loss_name(loss));
    *session = granting->sessions[--granting->session_count];
    for (size_t i = granting->standing_count; i-- > 0;)
        if (granting->standings[i].session == number)
            remove_standing(world, &granting->standings[i]);
    if (granting->holder_session == number)
        election_end_mandate(world, loss, "");
    election_settle(world, NULL, previous_slot);
}

/* Ends it and tells the others. Its own process may see the record, too, before it knows of the end. */
static void end_and_push(struct world *world, uint64_t number, enum gavel_loss loss)
{
    const struct open_session *session = granting_session(world, number);
    const struct standing last = {
        .session = number, .slot = session->slot, .incarnation = session->incarnation};
    uint64_t version = world->store.record.version;

    end_session(world, number, loss);
    if (world->store.record.version == version)
        return;
    network_push(world);
    if (prng_chance(&world->streams[STREAM_SESSION], 300) && last.slot < SLOTS_MAX)
        network_push_to(world, &last);
}

void granting_expire(struct world *world, uint64_t number)
{
    const struct open_session *session = granting_session(world, number);

    if (session && store_now(world) >= session->expires_at)
        end_and_push(world, number, GAVEL_LOSS_LAPSED);
}

void granting_close_dead(struct world *world, uint64_t number)
{
    if (granting_session(world, number))
        end_and_push(world, number, GAVEL_LOSS_KILLED);
}

static void keep(struct world *world, struct open_session *session)
{
    session->expires_at = ns_max(session->expires_at, store_now(world) + ns_from_ms(session->ttl_ms));
    world_push(world, ns_max(clock_real(&world->store.clock, session->expires_at), world->now), EVENT_EXPIRE,
               0)
        ->number = session->number;
}

void granting_end_wish(struct world *world)
{
    struct record *record = &world->store.record;

    if (!record->held || record->wish_epoch == 0)
        return;
    TRACE(world, NULL, "store: the wish for epoch %llu is over", (unsigned long long)record->wish_epoch);
    world->granting.revision++;
    election_forget_wish(record);
    network_push(world);
}

void granting_change_leader(struct world *world)
{
    struct granting *granting = &world->granting;

    TRACE(world, NULL,
          "store: its cluster has another leader, and all sessions go on for their time to live");
    for (size_t i = 0; i < granting->session_count; i++) {
        keep(world, &granting->sessions[i]);
        granting->sessions[i].beats = 0;
    }
}

static enum gavel_status open_one(struct world *world, const struct message *message)
{
    struct granting *granting = &world->granting;
    const struct process *process = &world->processes[message->slot];
    struct open_session *session;

    if (granting->session_count == SESSIONS_MAX)
        return GAVEL_ERR_STORE_FULL;
    session = &granting->sessions[granting->session_count++];
    *session = (struct open_session){.number = message->session,
                                     .slot = message->slot,
                                     .incarnation = message->incarnation,
                                     .ttl_ms = granting_ttl_ms(world, message->slot)};
    if (!world->profile.is_guarded && process->incarnation == message->incarnation)
        session->process = process_identity(process);
    keep(world, session);
    return GAVEL_OK;
}

void granting_former_leader(struct world *world, gavel_ns expires_in)
{
    struct granting *granting = &world->granting;
    struct open_session *session = &granting->sessions[granting->session_count++];

    granting->revision = world->store.record.epoch;
    granting->holder_session = ++world->next_session;
    *session = (struct open_session){.number = granting->holder_session,
                                     .slot = SLOTS_MAX,
                                     .process = world->store.record.process,
                                     .expires_at = store_now(world) + expires_in};
    world_push(world, ns_max(clock_real(&world->store.clock, session->expires_at), world->now), EVENT_EXPIRE,
               0)
        ->number = session->number;
}

static void pass_epoch(struct granting *granting, uint64_t epoch)
{
    if (granting->revision <= epoch)
        granting->revision = epoch + 1;
}

static enum gavel_status campaign(struct world *world, struct message *message)
{
    struct granting *granting = &world->granting;
    struct record *record = &world->store.record;
    const struct store_request *request = &message->request;
    struct standing *own = granting_standing(world, request->registration.id);
    unsigned previous_slot = election_replaced_slot(world);

    if (own && own->session != message->session) {
        message->reply.other_instance = own->registration.instance;
        message->reply.other_beats = granting_session(world, own->session)->beats;
        return GAVEL_ERR_ID_IN_USE;
    }
    if (!own && record->done)
        return GAVEL_ERR_DONE;
    if (granting->standing_count == (own ? 1 : 0)) {
        granting->policy = request->campaign.policy;
        granting->min_mandate_ms = request->campaign.min_mandate_ms;
        granting->preempts = request->campaign.preempts;
    }
    granting->revision++;
    pass_epoch(granting, request->campaign.epoch_at_least);
    if (!own) {
        ASSERT(granting->standing_count < SLOTS_MAX); /* there are no more ids than slots */
        own = &granting->standings[granting->standing_count++];
        own->joined = granting->revision;
    }
    own->session = message->session;
    own->slot = message->slot;
    own->incarnation = message->incarnation;
    own->registration = request->registration;
    own->campaign = request->campaign;
    if (request->campaign.renews_epoch != 0 && record->held && granting->holder_session == message->session &&
        record->epoch == request->campaign.renews_epoch)
        election_begin_mandate(world, own, previous_slot);
    election_settle(world, NULL, previous_slot);
    return GAVEL_OK;
}

/* To the end of the queue. */
static void requeue(struct granting *granting, struct standing *standing)
{
    standing->joined = granting->revision;
}

/* A session takes part in a group once. */
static struct standing *standing_of(struct world *world, uint64_t session)
{
    for (size_t i = 0; i < world->granting.standing_count; i++)
        if (world->granting.standings[i].session == session)
            return &world->granting.standings[i];
    return NULL;
}

static enum gavel_status release(struct world *world, const struct message *message)
{
    struct granting *granting = &world->granting;
    struct record *record = &world->store.record;
    const struct record *given_up = &message->request.record;
    struct standing *own = standing_of(world, message->session);
    unsigned previous_slot = election_replaced_slot(world);

    if (!own)
        return GAVEL_ERR_NOT_FOUND;
    if (!record->held || granting->holder_session != message->session || record->epoch != given_up->epoch)
        return GAVEL_ERR_NOT_HOLDER;
    granting->revision++;
    election_end_mandate(world, given_up->loss, given_up->successor);
    if (given_up->done && !granting->is_old) {
        record->done = true;
        referee_closed(world, message, record->epoch);
        remove_standing(world, own);
        return GAVEL_OK;
    }
    if (message->request.leaves || given_up->done) {
        if (given_up->done) /* it has no more to do, so whoever comes replaces nobody, now or later */
            previous_slot = world->store.holder_slot = SLOTS_MAX;
        remove_standing(world, own);
        election_settle(world, NULL, previous_slot);
        return GAVEL_OK;
    }
    requeue(granting, own);
    election_settle(world, own, previous_slot);
    return GAVEL_OK;
}

static enum gavel_status leave(struct world *world, const struct message *message)
{
    struct granting *granting = &world->granting;
    struct standing *own = granting_standing(world, message->request.registration.id);
    unsigned previous_slot = election_replaced_slot(world);

    if (!own || own->session != message->session)
        return GAVEL_ERR_NOT_FOUND;
    granting->revision++;
    if (granting->holder_session == message->session)
        election_end_mandate(world, GAVEL_LOSS_NONE, "");
    remove_standing(world, own);
    election_settle(world, NULL, previous_slot);
    return GAVEL_OK;
}

static enum gavel_status died(struct world *world, const struct message *message)
{
    const struct record *record = &world->store.record;
    const struct record *seen = &message->request.record;

    if (!record->held || record->epoch != seen->epoch || record->process.pid == 0 ||
        record->process.pid != seen->process.pid)
        return GAVEL_ERR_NOT_HOLDER;
    if (prng_chance(&world->streams[STREAM_CLUSTER], 200))
        return prng_chance(&world->streams[STREAM_CLUSTER], 500) ? GAVEL_ERR_STATE : GAVEL_ERR_DENIED;
    end_session(world, world->granting.holder_session, GAVEL_LOSS_KILLED);
    return GAVEL_OK;
}

/* A wish for one who may not lead is refused, and so is one that comes before its time. */
static enum gavel_status ask(struct world *world, const struct message *message)
{
    struct granting *granting = &world->granting;
    const struct record *wish = &message->request.record;
    const struct standing *successor = granting_standing(world, wish->wish_successor);
    bool is_early = world->now - granting->granted_at < ns_from_ms(granting->min_mandate_ms);
    bool is_led = world->store.record.held && world->store.record.epoch == wish->wish_epoch;

    if (is_led && wish->wish_successor[0] && !successor)
        return GAVEL_ERR_NOT_FOUND;
    if (is_led && successor &&
        (!successor->campaign.stands || successor->session == granting->holder_session))
        return GAVEL_ERR_STATE;
    if (is_led && is_early && !wish->wish_force)
        return GAVEL_ERR_STATE;
    granting->revision++;
    return sim_store_ask(world, message);
}

static void list(struct world *world, struct message *message)
{
    message->reply.registrations = message->listing;
    for (size_t i = 0; i < world->granting.standing_count; i++) {
        const struct standing *standing = &world->granting.standings[i];

        message->listing[i] = standing->registration;
        message->listing[i].eligible = standing->campaign.stands;
        message->listing[i].age_ms = 0;
    }
    message->reply.registration_count = world->granting.standing_count;
}

/* Writes need the session that they were decided in. */
static bool is_refused(struct world *world, const struct message *message)
{
    const struct store_request *request = &message->request;

    if (request->op == STORE_READ || request->op == STORE_CANDIDATES)
        return false;
    return !granting_session(world, message->session) ||
           (request->session != 0 && request->session != message->session);
}

static enum gavel_status carry_out(struct world *world, struct message *message)
{
    if (is_refused(world, message))
        return GAVEL_ERR_SESSION_GONE;
    switch (message->request.op) {
    case STORE_HEARTBEAT:
        return campaign(world, message);
    case STORE_RELEASE:
        return release(world, message);
    case STORE_LEAVE:
        return leave(world, message);
    case STORE_ASK:
        return ask(world, message);
    case STORE_DIED:
        return died(world, message);
    case STORE_CANDIDATES:
        list(world, message);
        return GAVEL_OK;
    case STORE_READ:
        return GAVEL_OK;
    default:
        return GAVEL_ERR_STORE_UNSUPPORTED;
    }
}

static enum gavel_status apply(struct world *world, struct message *message)
{
    struct process *sender = &world->processes[message->slot];
    struct open_session *session;

    switch (message->kind) {
    case MESSAGE_CALL:
        return carry_out(world, message);
    case MESSAGE_OPEN:
        return open_one(world, message);
    case MESSAGE_KEEP:
        session = granting_session(world, message->session);
        if (!session)
            return GAVEL_ERR_SESSION_GONE;
        keep(world, session);
        session->beats++;
        if (!sender->is_alive || sender->session.number != message->session)
            sender->late_keeps++;
        return GAVEL_OK;
    case MESSAGE_PUSH: /* the store sends it */
        break;
    }
    return GAVEL_ERR_INVALID;
}

void granting_apply(struct world *world, struct message *message)
{
    struct store_reply *reply = &message->reply;
    const struct record *record = &world->store.record;
    uint64_t version = record->version;
    uint64_t wish_epoch = record->wish_epoch;

    memset(reply, 0, offsetof(struct store_reply, record));
    reply->registration_count = 0;
    reply->status = apply(world, message);
    election_preempt(world);
    reply->found = world->store.is_found;
    reply->record = *record;
    if (message->request.op == STORE_HEARTBEAT && message->kind == MESSAGE_CALL)
        reply->record.process = (struct process_id){0};
    reply->session = message->session;
    reply->revision = world->granting.revision;
    reply->is_ours =
        record->held && message->session != 0 && world->granting.holder_session == message->session;
    if (message->kind == MESSAGE_CALL && message->request.op != STORE_READ &&
        message->request.op != STORE_CANDIDATES)
        TRACE(world, NULL, "store: %s of %s in session %llu is %s; epoch %llu of %s, %s, version %llu",
              store_op_name(message->request.op), world->processes[message->slot].label,
              (unsigned long long)message->session,
              reply->status != GAVEL_OK ? gavel_status_name(reply->status) : "done",
              (unsigned long long)record->epoch, record->holder,
              record->held   ? "held"
              : record->done ? "done"
                             : "released",
              (unsigned long long)record->version);
    if (record->version != version || record->wish_epoch != wish_epoch)
        network_push(world);
}
