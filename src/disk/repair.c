/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Terms that no number of elections leads to, in a directory that shall go on as a
 * new cluster. A message with such a term, which nodes of before 0.7.0 believed,
 * leaves nothing for the elections that come after: the numbers have run out.
 *
 *     term of the entries   3  3  4  4  2^62-1  2^62-1      and of the node: 2^62-1
 *     becomes               3  3  4  4  T       T           T = 4 + DISK_FORCED_TERMS
 *
 * The entries stay what and where they are. It is safe because nobody else goes
 * on with them: the new cluster has one member, and another generation.
 */
#include "disk/internal.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Reads an entry; what it points to is LMDB's, until the next write. */
static int read_entry(const struct disk *disk, MDB_txn *txn, raft_index index, struct raft_entry *ret_entry)
{
    struct record_key key = record_key_entry(index);
    MDB_val name = {.mv_size = key.size, .mv_data = key.bytes};
    MDB_val value;
    int code = mdb_get(txn, disk->dbi, &name, &value);

    if (code != 0)
        return code;
    if (value.mv_size < RECORD_SUM_BYTES ||
        record_get_entry((const uint8_t *)value.mv_data + RECORD_SUM_BYTES, value.mv_size - RECORD_SUM_BYTES,
                         ret_entry) != GAVEL_OK)
        return MDB_CORRUPTED; /* it was checked when the directory was opened */
    return 0;
}

enum gavel_status disk_survey_terms(struct disk *disk, struct disk_terms *ret_terms,
                                    struct gavel_error *error)
{
    const struct disk_contents *contents = &disk->contents;
    struct disk_terms terms = {.is_lowered = contents->state.term >= DISK_TERM_LIMIT};
    MDB_txn *txn;
    int code = 0;

    if (!terms.is_lowered) {
        terms.last = contents->state.term;
        *ret_terms = terms;
        return GAVEL_OK;
    }
    if (contents->snapshot.term < DISK_TERM_LIMIT)
        terms.last = contents->snapshot.term;
    code = mdb_txn_begin(disk->env, NULL, MDB_RDONLY, &txn);
    if (code != 0)
        return disk_error(disk, code, "beginning to read", error);
    for (raft_index i = contents->snapshot.index + 1; code == 0 && i <= contents->last; i++) {
        struct raft_entry entry;

        code = read_entry(disk, txn, i, &entry);
        if (code != 0)
            break;
        if (entry.term < DISK_TERM_LIMIT) {
            terms.last = entry.term;
        } else {
            terms.entries++;
            terms.bytes += entry.size;
        }
    }
    mdb_txn_abort(txn);
    if (code != 0)
        return disk_error(disk, code, "reading the log", error);
    *ret_terms = terms;
    return GAVEL_OK;
}

static int put_lowered(struct disk_txn *txn, raft_index index, const struct raft_entry *entry, raft_term term)
{
    uint8_t *bytes = malloc(RECORD_ENTRY_BYTES + entry->size);
    struct raft_entry lowered = *entry;
    int code;

    if (!bytes)
        return ENOMEM;
    lowered.term = term;
    record_put_entry(bytes, &lowered); /* a copy: writing moves what LMDB has given out */
    code = disk_put(txn, record_key_entry(index), bytes, RECORD_ENTRY_BYTES + entry->size);
    free(bytes);
    return code;
}

int disk_lower_terms(struct disk_txn *txn, raft_term term)
{
    struct disk_contents *contents = &txn->contents;
    int code = 0;

    if (contents->snapshot.term >= DISK_TERM_LIMIT) {
        contents->snapshot.term = term;
        code = disk_put_head(txn, &contents->snapshot);
    }
    for (raft_index i = contents->snapshot.index + 1; code == 0 && i <= contents->last; i++) {
        struct raft_entry entry;

        code = read_entry(txn->disk, txn->txn, i, &entry);
        if (code == 0 && entry.term >= DISK_TERM_LIMIT)
            code = put_lowered(txn, i, &entry, term);
    }
    return code;
}
