/* SPDX-License-Identifier: Apache-2.0 */

/* What the files of the candidate share. Not for other directories. */
#ifndef CORE_CANDIDATE_INTERNAL_H
#define CORE_CANDIDATE_INTERNAL_H

#include "base/assert.h"
#include "base/planted.h"
#include "core/candidate/candidate.h"

/* state.c: the only places that set a state or a phase */
void become_observing(struct candidate *c);
void become_standby(struct candidate *c);
void become_claiming(struct candidate *c);
void become_preparing(struct candidate *c);
void become_leading(struct candidate *c);
void become_stopping(struct candidate *c);
void become_ended(struct candidate *c);
void enter_phase(struct candidate *c, enum gavel_phase phase);
bool holds_mandate(const struct candidate *c); /* PREPARING or LEADING */

/* action.c: what a step gives out */
struct candidate_action *act(struct candidate *c, enum candidate_action_kind kind);
void ring(struct candidate *c);                          /* the doorbells of all others */
void ring_one(struct candidate *c, const char *address); /* nobody's, if it is "" */
/* The event lives until the next step; the caller fills in what applies. */
struct gavel_event *emit(struct candidate *c, enum gavel_event_kind kind);
/*
 * Words for people, cut off if they are too long: few candidates ever have any, so they take no room in the
 * struct. They are written to one place again and again, since an event may point to it. Without memory they
 * stay as they are.
 */
#define WORDS_SIZE 384
void keep_words(char **words, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Keeps a name that few candidates ever have, likewise. False without memory; then the place says "". */
bool keep_name(char **place, const char *name);
static inline const char *kept_name(const char *place) { return place ? place : ""; }

/* call.c: requests out, replies and time-outs in */
/* False if the breaker holds it back; then *ret_retry_at is when to try again. Urgent calls are never held
 * back. */
bool call_send(struct candidate *c, enum candidate_slot slot, const struct store_request *request,
               bool is_urgent, gavel_ns *ret_retry_at);
/* Its answer is of no interest any more. */
void call_forget(struct candidate *c, enum candidate_slot slot);
struct store_request call_request(const struct candidate *c, enum store_op op);
struct process_id call_process(const struct candidate *c); /* whose death ends our work, for the record */
void call_reply(struct candidate *c, uint64_t id, const struct store_reply *reply);
void call_timeouts(struct candidate *c);
gavel_ns retry_delay(struct candidate *c);
gavel_ns jittered(struct candidate *c, gavel_ms ms);

/* cold.c: a cold start, and whom it waits for */
bool cold_is_going_on(const struct candidate *c);
gavel_ns cold_observed(const struct candidate *c); /* how long another may look on, by our clock */
/* From when on we and all whom the policy puts before us may stand; `at` if there is no cold start. */
gavel_ns cold_all_stand_at(const struct candidate *c, const struct peers_ranking *ranking, gavel_ns at);

/* session.c: mandates that last as long as the session of the store object */
struct sight { /* the record, as a reply or a push shows it */
    const struct record *record;
    bool is_found;
    bool is_ours;
    bool is_read; /* only that names the process of the holder */
    uint64_t session;
    uint64_t revision;
};
void session_follow(struct candidate *c, const struct store_session *session, bool waits);
/* False if it is of another session, or older than what is known: then nothing was learnt. */
bool session_see(struct candidate *c, const struct sight *sight);
bool session_see_reply(struct candidate *c, const struct store_reply *reply);
void session_read_done(struct candidate *c, const struct store_reply *reply);
void session_died_done(struct candidate *c, enum gavel_status status);
void session_beat_done(struct candidate *c, const struct store_reply *reply);
gavel_ns session_list_at(struct candidate *c); /* soon, and not all groups of a process at once */
void session_consider(struct candidate *c);    /* takes up what is ours, and tells who leads */
void session_tell_death(struct candidate *c);
void session_release_orphan(struct candidate *c);
void session_orphan_done(struct candidate *c, enum gavel_status status, const struct store_reply *reply);
bool session_is_over(const struct candidate *c); /* that of our mandate */

/* stand.c: what a candidate of a session says of itself, and when */
void stand_consider(struct candidate *c);
bool stand_may(const struct candidate *c);
bool stand_has_time(const struct candidate *c); /* sessions of this store last long enough to work */
struct campaign stand_campaign(const struct candidate *c);
void stand_left(struct candidate *c);             /* with its release it has left the group */
gavel_ns stand_due_at(const struct candidate *c); /* the next heartbeat; also of other stores */

/* standby.c: looking and claiming */
void standby_watch_holder(struct candidate *c);
uint32_t standby_attempts_before(const struct candidate *c);
void standby_look(struct candidate *c);
void standby_consider(struct candidate *c);
void standby_ask(struct candidate *c);
void standby_ask_done(struct candidate *c, enum gavel_status status, const struct store_reply *reply);
void standby_read_done(struct candidate *c, const struct candidate_call *call,
                       const struct store_reply *reply);
void standby_claim_done(struct candidate *c, const struct candidate_call *call, enum gavel_status status,
                        const struct store_reply *reply);

/* lead.c: holding a mandate */
void lead_won(struct candidate *c, gavel_ns sent_at, const struct record *record);
void lead_follow_session(struct candidate *c);
void lead_follow_former_session(struct candidate *c);
void lead_go_on(struct candidate *c, const struct record *record); /* our record, maybe with a new epoch */
gavel_ns lead_new_epoch_at(const struct candidate *c); /* when to ask for one; NEVER if it need not */
gavel_ns lead_term_stop_at(const struct candidate *c); /* when the work must stop at the latest, or NEVER */
void lead_start(struct candidate *c);
void lead_renew(struct candidate *c);
struct store_request lead_request(const struct candidate *c, enum store_op op);
void lead_renew_done(struct candidate *c, const struct candidate_call *call, enum gavel_status status,
                     const struct store_reply *reply);
void lead_reclaim_done(struct candidate *c, const struct candidate_call *call, enum gavel_status status,
                       const struct store_reply *reply);
void lead_consider_handover(struct candidate *c);
void lead_check_time(struct candidate *c);

/* stop.c: giving a mandate up */
void stop_begin(struct candidate *c, enum gavel_reason reason, const char *successor);
void stop_work_done(struct candidate *c);
/* Releases what it may hold, leaves, and ends with this status. */
void stop_for_good(struct candidate *c, enum gavel_status status);
void stop_release_done(struct candidate *c, enum gavel_status status, const struct store_reply *reply);
void stop_send_release(struct candidate *c);
/* Nothing is held any more. If it was released, rings the others so that they look at once. */
void stop_end(struct candidate *c, bool is_released);

/* finish.c: work that is done for good */
void finish_begin(struct candidate *c);
void finish_release_done(struct candidate *c, enum gavel_status status, const struct store_reply *reply);
void finish_session_over(struct candidate *c);
void finish_look(struct candidate *c);
void finish_read_done(struct candidate *c, enum gavel_status status, const struct store_reply *reply);
/* Somebody has closed the group: we end. */
void finish_seen(struct candidate *c, const struct record *record);

/* registry.c: heartbeats and the list of candidates */
void registry_beat(struct candidate *c);
void registry_beat_done(struct candidate *c, const struct candidate_call *call, enum gavel_status status,
                        const struct store_reply *reply);
void registry_list(struct candidate *c);
void registry_list_done(struct candidate *c, const struct candidate_call *call,
                        const struct store_reply *reply);
void registry_leave(struct candidate *c);
void registry_leave_again(struct candidate *c);

/* leader.c: telling who leads */
void leader_seen(struct candidate *c, const char *id, uint64_t epoch);
void leader_gone(struct candidate *c, enum gavel_loss loss);

#endif
