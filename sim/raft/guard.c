/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Guards, and the macs of all certificates: a keyed hash, good enough where
 * nobody guesses. A guard signs an obituary only when its process is dead.
 */
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <string.h>

static void compute_mac(const struct cluster *cluster, const struct raft_certificate *c,
                        uint8_t ret_mac[RAFT_MAC_BYTES])
{
    uint64_t words[] = {(uint64_t)c->kind, c->node,   c->incarnation, c->term,
                        c->lease_epoch,    c->target, c->commit};
    uint64_t hash = HASH_START ^ cluster->key;
    struct prng prng;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = hash_add(hash, words[i] + 1);
    prng_seed(&prng, hash);
    for (size_t i = 0; i < RAFT_MAC_BYTES; i += sizeof hash) {
        hash = prng_next(&prng);
        memcpy(ret_mac + i, &hash, sizeof hash);
    }
}

void guard_sign(const struct cluster *cluster, struct raft_certificate *certificate)
{
    compute_mac(cluster, certificate, certificate->mac);
}

void guard_sign_cb(void *context, struct raft_certificate *certificate) { guard_sign(context, certificate); }

bool guard_verify_cb(void *context, const struct raft_certificate *certificate)
{
    uint8_t mac[RAFT_MAC_BYTES];

    compute_mac(context, certificate, mac);
    return memcmp(mac, certificate->mac, sizeof mac) == 0;
}

void guard_write_obituary(struct cluster *cluster, struct host *host)
{
    gavel_ns delay = cluster_between(cluster, STREAM_GUARD, 200 * NS_PER_US, 3 * NS_PER_MS);
    gavel_ns late = cluster_length(cluster, STREAM_GUARD, 5 * NS_PER_MS, 3 * NS_PER_S);
    bool is_late = cluster_chance(cluster, STREAM_GUARD, 500);
    bool is_lost = cluster_chance(cluster, STREAM_GUARD, 500);

    if (is_lost && cluster_has(cluster, FAULT_OBIT_LOST)) {
        TRACE(cluster, host, "its guard dies with it");
        cluster->counts.faults++;
        return;
    }
    if (is_late && cluster_has(cluster, FAULT_OBIT_LATE)) {
        cluster->counts.faults++;
        delay += late;
    }
    cluster_push(cluster, cluster->now + delay, EVENT_OBITUARY, host->slot)->number =
        host->disk.state.incarnation;
}

void guard_spread(struct cluster *cluster, const struct raft_certificate *certificate, bool is_false)
{
    unsigned from = (unsigned)certificate->node - 1;
    bool is_named = cluster_chance(cluster, STREAM_GUARD, 500);

    for (unsigned to = 0; to < cluster->used; to++) {
        struct raft_message body = {
            .kind = RAFT_MSG_CERTIFICATE,
            .from = is_named && to != from ? certificate->node : 0,
            .to = to + 1,
            .cluster = cluster->key,
            .generation = 1,
            .incarnation = certificate->incarnation,
            .certificate = *certificate,
        };
        bool is_lost = cluster_chance(cluster, STREAM_GUARD, 300);
        struct message *message;

        if (is_lost && cluster_has(cluster, FAULT_OBIT_LOST))
            continue;
        message = net_copy(cluster, &body);
        message->is_false = is_false;
        net_send(cluster, message, from);
    }
}

void guard_take(struct cluster *cluster, const struct event *event)
{
    const struct host *host = &cluster->hosts[event->slot];
    struct raft_certificate certificate = {
        .kind = RAFT_CERT_OBITUARY, .node = host->id, .incarnation = event->number};

    guard_sign(cluster, &certificate);
    raft_referee_signed(cluster->referee, cluster->now, host->id, certificate.incarnation);
    TRACE(cluster, host, "its guard sends the obituary of incarnation %llu",
          (unsigned long long)certificate.incarnation);
    cluster->obituaries[cluster->obituary_count++ % OBITUARIES_KEPT] = certificate;
    guard_spread(cluster, &certificate, false);
}
