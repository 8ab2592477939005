/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What must never be, whatever a story does. The simulator checks far more; this
 * is so that no story can be written down in which something is plainly wrong.
 */

#include "trace/host.h"

#include <stdlib.h>
#include <string.h>

static struct history *history_of(struct cluster *cluster, const struct host *host)
{
    return &cluster->histories[host->is_refounded];
}

/* Election Safety: at most one leader per term (Raft paper, figure 3). */
static void check_leader(struct cluster *cluster, struct host *host)
{
    struct history *history = history_of(cluster, host);
    raft_term term = host->node.raft.state.term;

    if (host->node.raft.role != RAFT_LEADER || term > 1000000)
        return;
    if (term >= history->leader_count) {
        history->leaders = reallocarray(history->leaders, term + 1, sizeof *history->leaders);
        for (size_t i = history->leader_count; i <= term; i++)
            history->leaders[i] = 0;
        history->leader_count = term + 1;
    }
    if (history->leaders[term] == 0)
        history->leaders[term] = host->id;
    else if (history->leaders[term] != host->id)
        alarm_raise(cluster, host, "leads in term %llu like %c", (unsigned long long)term,
                    name_of(history->leaders[term]));
}

/* Two clusters of one name share nothing: neither entries nor leaders. */
static void check_founding(struct cluster *cluster, struct host *host)
{
    const struct host *leader = host->node.raft.leader ? &cluster->hosts[host->node.raft.leader] : NULL;

    if (leader && host->has_applied && leader->is_refounded != host->is_refounded)
        alarm_raise(cluster, host, "follows %c, of another cluster of the name", name_of(leader->id));
}

void referee_check(struct cluster *cluster, struct host *host)
{
    const struct raft *raft = &host->node.raft;
    gavel_ns deadline = raft_deadline(raft);

    check_leader(cluster, host);
    check_founding(cluster, host);
    if (raft->commit > raft_log_last(&raft->log))
        alarm_raise(cluster, host, "has committed what it does not have");
    if (raft->work == RAFT_WORK_RUNNING)
        host->must_stop_by =
            deadline == NEVER ? NEVER : host_real(cluster, host, deadline) + host->settings.stop_margin;
}

/* State-Machine Safety: all nodes apply the same entry at an index (Raft paper, figure 3). */
void referee_applied(struct cluster *cluster, struct host *host, raft_index index,
                     const struct raft_entry *entry)
{
    struct history *history = history_of(cluster, host);
    struct agreed *agreed;
    const char *word = "";
    char *text = NULL;
    int size = 0;

    if (!entry || index != host->applied + 1) {
        alarm_raise(cluster, host, "applies %llu after %llu", (unsigned long long)index,
                    (unsigned long long)host->applied);
        return;
    }
    host->applied = index;
    host->has_applied = true;
    if (index > history->agreed_count) {
        history->agreed = reallocarray(history->agreed, index, sizeof *history->agreed);
        memset(history->agreed + history->agreed_count, 0,
               (index - history->agreed_count) * sizeof *history->agreed);
        history->agreed_count = index;
    }
    agreed = &history->agreed[index - 1];
    if (entry->kind == RAFT_ENTRY_DATA)
        word = word_of(entry, &size);
    if (asprintf(&text, "%d:%u:%.*s", (int)entry->kind, entry->size, size, word) < 0)
        abort();
    if (!agreed->text) {
        *agreed = (struct agreed){.term = entry->term, .text = text};
        return;
    }
    if (agreed->term != entry->term || strcmp(agreed->text, text) != 0)
        alarm_raise(cluster, host, "applies another entry at %llu than others did",
                    (unsigned long long)index);
    free(text);
}

/* The work of two leaders never overlaps (S4), and tokens grow (S1). */
void referee_claim(struct cluster *cluster, struct host *host)
{
    struct history *history = history_of(cluster, host);

    for (raft_id id = 1; id <= NODES_MAX; id++) {
        const struct host *other = &cluster->hosts[id];

        if (other == host || !other->is_working || other->is_refounded != host->is_refounded)
            continue;
        if (cluster->is_obituary_false)
            tell(cluster, host, "works while %c still does: the obituary was false", name_of(id));
        else
            alarm_raise(cluster, host, "works while %c still does", name_of(id));
    }
    if (raft_is_witness(&host->node.raft))
        alarm_raise(cluster, host, "is a witness and works");
    if (host->work_term < history->claim_term ||
        (host->work_term == history->claim_term && host->work_epoch <= history->claim_epoch))
        alarm_raise(cluster, host, "works with a token that is not the newest");
    history->claim_term = host->work_term;
    history->claim_epoch = host->work_epoch;
}

void referee_stopped(struct cluster *cluster, struct host *host)
{
    if (host->is_working && cluster->now > host->must_stop_by)
        alarm_raise(cluster, host, "worked until %.4f instead of %.4f", seconds(cluster->now),
                    seconds(host->must_stop_by));
}
