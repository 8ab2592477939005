/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The planted bugs by name, and the test that each of them is caught: seeds
 * are run one after the other until an invariant breaks. A bug that survives
 * all of them means that the simulator is blind for a mistake that people make.
 */
#ifndef SIM_PLANTED_H
#define SIM_PLANTED_H

#include "base/planted.h"

#include <stdbool.h>
#include <stdint.h>

struct world;
struct run_options;

/* False if there is no bug of that name. */
bool planted_find(const char *name, enum planted_bug *ret_bug);

const char *planted_name(enum planted_bug bug);
const char *planted_what(enum planted_bug bug);

void planted_list(void);

/* Tries each bug with at most `limit` seeds and prints a table; returns how many were not caught. */
unsigned planted_try_all(struct world *world, const struct run_options *options, uint64_t limit);

#endif
