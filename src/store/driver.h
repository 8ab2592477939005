/* SPDX-License-Identifier: Apache-2.0 */

/* What every driver needs: checking a request before it begins, and filling in a reply. */
#ifndef STORE_DRIVER_H
#define STORE_DRIVER_H

#include "base/request.h"
#include "store/store.h"

#define STORE_CANDIDATES_MAX 1024                  /* in one listing */
#define STORE_GROUPS_MAX 65536                     /* likewise; whoever leaves out more says so */
#define STORE_DURATION_MAX_MS INT64_C(31622400000) /* 366 days: keeps all sums far from overflow */

/*
 * In time-outs of a candidate: until its silence is no longer reported, and
 * until its registration is removed.
 */
#define STORE_SILENT_TIMEOUTS 3
#define STORE_PRUNE_TIMEOUTS 10

/* How long a server may take to answer a driver that opens; many hosts that start at once make it slow. */
#define STORE_OPEN_PATIENCE (5 * NS_PER_S)

extern const struct store_driver store_sqlite;
extern const struct store_driver store_memory;
extern const struct store_driver store_static;
/* Only if built: STORE_GAVEL, STORE_MYSQL, … */
extern const struct store_driver store_gavel;
extern const struct store_driver store_mysql;
extern const struct store_driver store_s3;
extern const struct store_driver store_etcd;

/* A failure, with a message that names the thing, the reason and the next step. */
void reply_fail(struct store_reply *reply, enum gavel_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * True if the request must not begin: a name or a duration is invalid
 * (ERR_INVALID), or give_up_at has passed (ERR_TIMEOUT). The reply then says
 * so; otherwise it is untouched.
 */
bool request_refuse(const struct store_request *request, gavel_ns now, struct store_reply *reply);

/* Whether it may change what is stored. */
bool request_writes(const struct store_request *request);

/* Whether a request for GROUPS asks for this one. */
bool request_wants_group(const struct store_request *request, const char *group);

/*
 * Adds a zeroed row to a listing; NULL (and the reply has failed) when out of
 * memory. Of groups also if the listing is full; the reply then says that there
 * are more.
 */
struct registration *reply_add_registration(struct store_reply *reply);
struct group_row *reply_add_group(struct store_reply *reply);

/* For qsort() and bsearch() over the rows of a listing: registrations by id, groups by name. */
int registration_order(const void *a, const void *b);
int group_order(const void *a, const void *b);

/*
 * Adds an instance that is not listed although it has not left. Those silent
 * for STORE_SILENT_TIMEOUTS are not reported any longer; nor are too many at
 * once.
 */
void reply_add_silent(struct store_reply *reply, const struct registration *registration, gavel_ms age_ms,
                      gavel_ms timeout_ms);

/*
 * The process named by a store that many hosts share, if `self` can see it;
 * else none. A process of another boot or pid namespace must not be passed on:
 * to a candidate, another boot id means that the process is dead, but on
 * another host it is not.
 */
struct process_id process_within_sight(const struct process_id *process, const struct process_id *self);

/* Whether such a process is known to be dead; false if it cannot be seen. */
bool process_is_known_dead(const struct process_id *process, const struct process_id *self);

/* Copies a name into a field of a record; truncates it if it does not fit. */
void name_copy(char *to, size_t size, const char *from);

#endif
