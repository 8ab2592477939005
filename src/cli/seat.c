/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/seat.h"

#include "base/error.h"
#include "cli/json_out.h"
#include "os/clock.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A person waits; that is longer than any candidate may. */
#define PATIENCE_MS 5000
#define LOOK_FOR_FILE_MS 20
#define SQLITE_SCHEME "sqlite:"

static const struct {
    const char *name;
    const char *text;
} states[] = {
    [SEAT_EMPTY] = {"empty", "nobody has led it yet"},
    [SEAT_RELEASED] = {"released", "the last leader gave up and nobody has taken over"},
    [SEAT_HELD] = {"held", "it has a leader"},
    [SEAT_EXPIRED] = {"expired", "the lease of the last leader has run out and nobody has taken over"},
    [SEAT_DEAD] = {"dead", "the process of the last leader is dead and nobody has taken over"},
};

const char *seat_state_name(enum seat_state state) { return states[state].name; }

const char *seat_state_text(enum seat_state state) { return states[state].text; }

/* The file of a store that is one; NULL for others. */
static const char *file_of(const char *url)
{
    const struct store_capabilities *capabilities = store_capabilities_of(url);

    if (!capabilities || strcmp(capabilities->name, "sqlite") != 0)
        return NULL;
    return strncmp(url, SQLITE_SCHEME, strlen(SQLITE_SCHEME)) == 0 ? url + strlen(SQLITE_SCHEME) : url;
}

/* Waits for the file to appear. */
static enum gavel_status wait_for_file(const char *file, gavel_ns until, struct gavel_error *error)
{
    const struct timespec pause = {.tv_nsec = LOOK_FOR_FILE_MS * NS_PER_MS};

    while (access(file, F_OK) && errno == ENOENT) {
        if (clock_now() >= until)
            return error_set(error, GAVEL_ERR_STORE_UNAVAILABLE,
                             "there is no store %s; start a candidate first, such as `gavel elect`, or name "
                             "another store with --store",
                             file);
        (void)nanosleep(&pause, NULL); /* looks again a little early if a signal cuts it short */
    }
    return GAVEL_OK;
}

enum gavel_status onlooker_open(const struct cli *cli, gavel_ns until, struct onlooker *ret_onlooker,
                                struct gavel_error *error)
{
    const char *file = file_of(cli->config.store);
    struct onlooker onlooker = {0};
    enum gavel_status status = file && *file ? wait_for_file(file, until, error) : GAVEL_OK;

    if (!status)
        status = store_open(cli->config.store, &onlooker.store, error);
    if (status)
        return status;
    if (process_self(&onlooker.self))
        onlooker.self =
            (struct process_id){0}; /* then nobody's death can be proven, which is only less to say */
    *ret_onlooker = onlooker;
    return GAVEL_OK;
}

void onlooker_close(struct onlooker *onlooker)
{
    store_close(onlooker->store);
    onlooker->store = NULL;
}

enum gavel_status onlooker_call(const struct onlooker *onlooker, struct store_request *request,
                                struct store_reply *ret_reply, struct gavel_error *error)
{
    enum gavel_status status;

    request->give_up_at = clock_now() + ns_from_ms(PATIENCE_MS);
    status = store_call(onlooker->store, request, ret_reply);
    if (!status)
        return GAVEL_OK;
    return error_set(error, status, "%s",
                     ret_reply->message[0] ? ret_reply->message : gavel_status_text(status));
}

enum seat_state seat_judge(const struct onlooker *onlooker, const struct record *record, bool found,
                           bool expired)
{
    if (!found || record->version == 0)
        return SEAT_EMPTY;
    if (!record->held)
        return SEAT_RELEASED;
    if (process_look(&record->process, &onlooker->self, NULL) == PROCESS_DEAD)
        return SEAT_DEAD;
    return expired ? SEAT_EXPIRED : SEAT_HELD;
}

enum gavel_status seat_read(const struct onlooker *onlooker, const char *group, struct seat *ret_seat,
                            struct gavel_error *error)
{
    struct store_request request = {.op = STORE_READ, .group = group};
    struct store_reply reply = {0};
    enum gavel_status status = onlooker_call(onlooker, &request, &reply, error);

    if (!status) {
        *ret_seat = (struct seat){.remaining_ms = reply.remaining_ms};
        ret_seat->state = seat_judge(onlooker, &reply.record, reply.found, reply.expired);
        if (ret_seat->state != SEAT_EMPTY)
            ret_seat->record = reply.record;
    }
    store_reply_done(&reply);
    return status;
}

json_t *seat_json(const char *group, const struct seat *seat)
{
    const struct record *record = &seat->record;
    bool is_held = seat->state == SEAT_HELD;
    json_t *json = json_object();

    json_put_text(json, "group", group);
    json_put_text(json, "state", seat_state_name(seat->state));
    json_put_text_or_null(json, "leader_id", is_held ? record->holder : "");
    json_put_text_or_null(json, "leader_address", is_held ? record->address : "");
    json_put_number(json, "epoch", (int64_t)record->epoch);
    if (seat->state == SEAT_EMPTY)
        return json;
    json_put_text(json, "last_leader", record->holder);
    json_put_time(json, "since", record->since_wall_ms);
    json_put_time(json, "renewed", record->renewed_wall_ms);
    json_put_number(json, "lease_ms", record->lease_ms);
    if (seat->remaining_ms >= 0 && is_held)
        json_put_number(json, "remaining_ms", seat->remaining_ms);
    if (record->process.pid)
        json_put_number(json, "pid", record->process.pid);
    return json;
}
