/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The node process: four threads.
 *
 *     consensus   raft_step(), sockets to the peers, the table, the front end; never blocks
 *     disk        writes what Raft wants durable, many changes in one transaction
 *     API         HTTP; reads the view, the journal and the table, sends requests and forwardings
 *     clients     frames of clients; reads the table, sends forwardings; only if it is configured
 *
 *        peers ◄──► consensus ── PERSIST ──► disk
 *                     │   ▲  ◄── durable ──────┘
 *    view, journal, table │ requests, forwardings
 *                     ▼   │
 *           HTTP ◄──► API, clients ◄──► gavel://
 */
#ifndef DAEMON_NODE_NODE_H
#define DAEMON_NODE_NODE_H

#include "daemon/config/config.h"
#include "daemon/shared/journal.h"
#include "daemon/shared/mailbox.h"
#include "daemon/shared/shared_memory.h"
#include "daemon/shared/table_box.h"
#include "daemon/shared/view.h"

#include <stdatomic.h>

/* How a node process ends, as its exit code; the guard restarts it after anything else. */
enum node_exit {
    NODE_EXIT_DONE = 0,    /* asked to */
    NODE_EXIT_CONFIG = 78, /* EX_CONFIG: starting again would not help */
    NODE_EXIT_DISK = 74,   /* EX_IOERR: a write failed; what is on disk is not known any more */
    NODE_EXIT_FENCED = 77, /* the cluster goes on without this node: another generation, or removed */
    NODE_EXIT_LOST = 79,   /* the data directory was deleted or replaced, or the cluster refuses it */
    NODE_EXIT_BUSY = 75,   /* EX_TEMPFAIL: the port or the directory is taken */
};

/* What the threads of the node share. All of it is safe to use from another thread. */
struct node_shared {
    const struct daemon_config *config;
    struct log log;
    struct view_box view;
    struct journal *journal;
    struct mailbox requests;    /* of struct request */
    struct mailbox forwardings; /* of struct forwarding (forwarding.h) */
    struct table_box table;
    _Atomic bool is_blind; /* the table stands still, for this node's disk hangs: clients must go elsewhere */
    _Atomic gavel_ns
        clients_alive_at; /* when the clients thread last went round its loop; 0: there is none */
};

/* Runs the node until it is asked to end (SIGTERM, SIGINT: hand over, then end). Logs; returns enum
 * node_exit. SIGHUP reads certificates and token again. The memory is NULL without a guard. */
int node_run(const struct daemon_config *config, struct shared_memory *memory);

#endif
