/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A cluster that comes from 0.6.0 binds its members to their data directories
 * when all have told theirs (raft/directory.c). Until then a directory that is
 * lost or put back is not noticed, so a leader that waits for somebody says so.
 */
#include "daemon/node/consensus.h"
#include "os/clock.h"

/* A rolling upgrade takes a while; so does the start of a cluster. */
#define TOLD_AFTER (60 * NS_PER_S)

void consensus_check_bindings(struct consensus *c)
{
    const struct raft_config *config = &c->node.raft.config;

    if (c->node.raft.role != RAFT_LEADER || config->binds) {
        c->told.is_awaited_told = false;
        return;
    }
    if (c->told.is_awaited_told || clock_now() < c->node.raft.led_from + TOLD_AFTER)
        return;
    c->told.is_awaited_told = true;
    for (size_t i = 0; i < config->count; i++)
        if (raft_awaits_directory(&c->node.raft, config->members[i].id))
            consensus_note(c, JOURNAL_DIRECTORY_AWAITED, config->members[i].id, "%s", CONSENSUS_AWAITED_TEXT);
    consensus_refresh_members(c);
}
