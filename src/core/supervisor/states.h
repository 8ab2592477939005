/* SPDX-License-Identifier: Apache-2.0 */

/* The states of the supervisor and which may follow which. */
#ifndef CORE_SUPERVISOR_STATES_H
#define CORE_SUPERVISOR_STATES_H

#include "core/supervisor/supervisor.h"

/* The only place that sets the state; asserts that the table has this edge. */
void supervisor_move(struct supervisor *supervisor, enum supervisor_state to);

#endif
