/* SPDX-License-Identifier: Apache-2.0 */

/* What --check-config prints for a good configuration: the numbers that matter. */
#include "daemon/config/read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *left, const void *right)
{
    const struct daemon_peer *const *a = left, *const *b = right;

    return strverscmp((*a)->name, (*b)->name);
}

/* They are kept by id, which nobody reads. */
static void print_peers(const struct daemon_config *config, FILE *out)
{
    const struct daemon_peer *sorted[sizeof config->peers / sizeof config->peers[0]] = {NULL};

    for (size_t i = 0; i < config->peer_count; i++)
        sorted[i] = &config->peers[i];
    qsort(sorted, config->peer_count, sizeof sorted[0], by_name);
    for (size_t i = 0; i < config->peer_count; i++) {
        const struct daemon_peer *peer = sorted[i];

        (void)fprintf(out, "              %s  %s%s%s  priority %u%s%s\n", peer->name, peer->address,
                      peer->api[0] ? "  api " : "", peer->api, peer->priority,
                      peer->is_witness ? "  witness" : "", peer->id == config->id ? "  (this node)" : "");
    }
}

static void print_times(const struct daemon_config *config, FILE *out)
{
    const struct raft_settings *raft = &config->raft;
    gavel_ns lease = raft->promise * (1000000 - raft->drift_ppm) / (1000000 + raft->drift_ppm);

    if (config->auto_failover)
        (void)fprintf(
            out,
            "  fail-over   node process dies: its guard tells the others at once\n"
            "              machine dies, hangs or is cut off: another stands for election\n"
            "              after %" PRId64 " to %" PRId64 " ms, and leads two rounds later; each split\n"
            "              vote adds up to %" PRId64 " ms\n",
            ms_from_ns(raft->election_min), ms_from_ns(raft->election_max), ms_from_ns(raft->election_max));
    else
        (void)fprintf(out,
                      "  fail-over   auto_failover is off: when the leader is lost, an operator chooses\n"
                      "              the next: `gavel handover --cluster --to NODE --force`\n");
    (void)fprintf(out,
                  "  lease       a leader that is cut off has stopped its work %.1f ms after its\n"
                  "              last heartbeat that a majority answered; nobody else leads before\n"
                  "              %" PRId64 " ms; heartbeats every %" PRId64
                  " ms, clocks may differ by %.2f %%\n",
                  (double)lease / (double)NS_PER_MS, ms_from_ns(raft->promise), ms_from_ns(raft->heartbeat),
                  raft->drift_ppm / 10000.0);
    (void)fprintf(out, "  transfer    abandoned after %" PRId64 " ms\n", ms_from_ns(raft->transfer_timeout));
}

void config_print(const struct daemon_config *config, FILE *out)
{
    size_t majority = config->peer_count / 2 + 1;
    const char *slash = strrchr(config->file, '/');

    (void)fprintf(out, "%s is good: node %s of cluster %s, %zu voter%s (%zu must agree, %zu may fail)\n",
                  config->file[0] ? slash ? slash + 1 : config->file : "the configuration", config->node,
                  config->cluster, config->peer_count, config->peer_count == 1 ? "" : "s", majority,
                  config->peer_count - majority);
    print_peers(config, out);
    (void)fprintf(out, "  listens     peers %s, API %s%s\n", config->listen,
                  config->has_api_tls ? "https://" : "http://", config->api_listen);
    if (config->clients_listen[0] || config->socket[0])
        (void)fprintf(out, "  clients     %s%s%s\n", config->clients_listen,
                      config->clients_listen[0] && config->socket[0] ? ", " : "", config->socket);
    (void)fprintf(out, "  security    %s\n              %s\n              %s\n",
                  config->has_tls ? "TLS with certificates on both sides" : "no TLS: loopback only",
                  config->secret[0] ? "obituaries sealed by the secret" : "no secret: loopback only",
                  config->token[0] ? "the API requires a token" : "the API requires no token");
    (void)fprintf(out, "  data        %s, at most %" PRIu64 " MiB\n", config->data,
                  config->data_bytes_max >> 20);
    print_times(config, out);
    if (config->has_leader_commands)
        (void)fprintf(out, "  commands    leader_commands: %zu child%s, stopped within %" PRId64 " ms\n",
                      config->children.count, config->children.count == 1 ? "" : "ren",
                      config->stop_grace_ms);
}
