/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The configuration of gaveld: the YAML file, the environment (GAVELD_*) and flags,
 * combined and checked as a whole before anything starts. gaveld.yaml(5) lists the
 * keys.
 */
#ifndef DAEMON_CONFIG_CONFIG_H
#define DAEMON_CONFIG_CONFIG_H

#include "base/log.h"
#include "config/run_file.h"
#include "core/raft/raft.h"
#include "wire/peer.h"

#include <limits.h>

struct daemon_peer {
    raft_id id; /* from the name */
    char name[PEER_NAME_MAX + 1];
    char address[PEER_ADDRESS_MAX + 1]; /* for peers */
    char api[PEER_ADDRESS_MAX + 1];     /* "" if not given */
    uint8_t priority;
    bool is_witness;
};

enum daemon_start {
    START_AGAIN,     /* the directory must hold a node already */
    START_BOOTSTRAP, /* an empty directory begins with the peers of the file as members */
    START_JOIN,      /* an empty directory begins without members and waits to be told them */
    START_FORCE,     /* --force-new-cluster */
};

struct daemon_config {
    char file[PATH_MAX]; /* "" if none was read */
    char cluster[PEER_NAME_MAX + 1];
    char node[PEER_NAME_MAX + 1];
    uint64_t cluster_id;
    raft_id id;
    struct daemon_peer peers[RAFT_MEMBERS_MAX]; /* with ourselves, in order of id */
    size_t peer_count;
    char listen[PEER_ADDRESS_MAX + 1];
    char advertise[PEER_ADDRESS_MAX + 1];
    char api_listen[PEER_ADDRESS_MAX + 1];
    char api_advertise[PEER_ADDRESS_MAX + 1];
    char clients_listen[PEER_ADDRESS_MAX + 1]; /* for clients, host:port; "" none */
    char clients_advertise[PEER_ADDRESS_MAX + 1];
    char socket[PATH_MAX]; /* for clients on this machine; "" none */
    char data[PATH_MAX];
    uint64_t data_bytes_max;
    bool has_tls; /* between nodes, and with has_api_tls also for the API */
    bool has_api_tls;
    char tls_ca[PATH_MAX];
    char tls_cert[PATH_MAX];
    char tls_key[PATH_MAX];
    char tls_revoked[PATH_MAX]; /* "": no list */
    char secret[PATH_MAX];      /* of the seal; "" only on loopback */
    char token[PATH_MAX];       /* a file with the token that the API requires; "" none */
    struct raft_settings raft;  /* without verify and sign */
    bool auto_failover;
    uint32_t snapshot_entries; /* compact the log after this many: 10,000 … */
    uint64_t snapshot_bytes;   /* … or this many bytes of them: 64 MiB */
    gavel_ns group_retention;  /* groups that nobody uses for this long are removed; 0 never: a day */
    enum daemon_start start;
    bool is_confirmed; /* --yes */
    bool accepts_copy; /* --accept-copy: of the data directory */
    bool realtime;     /* SCHED_FIFO and mlockall where permitted: true */
    enum log_level log_level;
    enum log_format log_format;
    bool has_leader_commands;
    struct run_file children; /* of `leader_commands:` */
    gavel_ms stop_grace_ms;   /* of the children; part of raft.stop_margin */
};

#endif
