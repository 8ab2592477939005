/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A Request, from its arrival to the log:
 *
 *     check ──► known already? ──► all volatile? ──► decide ──► draft
 *       │            │                 │               │
 *    refused     answered again     answered       answered, if nothing is left for the log
 *
 * A session is opened by a request of its own, or by one that goes on to
 * campaign: that becomes two commands, the opening in nobody's name and the
 * campaigns in that of the session, so that one commit has both and nodes of
 * before 0.7.0 apply them. It is answered as one.
 *
 * Known already: the newest request of a session is answered from the table,
 * one that is under way gets its new ticket (its client has come back through
 * another node). Ids only grow; an older one is a mistake.
 */
#include "core/session/frontend_internal.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/planted.h"
#include "wire/client_survey.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refuse(struct frontend *frontend, struct frontend_ticket ticket, const Gavel__Request *request,
                   enum gavel_status status, const char *message)
{
    frontend->counts.refused++;
    frontend_reply_status(frontend, ticket, request->tag, status, message);
}

static const char *why_not(enum gavel_status status)
{
    switch (status) {
    case GAVEL_ERR_NO_MEMORY:
        return "the leader of the cluster is out of memory";
    case GAVEL_ERR_STORE_UNAVAILABLE:
        return "too many requests are under way at the leader of the cluster; ask again later";
    default:
        return "the request is larger than one command may be; send its operations apart";
    }
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

        if (status != GAVEL_OK && request->n_ops == 1)
            return error_set(error, status, "%s", wrong.message);
        if (status != GAVEL_OK)
            return error_set(error, status, "operation %zu of %zu: %s", i + 1, request->n_ops, wrong.message);
    }
    return GAVEL_OK;
}

/* ---- whose it is ---- */

static const char not_yours[] = "the session belongs to another client";

bool frontend_may_use(const struct table_session *session, bool has_principal, uint64_t principal)
{
    if (PLANTED(ANYBODYS_SESSION))
        return true;
    return !session || session->principal == 0 || !has_principal || session->principal == principal;
}

/*
 * The end of a session that the table does not have is never proposed: its opening may be on its way, of
 * somebody else, and whose it is, is known only once it is applied.
 */
static bool closes_unknown(const struct frontend *frontend, const Gavel__Request *request, size_t which)
{
    const Gavel__Op *op = request->ops[which];

    if (PLANTED(ANYBODYS_SESSION))
        return false;
    return request->has_principal && op->what_case == GAVEL__OP__WHAT_CLOSE_SESSION &&
           !table_session_find(frontend->table, op->close_session->session);
}

/* Whoever asks has opened it just now, and the log does not have it yet: its end is not over, it is to
 * come. */
static bool closes_coming(struct frontend *frontend, const Gavel__Request *request)
{
    const struct frontend_waiting *waiting =
        frontend_find_request(frontend, request->ops[0]->close_session->session, 1);
    const Gavel__Op *op;

    if (waiting && waiting->opening)
        waiting = waiting->opening;
    op = waiting && waiting->command->n_ops == 1 ? waiting->command->ops[0] : NULL;

    return op && op->what_case == GAVEL__OP__WHAT_OPEN_SESSION &&
           op->open_session->principal == request->principal;
}

/* The session of the request, and those that it opens (again) or closes. */
static bool is_permitted(const struct frontend *frontend, const Gavel__Request *request)
{
    if (!frontend_may_use(table_session_find(frontend->table, request->session), request->has_principal,
                          request->principal))
        return false;
    for (size_t i = 0; i < request->n_ops; i++) {
        const Gavel__Op *op = request->ops[i];
        uint64_t id = op->what_case == GAVEL__OP__WHAT_OPEN_SESSION    ? op->open_session->session
                      : op->what_case == GAVEL__OP__WHAT_CLOSE_SESSION ? op->close_session->session
                                                                       : 0;

        if (request->n_ops > 1 && closes_unknown(frontend, request, i))
            return false;
        if (id != 0 && !frontend_may_use(table_session_find(frontend->table, id), request->has_principal,
                                         request->principal))
            return false;
    }
    return true;
}

/* ---- answered without the log ---- */

static bool is_all_volatile(const struct frontend *frontend, const Gavel__Request *request)
{
    for (size_t i = 0; i < request->n_ops; i++) {
        if (!frontend_is_volatile(frontend, request->ops[i]))
            return false;
    }
    return true;
}

/* What the table would say of operations that change nothing, or are refused. */
static void answer_now(struct frontend *frontend, const struct frontend_moment *moment,
                       struct frontend_ticket ticket, const Gavel__Request *request,
                       const struct frontend_verdict *verdicts)
{
    struct table_result *results;
    enum gavel_status status = GAVEL_ERR_NO_MEMORY;

    ASSERT(request->n_ops > 0);
    results = calloc(request->n_ops, sizeof *results);
    for (size_t i = 0; results && i < request->n_ops; i++) {
        const struct table_group *group = table_group_find(frontend->table, table_op_group(request->ops[i]));

        results[i].status = verdicts ? verdicts[i].status : GAVEL_OK;
        results[i].revision = frontend->table->revision;
        results[i].version = group ? group->version : 0;
        results[i].epoch = group ? group->epoch : 0;
        results[i].why = "";
    }
    if (results)
        status = frontend_reply_results(frontend, moment->now, ticket, request->tag, request->session,
                                        request->ops, results, request->n_ops, verdicts);
    if (status != GAVEL_OK)
        frontend_reply_status(frontend, ticket, request->tag, status,
                              "the leader of the cluster is out of memory");
    free(results);
}

/* All of them are volatile. */
static void renew(struct frontend *frontend, const struct frontend_moment *moment,
                  struct frontend_ticket ticket, const Gavel__Request *request)
{
    bool has_memory = true;

    for (size_t i = 0; i < request->n_ops && has_memory; i++)
        has_memory = frontend_renew(frontend, moment, request->ops[i]);
    if (has_memory)
        answer_now(frontend, moment, ticket, request, NULL);
    else
        refuse(frontend, ticket, request, GAVEL_ERR_NO_MEMORY, why_not(GAVEL_ERR_NO_MEMORY));
}

/* ---- known already ---- */

static const char another_is_open[] =
    "the session has expired, and another was opened under its id; open one with a new id";
static const char about_to_end[] = "the session is about to end; open another one";

static bool begins_with_opening(const Gavel__Request *request)
{
    return request->ops[0]->what_case == GAVEL__OP__WHAT_OPEN_SESSION &&
           request->ops[0]->open_session->session == request->session;
}

static bool opens(const Gavel__Request *request)
{
    return request->n_ops == 1 && begins_with_opening(request);
}

/* Only campaigns may follow: they may be done again, should the session end before a repeat comes. */
static bool opens_and_campaigns(const Gavel__Request *request)
{
    for (size_t i = 1; i < request->n_ops; i++)
        if (request->ops[i]->what_case != GAVEL__OP__WHAT_CAMPAIGN)
            return false;
    return request->session != 0 && request->n_ops > 1 && begins_with_opening(request);
}

/* What came of the newest request of the session, for this one, which has its id; NULL: no memory. One that
 * opens has one operation more than was recorded: the session is open, that is all there is to say of it. */
static struct table_result *recall(const struct frontend *frontend, const Gavel__Request *request,
                                   const struct table_session *session)
{
    size_t missing = request->n_ops - session->result_count;
    struct table_result *results = calloc(request->n_ops, sizeof *results);

    ASSERT(session->result_count <= request->n_ops);
    if (!results)
        return NULL;
    results[0] = (struct table_result){.status = GAVEL_OK, .revision = frontend->table->revision, .why = ""};
    memcpy(results + missing, session->results, session->result_count * sizeof *results);
    return results;
}

/* The newest request of the session once more: what came of it is told again. */
static void repeat(struct frontend *frontend, const struct frontend_moment *moment,
                   struct frontend_ticket ticket, const Gavel__Request *request,
                   const struct table_session *session)
{
    bool is_heard = true;
    bool has_opening = opens_and_campaigns(request) && session->result_count + 1 == request->n_ops;
    struct table_result *results;

    frontend->counts.repeated++;
    if (session->result_count != request->n_ops && !has_opening) {
        refuse(frontend, ticket, request, GAVEL_ERR_STATE,
               "the id of this request was used for another one; ids of a session only grow");
        return;
    }
    if (begins_with_opening(request) && frontend_is_closing_session(frontend, session)) {
        refuse(frontend, ticket, request, GAVEL_ERR_SESSION_GONE, about_to_end);
        return;
    }
    results = recall(frontend, request, session);
    /* Its client counts from the time it asked again. */
    for (size_t i = 0; results && i < request->n_ops; i++)
        is_heard = frontend_hear_again(frontend, moment, request->ops[i], results[i].status) && is_heard;
    if (!results || !is_heard ||
        frontend_reply_results(frontend, moment->now, ticket, request->tag, request->session, request->ops,
                               results, request->n_ops, NULL) != GAVEL_OK)
        frontend_reply_status(frontend, ticket, request->tag, GAVEL_ERR_NOT_LEADER,
                              "out of memory; ask again");
    free(results);
}

/* An opening that comes again after other requests: the session is open, that is all there is to say. */
static void confirm(struct frontend *frontend, const struct frontend_moment *moment,
                    struct frontend_ticket ticket, const Gavel__Request *request,
                    const struct table_session *session)
{
    frontend->counts.repeated++;
    if (frontend_is_closing_session(frontend, session)) {
        refuse(frontend, ticket, request, GAVEL_ERR_SESSION_GONE, about_to_end);
        return;
    }
    if (frontend_hear_again(frontend, moment, request->ops[0], GAVEL_OK))
        answer_now(frontend, moment, ticket, request, NULL);
    else
        refuse(frontend, ticket, request, GAVEL_ERR_NO_MEMORY, why_not(GAVEL_ERR_NO_MEMORY));
}

/* Whether it was answered, or will be, by what is known of its session. */
static bool is_settled(struct frontend *frontend, const struct frontend_moment *moment,
                       struct frontend_ticket ticket, const Gavel__Request *request)
{
    const struct table_session *session = table_session_find(frontend->table, request->session);
    struct frontend_waiting *waiting = frontend_find_request(frontend, request->session, request->id);
    bool is_last = session && request->id == session->last_id;
    char message[FRONTEND_MESSAGE_MAX];

    if (PLANTED(APPLIED_AGAIN))
        is_last = false;
    if (session && !table_session_is_meant(session, request->session_revision)) {
        refuse(frontend, ticket, request, GAVEL_ERR_SESSION_GONE, another_is_open);
        return true;
    }
    if (waiting) {
        waiting->has_asker = true;
        waiting->ticket = ticket;
        waiting->tag = request->tag;
        return true;
    }
    if (is_last) {
        repeat(frontend, moment, ticket, request, session);
        return true;
    }
    if (session && request->id < session->last_id && opens(request)) {
        confirm(frontend, moment, ticket, request, session);
        return true;
    }
    if (session && request->id < session->last_id) {
        (void)snprintf(message, sizeof message,
                       "request %" PRIu64 " of the session is older than its newest, %" PRIu64
                       ", and was answered already",
                       request->id, session->last_id);
        refuse(frontend, ticket, request, GAVEL_ERR_STATE, message);
        return true;
    }
    if (!session && !opens(request) && !opens_and_campaigns(request)) {
        refuse(frontend, ticket, request, GAVEL_ERR_SESSION_GONE,
               "the session is not open: it was closed, or expired; open another one");
        return true;
    }
    return false;
}

/* ---- decide ---- */

/* Operations as they shall stand in the log, and what is said of each. */
struct decided {
    struct frontend_op *ops;
    Gavel__Op **list;
    struct table_packed *packed; /* those that stand there as they were asked for */
    struct frontend_verdict *verdicts;
    size_t refused;
};

static void decided_done(struct decided *decided, size_t count)
{
    free(decided->ops);
    free(decided->list);
    free(decided->packed);
    frontend_verdicts_free(decided->verdicts, count);
}

static enum gavel_status decide(struct frontend *frontend, const struct frontend_moment *moment,
                                const Gavel__Request *request, struct table_packed packed,
                                struct decided *decided)
{
    size_t parts = 0;
    const struct frontend_asker asker = {
        .session = request->session, .is_opening = opens_and_campaigns(request), .parts = &parts};
    bool has_packed = false;

    decided->ops = calloc(request->n_ops, sizeof *decided->ops);
    decided->list = calloc(request->n_ops, sizeof(Gavel__Op *));
    decided->packed = calloc(request->n_ops, sizeof *decided->packed);
    decided->verdicts = calloc(request->n_ops, sizeof *decided->verdicts);
    if (!decided->ops || !decided->list || !decided->packed || !decided->verdicts)
        return GAVEL_ERR_NO_MEMORY;
    if (packed.bytes)
        has_packed = client_survey_ops(packed.bytes, packed.size, decided->packed, request->n_ops) ==
                     request->n_ops; /* as they were decoded from them */
    for (size_t i = 0; i < request->n_ops; i++) {
        bool is_as_asked = frontend_decide(frontend, moment->now, request->ops[i], asker, &decided->ops[i],
                                           &decided->verdicts[i]);

        if (PLANTED(LOGGED_AS_ASKED))
            is_as_asked = true;
        if (!has_packed || !is_as_asked)
            decided->packed[i].bytes = NULL;
        decided->list[i] = &decided->ops[i].op;
        decided->refused += decided->verdicts[i].status != GAVEL_OK;
    }
    frontend->counts.refused += decided->refused;
    return GAVEL_OK;
}

/* A request that opens its session and campaigns is two commands, and has no place for what is refused: all
 * of it is. */
static void refuse_opening(struct frontend *frontend, struct frontend_ticket ticket,
                           const Gavel__Request *request, const struct decided *decided)
{
    size_t i = 0;

    while (decided->verdicts[i].status == GAVEL_OK)
        i++;
    ASSERT(i < request->n_ops);
    refuse(frontend, ticket, request, decided->verdicts[i].status,
           decided->verdicts[i].message ? decided->verdicts[i].message : "");
}

/* Puts what was decided in line. */
static enum gavel_status draft(struct frontend *frontend, const struct frontend_moment *moment,
                               Gavel__ClientFrame **frame, struct decided *decided,
                               struct frontend_waiting **ret_waiting)
{
    const Gavel__Request *request = (*frame)->request;
    size_t first = opens_and_campaigns(request) ? 1 : 0;
    struct frontend_lent *lent = calloc(1, sizeof *lent);
    struct frontend_ops ops = {.list = decided->list + first,
                               .count = request->n_ops - first,
                               .packed = decided->packed + first,
                               .lent = lent};
    struct frontend_verdict *verdicts = decided->verdicts;
    enum gavel_status status;

    if (!lent)
        return GAVEL_ERR_NO_MEMORY;
    lent->users = 1;
    for (size_t i = 0; i < request->n_ops; i++)
        frontend_forget(frontend, moment, decided->list[i]);
    if (first > 0) {
        ASSERT(decided->refused == 0); /* or the whole was */
        verdicts = NULL;
    } else {
        decided->verdicts = NULL; /* handed over */
    }
    status = frontend_draft(frontend, moment, request, &ops, verdicts, ret_waiting);
    if (status == GAVEL_OK && first > 0) {
        ops =
            (struct frontend_ops){.list = decided->list, .count = 1, .packed = decided->packed, .lent = lent};
        status = frontend_draft_opening(frontend, moment, &ops, *ret_waiting);
    }
    if (status == GAVEL_OK) { /* what was asked is kept as it was decoded, until the outcome is known */
        lent->frame = *frame;
        lent->ops = decided->ops;
        *frame = NULL;
        decided->ops = NULL;
    }
    frontend_lent_release(lent);
    return status;
}

void frontend_request(struct frontend *frontend, const struct frontend_moment *moment,
                      struct frontend_ticket ticket, Gavel__ClientFrame **frame, struct table_packed packed)
{
    const Gavel__Request *request = (*frame)->request;
    size_t count = request->n_ops;
    struct decided decided = {0};
    struct gavel_error error = {0};
    struct frontend_waiting *waiting;
    enum gavel_status status;

    frontend->counts.requests++;
    status = check(request, &error);
    if (status != GAVEL_OK) {
        refuse(frontend, ticket, request, status, error.message);
        return;
    }
    if (!is_permitted(frontend, request)) {
        refuse(frontend, ticket, request, GAVEL_ERR_SESSION_GONE, not_yours);
        return;
    }
    if (request->session != 0 && is_settled(frontend, moment, ticket, request))
        return;
    if (request->n_ops == 1 && closes_unknown(frontend, request, 0) && closes_coming(frontend, request)) {
        refuse(frontend, ticket, request, GAVEL_ERR_STORE_UNAVAILABLE,
               "the session is not open yet; ask again in a moment");
        return;
    }
    if (request->n_ops == 1 && closes_unknown(frontend, request, 0)) {
        answer_now(frontend, moment, ticket, request, NULL);
        return;
    }
    if (is_all_volatile(frontend, request)) {
        renew(frontend, moment, ticket, request);
        return;
    }
    status = decide(frontend, moment, request, packed, &decided);
    if (status == GAVEL_OK && decided.refused == request->n_ops) {
        answer_now(frontend, moment, ticket, request, decided.verdicts);
        decided_done(&decided, request->n_ops);
        return;
    }
    if (status == GAVEL_OK && decided.refused > 0 && opens_and_campaigns(request)) {
        refuse_opening(frontend, ticket, request, &decided);
        decided_done(&decided, request->n_ops);
        return;
    }
    if (status == GAVEL_OK)
        status = draft(frontend, moment, frame, &decided, &waiting);
    if (status != GAVEL_OK) {
        refuse(frontend, ticket, request, status, why_not(status));
    } else {
        waiting->has_asker = true;
        waiting->ticket = ticket;
        waiting->tag = request->tag;
    }
    decided_done(&decided, count);
}
