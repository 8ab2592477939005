/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Frames between clients and nodes (client.proto), each preceded by its length as
 * between nodes (peer.h). A frame that unpacks is well-formed and within the
 * limits; the code that acts on it checks its meaning.
 */
#ifndef WIRE_CLIENT_H
#define WIRE_CLIENT_H

#include "wire/client.pb-c.h"

#include <gavel/status.h>
#include <stddef.h>
#include <stdint.h>

#define CLIENT_VERSION_MIN 1
#define CLIENT_VERSION_MAX 1
#define CLIENT_LENGTH_BYTES 4
#define CLIENT_FIRST_FRAME_MAX (4u * 1024)
#define CLIENT_FRAME_MAX (4u << 20)
#define CLIENT_SESSIONS_MAX 4096 /* of one keep-alive */

/* The length that the first four bytes announce. */
uint32_t client_frame_length(const uint8_t bytes[CLIENT_LENGTH_BYTES]);

/*
 * Unpacks the payload of one frame. The frame is handed over to the caller, who frees it with
 * client_frame_free(). ERR_INVALID, with a reason (static), for bytes that are no frame; ERR_NO_MEMORY. A
 * frame of an unknown kind has what_case 0: skip it.
 */
GAVEL_CHECKED enum gavel_status client_frame_unpack(const uint8_t *bytes, size_t size,
                                                    Gavel__ClientFrame **ret_frame, const char **ret_reason);
void client_frame_free(Gavel__ClientFrame *frame); /* safe on NULL */

/* A deep copy. NULL: no memory. */
Gavel__ClientFrame *client_frame_copy(const Gavel__ClientFrame *frame);
Gavel__Op *client_op_copy(const Gavel__Op *op); /* freed with gavel__op__free_unpacked(op, NULL) */

/* Packs length and payload into bytes that are handed over. ERR_NO_MEMORY; ERR_INVALID if it would be larger
 * than CLIENT_FRAME_MAX. */
GAVEL_CHECKED enum gavel_status client_frame_pack(const Gavel__ClientFrame *frame, uint8_t **ret_bytes,
                                                  size_t *ret_size);

#endif
