/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The newest changes of a table, for watches: a ring with a bound on its
 * number and its bytes. Each node remembers by itself, from its start or from
 * the snapshot that it was given. A watch that asks for older ones is told from
 * where on to look again.
 */
#ifndef CORE_TABLE_HISTORY_H
#define CORE_TABLE_HISTORY_H

#include "core/table/table.h"

/* Where a watch stands: the newest change that it was given. {R, UINT32_MAX}: all of revision R. */
struct table_cursor {
    uint64_t revision;
    uint32_t part;
};

struct table_change {
    struct table_cursor at;
    size_t size;
    uint8_t *bytes;    /* a Gavel__Change, packed */
    const char *group; /* borrowed from bytes or beside it, for filters; "" of SESSION_ENDED */
    Gavel__Change__Kind kind;
    uint64_t session;
};

/*
 * The oldest change after the cursor; NULL and OK if there is none. ERR_FORGOTTEN if changes after the cursor
 * are forgotten already: look at the whole, and watch from table->revision on.
 */
GAVEL_CHECKED enum gavel_status table_history_after(const struct table *table, struct table_cursor cursor,
                                                    const struct table_change **ret_change);

/* All changes up to this revision are forgotten, or were never known. */
uint64_t table_history_floor(const struct table *table);

#endif
