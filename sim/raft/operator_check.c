/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What operators may rely on. Records are read from the table of the node,
 * configurations from its log, and what was ordered from the simulator's own
 * notes: not from what the node remembers of its orders.
 */
#include "sim/raft/operator.h"
#include "sim/raft/program.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <string.h>

static bool has_order(const struct host *host, enum node_order_kind kind, unsigned slot)
{
    for (size_t i = 0; i < HOST_ORDERS_MAX; i++) {
        const struct host_order *given = &host->operator.orders[i];

        if (given->waits && given->order.kind == kind && (slot == SLOTS_MAX || given->slot == slot))
            return true;
    }
    return false;
}

static bool find_record(const struct cluster *cluster, const struct host *host, raft_id id,
                        struct member_record *ret_record)
{
    return member_record_find(&host->table, cluster->hosts[id - 1].label, ret_record);
}

/* ---- nothing is done that nobody has ordered ---- */

static void check_added(struct cluster *cluster, const struct host *host, const struct raft_member *member)
{
    struct member_record record;

    if (!find_record(cluster, host, member->id, &record) || record.is_learned)
        cluster_violate(cluster, RAFT_INVARIANT_WISHED, "%s adds %s, and no operator has written that down",
                        host->label, cluster_label(cluster, member->id));
    if (member->is_voter)
        cluster_violate(cluster, RAFT_INVARIANT_WISHED, "%s adds %s as a voter at once", host->label,
                        cluster_label(cluster, member->id));
    if (cluster->operators.is_removed[member->id - 1])
        cluster_violate(cluster, RAFT_INVARIANT_REMOVED,
                        "%s adds %s again, whose removal was told as done and that nobody wants since",
                        host->label, cluster_label(cluster, member->id));
}

static void check_kept(struct cluster *cluster, const struct host *host, const struct raft_member *from,
                       const struct raft_member *to)
{
    struct member_record record;
    bool has_record = find_record(cluster, host, from->id, &record);

    if (to && to->is_voter && !from->is_voter && (!has_record || !record.is_voter))
        cluster_violate(cluster, RAFT_INVARIANT_WISHED, "%s makes %s a voter, and its record does not say so",
                        host->label, cluster_label(cluster, from->id));
    if (!to && !has_order(host, NODE_MEMBER_REMOVE, (unsigned)from->id - 1) &&
        !(from->is_voter && has_record && !record.is_voter))
        cluster_violate(cluster, RAFT_INVARIANT_WISHED,
                        "%s takes %s out, and neither an order nor a record says so", host->label,
                        cluster_label(cluster, from->id));
}

static void check_change(struct cluster *cluster, const struct host *host, const struct raft_config *before,
                         const struct raft_config *after)
{
    for (unsigned i = 0; i < after->count; i++)
        if (!raft_config_find(before, after->members[i].id))
            check_added(cluster, host, &after->members[i]);
    for (unsigned i = 0; i < before->count; i++)
        check_kept(cluster, host, &before->members[i], raft_config_find(after, before->members[i].id));
    cluster_see(cluster, SIGHT_RECONCILED);
}

static void note_leader(struct cluster *cluster, const struct host *host)
{
    const struct raft *raft = &host->node.raft;
    raft_term *led = &cluster->operators.led[host->slot];

    if (raft->role != RAFT_LEADER)
        return;
    if (*led != raft->state.term || raft->change != RAFT_CHANGE_NONE || raft->config_index > raft->commit ||
        raft->transfer.phase != RAFT_TRANSFER_NONE)
        cluster->operators.busy_at = cluster->now;
    *led = raft->state.term;
}

void operator_look(struct cluster *cluster, const struct host *host, enum node_event_kind kind,
                   const struct raft_config *before)
{
    const struct raft_event *event = &cluster->actions.event;
    const struct host_operator *operator= & host->operator;
    bool is_asked = true;

    note_leader(cluster, host);
    if (kind == NODE_RAFT || cluster->actions.status != GAVEL_OK)
        return; /* it was told to by the simulator itself */
    if (event->kind == RAFT_PROPOSE)
        program_check_proposed(cluster, host);
    if (event->kind == RAFT_CHANGE)
        check_change(cluster, host, before, event->change);
    else if (event->kind == RAFT_TRANSFER)
        is_asked = has_order(host, NODE_TRANSFER, SLOTS_MAX) || operator->is_stopping;
    else if (event->kind == RAFT_TAKE_OVER)
        is_asked = has_order(host, NODE_TRANSFER, host->slot);
    else if (event->kind == RAFT_STEP_DOWN)
        is_asked =
            has_order(host, NODE_STEP_DOWN, SLOTS_MAX) || operator->is_stopping || operator->has_failed;
    if (!is_asked)
        cluster_violate(cluster, RAFT_INVARIANT_OBEYED, "%s gives up its leading, or takes it, unasked",
                        host->label);
}

void operator_check_taken(struct cluster *cluster, const struct host *host, const struct host_order *given)
{
    for (unsigned i = 0; i < host->node.raft.config.count; i++) {
        raft_id id = host->node.raft.config.members[i].id;

        if (given->order.kind == NODE_MEMBER_ADD && id - 1 != given->slot &&
            given->order.address[0] == cluster->hosts[id - 1].label[0])
            cluster_violate(cluster, RAFT_INVARIANT_WISHED, "%s takes on a member at the address of %s",
                            host->label, cluster_label(cluster, id));
    }
}

/* ---- each is answered, and the answer is true ---- */

void operator_check_times(struct cluster *cluster, const struct host *host)
{
    for (size_t i = 0; i < HOST_ORDERS_MAX; i++) {
        const struct host_order *given = &host->operator.orders[i];

        if (given->waits && host_clock(cluster, host) >= given->give_up_at)
            cluster_violate(cluster, RAFT_INVARIANT_ANSWERED,
                            "%s has not answered order %llu although its time is up", host->label,
                            (unsigned long long)given->number);
    }
}

static bool is_transfer_true(const struct cluster *cluster, const struct host *host,
                             const struct host_order *given)
{
    if (given->slot == host->slot)
        return cluster->operators.led[host->slot] >= given->term;
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        if ((given->slot == SLOTS_MAX ? i != host->slot : i == given->slot) &&
            cluster->operators.led[i] > given->term)
            return true;
    return false;
}

static bool is_member_true(const struct cluster *cluster, const struct host *host,
                           const struct host_order *given)
{
    struct raft_config config;
    struct member_record record;
    const struct raft_member *member;

    (void)raft_committed_config(&host->node.raft, &config);
    member = raft_config_find(&config, given->slot + 1);
    if (config.is_joint)
        return false;
    switch (given->order.kind) {
    case NODE_MEMBER_ADD:
        return member;
    case NODE_MEMBER_PROMOTE:
        return member && member->is_voter;
    case NODE_MEMBER_DEMOTE:
        return member && !member->is_voter;
    default:
        return !member && (cluster->operators.wished[given->slot] > given->number ||
                           !find_record(cluster, host, given->slot + 1, &record));
    }
}

static bool is_true(const struct cluster *cluster, const struct host *host, const struct host_order *given)
{
    if (given->order.kind == NODE_TRANSFER)
        return is_transfer_true(cluster, host, given);
    if (given->order.kind == NODE_STEP_DOWN)
        return !host->work.runs || host->work.term > given->term;
    return is_member_true(cluster, host, given);
}

void operator_answered(struct cluster *cluster, struct host *host, const struct node_action *action)
{
    struct host_order *given = NULL;

    for (size_t i = 0; i < HOST_ORDERS_MAX; i++)
        if (host->operator.orders[i].waits && host->operator.orders[i].number == action->ordered.id)
            given = &host->operator.orders[i];
    if (!given)
        cluster_violate(cluster, RAFT_INVARIANT_ANSWERED, "%s answers order %llu, which does not wait",
                        host->label, (unsigned long long)action->ordered.id);
    given->waits = false;
    TRACE(cluster, host, "answers order %llu: %s, %s", (unsigned long long)action->ordered.id,
          gavel_status_name(action->ordered.status), action->ordered.text);
    cluster_see(cluster, action->ordered.status == GAVEL_OK ? SIGHT_ORDERS : SIGHT_ORDERS_LOST);
    if (action->ordered.status != GAVEL_OK)
        return;
    if (!is_true(cluster, host, given))
        cluster_violate(cluster, RAFT_INVARIANT_TRUE, "%s tells order %llu as done, which it is not: %s",
                        host->label, (unsigned long long)action->ordered.id, action->ordered.text);
    if (given->order.kind == NODE_MEMBER_REMOVE && cluster->operators.wished[given->slot] < given->number)
        cluster->operators.is_removed[given->slot] = true;
}

void operator_check_left(struct cluster *cluster, const struct host *host)
{
    if (host_clock(cluster, host) < host->operator.stop_at && host->work.runs)
        cluster_violate(cluster, RAFT_INVARIANT_OBEYED, "%s ends while its work runs, and there is time",
                        host->label);
}

/* ---- in the end ---- */

/* A leader that is not busy makes a difference good at its next tick, and writes a record at each. */
#define SETTLED_WITHIN (2 * NS_PER_S)

/* A change to these members must succeed: all of them are healed. */
static bool can_become(const struct cluster *cluster, const struct raft_config *config)
{
    const char *reason;

    for (unsigned i = 0; i < config->count; i++)
        if (!(cluster->healed & 1U << (config->members[i].id - 1)))
            return false;
    return raft_config_check(config, &reason) == GAVEL_OK;
}

static void check_record(struct cluster *cluster, const struct host *leader,
                         const struct member_record *record)
{
    struct raft_config target = leader->node.raft.config;
    const struct raft_member *member = raft_config_find(&target, record->name[0] - 'a' + 1ULL);
    unsigned kept = 0;

    if (!member)
        cluster_violate(cluster, RAFT_INVARIANT_RECORDS, "%s has a record and is no member", record->name);
    if (record->is_voter || !member->is_voter)
        return; /* to become a voter takes as long as it takes */
    for (unsigned i = 0; i < target.count; i++)
        if (target.members[i].id != member->id || &target.members[i] != member)
            target.members[kept++] = target.members[i];
    target.count = (uint8_t)kept;
    if (can_become(cluster, &target))
        cluster_violate(cluster, RAFT_INVARIANT_RECORDS, "%s is a voter, and its record says learner",
                        record->name);
}

void operator_check_records(struct cluster *cluster)
{
    const struct host *leader = cluster_worker(cluster);
    const struct raft *raft = leader ? &leader->node.raft : NULL;
    struct member_record records[RAFT_MEMBERS_MAX], record;
    size_t count;

    if (!operators_exist(cluster) || !cluster->operators.goes_on || !leader ||
        cluster->operators.busy_at + SETTLED_WITHIN > cluster->now - cluster->rest ||
        raft->change != RAFT_CHANGE_NONE || raft->config.is_joint || raft->config_index > raft->commit ||
        raft->transfer.phase != RAFT_TRANSFER_NONE || has_order(leader, NODE_MEMBER_REMOVE, SLOTS_MAX))
        return;
    count = member_records(&leader->table, records);
    for (size_t i = 0; i < count; i++)
        check_record(cluster, leader, &records[i]);
    for (unsigned i = 0; i < raft->config.count; i++)
        if (!find_record(cluster, leader, raft->config.members[i].id, &record))
            cluster_violate(cluster, RAFT_INVARIANT_RECORDS, "%s is a member and has no record",
                            cluster_label(cluster, raft->config.members[i].id));
    program_check_used(cluster, leader);
}
