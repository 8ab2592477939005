/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The first write into a directory, and the last resort.
 *
 * The file is made under another name and gets its own when it is complete and
 * durable. So a crash leaves either a new directory or a founded one, and a
 * data.mdb that holds nothing is never taken for a new one.
 */
#include "disk/internal.h"

#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static enum gavel_status write_first(struct disk *disk, const struct raft_state *state,
                                     const struct raft_snapshot *snapshot, struct gavel_error *error)
{
    struct disk_txn txn;
    enum gavel_status status = disk_make_room(disk, DISK_NEEDS_LITTLE, snapshot->size, 0, error);
    int code;

    if (status == GAVEL_OK)
        status = disk_file_id_read(disk, &disk->file_id, error);
    if (status == GAVEL_OK)
        status = disk_txn_begin(&txn, disk, error);
    if (status != GAVEL_OK)
        return status;
    txn.contents = (struct disk_contents){.state = *state, .last = snapshot->index};
    txn.contents.state.directory = disk_draw_directory();
    txn.contents.state.cluster = disk->identity.cluster;
    txn.contents.state.id = disk->identity.node;
    code = disk_put_identity(&txn);
    if (code == 0)
        code = disk_put_snapshot(&txn, snapshot);
    if (code != 0)
        return disk_txn_abort(&txn, code, "writing the first state", error);
    return disk_txn_commit(&txn, error);
}

enum gavel_status disk_found(struct disk *disk, const struct raft_state *state,
                             const struct raft_snapshot *snapshot, struct gavel_error *error)
{
    char path[DISK_PATH_BYTES];
    char name[DISK_PATH_BYTES];
    enum gavel_status status;

    if (disk->env)
        return error_set(error, GAVEL_ERR_STATE, "the data directory %.200s is not new", disk->data_dir);
    disk_path(disk, DISK_NEW_FILE, path);
    disk_path(disk, DISK_FILE, name);
    /* What a crash in here has left. */
    if (unlink(path) < 0 && errno != ENOENT)
        return disk_error(disk, errno, "removing " DISK_NEW_FILE, error);
    status = disk_environment_open(disk, path, error);
    if (status == GAVEL_OK)
        status = write_first(disk, state, snapshot, error);
    if (status == GAVEL_OK && rename(path, name) < 0)
        status = disk_error(disk, errno, "giving " DISK_FILE " its name", error);
    if (status == GAVEL_OK)
        status = disk_directory_sync(disk, error);
    if (status == GAVEL_OK) {
        disk->config = snapshot->config;
        return GAVEL_OK;
    }
    disk_environment_close(disk);
    (void)unlink(path); /* the next attempt does it too */
    return status;
}

/* This node as the only member: it keeps its priority, but a witness alone could do nothing. What was begun
 * anew twice, from two copies, must not meet: so it is a new directory, too. */
static void alone(const struct disk *disk, uint64_t directory, struct raft_config *ret_config)
{
    const struct raft_member *self = raft_config_find(&disk->config, disk->identity.node);

    *ret_config = (struct raft_config){.count = 1, .binds = true};
    ret_config->members[0] = (struct raft_member){.id = disk->identity.node,
                                                  .priority = self ? self->priority : 0,
                                                  .is_voter = true,
                                                  .directory = directory};
}

/*
 * The newest configuration in the log decides, so one more is appended. A cluster that has never elected
 * anybody has no entry; its first configuration is replaced.
 *
 * The lost nodes may have led in terms that this one has never heard of, and whoever checks fencing tokens
 * has seen theirs. So the term leaves room for all that they can have had. Terms that cannot be true are
 * lowered (repair.c); whoever has seen one of those as a fencing token must be told by hand.
 */
static int write_alone(struct disk_txn *txn, const struct disk_terms *terms)
{
    struct disk_contents *contents = &txn->contents;
    struct raft_snapshot snapshot;
    struct raft_config config;
    uint8_t bytes[RAFT_CONFIG_BYTES_MAX];
    struct raft_entry entry = {.kind = RAFT_ENTRY_CONFIG, .data = bytes};
    bool has_elected = contents->state.term > 0;
    int code;

    contents->state.directory = disk_draw_directory();
    alone(txn->disk, contents->state.directory, &config);
    contents->state.generation++;
    contents->state.term = terms->last + DISK_FORCED_TERMS;
    if (terms->is_lowered) {
        code = disk_lower_terms(txn, contents->state.term);
        if (code != 0)
            return code;
    }
    snapshot = contents->snapshot;
    contents->state.vote = 0;
    contents->state.promise = (struct raft_promise){0};
    contents->state.met_count = 0;
    code = disk_put_met(txn);
    if (code != 0)
        return code;
    if (has_elected) {
        entry.term = contents->state.term;
        entry.size = (uint32_t)raft_config_encode(&config, bytes);
        return disk_put_entry(txn, contents->last + 1, &entry);
    }
    snapshot.config = config;
    contents->snapshot = snapshot;
    return disk_put_head(txn, &snapshot);
}

enum gavel_status disk_force_new_cluster(struct disk *disk, uint64_t *ret_generation,
                                         struct gavel_error *error)
{
    struct disk_terms terms = {0};
    struct disk_txn txn;
    enum gavel_status status;
    int code;

    if (!disk->env)
        return error_set(
            error, GAVEL_ERR_STATE,
            "the data directory %.200s is empty: there is no cluster to continue; use the directory of a node that was a member",
            disk->data_dir);
    if (disk->is_begun)
        return error_set(error, GAVEL_ERR_STATE, "the node of %.200s has begun already", disk->data_dir);
    if (disk->config.count == 0)
        return error_set(
            error, GAVEL_ERR_STATE,
            "the node of %.200s has never heard from a leader: there is no cluster to continue; use the directory of another node",
            disk->data_dir);
    if (disk->contents.state.generation >= RAFT_NUMBER_MAX - 1 || disk->contents.last >= RAFT_NUMBER_MAX - 1)
        return disk_damaged(disk, error, "a number in it is too large to be true");
    status = disk_survey_terms(disk, &terms, error);
    if (status == GAVEL_OK)
        status = disk_make_room(disk, DISK_NEEDS_LITTLE, RAFT_CONFIG_BYTES_MAX + terms.bytes,
                                2 + terms.entries, error);
    if (status == GAVEL_OK)
        status = disk_file_id_read(disk, &disk->file_id, error);
    if (status == GAVEL_OK)
        status = disk_txn_begin(&txn, disk, error);
    if (status != GAVEL_OK)
        return status;
    code = write_alone(&txn, &terms);
    if (code == 0)
        code = disk_put_identity(&txn); /* a copy may go on by this */
    if (code != 0)
        return disk_txn_abort(&txn, code, "writing the new cluster", error);
    status = disk_txn_commit(&txn, error);
    if (status == GAVEL_OK)
        *ret_generation = disk->contents.state.generation;
    return status;
}
