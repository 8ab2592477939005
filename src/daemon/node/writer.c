/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/node/writer.h"

#include "daemon/realtime.h"
#include "os/clock.h"
#include "os/wakeup.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* How long a full disk is left alone before the next try. */
#define FULL_PAUSE_MS 200
/* How long the end of the node waits for a write; what a crash may lose, an end may leave. */
#define END_LIMIT_S 3
/* How much longer, if only the directory is to be put in order. */
#define SETTLE_LIMIT_S 5
/* How often it looks whether data.mdb is still there. */
#define LOOK_EVERY_MS 500
/* Changes in one transaction; more would make the first of them wait. */
#define BATCH_MAX 64
/* Pieces of a snapshot that are staged at a time: 256 KiB. A write that comes meanwhile waits for them. */
#define STAGE_PIECES 64

struct queued_write {
    struct mail_link link; /* first */
    struct disk_write write;
    struct blob *stage;    /* no write: to be staged … */
    uint64_t stage_number; /* … with this number, or to be given up */
    bool is_stage;
};

static void queued_write_free(struct queued_write *queued)
{
    if (!queued)
        return;
    for (size_t i = 0; queued->write.entries && i <= queued->write.persist.last - queued->write.persist.first;
         i++)
        free((void *)(uintptr_t)queued->write.entries[i].data);
    free(queued->write.entries);
    blob_drop(queued->write.snapshot.blob);
    blob_drop(queued->stage);
    free(queued);
}

static const uint8_t *copy_of(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);

    if (copy && size > 0)
        memcpy(copy, data, size);
    return copy;
}

static bool copy_entries(struct queued_write *queued, const struct raft *raft,
                         const struct raft_persist *persist)
{
    size_t count;

    if (persist->first == 0)
        return true;
    count = persist->last - persist->first + 1;
    queued->write.entries = calloc(count, sizeof *queued->write.entries);
    if (!queued->write.entries)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct raft_entry *from = raft_log_at(&raft->log, persist->first + i);
        struct raft_entry *entry = &queued->write.entries[i];

        entry->term = from->term;
        entry->kind = from->kind;
        entry->size = from->size;
        entry->data = copy_of(from->data, from->size);
        if (!entry->data)
            return false;
    }
    return true;
}

enum gavel_status writer_put(struct writer *writer, const struct raft *raft,
                             const struct raft_persist *persist)
{
    struct queued_write *queued = calloc(1, sizeof *queued);

    if (!queued)
        return GAVEL_ERR_NO_MEMORY;
    queued->write.persist = *persist;
    if (persist->has_snapshot) {
        queued->write.snapshot = raft->snapshot;
        (void)blob_share(raft->snapshot.blob); /* it is the same pointer */
    }
    if (!copy_entries(queued, raft, persist)) {
        queued_write_free(queued);
        return GAVEL_ERR_NO_MEMORY;
    }
    mailbox_put(&writer->messages, &queued->link);
    return GAVEL_OK;
}

uint64_t writer_stage(struct writer *writer, struct blob *blob)
{
    struct queued_write *queued = calloc(1, sizeof *queued);

    if (!queued)
        return 0;
    queued->is_stage = true;
    queued->stage = blob_share(blob);
    queued->stage_number = ++writer->stages;
    mailbox_put(&writer->messages, &queued->link); /* the other thread may have freed it by now */
    return writer->stages;
}

void writer_unstage(struct writer *writer, uint64_t number)
{
    struct queued_write *queued;

    if (number == 0 || !writer->is_running)
        return;
    queued = calloc(1, sizeof *queued);
    if (!queued)
        return; /* the next stage takes its place */
    queued->is_stage = true;
    queued->stage_number = number;
    mailbox_put(&writer->messages, &queued->link);
}

static void set_state(struct writer *writer, enum writer_state state)
{
    if (atomic_exchange(&writer->state, state) != (int)state)
        wakeup_ring(writer->fd);
}

/* Those up to the first that brings a snapshot; 0 if none does. */
static size_t count_to_snapshot(const struct mail_link *list)
{
    size_t count = 1;

    for (; list; list = list->next, count++)
        if (((const struct queued_write *)list)->write.persist.has_snapshot)
            return count;
    return 0;
}

static size_t count_messages(const struct mail_link *list, size_t most)
{
    size_t count = 0;

    for (; list && count < most; list = list->next)
        count++;
    return count;
}

static void forget_stage(struct writer *writer)
{
    blob_drop(writer->stage.blob);
    writer->stage.blob = NULL;
    writer->stage.is_whole = false;
}

/* Done with it, one way or the other. */
static void tell_staged(struct writer *writer)
{
    atomic_store(&writer->staged, writer->stage.number);
    wakeup_ring(writer->fd);
}

/* Its pieces are leftovers from now on. */
static void give_up_stage(struct writer *writer)
{
    forget_stage(writer);
    disk_unstage(writer->disk);
    tell_staged(writer);
}

/* Of a failure of the disk, other than that it is full. */
static void fail(struct writer *writer, const struct gavel_error *error)
{
    writer->error = *error;
    set_state(writer, WRITER_FAILED);
}

/* True if there is a little more room then. */
static bool remove_leftovers(struct writer *writer, enum gavel_status *status)
{
    struct gavel_error error = {0};
    struct disk_mark mark;

    if (!disk_has_leftovers(writer->disk))
        return false;
    *status = disk_remove_leftovers(writer->disk, &error);
    if (*status == GAVEL_OK) {
        disk_mark_read(writer->disk, &mark);
        atomic_store(&writer->written, mark.txn);
        return true;
    }
    if (*status == GAVEL_ERR_NO_MEMORY)
        *status = GAVEL_ERR_STORE_FULL; /* likewise: another time */
    if (*status != GAVEL_ERR_STORE_FULL)
        fail(writer, &error);
    return false;
}

/* Takes what is to be staged, or no longer, out of the list; the newest counts. */
static void take_stages(struct writer *writer, struct mail_link **list)
{
    while (*list) {
        struct queued_write *queued = (struct queued_write *)*list;

        if (!queued->is_stage) {
            list = &(*list)->next;
            continue;
        }
        *list = queued->link.next;
        if (queued->stage) {
            forget_stage(writer);
            writer->stage.blob = queued->stage;
            writer->stage.number = queued->stage_number;
            writer->stage.next = 0;
            queued->stage = NULL;
        } else {
            writer->stage.unwanted = queued->stage_number;
        }
        queued_write_free(queued);
    }
}

/* What is unwanted goes, unless a write that uses it still waits. */
static void drop_unwanted(struct writer *writer, const struct mail_link *list)
{
    if (!writer->stage.blob || writer->stage.number != writer->stage.unwanted)
        return;
    for (; list; list = list->next)
        if (((const struct queued_write *)list)->write.snapshot.blob == writer->stage.blob)
            return;
    give_up_stage(writer);
}

/* The next few pieces. ERR_STORE_FULL is no failure: whoever has no room for it writes it at once. */
static enum gavel_status stage_some(struct writer *writer)
{
    const struct blob *blob = writer->stage.blob;
    uint32_t all = (uint32_t)((blob->size + DISK_PIECE_BYTES - 1) / DISK_PIECE_BYTES);
    uint32_t count = all - writer->stage.next < STAGE_PIECES ? all - writer->stage.next : STAGE_PIECES;
    struct gavel_error error = {0};
    struct disk_mark mark;
    enum gavel_status status =
        disk_stage(writer->disk, blob->bytes, blob->size, writer->stage.next, count, &error);

    if (status == GAVEL_OK) {
        disk_mark_read(writer->disk, &mark);
        atomic_store(&writer->written, mark.txn);
        writer->stage.next += count;
        writer->stage.is_whole = writer->stage.next == all;
        if (writer->stage.is_whole)
            tell_staged(writer);
        return GAVEL_OK;
    }
    if (status != GAVEL_ERR_STORE_FULL && status != GAVEL_ERR_NO_MEMORY) {
        fail(writer, &error);
        return status;
    }
    give_up_stage(writer);
    return GAVEL_OK;
}

/* The first `count` as one transaction. */
static enum gavel_status write_messages(struct writer *writer, const struct mail_link *list, size_t count)
{
    struct disk_write *writes = calloc(count, sizeof *writes);
    struct gavel_error error = {.status = GAVEL_ERR_NO_MEMORY, .message = "out of memory"};
    enum gavel_status status = GAVEL_ERR_NO_MEMORY;
    struct disk_mark mark;
    bool has_snapshot = false;

    for (size_t i = 0; writes && i < count; i++, list = list->next) {
        writes[i] = ((const struct queued_write *)list)->write;
        writes[i].is_staged = writes[i].persist.has_snapshot && writer->stage.is_whole &&
                              writes[i].snapshot.blob == writer->stage.blob;
        has_snapshot = has_snapshot || writes[i].persist.has_snapshot;
    }
    if (writes)
        status = disk_write(writer->disk, writes, count, &error);
    if (status == GAVEL_OK) {
        disk_mark_read(writer->disk, &mark);
        atomic_fetch_add(&writer->writes, 1);
        atomic_store(&writer->written, mark.txn);
        atomic_store(&writer->durable, writes[count - 1].persist.seq);
        atomic_store(&writer->state, WRITER_GOOD);
        wakeup_ring(writer->fd);
        if (has_snapshot && writer->stage.blob) { /* the disk begins with the next one anew */
            tell_staged(writer);
            forget_stage(writer);
        }
    } else if (status != GAVEL_ERR_STORE_FULL) {
        fail(writer, &error);
    }
    free(writes);
    return status;
}

/*
 * A disk without room for a write has none for half a snapshot either, and what is left behind goes first. A
 * whole one stays: what puts it in force frees more than it takes. True: it is worth another try.
 */
static bool make_room(struct writer *writer, enum gavel_status *status)
{
    if (writer->stage.blob && !writer->stage.is_whole)
        give_up_stage(writer);
    return remove_leftovers(writer, status);
}

/*
 * Writes the oldest of the list and takes them off. On a full disk, a snapshot further back may make the
 * room: then everything up to it goes at once. ERR_STORE_FULL: nothing was written, nothing may overtake it.
 */
static enum gavel_status write_some(struct writer *writer, struct mail_link **list)
{
    size_t count = count_messages(*list, BATCH_MAX);
    size_t to_snapshot;
    enum gavel_status status = write_messages(writer, *list, count);

    if (status == GAVEL_ERR_STORE_FULL && count > 1) { /* all at once need more room than one by one */
        count = 1;
        status = write_messages(writer, *list, count);
    }
    if (status == GAVEL_ERR_STORE_FULL && make_room(writer, &status))
        return GAVEL_OK; /* nothing is written yet */
    if (status == GAVEL_ERR_STORE_FULL) {
        set_state(writer, WRITER_FULL);
        to_snapshot = count_to_snapshot(*list);
        if (to_snapshot > count) {
            count = to_snapshot;
            status = write_messages(writer, *list, count);
        }
    }
    for (; status == GAVEL_OK && count > 0; count--) {
        struct mail_link *next = (*list)->next;

        queued_write_free((struct queued_write *)*list);
        *list = next;
    }
    return status;
}

static void free_messages(struct mail_link *list)
{
    while (list) {
        struct mail_link *next = list->next;

        queued_write_free((struct queued_write *)list);
        list = next;
    }
}

/* Somebody deleted or replaced it: whatever is written goes nowhere. */
static void look(struct writer *writer, gavel_ns *look_at)
{
    gavel_ns now = clock_now();

    if (now < *look_at)
        return;
    *look_at = now + LOOK_EVERY_MS * NS_PER_MS;
    if (!disk_is_there(writer->disk) && !atomic_exchange(&writer->is_lost, true))
        wakeup_ring(writer->fd);
}

static void *run(void *user)
{
    struct writer *writer = user;
    struct pollfd poll_of = {.fd = writer->messages.fd, .events = POLLIN};
    struct mail_link *list = NULL; /* what is not durable yet, oldest first */
    enum gavel_status status = GAVEL_OK;
    gavel_ns look_at = 0;
    bool is_ending;

    do {
        struct mail_link **end = &list;

        is_ending = atomic_load(&writer->is_ending); /* what was put before that is taken now */
        while (*end)
            end = &(*end)->next;
        *end = mailbox_take_all(&writer->messages);
        take_stages(writer, end);
        do
            status = list ? write_some(writer, &list) : GAVEL_OK;
        while (list && status == GAVEL_OK);
        drop_unwanted(writer, list);
        if (is_ending || (status != GAVEL_OK && status != GAVEL_ERR_STORE_FULL))
            break; /* what is left rests on what could not be written */
        if (status == GAVEL_ERR_STORE_FULL)
            (void)poll(NULL, 0, FULL_PAUSE_MS); /* the room comes from elsewhere */
        else if (writer->stage.blob && !writer->stage.is_whole)
            status = stage_some(writer);
        else if (!remove_leftovers(writer, &status)) /* else there may be more */
            (void)poll(&poll_of, 1, LOOK_EVERY_MS);  /* a failure only makes it look sooner */
        look(writer, &look_at);
    } while (status == GAVEL_OK || status == GAVEL_ERR_STORE_FULL);
    forget_stage(writer);
    free_messages(list);
    if (is_ending && (status == GAVEL_OK || status == GAVEL_ERR_STORE_FULL)) {
        atomic_store(&writer->is_settling, true);
        disk_settle(writer->disk);
    }
    return NULL;
}

enum gavel_status writer_start(struct writer *writer, struct disk *disk, bool is_realtime)
{
    enum gavel_status status;

    memset(writer, 0, sizeof *writer);
    writer->disk = disk;
    writer->fd = wakeup_open();
    if (writer->fd < 0)
        return GAVEL_ERR_IO;
    status = mailbox_init(&writer->messages);
    if (status != GAVEL_OK) {
        wakeup_close(&writer->fd);
        return status;
    }
    if (realtime_thread(&writer->thread, "gaveld-disk", run, writer,
                        is_realtime ? REALTIME_FIRST : REALTIME_NO)) {
        mailbox_done(&writer->messages);
        wakeup_close(&writer->fd);
        return GAVEL_ERR_NO_MEMORY;
    }
    writer->is_running = true;
    return GAVEL_OK;
}

/* False: it has not ended by then. */
static bool join(struct writer *writer, time_t limit_s)
{
    struct timespec limit;

    (void)clock_gettime(CLOCK_MONOTONIC, &limit); /* fails only for bad arguments */
    limit.tv_sec += limit_s;
    return pthread_clockjoin_np(writer->thread, NULL, CLOCK_MONOTONIC, &limit) == 0;
}

bool writer_stop(struct writer *writer)
{
    if (!writer->is_running)
        return true;
    atomic_store(&writer->is_ending, true);
    wakeup_ring(writer->messages.fd); /* it rings for writes too */
    if (!join(writer, END_LIMIT_S) && !(atomic_load(&writer->is_settling) && join(writer, SETTLE_LIMIT_S)))
        return false;
    free_messages(mailbox_take_all(&writer->messages));
    mailbox_done(&writer->messages);
    wakeup_close(&writer->fd);
    writer->is_running = false;
    return true;
}
