/* SPDX-License-Identifier: Apache-2.0 */

/* Whom a store with sessions grants the mandate to. */

#include "base/assert.h"
#include "sim/candidate/granting.h"
#include "sim/candidate/network.h"
#include "sim/candidate/trace.h"
#include "sim/candidate/world.h"

#include <stdio.h>
#include <string.h>

/* Whether it may be granted the mandate as things are. To come back is not to replace anybody. */
static bool may_take(const struct world *world, const struct standing *standing)
{
    const struct record *record = &world->store.record;
    bool is_lost = record->epoch != 0 && !record->held && record->loss != GAVEL_LOSS_NONE;

    if (!standing->campaign.stands)
        return false;
    return !(standing->campaign.is_patient && is_lost) ||
           strcmp(standing->registration.id, record->holder) == 0;
}

static bool is_before(const struct granting *granting, const struct standing *a, const struct standing *b)
{
    if (granting->policy == GAVEL_POLICY_LEXICOGRAPHIC)
        return strcmp(a->registration.id, b->registration.id) < 0;
    if (granting->policy == GAVEL_POLICY_PRIORITY && a->registration.priority != b->registration.priority)
        return a->registration.priority > b->registration.priority;
    return a->joined < b->joined;
}

static struct standing *best_but(struct world *world, const struct standing *but)
{
    struct granting *granting = &world->granting;
    struct standing *best = NULL;

    for (size_t i = 0; i < granting->standing_count; i++) {
        struct standing *standing = &granting->standings[i];

        if (standing != but && may_take(world, standing) && (!best || is_before(granting, standing, best)))
            best = standing;
    }
    return best;
}

void election_forget_wish(struct record *record)
{
    record->wish_epoch = 0;
    record->wish_force = false;
    record->wish_successor[0] = '\0';
}

void election_begin_mandate(struct world *world, const struct standing *chosen, unsigned previous_slot)
{
    struct sim_store *store = &world->store;
    struct record *record = &store->record;
    const struct open_session *session = granting_session(world, chosen->session);
    const struct grant grant = {.epoch = world->granting.revision,
                                .slot = chosen->slot,
                                .incarnation = chosen->incarnation,
                                .session = chosen->session,
                                .at = world->now};

    ASSERT(session);
    ASSERT(grant.epoch > record->epoch);
    referee_check_patience(world, &grant);
    if (record->epoch != 0 && !record->held && record->version == grant.epoch)
        network_push(world); /* a hand-over in one write is two changes of one version */
    record->epoch = record->version = grant.epoch;
    record->held = true;
    record->loss = GAVEL_LOSS_NONE;
    record->lease_ms = session->ttl_ms;
    record->process = session->process;
    record->successor[0] = '\0';
    election_forget_wish(record);
    memcpy(record->holder, chosen->registration.id, sizeof record->holder);
    memcpy(record->address, chosen->registration.address, sizeof record->address);
    store->is_found = true;
    store->holder_slot = chosen->slot;
    world->granting.holder_session = chosen->session;
    world->granting.granted_at = world->now;
    TRACE(world, NULL, "store: grants epoch %llu to session %llu of %s", (unsigned long long)grant.epoch,
          (unsigned long long)chosen->session, world->processes[chosen->slot].label);
    referee_granted(world, &grant, previous_slot);
}

unsigned election_replaced_slot(const struct world *world)
{
    const struct record *record = &world->store.record;
    bool is_wished = record->epoch != 0 &&
                     (record->wish_epoch == record->epoch || world->referee.wished_epoch == record->epoch);

    return world->store.is_found && !is_wished ? world->store.holder_slot : SLOTS_MAX;
}

void election_settle(struct world *world, const struct standing *leaver, unsigned previous_slot)
{
    const struct record *record = &world->store.record;
    struct standing *chosen;

    if (record->held || record->done)
        return;
    chosen = record->successor[0] ? granting_standing(world, record->successor) : NULL;
    if (!chosen || !may_take(world, chosen) || chosen == leaver)
        chosen = best_but(world, leaver);
    if (!chosen)
        chosen = best_but(world, NULL);
    if (chosen)
        election_begin_mandate(world, chosen, previous_slot);
}

void election_end_mandate(struct world *world, enum gavel_loss loss, const char *successor)
{
    struct record *record = &world->store.record;
    char name[sizeof record->successor];

    ASSERT(record->held);
    (void)snprintf(name, sizeof name, "%s", successor[0] ? successor : record->wish_successor);
    record->held = false;
    record->loss = loss;
    record->version = world->granting.revision;
    election_forget_wish(record);
    memcpy(record->successor, name, sizeof name);
    world->granting.holder_session = 0;
    world->store.lost_at = world->now;
}

void election_preempt(struct world *world)
{
    struct granting *granting = &world->granting;
    struct record *record = &world->store.record;
    const struct standing *leader = record->held ? granting_standing(world, record->holder) : NULL;
    const struct standing *best = leader ? best_but(world, leader) : NULL;

    if (!best || !granting->preempts || granting->policy == GAVEL_POLICY_FIRST || record->wish_epoch != 0 ||
        !is_before(granting, best, leader) ||
        world->now - granting->granted_at < ns_from_ms(granting->min_mandate_ms))
        return;
    granting->revision++;
    record->wish_epoch = record->epoch;
    memcpy(record->wish_successor, best->registration.id, sizeof record->wish_successor);
    TRACE(world, NULL, "store: wishes that %s hands over to %s", record->holder, record->wish_successor);
}
