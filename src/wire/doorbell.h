/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The doorbell: one small datagram that says "look at this group now".
 *
 *     offset  0        4         5      6        7
 *             ┌────────┬─────────┬──────┬────────┬───────────────┐
 *             │ "gavl" │ version │ kind │ length │ group, UTF-8  │
 *             └────────┴─────────┴──────┴────────┴───────────────┘
 *
 * It is only a hint: harmless if lost, repeated or forged, since the receiver
 * looks into the store and believes nothing else. Pure; no I/O.
 */
#ifndef WIRE_DOORBELL_H
#define WIRE_DOORBELL_H

#include "base/record.h"

#define DOORBELL_HEAD_BYTES 7
#define DOORBELL_MAX_BYTES (DOORBELL_HEAD_BYTES + NAME_MAX_BYTES)

/* Writes the datagram for a group, whose name has passed name_check(). Returns its size. */
size_t doorbell_encode(const char *group, uint8_t buffer[static DOORBELL_MAX_BYTES]);

/*
 * Decodes a datagram. False, with ret_group untouched, for anything that
 * doorbell_encode() would not have written.
 */
bool doorbell_decode(const uint8_t *bytes, size_t size, char ret_group[static NAME_MAX_BYTES + 1]);

#endif
