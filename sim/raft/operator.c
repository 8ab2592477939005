/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/operator.h"

#include "sim/raft/chaos.h"
#include "sim/raft/members.h"
#include "sim/raft/program.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <stdio.h>
#include <string.h>

#define STREAM (STREAM_FAULTS + FAULT_ORDERS)
#define ADDRESS_BYTES 8

bool operators_exist(const struct cluster *cluster)
{
    return cluster->profile.faults & FAULT_BIT(FAULT_ORDERS);
}

static unsigned below(struct cluster *cluster, unsigned bound)
{
    return cluster_below(cluster, STREAM, bound);
}

/* Nodes are named by their letters. */
static raft_id id_of_name(const char *name)
{
    return name[0] >= 'a' && name[0] < 'a' + SLOTS_MAX && !name[1] ? (raft_id)(name[0] - 'a' + 1) : 1000;
}

static const char *address_of(unsigned slot, char buffer[ADDRESS_BYTES])
{
    (void)snprintf(buffer, ADDRESS_BYTES, "%c:1", (char)('a' + slot));
    return buffer;
}

/* ---- ticks and statuses ---- */

static bool has_ticks(const struct cluster *cluster)
{
    if (cluster->healed == 0)
        return true;
    /* Before the end nothing new is begun, so that the logs can become the same. */
    return cluster->operators.goes_on && cluster->now + cluster->rest < cluster->quiet_at;
}

static void plan_tick(struct cluster *cluster, const struct host *host)
{
    gavel_ns delay = cluster_between(cluster, STREAM, 90 * NS_PER_MS, 110 * NS_PER_MS);

    if (has_ticks(cluster))
        (void)cluster_push(cluster, cluster->now + delay, EVENT_TICK, host->slot);
}

void operator_introduce(struct cluster *cluster, struct host *host)
{
    struct node_described nodes[SLOTS_MAX];
    char addresses[SLOTS_MAX][ADDRESS_BYTES];

    if (!operators_exist(cluster))
        return;
    program_choose(cluster, host);
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        nodes[i] = (struct node_described){
            .id = i + 1, .name = cluster->hosts[i].label, .address = address_of(i, addresses[i]), .api = ""};
    nodes[host->slot].table_version = host->program;
    node_introduce(&host->node, id_of_name, nodes, SLOTS_MAX);
    plan_tick(cluster, host);
}

void operator_tell_status(struct cluster *cluster, const struct host *host)
{
    bool works = host->node.claim.is_held && raft_is_working(&host->node.raft, host_clock(cluster, host));

    for (unsigned i = 0; i < cluster->used && operators_exist(cluster); i++) {
        gavel_ns delay = cluster_length(cluster, STREAM, 100 * NS_PER_US, 20 * NS_PER_MS);

        if (i == host->slot || cluster->now < cluster->network.links[host->slot][i].cut_until)
            continue;
        cluster_push(cluster, cluster->now + delay, EVENT_SAID, i)->nonce =
            (struct nonce){.high = host->node.raft.state.term, .low = host->id << 1 | works};
    }
}

static void leave(struct cluster *cluster, struct host *host)
{
    gavel_ns down_for = cluster_length(cluster, STREAM, NS_PER_MS, NS_PER_S);

    if (!node_has_left(&host->node, host_clock(cluster, host)))
        return;
    operator_check_left(cluster, host);
    host_die(cluster, host, true, "has ended, as it was asked to");
    (void)cluster_push(cluster, cluster->now + down_for, EVENT_START, host->slot);
}

static void tick(struct cluster *cluster, struct host *host)
{
    uint64_t life = host->life;

    plan_tick(cluster, host);
    (void)host_feed(cluster, host, (struct node_event){.kind = NODE_TICK}); /* nothing to refuse */
    if (host->life != life)
        return;
    operator_check_times(cluster, host);
    operator_tell_status(cluster, host);
    if (host->operator.is_stopping)
        leave(cluster, host);
}

void operator_take(struct cluster *cluster, const struct event *event)
{
    struct host *host = &cluster->hosts[event->slot];
    raft_id from = event->nonce.low >> 1;
    uint64_t life = host->life;

    if (event->kind == EVENT_TICK) {
        tick(cluster, host);
        return;
    }
    (void)host_feed(
        cluster, host,
        (struct node_event){
            .kind = NODE_SAID,
            .said = {.node = from, .term = event->nonce.high, .is_working = event->nonce.low & 1}});
    if (host->life == life)
        program_greet(cluster, host, &cluster->hosts[from - 1]);
}

/* ---- orders ---- */

static gavel_ns timeout_of(const struct host *host, const struct node_order *order)
{
    return order->timeout > 0 ? order->timeout : host->node.raft.settings.transfer_timeout;
}

bool operator_order(struct cluster *cluster, struct host *host, struct node_order order, unsigned slot)
{
    struct host_order *given = NULL;
    uint64_t life = host->life;
    enum gavel_status status;

    for (size_t i = 0; i < HOST_ORDERS_MAX && !given; i++)
        if (!host->operator.orders[i].waits)
            given = &host->operator.orders[i];
    if (!given)
        return false;
    order.id = ++cluster->operators.number;
    *given = (struct host_order){.waits = true,
                                 .order = order,
                                 .slot = slot,
                                 .term = host->node.raft.state.term,
                                 .give_up_at = host_clock(cluster, host) + timeout_of(host, &order),
                                 .number = order.id};
    TRACE(cluster, host, "is ordered (%llu): %s %s%s", (unsigned long long)order.id,
          order.kind == NODE_TRANSFER        ? "hand over to"
          : order.kind == NODE_STEP_DOWN     ? "step down"
          : order.kind == NODE_MEMBER_ADD    ? "add"
          : order.kind == NODE_MEMBER_REMOVE ? "remove"
          : order.kind == NODE_MEMBER_DEMOTE ? "demote"
                                             : "promote",
          order.name, order.is_forced ? ", by force" : "");
    if (slot < SLOTS_MAX && order.kind >= NODE_MEMBER_ADD && order.kind != NODE_MEMBER_REMOVE) {
        cluster->operators.wished[slot] = order.id;
        cluster->operators.is_removed[slot] = false;
    }
    status = host_feed(cluster, host, (struct node_event){.kind = NODE_ORDER, .order = &order});
    if (host->life != life || status != GAVEL_OK)
        return false;
    operator_check_taken(cluster, host, given);
    return true;
}

static struct node_order order_about(struct cluster *cluster, enum node_order_kind kind, unsigned slot)
{
    struct node_order order = {.kind = kind};

    if (slot < SLOTS_MAX) {
        (void)snprintf(order.name, sizeof order.name, "%s", cluster->hosts[slot].label);
        (void)address_of(slot, order.address);
    }
    return order;
}

void operator_transfer(struct cluster *cluster, struct host *host, unsigned slot, bool is_forced)
{
    struct node_order order = order_about(cluster, NODE_TRANSFER, slot);
    gavel_ns timeout = cluster_length(cluster, STREAM, 20 * NS_PER_MS, 2 * NS_PER_S);

    order.is_forced = is_forced;
    order.timeout = below(cluster, 2) ? timeout : 0;
    (void)operator_order(cluster, host, order, slot); /* a refusal is an answer, too */
}

static void report_failure(struct cluster *cluster, struct host *host)
{
    struct node_claim claim = host->node.claim;
    bool is_late = below(cluster, 2) == 0;
    uint64_t life = host->life;

    if (!claim.is_held)
        return;
    claim.lease_epoch -= is_late;
    host->operator.has_failed = host->operator.has_failed || !is_late;
    TRACE(cluster, host, "its work has failed, under %s claim", is_late ? "an earlier" : "the present");
    (void)host_feed(cluster, host,
                    (struct node_event){.kind = NODE_WORK_FAILED, .failed = {claim.term, claim.lease_epoch}});
    if (host->life == life && !is_late && host->node.raft.role == RAFT_LEADER &&
        !host->node.raft.steps_down && host->node.raft.state.term == claim.term)
        cluster_violate(cluster, RAFT_INVARIANT_OBEYED, "%s leads on although its work has failed",
                        host->label);
}

static void stop(struct cluster *cluster, struct host *host)
{
    gavel_ns timeout = cluster_length(cluster, STREAM, 20 * NS_PER_MS, NS_PER_S);

    TRACE(cluster, host, "is asked to end within %lld ms", (long long)ms_from_ns(timeout));
    host->operator.is_stopping = true;
    host->operator.stop_at = host_clock(cluster, host) + timeout;
    (void)host_feed(cluster, host, (struct node_event){.kind = NODE_STOP, .stop.timeout = timeout});
}

void operator_end_work(struct cluster *cluster, struct host *host)
{
    unsigned what = below(cluster, 4);
    struct node_order order = order_about(cluster, NODE_STEP_DOWN, SLOTS_MAX);

    order.timeout = below(cluster, 2) ? cluster_length(cluster, STREAM, NS_PER_MS, NS_PER_S) : 0;
    if (what == 0 && !host->operator.is_stopping)
        stop(cluster, host);
    else if (what == 1)
        report_failure(cluster, host);
    else
        (void)operator_order(cluster, host, order, SLOTS_MAX); /* a refusal is an answer, too */
}

/* ---- members ---- */

/* The members as they will be when the order is done. */
static void foresee(const struct node_order *order, raft_id id, struct raft_config *config)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < config->count; i++) {
        struct raft_member member = config->members[i];

        if (member.id == id && order->kind == NODE_MEMBER_REMOVE)
            continue;
        if (member.id == id)
            member.is_voter = order->kind == NODE_MEMBER_PROMOTE;
        config->members[kept++] = member;
    }
    if (order->kind == NODE_MEMBER_ADD && kept < RAFT_MEMBERS_MAX)
        config->members[kept++] =
            (struct raft_member){.id = id, .is_voter = !order->is_learner, .is_witness = order->is_witness};
    config->count = (uint8_t)kept;
    raft_config_sort(config);
}

/* Members change in the end, whatever becomes of the order: only if the cluster can live with that. */
static bool order_member(struct cluster *cluster, struct host *leader, struct node_order order, unsigned slot)
{
    struct raft_config target = leader->node.raft.config;

    if (target.is_joint)
        return false;
    foresee(&order, slot + 1, &target);
    if (!members_may_become(cluster, &target))
        return false;
    order.timeout = cluster_length(cluster, STREAM, 100 * NS_PER_MS, 3 * NS_PER_S);
    return operator_order(cluster, leader, order, slot);
}

void operator_members(struct cluster *cluster, struct host *leader)
{
    const struct raft_config *config = &leader->node.raft.config;
    unsigned what = below(cluster, 8);
    unsigned which = below(cluster, config->count);
    unsigned slot = (unsigned)config->members[which].id - 1;
    bool is_learner = below(cluster, 3) == 0;
    bool is_witness = below(cluster, 8) == 0;
    bool is_taken = below(cluster, 8) == 0;
    struct node_order order;

    if (what < 3) {
        struct host *outsider = members_outsider(cluster, config);
        unsigned other = slot;

        if (!outsider)
            return;
        members_bring_up(cluster, outsider);
        slot = outsider->slot;
        order = order_about(cluster, NODE_MEMBER_ADD, slot);
        order.is_learner = is_learner;
        order.is_witness = is_witness;
        if (is_taken) /* somebody has mistyped the address */
            (void)address_of(other, order.address);
    } else {
        order = order_about(cluster,
                            what < 5   ? NODE_MEMBER_REMOVE
                            : what < 7 ? NODE_MEMBER_DEMOTE
                                       : NODE_MEMBER_PROMOTE,
                            slot);
    }
    (void)order_member(cluster, leader, order, slot); /* a refusal is an answer, too */
}

bool operator_want(struct cluster *cluster, struct host *leader, const struct host *host, bool is_wanted)
{
    struct node_order order =
        order_about(cluster, is_wanted ? NODE_MEMBER_ADD : NODE_MEMBER_REMOVE, host->slot);

    return order_member(cluster, leader, order, host->slot);
}
