/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Carrying out what the node says: writes go to the disk thread in order,
 * messages to the transport, answers to the threads that have clients.
 */
#include "daemon/node/consensus.h"

static void out_of_memory(struct consensus *c, const char *what)
{
    logger_line(&c->logger, LOG_ERROR, "out of memory; the node ends and is started again",
                LOG_STR("for", what), LOG_END);
    consensus_end(c, 1);
}

/* Of interest to whoever upgrades the nodes: from now on there is no way back. */
static void tell_version(struct consensus *c)
{
    if (c->node.members.version == c->told.table_version)
        return;
    c->told.table_version = c->node.members.version;
    logger_line(
        &c->logger, LOG_INFO,
        "all nodes know what is new in this release: it is used from now on, and older releases are refused",
        LOG_U64("table_version", c->told.table_version), LOG_END);
}

static void applied(struct consensus *c, const struct node_action *action)
{
    tell_version(c);
    detector_applied(&c->detector, action->applied.index, table_digest(c->table));
    if (!node_changes_table(&c->node)) /* the last of several */
        table_box_ring(&c->shared->table);
}

static void restored(struct consensus *c)
{
    tell_version(c);
    detector_applied(&c->detector, c->node.raft.snapshot.index, table_digest(c->table));
    c->sessions.process_watch.is_rescan_due = true;
    table_box_ring(&c->shared->table);
}

static void fail(struct consensus *c, enum gavel_status status)
{
    if (status == GAVEL_ERR_NO_MEMORY) {
        out_of_memory(c, "the table");
        return;
    }
    if (status == GAVEL_ERR_STORE_UNSUPPORTED) {
        logger_line(&c->logger, LOG_ERROR, CONSENSUS_TOO_OLD_TEXT, LOG_U64("knows", TABLE_VERSION), LOG_END);
        consensus_end(c, NODE_EXIT_CONFIG);
        return;
    }
    logger_line(&c->logger, LOG_ERROR,
                "the leader's snapshot cannot be read; is it of a newer gavel? upgrade this node",
                LOG_U64("index", c->node.raft.snapshot.index), LOG_END);
    consensus_end(c, NODE_EXIT_CONFIG);
}

void consensus_carry_out(struct consensus *c)
{
    for (size_t i = 0; i < c->actions.count && !c->ending.is_over; i++) {
        const struct node_action *action = &c->actions.items[i];

        switch (action->kind) {
        case NODE_PERSIST:
            if (writer_put(&c->writer, &c->node.raft, action->persist) != GAVEL_OK)
                out_of_memory(c, "a write");
            break;
        case NODE_SEND:
            transport_send(c->transport, action->message);
            break;
        case NODE_FORWARD:
            consensus_forward(c, &action->forward);
            break;
        case NODE_ANSWER:
            consensus_answer_client(c, action->answer);
            break;
        case NODE_APPLIED:
            applied(c, action);
            break;
        case NODE_RESTORED:
            restored(c);
            break;
        case NODE_WORK_START:
            consensus_begin_work(c, action->work.term, action->work.lease_epoch);
            break;
        case NODE_WORK_STOP:
            consensus_stop_work(c, action->stop_reason);
            break;
        case NODE_WATCH:
            process_watch_meet(&c->sessions.process_watch, &action->watch);
            break;
        case NODE_ORDERED:
            consensus_ordered(c, action->ordered.id, action->ordered.status, action->ordered.text);
            break;
        case NODE_ADDRESSES:
            consensus_set_peers(c);
            break;
        case NODE_TELL:
            consensus_tell(c, action->tell);
            break;
        case NODE_FAIL:
            fail(c, action->failure);
            break;
        }
    }
}
