/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The candidates of a group in MySQL. A heartbeat of the instance that is
 * already there is one update by its key; a new one is inserted, unless another
 * instance that still counts has the id, and old ones are cleared away then:
 * rows accumulate only where new ones come.
 */
#include "os/clock.h"
#include "os/process.h"
#include "store/mysql/internal.h"

#include <string.h>

#define AGE_US "TIMESTAMPDIFF(MICROSECOND, beat_at, NOW(6))"
/* The assignment of the instance comes first: from then on it tells whether the place was free. */
#define IS_FREE                                                                                              \
    "format <= {format} AND (instance = {instance} OR instance = {replaces} OR " AGE_US                      \
    " > {timeout_us} OR " AGE_US " < -{ahead_us})"
#define IS_TAKEN "instance = {instance} AND format <= {format}"
#define COLUMNS                                                                                              \
    "id, format, instance, beats, " AGE_US ", since_ms, CAST(UNIX_TIMESTAMP(beat_at) * 1000 AS SIGNED),"     \
    " priority, eligible, address, process"

enum column {
    COLUMN_ID,
    COLUMN_FORMAT,
    COLUMN_INSTANCE,
    COLUMN_BEATS,
    COLUMN_AGE_US,
    COLUMN_SINCE_MS,
    COLUMN_LAST_MS,
    COLUMN_PRIORITY,
    COLUMN_ELIGIBLE,
    COLUMN_ADDRESS,
    COLUMN_PROCESS,
};

static const struct mysql_script script_beat = {
    {"UPDATE {candidates} SET beats = {beats}, beat_at = NOW(6), priority = {priority}, eligible = "
     "{eligible},"
     " address = {candidate_address} WHERE lock_key = {group} AND id = {id} AND instance = {instance}"
     " AND format <= {format}"},
    0,
};

/* Old registrations. Looking for them reads all of a group, so not every new one does. */
#define PRUNE                                                                                                \
    "DELETE FROM {candidates} WHERE lock_key = {group} AND (beat_at > NOW(6) + INTERVAL 1 DAY"               \
    " OR beat_at < NOW(6) - INTERVAL {prune_us} MICROSECOND)"
#define REGISTER                                                                                             \
    "INSERT INTO {candidates} (lock_key, id, format, instance, beats, beat_at, since_ms, priority,"          \
    " eligible, address, process) VALUES ({group}, {id}, {format}, {instance}, {beats}, NOW(6),"             \
    " IF({since_ms} = 0, CAST(UNIX_TIMESTAMP(NOW(6)) * 1000 AS SIGNED), {since_ms}), {priority},"            \
    " {eligible}, {candidate_address}, {candidate_process}) ON DUPLICATE KEY UPDATE"                         \
    " since_ms = IF(" IS_FREE " AND instance <> {instance}, VALUES(since_ms), since_ms),"                    \
    " instance = IF(" IS_FREE ", {instance}, instance),"                                                     \
    " beats = IF(" IS_TAKEN ", {beats}, beats),"                                                             \
    " priority = IF(" IS_TAKEN ", {priority}, priority),"                                                    \
    " eligible = IF(" IS_TAKEN ", {eligible}, eligible),"                                                    \
    " address = IF(" IS_TAKEN ", {candidate_address}, address),"                                             \
    " process = IF(" IS_TAKEN ", {candidate_process}, process),"                                             \
    " beat_at = IF(" IS_TAKEN ", NOW(6), beat_at)"
#define WHO "SELECT " COLUMNS " FROM {candidates} WHERE lock_key = {group} AND id = {id}"

static const struct mysql_script script_register = {{REGISTER, WHO}, 0};
static const struct mysql_script script_prune_and_register = {{PRUNE, REGISTER, WHO}, 1};

static const struct mysql_script script_leave = {
    {"DELETE FROM {candidates} WHERE lock_key = {group} AND id = {id} AND instance = {instance}"}, 0};

/* Those that were silent for longer are not even told of. */
static const struct mysql_script script_list = {
    {"SELECT " COLUMNS " FROM {candidates} WHERE lock_key = {group}"
     " AND beat_at >= NOW(6) - INTERVAL {silent_us} MICROSECOND ORDER BY id"},
    -1,
};

const struct mysql_script *mysql_registry_script(const struct mysql_call *call)
{
    if (call->request->op == STORE_LEAVE)
        return &script_leave;
    if (call->request->op == STORE_CANDIDATES)
        return &script_list;
    if (call->stage != MYSQL_STAGE_REGISTER)
        return &script_beat;
    return call->prunes ? &script_prune_and_register : &script_register;
}

/* A beat that lies ahead was written before the server's clock was set back: nothing is known of its age. */
static gavel_ms parse_age(MYSQL_ROW from)
{
    int64_t age_us = mysql_word_i64(from, COLUMN_AGE_US);

    if (age_us < -MYSQL_AHEAD_US)
        return INT64_MAX;
    return age_us < 0 ? 0 : age_us / 1000;
}

static void parse_row(MYSQL_ROW from, const struct process_id *self, struct registration *ret_registration)
{
    struct registration *r = ret_registration;

    *r = (struct registration){.age_ms = parse_age(from)};
    mysql_word_text(from, COLUMN_ID, r->id, sizeof r->id);
    r->instance = mysql_word_u64(from, COLUMN_INSTANCE);
    r->beats = mysql_word_u64(from, COLUMN_BEATS);
    r->since_wall_ms = mysql_word_i64(from, COLUMN_SINCE_MS);
    r->last_wall_ms = mysql_word_i64(from, COLUMN_LAST_MS);
    r->priority = (int32_t)mysql_word_i64(from, COLUMN_PRIORITY);
    r->eligible = mysql_word_u64(from, COLUMN_ELIGIBLE) != 0;
    mysql_word_text(from, COLUMN_ADDRESS, r->address, sizeof r->address);
    mysql_word_process(from, COLUMN_PROCESS, self, &r->process);
}

/* Who stands under the id now: we, or another that still counts. */
static void conclude_register(struct mysql_store *mysql, struct mysql_call *call, MYSQL_ROW from)
{
    const struct store_request *request = call->request;
    struct registration_row other = {0};
    bool is_dead;

    if (!from) {
        call->is_answered = true;
        reply_fail(call->reply, GAVEL_ERR_STORE_UNAVAILABLE,
                   "the registration of \"%.60s\" was removed as soon as it was made; it may be tried again",
                   request->registration.id);
        return;
    }
    parse_row(from, &mysql->self, &other.registration);
    if (mysql_word_i64(from, COLUMN_FORMAT) > MYSQL_ROW_FORMAT) {
        call->is_answered = true;
        reply_fail(call->reply, GAVEL_ERR_STORE_TOO_NEW,
                   "candidate \"%.60s\" of group \"%.60s\" was registered by a newer gavel; update this one",
                   request->registration.id, request->group);
        return;
    }
    is_dead = process_is_known_dead(&other.registration.process, &mysql->self);
    if (other.registration.instance != request->registration.instance && is_dead &&
        call->replaces != other.registration.instance) {
        call->replaces = other.registration.instance; /* and again */
        return;
    }
    call->is_answered = true;
    if (other.registration.instance != request->registration.instance)
        (void)rules_heartbeat(&other, request, 0, false, call->reply); /* it says who; never true here */
}

static void conclude_list(struct mysql_store *mysql, struct mysql_call *call, MYSQL_RES *rows)
{
    struct store_reply *reply = call->reply;
    gavel_ms timeout_ms = call->request->candidate_timeout_ms;
    MYSQL_ROW from;

    while (rows && (from = mysql_fetch_row(rows)) && reply->registration_count < STORE_CANDIDATES_MAX) {
        struct registration registration;
        struct registration *slot;

        if (mysql_word_i64(from, COLUMN_FORMAT) > MYSQL_ROW_FORMAT)
            continue; /* of a newer gavel: what it means is not known here */
        parse_row(from, &mysql->self, &registration);
        if (registration.age_ms > timeout_ms) {
            reply_add_silent(reply, &registration, registration.age_ms, timeout_ms);
            continue;
        }
        if (process_is_known_dead(&registration.process, &mysql->self)) {
            reply_add_silent(reply, &registration, 0, 0);
            continue;
        }
        slot = reply_add_registration(reply);
        if (!slot)
            break;
        *slot = registration;
    }
}

/* Once in a time-out, and whenever another group comes. */
static bool is_due_for_pruning(struct mysql_store *mysql, const struct store_request *request)
{
    gavel_ns now = clock_now();

    if (now - mysql->pruned_at < ns_from_ms(request->candidate_timeout_ms) &&
        strcmp(mysql->pruned, request->group) == 0)
        return false;
    mysql->pruned_at = now;
    name_copy(mysql->pruned, sizeof mysql->pruned, request->group);
    return true;
}

void mysql_registry_conclude(struct mysql_store *mysql, struct mysql_call *call,
                             const struct mysql_answer *answer)
{
    if (call->request->op == STORE_HEARTBEAT && call->stage == MYSQL_STAGE_FIRST && answer->changed == 0) {
        call->stage = MYSQL_STAGE_REGISTER;
        call->prunes = is_due_for_pruning(mysql, call->request);
        return;
    }
    if (call->stage == MYSQL_STAGE_REGISTER) {
        conclude_register(mysql, call, answer->rows ? mysql_fetch_row(answer->rows) : NULL);
        return;
    }
    call->is_answered = true;
    if (call->request->op == STORE_CANDIDATES)
        conclude_list(mysql, call, answer->rows);
}
