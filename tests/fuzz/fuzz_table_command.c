/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as commands of the log, one after the other: each begins with its
 * length (2 bytes, the higher first) and is a protobuf Command. Whatever they
 * do to the table, its snapshot must give the same table again, and that must
 * take the next command alike.
 */
#include "target.h"

#include "base/assert.h"
#include "core/table/history.h"

#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 2, ROUND = 8 };

/* The bytes as an entry of the log; the caller frees them. */
static uint8_t *entry_of(const uint8_t *bytes, size_t size, size_t *ret_size)
{
    struct table_command command = {.kind = TABLE_OPS, .value = bytes, .value_size = size};
    uint8_t *entry;

    *ret_size = table_command_size(&command);
    if (*ret_size == 0)
        return NULL;
    entry = malloc(*ret_size);
    ASSERT(entry);
    table_command_encode(&command, entry);
    return entry;
}

static void apply(struct table *table, uint64_t index, const uint8_t *entry, size_t size)
{
    struct table_outcome outcome = {0};
    enum gavel_status status = table_apply_ops(table, index, entry, size, &outcome);

    ASSERT(status != GAVEL_ERR_NO_MEMORY);
    ASSERT(table->index == index);
    ASSERT(status == GAVEL_OK || !outcome.results);
    for (size_t i = 0; i < outcome.count; i++)
        ASSERT(outcome.results[i].why);
    table_outcome_done(&outcome);
}

static void compare(const struct table *table, struct table *restored)
{
    uint8_t *once, *twice;
    size_t once_size, twice_size;

    ASSERT(table_snapshot_encode(table, &once, &once_size) == GAVEL_OK);
    ASSERT(table_snapshot_decode(restored, once, once_size) == GAVEL_OK);
    ASSERT(table_digest(restored) == table_digest(table));
    ASSERT(table_snapshot_encode(restored, &twice, &twice_size) == GAVEL_OK);
    ASSERT(once_size == twice_size);
    ASSERT(memcmp(once, twice, once_size) == 0);
    free(once);
    free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct table table = {0};
    struct table restored = {0};
    uint64_t index = 0;
    size_t at = 0;

    ASSERT(table_keep_history(&table) == GAVEL_OK);
    while (size - at >= LENGTH_BYTES) {
        size_t length = (size_t)bytes[at] << 8 | bytes[at + 1];
        size_t entry_size;
        uint8_t *entry;

        at += LENGTH_BYTES;
        if (length > size - at)
            length = size - at;
        entry = entry_of(bytes + at, length, &entry_size);
        at += length;
        if (!entry)
            continue;
        apply(&table, ++index, entry, entry_size);
        apply(&restored, index, entry, entry_size);
        free(entry);
        ASSERT(table_digest(&restored) == table_digest(&table));
        if (index % ROUND == 0)
            compare(&table, &restored);
    }
    compare(&table, &restored);
    /* The same bytes as they are, head and all. */
    apply(&table, index + 1, bytes, size);
    table_done(&table);
    table_done(&restored);
    return 0;
}
