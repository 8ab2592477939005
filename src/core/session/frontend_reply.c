/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What came of a request, as a Reply: one result for each operation, with the
 * group as it stands afterwards where a mandate was concerned, and a sentence
 * for people where something was refused.
 */
#include "core/session/frontend_internal.h"

#include "base/assert.h"
#include "base/planted.h"
#include "wire/client.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *frontend_sentence(const char *format, ...)
{
    char *sentence = malloc(FRONTEND_MESSAGE_MAX);
    va_list arguments;

    if (!sentence)
        return NULL;
    va_start(arguments, format);
    (void)vsnprintf(sentence, FRONTEND_MESSAGE_MAX, format, arguments);
    va_end(arguments);
    return sentence;
}

/* What whoever asks for this has said. */
static struct frontend_known known_of(const Gavel__Op *op, uint64_t session)
{
    switch (op->what_case) {
    case GAVEL__OP__WHAT_CLAIM:
        return (struct frontend_known){0, op->claim->nonce_high, op->claim->nonce_low};
    case GAVEL__OP__WHAT_RENEW:
        return (struct frontend_known){0, op->renew->nonce_high, op->renew->nonce_low};
    case GAVEL__OP__WHAT_RELEASE:
        return (struct frontend_known){0, op->release->nonce_high, op->release->nonce_low};
    default:
        return (struct frontend_known){.session = session};
    }
}

/* Whether the group is shown with the result. */
static bool shows_group(const Gavel__Op *op)
{
    switch (op->what_case) {
    case GAVEL__OP__WHAT_CAMPAIGN:
    case GAVEL__OP__WHAT_WITHDRAW:
    case GAVEL__OP__WHAT_CLAIM:
    case GAVEL__OP__WHAT_RENEW:
    case GAVEL__OP__WHAT_RELEASE:
    case GAVEL__OP__WHAT_WISH:
    case GAVEL__OP__WHAT_REOPEN:
    case GAVEL__OP__WHAT_REFUSED:
        return true;
    default:
        return false;
    }
}

/* ---- sentences ---- */

static void say_done(const struct table_group *group, const char *name, char *message)
{
    (void)snprintf(message, FRONTEND_MESSAGE_MAX,
                   "the work of group \"%.60s\" is done for good, by \"%.60s\" with epoch %" PRIu64
                   "; choose another name for new work",
                   name, group ? group->holder : "", group ? group->epoch : 0);
}

static void say_stale(const struct table_group *group, const char *name, const char *key, uint64_t epoch,
                      char *message)
{
    (void)snprintf(message, FRONTEND_MESSAGE_MAX,
                   "note \"%.60s\" of group \"%.60s\" is as it was: epoch %" PRIu64
                   " is older than the newest of the group, %" PRIu64,
                   key, name, epoch, group ? group->epoch : 0);
}

/* Of a note that has another revision than it should. */
static void say_moved(const char *name, const char *key, uint64_t expected, char *message)
{
    if (expected == 0)
        (void)snprintf(message, FRONTEND_MESSAGE_MAX,
                       "note \"%.60s\" of group \"%.60s\" exists already; read it again", key, name);
    else
        (void)snprintf(message, FRONTEND_MESSAGE_MAX,
                       "note \"%.60s\" of group \"%.60s\" is not at revision %" PRIu64 "; read it again", key,
                       name, expected);
}

/* True if there is a sentence for this outcome of this kind of operation. */
static bool say_known(const struct table_group *group, const Gavel__Op *op, enum gavel_status status,
                      char *message)
{
    const char *name = table_op_group(op);

    if (op->what_case == GAVEL__OP__WHAT_CLAIM && status == GAVEL_ERR_CONFLICT)
        (void)snprintf(
            message, FRONTEND_MESSAGE_MAX,
            "the claim on group \"%.100s\" came too late: its record has changed or its lease runs", name);
    else if (status == GAVEL_ERR_DONE)
        say_done(group, name, message);
    else if (op->what_case == GAVEL__OP__WHAT_REOPEN && status == GAVEL_ERR_CONFLICT)
        (void)snprintf(message, FRONTEND_MESSAGE_MAX,
                       "group \"%.100s\" is not done, or has changed; read it again", name);
    else if (status == GAVEL_ERR_NOT_HOLDER)
        (void)snprintf(message, FRONTEND_MESSAGE_MAX,
                       "the mandate of group \"%.100s\" is not held as the call says; read it again", name);
    else if (op->what_case == GAVEL__OP__WHAT_PUT_NOTE && status == GAVEL_ERR_TERM_STALE)
        say_stale(group, name, op->put_note->key, op->put_note->epoch, message);
    else if (op->what_case == GAVEL__OP__WHAT_DELETE_NOTE && status == GAVEL_ERR_TERM_STALE)
        say_stale(group, name, op->delete_note->key, op->delete_note->epoch, message);
    else if (op->what_case == GAVEL__OP__WHAT_PUT_NOTE && status == GAVEL_ERR_CONFLICT)
        say_moved(name, op->put_note->key, op->put_note->expected, message);
    else if (op->what_case == GAVEL__OP__WHAT_DELETE_NOTE && status == GAVEL_ERR_CONFLICT)
        say_moved(name, op->delete_note->key, op->delete_note->expected, message);
    else
        return false;
    return true;
}

static void say(const struct table_group *group, const Gavel__Op *op, const struct table_result *result,
                char *message)
{
    const char *name = table_op_group(op);
    const char *why = result->why && result->why[0] ? result->why : gavel_status_text(result->status);

    if (say_known(group, op, result->status, message))
        return;
    if (name[0] != '\0')
        (void)snprintf(message, FRONTEND_MESSAGE_MAX, "group \"%.100s\": %s", name, why);
    else
        (void)snprintf(message, FRONTEND_MESSAGE_MAX, "%s", why);
}

/* ---- replies ---- */

/* In line, or to those that wait for the mark of what was heard in this event. */
static void put(struct frontend *frontend, struct frontend_reply *reply, const Gavel__ClientFrame *frame)
{
    reply->after = frontend->after;
    if (PLANTED(KEPT_BEFORE_MARK))
        reply->after = 0;
    if (reply->after == 0) {
        STAILQ_INSERT_TAIL(&frontend->replies, reply, next);
        return;
    }
    reply->is_kept = frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEPT;
    reply->tag = reply->is_kept ? frame->kept->tag : frame->reply->tag;
    STAILQ_INSERT_TAIL(&frontend->held, reply, next);
    frontend->held_count++;
}

static void refuse(struct frontend *frontend, const struct frontend_reply *reply)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Kept kept = GAVEL__KEPT__INIT;

    if (!reply->is_kept) {
        frontend_reply_status(frontend, reply->ticket, reply->tag, GAVEL_ERR_NOT_LEADER,
                              "this node does not lead the cluster any more; ask again");
        return;
    }
    kept.tag = reply->tag;
    kept.status = GAVEL_ERR_NOT_LEADER;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEPT;
    frame.kept = &kept;
    frontend_reply_frame(frontend, reply->ticket, &frame);
}

void frontend_reply_frame(struct frontend *frontend, struct frontend_ticket ticket,
                          const Gavel__ClientFrame *frame)
{
    struct frontend_reply *reply = malloc(sizeof *reply);

    if (reply)
        *reply = (struct frontend_reply){.ticket = ticket};
    if (reply && client_frame_pack(frame, &reply->bytes, &reply->size) == GAVEL_OK) {
        put(frontend, reply, frame);
        return;
    }
    frontend->counts.lost++; /* it is asked again */
    free(reply);
}

void frontend_release(struct frontend *frontend, bool is_working, uint64_t number)
{
    struct frontend_replies waiting = STAILQ_HEAD_INITIALIZER(waiting);
    struct frontend_reply *reply;

    if (PLANTED(KEPT_WITHOUT_LEASE))
        is_working = true;
    if (!is_working || STAILQ_EMPTY(&frontend->held))
        return;
    ASSERT(frontend->is_open);
    STAILQ_CONCAT(&waiting, &frontend->held);
    while ((reply = STAILQ_FIRST(&waiting))) {
        STAILQ_REMOVE_HEAD(&waiting, next);
        if (reply->after <= number) {
            ASSERT(frontend->held_count > 0);
            frontend->held_count--;
            STAILQ_INSERT_TAIL(&frontend->replies, reply, next);
        } else {
            STAILQ_INSERT_TAIL(&frontend->held, reply, next);
        }
    }
}

void frontend_refuse_held(struct frontend *frontend)
{
    struct frontend_reply *reply;

    ASSERT(frontend->after == 0);
    while ((reply = STAILQ_FIRST(&frontend->held))) {
        STAILQ_REMOVE_HEAD(&frontend->held, next);
        frontend->held_count--;
        refuse(frontend, reply);
        frontend_reply_free(reply);
    }
    ASSERT(frontend->held_count == 0);
}

struct frontend_reply *frontend_take_reply(struct frontend *frontend)
{
    struct frontend_reply *reply = STAILQ_FIRST(&frontend->replies);

    if (reply)
        STAILQ_REMOVE_HEAD(&frontend->replies, next);
    return reply;
}

void frontend_reply_free(struct frontend_reply *reply)
{
    if (!reply)
        return;
    free(reply->bytes);
    free(reply);
}

static void send(struct frontend *frontend, struct frontend_ticket ticket, Gavel__Reply *reply)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;

    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REPLY;
    frame.reply = reply;
    frontend_reply_frame(frontend, ticket, &frame);
}

void frontend_reply_status(struct frontend *frontend, struct frontend_ticket ticket, uint64_t tag,
                           enum gavel_status status, const char *message)
{
    Gavel__Reply reply;

    gavel__reply__init(&reply);
    reply.tag = tag;
    reply.status = status;
    reply.message = (char *)(uintptr_t)message; /* only read */
    send(frontend, ticket, &reply);
}

/* One result, and what it points to. */
struct slot {
    Gavel__OpResult result;
    Gavel__Group group;
    char message[FRONTEND_MESSAGE_MAX];
};

static void tell_other(const struct frontend *frontend, const struct table_group *group, const Gavel__Op *op,
                       Gavel__OpResult *result)
{
    const char *id =
        op->what_case == GAVEL__OP__WHAT_CAMPAIGN ? op->campaign->id : op->register_candidate->id;
    const struct table_candidate *other = group ? table_candidate_find(group, id) : NULL;

    if (!other)
        return;
    result->other_instance = other->joined_revision; /* as lists have it */
    result->other_beats = frontend_beats(frontend, other);
}

/* Which session is open now, for whoever opens it: a repeated opening is answered from what is recorded. */
static uint64_t opened_revision(const struct frontend *frontend, const Gavel__Op *op)
{
    const struct table_session *session = op->what_case == GAVEL__OP__WHAT_OPEN_SESSION
                                              ? table_session_find(frontend->table, op->open_session->session)
                                              : NULL;

    return session ? session->create_revision : 0;
}

static void fill(struct frontend *frontend, gavel_ns now, uint64_t session, const Gavel__Op *op,
                 const struct table_result *outcome, const struct frontend_verdict *verdict,
                 struct slot *slot)
{
    const struct table_group *group = table_group_find(frontend->table, table_op_group(op));
    Gavel__OpResult *result = &slot->result;

    gavel__op_result__init(result);
    result->status = outcome->status;
    result->revision = outcome->revision;
    result->version = outcome->version;
    result->epoch = outcome->epoch;
    if (group && shows_group(op)) {
        frontend_show_group(frontend, group, now, known_of(op, session), &slot->group);
        result->group = &slot->group;
    }
    if (verdict && verdict->status != GAVEL_OK) {
        result->status = verdict->status;
        result->other_instance = verdict->other_instance;
        result->other_beats = verdict->other_beats;
        if (verdict->message)
            result->message = verdict->message;
        return;
    }
    if (outcome->status == GAVEL_OK) {
        result->session_revision = opened_revision(frontend, op);
        return;
    }
    if (outcome->status == GAVEL_ERR_ID_IN_USE &&
        (op->what_case == GAVEL__OP__WHAT_REGISTER_CANDIDATE || op->what_case == GAVEL__OP__WHAT_CAMPAIGN))
        tell_other(frontend, group, op, result);
    say(group, op, outcome, slot->message);
    result->message = slot->message;
}

enum gavel_status frontend_reply_results(struct frontend *frontend, gavel_ns now,
                                         struct frontend_ticket ticket, uint64_t tag, uint64_t session,
                                         Gavel__Op *const *ops, const struct table_result *results,
                                         size_t count, const struct frontend_verdict *verdicts)
{
    Gavel__Reply reply;
    struct slot *slots = malloc(count * sizeof *slots);
    Gavel__OpResult **list = malloc(count * sizeof *list);
    bool has_memory = slots && list;

    for (size_t i = 0; has_memory && i < count; i++) {
        fill(frontend, now, session, ops[i], &results[i], verdicts ? &verdicts[i] : NULL, &slots[i]);
        list[i] = &slots[i].result;
    }
    gavel__reply__init(&reply);
    reply.tag = tag;
    reply.n_results = count;
    reply.results = list;
    if (has_memory)
        send(frontend, ticket, &reply);
    free(slots);
    free(list);
    return has_memory ? GAVEL_OK : GAVEL_ERR_NO_MEMORY;
}

enum gavel_status frontend_reply_opening(struct frontend *frontend, gavel_ns now,
                                         const struct frontend_waiting *waiting, enum gavel_status status,
                                         const struct table_result *results, size_t count)
{
    size_t n_ops = waiting->command->n_ops;
    struct table_result *all = calloc(n_ops + 1, sizeof *all);
    Gavel__Op **ops = calloc(n_ops + 1, sizeof(Gavel__Op *));
    Gavel__OpenSession open;
    Gavel__Op opening = GAVEL__OP__INIT;

    gavel__open_session__init(&open);
    open.session = waiting->session;
    opening.what_case = GAVEL__OP__WHAT_OPEN_SESSION;
    opening.open_session = &open;
    if (all && ops) {
        if (status == GAVEL_OK && count != n_ops)
            status = GAVEL_ERR_STATE; /* the id was used for another request */
        all[0] = waiting->opened;
        ops[0] = &opening;
        for (size_t i = 0; i < n_ops; i++) {
            ops[i + 1] = waiting->command->ops[i];
            all[i + 1] = status == GAVEL_OK ? results[i]
                                            : (struct table_result){.status = status,
                                                                    .revision = frontend->table->revision,
                                                                    .why = ""};
        }
        status = frontend_reply_results(frontend, now, waiting->ticket, waiting->tag, waiting->session, ops,
                                        all, n_ops + 1, NULL);
    } else {
        status = GAVEL_ERR_NO_MEMORY;
    }
    free(all);
    free(ops);
    return status;
}
