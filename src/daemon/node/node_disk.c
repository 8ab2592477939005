/* SPDX-License-Identifier: Apache-2.0 */

/* The data directory of a node: opened, founded if it is empty and may be, and refused if it is another. */
#include "daemon/node/consensus.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* The members of a new cluster, or none of a node that joins one. */
static void first_config(const struct daemon_config *config, struct raft_config *ret_config)
{
    memset(ret_config, 0, sizeof *ret_config);
    if (config->start != START_BOOTSTRAP)
        return;
    ret_config->binds = true; /* members will be bound to their data directories as they are met */
    for (size_t i = 0; i < config->peer_count; i++)
        ret_config->members[ret_config->count++] =
            (struct raft_member){.id = config->peers[i].id,
                                 .priority = config->peers[i].priority,
                                 .is_voter = true,
                                 .is_witness = config->peers[i].is_witness};
    raft_config_sort(ret_config);
}

#define REPLACE                                                                                              \
    "`gavel member remove %s`, `gavel member add %s ADDRESS`, and start it with --join on an empty "         \
    "directory"

/*
 * A node of this guard has run already, so this one begins with the same directory or not at all: a bootstrap
 * is done once, by whoever starts gaveld, and never by a guard.
 */
static enum gavel_status check_same(const struct daemon_config *config, const struct shared_memory *memory,
                                    const struct disk *disk, bool is_new, struct gavel_error *error)
{
    uint64_t directory = atomic_load(&memory->directory);
    uint64_t written = atomic_load(&memory->written);
    struct disk_mark mark = {0};

    if (directory == 0)
        return GAVEL_OK;
    if (!is_new)
        disk_mark_read(disk, &mark);
    if (mark.directory == directory && mark.txn >= written)
        return GAVEL_OK;
    return error_set(
        error, GAVEL_ERR_NOT_FOUND,
        "the data directory %.150s was %s while gaveld ran: what this node has promised is lost, so it must not vote again. Put the right one back, or replace the member: " REPLACE,
        config->data,
        mark.directory == 0           ? "emptied"
        : mark.directory != directory ? "replaced by another"
                                      : "put back to an older state",
        config->node, config->node);
}

static enum gavel_status found(const struct daemon_config *config, struct disk *disk,
                               struct gavel_error *error)
{
    struct raft_state state = {.cluster = config->cluster_id,
                               .generation = config->start == START_BOOTSTRAP, /* a leader tells who joins */
                               .id = config->id};
    struct raft_snapshot snapshot = {0};
    const char *reason = "";

    if (config->start != START_BOOTSTRAP && config->start != START_JOIN)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "the data directory %.200s is empty. The first start of a new cluster? Then use --bootstrap, on all of its nodes. A new member? `gavel member add` and --join. A lost disk? Replace the member: " REPLACE,
            config->data, config->node, config->node);
    first_config(config, &snapshot.config);
    if (config->start == START_BOOTSTRAP && raft_config_check(&snapshot.config, &reason) != GAVEL_OK)
        return error_set(error, GAVEL_ERR_INVALID, "the peers cannot be a cluster: %s", reason);
    return disk_found(disk, &state, &snapshot, error);
}

enum gavel_status node_open_disk(const struct daemon_config *config, const struct shared_memory *memory,
                                 struct disk **ret_disk, struct gavel_error *error)
{
    struct disk_options options = {.data_dir = config->data, .bytes_max = config->data_bytes_max};
    bool is_new = false;
    enum gavel_status status;

    options.identity.cluster = config->cluster_id;
    options.identity.node = config->id;
    (void)snprintf(options.identity.cluster_name, sizeof options.identity.cluster_name, "%s",
                   config->cluster);
    (void)snprintf(options.identity.node_name, sizeof options.identity.node_name, "%s", config->node);
    options.accepts_copy = config->accepts_copy && atomic_load(&memory->directory) == 0;
    status = disk_open(&options, ret_disk, &is_new, error);
    if (status == GAVEL_OK)
        status = check_same(config, memory, *ret_disk, is_new, error);
    if (status == GAVEL_OK && is_new)
        status = found(config, *ret_disk, error);
    return status;
}
