/* SPDX-License-Identifier: Apache-2.0 */

/* What `gavel store ping` measures, and what follows from it. */
#ifndef CLI_STORE_PING_H
#define CLI_STORE_PING_H

#include "base/time.h"
#include "cli/cli.h"
#include "cli/samples.h"
#include "store/store.h"

/* The group it uses; people who find it in their store should know what it is. */
#define PING_GROUP "gavel-store-ping"

/* The settings fit if call_timeout is at least this many times the slowest p99: a store has bad minutes. */
#define PING_SAFETY_FACTOR 3

/* Stands for a call that failed: it counts as slower than any that succeeded. */
#define PING_FAILED INT64_MAX

/* A mandate is claimed and renewed, or campaigned for where the store grants them. */
enum ping_op { PING_READ, PING_CLAIM, PING_RENEW, PING_CAMPAIGN, PING_RELEASE, PING_OPS };

struct ping_result {
    const struct store_capabilities *store;
    gavel_ns open_took;
    gavel_ns probe_took;   /* -1: not probed */
    gavel_ns session_took; /* -1: none was opened */
    size_t rounds;
    struct samples series[PING_OPS]; /* nanoseconds, or PING_FAILED */
    size_t failed[PING_OPS];
    char message[256];      /* of the last call that failed; "" if none did */
    const char *only_reads; /* why; NULL if everything was measured */
    int signal_number;      /* the one that ended it early; 0: none */
};

/* Whether call_timeout_ms fits this store; the slowest p99 of all operations decides. */
bool ping_fits(struct ping_result *result, gavel_ms call_timeout_ms);

/* Prints it, as a table or as JSON. Returns whether the settings of cli->config fit. */
bool ping_report(const struct cli *cli, struct ping_result *result);

#endif
