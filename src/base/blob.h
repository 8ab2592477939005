/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes that never change and that several owners hold, in several threads: a
 * snapshot of many megabytes is handed on, not copied. The last one that drops
 * it frees it.
 */
#ifndef BASE_BLOB_H
#define BASE_BLOB_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct blob {
    _Atomic unsigned holders;
    size_t size;
    const uint8_t *bytes;
};

/* Takes over bytes from malloc(). NULL: no memory, and the bytes stay the caller's. */
struct blob *blob_own(uint8_t *bytes, size_t size);

/* NULL: no memory. */
struct blob *blob_copy(const uint8_t *bytes, size_t size);

/* One more holder; returns its argument. Safe on NULL, like the next one. */
struct blob *blob_share(struct blob *blob);
void blob_drop(struct blob *blob);

#endif
