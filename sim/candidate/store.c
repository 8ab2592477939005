/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/candidate/store.h"

#include "base/planted.h"
#include "sim/candidate/network.h"
#include "sim/candidate/trace.h"
#include "sim/candidate/world.h"

#include <string.h>

void sim_store_begin(struct world *world)
{
    struct sim_store *store = &world->store;
    int64_t half = world->profile.settings[0].drift_ppm * INT64_C(500);
    int64_t rate = world_between(world, STREAM_PROFILE, -half, half);

    memset(store, 0, sizeof *store);
    store->clock.offset = world_between(world, STREAM_PROFILE, NS_PER_S, 1000000 * NS_PER_S);
    if (world_has(world, FAULT_RATE))
        store->clock.rate_ppb = rate;
}

gavel_ns sim_store_now(const struct world *world)
{
    return clock_local(&world->store.clock, world->now) + world->store.stepped;
}

void sim_store_step(struct world *world, gavel_ns by)
{
    world->store.stepped += by;
    TRACE(world, NULL, "the store's clock jumps by %.3f s", (double)by / (double)NS_PER_S);
}

static bool has_clock(const struct world *world) { return world->profile.clock != STORE_CLOCK_NONE; }

/*
 * What is left of the lease on the store's clock, rounded up so that it is never over too early. More than
 * the whole lease cannot be left: then the clock was set back and can tell nothing, so what the standbys saw
 * decides.
 */
static gavel_ms remaining_ms(const struct world *world)
{
    const struct sim_store *store = &world->store;
    gavel_ns left = store->expires_at - sim_store_now(world);
    bool is_set_back = left > ns_from_ms(store->record.lease_ms);

    if (PLANTED(CLOCK_SET_BACK_BLOCKS))
        is_set_back = false;
    if (!store->is_found || !store->record.held || left <= 0 || is_set_back)
        return 0;
    return (left + NS_PER_MS - 1) / NS_PER_MS;
}

static void begin_lease(struct world *world, const struct message *message)
{
    struct sim_store *store = &world->store;

    store->record.version++;
    store->record.lease_ms = message->request.record.lease_ms;
    store->record.renewed_wall_ms = message->wall_ms;
    store->expires_at = sim_store_now(world) + ns_from_ms(store->record.lease_ms);
}

/* Somebody else was quicker, or the lease still runs. */
static bool is_claim_refused(const struct world *world, const struct store_request *request)
{
    const struct sim_store *store = &world->store;
    uint64_t version = store->is_found ? store->record.version : 0;

    if (PLANTED(CLAIM_IGNORES_VERSION))
        return false;
    if (request->expected_version != version)
        return true;
    return request->must_be_expired && has_clock(world) && remaining_ms(world) > 0;
}

static enum gavel_status claim(struct world *world, const struct message *message)
{
    struct sim_store *store = &world->store;
    struct record *record = &store->record;
    const struct store_request *request = &message->request;
    bool is_done = record->done;
    uint64_t newest = request->record.epoch;
    bool is_wished = record->epoch != 0 &&
                     (record->wish_epoch == record->epoch || world->referee.wished_epoch == record->epoch);
    unsigned previous_slot = store->is_found && !is_wished ? store->holder_slot : SLOTS_MAX;
    struct grant grant = {.slot = message->slot, .incarnation = message->incarnation, .at = world->now};

    if (PLANTED(CLAIM_IGNORES_DONE))
        is_done = false;
    if (PLANTED(EPOCH_RESTARTS))
        newest = 0;
    if (is_done)
        return GAVEL_ERR_DONE;
    if (PLANTED(CLAIM_KNOWN_AGAIN) && record->held && nonce_equal(record->nonce, request->record.nonce))
        return GAVEL_OK;
    if (is_claim_refused(world, request))
        return GAVEL_ERR_CONFLICT;
    referee_check_delay(world, &grant);
    if (record->epoch < newest)
        record->epoch = newest;
    record->epoch++;
    record->held = true;
    record->loss = GAVEL_LOSS_NONE;
    record->done = false; /* only with the planted bug it was not */
    record->nonce = request->record.nonce;
    record->process = request->record.process;
    memcpy(record->holder, request->record.holder, sizeof record->holder);
    memcpy(record->address, request->record.address, sizeof record->address);
    record->since_wall_ms = message->wall_ms;
    record->successor[0] = '\0';
    record->wish_epoch = 0;
    record->wish_force = false;
    record->wish_successor[0] = '\0';
    store->is_found = true;
    store->holder_slot = message->slot;
    begin_lease(world, message);
    grant.epoch = record->epoch;
    referee_granted(world, &grant, previous_slot);
    return GAVEL_OK;
}

static bool is_holder(const struct world *world, const struct record *claimant)
{
    const struct record *record = &world->store.record;

    return world->store.is_found && record->held && nonce_equal(record->nonce, claimant->nonce) &&
           (claimant->epoch == 0 || claimant->epoch == record->epoch) &&
           strcmp(record->holder, claimant->holder) == 0;
}

static enum gavel_status renew(struct world *world, const struct message *message)
{
    struct record *record = &world->store.record;
    const struct record *claimant = &message->request.record;

    if (PLANTED(RENEW_ANY_EPOCH) && world->store.is_found && claimant->epoch != 0) {
        /* The mistake: an upsert that writes what the caller believes. */
        record->held = true;
        record->epoch = claimant->epoch;
        record->nonce = claimant->nonce;
        memcpy(record->holder, claimant->holder, sizeof record->holder);
    }
    if (!is_holder(world, claimant))
        return GAVEL_ERR_NOT_HOLDER;
    begin_lease(world, message);
    referee_renewed(world, message, record->epoch);
    return GAVEL_OK;
}

static enum gavel_status release(struct world *world, const struct message *message)
{
    struct record *record = &world->store.record;

    if (!is_holder(world, &message->request.record))
        return GAVEL_ERR_NOT_HOLDER;
    record->version++;
    record->held = false;
    memcpy(record->successor, message->request.record.successor, sizeof record->successor);
    record->done = message->request.record.done;
    record->loss = message->request.record.loss;
    world->store.lost_at = world->now;
    if (record->done)
        referee_closed(world, message, record->epoch);
    if (PLANTED(EPOCH_RESTARTS))
        record->epoch = 0;
    return GAVEL_OK;
}

void sim_store_release_for_the_dead(struct world *world, unsigned slot, struct nonce nonce)
{
    struct record *record = &world->store.record;

    if (!world->store.is_found || !record->held || !nonce_equal(record->nonce, nonce))
        return;
    record->version++;
    record->held = false;
    record->successor[0] = '\0';
    record->loss = GAVEL_LOSS_KILLED;
    world->store.lost_at = world->now;
    TRACE(world, NULL, "store: the guard of %s has released for it; epoch %llu, version %llu",
          world->processes[slot].label, (unsigned long long)record->epoch,
          (unsigned long long)record->version);
    for (unsigned i = 0; i < world->profile.slots; i++)
        if (world->processes[i].is_alive)
            network_ring(world, &world->processes[slot], world->processes[i].address);
}

enum gavel_status sim_store_ask(struct world *world, const struct message *message)
{
    struct record *record = &world->store.record;
    const struct record *wish = &message->request.record;

    if (!world->store.is_found || !record->held || record->epoch != wish->wish_epoch)
        return GAVEL_ERR_NOT_HOLDER;
    record->wish_epoch = wish->wish_epoch;
    record->wish_force = wish->wish_force;
    memcpy(record->wish_successor, wish->wish_successor, sizeof record->wish_successor);
    return GAVEL_OK;
}

static gavel_ms age_ms(const struct world *world, size_t i)
{
    gavel_ns age = sim_store_now(world) - world->store.beaten_at[i];

    if (!has_clock(world))
        return -1;
    return ms_from_ns(ns_max(age, 0));
}

/* A store on the candidates' own host may look whether a process is still there. */
static bool is_known_dead(const struct world *world, const struct registration *registration)
{
    if (!world->profile.sees_processes || world->profile.hosts > 1)
        return false;
    for (unsigned i = 0; i < world->profile.slots; i++)
        if (world->processes[i].is_alive && world->processes[i].pid == registration->process.pid)
            return false;
    return true;
}

static enum gavel_status heartbeat(struct world *world, struct message *message)
{
    struct sim_store *store = &world->store;
    const struct registration *own = &message->request.registration;
    size_t i = 0;

    while (i < store->registration_count && strcmp(store->registrations[i].id, own->id) != 0)
        i++;
    if (i < store->registration_count) {
        const struct registration *other = &store->registrations[i];

        if (other->instance != own->instance && other->instance != message->request.replaces_instance &&
            !is_known_dead(world, other) &&
            (!has_clock(world) || age_ms(world, i) <= message->request.candidate_timeout_ms)) {
            message->reply.other_instance = other->instance;
            message->reply.other_beats = other->beats;
            return GAVEL_ERR_ID_IN_USE;
        }
    } else {
        store->registration_count++; /* there are no more ids than slots */
    }
    store->registrations[i] = *own;
    store->registrations[i].last_wall_ms = message->wall_ms;
    store->beaten_at[i] = sim_store_now(world);
    store->heard_at[i] = world->now;
    return GAVEL_OK;
}

static enum gavel_status leave(struct world *world, const struct message *message)
{
    struct sim_store *store = &world->store;
    const struct registration *own = &message->request.registration;

    for (size_t i = 0; i < store->registration_count; i++) {
        if (strcmp(store->registrations[i].id, own->id) == 0 &&
            store->registrations[i].instance == own->instance) {
            store->registration_count--;
            store->registrations[i] = store->registrations[store->registration_count];
            store->beaten_at[i] = store->beaten_at[store->registration_count];
            store->heard_at[i] = store->heard_at[store->registration_count];
            break;
        }
    }
    return GAVEL_OK;
}

static enum gavel_status list(struct world *world, struct message *message)
{
    struct store_reply *reply = &message->reply;

    reply->registrations = message->listing;
    for (size_t i = 0; i < world->store.registration_count; i++) {
        if (age_ms(world, i) > message->request.candidate_timeout_ms)
            continue;
        message->listing[reply->registration_count] = world->store.registrations[i];
        message->listing[reply->registration_count++].age_ms = age_ms(world, i);
    }
    return GAVEL_OK;
}

static enum gavel_status apply(struct world *world, struct message *message)
{
    switch (message->request.op) {
    case STORE_CLAIM:
        return claim(world, message);
    case STORE_RENEW:
        return renew(world, message);
    case STORE_RELEASE:
        return release(world, message);
    case STORE_ASK:
        return sim_store_ask(world, message);
    case STORE_HEARTBEAT:
        return heartbeat(world, message);
    case STORE_LEAVE:
        return leave(world, message);
    case STORE_CANDIDATES:
        return list(world, message);
    case STORE_READ:
    case STORE_REOPEN: /* no candidate sends it */
    case STORE_DIED:   /* no session, no such request */
    case STORE_GROUPS:
        break;
    }
    return GAVEL_OK;
}

void sim_store_apply(struct world *world, struct message *message)
{
    struct store_reply *reply = &message->reply;
    const struct record *record = &world->store.record;

    if (world->profile.has_sessions) {
        granting_apply(world, message);
        return;
    }
    reply->registrations = NULL;
    reply->registration_count = 0;
    reply->status = apply(world, message);
    if (message->request.op >= STORE_HEARTBEAT)
        return;
    reply->found = world->store.is_found;
    reply->record = *record;
    reply->remaining_ms = has_clock(world) ? remaining_ms(world) : -1;
    reply->expired = has_clock(world) && world->store.is_found && reply->remaining_ms == 0;
    if (message->request.op != STORE_READ)
        TRACE(world, NULL, "store: %s of %s is %s; epoch %llu of %s, %s, version %llu",
              store_op_name(message->request.op), world->processes[message->slot].label,
              reply->status != GAVEL_OK ? gavel_status_name(reply->status) : "done",
              (unsigned long long)record->epoch, record->holder,
              record->held   ? "held"
              : record->done ? "done"
                             : "released",
              (unsigned long long)record->version);
}
