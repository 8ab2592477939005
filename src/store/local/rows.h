/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mandates and registrations kept in memory: all that the drivers `memory` and
 * `static` store. Not locked; that is up to the owner.
 */
#ifndef STORE_LOCAL_ROWS_H
#define STORE_LOCAL_ROWS_H

#include "store/rules.h"

struct rows_group {
    char name[NAME_MAX_BYTES + 1];
    struct mandate_row mandate;
    struct registration_row *registrations; /* sorted by id */
    size_t registration_count;
};

struct rows {
    struct rows_group **groups; /* sorted by name */
    size_t count;
    size_t capacity;
};

/* Frees everything and empties the rows. */
void rows_done(struct rows *rows);

/* The group of that name, or NULL. */
struct rows_group *rows_find(const struct rows *rows, const char *name);

/* The group of that name, made if there is none; NULL when out of memory. */
struct rows_group *rows_get(struct rows *rows, const char *name);

/* The registration of that id, or NULL. */
struct registration_row *rows_find_registration(const struct rows_group *group, const char *id);

/* Puts a group with that mandate into a list, if it is asked for and has one; false: the list is full. */
bool rows_list_group(const struct store_request *request, const struct rows_group *group,
                     const struct mandate_row *mandate, const struct rules_now *now,
                     struct store_reply *reply);

/* HEARTBEAT, LEAVE and CANDIDATES. */
bool rows_is_registry(enum store_op op);
void rows_registry(struct rows *rows, const struct store_request *request, gavel_ns now, int64_t wall_ms,
                   struct store_reply *reply);

#endif
