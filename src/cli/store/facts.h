/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a store can do, as `gavel check` and `gavel store ping` report it: from
 * its driver, without opening it.
 */
#ifndef CLI_STORE_FACTS_H
#define CLI_STORE_FACTS_H

#include "cli/cli.h"
#include "store/store.h"

#include <jansson.h>

/* A word or two for programs: "steady", "may step", "none". */
const char *store_clock_name(enum store_clock clock);

/*
 * Prints lines of name and value, below the caller's heading. The line `clock`
 * also says who times a lease.
 */
void store_facts_print(const struct cli *cli, const struct store_capabilities *store);

/* {"url", "driver", "preset", "clock", "lease_timed_by", "is_shared", …} */
json_t *store_facts_json(const struct cli *cli, const struct store_capabilities *store);

#endif
