/* SPDX-License-Identifier: Apache-2.0 */

#include "core/node/build.h"

#include "base/assert.h"
#include "base/planted.h"

#include <stdlib.h>
#include <string.h>

/* Of an entry in a slice; its bytes follow. */
struct head {
    raft_index index;
    size_t size;
};

struct node_build_slice {
    struct node_build_slice *next;
    size_t size;
    uint8_t bytes[]; /* entries of data: head, bytes, head, … */
};

bool node_may_build(const struct node *node)
{
    return !node_has_todo(node) && node->raft.applied > node->raft.log.base;
}

struct node_build *node_build_begin(const struct node *node)
{
    const struct raft *raft = &node->raft;
    struct node_build *build = calloc(1, sizeof *build);

    ASSERT(node_may_build(node));
    ASSERT(raft->snapshot.index == raft->log.base);
    ASSERT(node->table->index <= raft->applied);
    if (!build)
        return NULL;
    build->base = raft->log.base;
    build->index = raft->applied;
    build->next = raft->log.base + 1;
    build->digest = table_digest(node->table);
    build->before = blob_share(raft->snapshot.blob);
    build->last = &build->slices;
    return build;
}

void node_build_drop_inputs(struct node_build *build)
{
    while (build->slices) {
        struct node_build_slice *next = build->slices->next;

        free(build->slices);
        build->slices = next;
    }
    blob_drop(build->before);
    build->before = NULL;
}

void node_build_free(struct node_build *build)
{
    if (!build)
        return;
    node_build_drop_inputs(build);
    blob_drop(build->blob);
    free(build);
}

/* How many entries from `next` on go into a slice, and the room that they need. */
static raft_index measure(const struct node_build *build, const struct raft_log *log, raft_index last,
                          size_t bytes, size_t *ret_size)
{
    raft_index end = build->next;

    *ret_size = 0;
    while (end <= last && *ret_size < bytes) {
        const struct raft_entry *entry = raft_log_at(log, end);

        ASSERT(entry);
        *ret_size += sizeof(struct head) + entry->size; /* those of other kinds count, too: a slice ends */
        end++;
    }
    return end;
}

enum gavel_status node_build_collect(struct node_build *build, const struct node *node, size_t bytes,
                                     bool *ret_is_last)
{
    const struct raft_log *log = &node->raft.log;
    struct node_build_slice *slice;
    raft_index last = build->index;
    raft_index end;
    size_t room;

    if (log->base != build->base)
        return GAVEL_ERR_STATE;
    ASSERT(build->index <= node->raft.applied);
    if (PLANTED(SNAPSHOT_BEYOND))
        last = node->raft.applied;
    end = measure(build, log, last, bytes, &room);
    slice = malloc(sizeof *slice + room);
    if (!slice)
        return GAVEL_ERR_NO_MEMORY;
    slice->next = NULL;
    slice->size = 0;
    for (; build->next < end; build->next++) {
        const struct raft_entry *entry = raft_log_at(log, build->next);
        const struct head head = {.index = build->next, .size = entry->size};

        if (entry->kind != RAFT_ENTRY_DATA)
            continue;
        memcpy(slice->bytes + slice->size, &head, sizeof head);
        if (entry->size > 0)
            memcpy(slice->bytes + slice->size + sizeof head, entry->data, entry->size);
        slice->size += sizeof head + entry->size;
    }
    ASSERT(slice->size <= room);
    *build->last = slice;
    build->last = &slice->next;
    *ret_is_last = build->next > last;
    return GAVEL_OK;
}

static enum gavel_status apply(struct table *table, const struct node_build_slice *slice)
{
    struct head head;

    for (size_t at = 0; at < slice->size; at += sizeof head + head.size) {
        enum gavel_status status;

        memcpy(&head, slice->bytes + at, sizeof head);
        if (PLANTED(SNAPSHOT_UNCHECKED) && !slice->next && at + sizeof head + head.size == slice->size)
            break;
        status = table_apply(table, head.index, slice->bytes + at + sizeof head, head.size);
        if (status == GAVEL_ERR_NO_MEMORY)
            return status; /* anything else the table of the node has refused, too */
    }
    return GAVEL_OK;
}

enum gavel_status node_build_run(struct node_build *build)
{
    struct table table = {0};
    enum gavel_status status = GAVEL_OK;
    uint8_t *bytes = NULL;
    size_t size = 0;
    bool is_same;

    ASSERT(build->next > build->index);
    if (build->before->size > 0)
        status = table_snapshot_decode(&table, build->before->bytes, build->before->size);
    for (struct node_build_slice *slice = build->slices; slice && status == GAVEL_OK; slice = slice->next)
        status = apply(&table, slice);
    build->built = table_digest(&table);
    is_same = build->built == build->digest;
    if (PLANTED(SNAPSHOT_UNCHECKED))
        is_same = true;
    if (status == GAVEL_OK && !is_same)
        status = GAVEL_ERR_CONFLICT;
    if (status == GAVEL_OK)
        status = table_snapshot_encode(&table, &bytes, &size);
    table_done(&table);
    if (status != GAVEL_OK)
        return status;
    build->blob = blob_own(bytes, size);
    if (!build->blob)
        free(bytes);
    return build->blob ? GAVEL_OK : GAVEL_ERR_NO_MEMORY;
}
