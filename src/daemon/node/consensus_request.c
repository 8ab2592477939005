/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What operators ask for, on the consensus thread: requests become orders of
 * the node (core/node/orders.h), and its answers go back by mail. An answer
 * leaves when the view says what came of the order, too.
 */
#include "daemon/node/consensus.h"

#include "base/assert.h"
#include "os/clock.h"

#include <stdio.h>
#include <string.h>

/* Tries that follow each other more quickly than this are of one wish. */
#define SAME_WISH (2 * NS_PER_S)

/* ---- answers ---- */

static void fill_in(struct consensus *c, struct request *request, enum gavel_status status, const char *text)
{
    const struct node_addresses *addresses = &c->node.members.addresses;
    const struct node_address *leader = node_addresses_find(addresses, c->node.raft.leader);

    ASSERT(request->reply_to);
    request->status = status;
    (void)snprintf(request->message, sizeof request->message, "%s", text);
    (void)node_addresses_name(addresses, c->node.raft.leader, request->new_leader);
    (void)snprintf(request->leader_api, sizeof request->leader_api, "%s", leader ? leader->api : "");
}

/* A request is known to the node by its place in memory, which is its own until it is answered. */
static struct request *take_out(struct consensus *c, uint64_t id)
{
    struct mail_link **at = &c->requests.waiting;

    while (*at && (uintptr_t)*at != id)
        at = &(*at)->next;
    ASSERT(*at); /* answered exactly once */
    struct request *request = (struct request *)*at;

    *at = (*at)->next;
    return request;
}

void consensus_ordered(struct consensus *c, uint64_t id, enum gavel_status status, const char *text)
{
    struct request *request = take_out(c, id);

    fill_in(c, request, status, text);
    request->link.next = c->requests.answered;
    c->requests.answered = &request->link;
}

void consensus_send_answers(struct consensus *c)
{
    while (c->requests.answered) {
        struct request *request = (struct request *)c->requests.answered;

        c->requests.answered = request->link.next;
        mailbox_put(request->reply_to, &request->link);
    }
}

void consensus_answer_all(struct consensus *c)
{
    static const char text[] = "this node is stopping; ask another";
    struct mail_link *link;

    while (c->requests.waiting)
        consensus_ordered(c, (uintptr_t)c->requests.waiting, GAVEL_ERR_STOPPED, text);
    consensus_send_answers(c);
    while ((link = mailbox_take(&c->shared->requests))) {
        struct request *request = (struct request *)link;

        fill_in(c, request, GAVEL_ERR_STOPPED, text);
        mailbox_put(request->reply_to, link);
    }
}

/* ---- wishes, for the journal ---- */

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

static struct wish *find_wish(struct consensus *c, const char *text)
{
    struct wish *oldest = &c->requests.wishes[0];

    for (size_t i = 0; i < WISHES_KEPT; i++) {
        struct wish *wish = &c->requests.wishes[i];

        if (strcmp(wish->text, text) == 0)
            return wish;
        if (wish->at < oldest->at)
            oldest = wish;
    }
    return oldest;
}

/*
 * A client that finds no leader asks again, twenty times a second, until there is one: that is one wish of
 * one person, and told once. What was refused and is asked for again within SAME_WISH is the same.
 */
static bool is_told(struct consensus *c, const char *text)
{
    const struct wish *wish = find_wish(c, text);

    return strcmp(wish->text, text) == 0 && clock_now() - wish->at < SAME_WISH;
}

static void remember_wish(struct consensus *c, const char *text, bool was_told, bool is_refused)
{
    struct wish *wish = find_wish(c, text);

    if (is_refused) {
        wish->times = was_told ? wish->times + 1 : 1;
        wish->at = clock_now();
        (void)snprintf(wish->text, sizeof wish->text, "%s", text);
        return;
    }
    if (was_told) /* that it was taken in the end is news */
        consensus_note(c, JOURNAL_OPERATOR, c->config->id, "%s, taken after it was refused %u times", text,
                       wish->times);
    if (strcmp(wish->text, text) == 0)
        wish->text[0] = '\0';
}

/* ---- requests ---- */

static void make_order(const struct request *request, struct node_order *ret_order)
{
    static const enum node_order_kind kinds[] = {
        [REQUEST_TRANSFER] = NODE_TRANSFER,
        [REQUEST_STEP_DOWN] = NODE_STEP_DOWN,
        [REQUEST_MEMBER_ADD] = NODE_MEMBER_ADD,
        [REQUEST_MEMBER_REMOVE] = NODE_MEMBER_REMOVE,
        [REQUEST_MEMBER_PROMOTE] = NODE_MEMBER_PROMOTE,
        [REQUEST_MEMBER_DEMOTE] = NODE_MEMBER_DEMOTE,
    };

    *ret_order = (struct node_order){.id = (uintptr_t)request,
                                     .kind = kinds[request->kind],
                                     .is_forced = request->is_forced,
                                     .timeout = ns_from_ms(request->timeout_ms),
                                     .priority = request->priority,
                                     .is_witness = request->is_witness,
                                     .is_learner = request->is_learner};
    (void)snprintf(ret_order->name, sizeof ret_order->name, "%s", request->target);
    (void)snprintf(ret_order->address, sizeof ret_order->address, "%s", request->address);
    (void)snprintf(ret_order->api, sizeof ret_order->api, "%s", request->api);
}

static void take(struct consensus *c, struct request *request)
{
    char wish[sizeof c->requests.wishes[0].text];
    struct node_order order;
    enum gavel_status status;
    bool was_told;

    make_order(request, &order);
    (void)node_addresses_name(&c->node.members.addresses, c->node.raft.leader, request->old_leader);
    (void)snprintf(wish, sizeof wish, "%s%s%s%s", kind_name(request->kind), request->target[0] ? " " : "",
                   request->target, request->is_forced ? ", forced" : "");
    was_told = c->ending.is_stopping || is_told(c, wish); /* one that stops refuses all of them */
    if (!was_told)
        consensus_note(c, JOURNAL_OPERATOR, c->config->id, "%s", wish);
    request->link.next = c->requests.waiting;
    c->requests.waiting = &request->link;
    status = consensus_step(c, (struct node_event){.kind = NODE_ORDER, .order = &order});
    if (!c->ending.is_stopping)
        remember_wish(c, wish, was_told, status != GAVEL_OK);
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
