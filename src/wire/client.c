/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Frames of clients to bytes, and back. protobuf-c does the work; this adds limits.
 * An empty operation is two bytes on the wire and a hundred in memory, and no
 * sender may make us allocate many times what it sends. All memory is plain
 * malloc(), and is freed as protobuf-c frees.
 */

#include "wire/client.h"

#include "base/assert.h"
#include "wire/client_survey.h"

#include <stdbool.h>
#include <stdlib.h>

/* Counted for each piece, on top of its size: what malloc() needs for itself. */
#define PIECE_BYTES 16

/* What protobuf-c may take for a frame, all in all and not counting what it gives back: that bounds its work,
 * too. Small frames may be all structure; large ones are mostly values. */
#define SMALL_MEMORY_OF(size) ((size_t)65536 + (size)*64)
#define LARGE_MEMORY_OF(size) (((size_t)16 << 20) + (size)*4)

struct purse {
    size_t left;
    bool is_empty; /* something was refused for the limit … */
    bool is_short; /* … or for want of memory */
};

static void *spend(void *context, size_t size)
{
    struct purse *purse = context;
    void *piece;

    if (purse->left < PIECE_BYTES || size > purse->left - PIECE_BYTES) {
        purse->is_empty = true;
        return NULL;
    }
    purse->left -= size + PIECE_BYTES;
    piece = calloc(1, size); /* padding, too: what is decided upon is compared by bytes */
    if (!piece)
        purse->is_short = true;
    return piece;
}

static void give_back(void *context, void *piece)
{
    (void)context; /* what was spent is spent */
    free(piece);
}

uint32_t client_frame_length(const uint8_t bytes[CLIENT_LENGTH_BYTES])
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* What is wrong with a frame that protobuf-c could take apart, or NULL. */
static const char *complaint_about(const Gavel__ClientFrame *frame)
{
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT__NOT_SET)
        return frame->base.n_unknown_fields > 0 ? NULL : "a frame that says nothing";
    if (!frame->hello) /* the oneof is one pointer */
        return "a frame without its body";
    if (frame->what_case != GAVEL__CLIENT_FRAME__WHAT_REQUEST)
        return NULL;
    for (size_t i = 0; i < frame->request->n_ops; i++)
        if (frame->request->ops[i]->what_case != GAVEL__OP__WHAT__NOT_SET &&
            !frame->request->ops[i]->open_session)
            return "an operation without its body";
    return NULL;
}

enum gavel_status client_frame_unpack(const uint8_t *bytes, size_t size, Gavel__ClientFrame **ret_frame,
                                      const char **ret_reason)
{
    struct purse purse = {0};
    ProtobufCAllocator allocator = {.alloc = spend, .free = give_back, .allocator_data = &purse};
    Gavel__ClientFrame *frame;
    const char *reason;

    if (size > CLIENT_FRAME_MAX) {
        *ret_reason = "a frame that is too long";
        return GAVEL_ERR_INVALID;
    }
    reason = client_survey(bytes, size);
    if (reason) {
        *ret_reason = reason;
        return GAVEL_ERR_INVALID;
    }
    purse.left =
        SMALL_MEMORY_OF(size) < LARGE_MEMORY_OF(size) ? SMALL_MEMORY_OF(size) : LARGE_MEMORY_OF(size);
    frame = gavel__client_frame__unpack(&allocator, size, bytes);
    if (!frame) {
        *ret_reason = purse.is_short   ? "out of memory"
                      : purse.is_empty ? "a frame of too many parts"
                                       : "bytes that are not a frame";
        return purse.is_short ? GAVEL_ERR_NO_MEMORY : GAVEL_ERR_INVALID;
    }
    reason = complaint_about(frame);
    if (reason) {
        client_frame_free(frame);
        *ret_reason = reason;
        return GAVEL_ERR_INVALID;
    }
    *ret_frame = frame;
    return GAVEL_OK;
}

void client_frame_free(Gavel__ClientFrame *frame)
{
    if (frame)
        gavel__client_frame__free_unpacked(frame, NULL);
}

/* By way of bytes: protobuf-c has no copying. NULL: no memory. */
static ProtobufCMessage *copy_of(const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(size > 0 ? size : 1);
    ProtobufCMessage *copy;

    if (!bytes)
        return NULL;
    (void)protobuf_c_message_pack(message, bytes); /* the size is known */
    copy = protobuf_c_message_unpack(message->descriptor, NULL, size, bytes);
    free(bytes);
    return copy;
}

Gavel__ClientFrame *client_frame_copy(const Gavel__ClientFrame *frame)
{
    return (Gavel__ClientFrame *)copy_of(&frame->base);
}

Gavel__Op *client_op_copy(const Gavel__Op *op) { return (Gavel__Op *)copy_of(&op->base); }

enum gavel_status client_frame_pack(const Gavel__ClientFrame *frame, uint8_t **ret_bytes, size_t *ret_size)
{
    size_t size = gavel__client_frame__get_packed_size(frame);
    uint8_t *bytes;

    if (size > CLIENT_FRAME_MAX)
        return GAVEL_ERR_INVALID;
    bytes = malloc(CLIENT_LENGTH_BYTES + size);
    if (!bytes)
        return GAVEL_ERR_NO_MEMORY;
    for (int i = 0; i < CLIENT_LENGTH_BYTES; i++)
        bytes[i] = (uint8_t)(size >> (8 * (CLIENT_LENGTH_BYTES - 1 - i)));
    ASSERT(gavel__client_frame__pack(frame, bytes + CLIENT_LENGTH_BYTES) == size);
    *ret_bytes = bytes;
    *ret_size = CLIENT_LENGTH_BYTES + size;
    return GAVEL_OK;
}
