/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mandates and registrations kept in memory: all that the drivers `memory`
 * and `static` store. Not locked; whoever owns a shelf does that.
 */
#ifndef STORE_LOCAL_SHELF_H
#define STORE_LOCAL_SHELF_H

#include "store/rules.h"

struct shelf_group {
    char name[NAME_MAX_BYTES + 1];
    struct mandate_row mandate;
    struct registration_row *registrations; /* sorted by id */
    size_t registration_count;
};

struct shelf {
    struct shelf_group **groups; /* sorted by name */
    size_t count;
    size_t capacity;
};

/* Frees everything and empties the shelf. */
void shelf_done(struct shelf *shelf);

/* The group of that name, or NULL. */
struct shelf_group *shelf_find(const struct shelf *shelf, const char *name);

/* The group of that name, made if there is none; NULL when out of memory. */
struct shelf_group *shelf_get(struct shelf *shelf, const char *name);

/* The registration of that id, or NULL. */
struct registration_row *shelf_find_registration(const struct shelf_group *group, const char *id);

/* HEARTBEAT, LEAVE and CANDIDATES. */
void shelf_registry(struct shelf *shelf, const struct store_request *request, gavel_ns now, int64_t wall_ms,
                    struct store_reply *reply);

#endif
