/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/doorbell.h"

#include "base/assert.h"

#include <string.h>

enum { VERSION = 1, KIND_LOOK = 1 };

static const uint8_t magic[4] = {'g', 'a', 'v', 'l'};

size_t doorbell_encode(const char *group, uint8_t buffer[static DOORBELL_MAX_BYTES])
{
    size_t length = strlen(group);

    ASSERT(length >= 1);
    ASSERT(length <= NAME_MAX_BYTES);
    memcpy(buffer, magic, sizeof magic);
    buffer[4] = VERSION;
    buffer[5] = KIND_LOOK;
    buffer[6] = (uint8_t)length;
    memcpy(buffer + DOORBELL_HEAD_BYTES, group, length);
    return DOORBELL_HEAD_BYTES + length;
}

bool doorbell_decode(const uint8_t *bytes, size_t size, char ret_group[static NAME_MAX_BYTES + 1])
{
    char group[NAME_MAX_BYTES + 1];
    size_t length;

    if (size < DOORBELL_HEAD_BYTES || memcmp(bytes, magic, sizeof magic) != 0)
        return false;
    if (bytes[4] != VERSION || bytes[5] != KIND_LOOK)
        return false;
    length = bytes[6];
    if (size != DOORBELL_HEAD_BYTES + length)
        return false;
    memcpy(group, bytes + DOORBELL_HEAD_BYTES, length);
    group[length] = '\0';
    /* A NUL inside would cut the name short, and two different datagrams would mean the same. */
    if (strlen(group) != length || name_check("group name", group, NULL) != GAVEL_OK)
        return false;
    memcpy(ret_group, group, length + 1);
    return true;
}
