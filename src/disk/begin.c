/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Beginning again: one more incarnation, and everything that is on disk, copied
 * into memory. The checksums are looked at a second time: what was right when
 * the directory was opened may have been read wrong now.
 */
#include "disk/internal.h"

#include "base/assert.h"
#include "base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static enum gavel_status read_record(const struct disk *disk, MDB_txn *txn, struct record_key key,
                                     const uint8_t **ret_body, size_t *ret_size, struct gavel_error *error)
{
    MDB_val name = {.mv_size = key.size, .mv_data = key.bytes};
    MDB_val value;
    int code = mdb_get(txn, disk->dbi, &name, &value);

    if (code != 0)
        return disk_error(disk, code, "reading a record", error);
    return disk_body(disk, disk->seed, &name, &value, ret_body, ret_size, error);
}

static enum gavel_status load_snapshot(const struct disk *disk, MDB_txn *txn, uint8_t *ret_bytes,
                                       struct gavel_error *error)
{
    size_t whole = disk->contents.snapshot.size;
    size_t done = 0;

    for (uint32_t i = 0; done < whole; i++) {
        const uint8_t *body = NULL;
        size_t size = 0;
        enum gavel_status status =
            read_record(disk, txn, record_key_piece(disk->contents.slot, i), &body, &size, error);

        if (status != GAVEL_OK)
            return status;
        if (size == 0 || size > whole - done)
            return disk_damaged(disk, error, "piece %u of the snapshot has the wrong size", i);
        memcpy(ret_bytes + done, body, size);
        done += size;
    }
    return GAVEL_OK;
}

/* Twice: with ret_entries NULL it only adds up the bytes; then it copies them behind the entries. */
static enum gavel_status load_entries(const struct disk *disk, MDB_txn *txn, struct raft_entry *ret_entries,
                                      size_t *ret_bytes, struct gavel_error *error)
{
    raft_index base = disk->contents.snapshot.index;
    size_t count = disk->contents.last - base;
    uint8_t *bytes = ret_entries ? (uint8_t *)(ret_entries + count) : NULL;
    size_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        struct raft_entry entry;
        const uint8_t *body = NULL;
        size_t size = 0;
        enum gavel_status status =
            read_record(disk, txn, record_key_entry(base + 1 + i), &body, &size, error);

        if (status != GAVEL_OK)
            return status;
        if (record_get_entry(body, size, &entry) != GAVEL_OK)
            return disk_damaged(disk, error, "entry %" PRIu64 " cannot be", base + 1 + i);
        if (ret_entries) {
            if (entry.size > 0)
                entry.data = memcpy(bytes + sum, entry.data, entry.size);
            ret_entries[i] = entry;
        }
        sum += entry.size;
    }
    *ret_bytes = sum;
    return GAVEL_OK;
}

static enum gavel_status load(const struct disk *disk, MDB_txn *txn, struct raft_restore *restore,
                              struct gavel_error *error)
{
    const struct disk_contents *contents = &disk->contents;
    size_t count = contents->last - contents->snapshot.index;
    size_t bytes = 0;
    uint8_t *snapshot = malloc(contents->snapshot.size + 1); /* never of nothing */
    struct raft_entry *entries;
    enum gavel_status status;

    *restore =
        (struct raft_restore){.state = contents->state, .snapshot = contents->snapshot, .entry_count = count};
    restore->state.start = disk_draw_directory(); /* a number that no other start has */
    restore->snapshot.data = snapshot;
    if (!snapshot)
        return disk_error(disk, ENOMEM, "reading the snapshot", error);
    status = load_snapshot(disk, txn, snapshot, error);
    if (status == GAVEL_OK)
        status = load_entries(disk, txn, NULL, &bytes, error);
    if (status != GAVEL_OK)
        return status;
    entries = malloc(count * sizeof *entries + bytes + 1);
    restore->entries = entries;
    if (!entries)
        return disk_error(disk, ENOMEM, "reading the log", error);
    return load_entries(disk, txn, entries, &bytes, error);
}

enum gavel_status disk_begin(struct disk *disk, struct raft_restore *ret_restore, struct gavel_error *error)
{
    struct raft_restore restore = {0};
    struct disk_txn txn;
    MDB_txn *reading;
    enum gavel_status status;
    int code;

    ASSERT(disk->env);
    ASSERT(!disk->is_begun);
    if (disk->contents.state.incarnation >= RAFT_NUMBER_MAX - 1)
        return disk_damaged(disk, error, "its incarnation is too large to be true");
    status = disk_make_room(disk, DISK_NEEDS_LITTLE, 0, 2, error);
    if (status == GAVEL_OK)
        status = disk_file_id_read(disk, &disk->file_id, error);
    if (status == GAVEL_OK)
        status = disk_txn_begin(&txn, disk, error);
    if (status != GAVEL_OK)
        return status;
    txn.contents.state.incarnation++;
    if (txn.contents.state.directory == 0) /* of 0.6.0 */
        txn.contents.state.directory = disk_draw_directory();
    code = disk_trim_all(&txn); /* what a crash has left */
    if (code == 0)
        code = disk_put_identity(&txn); /* also of 0.6.0, or a copy that was accepted */
    if (code != 0)
        return disk_txn_abort(&txn, code, "beginning", error);
    status = disk_txn_commit(&txn, error);
    if (status != GAVEL_OK)
        return status;
    code = mdb_txn_begin(disk->env, NULL, MDB_RDONLY, &reading);
    if (code != 0)
        return disk_error(disk, code, "beginning to read", error);
    status = load(disk, reading, &restore, error);
    mdb_txn_abort(reading);
    if (status != GAVEL_OK) {
        disk_restore_done(&restore);
        return status;
    }
    disk->is_begun = true;
    *ret_restore = restore;
    return GAVEL_OK;
}

void disk_restore_done(struct raft_restore *restore)
{
    if (!restore)
        return;
    free((void *)(uintptr_t)restore->snapshot.data);
    free((void *)(uintptr_t)restore->entries);
    *restore = (struct raft_restore){0};
}
