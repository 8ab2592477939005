/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of the frontend, and the line of those who wait.
 *
 *     frontend_take() ──► draft ── next_batch() ──► batch ── proposed() ──► waiting ── applied() ──► answered
 *
 * All three lists are in the order of the log. What is applied is compared by index
 * and term: another term at our index means that our entry was lost with our
 * leadership.
 *
 * Who waits while the leadership is lost cannot be told the outcome. A request
 * of a session is told ERR_NOT_LEADER: it is carried to the next leader, and
 * its id has it applied once. One without a session must not be carried twice,
 * so ERR_NOT_LEADER is said to it only if it never reached the log.
 */
#include "core/session/frontend_internal.h"

#include "base/assert.h"
#include "base/planted.h"
#include "wire/client.h"

#include <stdlib.h>
#include <string.h>

#define NOT_LEADING "this node does not lead the cluster, or not yet; ask again"
#define LOST                                                                                                 \
    "the leader of the cluster was lost before the outcome was known: this may have been done or not; "      \
    "look before asking again"

static int compare(const struct frontend_waiting *a, const struct frontend_waiting *b)
{
    if (a->session != b->session)
        return a->session < b->session ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

RB_GENERATE_INTERNAL(frontend_requests, frontend_waiting, by_request, compare, static __attribute__((unused)))

void frontend_init(struct frontend *frontend, struct table *table, int drift_ppm)
{
    ASSERT(table);
    ASSERT(drift_ppm >= 0);
    *frontend = (struct frontend){.table = table, .drift_ppm = drift_ppm};
    TAILQ_INIT(&frontend->waiting);
    TAILQ_INIT(&frontend->draft);
    TAILQ_INIT(&frontend->batch);
    STAILQ_INIT(&frontend->replies);
    STAILQ_INIT(&frontend->held);
    RB_INIT(&frontend->requests);
}

void frontend_verdicts_free(struct frontend_verdict *verdicts, size_t count)
{
    for (size_t i = 0; verdicts && i < count; i++)
        free(verdicts[i].message);
    free(verdicts);
}

void frontend_lent_release(struct frontend_lent *lent)
{
    if (!lent)
        return;
    ASSERT(lent->users > 0);
    if (--lent->users > 0)
        return;
    client_frame_free(lent->frame);
    free(lent->ops);
    free(lent);
}

/* Its operations may be those of the frame that asked for them. */
static void command_free(struct frontend_waiting *waiting)
{
    if (waiting->command && waiting->lent) {
        free(waiting->command->ops);
        free(waiting->command);
    } else if (waiting->command) {
        gavel__command__free_unpacked(waiting->command, NULL);
    }
    frontend_lent_release(waiting->lent);
}

static void waiting_free(struct frontend *frontend, struct frontend_waiting *waiting)
{
    if (waiting->session != 0 && RB_FIND(frontend_requests, &frontend->requests, waiting) == waiting)
        RB_REMOVE(frontend_requests, &frontend->requests, waiting);
    ASSERT(frontend->waiting_count > 0);
    frontend->waiting_count--;
    ASSERT(frontend->waiting_bytes >= waiting->size);
    frontend->waiting_bytes -= waiting->size;
    if (waiting->is_cleaning) {
        ASSERT(frontend->cleanings > 0);
        frontend->cleanings--;
    }
    if (waiting->is_in_flight) {
        ASSERT(frontend->flight_ops >= waiting->command->n_ops);
        frontend->flight_ops -= waiting->command->n_ops;
    }
    if (waiting->campaigns)
        waiting->campaigns->opening = NULL;
    if (waiting->opening)
        waiting->opening->campaigns = NULL;
    frontend_verdicts_free(waiting->verdicts, waiting->command->n_ops);
    command_free(waiting);
    free(waiting->bytes);
    free(waiting);
    if (!frontend->is_open && frontend->waiting_count == 0)
        heard_done(&frontend->heard, 0); /* nothing is under way any more, see frontend_close() */
}

static void close_ends(struct frontend *frontend, const struct frontend_waiting *waiting)
{
    for (size_t i = 0; i < waiting->command->n_ops; i++)
        frontend_closing_end(frontend, waiting->command->ops[i], waiting->term, waiting->number);
}

/* Whoever waits is told that the outcome will not be known here. */
static void excuse(struct frontend *frontend, struct frontend_waiting *waiting, enum gavel_status status,
                   const char *message)
{
    bool is_unknown = waiting->index != 0 && waiting->session == 0;

    if (PLANTED(LOST_IS_REFUSED))
        is_unknown = false;
    if (waiting->has_asker)
        frontend_reply_status(frontend, waiting->ticket, waiting->tag,
                              is_unknown ? GAVEL_ERR_STORE_UNAVAILABLE : status, is_unknown ? LOST : message);
    waiting->has_asker = false;
}

/* The same, and nothing will come of it. */
static void dismiss(struct frontend *frontend, struct frontend_waiting *waiting, enum gavel_status status,
                    const char *message)
{
    excuse(frontend, waiting, status, message);
    close_ends(frontend, waiting);
    waiting_free(frontend, waiting);
}

static void dismiss_all(struct frontend *frontend, struct frontend_waitings *list, enum gavel_status status,
                        const char *message)
{
    struct frontend_waiting *waiting;

    while ((waiting = TAILQ_FIRST(list))) {
        TAILQ_REMOVE(list, waiting, in_list);
        dismiss(frontend, waiting, status, message);
    }
}

static void excuse_all(struct frontend *frontend)
{
    struct frontend_waiting *waiting;

    TAILQ_FOREACH(waiting, &frontend->waiting, in_list)
        excuse(frontend, waiting, GAVEL_ERR_NOT_LEADER, NOT_LEADING);
}

void frontend_done(struct frontend *frontend)
{
    struct frontend_reply *reply;

    if (!frontend->table)
        return;
    STAILQ_CONCAT(&frontend->replies, &frontend->held);
    while ((reply = frontend_take_reply(frontend)))
        frontend_reply_free(reply);
    TAILQ_CONCAT(&frontend->waiting, &frontend->batch, in_list);
    TAILQ_CONCAT(&frontend->waiting, &frontend->draft, in_list);
    while (!TAILQ_EMPTY(&frontend->waiting)) {
        struct frontend_waiting *waiting = TAILQ_FIRST(&frontend->waiting);

        TAILQ_REMOVE(&frontend->waiting, waiting, in_list);
        waiting_free(frontend, waiting);
    }
    ASSERT(frontend->waiting_count == 0);
    ASSERT(frontend->waiting_bytes == 0);
    ASSERT(frontend->flight_ops == 0);
    ASSERT(frontend->cleanings == 0);
    ASSERT(RB_EMPTY(&frontend->requests));
    heard_done(&frontend->heard, 0);
    applied_done(&frontend->applied);
}

void frontend_open(struct frontend *frontend, uint64_t term, gavel_ns now)
{
    ASSERT(!frontend->is_open);
    ASSERT(term >= frontend->term);
    ASSERT(term > 0);
    ASSERT(TAILQ_EMPTY(&frontend->draft));
    ASSERT(TAILQ_EMPTY(&frontend->batch));
    if (term != frontend->term) /* whatever of the term before is in the log was applied before ours began */
        dismiss_all(frontend, &frontend->waiting, GAVEL_ERR_NOT_LEADER, NOT_LEADING);
    if (term != frontend->term)
        heard_done(&frontend->heard, (uint64_t)now);
    applied_mark(&frontend->applied, frontend->table->revision, now);
    frontend->is_open = true;
    frontend->term = term;
    frontend->began_at = now;
    frontend->ticked_at = now;
    frontend->stalled_at = 0;
    frontend->revision = frontend->table->revision;
    expiry_open(frontend, now);
}

/* What is in the log may still be applied, and in this very term if a transfer of the leadership fails: until
 * then an end that was proposed is under way. */
void frontend_close(struct frontend *frontend)
{
    ASSERT(TAILQ_EMPTY(&frontend->batch));
    frontend->is_open = false;
    frontend->after = 0;
    frontend_refuse_held(frontend);
    excuse_all(frontend);
    dismiss_all(frontend, &frontend->draft, GAVEL_ERR_NOT_LEADER, NOT_LEADING);
    ASSERT(TAILQ_EMPTY(&frontend->draft));
    if (frontend->waiting_count == 0)
        heard_done(&frontend->heard, 0);
}

static void refuse(struct frontend *frontend, struct frontend_ticket ticket, const Gavel__ClientFrame *frame)
{
    Gavel__ClientFrame answer = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Kept kept = GAVEL__KEPT__INIT;
    Gavel__Answer nothing;
    static char message[] = NOT_LEADING;

    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REQUEST) {
        frontend_reply_status(frontend, ticket, frame->request->tag, GAVEL_ERR_NOT_LEADER, NOT_LEADING);
        return;
    }
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE) {
        kept.tag = frame->keep_alive->tag;
        kept.status = GAVEL_ERR_NOT_LEADER;
        answer.what_case = GAVEL__CLIENT_FRAME__WHAT_KEPT;
        answer.kept = &kept;
    } else {
        gavel__answer__init(&nothing);
        nothing.tag = frame->ask->tag;
        nothing.status = GAVEL_ERR_NOT_LEADER;
        nothing.message = message;
        answer.what_case = GAVEL__CLIENT_FRAME__WHAT_ANSWER;
        answer.answer = &nothing;
    }
    frontend_reply_frame(frontend, ticket, &answer);
}

void frontend_take(struct frontend *frontend, gavel_ns now, bool is_working, int64_t wall_ms,
                   struct frontend_ticket ticket, Gavel__ClientFrame **taken, struct table_packed packed)
{
    const Gavel__ClientFrame *frame = *taken;
    const struct frontend_moment moment = {.now = now, .wall_ms = wall_ms};

    if (frame->what_case != GAVEL__CLIENT_FRAME__WHAT_REQUEST &&
        frame->what_case != GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE &&
        frame->what_case != GAVEL__CLIENT_FRAME__WHAT_ASK) {
        frontend->counts.refused++;
        frontend_reply_status(frontend, ticket, 0, GAVEL_ERR_INVALID,
                              "the leader of the cluster takes requests, keep-alives and questions only");
        return;
    }
    frontend->after = 0;
    if (frontend->is_open)
        expiry_notice(frontend, now, is_working);
    if (PLANTED(KEPT_WITHOUT_LEASE))
        is_working = true;
    if (!frontend->is_open || !is_working) {
        refuse(frontend, ticket, frame);
        return;
    }
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REQUEST)
        frontend_request(frontend, &moment, ticket, taken, packed);
    else if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE)
        frontend_keep_alive(frontend, now, ticket, frame->keep_alive);
    else
        frontend_ask(frontend, now, ticket, frame->ask);
}

static bool is_of_the_dead(const Gavel__Op *op)
{
    switch (op->what_case) {
    case GAVEL__OP__WHAT_CLOSE_SESSION:
        return op->close_session->ending == GAVEL__ENDING__ENDING_DEAD;
    case GAVEL__OP__WHAT_RELEASE:
        return op->release->is_dead;
    case GAVEL__OP__WHAT_LEAVE:
        return true;
    default:
        return false;
    }
}

void frontend_report_deaths(struct frontend *frontend, gavel_ns now, int64_t wall_ms,
                            const Gavel__Op *const *ops, size_t count)
{
    const struct frontend_moment moment = {.now = now, .wall_ms = wall_ms};
    Gavel__Op *chosen[TABLE_OPS_MAX];
    struct frontend_waiting *waiting;
    size_t chosen_count = 0;

    if (!frontend->is_open)
        return;
    for (size_t i = 0; i < count; i++) {
        ASSERT(chosen_count < TABLE_OPS_MAX);
        if (is_of_the_dead(ops[i]) && table_op_check(ops[i], false, NULL) == GAVEL_OK &&
            !frontend_is_under_way(frontend, ops[i]))
            chosen[chosen_count++] = (Gavel__Op *)(uintptr_t)ops[i]; /* packing does not write to it */
        if (chosen_count == TABLE_OPS_MAX || (i + 1 == count && chosen_count > 0)) {
            /* Without room they are told again by whoever watches, or time has it that they end. */
            (void)!frontend_draft(frontend, &moment, NULL,
                                  &(struct frontend_ops){.list = chosen, .count = chosen_count}, NULL,
                                  &waiting);
            chosen_count = 0;
        }
    }
}

/* ---- the line ---- */

/* A command with these operations, which are not copied. */
static Gavel__Command *command_of(const Gavel__Command *command, const struct frontend_ops *ops)
{
    Gavel__Command *copy = malloc(sizeof *copy);
    Gavel__Op **list = malloc(ops->count * sizeof *list);

    if (!copy || !list) {
        free(copy);
        free(list);
        return NULL;
    }
    memcpy(list, ops->list, ops->count * sizeof *list);
    *copy = *command;
    copy->ops = list;
    return copy;
}

static enum gavel_status encode(const struct frontend *frontend, struct frontend_waiting *waiting,
                                const Gavel__Request *request, const struct frontend_ops *ops)
{
    Gavel__Command command = GAVEL__COMMAND__INIT;
    struct table_command head;
    enum gavel_status status;

    command.session = request ? request->session : 0;
    command.id = request ? request->id : 0;
    command.wall_ms = waiting->wall_ms;
    command.generation = frontend->generation;
    command.table_version = frontend->table_version;
    if (request && frontend->table_version >= TABLE_VERSION_0_7)
        command.session_revision = request->session_revision;
    command.n_ops = ops->count;
    command.ops = (Gavel__Op **)(uintptr_t)ops->list; /* packing does not write to them */
    status = table_ops_encode_packed(&command, ops->packed, &waiting->bytes, &waiting->size);
    if (status != GAVEL_OK)
        return status;
    if (waiting->lent) {
        waiting->command = command_of(&command, ops);
        return waiting->command ? GAVEL_OK : GAVEL_ERR_NO_MEMORY;
    }
    /* What was said is gone by the time of the outcome; this is our own copy of it. */
    status = table_command_decode(waiting->bytes, waiting->size, &head);
    if (status != GAVEL_OK)
        return status;
    waiting->command = gavel__command__unpack(NULL, head.value_size, head.value);
    return waiting->command ? GAVEL_OK : GAVEL_ERR_NO_MEMORY;
}

/* Ends that the leader itself proposes do not wait behind all that clients have asked for. */
static void put_in_line(struct frontend *frontend, struct frontend_waiting *waiting)
{
    struct frontend_waiting *other = waiting->is_ours ? TAILQ_FIRST(&frontend->draft) : NULL;

    while (other && other->is_ours)
        other = TAILQ_NEXT(other, in_list);
    if (other)
        TAILQ_INSERT_BEFORE(other, waiting, in_list);
    else
        TAILQ_INSERT_TAIL(&frontend->draft, waiting, in_list);
}

enum gavel_status frontend_draft(struct frontend *frontend, const struct frontend_moment *moment,
                                 const Gavel__Request *request, const struct frontend_ops *ops,
                                 struct frontend_verdict *verdicts, struct frontend_waiting **ret_waiting)
{
    struct frontend_waiting *waiting = NULL;
    enum gavel_status status = GAVEL_ERR_STORE_UNAVAILABLE;

    /* The leader's own are few and must not wait for others. */
    if (request && frontend->waiting_count >= FRONTEND_WAITING_MAX)
        goto out;
    status = GAVEL_ERR_NO_MEMORY;
    waiting = calloc(1, sizeof *waiting);
    if (!waiting)
        goto out;
    waiting->wall_ms = moment->wall_ms;
    waiting->lent = ops->lent;
    if (waiting->lent)
        waiting->lent->users++;
    status = encode(frontend, waiting, request, ops);
    if (status != GAVEL_OK)
        goto out;
    status = GAVEL_ERR_STORE_UNAVAILABLE;
    if (request && frontend->waiting_bytes + waiting->size > FRONTEND_WAITING_BYTES_MAX)
        goto out; /* what comes without a request may be beyond the limit already */
    status = heard_reserve(&frontend->heard, frontend->table);
    if (status != GAVEL_OK)
        goto out;
    ASSERT(frontend->is_open);
    ASSERT(frontend->term > 0);
    ASSERT(waiting->command->n_ops == ops->count);
    ASSERT(waiting->size > 0);
    waiting->term = frontend->term;
    waiting->number = ++frontend->drafted;
    waiting->session = waiting->command->session;
    waiting->id = waiting->command->id;
    waiting->verdicts = verdicts;
    for (size_t i = 0; i < waiting->command->n_ops; i++) {
        frontend_closing_begin(frontend, waiting->command->ops[i], waiting->number);
        frontend_hear_coming(frontend, moment, waiting->command->ops[i]);
    }
    waiting->is_ours = !request && !ops->is_cleaning;
    waiting->is_cleaning = ops->is_cleaning;
    frontend->cleanings += waiting->is_cleaning;
    put_in_line(frontend, waiting);
    if (waiting->session != 0)
        (void)RB_INSERT(frontend_requests, &frontend->requests,
                        waiting); /* a second one of the same id is not indexed */
    frontend->waiting_count++;
    frontend->waiting_bytes += waiting->size;
    *ret_waiting = waiting;
    return GAVEL_OK;
out:
    if (waiting) {
        command_free(waiting);
        free(waiting->bytes);
        free(waiting);
    }
    frontend_verdicts_free(verdicts, ops->count);
    return status;
}

enum gavel_status frontend_draft_opening(struct frontend *frontend, const struct frontend_moment *moment,
                                         const struct frontend_ops *op, struct frontend_waiting *waiting)
{
    struct frontend_waiting *opening;
    enum gavel_status status = frontend_draft(frontend, moment, NULL, op, NULL, &opening);

    ASSERT(waiting->index == 0);
    if (status != GAVEL_OK) {
        TAILQ_REMOVE(&frontend->draft, waiting, in_list);
        waiting_free(frontend, waiting);
        return status;
    }
    opening->is_ours = false;
    opening->campaigns = waiting;
    waiting->opening = opening;
    waiting->has_opening = true;
    TAILQ_REMOVE(&frontend->draft, opening, in_list);
    TAILQ_INSERT_BEFORE(waiting, opening, in_list);
    return GAVEL_OK;
}

struct frontend_waiting *frontend_find_request(struct frontend *frontend, uint64_t session, uint64_t id)
{
    struct frontend_waiting key = {.session = session, .id = id};

    return RB_FIND(frontend_requests, &frontend->requests, &key);
}

static bool has_room_in_flight(const struct frontend *frontend, const struct frontend_waiting *waiting)
{
    return frontend->flight_ops == 0 ||
           frontend->flight_ops + waiting->command->n_ops <= FRONTEND_FLIGHT_OPS_MAX;
}

bool frontend_has_batch(const struct frontend *frontend)
{
    const struct frontend_waiting *waiting = TAILQ_FIRST(&frontend->draft);

    return frontend->is_open && waiting && has_room_in_flight(frontend, waiting);
}

bool frontend_next_batch(struct frontend *frontend, struct frontend_batch *ret_batch)
{
    struct frontend_waiting *waiting;

    ASSERT(TAILQ_EMPTY(&frontend->batch));
    ret_batch->count = 0;
    while (frontend->is_open && ret_batch->count < FRONTEND_BATCH_MAX &&
           (waiting = TAILQ_FIRST(&frontend->draft)) && has_room_in_flight(frontend, waiting)) {
        ASSERT(waiting->index == 0);
        ASSERT(waiting->bytes);
        waiting->is_in_flight = true;
        frontend->flight_ops += waiting->command->n_ops;
        TAILQ_REMOVE(&frontend->draft, waiting, in_list);
        TAILQ_INSERT_TAIL(&frontend->batch, waiting, in_list);
        ret_batch->commands[ret_batch->count] = waiting->bytes;
        ret_batch->sizes[ret_batch->count++] = waiting->size;
    }
    return ret_batch->count > 0;
}

/* For a planted bug. */
static void answer_halfway(struct frontend *frontend)
{
    const struct table_result fine[TABLE_OPS_MAX] = {{.status = GAVEL_OK}};
    struct frontend_waiting *waiting;

    TAILQ_FOREACH(waiting, &frontend->batch, in_list) {
        waiting->opened.why = "";
        if (!waiting->has_opening || !waiting->has_asker)
            continue;
        (void)!frontend_reply_opening(frontend, 0, waiting, GAVEL_OK, fine, waiting->command->n_ops);
        waiting->has_asker = false;
    }
}

void frontend_proposed(struct frontend *frontend, enum gavel_status status, uint64_t first, uint64_t term)
{
    struct frontend_waiting *waiting;

    ASSERT(!TAILQ_EMPTY(&frontend->batch));
    /* A leader that is handing over takes no entries, and one that has just stepped down is none: whoever
     * leads next does. */
    if (status == GAVEL_ERR_STATE || status == GAVEL_ERR_NO_LEADER)
        status = GAVEL_ERR_NOT_LEADER;
    if (status != GAVEL_OK) {
        const char *why = "the cluster accepts no writes at the moment; try again";

        if (status == GAVEL_ERR_STORE_UNAVAILABLE)
            why =
                "too many writes wait for a majority of the nodes to store them; nothing was written: look at the disks and "
                "links of the other nodes (`gavel status`), and try again";
        dismiss_all(frontend, &frontend->batch, status, status == GAVEL_ERR_NOT_LEADER ? NOT_LEADING : why);
        return;
    }
    ASSERT(first > 0);
    TAILQ_FOREACH(waiting, &frontend->batch, in_list) {
        free(waiting->bytes);
        waiting->bytes = NULL;
        waiting->index = first++;
        ASSERT(waiting->is_in_flight);
    }
    if (PLANTED(ANSWERED_HALFWAY))
        answer_halfway(frontend);
    if (term != frontend->term)
        dismiss_all(frontend, &frontend->batch, GAVEL_ERR_NOT_LEADER, NOT_LEADING);
    TAILQ_CONCAT(&frontend->waiting, &frontend->batch, in_list);
    ASSERT(TAILQ_EMPTY(&frontend->batch));
}

/* The outcome is known: it is told. */
static void finish(struct frontend *frontend, gavel_ns now, bool is_working,
                   const struct frontend_waiting *waiting, enum gavel_status status,
                   const struct table_result *results, size_t count)
{
    Gavel__Op *const *ops = waiting->command->ops;
    bool extends = false;

    if (!waiting->has_asker)
        return;
    for (size_t i = 0; i < waiting->command->n_ops; i++)
        extends = extends || frontend_extends(ops[i]);
    /* Whoever counts a deadline from this answer must not get it from a leader whose successor may have begun
     * to count already. */
    if ((extends && !is_working) || (waiting->has_opening && !waiting->is_opened)) {
        frontend_reply_status(frontend, waiting->ticket, waiting->tag,
                              waiting->session != 0 ? GAVEL_ERR_NOT_LEADER : GAVEL_ERR_STORE_UNAVAILABLE,
                              waiting->session != 0 ? NOT_LEADING : LOST);
        return;
    }
    if (waiting->has_opening)
        status = frontend_reply_opening(frontend, now, waiting, status, results, count);
    else if (status == GAVEL_OK && count == waiting->command->n_ops)
        status = frontend_reply_results(frontend, now, waiting->ticket, waiting->tag, waiting->session, ops,
                                        results, count, waiting->verdicts);
    else if (status != GAVEL_OK)
        frontend_reply_status(frontend, waiting->ticket, waiting->tag, status, gavel_status_text(status));
    else
        frontend_reply_status(frontend, waiting->ticket, waiting->tag, GAVEL_ERR_STATE,
                              "the id of this request was used for another one; ids of a session only grow");
    /* There was no memory to say what came of it; a request of a session is asked again by its id. */
    if (status == GAVEL_ERR_NO_MEMORY)
        frontend_reply_status(frontend, waiting->ticket, waiting->tag,
                              waiting->session != 0 ? GAVEL_ERR_NOT_LEADER : GAVEL_ERR_NO_MEMORY, LOST);
}

/* For a planted bug. */
static void unhear(struct frontend *frontend, uint64_t id)
{
    const struct table_session *session = table_session_find(frontend->table, id);
    struct heard_session *heard = session ? heard_of_session(&frontend->heard, session) : NULL;

    if (heard)
        heard->heard_at = frontend->began_at;
}

const Gavel__Command *frontend_command(const struct frontend *frontend, uint64_t index, uint64_t term,
                                       size_t size)
{
    const struct frontend_waiting *waiting = TAILQ_FIRST(&frontend->waiting);

    while (waiting && waiting->index < index)
        waiting = TAILQ_NEXT(waiting, in_list);
    if (!waiting || waiting->index != index || waiting->term != term)
        return NULL;
    /* That its bytes mean the same is known from how they were made: this is only to notice a mistake of
     * ours, cheaply. */
    ASSERT(waiting->size == size);
    /* While older rules apply, we read what the others read, no more. */
    return waiting->command->table_version >= TABLE_VERSION ? waiting->command : NULL;
}

/* A session that was not there before this entry. */
static bool opens_now(const struct frontend *frontend, const struct frontend_waiting *waiting,
                      uint64_t revision_before)
{
    const Gavel__Op *op = waiting->command->ops[0];
    const struct table_session *session = op->what_case == GAVEL__OP__WHAT_OPEN_SESSION
                                              ? table_session_find(frontend->table, op->open_session->session)
                                              : NULL;

    return waiting->command->n_ops == 1 && session && session->create_revision > revision_before;
}

void frontend_applied(struct frontend *frontend, gavel_ns now, bool is_working, uint64_t index, uint64_t term,
                      enum gavel_status status, const struct table_result *results, size_t count)
{
    struct frontend_waiting *waiting = TAILQ_FIRST(&frontend->waiting);
    struct frontend_moment moment = {.now = now};
    uint64_t revision_before = frontend->revision;

    frontend->expiry.has_news = true;
    expiry_sessions_are_ending(frontend, now);
    balance_changed(frontend, now);
    frontend->after = 0;
    frontend->revision = frontend->table->revision;
    applied_mark(&frontend->applied, frontend->table->revision, now);
    while (waiting && (waiting->index < index || (waiting->index == index && waiting->term != term))) {
        struct frontend_waiting *next = TAILQ_NEXT(waiting, in_list);

        TAILQ_REMOVE(&frontend->waiting, waiting, in_list);
        dismiss(frontend, waiting, GAVEL_ERR_NOT_LEADER, NOT_LEADING);
        waiting = next;
    }
    if (!waiting || waiting->index != index)
        return; /* another's */
    ASSERT(waiting->term == term);
    ASSERT(waiting->is_in_flight);
    TAILQ_REMOVE(&frontend->waiting, waiting, in_list);
    moment.wall_ms = waiting->wall_ms;
    close_ends(frontend, waiting);
    if (waiting->campaigns) {
        waiting->campaigns->is_opened = true;
        waiting->campaigns->opened =
            count == 1 ? results[0] : (struct table_result){.status = status, .why = ""};
    }
    for (size_t i = 0; status == GAVEL_OK && i < waiting->command->n_ops && i < count; i++)
        (void)frontend_hear(frontend, &moment, waiting->command->ops[i], results[i].status);
    if (opens_now(frontend, waiting, revision_before))
        frontend->after = 0; /* every node knows when it has applied that */
    if (waiting->campaigns)
        waiting->campaigns->after = frontend->after;
    if (waiting->after > frontend->after)
        frontend->after = waiting->after;
    if (PLANTED(OPENING_UNHEARD) && waiting->campaigns)
        unhear(frontend, waiting->command->ops[0]->open_session->session);
    finish(frontend, now, is_working, waiting, status, results, count);
    waiting_free(frontend, waiting);
}
