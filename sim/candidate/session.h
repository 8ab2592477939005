/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The session of a process, as src/core/session/client.h describes it: opened,
 * kept open by keep-alives, lost, opened anew with another number. Its deadline
 * counts from the send of what was answered. The candidate is told of it with
 * each event, and of a change of its number at once.
 */
#ifndef SIM_CANDIDATE_SESSION_H
#define SIM_CANDIDATE_SESSION_H

#include "base/time.h"

struct event;
struct message;
struct process;
struct world;

/* A process begins: it has no session yet. */
void session_begin(struct world *world, struct process *process);

/* The KEEP event: opens a session, or keeps it open. */
void session_take(struct world *world, struct process *process, const struct event *event);

/* The answer to an opening or a keep-alive; a push. */
void session_answered(struct world *world, struct process *process, const struct message *message);
void session_pushed(struct world *world, struct process *process, const struct message *message);

/* When it must be woken: for its candidate, or because its session is about to end while it leads. */
gavel_ns session_wake_at(const struct process *process);

#endif
