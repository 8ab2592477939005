/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A snapshot is built beside the node, from what does not change any more: the
 * bytes of the snapshot before, and the committed entries after it.
 *
 *     snapshot before ── base │ base+1 … index │ …  the log goes on
 *                │                  │
 *                └── decoded ───────┴── applied ──► a table of its own ──► bytes
 *
 * begin() and collect() are called where the node is, and never take long:
 * entries are copied in slices. run() is called anywhere, and may take seconds.
 * What it builds is used only if its digest is the one that the table of the
 * node had at `index`: replicas that have drifted apart must not be compacted
 * into something that nobody can check any more. Then the caller feeds Raft with
 * COMPACT, or forgets the build if the log has got a newer base meanwhile (Raft
 * refuses it then).
 */
#ifndef CORE_NODE_BUILD_H
#define CORE_NODE_BUILD_H

#include "core/node/node.h"

struct node_build_slice;

struct node_build {
    raft_index base;     /* of the snapshot that it begins with */
    raft_index index;    /* that it goes up to */
    raft_index next;     /* of the entry to collect next */
    uint64_t digest;     /* of the node's table at `index` */
    struct blob *before; /* the snapshot at `base` */
    struct node_build_slice *slices;
    struct node_build_slice **last;
    struct blob *blob; /* what was built */
    uint64_t built;    /* the digest of that */
};

/* Whether a snapshot of all that is applied can be built now: there is nothing left for the table to do, and
 * something that is not in the snapshot yet. */
bool node_may_build(const struct node *node);

/* Only if node_may_build(). NULL: no memory. */
struct node_build *node_build_begin(const struct node *node);
void node_build_free(struct node_build *build); /* safe on NULL */

/*
 * Copies entries of at most about `bytes` bytes, at least one. True: that was the last one. ERR_STATE: the
 * log begins elsewhere now, and the build is of no use; ERR_NO_MEMORY.
 */
GAVEL_CHECKED enum gavel_status node_build_collect(struct node_build *build, const struct node *node,
                                                   size_t bytes, bool *ret_is_last);

/*
 * Builds it: build->blob. Any thread. ERR_NO_MEMORY; ERR_STORE_DAMAGED if the snapshot before cannot be read;
 * ERR_CONFLICT if the digest is another than the table had: there is no blob then.
 */
GAVEL_CHECKED enum gavel_status node_build_run(struct node_build *build);

/* Frees what it was built from; the caller allocated it, and the result may wait for long. */
void node_build_drop_inputs(struct node_build *build);

#endif
