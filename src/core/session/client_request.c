/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Submits become requests. One request is under way; what is submitted
 * meanwhile waits, and goes together as the next. Campaigns that wait for a
 * session go with its opening. The id of a request is
 * higher than all before it in the session, and stays the same however often
 * the request is sent, so the table knows what it has done already.
 */

#include "core/session/client_internal.h"

#include "base/assert.h"
#include "base/planted.h"
#include "wire/client.h"

#include <stdlib.h>

/* What a command is besides its operations; and what each needs around it. */
#define OP_BYTES_AROUND 8
#define COMMAND_BYTES_AROUND 64

static void submit_free(struct client_submit *submit)
{
    for (size_t i = 0; i < submit->count; i++)
        gavel__op__free_unpacked(submit->ops[i], NULL);
    free(submit->ops);
    free(submit);
}

void client_submits_free(struct client_submits *submits)
{
    struct client_submit *submit;

    while ((submit = TAILQ_FIRST(submits))) {
        TAILQ_REMOVE(submits, submit, entry);
        submit_free(submit);
    }
}

/* NULL without memory. */
static struct client_submit *submit_new(const Gavel__Op *const *ops, size_t count)
{
    struct client_submit *submit = calloc(1, sizeof *submit);

    if (!submit)
        return NULL;
    submit->ops = calloc(count, sizeof(Gavel__Op *));
    while (submit->ops && submit->count < count) {
        submit->ops[submit->count] = client_op_copy(ops[submit->count]);
        if (!submit->ops[submit->count])
            break;
        submit->count++;
    }
    if (submit->count == count)
        return submit;
    submit_free(submit);
    return NULL;
}

static size_t bytes_of(const Gavel__Op *const *ops, size_t count)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += gavel__op__get_packed_size(ops[i]) + OP_BYTES_AROUND;
    return bytes;
}

/* A node refuses a request as a whole if it cannot carry out one of its operations: that shall cost nobody
 * else. */
static bool is_acceptable(const Gavel__Op *const *ops, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (table_op_check(ops[i], true, NULL) != GAVEL_OK)
            return false;
    return true;
}

static bool only_campaigns(const Gavel__Op *const *ops, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ops[i]->what_case != GAVEL__OP__WHAT_CAMPAIGN)
            return false;
    return true;
}

static void wait_for_turn(struct client *client, struct client_submit *submit)
{
    TAILQ_INSERT_TAIL(&client->request.waiting, submit, entry);
    client->request.waiting_count++;
    client->request.waiting_bytes += submit->bytes;
    client->give_up_at = ns_min(client->give_up_at, submit->give_up_at);
}

static void stop_waiting(struct client *client, struct client_submit *submit)
{
    ASSERT(client->request.waiting_count > 0);
    ASSERT(client->request.waiting_bytes >= submit->bytes);
    TAILQ_REMOVE(&client->request.waiting, submit, entry);
    client->request.waiting_count--;
    client->request.waiting_bytes -= submit->bytes;
}

/* Told, and freed when the next step begins. */
static void done(struct client *client, struct client_submit *submit, enum gavel_status status,
                 const char *message)
{
    if (!submit->is_close)
        client_tell_result(client, submit->token, status, message);
    TAILQ_INSERT_TAIL(&client->old_submits, submit, entry);
}

void client_request_submit(struct client *client, const struct client_event *event)
{
    size_t count = event->submit.count;
    uint64_t token = event->submit.token;
    struct client_submit *submit;
    size_t bytes;

    if (client->session.is_closing) {
        client_tell_result(client, token, GAVEL_ERR_STOPPED, "the client is closed");
        return;
    }
    if (client->settings.ttl_ms == 0) {
        client_tell_result(client, token, GAVEL_ERR_STATE,
                           "this client has no session, so it can only ask and watch; set a time to live");
        return;
    }
    if (count == 0 || count > TABLE_OPS_MAX) {
        client_tell_result(client, token, GAVEL_ERR_INVALID,
                           "a submit has at least 1 operation, and at most 512; divide it");
        return;
    }
    bytes = bytes_of(event->submit.ops, count);
    if (bytes > TABLE_OPS_BYTES_MAX - COMMAND_BYTES_AROUND) {
        client_tell_result(client, token, GAVEL_ERR_TOO_LARGE,
                           "the operations of a submit are larger than 1 MiB; divide it");
        return;
    }
    if (client->request.waiting_count >= CLIENT_WAITING_MAX ||
        client->request.waiting_bytes + bytes > CLIENT_WAITING_BYTES_MAX) {
        client_tell_result(client, token, GAVEL_ERR_STORE_UNAVAILABLE,
                           "too many operations wait for the cluster already; try again later");
        return;
    }
    submit = client_reserve(client, 1) ? submit_new(event->submit.ops, count) : NULL;
    if (!submit) {
        client_tell_result(client, token, GAVEL_ERR_NO_MEMORY, "out of memory");
        return;
    }
    submit->token = token;
    submit->bytes = bytes;
    submit->give_up_at = event->submit.give_up_at;
    submit->goes_alone = !is_acceptable(event->submit.ops, count);
    submit->campaigns = only_campaigns(event->submit.ops, count);
    wait_for_turn(client, submit);
}

bool client_request_close(struct client *client)
{
    Gavel__CloseSession close = GAVEL__CLOSE_SESSION__INIT;
    Gavel__Op op = GAVEL__OP__INIT;
    const Gavel__Op *ops = &op;
    struct client_submit *submit;

    close.session = client->session.id;
    close.ending = GAVEL__ENDING__ENDING_CLOSED;
    op.what_case = GAVEL__OP__WHAT_CLOSE_SESSION;
    op.close_session = &close;
    submit = client_reserve(client, 1) ? submit_new(&ops, 1) : NULL;
    if (!submit)
        return false;
    submit->is_close = true;
    submit->give_up_at = NEVER;
    submit->bytes = bytes_of(&ops, 1);
    wait_for_turn(client, submit);
    return true;
}

/* Those that wait, as many as go together: at least one, unless it must be a campaign and is none. */
static void gather(struct client *client, size_t most, bool is_opening)
{
    struct client_submit *submit;
    size_t bytes = 0;

    ASSERT(TAILQ_EMPTY(&client->request.sent)); /* one request at a time */
    client->request.ops = 0;
    while ((submit = TAILQ_FIRST(&client->request.waiting))) {
        if (is_opening && (!submit->campaigns || submit->goes_alone || submit->count > most))
            break;
        if (client->request.ops > 0 && (submit->goes_alone || client->request.ops + submit->count > most ||
                                        bytes + submit->bytes > CLIENT_REQUEST_BYTES))
            break;
        stop_waiting(client, submit);
        TAILQ_INSERT_TAIL(&client->request.sent, submit, entry);
        client->request.ops += submit->count;
        bytes += submit->bytes;
        if (submit->goes_alone)
            break;
    }
    ASSERT(client->request.ops > 0 || is_opening);
    ASSERT(client->request.ops <= most);
    client->request.attempt = (struct client_try){0};
}

size_t client_request_join_opening(struct client *client)
{
    if (!TAILQ_EMPTY(&client->request.sent))
        return 0;
    gather(client, TABLE_OPS_MAX - 1, true);
    return client->request.ops;
}

void client_request_add(struct client *client, Gavel__Op **ops)
{
    struct client_submit *submit;
    size_t at = 0;

    TAILQ_FOREACH(submit, &client->request.sent, entry) {
        submit->was_sent = true;
        for (size_t i = 0; i < submit->count; i++)
            ops[at++] = submit->ops[i];
    }
    ASSERT(at == client->request.ops);
}

static void send(struct client *client)
{
    struct client_outgoing *outgoing = client_outgoing_new(client);

    if (outgoing)
        outgoing->ops = calloc(client->request.ops, sizeof(Gavel__Op *));
    if (!outgoing || !outgoing->ops) {
        client_link_lost(client, true, "out of memory");
        return;
    }
    client_request_add(client, outgoing->ops);
    client_try_sent(client, &client->request.attempt, client_number(client));
    gavel__request__init(&outgoing->request);
    outgoing->request.tag = client->request.attempt.tag;
    outgoing->request.session = client->session.id;
    outgoing->request.session_revision = client->session.revision;
    outgoing->request.id = client->request.id;
    outgoing->request.timeout_ms = (uint32_t)ms_from_ns(client->settings.silence);
    outgoing->request.n_ops = client->request.ops;
    outgoing->request.ops = outgoing->ops;
    outgoing->frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    outgoing->frame.request = &outgoing->request;
    client_send(client, &outgoing->frame);
}

/* Each submit gets its part of the results, from `at` on. */
static void share_out(struct client *client, const Gavel__Reply *reply, size_t at)
{
    struct client_submit *submit;
    bool is_closed = false;

    while ((submit = TAILQ_FIRST(&client->request.sent))) {
        TAILQ_REMOVE(&client->request.sent, submit, entry);
        is_closed = is_closed || submit->is_close;
        done(client, submit, reply->status, reply->message);
        if (reply->status == GAVEL_OK && !submit->is_close) {
            struct client_action *action = &client->actions.items[client->actions.count - 1];

            action->message = "";
            action->results = (const Gavel__OpResult *const *)reply->results + at;
            action->count = submit->count;
        }
        at += submit->count;
    }
    client->request.attempt = (struct client_try){0};
    if (is_closed)
        client_finish(client);
}

void client_request_reply(struct client *client, const Gavel__Reply *reply)
{
    struct client_try *attempt = &client->request.attempt;

    if (attempt->tag == 0 || reply->tag != attempt->tag) {
        if (!client_was_given(client, reply->tag))
            client_hostile(client, "it answers what was not asked");
        return;
    }
    if (client_is_passing(reply->status)) {
        client_try_refused(client, attempt);
        if (client_is_fruitless(client, attempt->first_at))
            client_link_lost(client, true, "the node finds no leader of the cluster: %.200s", reply->message);
    } else if (reply->status == GAVEL_OK && reply->n_results != client->request.ops) {
        client_hostile(client, "the number of results is not that of the operations");
    } else if (reply->status == GAVEL_ERR_SESSION_GONE) {
        client_session_lost(client);
    } else {
        client->link.has_answered = true;
        share_out(client, reply, 0);
    }
}

void client_request_opened(struct client *client, const Gavel__Reply *reply)
{
    share_out(client, reply, 1); /* behind that of the opening */
}

void client_request_put_back(struct client *client)
{
    struct client_submit *submit;

    while ((submit = TAILQ_LAST(&client->request.sent, client_submits))) {
        TAILQ_REMOVE(&client->request.sent, submit, entry);
        TAILQ_INSERT_HEAD(&client->request.waiting, submit, entry);
        client->request.waiting_count++;
        client->request.waiting_bytes += submit->bytes;
        client->give_up_at = ns_min(client->give_up_at, submit->give_up_at);
    }
}

void client_request_unlinked(struct client *client) { client->request.attempt = (struct client_try){0}; }

void client_request_end_sent(struct client *client, enum gavel_status status, const char *message)
{
    struct client_submit *submit;

    while ((submit = TAILQ_FIRST(&client->request.sent))) {
        TAILQ_REMOVE(&client->request.sent, submit, entry);
        done(client, submit, status, message);
    }
}

void client_request_end_all(struct client *client, enum gavel_status status, const char *message)
{
    struct client_submit *submit;

    client_request_end_sent(client, status, message);
    while ((submit = TAILQ_FIRST(&client->request.waiting))) {
        stop_waiting(client, submit);
        done(client, submit, status, message);
    }
    client->request.attempt = (struct client_try){0};
}

/*
 * A campaign that went with an opening and waits again may have been carried out all the same. Whoever is
 * told that nothing was done withdraws nothing.
 */
static void give_up(struct client *client, struct client_submit *submit)
{
    done(client, submit, GAVEL_ERR_TIMEOUT,
         submit->was_sent ? "the cluster has not answered in time; it is unknown whether it was done"
                          : "the cluster could not be asked in time; nothing was done");
}

/* Campaigns that went with an opening, and whose time is over before anybody has answered it. */
static void give_up_joined(struct client *client)
{
    struct client_submit *submit = TAILQ_FIRST(&client->request.sent);
    bool is_any = false;

    while (submit) {
        struct client_submit *next = TAILQ_NEXT(submit, entry);

        if (client->now >= submit->give_up_at) {
            TAILQ_REMOVE(&client->request.sent, submit, entry);
            give_up(client, submit);
            is_any = true;
        } else {
            client->give_up_at = ns_min(client->give_up_at, submit->give_up_at);
        }
        submit = next;
    }
    if (is_any)
        client_session_open_alone(client);
}

/* Those that wait to be sent, for the first time or again, or for the session; leaves the next such instant
 * in give_up_at. */
void client_request_give_up(struct client *client)
{
    struct client_submit *submit;
    bool has_joined = client->session.open_ops > 0;

    if (PLANTED(JOINED_FOR_EVER))
        has_joined = false;
    if (has_joined)
        give_up_joined(client);
    submit = TAILQ_FIRST(&client->request.waiting);
    while (submit) {
        struct client_submit *next = TAILQ_NEXT(submit, entry);

        if (client->now >= submit->give_up_at) {
            stop_waiting(client, submit);
            give_up(client, submit);
        } else {
            client->give_up_at = ns_min(client->give_up_at, submit->give_up_at);
        }
        submit = next;
    }
}

void client_request_timer(struct client *client)
{
    const struct client_try *attempt = &client->request.attempt;

    if (attempt->tag != 0 && client->now >= attempt->sent_at + client_patience(client))
        client_link_lost(client, true, "a request had no answer within %lld ms",
                         (long long)ms_from_ns(client_patience(client)));
}

/* A session that is being closed may be open without our knowing. */
static bool may_send(const struct client *client)
{
    if (!client_is_welcome(client))
        return false;
    return client->session.is_open || (client->session.is_closing && client->session.open.tag == 0);
}

void client_request_pump(struct client *client)
{
    if (!may_send(client))
        return;
    if (TAILQ_EMPTY(&client->request.sent) && !TAILQ_EMPTY(&client->request.waiting)) {
        gather(client, TABLE_OPS_MAX, false);
        client->request.id = ++client->session.last_request;
    }
    if (!TAILQ_EMPTY(&client->request.sent) && client_try_is_due(client, &client->request.attempt))
        send(client);
}

gavel_ns client_request_wake(const struct client *client)
{
    const struct client_try *attempt = &client->request.attempt;

    if (!may_send(client) || TAILQ_EMPTY(&client->request.sent))
        return NEVER;
    return attempt->tag != 0 ? attempt->sent_at + client_patience(client) : attempt->retry_at;
}
