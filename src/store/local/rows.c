/* SPDX-License-Identifier: Apache-2.0 */

#include "store/local/rows.h"

#include "store/driver.h"

#include <stdlib.h>
#include <string.h>

void rows_done(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->groups[i]->registrations);
        free(rows->groups[i]);
    }
    free(rows->groups);
    memset(rows, 0, sizeof *rows);
}

/* Where a name stands or would stand. */
static size_t position(const struct rows *rows, const char *name, bool *ret_is_there)
{
    size_t low = 0;
    size_t high = rows->count;

    *ret_is_there = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(rows->groups[middle]->name, name);

        if (order == 0) {
            *ret_is_there = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct rows_group *rows_find(const struct rows *rows, const char *name)
{
    bool is_there;
    size_t at = position(rows, name, &is_there);

    return is_there ? rows->groups[at] : NULL;
}

struct rows_group *rows_get(struct rows *rows, const char *name)
{
    struct rows_group *group;
    bool is_there;
    size_t at = position(rows, name, &is_there);

    if (is_there)
        return rows->groups[at];
    if (rows->count == rows->capacity) {
        size_t capacity = rows->capacity ? rows->capacity * 2 : 8;
        struct rows_group **groups = reallocarray(rows->groups, capacity, sizeof(struct rows_group *));

        if (!groups)
            return NULL;
        rows->groups = groups;
        rows->capacity = capacity;
    }
    group = calloc(1, sizeof *group);
    if (!group)
        return NULL;
    name_copy(group->name, sizeof group->name, name);
    memmove(&rows->groups[at + 1], &rows->groups[at], (rows->count - at) * sizeof *rows->groups);
    rows->groups[at] = group;
    rows->count++;
    return group;
}

struct registration_row *rows_find_registration(const struct rows_group *group, const char *id)
{
    for (size_t i = 0; i < group->registration_count; i++) {
        if (strcmp(group->registrations[i].registration.id, id) == 0)
            return &group->registrations[i];
    }
    return NULL;
}

static void remove_registration(struct rows_group *group, struct registration_row *row)
{
    size_t after = (size_t)(group->registrations + group->registration_count - (row + 1));

    memmove(row, row + 1, after * sizeof *row);
    group->registration_count--;
}

/* Those silent for ten time-outs are of no use to anybody. */
static void prune(struct rows_group *group, gavel_ms timeout_ms, gavel_ns now)
{
    for (size_t i = group->registration_count; i > 0; i--) {
        if (registration_age(&group->registrations[i - 1], now) > 10 * timeout_ms)
            remove_registration(group, &group->registrations[i - 1]);
    }
}

static struct registration_row *add_registration(struct rows_group *group, const char *id)
{
    size_t at = 0;
    struct registration_row *rows =
        reallocarray(group->registrations, group->registration_count + 1, sizeof *group->registrations);

    if (!rows)
        return NULL;
    group->registrations = rows;
    while (at < group->registration_count && strcmp(rows[at].registration.id, id) < 0)
        at++;
    memmove(&rows[at + 1], &rows[at], (group->registration_count - at) * sizeof *rows);
    group->registration_count++;
    return &rows[at];
}

static void heartbeat(struct rows *rows, const struct store_request *request, gavel_ns now, int64_t wall_ms,
                      struct store_reply *reply)
{
    struct rows_group *group = rows_get(rows, request->group);
    struct registration_row *row = NULL;

    if (group) {
        row = rows_find_registration(group, request->registration.id);
        if (row && !rules_heartbeat(row, request, now, false, reply))
            return;
        if (!row) {
            prune(group, request->candidate_timeout_ms, now);
            row = add_registration(group, request->registration.id);
        }
    }
    if (!row) {
        reply_fail(reply, GAVEL_ERR_NO_MEMORY, "out of memory while registering a candidate");
        return;
    }
    row->registration = request->registration;
    row->registration.last_wall_ms = wall_ms;
    row->beat_at = now;
}

static void list(const struct rows_group *group, const struct store_request *request, gavel_ns now,
                 struct store_reply *reply)
{
    for (size_t i = 0; i < group->registration_count; i++) {
        const struct registration_row *row = &group->registrations[i];
        gavel_ms age_ms = registration_age(row, now);
        struct registration *slot;

        if (age_ms > request->candidate_timeout_ms)
            reply_add_silent(reply, &row->registration, age_ms, request->candidate_timeout_ms);
        if (age_ms > request->candidate_timeout_ms || reply->registration_count == STORE_CANDIDATES_MAX)
            continue;
        slot = reply_add_registration(reply);
        if (!slot)
            return;
        *slot = row->registration;
        slot->age_ms = age_ms;
    }
}

bool rows_list_group(const struct store_request *request, const struct rows_group *group,
                     const struct mandate_row *mandate, const struct rules_now *now,
                     struct store_reply *reply)
{
    struct group_row *row;

    if (!mandate->is_found || !request_wants_group(request, group->name))
        return true;
    row = reply_add_group(reply);
    if (!row)
        return false;
    name_copy(row->group, sizeof row->group, group->name);
    row->record = mandate->record;
    row->expired = mandate_expired(mandate, now, &row->remaining_ms);
    return true;
}

bool rows_is_registry(enum store_op op)
{
    return op == STORE_HEARTBEAT || op == STORE_LEAVE || op == STORE_CANDIDATES;
}

void rows_registry(struct rows *rows, const struct store_request *request, gavel_ns now, int64_t wall_ms,
                   struct store_reply *reply)
{
    struct rows_group *group;
    struct registration_row *row;

    if (request->op == STORE_HEARTBEAT) {
        heartbeat(rows, request, now, wall_ms, reply);
        return;
    }
    group = rows_find(rows, request->group);
    if (!group)
        return; /* nobody to list or to leave */
    if (request->op == STORE_CANDIDATES) {
        list(group, request, now, reply);
        return;
    }
    row = rows_find_registration(group, request->registration.id);
    if (row && row->registration.instance == request->registration.instance)
        remove_registration(group, row);
}
