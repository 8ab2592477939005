/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/disk.h"

#include "base/assert.h"
#include "sim/raft/ghost.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <stdlib.h>
#include <string.h>

/* The bytes of an entry on a disk are its own, though nobody may write to them any more. */
static void free_bytes(const struct raft_entry *entry)
{
    union {
        const uint8_t *read;
        uint8_t *owned;
    } bytes = {.read = entry->data};

    free(bytes.owned);
}

static void free_entries(struct raft_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free_bytes(&entries[i]);
}

static size_t write_entry_count(const struct disk_write *write)
{
    const struct raft_persist *persist = &write->persist;

    return persist->first == 0 || persist->last < persist->first ? 0 : persist->last - persist->first + 1;
}

static void drop_write(struct disk_write *write)
{
    free_entries(write->entries, write_entry_count(write));
    free(write->snapshot_bytes);
    write->snapshot_bytes = NULL;
    write->persist = (struct raft_persist){0};
}

/* The oldest `count` writes leave the queue; their memory goes to its end, to be used again. */
static void shift_queue(struct disk *disk, size_t count)
{
    for (size_t i = 0; i < count; i++)
        drop_write(&disk->queue[i]);
    for (size_t i = count; i < disk->queue_count; i++) {
        struct disk_write keep = disk->queue[i - count];

        disk->queue[i - count] = disk->queue[i];
        disk->queue[i] = keep;
    }
    disk->queue_count -= count;
}

void disk_clear(struct disk *disk)
{
    struct disk_write *queue = disk->queue;
    size_t queue_capacity = disk->queue_capacity;
    struct raft_entry *entries = disk->entries;
    size_t entry_capacity = disk->entry_capacity;

    shift_queue(disk, disk->queue_count);
    free_entries(disk->entries, disk->entry_count);
    free(disk->snapshot_bytes);
    *disk = (struct disk){.queue = queue,
                          .queue_capacity = queue_capacity,
                          .entries = entries,
                          .entry_capacity = entry_capacity};
}

void disk_done(struct disk *disk)
{
    disk_clear(disk);
    for (size_t i = 0; i < disk->queue_capacity; i++)
        free(disk->queue[i].entries);
    free(disk->queue);
    free(disk->entries);
    *disk = (struct disk){0};
}

static void *grow(void *items, size_t *capacity, size_t needed, size_t size)
{
    size_t wanted = *capacity ? *capacity : 8;

    if (needed <= *capacity)
        return items;
    while (wanted < needed)
        wanted *= 2;
    items = realloc(items, wanted * size);
    ASSERT(items);
    memset((char *)items + *capacity * size, 0, (wanted - *capacity) * size);
    *capacity = wanted;
    return items;
}

static uint8_t *copy_bytes(const uint8_t *data, size_t size)
{
    uint8_t *copy;

    if (size == 0)
        return NULL;
    copy = malloc(size);
    ASSERT(copy);
    memcpy(copy, data, size);
    return copy;
}

/* How long the next batch takes. */
static gavel_ns draw_latency(struct cluster *cluster, const struct host *host)
{
    const struct disk *disk = &host->disk;
    gavel_ns latency =
        cluster_between(cluster, STREAM_DISK, cluster->profile.write_min, cluster->profile.write_max);
    gavel_ns slow = cluster_length(cluster, STREAM_DISK, 2 * NS_PER_MS, 3 * NS_PER_S);

    latency += cluster->profile.disk[host->slot];
    return cluster->now < disk->slow_until ? slow : latency;
}

static void begin_batch(struct cluster *cluster, struct host *host)
{
    struct disk *disk = &host->disk;
    bool is_single = cluster_chance(cluster, STREAM_DISK, 500);
    gavel_ns latency = draw_latency(cluster, host);
    gavel_ns done_at = ns_max(cluster->now, disk->frozen_until) + latency;

    if (disk->batch_count > 0 || disk->queue_count == 0)
        return;
    if (cluster->profile.disk[host->slot] > 0)
        is_single = false; /* or what waits would grow without end */
    disk->batch_count = is_single ? 1 : disk->queue_count;
    cluster_push(cluster, done_at, EVENT_SYNC, host->slot)->number = ++disk->batch;
}

static const struct raft_entry *entry_to_write(struct cluster *cluster, const struct host *host,
                                               raft_index index)
{
    const struct raft_entry *entry = raft_log_at(&host->node.raft.log, index);

    if (entry)
        return entry;
    cluster_violate(cluster, RAFT_INVARIANT_ASSERT, "%s is to write entry %llu, which it does not have",
                    host->label, (unsigned long long)index);
}

void disk_write(struct cluster *cluster, struct host *host, const struct raft_persist *persist)
{
    struct disk *disk = &host->disk;
    struct disk_write *write;
    size_t count;

    disk->queue = grow(disk->queue, &disk->queue_capacity, disk->queue_count + 1, sizeof *disk->queue);
    write = &disk->queue[disk->queue_count++];
    write->persist = *persist;
    count = write_entry_count(write);
    write->entries = grow(write->entries, &write->entry_capacity, count, sizeof *write->entries);
    for (size_t i = 0; i < count; i++) {
        write->entries[i] = *entry_to_write(cluster, host, persist->first + i);
        write->entries[i].data = copy_bytes(write->entries[i].data, write->entries[i].size);
    }
    write->snapshot = host->node.raft.snapshot;
    write->snapshot.blob = NULL;
    if (persist->has_snapshot) {
        write->snapshot_bytes = copy_bytes(host->node.raft.snapshot.data, host->node.raft.snapshot.size);
        write->snapshot.data = write->snapshot_bytes;
    }
    ghost_writes(host, persist->seq);
    begin_batch(cluster, host);
}

static void drop_tail(struct disk *disk, size_t keep)
{
    if (keep >= disk->entry_count)
        return;
    free_entries(disk->entries + keep, disk->entry_count - keep);
    disk->entry_count = keep;
}

static void put_snapshot(struct disk *disk, struct disk_write *write)
{
    raft_index base = disk->snapshot.index;
    size_t covered = write->snapshot.index > base ? write->snapshot.index - base : 0;

    if (write->persist.restarts_log || covered > disk->entry_count)
        covered = disk->entry_count;
    free_entries(disk->entries, covered);
    disk->entry_count -= covered;
    if (disk->entry_count > 0) /* there may be no array yet */
        memmove(disk->entries, disk->entries + covered, disk->entry_count * sizeof *disk->entries);
    free(disk->snapshot_bytes);
    disk->snapshot = write->snapshot;
    disk->snapshot_bytes = write->snapshot_bytes;
    write->snapshot_bytes = NULL;
}

/* One transaction is there for good. */
static void commit(struct cluster *cluster, struct host *host, struct disk_write *write)
{
    struct disk *disk = &host->disk;
    const struct raft_persist *persist = &write->persist;
    size_t count = write_entry_count(write);

    raft_referee_synced(cluster->referee, cluster->now, host->id, persist, write->entries,
                        persist->has_snapshot ? &write->snapshot : NULL);
    if (persist->has_state) {
        disk->state = persist->state;
    } else if (persist->has_met) {
        disk->state.met_count = persist->state.met_count;
        memcpy(disk->state.met, persist->state.met, sizeof disk->state.met);
    }
    if (persist->has_snapshot)
        put_snapshot(disk, write);
    if (persist->truncate > 0) {
        if (persist->truncate <= disk->snapshot.index)
            cluster_violate(cluster, RAFT_INVARIANT_TRUNCATED,
                            "%s cuts its log off at %llu, before its snapshot", host->label,
                            (unsigned long long)persist->truncate);
        drop_tail(disk, persist->truncate - disk->snapshot.index - 1);
    }
    if (count > 0 && persist->first != disk->snapshot.index + disk->entry_count + 1)
        cluster_violate(cluster, RAFT_INVARIANT_ASSERT, "%s writes entry %llu after entry %llu", host->label,
                        (unsigned long long)persist->first,
                        (unsigned long long)(disk->snapshot.index + disk->entry_count));
    disk->entries =
        grow(disk->entries, &disk->entry_capacity, disk->entry_count + count, sizeof *disk->entries);
    if (count > 0)
        memcpy(disk->entries + disk->entry_count, write->entries, count * sizeof *write->entries);
    disk->entry_count += count;
    disk->synced = persist->seq;
    write->persist.first = 0; /* its entries are the disk's now */
    ghost_wrote(host, persist->seq);
    ghost_copy(cluster, host, 64);
}

/* Makes the oldest writes durable and takes them off the queue. */
static void commit_oldest(struct cluster *cluster, struct host *host, size_t count)
{
    for (size_t i = 0; i < count; i++)
        commit(cluster, host, &host->disk.queue[i]);
    shift_queue(&host->disk, count);
}

void disk_sync(struct cluster *cluster, struct host *host, uint64_t batch)
{
    struct disk *disk = &host->disk;

    if (batch != disk->batch || disk->batch_count == 0)
        return;
    if (disk->hung_until == NEVER)
        return; /* disk_heal() goes on with it */
    if (cluster->now < disk->hung_until) {
        cluster_push(cluster, disk->hung_until, EVENT_SYNC, host->slot)->number = batch;
        return;
    }
    if (cluster->now < disk->frozen_until) {
        cluster_push(cluster, disk->frozen_until, EVENT_SYNC, host->slot)->number = batch;
        return;
    }
    if (disk->fails) {
        TRACE(cluster, host, "its disk fails");
        cluster_see(cluster, SIGHT_DISK_FAILS);
        (void)cluster_push(cluster, cluster->now, EVENT_FAILED, host->slot);
        return; /* and nothing is written any more; the crash says what is left */
    }
    commit_oldest(cluster, host, disk->batch_count);
    disk->batch_count = 0;
    cluster_push(cluster, cluster->now, EVENT_TOLD, host->slot)->number = disk->synced;
    begin_batch(cluster, host);
}

void disk_hang(struct cluster *cluster, struct host *host, gavel_ns until)
{
    TRACE(cluster, host, "its disk hangs%s", until == NEVER ? ", for good" : "");
    host->disk.hung_until = ns_max(host->disk.hung_until, until);
}

void disk_heal(struct cluster *cluster, struct host *host)
{
    struct disk *disk = &host->disk;

    disk->hung_until = 0;
    disk->slow_until = 0;
    disk->frozen_until = 0;
    disk->fails = false;
    if (disk->batch_count > 0) /* what was slow is done soon */
        cluster_push(cluster, cluster->now + draw_latency(cluster, host), EVENT_SYNC, host->slot)->number =
            ++disk->batch;
}

void disk_crash(struct cluster *cluster, struct host *host)
{
    struct disk *disk = &host->disk;
    bool survives = cluster_chance(cluster, STREAM_CRASH, cluster->profile.survive_per_mille);
    size_t count = cluster_below(cluster, STREAM_CRASH, (unsigned)disk->queue_count + 1);

    if (survives && cluster_has(cluster, FAULT_SURVIVE) && count > 0) {
        TRACE(cluster, host, "%zu of %zu unsynced writes survive", count, disk->queue_count);
        cluster_see(cluster, SIGHT_SURVIVALS);
        commit_oldest(cluster, host, count);
    } else if (disk->queue_count > 0) {
        TRACE(cluster, host, "%zu unsynced writes are lost", disk->queue_count);
    }
    shift_queue(disk, disk->queue_count);
    disk->batch_count = 0;
    disk->batch++;
    disk->fails = false;
    disk->frozen_until = 0;
    disk->synced = 0;
}

void disk_copy(struct disk *to, const struct disk *from)
{
    disk_clear(to);
    to->state = from->state;
    to->snapshot = from->snapshot;
    to->snapshot_bytes = copy_bytes(from->snapshot_bytes, from->snapshot.size);
    to->snapshot.data = to->snapshot_bytes;
    to->entries = grow(to->entries, &to->entry_capacity, from->entry_count, sizeof *to->entries);
    for (size_t i = 0; i < from->entry_count; i++) {
        to->entries[i] = from->entries[i];
        to->entries[i].data = copy_bytes(from->entries[i].data, from->entries[i].size);
    }
    to->entry_count = from->entry_count;
}

void disk_config(const struct disk *disk, struct raft_config *ret_config, raft_index *ret_index)
{
    for (size_t i = disk->entry_count; i > 0; i--) {
        const struct raft_entry *entry = &disk->entries[i - 1];

        if (entry->kind == RAFT_ENTRY_CONFIG &&
            raft_config_decode(entry->data, entry->size, ret_config) == GAVEL_OK) {
            *ret_index = disk->snapshot.index + i;
            return;
        }
    }
    *ret_config = disk->snapshot.config;
    *ret_index = disk->snapshot.config_index;
}
