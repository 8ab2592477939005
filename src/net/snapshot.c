/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Snapshots go in chunks: the next one is written when the socket has taken
 * most of the one before, so that a heartbeat waits behind one chunk at most
 * and not behind the whole. The receiver puts them together again; it
 * allocates as bytes come, not as they are announced.
 */

#include "net/internal.h"

#include <stdlib.h>
#include <string.h>

void snapshot_forget(struct outgoing *snapshot)
{
    blob_drop(snapshot->blob);
    *snapshot = (struct outgoing){0};
}

void snapshot_drop(struct incoming *snapshot)
{
    free(snapshot->bytes);
    *snapshot = (struct incoming){0};
}

void snapshot_send(struct link *link, const struct raft_message *message)
{
    struct outgoing *snapshot = &link->snapshot;
    size_t size = message->snapshot.size;

    if (snapshot->is_under_way || size > PEER_SNAPSHOT_MAX) {
        link->dropped++;
        return;
    }
    snapshot->blob =
        message->snapshot.blob ? blob_share(message->snapshot.blob) : blob_copy(message->snapshot.data, size);
    if (!snapshot->blob) {
        link->dropped++;
        return;
    }
    snapshot->is_under_way = true;
    snapshot->size = size;
    snapshot->offset = 0;
    snapshot->transfer = ++link->transport->transfers;
    snapshot->head = *message;
    snapshot->head.snapshot.data = NULL;
    snapshot->head.snapshot.blob = NULL;
    snapshot_pump(link);
}

void snapshot_pump(struct link *link)
{
    struct outgoing *snapshot = &link->snapshot;

    while (snapshot->is_under_way && connection_waiting(link->out) < PEER_CHUNK_BYTES) {
        size_t left = snapshot->size - snapshot->offset;
        struct peer_frame frame = {
            .kind = PEER_CHUNK,
            .chunk = {.transfer = snapshot->transfer,
                      .offset = snapshot->offset,
                      .total = snapshot->size,
                      .data = snapshot->blob->bytes + snapshot->offset,
                      .size = left < PEER_CHUNK_BYTES ? left : PEER_CHUNK_BYTES,
                      .head = snapshot->head},
        };

        if (!connection_write(link->out, &frame)) {
            link->dropped++;
            snapshot_forget(snapshot);
            return;
        }
        snapshot->offset += frame.chunk.size;
        if (snapshot->offset == snapshot->size)
            snapshot_forget(snapshot);
    }
}

static bool grow(struct incoming *snapshot, size_t size)
{
    size_t capacity = snapshot->capacity > 0 ? snapshot->capacity : PEER_CHUNK_BYTES;
    uint8_t *bytes;

    while (capacity < size)
        capacity *= 2;
    if (capacity == snapshot->capacity)
        return true;
    if (capacity > snapshot->total)
        capacity = snapshot->total;
    bytes = realloc(snapshot->bytes, capacity);
    if (!bytes)
        return false;
    snapshot->bytes = bytes;
    snapshot->capacity = capacity;
    return true;
}

static void finish(struct connection *connection)
{
    struct transport *transport = connection->transport;
    struct incoming whole = connection->snapshot;
    struct blob *blob;

    /* Taken off before it is handed on: the caller may close the connection from there. */
    connection->snapshot = (struct incoming){0};
    blob = blob_own(whole.bytes, whole.size);
    if (!blob) { /* no memory: as if it had been lost on its way */
        snapshot_drop(&whole);
        return;
    }
    whole.head.snapshot.data = whole.bytes;
    whole.head.snapshot.blob = blob;
    if (transport->events.message)
        transport->events.message(transport->events.user, &whole.head);
    blob_drop(blob);
}

const char *snapshot_take(struct connection *connection, const struct peer_chunk *chunk)
{
    struct incoming *snapshot = &connection->snapshot;

    if (chunk->offset == 0) {
        if (chunk->head.from != connection->peer ||
            chunk->head.to != connection->transport->settings.self.node)
            return "a snapshot in the name of another node";
        snapshot_drop(snapshot);
        snapshot->is_under_way = true;
        snapshot->transfer = chunk->transfer;
        snapshot->total = chunk->total;
        snapshot->head = chunk->head;
    }
    if (!snapshot->is_under_way || chunk->transfer != snapshot->transfer || chunk->total != snapshot->total ||
        chunk->offset != snapshot->size)
        return "a chunk that does not follow the one before";
    if (!grow(snapshot, snapshot->size + chunk->size)) {
        snapshot_drop(snapshot);
        return "out of memory for a snapshot";
    }
    if (chunk->size > 0)
        memcpy(snapshot->bytes + snapshot->size, chunk->data, chunk->size);
    snapshot->size += chunk->size;
    if (snapshot->size == snapshot->total)
        finish(connection);
    return NULL;
}
