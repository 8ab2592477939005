/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What must never be, whatever a story does. The simulator checks far more; this
 * is so that no story can be written down in which something is plainly wrong.
 */

#include "trace/node.h"

#include <stdlib.h>
#include <string.h>

/* Election Safety: at most one leader per term (Raft paper, figure 3). */
static void check_leader(struct quorum *quorum, struct node *node)
{
    raft_term term = node->raft.state.term;

    if (node->raft.role != RAFT_LEADER || term > 1000000)
        return;
    if (term >= quorum->leader_count) {
        quorum->leaders = reallocarray(quorum->leaders, term + 1, sizeof *quorum->leaders);
        for (size_t i = quorum->leader_count; i <= term; i++)
            quorum->leaders[i] = 0;
        quorum->leader_count = term + 1;
    }
    if (quorum->leaders[term] == 0)
        quorum->leaders[term] = node->id;
    else if (quorum->leaders[term] != node->id)
        alarm_raise(quorum, node, "leads in term %llu like %c", (unsigned long long)term,
                    name_of(quorum->leaders[term]));
}

void referee_check(struct quorum *quorum, struct node *node)
{
    const struct raft *raft = &node->raft;
    gavel_ns deadline = raft_deadline(raft);

    check_leader(quorum, node);
    if (raft->commit > raft_log_last(&raft->log))
        alarm_raise(quorum, node, "has committed what it does not have");
    if (raft->work == RAFT_WORK_RUNNING)
        node->must_stop_by =
            deadline == NEVER ? NEVER : node_real(quorum, node, deadline) + quorum->settings.stop_margin;
}

/* State-Machine Safety: all nodes apply the same entry at an index (Raft paper, figure 3). */
void referee_applied(struct quorum *quorum, struct node *node, raft_index index,
                     const struct raft_entry *entry)
{
    struct agreed *agreed;
    char *text = NULL;

    if (!entry || index != node->applied + 1) {
        alarm_raise(quorum, node, "applies %llu after %llu", (unsigned long long)index,
                    (unsigned long long)node->applied);
        return;
    }
    node->applied = index;
    if (index > quorum->agreed_count) {
        quorum->agreed = reallocarray(quorum->agreed, index, sizeof *quorum->agreed);
        memset(quorum->agreed + quorum->agreed_count, 0,
               (index - quorum->agreed_count) * sizeof *quorum->agreed);
        quorum->agreed_count = index;
    }
    agreed = &quorum->agreed[index - 1];
    if (asprintf(&text, "%d:%.*s", (int)entry->kind, entry->kind == RAFT_ENTRY_DATA ? (int)entry->size : 0,
                 entry->data ? (const char *)entry->data : "") < 0)
        abort();
    if (!agreed->text) {
        *agreed = (struct agreed){.term = entry->term, .text = text};
        return;
    }
    if (agreed->term != entry->term || strcmp(agreed->text, text) != 0)
        alarm_raise(quorum, node, "applies another entry at %llu than others did", (unsigned long long)index);
    free(text);
}

/* The work of two leaders never overlaps (S4), and tokens grow (S1). */
void referee_claim(struct quorum *quorum, struct node *node)
{
    for (raft_id id = 1; id <= NODES_MAX; id++) {
        const struct node *other = &quorum->nodes[id];

        if (other == node || !other->is_working)
            continue;
        if (quorum->is_obituary_false)
            tell(quorum, node, "works while %c still does: the obituary was false", name_of(id));
        else
            alarm_raise(quorum, node, "works while %c still does", name_of(id));
    }
    if (raft_is_witness(&node->raft))
        alarm_raise(quorum, node, "is a witness and works");
    if (node->work_term < quorum->claim_term ||
        (node->work_term == quorum->claim_term && node->work_epoch <= quorum->claim_epoch))
        alarm_raise(quorum, node, "works with a token that is not the newest");
    quorum->claim_term = node->work_term;
    quorum->claim_epoch = node->work_epoch;
}

void referee_stopped(struct quorum *quorum, struct node *node)
{
    if (node->is_working && quorum->now > node->must_stop_by)
        alarm_raise(quorum, node, "worked until %.4f instead of %.4f", seconds(quorum->now),
                    seconds(node->must_stop_by));
}
