/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What operators ask for. A request is taken on, waits among the pending ones
 * for what it is about, and is answered exactly once: when that has come, when
 * it cannot come any more, or when its time is up.
 */
#include "daemon/node/consensus.h"

#include "base/assert.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For a change of members that nobody gave a time for. */
#define MEMBERS_TIMEOUT (30 * NS_PER_S)
/* A learner that could not be made a voter is tried again so much later. */
#define PROMOTE_AGAIN (10 * NS_PER_S)
#define TIMEOUT_MAX_MS (3600u * 1000)
/* Tries that follow each other more quickly than this are of one wish. */
#define SAME_WISH (2 * NS_PER_S)

void consensus_answer(struct consensus *c, struct request *request, enum gavel_status status,
                      const char *format, ...)
{
    const struct node_address *leader = node_addresses_find(&c->addresses, c->node.raft.leader);
    va_list arguments;

    ASSERT(request);
    ASSERT(request->reply_to);
    request->status = status;
    va_start(arguments, format);
    (void)vsnprintf(request->message, sizeof request->message, format, arguments);
    va_end(arguments);
    (void)node_addresses_name(&c->addresses, c->node.raft.leader, request->new_leader);
    (void)snprintf(request->leader_api, sizeof request->leader_api, "%s", leader ? leader->api : "");
    mailbox_put(request->reply_to, &request->link);
}

/* Takes the request off, which is answered next. The rest stays until sweep(): whoever goes through the list
 * may have called us. */
static struct request *settle_with(struct pending *pending)
{
    struct request *request = pending->request;

    ASSERT(request); /* answered exactly once */
    pending->request = NULL;
    return request;
}

static void sweep(struct consensus *c)
{
    struct pending **at = &c->pending;

    while (*at) {
        struct pending *pending = *at;

        if (pending->request) {
            at = &pending->next;
            continue;
        }
        ASSERT(c->pending_count > 0);
        *at = pending->next;
        c->pending_count--;
        free(pending);
    }
}

void consensus_answer_all(struct consensus *c, enum gavel_status status, const char *message)
{
    for (struct pending *p = c->pending; p; p = p->next)
        if (p->request)
            consensus_answer(c, settle_with(p), status, "%s", message);
    sweep(c);
}

static const char *kind_name(enum request_kind kind)
{
    static const char *const names[] = {
        [REQUEST_TRANSFER] = "transfer",
        [REQUEST_STEP_DOWN] = "step down",
        [REQUEST_MEMBER_ADD] = "add member",
        [REQUEST_MEMBER_REMOVE] = "remove member",
        [REQUEST_MEMBER_PROMOTE] = "promote member",
        [REQUEST_MEMBER_DEMOTE] = "demote member",
    };

    return names[kind];
}

/* ERR_NO_LEADER or ERR_NOT_LEADER, unless we lead. */
static enum gavel_status refuse_unless_leader(struct consensus *c, struct request *request)
{
    char name[NODE_ADDRESSES_NAME_BYTES];
    struct view_leader leader;

    if (c->node.raft.role == RAFT_LEADER)
        return GAVEL_OK;
    view_leader_read(&c->shared->view, &leader);
    if (!view_leader_holds(&leader, clock_now())) {
        consensus_answer(
            c, request, GAVEL_ERR_NO_LEADER,
            "there is no leader at the moment; wait for an election, or see `gavel status` for who is missing");
        return GAVEL_ERR_NO_LEADER;
    }
    consensus_answer(c, request, GAVEL_ERR_NOT_LEADER, "%s leads; ask it",
                     node_addresses_name(&c->addresses, leader.id, name));
    return GAVEL_ERR_NOT_LEADER;
}

static const struct raft_member *member_named(const struct consensus *c, const char *name)
{
    return raft_config_find(&c->node.raft.config, seal_id_of_name("node", name));
}

/* Why Raft does not begin a transfer now. */
static const char *transfer_trouble(const struct consensus *c)
{
    if (c->node.raft.transfer.phase != RAFT_TRANSFER_NONE)
        return "another transfer is under way; wait for it";
    if (c->node.raft.change != RAFT_CHANGE_NONE || c->node.raft.config.is_joint)
        return "a change of members is under way; wait for it";
    return "the leader has just been elected; try again in a moment";
}

static enum gavel_status begin_forced_here(struct consensus *c, struct pending *pending)
{
    if (consensus_ask(c, (struct raft_event){.kind = RAFT_TAKE_OVER}) == GAVEL_OK) {
        pending->has_begun = true;
        pending->ask_at = clock_now() + c->config->raft.election_max;
        return GAVEL_OK;
    }
    consensus_answer(c, pending->request, GAVEL_ERR_STATE, "%s cannot lead: it is not a voter, or a witness",
                     c->config->node);
    return GAVEL_ERR_STATE;
}

/* A target that would be elected and could not work; an operator who insists has --force. */
static bool refuse_far(struct consensus *c, struct request *request, raft_id target)
{
    gavel_ns round_trip, longest;

    if (request->is_forced || !raft_is_far(&c->node.raft, target, &round_trip, &longest))
        return false;
    consensus_answer(
        c, request, GAVEL_ERR_LEADER_TRANSFER_FAILED,
        "%s could not hold a lease: it answers after %" PRId64 " ms, and with a lease of %" PRId64
        " ms nobody can work who is answered after more than %" PRId64
        " ms; lengthen lease_ms, or use `gavel handover --cluster --to NODE --force`",
        request->target, ms_from_ns(round_trip), ms_from_ns(c->config->raft.promise), ms_from_ns(longest));
    return true;
}

static enum gavel_status begin_transfer(struct consensus *c, struct pending *pending)
{
    struct request *request = pending->request;
    const struct raft_member *target = request->target[0] ? member_named(c, request->target) : NULL;
    enum gavel_status status;

    if (request->target[0] && !target) {
        consensus_answer(c, request, GAVEL_ERR_NOT_FOUND,
                         "there is no member \"%s\"; `gavel member list` names them all", request->target);
        return GAVEL_ERR_NOT_FOUND;
    }
    if (target && (target->is_witness || !target->is_voter)) {
        consensus_answer(c, request, GAVEL_ERR_INVALID, "%s is a %s and never leads", request->target,
                         target->is_witness ? "witness" : "learner");
        return GAVEL_ERR_INVALID;
    }
    if (target && target->id == c->config->id && request->is_forced && c->node.raft.role != RAFT_LEADER)
        return begin_forced_here(c, pending);
    if (refuse_unless_leader(c, request) != GAVEL_OK)
        return GAVEL_ERR_NOT_LEADER;
    if (target && target->id == c->config->id) {
        consensus_answer(c, request, GAVEL_OK, "%s leads already", request->target);
        return GAVEL_ERR_DONE;
    }
    if (target && refuse_far(c, request, target->id))
        return GAVEL_ERR_LEADER_TRANSFER_FAILED;
    status = consensus_ask(
        c, (struct raft_event){.kind = RAFT_TRANSFER,
                               .transfer = {.target = target ? target->id : 0,
                                            .is_forced = request->is_forced,
                                            .timeout = ns_max(pending->give_up_at - clock_now(), 1)}});
    if (status == GAVEL_OK)
        return GAVEL_OK;
    if (status == GAVEL_ERR_INVALID)
        consensus_answer(c, request, GAVEL_ERR_LEADER_TRANSFER_FAILED, "there is nobody to hand over to");
    else
        consensus_answer(c, request, GAVEL_ERR_STATE, "%s", transfer_trouble(c));
    return status;
}

/* Where nobody stands by himself, somebody must be named: then it is a transfer to the best. */
static enum gavel_status begin_step_down(struct consensus *c, struct pending *pending)
{
    enum gavel_status status;

    if (refuse_unless_leader(c, pending->request) != GAVEL_OK)
        return GAVEL_ERR_NOT_LEADER;
    if (!c->config->auto_failover) {
        status = consensus_ask(c, (struct raft_event){.kind = RAFT_TRANSFER,
                                                      .transfer = {.timeout = c->config->raft.election_max}});
        if (status != GAVEL_OK)
            consensus_answer(c, pending->request, GAVEL_ERR_STATE,
                             "auto_failover is off, and there is nobody to hand over to now: %s",
                             transfer_trouble(c));
        return status;
    }
    return consensus_ask(c, (struct raft_event){.kind = RAFT_STEP_DOWN}); /* OK: we lead */
}

static size_t find_wish(const struct consensus *c, const char *text)
{
    size_t oldest = 0;

    for (size_t i = 0; i < WISHES_KEPT; i++) {
        if (strcmp(c->wishes[i].text, text) == 0)
            return i;
        if (c->wishes[i].at < c->wishes[oldest].at)
            oldest = i;
    }
    return oldest;
}

/*
 * Whoever finds no leader asks again, twenty times a second, until there is one: that is one wish of one
 * person, and told once. What was refused and is asked for again within SAME_WISH is the same.
 */
static bool is_told(struct consensus *c, const char *text)
{
    size_t i = find_wish(c, text);

    return strcmp(c->wishes[i].text, text) == 0 && clock_now() - c->wishes[i].at < SAME_WISH;
}

static void remember_wish(struct consensus *c, const char *text, bool was_told, bool is_refused)
{
    size_t i = find_wish(c, text);

    if (is_refused) {
        c->wishes[i].times = was_told ? c->wishes[i].times + 1 : 1;
        c->wishes[i].at = clock_now();
        (void)snprintf(c->wishes[i].text, sizeof c->wishes[i].text, "%s", text);
        return;
    }
    if (was_told) /* that it was taken in the end is news */
        consensus_note(c, JOURNAL_OPERATOR, c->config->id, "%s, taken after it was refused %u times", text,
                       c->wishes[i].times);
    if (strcmp(c->wishes[i].text, text) == 0)
        c->wishes[i].text[0] = '\0';
}

static void take(struct consensus *c, struct request *request)
{
    char wish[sizeof c->wishes[0].text];
    bool was_told;
    struct pending *pending;
    gavel_ns timeout = request->kind == REQUEST_TRANSFER || request->kind == REQUEST_STEP_DOWN
                           ? c->config->raft.transfer_timeout
                           : MEMBERS_TIMEOUT;
    enum gavel_status status;

    if (request->timeout_ms > 0)
        timeout = ns_from_ms(request->timeout_ms < TIMEOUT_MAX_MS ? request->timeout_ms : TIMEOUT_MAX_MS);
    (void)node_addresses_name(&c->addresses, c->node.raft.leader, request->old_leader);
    if (c->is_stopping) {
        consensus_answer(c, request, GAVEL_ERR_STATE, "this node is stopping; ask another");
        return;
    }
    pending = c->pending_count < PENDING_MAX ? calloc(1, sizeof *pending) : NULL;
    if (!pending) {
        consensus_answer(c, request, GAVEL_ERR_STATE, "too many requests are waiting; try again later");
        return;
    }
    *pending = (struct pending){
        .request = request, .give_up_at = clock_now() + timeout, .term = c->node.raft.state.term};
    (void)snprintf(wish, sizeof wish, "%s%s%s%s", kind_name(request->kind), request->target[0] ? " " : "",
                   request->target, request->is_forced ? ", forced" : "");
    was_told = is_told(c, wish);
    if (!was_told)
        consensus_note(c, JOURNAL_OPERATOR, c->config->id, "%s", wish);
    if (request->kind == REQUEST_TRANSFER)
        status = begin_transfer(c, pending);
    else if (request->kind == REQUEST_STEP_DOWN)
        status = begin_step_down(c, pending);
    else
        status = refuse_unless_leader(c, request) != GAVEL_OK ? GAVEL_ERR_NOT_LEADER
                                                              : consensus_member_request(c, pending);
    remember_wish(c, wish, was_told, status != GAVEL_OK);
    if (status != GAVEL_OK) {
        free(pending); /* answered */
        return;
    }
    pending->next = c->pending;
    c->pending = pending;
    c->pending_count++;
    ASSERT(c->pending_count <= PENDING_MAX);
    consensus_look_at_pending(c); /* it may have been done in one step */
}

void consensus_take_requests(struct consensus *c)
{
    struct mail_link *list = mailbox_take_all(&c->shared->requests);

    while (list) {
        struct mail_link *next = list->next;

        take(c, (struct request *)list);
        list = next;
    }
}

/* An elected leader needs a moment to have its lease; whoever asked wants one that works. */
void consensus_transfer_told(struct consensus *c, bool is_done, raft_id target, const char *why)
{
    char name[NODE_ADDRESSES_NAME_BYTES];

    (void)node_addresses_name(&c->addresses, target, name);
    for (struct pending *p = c->pending; p; p = p->next) {
        bool is_step_down = p->request && p->request->kind == REQUEST_STEP_DOWN && !c->config->auto_failover;

        if (!p->request || p->has_begun || (p->request->kind != REQUEST_TRANSFER && !is_step_down))
            continue;
        if (is_done && is_step_down)
            continue; /* settled by the new leader */
        if (is_done) {
            p->elected = target;
            p->give_up_at = ns_min(p->give_up_at, clock_now() + c->config->raft.election_max);
            continue;
        }
        consensus_answer(c, settle_with(p), GAVEL_ERR_LEADER_TRANSFER_FAILED,
                         "%s; %s stays leader. See `gavel status` for the state of %s", why, c->config->node,
                         name);
    }
}

void consensus_change_failed(struct consensus *c, const char *why)
{
    c->promotes_from =
        clock_now() + PROMOTE_AGAIN; /* what failed for its distance will fail again for a while */
    for (struct pending *p = c->pending; p; p = p->next)
        if (p->request && p->request->kind >= REQUEST_MEMBER_ADD)
            consensus_answer(c, settle_with(p), GAVEL_ERR_STATE, "the change of members was abandoned: %s",
                             why);
}

static void time_is_up(struct consensus *c, struct pending *pending)
{
    struct request *request = settle_with(pending);
    char name[NODE_ADDRESSES_NAME_BYTES];

    if (request->kind == REQUEST_TRANSFER && pending->elected)
        consensus_answer(c, request, GAVEL_OK, "%s was elected",
                         node_addresses_name(&c->addresses, pending->elected, name));
    else if (request->kind == REQUEST_TRANSFER)
        consensus_answer(c, request, GAVEL_ERR_LEADER_TRANSFER_FAILED, "%s did not take over in time",
                         request->target[0] ? request->target : "nobody");
    else if (request->kind == REQUEST_STEP_DOWN)
        consensus_answer(c, request, GAVEL_ERR_TIMEOUT, "the work has not stopped yet");
    else
        consensus_answer(c, request, GAVEL_ERR_TIMEOUT,
                         "it is not done yet; the leader goes on with it: see `gavel member list`");
}

static void settle_transfer(struct consensus *c, struct pending *pending)
{
    const struct request *request = pending->request;
    const struct peer_status *said = detector_status_of(&c->detector, pending->elected);
    char name[NODE_ADDRESSES_NAME_BYTES];
    bool is_right = !request->target[0] || c->node.raft.leader == seal_id_of_name("node", request->target);

    if (pending->has_begun && c->is_claimed)
        consensus_answer(c, settle_with(pending), GAVEL_OK, "%s leads now", c->config->node);
    else if (pending->has_begun && c->node.raft.role != RAFT_LEADER && clock_now() >= pending->ask_at) {
        /* Another may have been faster, and does not know yet that it is to hand over. */
        pending->ask_at = clock_now() + c->config->raft.election_max;
        consensus_feed(c, (struct raft_event){.kind = RAFT_TAKE_OVER});
    } else if (pending->elected && said && said->is_working && said->term > pending->term)
        consensus_answer(c, settle_with(pending), GAVEL_OK, "%s leads now",
                         node_addresses_name(&c->addresses, pending->elected, name));
    else if (!pending->has_begun && !pending->elected && c->node.raft.role != RAFT_LEADER &&
             c->node.raft.leader != 0)
        consensus_answer(c, settle_with(pending), is_right ? GAVEL_OK : GAVEL_ERR_LEADER_TRANSFER_FAILED,
                         "another node was elected meanwhile");
}

static void settle_member(struct consensus *c, struct pending *pending)
{
    const struct request *request = pending->request;

    if (consensus_member_is_done(c, pending)) {
        const char *what =
            request->kind == REQUEST_MEMBER_PROMOTE  ? "is a voter now"
            : request->kind == REQUEST_MEMBER_REMOVE ? "is no longer a member; stop its gaveld"
            : request->kind == REQUEST_MEMBER_ADD && !request->is_learner
                ? "is a learner now and becomes a voter once it has caught up and answers in time for a lease"
                : "is a learner now";

        if (pending->is_already)
            what = request->kind == REQUEST_MEMBER_PROMOTE ? "is a voter already" : "is a learner already";
        consensus_answer(c, settle_with(pending), GAVEL_OK, "%s %s", request->target, what);
    } else if (pending->request && c->node.raft.role != RAFT_LEADER) {
        consensus_answer(
            c, settle_with(pending), GAVEL_ERR_STATE,
            request->kind == REQUEST_MEMBER_REMOVE
                ? "the leader changed before it was done; see `gavel member list` and ask again"
                : "the leader changed meanwhile, and the next one goes on with it: see `gavel member list`");
    }
}

/* Answers it if what it waits for has come, or cannot come any more. */
static void settle(struct consensus *c, struct pending *pending)
{
    if (pending->request->kind == REQUEST_TRANSFER)
        settle_transfer(c, pending);
    else if (pending->request->kind >= REQUEST_MEMBER_ADD)
        settle_member(c, pending);
    else if (c->node.raft.role != RAFT_LEADER || c->node.raft.state.term != pending->term)
        consensus_answer(c, settle_with(pending), GAVEL_OK, "%s has stepped down", c->config->node);
}

void consensus_look_at_pending(struct consensus *c)
{
    gavel_ns now = clock_now();

    if (c->is_looking)
        return; /* a step that one of them caused */
    c->is_looking = true;
    for (struct pending *p = c->pending; p; p = p->next) {
        if (p->request)
            settle(c, p);
        if (p->request && now >= p->give_up_at)
            time_is_up(c, p);
    }
    c->is_looking = false;
    sweep(c);
}
