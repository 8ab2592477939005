/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The other kind of simulated store: it has sessions and grants the mandate
 * to them, as src/core/table does, with the semantics of base/request.h. The
 * record is that of store.h. Written anew, so that a mistake in one of the two
 * shows.
 */
#ifndef SIM_CANDIDATE_GRANTING_H
#define SIM_CANDIDATE_GRANTING_H

#include "base/request.h"
#include "sim/candidate/profile.h"

struct message;
struct process;
struct world;

/* More than can be open at a time: those of the dead last for a time to live, and so do those whose opening
 * was not answered. */
#define SESSIONS_MAX 512

struct open_session {
    uint64_t number;
    unsigned slot;
    uint32_t incarnation;
    struct process_id process; /* pid 0: its death does not end it */
    gavel_ms ttl_ms;
    uint64_t beats;      /* keep-alives that this leader of the cluster has heard */
    gavel_ns expires_at; /* on the store's clock, which does not step for this */
};

struct standing {
    uint64_t session;
    uint64_t joined; /* the revision: who came first */
    unsigned slot;
    uint32_t incarnation;
    struct registration registration;
    struct campaign campaign;
};

struct granting {
    uint64_t revision;
    uint64_t holder_session;    /* 0: nobody */
    gavel_ns granted_at;        /* real time */
    gavel_ms ttl_ms[SLOTS_MAX]; /* of the sessions of a slot */
    bool is_old;                /* it does not know how to close a group, and skips that */
    /* of the group, as whoever was alone in it has said */
    enum gavel_policy policy;
    gavel_ms min_mandate_ms;
    bool preempts;
    struct open_session sessions[SESSIONS_MAX];
    size_t session_count;
    struct standing standings[SLOTS_MAX];
    size_t standing_count;
};

void granting_begin(struct world *world);

/* Carries out the request of the message, or opens or keeps its session, and fills in the reply. */
void granting_apply(struct world *world, struct message *message);

/* A session of nobody who lives, which holds the mandate: for cold starts. */
void granting_former_leader(struct world *world, gavel_ns expires_in);

/* Ends the wish for the group, if there is one. */
void granting_end_wish(struct world *world);

/* A new leader of the cluster gives each session a whole time to live, and has heard of none of them. */
void granting_change_leader(struct world *world);

/* The EXPIRE event: the session ends, unless it was kept open since. */
void granting_expire(struct world *world, uint64_t number);

/* The guard of a dead process has ended its work, and closes its session as dead. */
void granting_close_dead(struct world *world, uint64_t number);

/* How long the store lets a session of this slot be silent. */
gavel_ms granting_ttl_ms(const struct world *world, unsigned slot);

/* Whether the sessions of a slot leave its candidate no time to work, so that it does not stand. */
bool granting_is_short(const struct world *world, unsigned slot);

/* NULL if there is none. */
struct open_session *granting_session(struct world *world, uint64_t number);
struct standing *granting_standing(struct world *world, const char *id);

/*
 * election.c: the leader that a grant would replace, SLOTS_MAX if there is
 * none or it was asked to go; a mandate ends, for the successor or whoever is wished for; one begins; a
 * vacant group gets a leader, rather not who has just given up.
 */
unsigned election_replaced_slot(const struct world *world);
void election_forget_wish(struct record *record);
void election_end_mandate(struct world *world, enum gavel_loss loss, const char *successor);
void election_begin_mandate(struct world *world, const struct standing *chosen, unsigned previous_slot);
void election_settle(struct world *world, const struct standing *leaver, unsigned previous_slot);

/* If a better candidate is there and the minimum mandate is over, the leader is asked to hand over. */
void election_preempt(struct world *world);

#endif
