/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The candidates of a group in SQLite. A heartbeat of the instance that is
 * already there is one conditional update; everything else is rarer and looks
 * first.
 */
#include "os/clock.h"
#include "os/process.h"
#include "store/driver.h"
#include "store/sqlite/sqlite.h"

#include <string.h>
#include <unistd.h>

/* The columns of the statements REGISTRATION and CANDIDATES. */
enum column {
    COLUMN_ID,
    COLUMN_FORMAT,
    COLUMN_INSTANCE,
    COLUMN_BEATS,
    COLUMN_BEAT_AT,
    COLUMN_SINCE_WALL_MS,
    COLUMN_LAST_WALL_MS,
    COLUMN_PRIORITY,
    COLUMN_ELIGIBLE,
    COLUMN_ADDRESS,
    COLUMN_PROCESS, /* boot_id, pid, pid_ns, start_ticks */
};

static void parse_row(sqlite3_stmt *s, struct registration_row *ret_row)
{
    struct registration *r = &ret_row->registration;

    memset(ret_row, 0, sizeof *ret_row);
    sqlite_text(s, COLUMN_ID, r->id, sizeof r->id);
    r->instance = (uint64_t)sqlite3_column_int64(s, COLUMN_INSTANCE);
    r->beats = (uint64_t)sqlite3_column_int64(s, COLUMN_BEATS);
    ret_row->beat_at = sqlite3_column_int64(s, COLUMN_BEAT_AT);
    r->since_wall_ms = sqlite3_column_int64(s, COLUMN_SINCE_WALL_MS);
    r->last_wall_ms = sqlite3_column_int64(s, COLUMN_LAST_WALL_MS);
    r->priority = sqlite3_column_int(s, COLUMN_PRIORITY);
    r->eligible = sqlite3_column_int(s, COLUMN_ELIGIBLE) != 0;
    sqlite_text(s, COLUMN_ADDRESS, r->address, sizeof r->address);
    sqlite_process(s, COLUMN_PROCESS, &r->process);
}

/* Binding can only fail for a wrong index, here and below. */
static int beat(struct sqlite_store *sqlite, const struct store_request *request, bool *ret_is_done)
{
    const struct registration *r = &request->registration;
    sqlite3_stmt *s = sqlite->statements[SQLITE_STATEMENT_BEAT];
    int code;

    (void)sqlite3_bind_text(s, 1, request->group, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(s, 2, r->id, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(s, 3, (int64_t)r->instance);
    (void)sqlite3_bind_int64(s, 4, (int64_t)r->beats);
    (void)sqlite3_bind_int64(s, 5, clock_now());
    (void)sqlite3_bind_int64(s, 6, clock_wall_ms());
    (void)sqlite3_bind_int64(s, 7, r->priority);
    (void)sqlite3_bind_int64(s, 8, r->eligible);
    (void)sqlite3_bind_text(s, 9, r->address, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(s, 10, SQLITE_ROW_FORMAT);
    code = sqlite_finish(s);
    *ret_is_done = !code && sqlite3_changes(sqlite->db) > 0;
    return code;
}

static int enroll(struct sqlite_store *sqlite, const struct store_request *request)
{
    const struct registration *r = &request->registration;
    sqlite3_stmt *s = sqlite->statements[SQLITE_STATEMENT_REGISTER];
    int64_t wall_ms = clock_wall_ms();

    (void)sqlite3_bind_text(s, 1, request->group, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(s, 2, r->id, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(s, 3, SQLITE_ROW_FORMAT);
    (void)sqlite3_bind_int64(s, 4, (int64_t)r->instance);
    (void)sqlite3_bind_int64(s, 5, (int64_t)r->beats);
    (void)sqlite3_bind_int64(s, 6, clock_now());
    (void)sqlite3_bind_int64(s, 7, r->since_wall_ms ? r->since_wall_ms : wall_ms);
    (void)sqlite3_bind_int64(s, 8, wall_ms);
    (void)sqlite3_bind_int64(s, 9, r->priority);
    (void)sqlite3_bind_int64(s, 10, r->eligible);
    (void)sqlite3_bind_text(s, 11, r->address, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(s, 12, r->process.boot_id, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(s, 13, r->process.pid);
    (void)sqlite3_bind_int64(s, 14, (int64_t)r->process.pid_ns);
    (void)sqlite3_bind_int64(s, 15, (int64_t)r->process.start_ticks);
    return sqlite_finish(s);
}

/* Rows accumulate only where new ones come, so that is where old ones go. */
static int prune(struct sqlite_store *sqlite, const struct store_request *request)
{
    sqlite3_stmt *s = sqlite->statements[SQLITE_STATEMENT_PRUNE];
    gavel_ns now = clock_now();

    (void)sqlite3_bind_text(s, 1, request->group, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(s, 2, now - STORE_PRUNE_TIMEOUTS * ns_from_ms(request->candidate_timeout_ms));
    (void)sqlite3_bind_int64(s, 3, now + NS_PER_S); /* of an earlier boot */
    return sqlite_finish(s);
}

/* Whether the process behind a registration is proven dead; our own needs no look. */
static bool is_dead(const struct sqlite_store *sqlite, const struct process_id *process)
{
    const struct process_id *self = &sqlite->self;

    if (process->pid == self->pid && process->start_ticks == self->start_ticks &&
        process->pid_ns == self->pid_ns && strcmp(process->boot_id, self->boot_id) == 0)
        return false;
    return process_look(process, self, NULL) == PROCESS_DEAD;
}

static int heartbeat(struct sqlite_store *sqlite, const struct store_request *request,
                     struct store_reply *reply)
{
    struct registration_row row;
    sqlite3_stmt *s = sqlite->statements[SQLITE_STATEMENT_REGISTRATION];
    int64_t format = 0;
    bool is_done;
    int code = beat(sqlite, request, &is_done);

    if (code || is_done)
        return code;
    (void)sqlite3_bind_text(s, 1, request->group, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(s, 2, request->registration.id, -1, SQLITE_STATIC);
    code = sqlite3_step(s);
    if (code == SQLITE_ROW) {
        format = sqlite3_column_int64(s, COLUMN_FORMAT);
        parse_row(s, &row);
    }
    (void)sqlite3_reset(s); /* repeats the code of the step */
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return code;
    if (format > SQLITE_ROW_FORMAT) {
        reply_fail(reply, GAVEL_ERR_STORE_TOO_NEW,
                   "candidate \"%.60s\" of group \"%.60s\" was registered by a newer gavel; update this one",
                   request->registration.id, request->group);
        return SQLITE_OK;
    }
    if (code == SQLITE_ROW &&
        !rules_heartbeat(&row, request, clock_now(), is_dead(sqlite, &row.registration.process), reply))
        return SQLITE_OK;
    code = prune(sqlite, request);
    return code ? code : enroll(sqlite, request);
}

static int leave(struct sqlite_store *sqlite, const struct store_request *request)
{
    sqlite3_stmt *s = sqlite->statements[SQLITE_STATEMENT_LEAVE];

    (void)sqlite3_bind_text(s, 1, request->group, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(s, 2, request->registration.id, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(s, 3, (int64_t)request->registration.instance);
    return sqlite_finish(s);
}

static int list(struct sqlite_store *sqlite, const struct store_request *request, struct store_reply *reply)
{
    sqlite3_stmt *s = sqlite->statements[SQLITE_STATEMENT_CANDIDATES];
    int code = SQLITE_DONE;

    (void)sqlite3_bind_text(s, 1, request->group, -1, SQLITE_STATIC);
    while (reply->registration_count < STORE_CANDIDATES_MAX && (code = sqlite3_step(s)) == SQLITE_ROW) {
        struct registration_row row;
        struct registration *slot;
        gavel_ms age_ms;

        if (sqlite3_column_int64(s, COLUMN_FORMAT) > SQLITE_ROW_FORMAT)
            continue; /* of a newer gavel: what it means is not known here */
        parse_row(s, &row);
        age_ms = registration_age(&row, clock_now());
        if (age_ms > request->candidate_timeout_ms) {
            reply_add_silent(reply, &row.registration, age_ms, request->candidate_timeout_ms);
            continue;
        }
        slot = reply_add_registration(reply);
        if (!slot)
            break;
        *slot = row.registration;
        slot->age_ms = age_ms;
    }
    (void)sqlite3_reset(s); /* repeats the code of the step */
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

void sqlite_drop_dead(struct sqlite_store *sqlite, struct store_reply *reply)
{
    size_t kept = 0;

    for (size_t i = 0; i < reply->registration_count; i++) {
        if (is_dead(sqlite, &reply->registrations[i].process)) {
            reply_add_silent(reply, &reply->registrations[i], 0, 0);
            continue;
        }
        if (kept != i)
            reply->registrations[kept] = reply->registrations[i];
        kept++;
    }
    reply->registration_count = kept;
}

int sqlite_run_registry(struct sqlite_store *sqlite, const struct store_request *request,
                        struct store_reply *reply)
{
    switch (request->op) {
    case STORE_HEARTBEAT:
        return heartbeat(sqlite, request, reply);
    case STORE_LEAVE:
        return leave(sqlite, request);
    case STORE_CANDIDATES:
        return list(sqlite, request, reply);
    default:
        return SQLITE_MISUSE; /* the caller sends everything else elsewhere */
    }
}
