/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The planted bugs by name, and the test that each of them is caught: those of
 * the candidate by runs of candidates, those of the cluster by runs of nodes,
 * those of sessions by runs of clients.
 */
#ifndef SIM_COMMON_PLANTED_H
#define SIM_COMMON_PLANTED_H

#include "base/planted.h"

#include <stdbool.h>
#include <stdint.h>

enum planted_kind { PLANTED_KIND_CANDIDATE, PLANTED_KIND_RAFT, PLANTED_KIND_SESSION };

const char *planted_name(enum planted_bug bug);

/* Finds one of this kind; false if there is none. */
bool planted_find(enum planted_kind kind, const char *name, enum planted_bug *ret_bug);

/* All of a kind with a sentence each, to stdout. */
void planted_list(enum planted_kind kind);

/* Runs one seed; the name of the promise it breaks, NULL if none. */
typedef const char *(*planted_run_cb)(void *context, uint64_t seed);

/*
 * Plants one bug of the kind after the other and looks for a seed that shows it. Prints a table; returns how
 * many were not caught within `limit` seeds.
 */
unsigned planted_try_all(enum planted_kind kind, planted_run_cb run, void *context, uint64_t first,
                         uint64_t limit);

#endif
