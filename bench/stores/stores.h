/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the measurements of stores on servers share: each store has a rig of
 * its own with a few `gavel run`, and all take turns, trial by trial, so that
 * a machine that is slow for a while is slow for all.
 */
#ifndef BENCH_STORES_STORES_H
#define BENCH_STORES_STORES_H

#include "bench/bench.h"
#include "bench/props/runs.h"
#include "bench/stores/servers.h"

/* Those of the servers, plus SQLite. */
#define FIELDS_MAX (SERVERS_MAX + 1)

/* One store and the processes that compete on it. */
struct field {
    char name[SERVER_NAME_MAX];
    const struct server_store *server; /* NULL: SQLite in the rig's directory */
    struct rig rig;
    struct runs runs;
    struct mark leader;
    struct samples latency;
    bool is_open;
    enum gavel_status status; /* why it no longer takes part; GAVEL_OK: it does */
};

/*
 * Opens a rig on that store. A failure becomes the field's status and is noted;
 * close it also after a failure.
 */
void field_open(struct field *field, struct bench *bench, const struct server_store *server);
void field_close(struct field *field);

/* Starts `gavel run` as the members below `count`, waits for a leader, and until all others know it. */
GAVEL_CHECKED enum gavel_status field_assemble(struct field *field, uint32_t count);
GAVEL_CHECKED enum gavel_status field_start(struct field *field, uint32_t member);
GAVEL_CHECKED enum gavel_status field_await_leader(struct field *field);
GAVEL_CHECKED enum gavel_status field_await_standbys(struct field *field, uint32_t count);

/* Reports what went wrong on a field that cannot go on, with the end of the logs. */
void field_fail(struct field *field, struct bench *bench, enum gavel_status status);

/*
 * Reads the list of servers. ERR_NOT_FOUND, noted, if there is none: then the
 * section is left out. ERR_INVALID and ERR_IO are noted, too.
 */
GAVEL_CHECKED enum gavel_status stores_list(struct bench *bench, struct servers *ret_servers);

#endif
