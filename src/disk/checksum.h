/* SPDX-License-Identifier: Apache-2.0 */

/* The checksum of what is written; the head of checksum.c says which and why. */
#ifndef DISK_CHECKSUM_H
#define DISK_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Of these bytes, after what `before` stands for: 0, or the checksum of what comes first. */
uint64_t checksum_add(uint64_t before, const uint8_t *bytes, size_t size);

#endif
