/* SPDX-License-Identifier: Apache-2.0 */

/* The checksum of records on disk; the head of checksum.c says which one and why. */
#ifndef DISK_CHECKSUM_H
#define DISK_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Adds these bytes to the checksum `before` of what precedes them; 0 for none. */
uint64_t checksum_add(uint64_t before, const uint8_t *bytes, size_t size);

#endif
