/* SPDX-License-Identifier: Apache-2.0 */

/* What the transport is told: who we are, whom to dial, who may send; and the certificate that it uses. */
#include "daemon/node/consensus.h"

#include "base/hash.h"
#include "os/clock.h"

#include <stdio.h>

#define EXPIRES_SOON_S (30 * 24 * 3600)

/* The members that a cluster began with, as a number: nodes that began with different ones must not meet. */
static uint64_t bootstrap_digest(const struct raft *raft)
{
    uint8_t bytes[RAFT_CONFIG_BYTES_MAX];
    struct raft_config config = raft->snapshot.config;
    size_t size;

    if (raft->snapshot.index != 0 || config.count == 0)
        return 0;
    config.binds = false; /* as 0.6.0 wrote it: nobody is bound in the beginning */
    config.founding = config.generation = 0;
    size = raft_config_encode(&config, bytes);
    return hash_bytes(HASH_BEGIN, bytes, size) | 1;
}

void consensus_make_hello(struct consensus *c, struct peer_hello *ret_hello)
{
    const struct daemon_config *config = c->config;
    struct peer_hello hello = {
        .version_min = PEER_VERSION_MIN,
        .version_max = PEER_VERSION_MAX,
        .cluster = config->cluster_id,
        .generation = c->node.raft.state.generation,
        .node = config->id,
        .incarnation = c->node.raft.state.incarnation,
        .bootstrap = bootstrap_digest(&c->node.raft),
        .config_index = c->node.raft.config_index,
        .directory = c->node.raft.state.directory,
        .bound_at = raft_bound_at(&c->node.raft),
        .began_at = c->node.raft.began_at,
        .process = c->node.raft.state.start,
        .founding = raft_founding(&c->node.raft),
        .is_founded = c->node.raft.founding != 0,
        .table_version = TABLE_VERSION,
    };

    (void)snprintf(hello.cluster_name, sizeof hello.cluster_name, "%s", config->cluster);
    (void)snprintf(hello.name, sizeof hello.name, "%s", config->node);
    (void)snprintf(hello.address, sizeof hello.address, "%s", config->advertise);
    (void)snprintf(hello.api, sizeof hello.api, "%s", config->api_advertise);
    (void)snprintf(hello.program, sizeof hello.program, "gaveld " GAVEL_VERSION);
    *ret_hello = hello;
}

/* For the guard, which must not look anything up when the node is dead: addresses as they were last
 * dialled. */
void consensus_publish_peers(struct consensus *c)
{
    struct shared_memory_peers list = {0};

    for (size_t i = 0; i < c->node.raft.config.count; i++)
        if (transport_address_of(c->transport, c->node.raft.config.members[i].id,
                                 &list.addresses[list.count]))
            list.count++;
    shared_memory_set_peers(c->memory, &list);
}

static size_t add_peer(const struct consensus *c, raft_id id, struct transport_address *peers, size_t count)
{
    const struct node_address *entry = node_addresses_find(&c->node.members.addresses, id);

    if (id == c->config->id || !entry || !entry->address[0])
        return count;
    peers[count].id = id;
    (void)snprintf(peers[count].name, sizeof peers[count].name, "%s", entry->name);
    (void)snprintf(peers[count].address, sizeof peers[count].address, "%s", entry->address);
    return count + 1;
}

static bool is_among(const struct transport_address *peers, size_t count, raft_id id)
{
    for (size_t i = 0; i < count; i++)
        if (peers[i].id == id)
            return true;
    return false;
}

/* The members; or, while we do not know them yet, those of the file: a node that joins waits to be told. */
void consensus_set_peers(struct consensus *c)
{
    struct transport_address peers[RAFT_MEMBERS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < c->node.raft.config.count; i++)
        count = add_peer(c, c->node.raft.config.members[i].id, peers, count);
    for (size_t i = 0; c->node.raft.config.count == 0 && i < c->config->peer_count; i++)
        count = add_peer(c, c->config->peers[i].id, peers, count);
    /* Whoever leads us can only hear our answers if we dial it, member of what we know or not. */
    if (c->node.raft.leader != 0 && count < RAFT_MEMBERS_MAX && !is_among(peers, count, c->node.raft.leader))
        count = add_peer(c, c->node.raft.leader, peers, count);
    transport_set_peers(c->transport, peers, count);
    consensus_tell_members(c);
    consensus_refresh_members(c);
}

/*
 * Who may send to us: the members of the configuration in force, and of the newest that is committed, in case
 * the one in force never is.
 */
void consensus_tell_members(struct consensus *c)
{
    bool is_committed = c->node.raft.config_index <= c->node.raft.commit;
    struct raft_config committed = c->node.raft.config;
    raft_index as_of = c->node.raft.config_index;
    raft_id members[2 * RAFT_MEMBERS_MAX];
    struct peer_hello hello;
    size_t count = 0;

    if (c->told.has_members && c->told.members_index == c->node.raft.config_index &&
        c->told.is_committed == is_committed)
        return;
    if (!is_committed)
        as_of = raft_committed_config(&c->node.raft, &committed);
    for (size_t i = 0; i < c->node.raft.config.count; i++)
        members[count++] = c->node.raft.config.members[i].id;
    for (size_t i = 0; i < committed.count; i++)
        members[count++] = committed.members[i].id;
    transport_set_members(c->transport, members, count, as_of);
    consensus_make_hello(c, &hello);
    transport_set_self(c->transport, &hello);
    c->told.has_members = true;
    c->told.members_index = c->node.raft.config_index;
    c->told.is_committed = is_committed;
}

void consensus_members_in_force(struct consensus *c)
{
    struct peer_hello hello;
    bool is_member = raft_config_find(&c->node.raft.config, c->config->id);

    if (c->told.is_member && !is_member)
        logger_line(&c->logger, LOG_WARNING,
                    "this node is no longer a member; stop it, or add it again with `gavel member add`",
                    LOG_END);
    c->told.is_member = is_member;
    c->told.config_index = c->node.raft.config_index;
    if (c->node.raft.config.count > 0) /* otherwise we do not know yet who matters */
        detector_keep(&c->detector, &c->node.raft.config);
    if (c->told.generation !=
        c->node.raft.state.generation) { /* a node that joined: now it belongs somewhere */
        c->told.generation = c->draft.generation = c->seal.generation = c->node.raft.state.generation;
        atomic_store(&c->memory->generation, c->told.generation);
    }
    consensus_make_hello(c, &hello); /* it says by which configuration our directory is a member */
    transport_set_self(c->transport, &hello);
    consensus_set_peers(c);
}

/* Connections that are up stay, but none can be made again with a certificate that has expired. */
void consensus_check_certificate(struct consensus *c)
{
    int64_t left_s;

    if (!c->config->has_tls)
        return;
    left_s = c->tls.certificates.identity.expires_wall_s - clock_wall_ms() / 1000;
    if (left_s <= 0 && !c->tls.is_expired_told) {
        c->tls.is_expired_told = c->tls.is_expiry_told = true;
        consensus_note(c, JOURNAL_CERTIFICATE_EXPIRES, c->config->id,
                       "%.150s has expired: no new connection can be made; issue another and send SIGHUP",
                       c->config->tls_cert);
    } else if (left_s < EXPIRES_SOON_S && !c->tls.is_expiry_told) {
        c->tls.is_expiry_told = true;
        consensus_note(c, JOURNAL_CERTIFICATE_EXPIRES, c->config->id,
                       "%.150s expires in %.1f days; issue another and send SIGHUP", c->config->tls_cert,
                       (double)left_s / (24.0 * 3600));
    }
}
