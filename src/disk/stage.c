/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A large snapshot is written beside the one in force, a few pieces at a time
 * and between other writes, and put in force by one small transaction.
 *
 *     slot 0   c0 c1 c2 …      in force, by the record 'b'
 *     slot 1   d0 d1 …         staged: it counts for nothing yet
 *
 * The transaction that compacts the log says in 'b' that the other slot is in
 * force. What it leaves behind (the pieces of the snapshot before, the entries
 * that the new one stands for) is removed bit by bit by the transactions after
 * it, because removing thousands of records takes as long as writing them. A
 * crash leaves the old snapshot or the new one, and leftovers, which the next
 * start removes. A stage that is given up leaves its pieces in the same way, and
 * they are removed in the same way: on a disk that is nearly full they are the
 * room that is missing.
 *
 * A directory with leftovers, or with slot 1 in force, has format 3, so that an
 * older gavel does not take it for damaged. A node that ends in order, with a
 * disk that answers, leaves format 2 behind (disk_settle()).
 */
#include "disk/internal.h"

#include "base/assert.h"

#include <string.h>

/* Leftovers that one transaction removes of each kind. */
#define TRIM_MAX 256

uint32_t disk_piece_count(size_t size)
{
    return (uint32_t)((size + RECORD_PIECE_BYTES - 1) / RECORD_PIECE_BYTES);
}

bool disk_is_plain(const struct disk_contents *contents)
{
    return contents->slot == 0 && contents->spare == 0 && contents->stale_first == 0;
}

static int trim_pieces(struct disk_txn *txn, uint32_t keep, size_t limit)
{
    struct disk_contents *contents = &txn->contents;
    int code = 0;

    for (; code == 0 && limit > 0 && contents->spare > keep; limit--)
        code = disk_delete(txn, record_key_piece(1 - contents->slot, --contents->spare));
    return code;
}

static int trim_entries(struct disk_txn *txn, size_t limit)
{
    struct disk_contents *contents = &txn->contents;
    raft_index last = contents->stale_last;
    int code;

    if (contents->stale_first == 0)
        return 0;
    if (last - contents->stale_first >= limit)
        last = contents->stale_first + limit - 1;
    code = disk_delete_entries(txn, contents->stale_first, last);
    contents->stale_first = last < contents->stale_last ? last + 1 : 0;
    return code;
}

int disk_trim(struct disk_txn *txn)
{
    int code = trim_pieces(txn, disk_piece_count(txn->disk->stage_size), TRIM_MAX);

    return code == 0 ? trim_entries(txn, TRIM_MAX) : code;
}

int disk_trim_all(struct disk_txn *txn)
{
    int code = trim_pieces(txn, 0, SIZE_MAX);

    return code == 0 ? trim_entries(txn, SIZE_MAX) : code;
}

int disk_leave_entries(struct disk_txn *txn, raft_index first, raft_index last)
{
    struct disk_contents *contents = &txn->contents;
    int code = 0;

    if (first > last)
        return 0;
    if (contents->stale_first != 0 && contents->stale_last + 1 != first) /* two ranges: the older one goes */
        code = trim_entries(txn, SIZE_MAX);
    if (contents->stale_first == 0)
        contents->stale_first = first;
    contents->stale_last = last;
    return code;
}

enum gavel_status disk_stage(struct disk *disk, const uint8_t *data, size_t size, uint32_t first,
                             uint32_t count, struct gavel_error *error)
{
    struct disk_txn txn;
    enum gavel_status status;
    int code = 0;

    ASSERT(disk->is_begun);
    ASSERT(first == 0 || (first == disk->staged && size == disk->stage_size));
    ASSERT(first + count <= disk_piece_count(size));
    status = disk_make_room(disk, DISK_NEEDS_APPEND, (size_t)count * RECORD_PIECE_BYTES, 0, error);
    if (status == GAVEL_OK)
        status = disk_txn_begin(&txn, disk, error);
    if (status != GAVEL_OK)
        return status;
    disk->stage_size = size;
    disk->staged = first; /* as long as the transaction is not committed */
    for (uint32_t i = first; code == 0 && i < first + count; i++) {
        code = disk_put_piece(&txn, 1 - txn.contents.slot, i, data, size);
        if (txn.contents.spare <= i)
            txn.contents.spare = i + 1;
    }
    if (code == 0)
        code = disk_trim(&txn);
    if (code != 0)
        return disk_txn_abort(&txn, code, "writing a part of a snapshot", error);
    status = disk_txn_commit(&txn, error);
    if (status == GAVEL_OK)
        disk->staged = first + count;
    return status;
}

void disk_unstage(struct disk *disk) { disk->stage_size = disk->staged = 0; }

bool disk_has_leftovers(const struct disk *disk)
{
    return disk->contents.spare > disk_piece_count(disk->stage_size) || disk->contents.stale_first != 0;
}

enum gavel_status disk_remove_leftovers(struct disk *disk, struct gavel_error *error)
{
    struct disk_txn txn;
    enum gavel_status status = disk_make_room(disk, DISK_NEEDS_LITTLE, 0, 0, error);
    int code;

    ASSERT(disk->is_begun);
    if (status == GAVEL_OK)
        status = disk_txn_begin(&txn, disk, error);
    if (status != GAVEL_OK)
        return status;
    code = disk_trim(&txn);
    return code != 0 ? disk_txn_abort(&txn, code, "removing what is left", error)
                     : disk_txn_commit(&txn, error);
}

int disk_put_staged(struct disk_txn *txn, const struct raft_snapshot *snapshot)
{
    struct disk_contents *contents = &txn->contents;
    uint32_t before = disk_piece_count(contents->snapshot.size);
    uint32_t count = disk_piece_count(snapshot->size);
    int code;

    ASSERT(txn->disk->stage_size == snapshot->size);
    ASSERT(txn->disk->staged == count);
    code = trim_pieces(txn, count, SIZE_MAX); /* of a longer one that was given up */
    if (code != 0)
        return code;
    ASSERT(contents->spare == count);
    contents->slot = 1 - contents->slot;
    contents->spare = before;
    return disk_put_head(txn, snapshot);
}

/* The pieces of slot 1 move to slot 0. */
static int move_pieces(struct disk_txn *txn)
{
    struct disk_contents *contents = &txn->contents;
    uint32_t count = disk_piece_count(contents->snapshot.size);
    uint8_t piece[RECORD_PIECE_BYTES];
    int code = 0;

    for (uint32_t i = 0; code == 0 && i < count; i++) {
        struct record_key key = record_key_piece(1, i);
        MDB_val name = {.mv_size = key.size, .mv_data = key.bytes};
        MDB_val value;
        const uint8_t *body;
        size_t size;

        code = mdb_get(txn->txn, txn->disk->dbi, &name, &value);
        if (code != 0)
            break;
        if (disk_body(txn->disk, txn->disk->seed, &name, &value, &body, &size, NULL) != GAVEL_OK ||
            size > sizeof piece)
            return MDB_CORRUPTED;
        memcpy(piece, body, size); /* writing moves what LMDB has given out */
        code = disk_put(txn, record_key_piece(0, i), piece, size);
        if (code == 0)
            code = disk_delete(txn, key);
    }
    for (; code == 0 && contents->spare > count; contents->spare--)
        code = disk_delete(txn, record_key_piece(0, contents->spare - 1));
    contents->slot = 0;
    contents->spare = 0;
    return code == 0 ? disk_put_head(txn, &contents->snapshot) : code;
}

void disk_settle(struct disk *disk)
{
    struct gavel_error ignored;
    enum gavel_status status;
    struct disk_txn txn;
    int code = 0;

    if (!disk->is_begun || disk->is_failed || disk_is_plain(&disk->contents))
        return;
    if (disk_make_room(disk, DISK_NEEDS_LITTLE, disk->contents.slot == 1 ? disk->contents.snapshot.size : 0,
                       0, &ignored) != GAVEL_OK ||
        disk_txn_begin(&txn, disk, &ignored) != GAVEL_OK)
        return; /* it is in order as it is, only not for an older gavel */
    if (txn.contents.slot == 1)
        code = move_pieces(&txn);
    if (code == 0)
        code = disk_trim_all(&txn);
    status = code != 0 ? disk_txn_abort(&txn, code, "settling", &ignored) : disk_txn_commit(&txn, &ignored);
    (void)status; /* likewise */
}
