/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The log in memory.
 *
 *        snapshot          entries[0 … count - 1]
 *   1 ──────────── base │ base+1 ───────── last
 *                              ▲
 *                            durable: moves up when a write is known to be on disk, and down when the
 *                            log is cut below it
 *
 * Terms never decrease along the log, so every question about terms is a binary
 * search.
 */

#include "core/raft/log.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 16 };

/* Entries own their bytes; to the outside they are read-only. */
static void free_data(struct raft_entry *entry)
{
    free((void *)(uintptr_t)entry->data);
    entry->data = NULL;
}

static void free_entries(struct raft_log *log, size_t from, size_t to)
{
    ASSERT(from <= to);
    ASSERT(to <= log->count);
    for (size_t i = from; i < to; i++) {
        ASSERT(log->bytes >= log->entries[i].size);
        log->bytes -= log->entries[i].size;
        free_data(&log->entries[i]);
    }
}

void raft_log_done(struct raft_log *log)
{
    free_entries(log, 0, log->count);
    free(log->entries);
    *log = (struct raft_log){0};
}

raft_term raft_log_last_term(const struct raft_log *log)
{
    return log->count > 0 ? log->entries[log->count - 1].term : log->base_term;
}

raft_term raft_log_term(const struct raft_log *log, raft_index index)
{
    const struct raft_entry *entry;

    if (index == log->base)
        return log->base_term;
    entry = raft_log_at(log, index);
    return entry ? entry->term : 0;
}

const struct raft_entry *raft_log_at(const struct raft_log *log, raft_index index)
{
    if (index <= log->base || index > raft_log_last(log))
        return NULL;
    return &log->entries[index - log->base - 1];
}

enum gavel_status raft_log_reserve(struct raft_log *log, size_t count)
{
    size_t capacity = log->capacity > 0 ? log->capacity : FIRST_CAPACITY;
    struct raft_entry *entries;

    if (count <= log->capacity - log->count)
        return GAVEL_OK;
    if (count > SIZE_MAX / 2 / sizeof *entries - log->count)
        return GAVEL_ERR_NO_MEMORY;
    while (capacity < log->count + count)
        capacity *= 2;
    entries = realloc(log->entries, capacity * sizeof *entries);
    if (!entries)
        return GAVEL_ERR_NO_MEMORY;
    log->entries = entries;
    log->capacity = capacity;
    ASSERT(count <= log->capacity - log->count);
    return GAVEL_OK;
}

enum gavel_status raft_log_append(struct raft_log *log, const struct raft_entry *entry)
{
    struct raft_entry copy = *entry;
    uint8_t *data = NULL;

    ASSERT(entry->term >= raft_log_last_term(log));
    ASSERT(entry->size <= RAFT_ENTRY_BYTES_MAX);
    if (raft_log_reserve(log, 1) != GAVEL_OK)
        return GAVEL_ERR_NO_MEMORY;
    if (entry->size > 0) {
        data = malloc(entry->size);
        if (!data)
            return GAVEL_ERR_NO_MEMORY;
        memcpy(data, entry->data, entry->size);
    }
    copy.data = data;
    ASSERT(log->count < log->capacity);
    log->entries[log->count++] = copy;
    log->bytes += copy.size;
    return GAVEL_OK;
}

void raft_log_truncate(struct raft_log *log, raft_index index)
{
    size_t keep;

    ASSERT(index > log->base); /* what a snapshot stands for is committed */
    if (index > raft_log_last(log))
        return;
    keep = (size_t)(index - log->base - 1);
    free_entries(log, keep, log->count);
    log->count = keep;
    if (log->durable >= index)
        log->durable = index - 1;
    /* A write that brought what is gone now must not vouch for what takes its place. */
    for (size_t i = 0; i < log->write_count; i++)
        if (log->writes[i].last >= index)
            log->writes[i].last = index - 1;
    ASSERT(log->durable < index);
    ASSERT(raft_log_last(log) == index - 1);
}

void raft_log_compact(struct raft_log *log, raft_index index)
{
    size_t gone;

    if (index == log->base)
        return;
    ASSERT(index > log->base);
    ASSERT(index <= raft_log_last(log));
    gone = (size_t)(index - log->base);
    log->base_term = raft_log_term(log, index);
    free_entries(log, 0, gone);
    memmove(log->entries, log->entries + gone, (log->count - gone) * sizeof *log->entries);
    ASSERT(log->base_term > 0);
    log->count -= gone;
    log->base = index;
    ASSERT(log->count <= log->capacity);
    ASSERT(raft_log_last(log) >= log->base);
}

void raft_log_restart(struct raft_log *log, raft_index base, raft_term base_term)
{
    free_entries(log, 0, log->count);
    log->count = 0;
    log->base = base;
    log->base_term = base_term;
    /* Of this log nothing is on disk yet, and no write under way brings any of it. */
    log->durable = 0;
    log->write_count = 0;
}

/* How many entries, from the first on, have a term not above this one. */
static size_t count_not_above(const struct raft_log *log, raft_term term)
{
    size_t low = 0;
    size_t high = log->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (log->entries[middle].term <= term)
            low = middle + 1;
        else
            high = middle;
    }
    ASSERT(low <= log->count);
    return low;
}

raft_index raft_log_first_of_term(const struct raft_log *log, raft_term term)
{
    size_t before = term > 0 ? count_not_above(log, term - 1) : 0;

    if (before == log->count || log->entries[before].term != term)
        return 0;
    return log->base + before + 1;
}

raft_index raft_log_last_of_term(const struct raft_log *log, raft_term term)
{
    size_t upto = count_not_above(log, term);

    if (upto == 0 || log->entries[upto - 1].term != term)
        return 0;
    return log->base + upto;
}

void raft_log_wrote(struct raft_log *log, uint64_t seq)
{
    struct raft_log_write *newest = log->write_count > 0 ? &log->writes[log->write_count - 1] : NULL;
    raft_index last = raft_log_last(log);

    ASSERT(log->durable <= last);
    if (newest) {
        ASSERT(seq > newest->seq);
        ASSERT(last >= newest->last);
    }
    /* An earlier write has brought it all. */
    if (last == (newest ? newest->last : log->durable))
        return;
    if (log->write_count == RAFT_LOG_WRITES_MAX) {
        /* What the merged write brought counts as durable only with this one: late, but never wrong. */
        *newest = (struct raft_log_write){.seq = seq, .last = last};
        return;
    }
    ASSERT(log->write_count < RAFT_LOG_WRITES_MAX);
    log->writes[log->write_count++] = (struct raft_log_write){.seq = seq, .last = last};
}

void raft_log_persisted(struct raft_log *log, uint64_t seq)
{
    size_t done = 0;

    for (; done < log->write_count && log->writes[done].seq <= seq; done++)
        if (log->writes[done].last > log->durable)
            log->durable = log->writes[done].last;
    ASSERT(log->durable <= raft_log_last(log));
    if (done == 0)
        return;
    log->write_count -= done;
    memmove(log->writes, log->writes + done, log->write_count * sizeof *log->writes);
}
