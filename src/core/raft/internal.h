/* SPDX-License-Identifier: Apache-2.0 */

/* What the files of the core share. Each group of functions is in the file that its comment names. */
#ifndef CORE_RAFT_INTERNAL_H
#define CORE_RAFT_INTERNAL_H

#include "base/assert.h"
#include "base/planted.h"
#include "core/raft/raft.h"

/* What must be durable before a message may leave; becomes a seq when the step ends. */
enum raft_after {
    RAFT_AFTER_NOTHING,
    RAFT_AFTER_STATE, /* term, vote and promise */
    RAFT_AFTER_ALL,   /* and the log */
};

/* action.c: what a step gives out, and the one write that it may need */
struct raft_action *raft_act(struct raft *r, enum raft_action_kind kind);
struct raft_message *raft_send(struct raft *r, enum raft_message_kind kind, raft_id to,
                               enum raft_after after);
struct raft_action *raft_tell(struct raft *r, enum raft_news news, raft_id node);
void raft_mark_state(struct raft *r);
void raft_mark_append(struct raft *r, raft_index index);
void raft_mark_truncate(struct raft *r, raft_index index);
void raft_flush(struct raft *r);

/* peer.c: the other members */
void raft_peer_begin(const struct raft *r, struct raft_peer *peer, raft_id id);
struct raft_peer *raft_peer_find(struct raft *r, raft_id id);
const struct raft_peer *raft_peer_at(const struct raft *r, raft_id id);
bool raft_peer_votes(const struct raft *r, const struct raft_peer *peer);
bool raft_peer_is_witness(const struct raft *r, const struct raft_peer *peer);
void raft_peers_rebuild(struct raft *r, bool goes_back);
bool raft_peer_takes_vote(struct raft *r, raft_id from);

/* directory.c: which data directory is the member */
bool raft_is_own(const struct raft *r, const struct raft_config *config);
bool raft_hears(struct raft *r, const struct raft_message *m);
/* A member that we refuse but the configuration does not refuse yet; 0 if there is none. */
raft_id raft_refused_one(const struct raft *r, uint64_t *ret_directory);
void raft_hear_refusal(struct raft *r, raft_id id, uint64_t directory);
void raft_meet(struct raft *r, const struct raft_claimant *met);
bool raft_is_blank(const struct raft *r, raft_index last); /* a log that ends there can never win */
enum gavel_status raft_distrust(struct raft *r, raft_id id, enum raft_trust why);
void raft_note_acked(struct raft *r);
void raft_bind_directories(struct raft *r);
/* Whether the committed entries show, for the first time, which founding this directory belongs to. */
bool raft_learn_founding(struct raft *r);

/* met.c: what is known of the others' directories, kept on disk */
bool raft_met_is_due(struct raft *r, bool is_writing);
void raft_recall_met(struct raft *r);
void raft_keep_met(struct raft *r, const struct raft_peer *peer);
void raft_recall_former(struct raft *r);

/* role.c: the only place that sets a role, a term or a leader */
void raft_become_learner(struct raft *r);
void raft_become_follower(struct raft *r, enum raft_stop why);
void raft_become_pre_candidate(struct raft *r);
void raft_become_candidate(struct raft *r);
void raft_become_leader(struct raft *r);
void raft_adopt_term(struct raft *r, raft_term term);
void raft_set_leader(struct raft *r, raft_id leader, uint64_t incarnation);
void raft_settle_role(struct raft *r);

/* term.c: meeting a higher term */
void raft_meet_term(struct raft *r, raft_term term);
/* Whether elections can have led to the term of a message; reports it if not. */
bool raft_is_term_plausible(struct raft *r, const struct raft_message *m);

/* timer.c: when to stand for election */
unsigned raft_rank(const struct raft *r);
gavel_ns raft_rank_step(const struct raft *r);
void raft_restart_timer(struct raft *r);
void raft_retry_timer(struct raft *r);

/* writing.c: what is known of the disk */
gavel_ns raft_write_takes(const struct raft *r);
void raft_note_write(struct raft *r, struct raft_peer *peer, uint64_t round);
gavel_ns raft_successor_write_takes(const struct raft *r, raft_id successor);
bool raft_is_writing_state(const struct raft *r);
bool raft_put_off_standing(struct raft *r, bool is_direct);
void raft_state_is_durable(struct raft *r);

/* promise.c: the follower's side of a lease, and the gate */
bool raft_promise_make(struct raft *r, raft_id leader, uint64_t incarnation, uint64_t lease_epoch);
void raft_promise_clear(struct raft *r);
bool raft_gate(const struct raft *r, raft_id candidate, uint64_t incarnation, raft_term last_term,
               const struct raft_certificate *certificate, gavel_ns *ret_wait);
bool raft_gate_self(const struct raft *r, gavel_ns *ret_wait);

/* certificate.c: obituaries and releases */
bool raft_certificate_is_genuine(const struct raft *r, const struct raft_certificate *certificate);
bool raft_certificate_covers(const struct raft_certificate *certificate, const struct raft_promise *promise);
bool raft_is_dead(const struct raft *r, raft_id leader, uint64_t incarnation);
bool raft_is_outdated(const struct raft *r, const struct raft_certificate *certificate);
bool raft_take_certificate(struct raft *r, const struct raft_certificate *certificate);
void raft_make_release(struct raft *r, raft_id forced_target, struct raft_certificate *ret_certificate);
void raft_receive_certificate(struct raft *r, const struct raft_message *m);

/* vote.c: the voter's side of elections */
bool raft_log_is_current(const struct raft *r, const struct raft_vote *vote);
void raft_receive_pre_vote(struct raft *r, const struct raft_message *m);
void raft_receive_vote(struct raft *r, const struct raft_message *m);

/* campaign.c: the candidate's side */
enum gavel_status raft_stand(struct raft *r, bool is_direct);
void raft_ask_votes(struct raft *r);
void raft_receive_pre_vote_reply(struct raft *r, const struct raft_message *m);
void raft_receive_vote_reply(struct raft *r, const struct raft_message *m);
void raft_count_votes(struct raft *r);
void raft_forget_rivals(struct raft *r); /* what voters said of whom they are voting for */
bool raft_waits_for_votes(const struct raft *r);
void raft_election_due(struct raft *r);

/* election.c: the record of elections */
void raft_record_begin(struct raft *r, raft_term term, raft_id candidate, bool is_pre_vote);
void raft_record_ballot(struct raft *r, raft_id voter, raft_id candidate, enum raft_reason reason);
void raft_record_end(struct raft *r, enum raft_result result);
void raft_record_asked(struct raft *r, raft_term term, raft_id candidate, enum raft_reason reason);
void raft_record_leader(struct raft *r, raft_id leader);

/* append.c, snapshot.c: the follower's side of the log */
/* Follows the sender of entries or of a snapshot. False if it is not our leader; it is then answered. */
bool raft_follow(struct raft *r, const struct raft_message *m);
void raft_receive_append(struct raft *r, const struct raft_message *m);
void raft_receive_snapshot(struct raft *r, const struct raft_message *m);
struct raft_append_reply *raft_reply_append(struct raft *r, const struct raft_message *m, uint64_t round,
                                            uint64_t lease_epoch, enum raft_after after);
enum gavel_status raft_compact(struct raft *r, raft_index index, struct blob *blob, const uint8_t *data,
                               size_t size);
void raft_send_snapshot(struct raft *r, struct raft_peer *peer);

/* replicate.c: the leader's side of the log */
void raft_new_round(struct raft *r);
void raft_send_appends(struct raft *r, bool also_empty);
void raft_send_commit(struct raft *r);
void raft_receive_append_reply(struct raft *r, const struct raft_message *m);
enum gavel_status raft_propose(struct raft *r, const struct raft_entry *entries, uint32_t count);
enum gavel_status raft_append_own(struct raft *r, const struct raft_entry *entry);

/* commit.c */
void raft_advance_commit(struct raft *r);
void raft_apply_committed(struct raft *r);

/* lease.c: the leader's side of the promises, and its work */
void raft_update_lease(struct raft *r);
void raft_check_lease(struct raft *r);
void raft_try_claim(struct raft *r);
void raft_stop_work(struct raft *r, enum raft_stop why);
void raft_next_lease_epoch(struct raft *r);
gavel_ns raft_contact_until(const struct raft *r);
gavel_ns raft_lease_length(const struct raft *r, gavel_ns promise);

/* near.c: who could hold a lease, and a leader that cannot */
void raft_note_round_trip(struct raft *r, struct raft_peer *peer, uint64_t round);
gavel_ns raft_round_trip_max(const struct raft *r, gavel_ns promise);
bool raft_is_near(const struct raft *r, const struct raft_peer *peer);
bool raft_makes_lease(const void *context, raft_id id);
gavel_ns raft_claim_by(const struct raft *r);
bool raft_misses_workers(const struct raft *r); /* we are a caretaker, and no worker answers */
void raft_note_idle_turn(struct raft *r);
void raft_note_followed(struct raft *r);
void raft_hope(struct raft *r);
bool raft_is_lasting(const struct raft *r);

/* stepdown.c: leaving in order */
void raft_step_down(struct raft *r, enum raft_stop why);
void raft_work_stopped(struct raft *r);

/* hang.c: a disk that does not answer */
void raft_leave_if_hung(struct raft *r);
gavel_ns raft_hangs_at(const struct raft *r); /* NEVER: it hangs already, or no write is waiting */

/* transfer.c */
enum gavel_status raft_begin_transfer(struct raft *r, raft_id target, bool is_forced, gavel_ns timeout);
void raft_transfer_goes_on(struct raft *r);
void raft_transfer_ends(struct raft *r, const char *why);
void raft_receive_timeout_now(struct raft *r, const struct raft_message *m);
void raft_receive_take_over(struct raft *r, const struct raft_message *m);
enum gavel_status raft_take_over(struct raft *r);
void raft_order_successors(struct raft *r);
bool raft_may_succeed(const struct raft *r, raft_id id);
void raft_preferred(struct raft *r, raft_id target);
void raft_wait_to_prefer(struct raft *r);

/* membership.c */
enum gavel_status raft_change(struct raft *r, const struct raft_config *target);
void raft_change_goes_on(struct raft *r);
gavel_ns raft_change_give_up_at(const struct raft *r);
void raft_use_config_of_log(struct raft *r);
raft_index raft_find_config(const struct raft *r, raft_index index, struct raft_config *ret_config);
void raft_check_leaving(struct raft *r);
bool raft_may_stand(const struct raft *r);
enum gavel_status raft_append_config(struct raft *r, const struct raft_config *config);

/* step.c: a message that is well-formed but wrong */
void raft_refuse(struct raft *r, raft_id from, const char *why);

#endif
