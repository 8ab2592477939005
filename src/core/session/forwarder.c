/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of a forwarded request:
 *
 *     taken ──► waits ──► outgoing ──► out ──► answered
 *                 ▲           │         │
 *                 └───────────┴─────────┘
 *                   unsent, refused, new leader, no answer for long
 *
 * and from anywhere to its end when its time is over. Forwardings stand in a list,
 * keep-alives before the others and of these the oldest first; whoever is due is found by walking it, which
 * happens only when something is due: wake_at is a lower bound of that.
 */

#include "core/session/forwarder.h"

#include "base/assert.h"
#include "base/planted.h"

#include "core/session/forwarder_internal.h"
#include "wire/client.h"
#include "wire/client_survey.h"

#include <stdlib.h>

/* What a frame between nodes has room for. */
#define FRAME_MAX (CLIENT_FRAME_MAX - 64)

static const char unknown_outcome[] = "the outcome is not known; read it back";
static const char out_of_memory[] = "the node is out of memory; try again later";
static const char too_large[] = "it is larger than what can be carried; ask for less at once";
static const char too_busy[] = "too much waits for the leader of the cluster already; try again later";

static int compare(const struct forwarder_forwarding *a, const struct forwarder_forwarding *b)
{
    return (a->number > b->number) - (a->number < b->number);
}

RB_GENERATE_INTERNAL(forwarder_numbers, forwarder_forwarding, by_number, compare,
                     static __attribute__((unused)))

static void forwarding_free(struct forwarder_forwarding *forwarding)
{
    if (!forwarding)
        return;
    for (size_t i = 0; i < forwarding->part_count; i++)
        forwarder_answer_free(forwarding->parts[i].answer);
    forwarder_answer_free(forwarding->answer);
    free(forwarding->bytes);
    free(forwarding->parts);
    free(forwarding->sessions);
    free(forwarding->principals);
    free(forwarding);
}

void forwarder_init(struct forwarder *forwarder)
{
    *forwarder = (struct forwarder){.wake_at = NEVER};
    TAILQ_INIT(&forwarder->forwardings);
    TAILQ_INIT(&forwarder->outgoing);
    STAILQ_INIT(&forwarder->answers);
    RB_INIT(&forwarder->by_number);
}

static bool is_keep_alive(const struct forwarder_forwarding *forwarding)
{
    return forwarding->part_count > 0;
}

static void take_from_outgoing(struct forwarder *forwarder, struct forwarder_forwarding *forwarding)
{
    if (forwarding->is_outgoing)
        TAILQ_REMOVE(&forwarder->outgoing, forwarding, in_outgoing);
    forwarding->is_outgoing = false;
}

static void drop(struct forwarder *forwarder, struct forwarder_forwarding *forwarding)
{
    ASSERT(forwarder->count > 0);
    ASSERT(forwarder->bytes >= forwarding->size);
    take_from_outgoing(forwarder, forwarding);
    if (is_keep_alive(forwarding)) {
        ASSERT(forwarder->keep_alives > 0);
        forwarder->keep_alives--;
    }
    TAILQ_REMOVE(&forwarder->forwardings, forwarding, in_order);
    (void)RB_REMOVE(forwarder_numbers, &forwarder->by_number, forwarding);
    forwarder->count--;
    forwarder->bytes -= forwarding->size;
    forwarding_free(forwarding);
}

void forwarder_done(struct forwarder *forwarder)
{
    struct forwarder_forwarding *forwarding;
    struct forwarder_answer *answer;

    while ((forwarding = TAILQ_FIRST(&forwarder->forwardings)))
        drop(forwarder, forwarding);
    while ((answer = forwarder_take_answer(forwarder)))
        forwarder_answer_free(answer);
    forwarding_free(forwarder->gathering);
    forwarder->gathering = NULL;
    ASSERT(TAILQ_EMPTY(&forwarder->outgoing));
    ASSERT(forwarder->count == 0);
    ASSERT(forwarder->bytes == 0);
    ASSERT(forwarder->keep_alives == 0);
    ASSERT(RB_EMPTY(&forwarder->by_number));
}

static void doubt(struct forwarder *forwarder, gavel_ns now)
{
    if (forwarder->is_doubted)
        return;
    forwarder->is_doubted = true;
    forwarder->probe_at = now + FORWARDER_RETRY;
}

/* When something must be done about it, as things stand. */
static gavel_ns due_at(const struct forwarder *forwarder, const struct forwarder_forwarding *forwarding)
{
    gavel_ns carry_at = forwarding->is_out ? forwarding->again_at : 0;

    if (forwarder->leader == 0)
        return forwarding->give_up_at;
    if (forwarder->is_doubted)
        carry_at = ns_max(carry_at, forwarder->probe_at);
    return ns_min(carry_at, forwarding->give_up_at);
}

/* What must not be carried twice has a new number each time: a refusal that comes late, or again, is of
 * another time, and must not have it carried once more. */
static void renumber(struct forwarder *forwarder, struct forwarder_forwarding *forwarding)
{
    ASSERT(!forwarding->is_out);
    ASSERT(forwarding->number <= forwarder->numbers);
    (void)RB_REMOVE(forwarder_numbers, &forwarder->by_number, forwarding);
    forwarding->number = ++forwarder->numbers;
    (void)RB_INSERT(forwarder_numbers, &forwarder->by_number, forwarding); /* the number is new */
}

/* To the leader that there is. */
static void carry(struct forwarder *forwarder, gavel_ns now, struct forwarder_forwarding *forwarding)
{
    ASSERT(forwarder->leader != 0);
    ASSERT(forwarding->bytes);
    if (!forwarding->may_repeat)
        ASSERT(!forwarding->is_out); /* what must not be carried twice is under way once at the most */
    if (forwarding->has_been_out && !forwarding->may_repeat)
        renumber(forwarder, forwarding);
    take_from_outgoing(forwarder, forwarding); /* it waited for a leader that is none any more */
    TAILQ_INSERT_TAIL(&forwarder->outgoing, forwarding, in_outgoing);
    forwarding->is_outgoing = forwarding->is_out = true;
    forwarding->had_been_out = forwarding->has_been_out;
    forwarding->has_been_out = true;
    forwarding->node = forwarder->leader;
    forwarding->term = forwarder->term;
    forwarding->again_at = forwarding->may_repeat ? now + FORWARDER_AGAIN : NEVER;
}

uint64_t forwarder_delivers_to(const struct forwarder *forwarder)
{
    const struct forwarder_forwarding *forwarding = TAILQ_FIRST(&forwarder->outgoing);

    return forwarding ? forwarding->node : 0;
}

bool forwarder_take_delivery(struct forwarder *forwarder, struct forwarder_delivery *ret_delivery)
{
    struct forwarder_forwarding *forwarding = TAILQ_FIRST(&forwarder->outgoing);

    if (!forwarding)
        return false;
    ASSERT(forwarding->is_out);
    take_from_outgoing(forwarder, forwarding);
    forwarder->counts.carried++;
    if (forwarding->had_been_out)
        forwarder->counts.again++;
    *ret_delivery = (struct forwarder_delivery){.node = forwarding->node,
                                                .number = forwarding->number,
                                                .bytes = forwarding->bytes + CLIENT_LENGTH_BYTES,
                                                .size = forwarding->size - CLIENT_LENGTH_BYTES};
    return true;
}

void forwarder_unsent(struct forwarder *forwarder, gavel_ns now, uint64_t number)
{
    struct forwarder_forwarding wanted = {.number = number};
    struct forwarder_forwarding *forwarding = RB_FIND(forwarder_numbers, &forwarder->by_number, &wanted);

    if (!forwarding || !forwarding->is_out || forwarding->is_outgoing)
        return;
    forwarding->is_out = false;
    forwarding->has_been_out = forwarding->had_been_out;
    doubt(forwarder, now);
    forwarder->wake_at = ns_min(forwarder->wake_at, due_at(forwarder, forwarding));
}

/*
 * Whoever asked is gone, and would not know of the session, nor of what it was elected for, until that ends
 * by itself. If only the connection is gone, the client asks again through another node.
 */
static bool is_pointless(const struct forwarder_forwarding *forwarding)
{
    return forwarding->is_gone && forwarding->opens;
}

static void give_up(struct forwarder *forwarder, struct forwarder_forwarding *forwarding)
{
    forwarder->counts.timed_out++;
    if (!forwarding->may_repeat && forwarding->is_out)
        forwarder_fail_forwarding(forwarder, forwarding, GAVEL_ERR_TIMEOUT, unknown_outcome);
    else if (forwarding->may_repeat && forwarding->has_been_out)
        forwarder_fail_forwarding(forwarder, forwarding, GAVEL_ERR_TIMEOUT,
                                  "the leader of the cluster did not answer in time; ask again");
    else
        forwarder_fail_forwarding(forwarder, forwarding, GAVEL_ERR_STORE_UNAVAILABLE,
                                  forwarder->leader == 0
                                      ? "the cluster has no leader at the moment; try again"
                                      : "the leader of the cluster could not be reached; try again");
}

/* Carries what is due, ends what is over, and finds out when to look again. */
static void work(struct forwarder *forwarder, gavel_ns now)
{
    size_t left = forwarder->leader != 0 ? FORWARDER_PORTION : 0;
    bool has_more = false;
    struct forwarder_forwarding *forwarding, *next;

    if (forwarder->is_doubted) {
        left = left > 0 && now >= forwarder->probe_at ? FORWARDER_PROBES : 0;
        if (left > 0)
            forwarder->probe_at = now + FORWARDER_RETRY;
    }
    forwarder->wake_at = NEVER;
    for (forwarding = TAILQ_FIRST(&forwarder->forwardings); forwarding; forwarding = next) {
        next = TAILQ_NEXT(forwarding, in_order);
        if (forwarding->give_up_at <= now) {
            give_up(forwarder, forwarding);
            drop(forwarder, forwarding);
            continue;
        }
        if (is_pointless(forwarding) && (!forwarding->is_out || forwarding->again_at <= now)) {
            drop(forwarder, forwarding);
            continue;
        }
        if (left > 0 && (!forwarding->is_out || forwarding->again_at <= now)) {
            left--;
            carry(forwarder, now, forwarding);
        }
        if (due_at(forwarder, forwarding) > now)
            forwarder->wake_at = ns_min(forwarder->wake_at, due_at(forwarder, forwarding));
        else
            has_more = true; /* in the next portion, with whatever else is due in between */
    }
    if (has_more)
        forwarder->wake_at = ns_min(forwarder->wake_at, now + FORWARDER_MORE);
}

/* A frame as it will be carried. */
static enum gavel_status pack(const Gavel__ClientFrame *frame, uint8_t **ret_bytes, size_t *ret_size,
                              const char **ret_reason)
{
    uint8_t *bytes;
    size_t size;
    enum gavel_status status = client_frame_pack(frame, &bytes, &size);
    const char *reason = NULL;

    if (status == GAVEL_ERR_NO_MEMORY) {
        *ret_reason = out_of_memory;
        return status;
    }
    if (status != GAVEL_OK) {
        *ret_reason = too_large;
        return GAVEL_ERR_TOO_LARGE;
    }
    if (size - CLIENT_LENGTH_BYTES > FRAME_MAX) {
        reason = too_large;
        status = GAVEL_ERR_TOO_LARGE;
    } else { /* whoever decides decodes it; what it could not take is refused here */
        reason = client_survey(bytes + CLIENT_LENGTH_BYTES, size - CLIENT_LENGTH_BYTES);
        status = reason ? GAVEL_ERR_INVALID : GAVEL_OK;
    }
    if (status != GAVEL_OK) {
        *ret_reason = reason;
        free(bytes);
        return status;
    }
    *ret_bytes = bytes;
    *ret_size = size;
    return GAVEL_OK;
}

enum gavel_status forwarder_question_pack(const Gavel__ClientFrame *frame,
                                          struct forwarder_question *ret_question, const char **ret_reason)
{
    struct forwarder_question question = {.what = frame->what_case, .may_repeat = true};
    enum gavel_status status = pack(frame, &question.bytes, &question.size, ret_reason);

    if (status != GAVEL_OK)
        return status;
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REQUEST) {
        const Gavel__Request *request = frame->request;

        question.tag = request->tag;
        question.timeout_ms = request->timeout_ms;
        question.may_repeat = request->session != 0;
        question.opens = request->n_ops > 0 && request->ops[0]->what_case == GAVEL__OP__WHAT_OPEN_SESSION;
    } else {
        ASSERT(frame->what_case == GAVEL__CLIENT_FRAME__WHAT_ASK);
        question.tag = frame->ask->tag;
    }
    *ret_question = question;
    return GAVEL_OK;
}

void forwarder_question_done(struct forwarder_question *question)
{
    free(question->bytes);
    *question = (struct forwarder_question){0};
}

/* Takes a sealed forwarding into the list, and carries it at once if that can be. */
static void send_off(struct forwarder *forwarder, gavel_ns now, struct forwarder_forwarding *forwarding)
{
    bool may_carry = forwarder->leader != 0 && !forwarder->is_doubted;

    ASSERT(forwarding->bytes);
    ASSERT(!forwarding->has_been_out);
    forwarding->number = ++forwarder->numbers;
    if (is_keep_alive(forwarding)) {
        TAILQ_INSERT_HEAD(&forwarder->forwardings, forwarding, in_order);
        forwarder->keep_alives++;
        may_carry = may_carry || (forwarder->leader != 0 && now >= forwarder->probe_at);
    } else {
        TAILQ_INSERT_TAIL(&forwarder->forwardings, forwarding, in_order);
    }
    (void)RB_INSERT(forwarder_numbers, &forwarder->by_number, forwarding); /* the number is new */
    forwarder->count++;
    forwarder->bytes += forwarding->size;
    if (may_carry)
        carry(forwarder, now, forwarding);
    forwarder->wake_at = ns_min(forwarder->wake_at, due_at(forwarder, forwarding));
}

static bool is_too_busy(const struct forwarder *forwarder)
{
    return forwarder->count >= FORWARDER_FORWARDINGS_MAX || forwarder->bytes >= FORWARDER_BYTES_MAX;
}

/* The keep-alives that were gathered become a forwarded request. */
static void send_gathered(struct forwarder *forwarder, gavel_ns now)
{
    struct forwarder_forwarding *forwarding = forwarder->gathering;
    Gavel__ClientFrame frame;
    Gavel__KeepAlive keep_alive;
    const char *reason = "";
    enum gavel_status status;

    ASSERT(is_keep_alive(forwarding));
    forwarder->gathering = NULL;
    gavel__client_frame__init(&frame);
    gavel__keep_alive__init(&keep_alive);
    keep_alive.n_sessions = forwarding->session_count;
    keep_alive.sessions = forwarding->sessions;
    keep_alive.n_principals = forwarding->tells_no_principals ? 0 : forwarding->session_count;
    keep_alive.principals = forwarding->principals;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE;
    frame.keep_alive = &keep_alive;
    status = pack(&frame, &forwarding->bytes, &forwarding->size, &reason);
    if (status == GAVEL_OK) {
        forwarding->what = frame.what_case;
        send_off(forwarder, now, forwarding);
        return;
    }
    forwarder_fail_forwarding(forwarder, forwarding, status, reason);
    forwarding_free(forwarding);
}

/* When they go. A leader that is in doubt is tried with them first of all; the next ones go on gathering
 * until those are on their way. */
static gavel_ns gathered_at(const struct forwarder *forwarder)
{
    const struct forwarder_forwarding *first = TAILQ_FIRST(&forwarder->forwardings);

    if (!forwarder->gathering || forwarder->leader == 0)
        return NEVER;
    if (!forwarder->is_doubted)
        return forwarder->gather_until;
    if (first && is_keep_alive(first) && !first->is_out)
        return NEVER;
    return ns_max(forwarder->gather_until, forwarder->probe_at);
}

static void tend_gathered(struct forwarder *forwarder, gavel_ns now)
{
    struct forwarder_forwarding *forwarding = forwarder->gathering;

    if (now >= gathered_at(forwarder)) {
        send_gathered(forwarder, now);
    } else if (forwarding && forwarding->give_up_at <= now) {
        forwarder->gathering = NULL;
        give_up(forwarder, forwarding);
        forwarding_free(forwarding);
    }
}

static void take_keep_alive(struct forwarder *forwarder, gavel_ns now, uint64_t client,
                            const Gavel__ClientFrame *frame, struct forwarder_answer *answer)
{
    const Gavel__KeepAlive *keep_alive = frame->keep_alive;
    enum gavel_status status = GAVEL_OK;

    if (keep_alive->n_sessions > CLIENT_SESSIONS_MAX) {
        forwarder_fail(forwarder, &answer, client, keep_alive->tag, frame->what_case, GAVEL_ERR_INVALID, "");
        return;
    }
    if (forwarder->gathering &&
        (forwarder->gathering->session_count + keep_alive->n_sessions > CLIENT_SESSIONS_MAX ||
         forwarder->gathering->part_count == CLIENT_SESSIONS_MAX))
        send_gathered(forwarder, now);
    /* However many requests wait: nobody's session shall end for what others ask. */
    if (!forwarder->gathering && forwarder->keep_alives >= FORWARDER_KEEP_ALIVES_MAX) {
        status = GAVEL_ERR_STORE_UNAVAILABLE;
    } else if (!forwarder->gathering) {
        forwarder->gathering = calloc(1, sizeof *forwarder->gathering);
        if (forwarder->gathering) {
            forwarder->gathering->may_repeat = true;
            forwarder->gathering->give_up_at = now + FORWARDER_KEEP_TIMEOUT;
            forwarder->gather_until = now + FORWARDER_GATHER;
        } else {
            status = GAVEL_ERR_NO_MEMORY;
        }
    }
    if (status == GAVEL_OK)
        status = forwarder_merge(forwarder->gathering, client, keep_alive, &answer);
    if (status == GAVEL_OK)
        return;
    forwarder_fail(forwarder, &answer, client, keep_alive->tag, frame->what_case, status, "");
    if (forwarder->gathering && !is_keep_alive(forwarder->gathering)) { /* it was for nobody else */
        forwarding_free(forwarder->gathering);
        forwarder->gathering = NULL;
    }
}

/* Takes the bytes of the question, or answers that it cannot be carried. */
static void take_question(struct forwarder *forwarder, gavel_ns now, uint64_t client,
                          struct forwarder_question *question, struct forwarder_answer *answer)
{
    gavel_ns timeout = question->timeout_ms > 0 ? ns_from_ms(question->timeout_ms) : FORWARDER_TIMEOUT;
    struct forwarder_forwarding *forwarding = is_too_busy(forwarder) ? NULL : calloc(1, sizeof *forwarding);

    ASSERT(question->bytes);
    if (!forwarding) {
        bool is_busy = is_too_busy(forwarder);

        forwarder_fail(forwarder, &answer, client, question->tag, question->what,
                       is_busy ? GAVEL_ERR_STORE_UNAVAILABLE : GAVEL_ERR_NO_MEMORY,
                       is_busy ? too_busy : out_of_memory);
        forwarder_question_done(question);
        return;
    }
    forwarding->answer = answer;
    forwarding->client = client;
    forwarding->what = question->what;
    forwarding->tag = question->tag;
    forwarding->may_repeat = question->may_repeat;
    forwarding->opens = question->opens;
    forwarding->bytes = question->bytes;
    forwarding->size = question->size;
    question->bytes = NULL; /* taken */
    if (PLANTED(CARRIED_TWICE))
        forwarding->may_repeat = true;
    forwarding->give_up_at = now + ns_min(timeout, FORWARDER_TIMEOUT_MAX);
    send_off(forwarder, now, forwarding);
}

/* One that is not packed yet. */
static void take_frame(struct forwarder *forwarder, gavel_ns now, uint64_t client, uint64_t tag,
                       const Gavel__ClientFrame *frame, struct forwarder_answer *answer)
{
    struct forwarder_question question;
    const char *reason = too_busy;
    enum gavel_status status = GAVEL_ERR_STORE_UNAVAILABLE;

    if (!is_too_busy(forwarder))
        status = forwarder_question_pack(frame, &question, &reason);
    if (status == GAVEL_OK)
        take_question(forwarder, now, client, &question, answer);
    else
        forwarder_fail(forwarder, &answer, client, tag, frame->what_case, status, reason);
}

enum gavel_status forwarder_take_question(struct forwarder *forwarder, gavel_ns now, uint64_t client,
                                          struct forwarder_question *question)
{
    struct forwarder_answer *answer = calloc(1, sizeof *answer);

    if (!answer)
        return GAVEL_ERR_NO_MEMORY;
    forwarder->counts.taken++;
    take_question(forwarder, now, client, question, answer);
    return GAVEL_OK;
}

enum gavel_status forwarder_take(struct forwarder *forwarder, gavel_ns now, uint64_t client,
                                 const Gavel__ClientFrame *frame)
{
    struct forwarder_answer *answer = calloc(1, sizeof *answer);

    if (!answer)
        return GAVEL_ERR_NO_MEMORY;
    forwarder->counts.taken++;
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REQUEST)
        take_frame(forwarder, now, client, frame->request->tag, frame, answer);
    else if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_ASK)
        take_frame(forwarder, now, client, frame->ask->tag, frame, answer);
    else if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE)
        take_keep_alive(forwarder, now, client, frame, answer);
    else
        forwarder_fail(forwarder, &answer, client, 0, frame->what_case, GAVEL_ERR_INVALID,
                       "this is not for the leader of the cluster");
    return GAVEL_OK;
}

static void forget_parts(struct forwarder_forwarding *forwarding, uint64_t client)
{
    for (size_t i = 0; i < forwarding->part_count; i++)
        if (forwarding->parts[i].client == client)
            forwarding->parts[i].is_gone = true;
}

void forwarder_forget(struct forwarder *forwarder, uint64_t client)
{
    struct forwarder_forwarding *forwarding, *next;

    if (forwarder->gathering)
        forget_parts(forwarder->gathering, client);
    for (forwarding = TAILQ_FIRST(&forwarder->forwardings); forwarding; forwarding = next) {
        next = TAILQ_NEXT(forwarding, in_order);
        forget_parts(forwarding, client);
        if (forwarding->part_count > 0 || forwarding->client != client)
            continue;
        forwarding->is_gone = true;
        if (forwarding->what == GAVEL__CLIENT_FRAME__WHAT_ASK)
            drop(forwarder, forwarding); /* of a question the answer is all there is */
        else if (is_pointless(forwarding) && (!forwarding->is_out || forwarding->is_outgoing))
            drop(forwarder, forwarding);
    }
}

/* It was not done, or it may be done again: see frontend.c for what ERR_NOT_LEADER says of a write. */
static void refused(struct forwarder *forwarder, gavel_ns now, struct forwarder_forwarding *forwarding)
{
    take_from_outgoing(forwarder, forwarding);
    forwarding->is_out = false;
    if (forwarder->leader != 0)
        doubt(forwarder, now);
    forwarder->wake_at = ns_min(forwarder->wake_at, due_at(forwarder, forwarding));
}

void forwarder_reply(struct forwarder *forwarder, gavel_ns now, uint64_t number, Gavel__ClientFrame **frame)
{
    struct forwarder_forwarding wanted = {.number = number};
    struct forwarder_forwarding *forwarding = RB_FIND(forwarder_numbers, &forwarder->by_number, &wanted);
    enum gavel_status status;

    if (!forwarding || !forwarder_status_of(forwarding, *frame, &status))
        return;
    if (status == GAVEL_ERR_NOT_LEADER) {
        refused(forwarder, now, forwarding);
        return;
    }
    forwarder_answer_forwarding(forwarder, forwarding, frame);
    drop(forwarder, forwarding);
    if (!forwarder->is_doubted)
        return;
    forwarder->is_doubted = false;
    tend_gathered(forwarder, now); /* before there is no room for them any more */
    work(forwarder, now);
}

void forwarder_leader(struct forwarder *forwarder, gavel_ns now, uint64_t leader, uint64_t term)
{
    struct forwarder_forwarding *forwarding, *next;

    if (leader == forwarder->leader && term == forwarder->term)
        return;
    forwarder->leader = leader;
    forwarder->term = term;
    forwarder->is_doubted = false;
    if (leader == 0)
        return;
    for (forwarding = TAILQ_FIRST(&forwarder->forwardings); forwarding; forwarding = next) {
        next = TAILQ_NEXT(forwarding, in_order);
        if (forwarding->may_repeat) {
            forwarding->is_out = false;
        } else if (forwarding->is_out && (forwarding->node != leader || forwarding->term != term)) {
            forwarder_fail_forwarding(forwarder, forwarding, GAVEL_ERR_TIMEOUT, unknown_outcome);
            drop(forwarder, forwarding);
        }
    }
    tend_gathered(forwarder, now);
    work(forwarder, now);
}

void forwarder_tick(struct forwarder *forwarder, gavel_ns now)
{
    tend_gathered(forwarder, now);
    if (now >= forwarder->wake_at)
        work(forwarder, now);
}

gavel_ns forwarder_wake_at(const struct forwarder *forwarder)
{
    gavel_ns at = ns_min(forwarder->wake_at, gathered_at(forwarder));

    return forwarder->gathering ? ns_min(at, forwarder->gathering->give_up_at) : at;
}
