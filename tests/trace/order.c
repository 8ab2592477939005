/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What operators order of a node, and what it answers. A story with orders has
 * nodes with names (`nodes … names=yes`): members have records in the table then,
 * as those of gaveld, and nodes tell each other whether they work.
 */

#include "trace/command.h"
#include "trace/words.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *word;
    enum node_order_kind kind;
} orders[] = {
    {"transfer", NODE_TRANSFER},    {"step-down", NODE_STEP_DOWN},    {"add", NODE_MEMBER_ADD},
    {"remove", NODE_MEMBER_REMOVE}, {"promote", NODE_MEMBER_PROMOTE}, {"demote", NODE_MEMBER_DEMOTE},
};

static raft_id id_of_name(const char *name) { return (raft_id)(name[0] - 'a' + 1); }

void order_introduce(struct cluster *cluster, struct host *host)
{
    struct node_described nodes[NODES_MAX];
    char names[NODES_MAX][2], addresses[NODES_MAX][8];

    if (!cluster->has_names)
        return;
    for (unsigned i = 0; i < NODES_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "%c", 'a' + (int)i);
        (void)snprintf(addresses[i], sizeof addresses[i], "%c:1", 'a' + (int)i);
        nodes[i] = (struct node_described){.id = i + 1, .name = names[i], .address = addresses[i], .api = ""};
    }
    node_introduce(&host->node, id_of_name, nodes, NODES_MAX);
}

void order_tell_status(struct cluster *cluster, const struct host *host)
{
    const struct raft *raft = &host->node.raft;
    const struct node_said said = {.node = host->id,
                                   .term = raft->state.term,
                                   .is_working = host->node.claim.is_held &&
                                                 raft_is_working(raft, host_clock(cluster, host))};

    for (raft_id id = 1; cluster->has_names && id <= NODES_MAX; id++) {
        struct host *peer = host_find(cluster, id);

        if (peer && peer != host && peer->is_alive && !peer->is_hung &&
            cluster->links[host->id][id].cut_kinds == 0)
            (void)host_step(cluster, peer, (struct node_event){.kind = NODE_SAID, .said = said});
    }
}

static bool take_kind(struct cluster *cluster, const char *word, struct node_order *order)
{
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        if (strcmp(word, orders[i].word) != 0)
            continue;
        order->kind = orders[i].kind;
        return true;
    }
    return command_refuse(
        cluster, "\"%s\" is no order; transfer, step-down, add, remove, promote and demote are", word);
}

static bool take_name(struct cluster *cluster, const char *word, struct node_order *order)
{
    if (word[0] < 'a' || word[0] >= 'a' + NODES_MAX || word[1] != '\0')
        return command_refuse(cluster, "\"%s\" is no node; a to %c are", word, 'a' + NODES_MAX - 1);
    (void)snprintf(order->name, sizeof order->name, "%s", word);
    (void)snprintf(order->address, sizeof order->address, "%s:1", word);
    return true;
}

/* What is said of an order besides whom it names; *at is the word to begin with. */
static bool take_rest(struct cluster *cluster, char **words, size_t count, size_t at,
                      struct node_order *order)
{
    for (; at < count; at++) {
        if (order->kind == NODE_TRANSFER && strcmp(words[at], "forced") == 0)
            order->is_forced = true;
        else if (order->kind == NODE_MEMBER_ADD && strcmp(words[at], "learner") == 0)
            order->is_learner = true;
        else if (order->kind == NODE_MEMBER_ADD && strcmp(words[at], "witness") == 0)
            order->is_witness = true;
        else if (strcmp(words[at], "within") != 0 || at + 1 == count)
            return command_refuse(cluster, "\"%s\" cannot be said of this order", words[at]);
        else if (!words_take_duration(cluster->out, words[++at], &order->timeout))
            return false;
    }
    return true;
}

/* order a transfer [to b] [forced] | step-down | add d [learner] [witness] | remove, promote, demote b;
 * [within 2s] */
bool command_order(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    struct node_order order = {.id = 1};
    bool has_name, is_to;
    size_t at = 3;

    if (count < 3)
        return command_refuse(cluster, "order what? order a transfer to b");
    if (!take_kind(cluster, words[2], &order))
        return false;
    is_to = order.kind == NODE_TRANSFER && count > 3 && strcmp(words[3], "to") == 0;
    has_name = is_to || order.kind >= NODE_MEMBER_ADD;
    at += is_to;
    if (has_name && at >= count)
        return command_refuse(cluster, "whom? order a %s%s b", words[2], is_to ? " to" : "");
    if (has_name && !take_name(cluster, words[at++], &order))
        return false;
    if (!take_rest(cluster, words, count, at, &order))
        return false;
    if (!cluster->has_names)
        return command_refuse(cluster, "the nodes have no names to order by; say nodes a b c names=yes");
    if (!host->is_alive || host->is_hung)
        tell(cluster, host, "does not answer");
    else
        (void)host_step(cluster, host, (struct node_event){.kind = NODE_ORDER, .order = &order});
    return true;
}
