/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The disk of a node on the stage: what is durable, and a queue of writes that
 * a crash loses. Everything is copied, so that nothing of the node's memory
 * survives by accident.
 */

#include "trace/host.h"

#include <stdlib.h>
#include <string.h>

static uint8_t *copy_bytes(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = NULL;

    if (size > 0) {
        copy = malloc(size);
        memcpy(copy, bytes, size);
    }
    return copy;
}

static void free_bytes(const uint8_t *bytes)
{
    /* Entries point to bytes that nobody may change, only their owner frees them. */
    free((void *)(uintptr_t)bytes);
}

static void free_entries(struct raft_entry *entries, size_t from, size_t count)
{
    for (size_t i = from; i < count; i++)
        free_bytes(entries[i].data);
}

static size_t count_of(const struct raft_persist *persist)
{
    return persist->first == 0 || persist->last < persist->first ? 0 : persist->last - persist->first + 1;
}

static void write_done(struct write *write)
{
    free_entries(write->entries, 0, count_of(&write->persist));
    free(write->entries);
    free_bytes(write->snapshot.data);
}

void disk_make(struct disk *disk, const struct raft_config *config, raft_id id)
{
    disk->is_made = true;
    disk->takes = DISK_DELAY;
    disk->state = (struct raft_state){.cluster = 1, .generation = 1, .id = id};
    if (config)
        disk->snapshot.config = *config;
}

/* When a write is durable: after those before it, or together with those that wait like it. */
static void plan(struct disk *disk, size_t which, gavel_ns now)
{
    struct write *write = &disk->writes[which];
    const struct write *before = which > 0 ? write - 1 : NULL;

    if (write->hangs || (before && before->at == NEVER))
        write->at = NEVER;
    else if (before && disk->batches)
        write->at = ns_max(now, disk->writes[0].at) + disk->takes;
    else
        write->at = (before ? ns_max(now, before->at) : now) + disk->takes;
}

bool disk_resume(const struct cluster *cluster, struct disk *disk)
{
    size_t which = 0;

    while (which < disk->write_count && !disk->writes[which].hangs)
        which++;
    if (which == disk->write_count)
        return false;
    disk->writes[which].hangs = false;
    for (; which < disk->write_count; which++)
        plan(disk, which, cluster->now);
    return true;
}

void disk_write(struct cluster *cluster, struct host *host, const struct raft_persist *persist)
{
    struct disk *disk = &host->disk;
    const struct raft *raft = &host->node.raft;
    struct write *write;

    disk->writes = reallocarray(disk->writes, disk->write_count + 1, sizeof *disk->writes);
    write = &disk->writes[disk->write_count++];
    *write = (struct write){.hangs = disk->to_hang > 0, .persist = *persist};
    disk->to_hang -= write->hangs;
    plan(disk, disk->write_count - 1, cluster->now);
    if (persist->has_snapshot) {
        write->snapshot = raft->snapshot;
        write->snapshot.data = copy_bytes(raft->snapshot.data, raft->snapshot.size);
    }
    if (count_of(persist) > 0)
        write->entries = calloc(count_of(persist), sizeof *write->entries);
    for (size_t i = 0; i < count_of(persist); i++) {
        const struct raft_entry *entry = raft_log_at(&raft->log, persist->first + i);

        if (!entry) {
            alarm_raise(cluster, host, "writes entry %llu, which it does not have",
                        (unsigned long long)(persist->first + i));
            continue;
        }
        write->entries[i] = *entry;
        write->entries[i].data = copy_bytes(entry->data, entry->size);
    }
}

static void drop_first(struct disk *disk, size_t count)
{
    if (count > disk->entry_count)
        count = disk->entry_count;
    free_entries(disk->entries, 0, count);
    disk->entry_count -= count;
    if (disk->entry_count > 0)
        memmove(disk->entries, disk->entries + count, disk->entry_count * sizeof *disk->entries);
}

static void drop_from(struct disk *disk, raft_index index)
{
    size_t kept = index > disk->snapshot.index ? index - disk->snapshot.index - 1 : 0;

    if (kept < disk->entry_count) {
        free_entries(disk->entries, kept, disk->entry_count);
        disk->entry_count = kept;
    }
}

static void take_snapshot(struct disk *disk, struct write *write)
{
    if (write->persist.restarts_log)
        drop_first(disk, disk->entry_count);
    else if (write->snapshot.index > disk->snapshot.index)
        drop_first(disk, write->snapshot.index - disk->snapshot.index);
    free_bytes(disk->snapshot.data);
    disk->snapshot = write->snapshot;
    write->snapshot.data = NULL;
}

bool disk_sync(struct disk *disk)
{
    struct write *write = &disk->writes[0];
    const struct raft_persist *persist = &write->persist;
    size_t count = count_of(persist);
    bool is_whole = true;

    if (persist->has_state) {
        disk->state = persist->state;
    } else if (persist->has_met) {
        disk->state.met_count = persist->state.met_count;
        memcpy(disk->state.met, persist->state.met, sizeof disk->state.met);
    }
    if (persist->has_snapshot)
        take_snapshot(disk, write);
    if (persist->truncate > 0)
        drop_from(disk, persist->truncate);
    if (count > 0) {
        is_whole = persist->first == disk->snapshot.index + disk->entry_count + 1;
        disk->entries = reallocarray(disk->entries, disk->entry_count + count, sizeof *disk->entries);
        memcpy(disk->entries + disk->entry_count, write->entries, count * sizeof *disk->entries);
        disk->entry_count += count;
        free(write->entries); /* the bytes of the entries have moved */
        write->entries = NULL;
    }
    free_bytes(write->snapshot.data);
    disk->synced = persist->seq;
    disk->write_count--;
    memmove(disk->writes, disk->writes + 1, disk->write_count * sizeof *disk->writes);
    return is_whole;
}

void disk_forget(struct disk *disk)
{
    for (size_t i = 0; i < disk->write_count; i++)
        write_done(&disk->writes[i]);
    disk->write_count = 0;
}

void disk_free(struct disk *disk)
{
    disk_forget(disk);
    free(disk->writes);
    free_entries(disk->entries, 0, disk->entry_count);
    free(disk->entries);
    free_bytes(disk->snapshot.data);
}
