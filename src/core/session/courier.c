/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of an errand:
 *
 *     taken ──► waits ──────────────────► out ──► answered
 *                 ▲  deliver()              │
 *                 └── refused, new leader, ─┘
 *                     no answer for long
 *
 * and from anywhere to its end when its time is over. Errands stand in a list,
 * keep-alives before the others and of these the oldest first; whoever is due is found by walking it, which
 * happens only when something is due: wake_at is a lower bound of that.
 */

#include "core/session/courier.h"

#include "base/planted.h"

#include "core/session/courier_internal.h"
#include "wire/client.h"

#include <stdlib.h>

/* What a frame between nodes has room for. */
#define FRAME_MAX (CLIENT_FRAME_MAX - 64)

static const char unknown_outcome[] = "the outcome is not known; read it back";
static const char crowded[] = "too much waits for the leader of the quorum already; try again later";

static int compare(const struct courier_errand *a, const struct courier_errand *b)
{
    return (a->number > b->number) - (a->number < b->number);
}

RB_GENERATE_INTERNAL(courier_numbers, courier_errand, by_number, compare, static __attribute__((unused)))

static void errand_free(struct courier_errand *errand)
{
    if (!errand)
        return;
    client_frame_free(errand->frame);
    free(errand->bytes);
    free(errand->parts);
    free(errand->sessions);
    free(errand->principals);
    free(errand);
}

void courier_init(struct courier *courier, const struct courier_hands *hands)
{
    *courier = (struct courier){.hands = *hands, .wake_at = NEVER};
    TAILQ_INIT(&courier->errands);
    RB_INIT(&courier->by_number);
}

static bool is_keep_alive(const struct courier_errand *errand) { return errand->part_count > 0; }

static void drop(struct courier *courier, struct courier_errand *errand)
{
    if (is_keep_alive(errand))
        courier->keep_alives--;
    TAILQ_REMOVE(&courier->errands, errand, in_order);
    (void)RB_REMOVE(courier_numbers, &courier->by_number, errand);
    courier->count--;
    courier->bytes -= errand->size;
    errand_free(errand);
}

void courier_done(struct courier *courier)
{
    struct courier_errand *errand;

    while ((errand = TAILQ_FIRST(&courier->errands)))
        drop(courier, errand);
    errand_free(courier->gathering);
    courier->gathering = NULL;
}

static void doubt(struct courier *courier, gavel_ns now)
{
    if (courier->is_doubted)
        return;
    courier->is_doubted = true;
    courier->probe_at = now + COURIER_RETRY;
}

/* When something must be done about it, as things stand. */
static gavel_ns due_at(const struct courier *courier, const struct courier_errand *errand)
{
    gavel_ns carry_at = errand->is_out ? errand->again_at : 0;

    if (courier->leader == 0)
        return errand->give_up_at;
    if (courier->is_doubted)
        carry_at = ns_max(carry_at, courier->probe_at);
    return ns_min(carry_at, errand->give_up_at);
}

/* What must not be carried twice has a new number each time: a refusal that comes late, or again, is of
 * another time, and must not have it carried once more. */
static void renumber(struct courier *courier, struct courier_errand *errand)
{
    (void)RB_REMOVE(courier_numbers, &courier->by_number, errand);
    errand->number = ++courier->numbers;
    (void)RB_INSERT(courier_numbers, &courier->by_number, errand); /* the number is new */
}

/* To the leader that there is. */
static bool carry(struct courier *courier, gavel_ns now, struct courier_errand *errand)
{
    if (errand->has_been_out && !errand->may_repeat)
        renumber(courier, errand);
    errand->is_out =
        courier->hands.deliver(courier->hands.user, courier->leader, errand->number, errand->frame,
                               errand->bytes + CLIENT_LENGTH_BYTES, errand->size - CLIENT_LENGTH_BYTES);
    if (!errand->is_out) {
        doubt(courier, now);
        return false;
    }
    courier->counts.carried++;
    if (errand->has_been_out)
        courier->counts.again++;
    errand->has_been_out = true;
    errand->node = courier->leader;
    errand->term = courier->term;
    errand->again_at = errand->may_repeat ? now + COURIER_AGAIN : NEVER;
    return true;
}

static void give_up(struct courier *courier, struct courier_errand *errand)
{
    courier->counts.timed_out++;
    if (!errand->may_repeat && errand->is_out)
        courier_fail_errand(courier, errand, GAVEL_ERR_TIMEOUT, unknown_outcome);
    else if (errand->may_repeat && errand->has_been_out)
        courier_fail_errand(courier, errand, GAVEL_ERR_TIMEOUT,
                            "the leader of the quorum did not answer in time; ask again");
    else
        courier_fail_errand(courier, errand, GAVEL_ERR_STORE_UNAVAILABLE,
                            courier->leader == 0
                                ? "the quorum has no leader at the moment; try again"
                                : "the leader of the quorum could not be reached; try again");
}

/* Carries what is due, ends what is over, and finds out when to look again. */
static void work(struct courier *courier, gavel_ns now)
{
    size_t left = courier->leader != 0 ? SIZE_MAX : 0;
    struct courier_errand *errand, *next;

    if (courier->is_doubted) {
        left = left > 0 && now >= courier->probe_at ? COURIER_PROBES : 0;
        if (left > 0)
            courier->probe_at = now + COURIER_RETRY;
    }
    courier->wake_at = NEVER;
    for (errand = TAILQ_FIRST(&courier->errands); errand; errand = next) {
        next = TAILQ_NEXT(errand, in_order);
        if (errand->give_up_at <= now) {
            give_up(courier, errand);
            drop(courier, errand);
            continue;
        }
        if (left > 0 && (!errand->is_out || errand->again_at <= now)) {
            left--;
            if (!carry(courier, now, errand))
                left = 0;
        }
        courier->wake_at = ns_min(courier->wake_at, due_at(courier, errand));
    }
}

/* Its frame as it will be carried: packed, and a copy of its own. */
static enum gavel_status seal(struct courier_errand *errand, const Gavel__ClientFrame *frame,
                              const char **ret_reason)
{
    enum gavel_status status = client_frame_pack(frame, &errand->bytes, &errand->size);

    if (status == GAVEL_ERR_NO_MEMORY) {
        *ret_reason = "the node is out of memory; try again later";
        return status;
    }
    if (status != GAVEL_OK || errand->size - CLIENT_LENGTH_BYTES > FRAME_MAX) {
        *ret_reason = "it is larger than what can be carried; ask for less at once";
        return GAVEL_ERR_TOO_LARGE;
    }
    return client_frame_unpack(errand->bytes + CLIENT_LENGTH_BYTES, errand->size - CLIENT_LENGTH_BYTES,
                               &errand->frame, ret_reason);
}

/* Takes a sealed errand into the list, and carries it at once if that can be. */
static void send_off(struct courier *courier, gavel_ns now, struct courier_errand *errand)
{
    bool may_carry = courier->leader != 0 && !courier->is_doubted;

    errand->number = ++courier->numbers;
    if (is_keep_alive(errand)) {
        TAILQ_INSERT_HEAD(&courier->errands, errand, in_order);
        courier->keep_alives++;
        may_carry = may_carry || (courier->leader != 0 && now >= courier->probe_at);
    } else {
        TAILQ_INSERT_TAIL(&courier->errands, errand, in_order);
    }
    (void)RB_INSERT(courier_numbers, &courier->by_number, errand); /* the number is new */
    courier->count++;
    courier->bytes += errand->size;
    if (may_carry)
        (void)carry(courier, now, errand); /* if not, it waits */
    courier->wake_at = ns_min(courier->wake_at, due_at(courier, errand));
}

static bool is_crowded(const struct courier *courier)
{
    return courier->count >= COURIER_ERRANDS_MAX || courier->bytes >= COURIER_BYTES_MAX;
}

/* The keep-alives that were gathered become an errand. */
static void send_gathered(struct courier *courier, gavel_ns now)
{
    struct courier_errand *errand = courier->gathering;
    Gavel__ClientFrame frame;
    Gavel__KeepAlive keep_alive;
    const char *reason = "";
    enum gavel_status status;

    courier->gathering = NULL;
    gavel__client_frame__init(&frame);
    gavel__keep_alive__init(&keep_alive);
    keep_alive.n_sessions = errand->session_count;
    keep_alive.sessions = errand->sessions;
    keep_alive.n_principals = errand->tells_no_principals ? 0 : errand->session_count;
    keep_alive.principals = errand->principals;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE;
    frame.keep_alive = &keep_alive;
    status = seal(errand, &frame, &reason);
    if (status == GAVEL_OK) {
        send_off(courier, now, errand);
        return;
    }
    courier_fail_errand(courier, errand, status, reason);
    errand_free(errand);
}

/* When they go. A leader that is in doubt is tried with them first of all; the next ones go on gathering
 * until those are on their way. */
static gavel_ns gathered_at(const struct courier *courier)
{
    const struct courier_errand *first = TAILQ_FIRST(&courier->errands);

    if (!courier->gathering || courier->leader == 0)
        return NEVER;
    if (!courier->is_doubted)
        return courier->gather_until;
    if (first && is_keep_alive(first) && !first->is_out)
        return NEVER;
    return ns_max(courier->gather_until, courier->probe_at);
}

static void tend_gathered(struct courier *courier, gavel_ns now)
{
    struct courier_errand *errand = courier->gathering;

    if (now >= gathered_at(courier)) {
        send_gathered(courier, now);
    } else if (errand && errand->give_up_at <= now) {
        courier->gathering = NULL;
        give_up(courier, errand);
        errand_free(errand);
    }
}

static void take_keep_alive(struct courier *courier, gavel_ns now, uint64_t client,
                            const Gavel__ClientFrame *frame)
{
    const Gavel__KeepAlive *keep_alive = frame->keep_alive;
    enum gavel_status status = GAVEL_OK;

    if (keep_alive->n_sessions > CLIENT_SESSIONS_MAX) {
        courier_fail(courier, client, keep_alive->tag, frame->what_case, GAVEL_ERR_INVALID, "");
        return;
    }
    if (courier->gathering &&
        (courier->gathering->session_count + keep_alive->n_sessions > CLIENT_SESSIONS_MAX ||
         courier->gathering->part_count == CLIENT_SESSIONS_MAX))
        send_gathered(courier, now);
    /* However many requests wait: nobody's session shall end for what others ask. */
    if (!courier->gathering && courier->keep_alives >= COURIER_KEEP_ALIVES_MAX) {
        status = GAVEL_ERR_STORE_UNAVAILABLE;
    } else if (!courier->gathering) {
        courier->gathering = calloc(1, sizeof *courier->gathering);
        if (courier->gathering) {
            courier->gathering->may_repeat = true;
            courier->gathering->give_up_at = now + COURIER_KEEP_TIMEOUT;
            courier->gather_until = now + COURIER_GATHER;
        } else {
            status = GAVEL_ERR_NO_MEMORY;
        }
    }
    if (status == GAVEL_OK)
        status = courier_merge(courier->gathering, client, keep_alive);
    if (status == GAVEL_OK)
        return;
    courier_fail(courier, client, keep_alive->tag, frame->what_case, status, "");
    if (courier->gathering && !is_keep_alive(courier->gathering)) { /* it was for nobody else */
        errand_free(courier->gathering);
        courier->gathering = NULL;
    }
}

static void take_errand(struct courier *courier, gavel_ns now, uint64_t client, uint64_t tag,
                        const Gavel__ClientFrame *frame)
{
    bool is_request = frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    gavel_ns timeout = is_request && frame->request->timeout_ms > 0 ? ns_from_ms(frame->request->timeout_ms)
                                                                    : COURIER_TIMEOUT;
    struct courier_errand *errand = NULL;
    const char *reason = "the node is out of memory; try again later";
    enum gavel_status status = GAVEL_ERR_NO_MEMORY;

    if (is_crowded(courier)) {
        reason = crowded;
        status = GAVEL_ERR_STORE_UNAVAILABLE;
    } else {
        errand = calloc(1, sizeof *errand);
    }
    if (errand)
        status = seal(errand, frame, &reason);
    if (status != GAVEL_OK) {
        errand_free(errand);
        courier_fail(courier, client, tag, frame->what_case, status, reason);
        return;
    }
    errand->client = client;
    errand->tag = tag;
    errand->may_repeat = !is_request || frame->request->session != 0 || PLANTED(CARRIED_TWICE);
    errand->give_up_at = now + ns_min(timeout, COURIER_TIMEOUT_MAX);
    send_off(courier, now, errand);
}

void courier_take(struct courier *courier, gavel_ns now, uint64_t client, const Gavel__ClientFrame *frame)
{
    courier->counts.taken++;
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REQUEST)
        take_errand(courier, now, client, frame->request->tag, frame);
    else if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_ASK)
        take_errand(courier, now, client, frame->ask->tag, frame);
    else if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE)
        take_keep_alive(courier, now, client, frame);
    else
        courier_fail(courier, client, 0, frame->what_case, GAVEL_ERR_INVALID,
                     "this is not for the leader of the quorum");
}

static void forget_parts(struct courier_errand *errand, uint64_t client)
{
    for (size_t i = 0; i < errand->part_count; i++)
        if (errand->parts[i].client == client)
            errand->parts[i].is_gone = true;
}

void courier_forget(struct courier *courier, uint64_t client)
{
    struct courier_errand *errand, *next;

    if (courier->gathering)
        forget_parts(courier->gathering, client);
    for (errand = TAILQ_FIRST(&courier->errands); errand; errand = next) {
        next = TAILQ_NEXT(errand, in_order);
        forget_parts(errand, client);
        if (errand->part_count > 0 || errand->client != client)
            continue;
        errand->is_gone = true;
        if (errand->frame->what_case == GAVEL__CLIENT_FRAME__WHAT_ASK)
            drop(courier, errand); /* of a question the answer is all there is */
    }
}

/* It was not done, or it may be done again: see desk.c for what ERR_NOT_LEADER says of a write. */
static void refused(struct courier *courier, gavel_ns now, struct courier_errand *errand)
{
    errand->is_out = false;
    if (courier->leader != 0)
        doubt(courier, now);
    courier->wake_at = ns_min(courier->wake_at, due_at(courier, errand));
}

void courier_reply(struct courier *courier, gavel_ns now, uint64_t number, const Gavel__ClientFrame *frame)
{
    struct courier_errand wanted = {.number = number};
    struct courier_errand *errand = RB_FIND(courier_numbers, &courier->by_number, &wanted);
    enum gavel_status status;

    if (!errand || !courier_status_of(errand, frame, &status))
        return;
    if (status == GAVEL_ERR_NOT_LEADER) {
        refused(courier, now, errand);
        return;
    }
    courier_answer_errand(courier, errand, frame);
    drop(courier, errand);
    if (!courier->is_doubted)
        return;
    courier->is_doubted = false;
    tend_gathered(courier, now); /* before there is no room for them any more */
    work(courier, now);
}

void courier_leader(struct courier *courier, gavel_ns now, uint64_t leader, uint64_t term)
{
    struct courier_errand *errand, *next;

    if (leader == courier->leader && term == courier->term)
        return;
    courier->leader = leader;
    courier->term = term;
    courier->is_doubted = false;
    if (leader == 0)
        return;
    for (errand = TAILQ_FIRST(&courier->errands); errand; errand = next) {
        next = TAILQ_NEXT(errand, in_order);
        if (errand->may_repeat) {
            errand->is_out = false;
        } else if (errand->is_out && (errand->node != leader || errand->term != term)) {
            courier_fail_errand(courier, errand, GAVEL_ERR_TIMEOUT, unknown_outcome);
            drop(courier, errand);
        }
    }
    tend_gathered(courier, now);
    work(courier, now);
}

void courier_tick(struct courier *courier, gavel_ns now)
{
    tend_gathered(courier, now);
    if (now >= courier->wake_at)
        work(courier, now);
}

gavel_ns courier_wake_at(const struct courier *courier)
{
    gavel_ns at = ns_min(courier->wake_at, gathered_at(courier));

    return courier->gathering ? ns_min(at, courier->gathering->give_up_at) : at;
}
