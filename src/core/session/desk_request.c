/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A Request, from its arrival to the log:
 *
 *     check ──► known already? ──► all volatile? ──► decide ──► draft
 *       │            │                 │               │
 *    refused     answered again     answered       answered, if nothing is left for the log
 *
 * Known already: the newest request of a session is answered from the table,
 * one that is under way gets its new ticket (its client has come back through
 * another node). Ids only grow; an older one is a mistake.
 */
#include "core/session/desk_internal.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/planted.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void refuse(struct desk *desk, struct desk_ticket ticket, const Gavel__Request *request,
                   enum gavel_status status, const char *message)
{
    desk->counts.refused++;
    desk_reply_status(desk, ticket, request->tag, status, message);
}

/* ---- check ---- */

static enum gavel_status check(const Gavel__Request *request, struct gavel_error *error)
{
    struct gavel_error wrong = {0};

    if (request->n_ops == 0)
        return error_set(error, GAVEL_ERR_INVALID, "a request needs at least one operation");
    if (request->n_ops > TABLE_OPS_MAX)
        return error_set(error, GAVEL_ERR_INVALID,
                         "the request has %zu operations; send at most %d at a time", request->n_ops,
                         TABLE_OPS_MAX);
    if (request->session != 0 && request->id == 0)
        return error_set(error, GAVEL_ERR_INVALID,
                         "a request of a session needs an id, higher than that of the one before");
    if (request->session == 0 && request->id != 0)
        return error_set(error, GAVEL_ERR_INVALID, "a request without a session has no id");
    for (size_t i = 0; i < request->n_ops; i++) {
        enum gavel_status status = table_op_check(request->ops[i], true, &wrong);

        if (status && request->n_ops == 1)
            return error_set(error, status, "%s", wrong.message);
        if (status)
            return error_set(error, status, "operation %zu of %zu: %s", i + 1, request->n_ops, wrong.message);
    }
    return GAVEL_OK;
}

/* ---- whose it is ---- */

static const char not_yours[] = "the session is not open for who asks: another client has opened it";

bool desk_may_use(const struct table_session *session, bool has_principal, uint64_t principal)
{
    return !session || session->principal == 0 || !has_principal || session->principal == principal ||
           PLANTED(ANYBODYS_SESSION);
}

/*
 * The end of a session that the table does not have is never proposed: its opening may be on its way, of
 * somebody else, and whose it is, is known only once it is applied.
 */
static bool closes_unknown(const struct desk *desk, const Gavel__Request *request, size_t which)
{
    const Gavel__Op *op = request->ops[which];

    return request->has_principal && op->what_case == GAVEL__OP__WHAT_CLOSE_SESSION &&
           !table_session_find(desk->table, op->close_session->session) && !PLANTED(ANYBODYS_SESSION);
}

/* Whoever asks has opened it just now, and the log does not have it yet: its end is not over, it is to come.
 */
static bool closes_coming(struct desk *desk, const Gavel__Request *request)
{
    const struct desk_waiting *waiting = desk_find_request(desk, request->ops[0]->close_session->session, 1);
    const Gavel__Op *op = waiting && waiting->command->n_ops == 1 ? waiting->command->ops[0] : NULL;

    return op && op->what_case == GAVEL__OP__WHAT_OPEN_SESSION &&
           op->open_session->principal == request->principal;
}

/* The session of the request, and those that it opens (again) or closes. */
static bool is_permitted(const struct desk *desk, const Gavel__Request *request)
{
    if (!desk_may_use(table_session_find(desk->table, request->session), request->has_principal,
                      request->principal))
        return false;
    for (size_t i = 0; i < request->n_ops; i++) {
        const Gavel__Op *op = request->ops[i];
        uint64_t id = op->what_case == GAVEL__OP__WHAT_OPEN_SESSION    ? op->open_session->session
                      : op->what_case == GAVEL__OP__WHAT_CLOSE_SESSION ? op->close_session->session
                                                                       : 0;

        if (request->n_ops > 1 && closes_unknown(desk, request, i))
            return false;
        if (id != 0 &&
            !desk_may_use(table_session_find(desk->table, id), request->has_principal, request->principal))
            return false;
    }
    return true;
}

/* ---- answered without the log ---- */

static bool is_all_volatile(const struct desk *desk, const Gavel__Request *request)
{
    for (size_t i = 0; i < request->n_ops; i++) {
        if (!desk_is_volatile(desk, request->ops[i]))
            return false;
    }
    return true;
}

/* What the table would say of operations that change nothing, or are refused. */
static void answer_now(struct desk *desk, const struct desk_moment *moment, struct desk_ticket ticket,
                       const Gavel__Request *request, const struct desk_verdict *verdicts)
{
    struct table_result *results;
    enum gavel_status status = GAVEL_ERR_NO_MEMORY;

    ASSERT(request->n_ops > 0);
    results = calloc(request->n_ops, sizeof *results);
    for (size_t i = 0; results && i < request->n_ops; i++) {
        const struct table_group *group = table_group_find(desk->table, table_op_group(request->ops[i]));

        results[i].status = verdicts ? verdicts[i].status : GAVEL_OK;
        results[i].revision = desk->table->revision;
        results[i].version = group ? group->version : 0;
        results[i].epoch = group ? group->epoch : 0;
        results[i].why = "";
    }
    if (results)
        status = desk_reply_results(desk, moment->now, ticket, request->tag, request->ops, results,
                                    request->n_ops, verdicts);
    if (status)
        desk_reply_status(desk, ticket, request->tag, status, "the leader of the quorum is out of memory");
    free(results);
}

/* ---- known already ---- */

static const char about_to_end[] = "the session is about to end; open another one";

/* A session is opened by a request of its own. */
static bool opens(const Gavel__Request *request)
{
    return request->n_ops == 1 && request->ops[0]->what_case == GAVEL__OP__WHAT_OPEN_SESSION &&
           request->ops[0]->open_session->session == request->session;
}

/* The newest request of the session once more: what came of it is told again. */
static void repeat(struct desk *desk, const struct desk_moment *moment, struct desk_ticket ticket,
                   const Gavel__Request *request, const struct table_session *session)
{
    desk->counts.repeated++;
    if (session->result_count != request->n_ops) {
        refuse(desk, ticket, request, GAVEL_ERR_STATE,
               "the id of this request was used for another one; ids of a session only grow");
        return;
    }
    if (opens(request) && desk_is_closing_session(desk, session)) {
        refuse(desk, ticket, request, GAVEL_ERR_SESSION_GONE, about_to_end);
        return;
    }
    /* Its client counts from the time it asked again. */
    for (size_t i = 0; i < request->n_ops; i++)
        desk_hear_again(desk, moment, request->ops[i], session->results[i].status);
    if (desk_reply_results(desk, moment->now, ticket, request->tag, request->ops, session->results,
                           session->result_count, NULL) != GAVEL_OK)
        desk_reply_status(desk, ticket, request->tag, GAVEL_ERR_NOT_LEADER, "out of memory; ask again");
}

/* An opening that comes again after other requests: the session is open, that is all there is to say. */
static void confirm(struct desk *desk, const struct desk_moment *moment, struct desk_ticket ticket,
                    const Gavel__Request *request, const struct table_session *session)
{
    desk->counts.repeated++;
    if (desk_is_closing_session(desk, session)) {
        refuse(desk, ticket, request, GAVEL_ERR_SESSION_GONE, about_to_end);
        return;
    }
    desk_hear_again(desk, moment, request->ops[0], GAVEL_OK);
    answer_now(desk, moment, ticket, request, NULL);
}

/* Whether it was answered, or will be, by what is known of its session. */
static bool is_settled(struct desk *desk, const struct desk_moment *moment, struct desk_ticket ticket,
                       const Gavel__Request *request)
{
    const struct table_session *session = table_session_find(desk->table, request->session);
    struct desk_waiting *waiting = desk_find_request(desk, request->session, request->id);
    char message[DESK_MESSAGE_MAX];

    if (waiting) {
        waiting->has_asker = true;
        waiting->ticket = ticket;
        waiting->tag = request->tag;
        return true;
    }
    if (session && request->id == session->last_id && !PLANTED(APPLIED_AGAIN)) {
        repeat(desk, moment, ticket, request, session);
        return true;
    }
    if (session && request->id < session->last_id && opens(request)) {
        confirm(desk, moment, ticket, request, session);
        return true;
    }
    if (session && request->id < session->last_id) {
        (void)snprintf(message, sizeof message,
                       "request %" PRIu64 " of the session is older than its newest, %" PRIu64
                       ", and was answered already",
                       request->id, session->last_id);
        refuse(desk, ticket, request, GAVEL_ERR_STATE, message);
        return true;
    }
    if (!session && !opens(request)) {
        refuse(desk, ticket, request, GAVEL_ERR_SESSION_GONE,
               "the session is not open: it was closed, or expired; open another one");
        return true;
    }
    return false;
}

/* ---- decide ---- */

/* Operations as they shall stand in the log, and what is said of each. */
struct decided {
    struct desk_op *ops;
    Gavel__Op **list;
    struct desk_verdict *verdicts;
    size_t refused;
};

static void decided_done(struct decided *decided, size_t count)
{
    free(decided->ops);
    free(decided->list);
    desk_verdicts_free(decided->verdicts, count);
}

static enum gavel_status decide(struct desk *desk, const struct desk_moment *moment,
                                const Gavel__Request *request, struct decided *decided)
{
    decided->ops = calloc(request->n_ops, sizeof *decided->ops);
    decided->list = calloc(request->n_ops, sizeof(Gavel__Op *));
    decided->verdicts = calloc(request->n_ops, sizeof *decided->verdicts);
    if (!decided->ops || !decided->list || !decided->verdicts)
        return GAVEL_ERR_NO_MEMORY;
    for (size_t i = 0; i < request->n_ops; i++) {
        desk_decide(desk, moment->now, request->ops[i], request->session != 0, &decided->ops[i],
                    &decided->verdicts[i]);
        decided->list[i] = &decided->ops[i].op;
        decided->refused += decided->verdicts[i].status != GAVEL_OK;
    }
    desk->counts.refused += decided->refused;
    return GAVEL_OK;
}

static const char *why_not(enum gavel_status status)
{
    switch (status) {
    case GAVEL_ERR_NO_MEMORY:
        return "the leader of the quorum is out of memory";
    case GAVEL_ERR_STORE_UNAVAILABLE:
        return "too many requests are under way at the leader of the quorum; ask again later";
    default:
        return "the request is larger than one command may be; send its operations apart";
    }
}

void desk_request(struct desk *desk, const struct desk_moment *moment, struct desk_ticket ticket,
                  const Gavel__Request *request)
{
    struct decided decided = {0};
    struct gavel_error error = {0};
    struct desk_waiting *waiting;
    enum gavel_status status;

    desk->counts.requests++;
    status = check(request, &error);
    if (status) {
        refuse(desk, ticket, request, status, error.message);
        return;
    }
    if (!is_permitted(desk, request)) {
        refuse(desk, ticket, request, GAVEL_ERR_SESSION_GONE, not_yours);
        return;
    }
    if (request->session != 0 && is_settled(desk, moment, ticket, request))
        return;
    if (request->n_ops == 1 && closes_unknown(desk, request, 0) && closes_coming(desk, request)) {
        refuse(desk, ticket, request, GAVEL_ERR_STORE_UNAVAILABLE,
               "the session is not open yet; ask again in a moment");
        return;
    }
    if (request->n_ops == 1 && closes_unknown(desk, request, 0)) {
        answer_now(desk, moment, ticket, request, NULL);
        return;
    }
    if (is_all_volatile(desk, request)) {
        for (size_t i = 0; i < request->n_ops; i++)
            desk_renew(desk, moment, request->ops[i]);
        answer_now(desk, moment, ticket, request, NULL);
        return;
    }
    status = decide(desk, moment, request, &decided);
    if (status == GAVEL_OK && decided.refused == request->n_ops) {
        answer_now(desk, moment, ticket, request, decided.verdicts);
        decided_done(&decided, request->n_ops);
        return;
    }
    if (status == GAVEL_OK) {
        for (size_t i = 0; i < request->n_ops; i++) {
            if (decided.list[i]->what_case == GAVEL__OP__WHAT_REGISTER_CANDIDATE)
                desk_forget_silent(desk, moment, decided.list[i]->register_candidate);
        }
        status = desk_draft(desk, moment, request, decided.list, request->n_ops, decided.verdicts, &waiting);
        decided.verdicts = NULL;
    }
    if (status) {
        refuse(desk, ticket, request, status, why_not(status));
    } else {
        waiting->has_asker = true;
        waiting->ticket = ticket;
        waiting->tag = request->tag;
    }
    decided_done(&decided, request->n_ops);
}
