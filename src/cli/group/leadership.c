/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/group/leadership.h"

#include "base/error.h"
#include "cli/json_out.h"
#include "cli/settings/store_location.h"
#include "config/duration.h"
#include "os/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A person waits; that is longer than any candidate may. */
#define PATIENCE_MS 5000
#define LOOK_FOR_FILE_MS 20

/* A renewal is one of a lease or a keep-alive of a session; that a lease has run out is seen only where there
 * are leases, since a session that ends is nobody's any more. */
static const struct {
    const char *name;
    const char *text;
    const char *ending;
    const char *word; /* NULL: the name */
} states[] = {
    [LEADERSHIP_EMPTY] = {"empty", "nobody has led it yet", "nobody has led yet", NULL},
    [LEADERSHIP_RELEASED] = {"released", "the last leader has released; no successor yet", " gave up", NULL},
    [LEADERSHIP_KILLED] = {"released", "the last leader was killed; no successor yet", " was killed",
                           "killed"},
    [LEADERSHIP_LAPSED] = {"released", "the last leader did not renew in time; no successor yet",
                           " did not renew in time", "lapsed"},
    [LEADERSHIP_HELD] = {"held", "it has a leader", " leads", NULL},
    [LEADERSHIP_EXPIRED] = {"expired", "the last leader's lease has run out; no successor yet",
                            " lost its lease", NULL},
    [LEADERSHIP_DEAD] = {"dead", "the last leader's process is dead; no successor yet", " died", NULL},
    [LEADERSHIP_DONE] = {"done", "the work is done for good, so nobody will lead it again",
                         " has done the work for good", NULL},
};

const char *leadership_state_name(enum leadership_state state) { return states[state].name; }

const char *leadership_state_word(enum leadership_state state)
{
    return states[state].word ? states[state].word : states[state].name;
}

const char *leadership_state_text(enum leadership_state state) { return states[state].text; }

const char *leadership_state_ending(enum leadership_state state) { return states[state].ending; }

bool leadership_has_mandate(const struct leadership *leadership)
{
    return leadership->state == LEADERSHIP_HELD || leadership->state == LEADERSHIP_EXPIRED ||
           leadership->state == LEADERSHIP_DEAD;
}

enum gavel_loss leadership_loss(enum leadership_state state)
{
    if (state == LEADERSHIP_KILLED || state == LEADERSHIP_DEAD)
        return GAVEL_LOSS_KILLED;
    return state == LEADERSHIP_EXPIRED || state == LEADERSHIP_LAPSED ? GAVEL_LOSS_LAPSED : GAVEL_LOSS_NONE;
}

/*
 * Waits for the file to appear. Who may not look is told so here, since
 * opening would take it for missing and try to create it.
 */
static enum gavel_status wait_for_file(const struct cli *cli, const char *file, gavel_ns until,
                                       gavel_ms asked_ms, struct gavel_error *error)
{
    const struct timespec pause = {.tv_nsec = LOOK_FOR_FILE_MS * NS_PER_MS};
    char text[DURATION_TEXT_MAX];

    while (access(file, F_OK)) {
        int reason = errno;
        gavel_ns now = clock_now();

        if (reason != ENOENT && reason != ENOTDIR)
            return error_set(
                error, GAVEL_ERR_STORE_DENIED,
                "cannot look into the store %.200s: %s; run this as the user that owns it, or let this user read and write the file and its directory",
                file, strerror(reason));
        if (now >= until && asked_ms > 0)
            return error_set(
                error, GAVEL_ERR_TIMEOUT,
                "waited %s, but there is still no store %.200s; start a candidate, such as `gavel elect`, or name another store with --store",
                duration_exact(asked_ms, text), file);
        if (now >= until)
            return error_set(
                error, GAVEL_ERR_STORE_UNAVAILABLE,
                "there is no store %.200s; start a candidate first, such as `gavel elect`, or name another store with --store%s",
                file,
                cli->command->options & OPTIONS_CLUSTER ? ", or the nodes of a cluster with --cluster" : "");
        (void)nanosleep(&pause, NULL); /* looks again a little early if a signal cuts it short */
    }
    return GAVEL_OK;
}

/* A store that is away may come back in time: a cluster that is being started, say. */
static enum gavel_status open_store(const struct cli *cli, gavel_ns until, gavel_ms asked_ms,
                                    struct store **ret_store, struct gavel_error *error)
{
    const struct timespec pause = {.tv_nsec = LOOK_FOR_FILE_MS * NS_PER_MS};
    enum gavel_status status = store_open(cli->config.store, ret_store, error);

    if (status == GAVEL_ERR_STORE_UNAVAILABLE && clock_now() < until)
        log_line(&cli->log, clock_wall_ms(), LOG_WARNING, "the store does not answer, trying again",
                 LOG_STR("reason", error ? error->message : ""), LOG_END);
    while (status == GAVEL_ERR_STORE_UNAVAILABLE && clock_now() < until) {
        (void)nanosleep(&pause, NULL); /* looks again a little early if a signal cuts it short */
        status = store_open(cli->config.store, ret_store, error);
    }
    /* What was waited for did not come; who did not wait is told that it is not there. */
    if (status == GAVEL_ERR_STORE_UNAVAILABLE && asked_ms > 0 && error)
        return error->status = GAVEL_ERR_TIMEOUT;
    return status;
}

enum gavel_status onlooker_open(const struct cli *cli, gavel_ns until, gavel_ms asked_ms,
                                struct onlooker *ret_onlooker, struct gavel_error *error)
{
    const char *file = store_location_file(cli->config.store);
    struct onlooker onlooker = {0};
    enum gavel_status status;

    if (!cli->config.enabled)
        log_line(
            &cli->log, clock_wall_ms(), LOG_WARNING,
            "election is switched off in this file: every process that uses it leads, and no store knows of it",
            LOG_STR("file", cli->config.file), LOG_STR("group", cli->config.group), LOG_END);
    status = file && *file ? wait_for_file(cli, file, until, asked_ms, error) : GAVEL_OK;
    if (status == GAVEL_OK)
        status = open_store(cli, until, asked_ms, &onlooker.store, error);
    if (status != GAVEL_OK)
        return status;
    if (process_self(&onlooker.self) != GAVEL_OK)
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
    if (status == GAVEL_OK)
        return GAVEL_OK;
    return error_set(error, status, "%s",
                     ret_reply->message[0] ? ret_reply->message : gavel_status_text(status));
}

const char *leadership_no_list_reason(const struct store *store)
{
    const struct store_capabilities *capabilities = store_capabilities(store);

    if (capabilities->is_fixed)
        return "the leader is assigned, and this store lists nobody";
    if (!capabilities->is_shared)
        return "only its own process can see this store";
    return NULL;
}

enum leadership_state leadership_judge(const struct onlooker *onlooker, const struct record *record,
                                       bool found, bool expired)
{
    if (!found || record->version == 0)
        return LEADERSHIP_EMPTY;
    if (record->done)
        return LEADERSHIP_DONE;
    if (!record->held && record->loss == GAVEL_LOSS_KILLED)
        return LEADERSHIP_KILLED;
    if (!record->held && record->loss != GAVEL_LOSS_NONE)
        return LEADERSHIP_LAPSED;
    if (!record->held)
        return LEADERSHIP_RELEASED;
    if (process_look(&record->process, &onlooker->self, NULL) == PROCESS_DEAD)
        return LEADERSHIP_DEAD;
    return expired ? LEADERSHIP_EXPIRED : LEADERSHIP_HELD;
}

enum gavel_status leadership_read(const struct onlooker *onlooker, const char *group,
                                  struct leadership *ret_leadership, struct gavel_error *error)
{
    struct store_request request = {.op = STORE_READ, .group = group};
    struct store_reply reply = {0};
    enum gavel_status status = onlooker_call(onlooker, &request, &reply, error);

    if (status == GAVEL_OK) {
        *ret_leadership = (struct leadership){.remaining_ms = reply.remaining_ms};
        ret_leadership->state = leadership_judge(onlooker, &reply.record, reply.found, reply.expired);
        if (ret_leadership->state != LEADERSHIP_EMPTY)
            ret_leadership->record = reply.record;
        (void)snprintf(ret_leadership->note, sizeof ret_leadership->note, "%s", reply.note);
        if (store_capabilities(onlooker->store)->is_fixed) { /* the lease of an assignment means nothing */
            ret_leadership->record.lease_ms = 0;
            ret_leadership->remaining_ms = -1;
        }
    }
    store_reply_done(&reply);
    return status;
}

static json_t *number_or_null(bool applies, int64_t number)
{
    return applies ? json_integer(number) : json_null();
}

json_t *leadership_json(const char *group, const struct leadership *leadership)
{
    const struct record *record = &leadership->record;
    bool is_held = leadership->state == LEADERSHIP_HELD;
    bool has_mandate = leadership_has_mandate(leadership);
    json_t *json = json_object();

    json_put_text(json, "group", group);
    json_put_text(json, "state", leadership_state_name(leadership->state));
    json_put_text_or_null(json, "leader_id", is_held ? record->holder : "");
    json_put_text_or_null(json, "leader_address", is_held ? record->address : "");
    json_put_number(json, "epoch", (int64_t)record->epoch);
    json_put_text_or_null(json, "last_leader", record->holder);
    json_put_text_or_null(
        json, "how",
        leadership_loss(leadership->state) ? gavel_loss_name(leadership_loss(leadership->state)) : "");
    json_put_time(json, "since", has_mandate ? record->since_wall_ms : 0);
    json_put_time(json, "renewed", has_mandate ? record->renewed_wall_ms : 0);
    json_put(json, "lease_ms", number_or_null(has_mandate && record->lease_ms, record->lease_ms));
    json_put(json, "remaining_ms",
             number_or_null(is_held && leadership->remaining_ms >= 0, leadership->remaining_ms));
    json_put(json, "pid", number_or_null(has_mandate && record->process.pid, record->process.pid));
    if (leadership->note[0])
        json_put_text(json, "note", leadership->note);
    return json;
}
