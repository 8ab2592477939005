/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The simulated store: one record, the registrations of its candidates, and
 * perhaps a clock, with the semantics of base/request.h. It never forgets what
 * it has committed; whether the answer arrives is up to the network.
 */
#ifndef SIM_CANDIDATE_STORE_H
#define SIM_CANDIDATE_STORE_H

#include "base/record.h"
#include "sim/candidate/profile.h"
#include "sim/common/clock.h"

struct message;
struct world;

struct sim_store {
    struct clock clock;
    gavel_ns stepped; /* sum of all steps of the clock */
    bool is_found;
    struct record record;
    unsigned holder_slot; /* who wrote the claim; for the referee */
    gavel_ns expires_at;  /* on the store's clock */
    gavel_ns lost_at;     /* when it was released with a loss, in real time; for the referee */
    struct registration registrations[SLOTS_MAX];
    gavel_ns beaten_at[SLOTS_MAX]; /* on the store's clock */
    gavel_ns heard_at[SLOTS_MAX];  /* the same in real time; for the referee */
    size_t registration_count;
};

void sim_store_begin(struct world *world);

/* Carries out the request of the message and fills in its reply. */
void sim_store_apply(struct world *world, struct message *message);

/* A wish for another leader is written into the record; also of a store with sessions. */
enum gavel_status sim_store_ask(struct world *world, const struct message *message);

/* What the guard of a dead process does: releases by the nonce of its newest claim, and rings all others. */
void sim_store_release_for_the_dead(struct world *world, unsigned slot, struct nonce nonce);

/* The store's clock jumps. */
void sim_store_step(struct world *world, gavel_ns by);

gavel_ns sim_store_now(const struct world *world);

#endif
