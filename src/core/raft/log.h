/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The log in memory: the entries after the snapshot, and where the snapshot ends.
 * It also tracks which part is durable.
 *
 * The bytes of entries are copied in and owned by the log. Pointers given out
 * are borrowed until the next change.
 */
#ifndef CORE_RAFT_LOG_H
#define CORE_RAFT_LOG_H

#include "core/raft/config.h"

enum raft_entry_kind {
    RAFT_ENTRY_NOOP,   /* the first of each term (Raft thesis, section 3.6.2) */
    RAFT_ENTRY_DATA,   /* for the state machine */
    RAFT_ENTRY_CONFIG, /* bytes of raft_config_encode() */
};
#define RAFT_ENTRY_KIND_COUNT (RAFT_ENTRY_CONFIG + 1)

#define RAFT_ENTRY_BYTES_MAX (1u << 20)

struct raft_entry {
    raft_term term;
    enum raft_entry_kind kind;
    uint32_t size;
    const uint8_t *data; /* NULL if size is 0 */
};

/* A write that was handed out and is not yet known to be durable. */
struct raft_log_write {
    uint64_t seq;
    raft_index last; /* the last entry it brought that is still in the log */
};
#define RAFT_LOG_WRITES_MAX 64

struct raft_log {
    raft_index base; /* the entries up to here are in the snapshot only */
    raft_term base_term;
    struct raft_entry *entries; /* from base + 1 on */
    size_t count;
    size_t capacity;
    size_t bytes;       /* of all entries */
    raft_index durable; /* the log is on disk up to here */
    struct raft_log_write writes[RAFT_LOG_WRITES_MAX];
    size_t write_count;
};

/* Frees what the log owns. Safe on a zeroed struct. */
void raft_log_done(struct raft_log *log);

static inline raft_index raft_log_last(const struct raft_log *log) { return log->base + log->count; }
raft_term raft_log_last_term(const struct raft_log *log);

/* 0 if the index is beyond the log or before its base; the base itself is known. */
raft_term raft_log_term(const struct raft_log *log, raft_index index);

/* NULL if it is not (or no longer) in the log. */
const struct raft_entry *raft_log_at(const struct raft_log *log, raft_index index);

/* Copies the entry to the end. ERR_NO_MEMORY, and nothing is changed. */
GAVEL_CHECKED enum gavel_status raft_log_append(struct raft_log *log, const struct raft_entry *entry);

/* Makes room in the array for that many more, so that the next appends cannot fail for lack of it. */
GAVEL_CHECKED enum gavel_status raft_log_reserve(struct raft_log *log, size_t count);

/* Drops the entries from index on. */
void raft_log_truncate(struct raft_log *log, raft_index index);

/* Drops the entries up to index, which is in the log: they are in a snapshot now. */
void raft_log_compact(struct raft_log *log, raft_index index);

/* Drops everything: the log begins after this snapshot. */
void raft_log_restart(struct raft_log *log, raft_index base, raft_term base_term);

/* The first and the last index of the entries of a term, for conflict hints; 0 if there is none. */
raft_index raft_log_first_of_term(const struct raft_log *log, raft_term term);
raft_index raft_log_last_of_term(const struct raft_log *log, raft_term term);

/* The write `seq` carries the log up to its present end. Writes beyond the limit are merged with the
 * newest. */
void raft_log_wrote(struct raft_log *log, uint64_t seq);

/* All writes up to seq are durable. */
void raft_log_persisted(struct raft_log *log, uint64_t seq);

#endif
