/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Messages from bytes. protobuf-c answers NULL both for bytes that are no
 * message and for want of memory; replicas must tell these apart, so its
 * allocations pass through here.
 */

#include "core/table/step.h"

#include <stdlib.h>

static void *take(void *data, size_t size)
{
    bool *is_out_of_memory = data;
    void *memory = malloc(size);

    if (!memory)
        *is_out_of_memory = true;
    return memory;
}

static void give(void *data, void *memory)
{
    (void)data;
    free(memory);
}

enum gavel_status message_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes,
                                 size_t size, ProtobufCMessage **ret_message)
{
    bool is_out_of_memory = false;
    ProtobufCAllocator allocator = {.alloc = take, .free = give, .allocator_data = &is_out_of_memory};
    ProtobufCMessage *message = protobuf_c_message_unpack(descriptor, &allocator, size, bytes);

    if (!message)
        return is_out_of_memory ? GAVEL_ERR_NO_MEMORY : GAVEL_ERR_INVALID;
    *ret_message = message;
    return GAVEL_OK;
}
