/* SPDX-License-Identifier: Apache-2.0 */

/* What a leader knows of each of the others, for stories about how they catch up and whom it can count on. */

#include "trace/command.h"

#include <string.h>

static void tell_peer(const struct cluster *cluster, const struct host *host, const struct raft_peer *peer)
{
    static const char *const names[] = {
        [RAFT_PROBE] = "probed", [RAFT_REPLICATE] = "replicated to", [RAFT_INSTALL] = "sent a snapshot"};
    const struct raft *raft = &host->node.raft;
    const gavel_ns now = host_clock(cluster, host);
    FILE *out = cluster->out;

    fprintf(out, "            %c  %c is %s: match %llu, next %llu", name_of(host->id), name_of(peer->id),
            names[peer->progress], (unsigned long long)peer->match, (unsigned long long)peer->next);
    if (peer->inflight_count > 0)
        fprintf(out, ", %u append%s under way", peer->inflight_count, peer->inflight_count > 1 ? "s" : "");
    if (peer->is_probing)
        fprintf(out, ", a probe under way");
    if (peer->heard_at <= raft->led_from)
        fprintf(out, "; has not promised in this term");
    else
        fprintf(out, "; promised %.1f ms ago", (double)(now - peer->heard_at) / (double)NS_PER_MS);
    if (peer->round_trip > 0)
        fprintf(out, ", round trip %.1f ms", (double)peer->round_trip / (double)NS_PER_MS);
    if (peer->writing_at > peer->heard_at && peer->writing_at > raft->led_from)
        fprintf(out, "; said %.1f ms ago that it still writes",
                (double)(now - peer->writing_at) / (double)NS_PER_MS);
    if (peer->is_refused)
        fprintf(out, "; is refused");
    fputc('\n', out);
}

/* progress a [b …]: of all others, or of these */
bool command_progress(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    const struct raft *raft = &host->node.raft;

    for (size_t i = 2; i < count; i++)
        if (!command_node(cluster, words[i]))
            return command_refuse(cluster, "there is no node \"%s\"", words[i]);
    if (!host->is_alive || raft->role != RAFT_LEADER) {
        fprintf(cluster->out, "            %c  does not lead: it knows nothing of the others' progress\n",
                name_of(host->id));
        return true;
    }
    for (size_t i = 0; i < raft->peer_count; i++) {
        const struct raft_peer *peer = &raft->peers[i];
        bool is_meant = count == 2;

        for (size_t j = 2; j < count; j++)
            is_meant = is_meant || command_node(cluster, words[j])->id == peer->id;
        if (is_meant)
            tell_peer(cluster, host, peer);
    }
    return true;
}
