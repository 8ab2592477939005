/* SPDX-License-Identifier: Apache-2.0 */

#include "base/blob.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

struct blob *blob_own(uint8_t *bytes, size_t size)
{
    struct blob *blob = malloc(sizeof *blob);

    if (!blob)
        return NULL;
    atomic_init(&blob->holders, 1);
    blob->size = size;
    blob->bytes = bytes;
    return blob;
}

struct blob *blob_copy(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    struct blob *blob;

    if (!copy)
        return NULL;
    if (size > 0)
        memcpy(copy, bytes, size);
    blob = blob_own(copy, size);
    if (!blob)
        free(copy);
    return blob;
}

struct blob *blob_share(struct blob *blob)
{
    if (blob)
        ASSERT(atomic_fetch_add(&blob->holders, 1) > 0);
    return blob;
}

void blob_drop(struct blob *blob)
{
    unsigned before = blob ? atomic_fetch_sub(&blob->holders, 1) : 2;

    ASSERT(before > 0);
    if (before > 1)
        return;
    free((void *)(uintptr_t)blob->bytes);
    free(blob);
}
