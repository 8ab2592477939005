/* SPDX-License-Identifier: Apache-2.0 */

#include "core/candidate/contention.h"

bool contention_beat(struct contention *contention, const struct gavel_settings *settings, gavel_ns now,
                     gavel_ns *ret_took)
{
    gavel_ns took = now - contention->last_beat_at;
    gavel_ns expected = ns_from_ms(settings->heartbeat_ms + settings->heartbeat_jitter_ms);
    bool is_first = contention->last_beat_at == 0;

    contention->last_beat_at = now;
    if (is_first || (double)took <= settings->contention_threshold * (double)expected)
        return false;
    if (contention->last_reported_at != 0 &&
        now - contention->last_reported_at < ns_from_ms(settings->contention_every_ms))
        return false;
    contention->last_reported_at = now;
    *ret_took = took;
    return true;
}
