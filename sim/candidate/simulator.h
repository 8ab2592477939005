/* SPDX-License-Identifier: Apache-2.0 */

/* The simulator of candidates of one group; a run goes from the first start to the end of the quiet phase. */
#ifndef SIM_CANDIDATE_SIMULATOR_H
#define SIM_CANDIDATE_SIMULATOR_H

#include "sim/common/simulator.h"

/* Its memory is a struct world. */
extern const struct simulator candidate_simulator;

#endif
