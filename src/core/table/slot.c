/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Slots: small numbers for sessions and groups, so that others can keep
 * something beside the table in a plain array. Those that are free are kept in
 * a stack that has room for all, so that giving one back never fails.
 */

#include "base/assert.h"
#include "core/table/step.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 16 };

bool slot_take(struct table_slots *slots, uint32_t *ret_slot)
{
    if (slots->free_count > 0) {
        *ret_slot = slots->free[--slots->free_count];
        return true;
    }
    if (slots->used == slots->capacity) {
        uint32_t capacity = slots->capacity > 0 ? 2 * slots->capacity : FIRST_CAPACITY;
        uint32_t *grown = realloc(slots->free, capacity * sizeof *grown);

        if (!grown)
            return false;
        slots->free = grown;
        slots->capacity = capacity;
    }
    *ret_slot = slots->used++;
    return true;
}

void slot_give(struct table_slots *slots, uint32_t slot)
{
    ASSERT(slot < slots->used);
    ASSERT(slots->free_count < slots->used);
    slots->free[slots->free_count++] = slot;
}
