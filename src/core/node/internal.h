/* SPDX-License-Identifier: Apache-2.0 */

/* What the files of the node share. */
#ifndef CORE_NODE_INTERNAL_H
#define CORE_NODE_INTERNAL_H

#include "core/node/node.h"

/* The moment of the step. */
struct node_moment {
    gavel_ns now;
    int64_t wall_ms;
};

/* ---- action.c ---- */

void node_actions_clear(struct node_actions *actions);
/* The next action; NULL: no memory, which only FORWARD, ANSWER and WATCH meet. */
struct node_action *node_act(struct node *node, enum node_action_kind kind);

/* ---- raft.c ---- */

/* One step of Raft: what comes of it is acted or left to do. */
enum gavel_status node_step_raft(struct node *node, const struct node_moment *moment,
                                 const struct raft_event *event);
/* Messages that waited for no more than what is durable. */
void node_release_held(struct node *node);

/* ---- apply.c: the table, and what begins and ends with the work ---- */

void node_do_todo(struct node *node, const struct node_moment *moment);

/* ---- clients.c ---- */

void node_take_forwarded(struct node *node, const struct node_moment *moment,
                         const struct node_forwarded *forwarded);
void node_take_deaths(struct node *node, const struct node_moment *moment, const Gavel__Op *const *ops,
                      size_t count);
/* The pieces of NODE_NEXT; false: there was none. */
bool node_take_own_reply(struct node *node, const struct node_moment *moment);
bool node_take_own_delivery(struct node *node, const struct node_moment *moment);
bool node_propose(struct node *node, const struct node_moment *moment);
/* What forwarder and front end have for others becomes actions. */
void node_hand_out(struct node *node, gavel_ns now);

/* ---- silence.c ---- */

void node_silence_open(struct node *node, gavel_ns now);
void node_silence_close(struct node *node, gavel_ns now);
/* At the end of a step: makes and sends marks that are due, and answers what waited for them. */
void node_silence_tend(struct node *node, gavel_ns now);
gavel_ns node_silence_at(const struct node *node);
void node_take_silence(struct node *node, const struct node_moment *moment,
                       const struct node_forwarded *forwarded);

/* ---- members.c ---- */

/* The table may have other records now. */
void node_read_records(struct node *node);
void node_applied_record(struct node *node, const struct raft_entry *entry);
void node_take_greeting(struct node *node, const struct node_described *said);
const struct member_record *node_record_of(const struct node *node, raft_id id); /* NULL: none */
/* What is known of a member that has no record. */
void node_describe_member(const struct node *node, const struct raft_member *member, const char *name,
                          struct member_record *ret_record);
/* Whether a change of members can begin now. */
bool node_may_change(const struct node *node);
void node_take_out(struct raft_config *config, raft_id id);
enum gavel_status node_change(struct node *node, const struct node_moment *moment,
                              const struct raft_config *target);
/* Takes the bytes. */
enum gavel_status node_propose_command(struct node *node, const struct node_moment *moment, uint8_t *bytes,
                                       size_t size);
/* Records and configuration are compared next, piece by piece. */
void node_reconcile_soon(struct node *node);
bool node_reconcile(struct node *node, const struct node_moment *moment);

/* ---- version.c ---- */

/* Whether a key of the table is that of the version that the cluster uses. */
bool version_record_is_key(const uint8_t *key, size_t size);
/* The table may say something else now. */
void node_version_read(struct node *node);
/* Writes into the record of a member what was heard of its program, if that is news; true if it was. */
bool node_version_note(const struct node *node, struct member_record *record);
/* The leader begins to use what all members know; true if something was proposed. */
bool node_version_raise(struct node *node, const struct node_moment *moment);
/* Whether the entry is for newer programs than ours. */
bool node_version_is_beyond(const struct node *node, const struct raft_entry *entry);

/* ---- orders.c ---- */

void node_take_order(struct node *node, const struct node_moment *moment, const struct node_order *order);
void node_take_said(struct node *node, const struct node_said *said);
const struct node_said *node_said_by(const struct node *node, raft_id id); /* NULL: nothing */
void node_orders_told(struct node *node, const struct raft_action *action);
bool node_is_being_removed(const struct node *node, raft_id id);
void node_orders_look_soon(struct node *node);
bool node_look_at_orders(struct node *node, const struct node_moment *moment);
void node_orders_done(struct node *node);
/* Answers the order of the event, which is not taken on; or one that waits. The text is a sentence. */
void node_refuse_order(struct node *node, const struct node_order *order, enum gavel_status status,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
void node_answer_order(struct node *node, struct node_pending *pending, enum gavel_status status,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
/* ERR_NO_LEADER or ERR_NOT_LEADER, unless we lead. */
enum gavel_status node_refuse_unless_leader(struct node *node, const struct node_moment *moment,
                                            const struct node_order *order);
const char *node_name_of(const struct node *node, raft_id id, char buffer[static NODE_ADDRESSES_NAME_BYTES]);

/* ---- order_transfer.c, order_members.c: an order begins (if not OK, it was refused), and is settled ---- */

enum gavel_status node_begin_transfer(struct node *node, const struct node_moment *moment,
                                      struct node_pending *pending);
enum gavel_status node_begin_step_down(struct node *node, const struct node_moment *moment,
                                       struct node_pending *pending);
enum gavel_status node_begin_member(struct node *node, const struct node_moment *moment,
                                    struct node_pending *pending);
/* True: it was answered. */
bool node_settle_transfer(struct node *node, const struct node_moment *moment, struct node_pending *p);
bool node_settle_step_down(struct node *node, struct node_pending *p);
bool node_settle_member(struct node *node, const struct node_moment *moment, struct node_pending *p);

/* ---- leave.c ---- */

void node_stop(struct node *node, const struct node_moment *moment, gavel_ns timeout);
void node_work_failed(struct node *node, raft_term term, uint64_t lease_epoch);
void node_leave_soon(struct node *node);
bool node_must_leave(const struct node *node);
bool node_leave_next(struct node *node, const struct node_moment *moment);

#endif
