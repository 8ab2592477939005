/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Everything in the database is read once when it is opened: every checksum,
 * and that the records are exactly those that must be there, in their order.
 *
 *   a   b   c0 c1 …   e(snapshot + 1) … e(last)   y, if anybody was met   z
 *
 * Format 3 has pieces in two slots, c0 … and d0 …, of which one counts, and may have entries before those
 * (stage.c).
 *
 * The transaction number in 'z' must be the one that LMDB calls the last.
 * Otherwise the page that names it was changed, and this is an older state.
 */
#include "disk/internal.h"

#include "base/error.h"

#include <inttypes.h>
#include <string.h>

/* A walk over all records, one after the other. */
struct walk {
    struct disk *disk;
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_val key;
    MDB_val value;
    const uint8_t *body;
    size_t size;
    bool is_at_end;
    struct disk_contents contents;
    struct record_file_id file_id;
    struct raft_config config;
    struct gavel_error *error;
};

enum gavel_status disk_body(const struct disk *disk, uint64_t seed, const MDB_val *key, const MDB_val *value,
                            const uint8_t **ret_body, size_t *ret_size, struct gavel_error *error)
{
    const uint8_t *bytes = value->mv_data;
    size_t size = value->mv_size - RECORD_SUM_BYTES;

    if (value->mv_size < RECORD_SUM_BYTES ||
        record_get_u64(bytes) != record_sum(seed, key->mv_data, key->mv_size, bytes + RECORD_SUM_BYTES, size))
        return disk_damaged(disk, error, "the checksum of a record is wrong (%c)", *(char *)key->mv_data);
    *ret_body = bytes + RECORD_SUM_BYTES;
    *ret_size = size;
    return GAVEL_OK;
}

/* The next record; it must also be found by its key, or the pages above it point elsewhere. */
static enum gavel_status next(struct walk *w, MDB_cursor_op op)
{
    MDB_val found;
    int code = mdb_cursor_get(w->cursor, &w->key, &w->value, op);
    bool is_identity;

    if (code == MDB_NOTFOUND) {
        w->is_at_end = true;
        return GAVEL_OK;
    }
    if (code == 0)
        code = mdb_get(w->txn, w->disk->dbi, &w->key, &found);
    if (code != 0)
        return disk_error(w->disk, code, "reading a record", w->error);
    if (found.mv_data != w->value.mv_data)
        return disk_damaged(w->disk, w->error, "a record is there twice");
    is_identity = w->key.mv_size == 1 && *(char *)w->key.mv_data == 'a';
    return disk_body(w->disk, is_identity ? 0 : w->disk->seed, &w->key, &w->value, &w->body, &w->size,
                     w->error);
}

static bool is_at(const struct walk *w, struct record_key key)
{
    return !w->is_at_end && w->key.mv_size == key.size && memcmp(w->key.mv_data, key.bytes, key.size) == 0;
}

static enum gavel_status check_identity(struct walk *w)
{
    const struct disk *disk = w->disk;
    const struct disk_identity *ours = &disk->identity;
    struct disk_identity identity;
    uint32_t version = 0;
    enum gavel_status status = next(w, MDB_FIRST);

    if (status != GAVEL_OK)
        return status;
    if (!is_at(w, record_key_identity()))
        return error_set(
            w->error, GAVEL_ERR_INVALID,
            "%s in the directory %.200s is a database of something else; name the right directory, or an empty one",
            DISK_FILE, disk->data_dir);
    status = record_get_identity(w->body, w->size, &identity, &w->file_id, &version);
    if (status == GAVEL_ERR_STORE_TOO_NEW)
        return error_set(
            w->error, status,
            "the data directory %.200s has format %u, of a newer gavel, and this one knows %u; install the newer one",
            disk->data_dir, version, RECORD_VERSION);
    if (status != GAVEL_OK)
        return disk_damaged(disk, w->error, "it does not say whose it is");
    if (identity.cluster != ours->cluster || identity.node != ours->node ||
        strcmp(identity.cluster_name, ours->cluster_name) != 0 ||
        strcmp(identity.node_name, ours->node_name) != 0)
        return error_set(
            w->error, GAVEL_ERR_INVALID,
            "the data directory %.150s belongs to node %s of cluster %s, and this is node %s of cluster %s; name the right directory, or the right node",
            disk->data_dir, identity.node_name, identity.cluster_name, ours->node_name, ours->cluster_name);
    w->contents.version = version;
    return next(w, MDB_NEXT);
}

/* The pieces of a slot: how many, and how many bytes. */
static enum gavel_status check_pieces(struct walk *w, unsigned slot, uint32_t *ret_count, size_t *ret_size)
{
    enum gavel_status status = GAVEL_OK;
    size_t size = 0;
    uint32_t i = 0;

    for (; status == GAVEL_OK && is_at(w, record_key_piece(slot, i)); i++) {
        /* All pieces but the last are whole; among leftovers the last of another snapshot may lie between. */
        bool is_whole = size == (size_t)i * RECORD_PIECE_BYTES || slot != w->contents.slot;

        if (!is_whole || w->size == 0 || w->size > RECORD_PIECE_BYTES)
            return disk_damaged(w->disk, w->error, "piece %u of the snapshot has the wrong size", i);
        size += w->size;
        status = next(w, MDB_NEXT);
    }
    *ret_count = i;
    *ret_size = size;
    return status;
}

static enum gavel_status check_snapshot(struct walk *w)
{
    struct disk_contents *contents = &w->contents;
    uint32_t counts[2] = {0};
    size_t sizes[2] = {0};
    enum gavel_status status;

    if (!is_at(w, record_key_head()) ||
        record_get_head(w->body, w->size, &contents->snapshot, &contents->slot) != GAVEL_OK)
        return disk_damaged(w->disk, w->error, "the snapshot is missing");
    status = next(w, MDB_NEXT);
    for (unsigned slot = 0; slot < 2 && status == GAVEL_OK; slot++)
        status = check_pieces(w, slot, &counts[slot], &sizes[slot]);
    if (status == GAVEL_OK && sizes[contents->slot] != contents->snapshot.size)
        status = disk_damaged(w->disk, w->error, "the snapshot has %zu bytes and should have %zu",
                              sizes[contents->slot], contents->snapshot.size);
    contents->spare = counts[1 - contents->slot];
    w->config = contents->snapshot.config;
    return status;
}

/* Entries that the snapshot stands for: a crash has kept them from being removed. */
static enum gavel_status check_stale(struct walk *w)
{
    struct disk_contents *contents = &w->contents;
    enum gavel_status status = GAVEL_OK;

    while (status == GAVEL_OK && !w->is_at_end && w->key.mv_size == 9 && *(char *)w->key.mv_data == 'e') {
        raft_index index = record_entry_index(w->key.mv_data);

        if (index > contents->snapshot.index)
            break;
        if (contents->stale_first == 0)
            contents->stale_first = index;
        else if (index != contents->stale_last + 1)
            return disk_damaged(w->disk, w->error, "entry %" PRIu64 " is missing", contents->stale_last + 1);
        contents->stale_last = index;
        status = next(w, MDB_NEXT);
    }
    if (status == GAVEL_OK && !disk_is_plain(contents) && contents->version < RECORD_VERSION)
        status = disk_damaged(w->disk, w->error, "there are records too many");
    return status;
}

static enum gavel_status check_entries(struct walk *w)
{
    raft_index index = w->contents.snapshot.index + 1;
    raft_term term = w->contents.snapshot.term;
    enum gavel_status status = GAVEL_OK;

    for (; status == GAVEL_OK && is_at(w, record_key_entry(index)); index++) {
        struct raft_entry entry;

        if (record_get_entry(w->body, w->size, &entry) != GAVEL_OK || entry.term < term)
            return disk_damaged(w->disk, w->error, "entry %" PRIu64 " cannot be", index);
        if (entry.kind == RAFT_ENTRY_CONFIG &&
            raft_config_decode(entry.data, entry.size, &w->config) != GAVEL_OK)
            return disk_damaged(w->disk, w->error, "the members in entry %" PRIu64 " cannot be", index);
        term = entry.term;
        status = next(w, MDB_NEXT);
    }
    w->contents.last = index - 1;
    return status;
}

static enum gavel_status check_state(struct walk *w)
{
    const struct raft_state *state = &w->contents.state;
    struct raft_state met = {0};
    uint64_t txn;

    if (is_at(w, record_key_met())) {
        enum gavel_status status = record_get_met(w->body, w->size, &met) == GAVEL_OK
                                       ? next(w, MDB_NEXT)
                                       : disk_damaged(w->disk, w->error, "the members met cannot be read");

        if (status != GAVEL_OK)
            return status;
    }

    if (!is_at(w, record_key_state()))
        return disk_damaged(w->disk, w->error, "after entry %" PRIu64 " something is missing or too much",
                            w->contents.last);
    if (record_get_state(w->body, w->size, &w->contents.state, &txn) != GAVEL_OK ||
        state->cluster != w->disk->identity.cluster || state->id != w->disk->identity.node)
        return disk_damaged(w->disk, w->error, "the state cannot be read");
    w->contents.state.met_count = met.met_count;
    memcpy(w->contents.state.met, met.met, sizeof met.met);
    if (txn != mdb_txn_id(w->txn))
        return disk_damaged(w->disk, w->error, "the newest transaction is lost: %zu is there, of %" PRIu64,
                            mdb_txn_id(w->txn), txn);
    w->contents.txn = txn;
    if (state->commit > w->contents.last)
        return disk_damaged(w->disk, w->error,
                            "entries up to %" PRIu64 " were committed, the log ends at %" PRIu64,
                            state->commit, w->contents.last);
    return next(w, MDB_NEXT);
}

static enum gavel_status check_all(struct walk *w)
{
    enum gavel_status status = check_identity(w);

    if (status == GAVEL_OK)
        status = check_snapshot(w);
    if (status == GAVEL_OK)
        status = check_stale(w);
    if (status == GAVEL_OK)
        status = check_entries(w);
    if (status == GAVEL_OK)
        status = check_state(w);
    if (status == GAVEL_OK && !w->is_at_end)
        status = disk_damaged(w->disk, w->error, "there are records too many");
    return status;
}

enum gavel_status disk_verify(struct disk *disk, struct gavel_error *error)
{
    struct walk walk = {.disk = disk, .error = error};
    enum gavel_status status;
    int code = mdb_txn_begin(disk->env, NULL, MDB_RDONLY, &walk.txn);

    if (code != 0)
        return disk_error(disk, code, "beginning to read", error);
    code = mdb_cursor_open(walk.txn, disk->dbi, &walk.cursor);
    if (code != 0) {
        mdb_txn_abort(walk.txn);
        return disk_error(disk, code, "beginning to read", error);
    }
    status = check_all(&walk);
    if (status == GAVEL_OK) {
        disk->contents = walk.contents;
        disk->config = walk.config;
        disk->file_id = walk.file_id;
    }
    mdb_cursor_close(walk.cursor);
    mdb_txn_abort(walk.txn);
    return status;
}
