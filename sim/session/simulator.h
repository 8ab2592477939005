/* SPDX-License-Identifier: Apache-2.0 */

/* The simulator of programs with sessions on a cluster; a run goes from the first start to the last look. */
#ifndef SIM_SESSION_SIMULATOR_H
#define SIM_SESSION_SIMULATOR_H

#include "sim/common/simulator.h"

/* Its memory is a struct testbed. */
extern const struct simulator session_simulator;

#endif
