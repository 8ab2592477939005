/* SPDX-License-Identifier: Apache-2.0 */

#include "core/candidate/breaker.h"

#include "base/assert.h"
#include "base/planted.h"

static void open_until(struct breaker *breaker, gavel_ns retry_at)
{
    ASSERT(breaker->state != BREAKER_OPEN);
    ASSERT(retry_at >= breaker->failed_at);
    breaker->state = BREAKER_OPEN;
    breaker->retry_at = retry_at;
}

bool breaker_succeeded(struct breaker *breaker, gavel_ns sent_at)
{
    bool was_closed = breaker->state == BREAKER_CLOSED;
    bool is_old = !was_closed && sent_at < breaker->opened_at;

    if (PLANTED(BREAKER_OLD_ANSWER))
        is_old = false;
    /* An answer that was under way says how the store was before it failed. */
    if (is_old)
        return false;
    /* Also while open: calls of a leader are never held back, and one that succeeds shows that the store is
     * back. */
    breaker->state = BREAKER_CLOSED;
    breaker->failures = 0;
    return !was_closed;
}

bool breaker_failed(struct breaker *breaker, const struct gavel_settings *settings, gavel_ns now)
{
    gavel_ns retry_at = now + ns_from_ms(settings->breaker_reset_ms);

    if (PLANTED(BREAKER_STAYS_OPEN))
        retry_at = NEVER;
    breaker->failures++;
    breaker->failed_at = now;
    switch (breaker->state) {
    case BREAKER_CLOSED:
        if (breaker->failures < settings->breaker_threshold)
            return false;
        breaker->opened_at = now;
        open_until(breaker, retry_at);
        return true;
    case BREAKER_HALF_OPEN:
        open_until(breaker, retry_at);
        return false;
    case BREAKER_OPEN: /* a call from before it opened */
        return false;
    }
    return false;
}

gavel_ns breaker_retry_at(const struct breaker *breaker, const struct gavel_settings *settings, bool is_led)
{
    if (PLANTED(BREAKER_STAYS_OPEN))
        return breaker->retry_at;
    if (PLANTED(BREAKER_RESET_ONLY))
        return breaker->retry_at;
    if (is_led)
        return breaker->retry_at;
    return ns_min(breaker->retry_at, breaker->failed_at + ns_from_ms(settings->election_interval_ms));
}

bool breaker_allows(struct breaker *breaker, const struct gavel_settings *settings, bool is_led, gavel_ns now)
{
    if (breaker->state == BREAKER_OPEN && now >= breaker_retry_at(breaker, settings, is_led))
        breaker_nudge(breaker);
    switch (breaker->state) {
    case BREAKER_CLOSED:
        return true;
    case BREAKER_OPEN:
        return false;
    case BREAKER_HALF_OPEN:
        if (breaker->trials >= settings->breaker_attempts)
            return false;
        breaker->trials++;
        ASSERT(breaker->trials <= settings->breaker_attempts);
        return true;
    }
    return false;
}

void breaker_nudge(struct breaker *breaker)
{
    if (breaker->state != BREAKER_OPEN)
        return;
    if (PLANTED(BREAKER_STAYS_OPEN))
        return;
    breaker->state = BREAKER_HALF_OPEN;
    breaker->trials = 0;
}

void breaker_forget(struct breaker *breaker)
{
    if (breaker->state == BREAKER_HALF_OPEN && breaker->trials > 0)
        breaker->trials--;
}
