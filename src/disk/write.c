/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Changes of the Raft core, as one transaction. The order within each is that
 * of struct raft_persist: the snapshot, then what is cut off, then what is
 * appended.
 */
#include "disk/internal.h"

#include "base/assert.h"
#include "base/error.h"

#include <string.h>

static raft_index entry_count(const struct raft_persist *persist)
{
    return persist->first == 0 ? 0 : persist->last - persist->first + 1;
}

static enum gavel_status make_room(struct disk *disk, const struct disk_write *writes, size_t count,
                                   struct gavel_error *error)
{
    enum disk_need need = DISK_NEEDS_LITTLE;
    size_t bytes = 0;
    size_t records = 0;
    bool has_snapshot = false;

    for (size_t i = 0; i < count; i++) {
        raft_index entries = entry_count(&writes[i].persist);

        for (raft_index j = 0; j < entries; j++)
            bytes += writes[i].entries[j].size;
        records += entries;
        if (writes[i].persist.has_met) {
            bytes += RECORD_MET_BYTES_MAX;
            records++;
        }
        if (entries > 0)
            need = DISK_NEEDS_APPEND;
        if (writes[i].persist.has_snapshot) {
            has_snapshot = true;
            bytes += writes[i].is_staged ? 0 : writes[i].snapshot.size;
        }
    }
    if (has_snapshot)
        need = DISK_NEEDS_LITTLE; /* it takes the place of entries */
    return disk_make_room(disk, need, bytes, records, error);
}

static int write_snapshot(struct disk_txn *txn, const struct disk_write *write)
{
    struct disk_contents *contents = &txn->contents;
    raft_index first = contents->snapshot.index + 1;
    raft_index index = write->snapshot.index;
    bool drops_all = write->persist.restarts_log || index > contents->last;
    raft_index gone = index < contents->last ? index : contents->last;
    int code;

    if (!write->is_staged) { /* all at once: on a full disk it has to make room */
        code = disk_put_snapshot(txn, &write->snapshot);
        if (code == 0)
            code = disk_delete_entries(txn, first, drops_all ? contents->last : index);
    } else {
        code = disk_put_staged(txn, &write->snapshot);
        if (code == 0 && drops_all)
            code = disk_delete_entries(txn, gone + 1, contents->last);
        if (code == 0)
            code = disk_leave_entries(txn, first, gone);
    }
    if (code == 0 && drops_all)
        contents->last = index;
    return code;
}

static int write_one(struct disk_txn *txn, const struct disk_write *write)
{
    const struct raft_persist *persist = &write->persist;
    struct disk_contents *contents = &txn->contents;
    raft_index count = entry_count(persist);
    int code = 0;

    if (persist->has_state) {
        uint64_t directory = contents->state.directory;

        /* A state of another node, or of an incarnation that is over, can only be our own mistake. */
        ASSERT(persist->state.cluster == contents->state.cluster);
        ASSERT(persist->state.id == contents->state.id);
        ASSERT(persist->state.incarnation == contents->state.incarnation);
        ASSERT(persist->state.term >= contents->state.term);
        contents->state = persist->state;
        contents->state.directory = directory; /* given once, when the directory was made */
    }
    if (persist->has_met) {
        contents->state.met_count = persist->state.met_count;
        memcpy(contents->state.met, persist->state.met, sizeof contents->state.met);
        code = disk_put_met(txn);
    }
    if (code == 0 && persist->has_snapshot)
        code = write_snapshot(txn, write);
    if (code == 0 && persist->truncate > 0) {
        ASSERT(persist->truncate > contents->snapshot.index);
        code = disk_delete_entries(txn, persist->truncate, contents->last);
        if (code == 0 && contents->last >= persist->truncate)
            contents->last = persist->truncate - 1;
    }
    if (code == 0 && count > 0)
        ASSERT(persist->first == contents->last + 1);
    for (raft_index i = 0; code == 0 && i < count; i++)
        code = disk_put_entry(txn, persist->first + i, &write->entries[i]);
    return code;
}

enum gavel_status disk_write(struct disk *disk, const struct disk_write *writes, size_t count,
                             struct gavel_error *error)
{
    struct disk_txn txn;
    enum gavel_status status;
    bool has_snapshot = false;
    int code;

    ASSERT(disk->is_begun);
    for (size_t i = 1; i < count; i++)
        ASSERT(writes[i].persist.seq >= writes[i - 1].persist.seq); /* in the order of the core */
    if (count == 0)
        return GAVEL_OK;
    status = make_room(disk, writes, count, error);
    if (status == GAVEL_OK)
        status = disk_txn_begin(&txn, disk, error);
    if (status != GAVEL_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        has_snapshot = has_snapshot || writes[i].persist.has_snapshot;
        code = write_one(&txn, &writes[i]);
        if (code != 0)
            return disk_txn_abort(&txn, code, "writing", error);
    }
    code = disk_trim(&txn);
    if (code != 0)
        return disk_txn_abort(&txn, code, "removing what is left", error);
    status = disk_txn_commit(&txn, error);
    if (status == GAVEL_OK && has_snapshot)
        disk->stage_size = disk->staged = 0; /* used, or too old */
    return status;
}
