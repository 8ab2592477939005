/* SPDX-License-Identifier: Apache-2.0 */

/* The simulator of the nodes of a cluster; a run goes from the first start to the end of the liveness
 * phase. */
#ifndef SIM_RAFT_SIMULATOR_H
#define SIM_RAFT_SIMULATOR_H

#include "sim/common/simulator.h"

/* Its memory is a struct cluster. */
extern const struct simulator raft_simulator;

#endif
