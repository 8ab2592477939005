/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The work of a leader: it runs between WORK_START and the end of its stop
 * callback, acts on a fenced resource while it believes it leads, and is
 * aborted together with its process if it has not stopped by the deadline.
 */
#ifndef SIM_CANDIDATE_WORK_H
#define SIM_CANDIDATE_WORK_H

#include "base/time.h"

#include <gavel/event.h>

#include <stdbool.h>

struct candidate_action;
struct event;
struct process;
struct world;

/* What is_leader() answers at a local instant. */
bool work_believes(const struct process *process, gavel_ns local);

/* The actions MANDATE, WORK_START and WORK_STOP of a candidate. */
void work_mandate(struct world *world, struct process *process, const struct candidate_action *action);
void work_start(struct world *world, struct process *process, uint64_t epoch);
void work_stop(struct world *world, struct process *process, enum gavel_reason reason, gavel_ns deadline);

/* The deadline of the session has moved, and with it that of the mandate. */
void work_follow_session(struct world *world, struct process *process);

/* STOPPED, WATCHDOG and ACT events of a process that runs. */
void work_take(struct world *world, struct process *process, const struct event *event);

/* A write reaches the resource. */
void work_write(struct world *world, const struct event *event);

#endif
