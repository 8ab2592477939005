/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the leader proposes by itself in one tick: operations are gathered into
 * commands, and the commands into the line of the frontend.
 */
#ifndef CORE_SESSION_PORTION_H
#define CORE_SESSION_PORTION_H

#include "core/session/frontend_internal.h"

#define PORTION_COMMANDS_MAX 2 /* of TABLE_OPS_MAX operations */

/* A leader that did not hand over in time is left alone for a while. */
#define FRONTEND_WISH_AGAIN (60 * NS_PER_S)

union portion_body {
    Gavel__CloseSession close;
    Gavel__Lapse lapse;
    Gavel__Wish wish;
    Gavel__RemoveGroup remove;
};

struct portion {
    struct frontend *frontend;
    struct frontend_moment moment;
    bool is_cleaning;
    size_t commands; /* that are in line already */
    size_t leaving;  /* groups that sessions leave by them */
    size_t count;
    union portion_body bodies[TABLE_OPS_MAX];
    Gavel__Op ops[TABLE_OPS_MAX];
    Gavel__Op *list[TABLE_OPS_MAX];
};

/* The place for one more operation; NULL: enough for this tick. */
union portion_body *portion_next(struct portion *portion, Gavel__Op__WhatCase what);
/* The operation in that place is complete. */
void portion_add(struct portion *portion);
void portion_put_in_line(struct portion *portion);

/* balance.c: asks leaders of groups with the policy `balanced` to hand over. */
void balance_open(struct frontend *frontend, gavel_ns now);
void balance_tick(struct frontend *frontend, gavel_ns now, struct portion *portion);
gavel_ns balance_wake_at(const struct frontend *frontend);

#endif
