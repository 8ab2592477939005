/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/portion.h"

#include "base/assert.h"

void portion_put_in_line(struct portion *portion)
{
    struct frontend_waiting *waiting;

    ASSERT(portion->count <= TABLE_OPS_MAX);
    if (portion->count == 0)
        return;
    ASSERT(portion->commands < PORTION_COMMANDS_MAX);
    /* Without memory they are found again: what is proposed is looked after until its outcome is known. */
    (void)!frontend_draft(portion->frontend, &portion->moment, NULL,
                          &(struct frontend_ops){.list = portion->list,
                                                 .count = portion->count,
                                                 .is_cleaning = portion->is_cleaning},
                          NULL, &waiting);
    portion->commands++;
    portion->count = 0;
}

union portion_body *portion_next(struct portion *portion, Gavel__Op__WhatCase what)
{
    Gavel__Op *op;

    if (portion->commands == PORTION_COMMANDS_MAX)
        return NULL;
    ASSERT(portion->count < TABLE_OPS_MAX);
    op = &portion->ops[portion->count];
    gavel__op__init(op);
    op->what_case = what;
    op->close_session = &portion->bodies[portion->count].close; /* the oneof is one pointer */
    portion->list[portion->count] = op;
    return &portion->bodies[portion->count];
}

void portion_add(struct portion *portion)
{
    if (++portion->count == TABLE_OPS_MAX)
        portion_put_in_line(portion);
}
