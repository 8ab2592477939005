/* SPDX-License-Identifier: Apache-2.0 */

#include "base/request.h"

#include <stdlib.h>

void store_reply_done(struct store_reply *reply)
{
    if (!reply)
        return;
    free(reply->registrations);
    free(reply->groups);
    reply->registrations = NULL;
    reply->registration_count = 0;
    reply->groups = NULL;
    reply->group_count = 0;
}

const char *store_op_name(enum store_op op)
{
    static const char *const names[] = {
        [STORE_READ] = "read",     [STORE_CLAIM] = "claim",
        [STORE_RENEW] = "renew",   [STORE_RELEASE] = "release",
        [STORE_ASK] = "ask",       [STORE_HEARTBEAT] = "heartbeat",
        [STORE_LEAVE] = "leave",   [STORE_CANDIDATES] = "candidates",
        [STORE_GROUPS] = "groups", [STORE_REOPEN] = "reopen",
        [STORE_DIED] = "died",
    };

    return (size_t)op < sizeof names / sizeof *names ? names[op] : "unknown";
}
