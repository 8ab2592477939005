/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Nodes of another founding of this cluster (raft/directory.c, rule 5): a
 * majority was emptied and bootstrapped again, and now there are two clusters
 * of one name. The core refuses the other side. Nobody ends by its word, since
 * either side may be the one with the right data; people decide, so they are
 * told, once for each node and as long as it stays so in `gavel check`. It is
 * over when a directory without a founding, or with ours, speaks under the name.
 */
#include "daemon/node/consensus.h"

#include "os/clock.h"

#include <inttypes.h>
#include <stdio.h>

bool consensus_is_other_founding(const struct consensus *c, uint64_t founding)
{
    return c->node.raft.founding != 0 && founding != 0 && founding != c->node.raft.founding;
}

/* Two nodes of one name, one of each founding, may take turns: that is told no more often. */
#define FOUNDING_PAUSE (60 * NS_PER_S)

bool consensus_is_of_other_founding(const struct consensus *c, raft_id peer)
{
    for (size_t i = 0; i < c->foreign.count; i++)
        if (c->foreign.items[i].peer == peer)
            return c->foreign.items[i].founding != 0;
    return false;
}

/* Where the peer is noted, or can be; RAFT_MEMBERS_MAX: nowhere. */
static size_t index_of(const struct consensus *c, raft_id peer)
{
    size_t at = c->foreign.count;

    for (size_t i = 0; i < c->foreign.count; i++) {
        if (c->foreign.items[i].peer == peer)
            return i;
        if (at == RAFT_MEMBERS_MAX && !raft_config_find(&c->node.raft.config, c->foreign.items[i].peer))
            at = i;
    }
    return at;
}

void consensus_meet_founding(struct consensus *c, raft_id peer, uint64_t founding)
{
    char name[NODE_ADDRESSES_NAME_BYTES], ours[20], its[20];
    gavel_ns now = clock_now();
    size_t at = index_of(c, peer);
    bool is_noted;

    if (!consensus_is_other_founding(c, founding) || at == RAFT_MEMBERS_MAX)
        return;
    is_noted = at < c->foreign.count && c->foreign.items[at].peer == peer;
    if (is_noted && c->foreign.items[at].founding == founding)
        return;
    if (at == c->foreign.count)
        c->foreign.count++;
    c->foreign.items[at].peer = peer;
    c->foreign.items[at].founding = founding;
    if (is_noted && now - c->foreign.items[at].told_at < FOUNDING_PAUSE)
        return;
    c->foreign.items[at].told_at = now;
    consensus_note(c, JOURNAL_FOUNDING_REFUSED, peer, "%s", CONSENSUS_FOUNDING_TEXT);
    (void)snprintf(ours, sizeof ours, "%016" PRIx64, c->node.raft.founding);
    (void)snprintf(its, sizeof its, "%016" PRIx64, founding);
    logger_line(
        &c->logger, LOG_ERROR,
        "two clusters of this name exist: one was bootstrapped on empty data directories while the other was down. Neither follows the other. "
        "Keep a copy of every data directory and find out which founding has the data that counts. "
        "If it is the one with a majority, replace the other nodes: gavel member remove, an empty directory, gavel member add, --join. "
        "If not, stop the majority, start one node of the right founding with --force-new-cluster, and let the others join it with empty directories",
        LOG_STR("data", c->config->data), LOG_STR("founding", ours),
        LOG_STR("node", node_addresses_name(&c->node.members.addresses, peer, name)),
        LOG_STR("its_founding", its), LOG_END);
    consensus_refresh_members(c);
}

void consensus_forget_founding(struct consensus *c, raft_id peer)
{
    for (size_t i = 0; i < c->foreign.count; i++)
        if (c->foreign.items[i].peer == peer)
            c->foreign.items[i].founding = 0;
}

/* At once: by our greeting whoever we refuse for its founding knows why, and it is told so once. */
void consensus_tell_founding(struct consensus *c)
{
    struct peer_hello hello;

    c->told.founding = c->node.raft.founding;
    consensus_make_hello(c, &hello);
    transport_set_self(c->transport, &hello);
}
