/* SPDX-License-Identifier: Apache-2.0 */

#include "store/driver.h"

#include "base/error.h"
#include "os/process.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void reply_fail(struct store_reply *reply, enum gavel_status status, const char *format, ...)
{
    va_list arguments;

    store_reply_done(reply);
    reply->status = status;
    va_start(arguments, format);
    (void)vsnprintf(reply->message, sizeof reply->message, format, arguments); /* cut off if too long */
    va_end(arguments);
}

void name_copy(char *to, size_t size, const char *from)
{
    size_t length = strnlen(from, size - 1);

    memcpy(to, from, length);
    to[length] = '\0';
}

struct process_id process_within_sight(const struct process_id *process, const struct process_id *self)
{
    if (process->pid <= 0 || self->pid <= 0 || process->pid_ns != self->pid_ns ||
        strcmp(process->boot_id, self->boot_id) != 0)
        return (struct process_id){0};
    return *process;
}

bool process_is_known_dead(const struct process_id *process, const struct process_id *self)
{
    if (process->pid == 0 ||
        (process->pid == self->pid && process->start_ticks == self->start_ticks &&
         process->pid_ns == self->pid_ns && strcmp(process->boot_id, self->boot_id) == 0))
        return false;
    return process_look(process, self, NULL) == PROCESS_DEAD;
}

/* A name in an array of a request: it must also end within the array. */
static enum gavel_status check_name(const char *what, const char *name, struct gavel_error *error)
{
    if (!name)
        return error_set(error, GAVEL_ERR_INVALID, "no %s is given; name one", what);
    if (strnlen(name, NAME_MAX_BYTES + 1) > NAME_MAX_BYTES)
        return error_set(error, GAVEL_ERR_INVALID, "the %s is longer than %d bytes; choose a shorter one",
                         what, NAME_MAX_BYTES);
    return name_check(what, name, error);
}

static enum gavel_status check_optional_name(const char *what, const char *name, struct gavel_error *error)
{
    return *name == '\0' ? GAVEL_OK : check_name(what, name, error);
}

static enum gavel_status check_address(const char *address, struct gavel_error *error)
{
    if (strnlen(address, ADDRESS_MAX_BYTES + 1) > ADDRESS_MAX_BYTES)
        return error_set(error, GAVEL_ERR_INVALID,
                         "the address is longer than %d bytes; choose a shorter one", ADDRESS_MAX_BYTES);
    return GAVEL_OK;
}

static enum gavel_status check_duration(const char *what, gavel_ms ms, struct gavel_error *error)
{
    if (ms < 1 || ms > STORE_DURATION_MAX_MS)
        return error_set(error, GAVEL_ERR_INVALID, "the %s of %lld ms is not between 1 ms and 366 days", what,
                         (long long)ms);
    return GAVEL_OK;
}

static enum gavel_status check_record(const struct store_request *request, struct gavel_error *error)
{
    enum gavel_status status = check_name("candidate id", request->record.holder, error);

    if (status == GAVEL_OK && request->op == STORE_CLAIM)
        status = check_address(request->record.address, error);
    if (status == GAVEL_OK && request->op != STORE_RELEASE)
        status = check_duration("lease", request->record.lease_ms, error);
    if (status == GAVEL_OK && request->op == STORE_RELEASE)
        status = check_optional_name("successor", request->record.successor, error);
    return status;
}

static enum gavel_status check_registration(const struct store_request *request, struct gavel_error *error)
{
    enum gavel_status status = check_name("candidate id", request->registration.id, error);

    if (status == GAVEL_OK && request->op == STORE_HEARTBEAT)
        status = check_address(request->registration.address, error);
    if (status == GAVEL_OK && request->op == STORE_HEARTBEAT)
        status = check_duration("candidate time-out", request->candidate_timeout_ms, error);
    return status;
}

static enum gavel_status check(const struct store_request *request, struct gavel_error *error)
{
    enum gavel_status status;

    if (request->op == STORE_GROUPS && request->prefix && strlen(request->prefix) > NAME_MAX_BYTES)
        return error_set(error, GAVEL_ERR_INVALID,
                         "no name of a group is longer than %d bytes, as the prefix is", NAME_MAX_BYTES);
    if (request->op == STORE_GROUPS)
        return GAVEL_OK;
    status = check_name("group name", request->group, error);
    if (status != GAVEL_OK)
        return status;
    switch (request->op) {
    case STORE_CLAIM:
    case STORE_RENEW:
    case STORE_RELEASE:
        return check_record(request, error);
    case STORE_ASK:
        return check_optional_name("successor", request->record.wish_successor, error);
    case STORE_HEARTBEAT:
    case STORE_LEAVE:
        return check_registration(request, error);
    case STORE_CANDIDATES:
        return check_duration("candidate time-out", request->candidate_timeout_ms, error);
    case STORE_READ:
    case STORE_REOPEN:
    case STORE_GROUPS:
        return GAVEL_OK;
    case STORE_DIED:
        return error_set(error, GAVEL_ERR_STORE_UNSUPPORTED,
                         "the store has no sessions, so no death of a process ends one");
    }
    return error_set(error, GAVEL_ERR_INVALID, "there is no operation %d", (int)request->op);
}

bool request_refuse(const struct store_request *request, gavel_ns now, struct store_reply *reply)
{
    struct gavel_error error;
    enum gavel_status status = check(request, &error);

    if (status != GAVEL_OK) {
        reply_fail(reply, status, "%s", error.message);
        return true;
    }
    if (now > request->give_up_at) {
        reply_fail(reply, GAVEL_ERR_TIMEOUT,
                   "the call came too late and was not begun; it may be tried again");
        return true;
    }
    return false;
}

bool request_wants_group(const struct store_request *request, const char *group)
{
    return !request->prefix || strncmp(group, request->prefix, strlen(request->prefix)) == 0;
}

bool request_writes(const struct store_request *request)
{
    switch (request->op) {
    case STORE_CLAIM:
    case STORE_RENEW:
    case STORE_RELEASE:
    case STORE_ASK:
    case STORE_REOPEN:
    case STORE_DIED:
    case STORE_HEARTBEAT:
    case STORE_LEAVE:
        return true;
    case STORE_READ:
    case STORE_CANDIDATES:
    case STORE_GROUPS:
        return false;
    }
    return false;
}

/*
 * Grows at every power of two from 4 on, so that a listing needs no capacity
 * of its own. NULL when out of memory; the old rows are then still there.
 */
static void *grow(void *rows, size_t count, size_t row_size)
{
    if (count == 0)
        return malloc(4 * row_size);
    if (count < 4 || (count & (count - 1)))
        return rows;
    return reallocarray(rows, count * 2, row_size);
}

struct registration *reply_add_registration(struct store_reply *reply)
{
    struct registration *rows = grow(reply->registrations, reply->registration_count, sizeof *rows);

    if (!rows) {
        reply_fail(reply, GAVEL_ERR_NO_MEMORY, "out of memory while listing candidates");
        return NULL;
    }
    reply->registrations = rows;
    return memset(&rows[reply->registration_count++], 0, sizeof *rows);
}

void reply_add_silent(struct store_reply *reply, const struct registration *registration, gavel_ms age_ms,
                      gavel_ms timeout_ms)
{
    /* A leader lists once in a time-out, so what is new to it is younger than this. */
    if (age_ms <= STORE_SILENT_TIMEOUTS * timeout_ms && reply->silent_count < STORE_SILENT_MAX)
        reply->silent[reply->silent_count++] = registration->instance;
}

int registration_order(const void *a, const void *b)
{
    const struct registration *one = a;
    const struct registration *other = b;

    return strcmp(one->id, other->id);
}

int group_order(const void *a, const void *b)
{
    const struct group_row *one = a;
    const struct group_row *other = b;

    return strcmp(one->group, other->group);
}

struct group_row *reply_add_group(struct store_reply *reply)
{
    struct group_row *rows;

    if (reply->group_count == STORE_GROUPS_MAX) {
        reply->has_more = true;
        return NULL;
    }
    rows = grow(reply->groups, reply->group_count, sizeof *rows);
    if (!rows) {
        reply_fail(reply, GAVEL_ERR_NO_MEMORY, "out of memory while listing groups");
        return NULL;
    }
    reply->groups = rows;
    return memset(&rows[reply->group_count++], 0, sizeof *rows);
}
