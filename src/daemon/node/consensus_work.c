/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The work of a leader: being the one that the API names, and the children of
 * `leader_commands:`. It begins with CLAIM, goes on until raft_deadline() unless
 * that moves, and has stopped when nothing of it is left.
 */
#include "daemon/node/consensus.h"

#include "base/assert.h"
#include "os/clock.h"

/* Alone, a lease never ends; far away, and still a number to calculate with. */
#define FAR_AWAY (NEVER / 2)

/* The children's deadline: they begin to stop when Raft says so and have the stop margin to be gone. */
static void publish_mandate(struct consensus *c)
{
    gavel_ns stop_at = ns_min(raft_deadline(&c->node.raft), FAR_AWAY);

    if (c->memory && c->node.claim.is_held)
        shared_memory_set_mandate(c->memory, c->work.epoch, stop_at, stop_at + c->config->raft.stop_margin);
}

void consensus_begin_work(struct consensus *c, raft_term term, uint64_t lease_epoch)
{
    gavel_ns now = clock_now();
    struct journal_entry entry = {.event = JOURNAL_BECAME_LEADER, .term = term, .lease_epoch = lease_epoch};

    ASSERT(c->node.claim.is_held);
    c->work.deadline = raft_deadline(&c->node.raft);
    logger_line(&c->logger, LOG_INFO, "leads", LOG_U64("term", term), LOG_U64("lease_epoch", lease_epoch),
                LOG_I64("at_ns", now), LOG_I64("until_ns", c->work.deadline), LOG_END);
    entry.at = now;
    (void)node_addresses_name(&c->node.members.addresses, c->config->id, entry.node);
    consensus_publish(c); /* before anybody hears of it */
    consensus_put(c, &entry);
    c->told.is_status_due = true;
    if (!c->commands)
        return;
    if (!shared_memory_epoch(term, lease_epoch, &c->work.epoch)) {
        logger_line(&c->logger, LOG_ERROR, "too many hand-overs failed in one term; the node steps down",
                    LOG_U64("lease_epoch", lease_epoch), LOG_END);
        c->work.epoch = 0;
        c->work.has_failed = true;
        return; /* the children do not run */
    }
    publish_mandate(c);
    leader_commands_run(c->commands, c->work.epoch);
}

void consensus_extend_work(struct consensus *c)
{
    gavel_ns deadline;

    if (!c->node.claim.is_held)
        return;
    deadline = raft_deadline(&c->node.raft);
    if (deadline == c->work.deadline)
        return;
    c->work.deadline = deadline;
    publish_mandate(c);
    logger_line(&c->logger, LOG_DEBUG, "lease", LOG_I64("until_ns", deadline),
                LOG_U64("term", c->node.claim.term), LOG_U64("lease_epoch", c->node.claim.lease_epoch),
                LOG_I64("at_ns", clock_now()), LOG_END);
}

void consensus_stop_work(struct consensus *c, enum raft_stop reason)
{
    c->draft.is_claimed = false;
    consensus_publish(c); /* the API stops first */
    c->told.is_status_due = true;
    if (!c->commands || c->work.epoch == 0)
        c->work.has_stopped = true;
    else
        leader_commands_stop(c->commands, c->work.epoch, reason == RAFT_STOP_REPLACED);
}

/* Nothing of it is left; Raft hears of it next. */
void consensus_work_stopped(struct consensus *c)
{
    gavel_ns now = clock_now();
    const char *reason = raft_stop_name(c->node.raft.stop_reason);
    struct journal_entry entry = {.event = JOURNAL_LOST_LEADERSHIP,
                                  .term = c->node.claim.term,
                                  .lease_epoch = c->node.claim.lease_epoch,
                                  .at = now};

    ASSERT(!c->node.claim.is_held);
    logger_line(&c->logger, LOG_INFO, "work stopped", LOG_U64("term", c->node.claim.term),
                LOG_U64("lease_epoch", c->node.claim.lease_epoch), LOG_I64("at_ns", now),
                LOG_STR("reason", reason), LOG_END);
    (void)node_addresses_name(&c->node.members.addresses, c->config->id, entry.node);
    (void)snprintf(entry.text, sizeof entry.text, "%s", reason);
    consensus_put(c, &entry);
}
