/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Orders about members. An order is written down as a record (member_record.h),
 * and the record is made true by the leader at the time (members.c). Only the
 * removal has no record to follow: the order itself changes the members, once
 * the record is gone.
 */
#include "core/node/internal.h"

#include "base/planted.h"

#include <stdio.h>
#include <string.h>

static enum gavel_status out_of_memory(struct node *node, const struct node_order *order)
{
    node_refuse_order(node, order, GAVEL_ERR_NO_MEMORY, "out of memory");
    return GAVEL_ERR_NO_MEMORY;
}

/* Takes the bytes. */
static enum gavel_status propose(struct node *node, const struct node_moment *moment,
                                 struct node_pending *pending, uint8_t *bytes, size_t size)
{
    enum gavel_status status = node_propose_command(node, moment, bytes, size);

    if (status == GAVEL_OK)
        pending->index = raft_log_last(&node->raft.log);
    else
        node_refuse_order(node, &pending->order, GAVEL_ERR_STATE,
                          "the leader cannot do this now (%s); try again in a moment",
                          gavel_status_text(status));
    return status;
}

static enum gavel_status put_record(struct node *node, const struct node_moment *moment,
                                    struct node_pending *pending, struct member_record *record)
{
    uint8_t *bytes;
    size_t size;

    record->id = pending->target;
    record->is_learned = false; /* from now on it is an operator's word */
    record->generation = node->raft.state.generation;
    (void)node_version_note(node, record); /* what was heard meanwhile is on its way, and must not get lost */
    if (member_record_put(record, &bytes, &size) != GAVEL_OK)
        return out_of_memory(node, &pending->order);
    return propose(node, moment, pending, bytes, size);
}

/* Whether the cluster could still have a leader without this voter; says so if not. */
static enum gavel_status refuse_last(struct node *node, const struct node_order *order, raft_id id)
{
    const struct node_members *m = &node->members;
    struct raft_config target = node->raft.config;
    const struct node_pending *p;
    const char *reason = "";

    node_take_out(&target, id);
    for (size_t i = 0; i < m->record_count; i++)
        if (!m->records[i].is_voter) /* it is to be a voter no more, and goes sooner or later */
            node_take_out(&target, m->records[i].id);
    STAILQ_FOREACH(p, &node->orders.waiting, next)
        if (p->order.kind == NODE_MEMBER_DEMOTE || p->order.kind == NODE_MEMBER_REMOVE)
            node_take_out(&target, p->target);
    if (raft_config_check(&target, &reason) == GAVEL_OK)
        return GAVEL_OK;
    node_refuse_order(node, order, GAVEL_ERR_INVALID, "without %s nobody could lead: %s", order->name,
                      reason);
    return GAVEL_ERR_INVALID;
}

/* Two nodes cannot be at one address; says so. */
static bool is_taken(struct node *node, const struct node_order *order)
{
    char name[NODE_ADDRESSES_NAME_BYTES];

    if (PLANTED(ADDRESS_TAKEN_TWICE))
        return false;
    for (size_t i = 0; i < node->raft.config.count; i++) {
        const struct node_address *entry =
            node_addresses_find(&node->members.addresses, node->raft.config.members[i].id);

        if (entry && strcmp(entry->address, order->address) == 0) {
            node_refuse_order(node, order, GAVEL_ERR_INVALID, "%s is the address of %s", order->address,
                              node_name_of(node, entry->id, name));
            return true;
        }
    }
    return false;
}

/* How many members there are with all that are to be, by records or by orders whose records are on their
 * way; this one not counted. */
static size_t count_to_be(const struct node *node, raft_id but)
{
    const struct node_members *m = &node->members;
    const struct raft_config *config = &node->raft.config;
    size_t count = config->count;
    const struct node_pending *p;

    for (size_t i = 0; i < m->record_count; i++)
        count += m->records[i].id != but && !raft_config_find(config, m->records[i].id);
    STAILQ_FOREACH(p, &node->orders.waiting, next)
        count += p->order.kind == NODE_MEMBER_ADD && p->target != but &&
                 !raft_config_find(config, p->target) && !node_record_of(node, p->target);
    return count;
}

static enum gavel_status add(struct node *node, const struct node_moment *moment,
                             struct node_pending *pending, const struct raft_member *member)
{
    const struct node_order *order = &pending->order;
    struct member_record record = {.id = pending->target,
                                   .priority = order->priority,
                                   .is_witness = order->is_witness,
                                   .is_voter = !order->is_learner};

    if (member) {
        node_refuse_order(node, order, GAVEL_ERR_STATE, "%s is a member already", order->name);
        return GAVEL_ERR_STATE;
    }
    if (is_taken(node, order))
        return GAVEL_ERR_INVALID;
    if (count_to_be(node, pending->target) >= RAFT_MEMBERS_MAX) {
        node_refuse_order(node, order, GAVEL_ERR_STATE,
                          "there are %d members already, with those that are being added, which is the most",
                          RAFT_MEMBERS_MAX);
        return GAVEL_ERR_STATE;
    }
    (void)snprintf(record.name, sizeof record.name, "%s", order->name);
    (void)snprintf(record.address, sizeof record.address, "%s", order->address);
    (void)snprintf(record.api, sizeof record.api, "%s", order->api);
    return put_record(node, moment, pending, &record);
}

/* The record goes first, or the leader would add the member again. */
static enum gavel_status remove_member(struct node *node, const struct node_moment *moment,
                                       struct node_pending *pending, const struct raft_member *member)
{
    uint8_t *bytes;
    size_t size;

    if (member && member->is_voter && refuse_last(node, &pending->order, member->id) != GAVEL_OK)
        return GAVEL_ERR_INVALID;
    if (PLANTED(RECORD_OUTLIVES_MEMBER))
        return GAVEL_OK;
    if (member_record_delete(pending->order.name, &bytes, &size) != GAVEL_OK)
        return out_of_memory(node, &pending->order);
    return propose(node, moment, pending, bytes, size);
}

static enum gavel_status set_voter(struct node *node, const struct node_moment *moment,
                                   struct node_pending *pending, const struct raft_member *member,
                                   bool is_voter)
{
    const struct node_order *order = &pending->order;
    struct member_record record = {0};
    bool has_record = member_record_find(node->table, order->name, &record); /* or it is a member */

    if (member && member->is_voter == is_voter && (!has_record || record.is_voter == is_voter))
        pending->is_already = true; /* written down all the same: now it is somebody's wish */
    if (!is_voter && member && member->is_voter && refuse_last(node, order, member->id) != GAVEL_OK)
        return GAVEL_ERR_INVALID;
    if (member && !has_record)
        node_describe_member(node, member, order->name, &record);
    record.is_voter = is_voter;
    return put_record(node, moment, pending, &record);
}

enum gavel_status node_begin_member(struct node *node, const struct node_moment *moment,
                                    struct node_pending *pending)
{
    const struct node_order *order = &pending->order;
    const struct raft_member *member = raft_config_find(&node->raft.config, pending->target);
    struct member_record record; /* one that is about to be a member has only that */

    if (!node->members.id_of_name) {
        node_refuse_order(node, order, GAVEL_ERR_STATE, "this node knows no names");
        return GAVEL_ERR_STATE;
    }
    if (order->kind == NODE_MEMBER_ADD)
        return add(node, moment, pending, member);
    if (!member && !member_record_find(node->table, order->name, &record)) {
        node_refuse_order(node, order, GAVEL_ERR_NOT_FOUND,
                          "there is no member \"%s\"; `gavel member list` names them all", order->name);
        return GAVEL_ERR_NOT_FOUND;
    }
    if (order->kind == NODE_MEMBER_REMOVE)
        return remove_member(node, moment, pending, member);
    node->members.promotes_from = 0; /* an operator asks: no waiting after the last try */
    return set_voter(node, moment, pending, member, order->kind == NODE_MEMBER_PROMOTE);
}

/* The record is gone: now the member. Tried again at the next event until it is taken. */
static void go_on_removing(struct node *node, const struct node_moment *moment, struct node_pending *p)
{
    struct raft_config target = node->raft.config;

    if (p->has_begun || p->tried == node->orders.events || !node_may_change(node))
        return;
    p->tried = node->orders.events;
    node_take_out(&target, p->target);
    p->has_begun = node_change(node, moment, &target) == GAVEL_OK;
}

/* Whether the members are what the order asks for, for good. */
static bool is_done(const struct node *node, const struct node_pending *p)
{
    const struct raft *raft = &node->raft;
    const struct raft_member *member = raft_config_find(&raft->config, p->target);
    bool is_settled =
        !raft->config.is_joint && raft->config_index <= raft->commit && raft->change == RAFT_CHANGE_NONE;

    if (PLANTED(MEMBERS_TOLD_EARLY))
        is_settled = true;
    if (!is_settled || raft->applied < p->index)
        return false;
    switch (p->order.kind) {
    case NODE_MEMBER_ADD:
        return member != NULL;
    case NODE_MEMBER_PROMOTE:
        return member && member->is_voter;
    case NODE_MEMBER_DEMOTE:
        return member && !member->is_voter;
    default:
        return !member;
    }
}

static const char *done_text(const struct node_pending *p)
{
    if (p->is_already)
        return p->order.kind == NODE_MEMBER_PROMOTE ? "is a voter already" : "is a learner already";
    if (p->order.kind == NODE_MEMBER_PROMOTE)
        return "is a voter now";
    if (p->order.kind == NODE_MEMBER_REMOVE)
        return "is no longer a member; stop its gaveld";
    if (p->order.kind == NODE_MEMBER_ADD && !p->order.is_learner)
        return "is a learner now and becomes a voter once it has caught up and answers in time for a lease";
    return "is a learner now";
}

bool node_settle_member(struct node *node, const struct node_moment *moment, struct node_pending *p)
{
    if (p->order.kind == NODE_MEMBER_REMOVE && node->raft.applied >= p->index &&
        raft_config_find(&node->raft.config, p->target))
        go_on_removing(node, moment, p);
    if (node->actions->has_stepped)
        return false; /* the next look has what came of it */
    if (is_done(node, p)) {
        node_answer_order(node, p, GAVEL_OK, "%s %s", p->order.name, done_text(p));
        return true;
    }
    if (node->raft.role == RAFT_LEADER)
        return false;
    node_answer_order(
        node, p, GAVEL_ERR_STATE, "%s",
        p->order.kind == NODE_MEMBER_REMOVE
            ? "the leader changed before it was done; see `gavel member list` and ask again"
            : "the leader changed meanwhile, and the next one goes on with it: see `gavel member list`");
    return true;
}
