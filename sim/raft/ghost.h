/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A ghost: the data directory of a node is lost, and another is put in its
 * place: an empty one that is founded, one with the log of another node, or an
 * older copy of itself, made while the node ran or while it was down. A real
 * core runs with it in the name of the node that is gone, and all other nodes
 * must act as if it did not exist. The referee does not know it; it judges how
 * the others react to its messages.
 *
 * An older copy has the same number as the original. A node that has not seen
 * later writes of the original cannot tell them apart (docs/PROTOCOL.md,
 * Directories; gaveld has means of its own), so the copy's messages reach only
 * nodes that can, and these must refuse it. A node remembers what it has seen
 * as long as it runs, and after a restart what it had seen before a write that
 * is on its disk.
 *
 * Ghosts of a majority that is founded again (refound.c) form another cluster
 * of the same name. No node may listen to them, and once founded they take no
 * entry of the others.
 */
#ifndef SIM_RAFT_GHOST_H
#define SIM_RAFT_GHOST_H

#include "core/raft/message.h"

#include <stdbool.h>

struct cluster;
struct host;
struct event;

/*
 * Whether every other disk knows which directory the node had, from its log or
 * because it has met the node. Before that no node could tell the two apart.
 */
bool ghost_may_come(const struct cluster *cluster, const struct host *host);

/* Whether a disk knows that only because it has met the node. */
bool ghost_is_unbound(const struct cluster *cluster, const struct host *host);

/* The node is damaged for good; its ghost begins. */
void ghost_begin(struct cluster *cluster, struct host *host);

/* The node is down and will come back; meanwhile an empty directory is founded again (refound.c). */
void ghost_found(struct cluster *cluster, struct host *host);
void ghost_end(struct host *host);

/* Copies its disk once in `rarity` calls, to be put back some day. */
void ghost_copy(struct cluster *cluster, struct host *host, unsigned rarity);

/* Whether an older copy of the directory of this node speaks, or has spoken. */
bool ghost_is_old(const struct cluster *cluster, raft_id id);

/* Whether the message comes from an older copy and the node cannot know that. */
bool ghost_is_hidden(const struct cluster *cluster, const struct host *host,
                     const struct raft_message *message);

/*
 * Notes what the node knows about the others: after a step, at a write, when
 * that is on its disk, and at its start.
 */
void ghost_note(struct cluster *cluster, struct host *host);
void ghost_writes(struct host *host, uint64_t seq);
void ghost_wrote(struct host *host, uint64_t seq);
void ghost_recalls(struct host *host);

/*
 * Checks a message that the node got: if it comes from an older copy, it was
 * refused, and a leader has recorded that; if it is of another founding, it was
 * refused as well. `is_heard`: the node has not refused it.
 */
void ghost_check(struct cluster *cluster, const struct host *host, const struct raft_message *message,
                 bool is_heard);

/* A message for the node that is gone. */
void ghost_receive(struct cluster *cluster, struct host *host, const struct raft_message *message);

/* A GHOST event: its timer. */
void ghost_take(struct cluster *cluster, const struct event *event);

#endif
