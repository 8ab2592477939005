/* SPDX-License-Identifier: Apache-2.0 */

#include <gavel/event.h>
#include <gavel/status.h>

#include <stddef.h>

const char *gavel_status_name(enum gavel_status status)
{
#define CASE(name, code, text)                                                                               \
    case GAVEL_##name:                                                                                       \
        return #name;
    switch (status) {
        GAVEL_STATUS_MAP(CASE)
    }
#undef CASE
    return "ERR_UNKNOWN";
}

const char *gavel_status_text(enum gavel_status status)
{
#define CASE(name, code, text)                                                                               \
    case GAVEL_##name:                                                                                       \
        return text;
    switch (status) {
        GAVEL_STATUS_MAP(CASE)
    }
#undef CASE
    return "an unknown error";
}

const char *gavel_event_name(enum gavel_event_kind kind)
{
#define TEXT(name, text) [GAVEL_EVENT_##name] = (text),
    static const char *const names[] = {GAVEL_EVENT_MAP(TEXT)};
#undef TEXT
    return (size_t)kind < GAVEL_EVENT_COUNT ? names[kind] : "unknown";
}

const char *gavel_reason_name(enum gavel_reason reason)
{
#define TEXT(name, text) [GAVEL_REASON_##name] = (text),
    static const char *const names[] = {GAVEL_REASON_MAP(TEXT)};
#undef TEXT
    return (size_t)reason < GAVEL_REASON_COUNT ? names[reason] : "unknown";
}

const char *gavel_loss_name(enum gavel_loss loss)
{
#define TEXT(name, text) [GAVEL_LOSS_##name] = (text),
    static const char *const names[] = {GAVEL_LOSS_MAP(TEXT)};
#undef TEXT
    return (size_t)loss < GAVEL_LOSS_COUNT ? names[loss] : "unknown";
}

const char *gavel_phase_name(enum gavel_phase phase)
{
    static const char *const names[] = {
        [GAVEL_PHASE_OBSERVING] = "observing",
        [GAVEL_PHASE_ELECTION] = "election",
        [GAVEL_PHASE_PREPARING] = "preparing",
        [GAVEL_PHASE_READY] = "ready",
    };

    return (size_t)phase < sizeof names / sizeof *names ? names[phase] : "unknown";
}
