/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The store `static:web-1`: the leader of every group is assigned, not
 * elected. For migrating step by step: all processes already run with gavel,
 * and the URL says who leads until a real store takes over.
 *
 * Nothing is shared between processes; each knows the assignment from its own
 * URL. What a READ shows depends on who is here:
 *
 *   the assigned candidate has claimed here         its record
 *   it is registered here and has not claimed       nothing held: it claims
 *   it is not here                                  held by it, elsewhere
 *
 * so that candidates of the other processes never try to claim. The epoch is
 * the one of the URL, every time: whoever moves the assignment to another
 * candidate raises it (static:web-2?epoch=4), and resources that fence by
 * epoch then refuse the former leader.
 */
#include "base/assert.h"
#include "base/error.h"
#include "os/clock.h"
#include "os/process.h"
#include "store/driver.h"
#include "store/local/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * An assignment never expires, but a record needs a lease. A day means that a
 * standby which trusts only its own clock asks once a day whether the group is
 * free, and is refused.
 */
#define ASSIGNED_LEASE_MS INT64_C(86400000)
#define ASSIGNED_VERSION 1 /* of the assignment; claims made here have higher ones */

struct static_store {
    struct store store;
    struct rows rows;
    char leader[NAME_MAX_BYTES + 1];
    uint64_t epoch;
    const struct store_request *batch; /* being run; NULL otherwise */
    size_t batch_count;
};

static enum gavel_status parse_epoch(const char *text, uint64_t *ret_epoch, struct gavel_error *error)
{
    char *end;
    unsigned long long epoch;

    errno = 0;
    epoch = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || epoch == 0 || epoch > RULES_NUMBER_MAX)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "the epoch \"%.40s\" of a static store is not a positive number; write static:ID?epoch=1", text);
    *ret_epoch = epoch;
    return GAVEL_OK;
}

static enum gavel_status parse(const char *rest, struct static_store *fixed, struct gavel_error *error)
{
    static const char key[] = "?epoch=";
    const char *query = strstr(rest, key);
    size_t length = query ? (size_t)(query - rest) : strlen(rest);

    fixed->epoch = 1;
    if (length > NAME_MAX_BYTES)
        return error_set(error, GAVEL_ERR_INVALID,
                         "the candidate id of a static store is longer than %d bytes", NAME_MAX_BYTES);
    memcpy(fixed->leader, rest, length);
    fixed->leader[length] = '\0';
    if (name_check("candidate id of a static store", fixed->leader, error) != GAVEL_OK)
        return GAVEL_ERR_INVALID;
    return query ? parse_epoch(query + strlen(key), &fixed->epoch, error) : GAVEL_OK;
}

static enum gavel_status static_open(const char *rest, struct store **ret_store, struct gavel_error *error)
{
    enum gavel_status status;
    struct static_store *fixed = calloc(1, sizeof *fixed);

    if (!fixed)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening static:%.100s", rest);
    status = parse(rest, fixed, error);
    if (status != GAVEL_OK) {
        free(fixed);
        return status;
    }
    *ret_store = &fixed->store;
    return GAVEL_OK;
}

static void static_close(struct store *store)
{
    struct static_store *fixed = (struct static_store *)store;

    rows_done(&fixed->rows);
    free(fixed);
}

/*
 * Whether the assigned candidate is here: it has registered, or does so in
 * the batch that is being run. A candidate's first read may stand just before
 * its first heartbeat, and must not tell it of a leader elsewhere.
 */
static bool leader_is_here(const struct static_store *fixed, const struct rows_group *group, const char *name)
{
    ASSERT(name != NULL);
    if (group && rows_find_registration(group, fixed->leader))
        return true;
    for (size_t i = 0; i < fixed->batch_count; i++) {
        const struct store_request *request = &fixed->batch[i];

        if (request->op == STORE_HEARTBEAT && request->group && strcmp(request->group, name) == 0 &&
            strncmp(request->registration.id, fixed->leader, sizeof request->registration.id) == 0)
            return true;
    }
    return false;
}

/* What there is to see of a group, see the table above. */
static void view(const struct static_store *fixed, const struct rows_group *group, const char *name,
                 struct mandate_row *ret_row)
{
    memset(ret_row, 0, sizeof *ret_row);
    if ((group && group->mandate.record.held) || leader_is_here(fixed, group, name)) {
        if (group)
            *ret_row = group->mandate;
        return;
    }
    ret_row->is_found = true;
    ret_row->record.held = true;
    ret_row->record.epoch = fixed->epoch;
    ret_row->record.version = ASSIGNED_VERSION;
    ret_row->record.lease_ms = ASSIGNED_LEASE_MS;
    name_copy(ret_row->record.holder, sizeof ret_row->record.holder, fixed->leader);
}

/* A lease that begins at this very moment, whenever that is: an assignment does not expire. */
static void answer(struct mandate_row *row, const struct store_request *request, struct rules_now *now,
                   enum gavel_status status, struct store_reply *reply)
{
    row->applied_at = now->now;
    rules_reply(row, request, now, status, reply);
}

static enum gavel_status claim(const struct static_store *fixed, const struct mandate_row *seen,
                               struct mandate_row *row, const struct store_request *request,
                               struct rules_now *now)
{
    struct store_request unconditional = *request;

    if (strcmp(request->record.holder, fixed->leader) != 0)
        return GAVEL_ERR_CONFLICT;
    if (request->expected_version != (seen->is_found ? seen->record.version : 0))
        return GAVEL_ERR_CONFLICT;
    if (request->must_be_expired && seen->record.held)
        return GAVEL_ERR_CONFLICT;
    if (row->record.version < ASSIGNED_VERSION)
        row->record.version = ASSIGNED_VERSION;
    row->is_found = true;
    row->record.epoch = fixed->epoch - 1; /* the rule adds one */
    unconditional.expected_version = row->record.version;
    unconditional.must_be_expired = false;
    return rules_claim(row, &unconditional, now);
}

static void run_mandate(struct static_store *fixed, const struct store_request *request,
                        struct rules_now *now, struct store_reply *reply)
{
    bool is_claim = request->op == STORE_CLAIM;
    struct rows_group *group =
        is_claim ? rows_get(&fixed->rows, request->group) : rows_find(&fixed->rows, request->group);
    struct mandate_row seen;
    enum gavel_status status = GAVEL_OK;

    if (is_claim && !group) {
        reply_fail(reply, GAVEL_ERR_NO_MEMORY, "out of memory while writing a record");
        return;
    }
    if ((request->op == STORE_RELEASE && request->record.done) || request->op == STORE_REOPEN) {
        reply_fail(
            reply, GAVEL_ERR_STORE_UNSUPPORTED,
            "a static store keeps nothing, so it cannot keep that the work of group \"%.60s\" is done; use another store",
            request->group);
        return;
    }
    view(fixed, group, request->group, &seen);
    if (is_claim) {
        status = claim(fixed, &seen, &group->mandate, request, now);
    } else if (request->op == STORE_ASK) {
        reply_fail(
            reply, GAVEL_ERR_STORE_UNSUPPORTED,
            "the leader of a static store is assigned and cannot be asked to hand over; change the store's URL");
        return;
    } else if (request->op != STORE_READ) {
        status = group ? rules_apply(&group->mandate, request, now) : GAVEL_ERR_NOT_HOLDER;
    }
    view(fixed, group, request->group, &seen);
    answer(&seen, request, now, status, reply);
}

/* The record of a claim is void when the instance that made it has left or was replaced. */
static void run_registry(struct static_store *fixed, const struct store_request *request,
                         const struct rules_now *now, struct store_reply *reply)
{
    const struct registration_row *row = NULL;
    struct rows_group *group = rows_find(&fixed->rows, request->group);
    uint64_t before = 0;

    if (group)
        row = rows_find_registration(group, fixed->leader);
    if (row)
        before = row->registration.instance;
    rows_registry(&fixed->rows, request, now->now, now->wall_ms, reply);
    if (!before)
        return;
    row = rows_find_registration(group, fixed->leader);
    if ((!row || row->registration.instance != before) && group->mandate.record.held) {
        group->mandate.record.held = false;
        group->mandate.record.version++;
    }
}

static void list_groups(const struct static_store *fixed, const struct store_request *request,
                        const struct rules_now *now, struct store_reply *reply)
{
    bool has_room = true;

    for (size_t i = 0; i < fixed->rows.count && has_room; i++) {
        const struct rows_group *group = fixed->rows.groups[i];
        struct mandate_row seen;

        view(fixed, group, group->name, &seen);
        seen.applied_at = now->now;
        has_room = rows_list_group(request, group, &seen, now, reply);
    }
}

static void static_run(struct store *store, const struct store_request *requests, struct store_reply *replies,
                       size_t count)
{
    static const struct process_id nobody; /* nothing outlives the process, so boots never matter */
    struct static_store *fixed = (struct static_store *)store;

    fixed->batch = requests;
    fixed->batch_count = count;
    for (size_t i = 0; i < count; i++) {
        struct rules_now now = {.now = clock_now(), .wall_ms = clock_wall_ms(), .self = &nobody};

        if (request_refuse(&requests[i], now.now, &replies[i]))
            continue;
        if (requests[i].op == STORE_GROUPS)
            list_groups(fixed, &requests[i], &now, &replies[i]);
        else if (rows_is_registry(requests[i].op))
            run_registry(fixed, &requests[i], &now, &replies[i]);
        else
            run_mandate(fixed, &requests[i], &now, &replies[i]);
    }
    fixed->batch = NULL;
    fixed->batch_count = 0;
}

const struct store_driver store_static = {
    .scheme = "static",
    .summary = "static:ID[?epoch=N]  a fixed leader, for migrating step by step",
    .capabilities =
        {
            .name = "static",
            .preset = "local",
            .clock = STORE_CLOCK_STEADY,
            .is_fixed = true,
        },
    .open = static_open,
    .run = static_run,
    .close = static_close,
};
