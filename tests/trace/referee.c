/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What must never be, whatever a story does. The simulator checks far more; this
 * is so that no story can be written down in which something is plainly wrong.
 */

#include "trace/node.h"

#include <stdlib.h>
#include <string.h>

static struct history *history_of(struct cluster *cluster, const struct node *node)
{
    return &cluster->histories[node->is_refounded];
}

/* Election Safety: at most one leader per term (Raft paper, figure 3). */
static void check_leader(struct cluster *cluster, struct node *node)
{
    struct history *history = history_of(cluster, node);
    raft_term term = node->raft.state.term;

    if (node->raft.role != RAFT_LEADER || term > 1000000)
        return;
    if (term >= history->leader_count) {
        history->leaders = reallocarray(history->leaders, term + 1, sizeof *history->leaders);
        for (size_t i = history->leader_count; i <= term; i++)
            history->leaders[i] = 0;
        history->leader_count = term + 1;
    }
    if (history->leaders[term] == 0)
        history->leaders[term] = node->id;
    else if (history->leaders[term] != node->id)
        alarm_raise(cluster, node, "leads in term %llu like %c", (unsigned long long)term,
                    name_of(history->leaders[term]));
}

/* Two clusters of one name share nothing: neither entries nor leaders. */
static void check_founding(struct cluster *cluster, struct node *node)
{
    const struct node *leader = node->raft.leader ? &cluster->nodes[node->raft.leader] : NULL;

    if (leader && node->has_applied && leader->is_refounded != node->is_refounded)
        alarm_raise(cluster, node, "follows %c, of another cluster of the name", name_of(leader->id));
}

void referee_check(struct cluster *cluster, struct node *node)
{
    const struct raft *raft = &node->raft;
    gavel_ns deadline = raft_deadline(raft);

    check_leader(cluster, node);
    check_founding(cluster, node);
    if (raft->commit > raft_log_last(&raft->log))
        alarm_raise(cluster, node, "has committed what it does not have");
    if (raft->work == RAFT_WORK_RUNNING)
        node->must_stop_by =
            deadline == NEVER ? NEVER : node_real(cluster, node, deadline) + cluster->settings.stop_margin;
}

/* State-Machine Safety: all nodes apply the same entry at an index (Raft paper, figure 3). */
void referee_applied(struct cluster *cluster, struct node *node, raft_index index,
                     const struct raft_entry *entry)
{
    struct history *history = history_of(cluster, node);
    struct agreed *agreed;
    char *text = NULL;

    if (!entry || index != node->applied + 1) {
        alarm_raise(cluster, node, "applies %llu after %llu", (unsigned long long)index,
                    (unsigned long long)node->applied);
        return;
    }
    node->applied = index;
    node->has_applied = true;
    if (index > history->agreed_count) {
        history->agreed = reallocarray(history->agreed, index, sizeof *history->agreed);
        memset(history->agreed + history->agreed_count, 0,
               (index - history->agreed_count) * sizeof *history->agreed);
        history->agreed_count = index;
    }
    agreed = &history->agreed[index - 1];
    if (asprintf(&text, "%d:%.*s", (int)entry->kind, entry->kind == RAFT_ENTRY_DATA ? (int)entry->size : 0,
                 entry->data ? (const char *)entry->data : "") < 0)
        abort();
    if (!agreed->text) {
        *agreed = (struct agreed){.term = entry->term, .text = text};
        return;
    }
    if (agreed->term != entry->term || strcmp(agreed->text, text) != 0)
        alarm_raise(cluster, node, "applies another entry at %llu than others did",
                    (unsigned long long)index);
    free(text);
}

/* The work of two leaders never overlaps (S4), and tokens grow (S1). */
void referee_claim(struct cluster *cluster, struct node *node)
{
    struct history *history = history_of(cluster, node);

    for (raft_id id = 1; id <= NODES_MAX; id++) {
        const struct node *other = &cluster->nodes[id];

        if (other == node || !other->is_working || other->is_refounded != node->is_refounded)
            continue;
        if (cluster->is_obituary_false)
            tell(cluster, node, "works while %c still does: the obituary was false", name_of(id));
        else
            alarm_raise(cluster, node, "works while %c still does", name_of(id));
    }
    if (raft_is_witness(&node->raft))
        alarm_raise(cluster, node, "is a witness and works");
    if (node->work_term < history->claim_term ||
        (node->work_term == history->claim_term && node->work_epoch <= history->claim_epoch))
        alarm_raise(cluster, node, "works with a token that is not the newest");
    history->claim_term = node->work_term;
    history->claim_epoch = node->work_epoch;
}

void referee_stopped(struct cluster *cluster, struct node *node)
{
    if (node->is_working && cluster->now > node->must_stop_by)
        alarm_raise(cluster, node, "worked until %.4f instead of %.4f", seconds(cluster->now),
                    seconds(node->must_stop_by));
}
