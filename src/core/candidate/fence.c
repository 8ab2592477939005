/* SPDX-License-Identifier: Apache-2.0 */

#include "core/candidate/fence.h"

#include "base/assert.h"
#include "base/planted.h"

void fence_note(struct fence *fence, uint64_t epoch, gavel_ns now)
{
    if (epoch <= fence->newest)
        return;
    fence->previous = fence->newest;
    fence->newest = epoch;
    fence->superseded_at = now;
    ASSERT(fence->previous < fence->newest);
}

bool fence_allows(const struct fence *fence, uint64_t epoch, gavel_ns created_at, gavel_ns now,
                  gavel_ms grace_ms)
{
    if (PLANTED(FENCE_ACCEPTS_OLD))
        return true;
    if (epoch >= fence->newest)
        return true;
    if (epoch != fence->previous || epoch == 0)
        return false;
    return created_at <= fence->superseded_at && now - fence->superseded_at < ns_from_ms(grace_ms);
}
