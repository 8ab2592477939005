/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One transaction that writes, and the records it is made of.
 *
 * How a commit fails decides what may follow. Without room nothing that counts
 * was written: LMDB overwrites no page that is in use, and the page that makes
 * the new ones count is written last. It may be tried again, and all pages are
 * then written again. Anything else is final: after a failed fdatasync() the
 * kernel may show pages that the disk does not have. So the disk is marked as
 * failed, and every later write is refused.
 */
#include "disk/internal.h"

#include "base/assert.h"
#include "base/error.h"

#include <string.h>

enum gavel_status disk_refuse(const struct disk *disk, struct gavel_error *error)
{
    return error_set(
        error, GAVEL_ERR_IO,
        "a write to the data directory %.200s has failed before; nothing more is written: check the disk and start the node again",
        disk->data_dir);
}

enum gavel_status disk_txn_begin(struct disk_txn *txn, struct disk *disk, struct gavel_error *error)
{
    int code;

    if (disk->is_failed)
        return disk_refuse(disk, error);
    txn->disk = disk;
    txn->contents = disk->contents;
    code = mdb_txn_begin(disk->env, NULL, 0, &txn->txn);
    if (code == 0)
        return GAVEL_OK;
    disk->is_failed = disk_status_of(code) != GAVEL_ERR_NO_MEMORY;
    return disk_error(disk, code, "beginning a transaction", error);
}

static enum gavel_status failed(struct disk *disk, int code, const char *what, struct gavel_error *error)
{
    enum gavel_status status = disk_error(disk, code, what, error);

    if (status != GAVEL_ERR_STORE_FULL && status != GAVEL_ERR_NO_MEMORY)
        disk->is_failed = true;
    return status;
}

enum gavel_status disk_txn_abort(struct disk_txn *txn, int code, const char *what, struct gavel_error *error)
{
    mdb_txn_abort(txn->txn);
    return failed(txn->disk, code, what, error);
}

enum gavel_status disk_txn_commit(struct disk_txn *txn, struct gavel_error *error)
{
    struct disk *disk = txn->disk;
    uint8_t body[RECORD_STATE_BYTES];
    int code = 0;

    if ((txn->contents.version == RECORD_VERSION) == disk_is_plain(&txn->contents))
        code = disk_put_identity(txn); /* it has another format now */
    if (code != 0)
        return disk_txn_abort(txn, code, "writing the format", error);
    txn->contents.txn = mdb_txn_id(txn->txn);
    record_put_state(body, &txn->contents.state, txn->contents.txn);
    code = disk_put(txn, record_key_state(), body, sizeof body);
    if (code != 0)
        return disk_txn_abort(txn, code, "writing the state", error);
    ASSERT(txn->contents.txn > disk->contents.txn);
    code = mdb_txn_commit(txn->txn);
    if (code != 0)
        return failed(disk, code, "committing", error);
    disk->contents = txn->contents;
    return GAVEL_OK;
}

/* Room for a record of that size; ret_body is where it belongs. To be followed by seal(). */
static int reserve(struct disk_txn *txn, struct record_key *key, size_t size, uint8_t **ret_body)
{
    MDB_val name = {.mv_size = key->size, .mv_data = key->bytes};
    MDB_val value = {.mv_size = RECORD_SUM_BYTES + size};
    int code = mdb_put(txn->txn, txn->disk->dbi, &name, &value, MDB_RESERVE);

    if (code == 0)
        *ret_body = (uint8_t *)value.mv_data + RECORD_SUM_BYTES;
    return code;
}

static void seal(const struct disk_txn *txn, const struct record_key *key, uint8_t *body, size_t size)
{
    /* Whose directory it is must be readable by those whose it is not. */
    uint64_t seed = key->bytes[0] == 'a' ? 0 : txn->disk->seed;

    record_put_u64(body - RECORD_SUM_BYTES, record_sum(seed, key->bytes, key->size, body, size));
}

int disk_put(struct disk_txn *txn, struct record_key key, const uint8_t *body, size_t size)
{
    uint8_t *at;
    int code = reserve(txn, &key, size, &at);

    if (code != 0)
        return code;
    memcpy(at, body, size);
    seal(txn, &key, at, size);
    return 0;
}

int disk_put_identity(struct disk_txn *txn)
{
    uint8_t body[RECORD_IDENTITY_BYTES];

    txn->contents.version = disk_is_plain(&txn->contents) ? RECORD_VERSION_PLAIN : RECORD_VERSION;
    record_put_identity(body, &txn->disk->identity, &txn->disk->file_id, txn->contents.version);
    return disk_put(txn, record_key_identity(), body, sizeof body);
}

/* What the state knows of the others. */
int disk_put_met(struct disk_txn *txn)
{
    uint8_t body[RECORD_MET_BYTES_MAX];
    size_t size = record_put_met(body, &txn->contents.state);

    return disk_put(txn, record_key_met(), body, size);
}

int disk_put_entry(struct disk_txn *txn, raft_index index, const struct raft_entry *entry)
{
    struct record_key key = record_key_entry(index);
    size_t size = RECORD_ENTRY_BYTES + (size_t)entry->size;
    uint8_t *at;
    int code = reserve(txn, &key, size, &at);

    if (code != 0)
        return code;
    record_put_entry(at, entry);
    seal(txn, &key, at, size);
    txn->contents.last = index;
    return 0;
}

int disk_delete(struct disk_txn *txn, struct record_key key)
{
    MDB_val name = {.mv_size = key.size, .mv_data = key.bytes};

    return mdb_del(txn->txn, txn->disk->dbi, &name, NULL);
}

int disk_put_piece(struct disk_txn *txn, unsigned slot, uint32_t number, const uint8_t *data, size_t size)
{
    size_t at = (size_t)number * RECORD_PIECE_BYTES;
    size_t rest = size - at;

    ASSERT(at < size);
    return disk_put(txn, record_key_piece(slot, number), data + at,
                    rest < RECORD_PIECE_BYTES ? rest : RECORD_PIECE_BYTES);
}

int disk_put_head(struct disk_txn *txn, const struct raft_snapshot *snapshot)
{
    uint8_t head[RECORD_HEAD_BYTES_MAX];
    struct raft_snapshot bare = *snapshot;
    size_t size = record_put_head(head, snapshot, txn->contents.slot);
    int code = disk_put(txn, record_key_head(), head, size);

    bare.data = NULL;
    bare.blob = NULL;
    if (code == 0)
        txn->contents.snapshot = bare;
    return code;
}

/* In the slot that is in force, over the one before. */
int disk_put_snapshot(struct disk_txn *txn, const struct raft_snapshot *snapshot)
{
    unsigned slot = txn->contents.slot;
    uint32_t old = disk_piece_count(txn->contents.snapshot.size);
    uint32_t count = disk_piece_count(snapshot->size);
    int code = 0;

    for (uint32_t i = count; code == 0 && i < old; i++)
        code = disk_delete(txn, record_key_piece(slot, i));
    for (uint32_t i = 0; code == 0 && i < count; i++)
        code = disk_put_piece(txn, slot, i, snapshot->data, snapshot->size);
    return code == 0 ? disk_put_head(txn, snapshot) : code;
}

int disk_delete_entries(struct disk_txn *txn, raft_index first, raft_index last)
{
    int code = 0;

    for (raft_index i = first; code == 0 && i <= last; i++)
        code = disk_delete(txn, record_key_entry(i));
    return code;
}
