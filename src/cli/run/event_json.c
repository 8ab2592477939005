/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/run/event_json.h"

#include "base/error.h"
#include "cli/json_out.h"
#include "config/suggest.h"

#include <stdio.h>
#include <string.h>

enum field {
    FIELD_EPOCH = 1,
    FIELD_REASON = 2,
    FIELD_TOOK = 4,
    FIELD_EXPECTED = 8,
    FIELD_FORMER = 16,  /* former_leader and how, and previous and leader_id like every change */
    FIELD_CHANGE = 32,  /* previous, new and leader_id */
    FIELD_LEADER = 64,  /* leader, null if none is seen */
    FIELD_PHASES = 128, /* previous_phase and phase */
    FIELD_COUNT = 256,  /* candidates */
    FIELD_EPOCH_WHILE_LEADING = 1024,
    FIELD_STATUS = 512, /* status and message */
};

/* Which fields tell something about which event; <gavel/event.h> says what. */
static const unsigned fields[GAVEL_EVENT_COUNT] = {
    [GAVEL_EVENT_BECAME_LEADER] = FIELD_EPOCH | FIELD_TOOK,
    [GAVEL_EVENT_LOST_LEADERSHIP] = FIELD_EPOCH | FIELD_REASON | FIELD_TOOK,
    [GAVEL_EVENT_LEADER_DOWN] = FIELD_EPOCH | FIELD_FORMER,
    [GAVEL_EVENT_LEADER_CHANGED] = FIELD_EPOCH | FIELD_CHANGE,
    [GAVEL_EVENT_ELECTION_CHECK] = FIELD_EPOCH | FIELD_LEADER,
    [GAVEL_EVENT_PHASE_CHANGED] = FIELD_PHASES | FIELD_TOOK,
    [GAVEL_EVENT_CANDIDATES_UPDATED] = FIELD_COUNT,
    [GAVEL_EVENT_MANDATE_RENEWED] = FIELD_EPOCH,
    [GAVEL_EVENT_CONTENTION_DETECTED] = FIELD_TOOK | FIELD_EXPECTED,
    [GAVEL_EVENT_BREAKER_OPEN] = FIELD_STATUS,
    [GAVEL_EVENT_BREAKER_CLOSED] = FIELD_TOOK,
    [GAVEL_EVENT_HEARTBEAT] = FIELD_EPOCH_WHILE_LEADING | FIELD_TOOK,
    [GAVEL_EVENT_OVERRUN] = FIELD_EPOCH,
    [GAVEL_EVENT_STOPPED] = FIELD_STATUS,
};

void event_json_put_change(json_t *json, const char *previous, const char *leader)
{
    json_put_text_or_null(json, "previous", previous);
    json_put_text_or_null(json, "new", leader);
    json_put_text_or_null(json, "leader_id", leader);
}

void event_json_put_loss(json_t *json, const char *former, enum gavel_loss how)
{
    json_put_text_or_null(json, "former_leader", former);
    json_put_text_or_null(json, "previous", former);
    json_put(json, "leader_id", json_null());
    json_put_text(json, "how", gavel_loss_name(how));
}

json_t *event_json(const struct gavel_event *event, gavel_ns now, int64_t now_wall_ms)
{
    unsigned which = fields[event->kind];
    json_t *json = json_object();

    json_put_time(json, "time", now_wall_ms - ms_from_ns(now - event->at_ns));
    json_put_text(json, "event", gavel_event_name(event->kind));
    json_put_text(json, "group", event->group);
    json_put_text(json, "candidate", event->candidate);
    if (which & FIELD_EPOCH)
        json_put_number(json, "epoch", (int64_t)event->epoch);
    if (which & FIELD_EPOCH_WHILE_LEADING)
        json_put(json, "epoch", event->epoch ? json_integer((json_int_t)event->epoch) : json_null());
    if (which & FIELD_REASON)
        json_put_text(json, "reason", gavel_reason_name(event->reason));
    if (which & FIELD_FORMER)
        event_json_put_loss(json, event->previous, event->how);
    if (which & FIELD_CHANGE)
        event_json_put_change(json, event->previous, event->leader);
    if (which & FIELD_LEADER)
        json_put_text_or_null(json, "leader", event->leader);
    if (which & FIELD_PHASES) {
        json_put_text(json, "previous_phase", gavel_phase_name(event->previous_phase));
        json_put_text(json, "phase", gavel_phase_name(event->phase));
    }
    if (which & FIELD_COUNT)
        json_put_number(json, "candidates", (int64_t)event->candidates);
    if (which & FIELD_TOOK)
        json_put_number(json, "took_ms", event->took_ms);
    if (which & FIELD_EXPECTED)
        json_put_number(json, "expected_ms", event->expected_ms);
    if (which & FIELD_STATUS) {
        json_put_text(json, "status", gavel_status_name(event->status));
        json_put_text(json, "message", event->message[0] ? event->message : gavel_status_text(event->status));
    }
    return json;
}

static enum gavel_status unknown_event(const char *name, struct gavel_error *error)
{
    struct suggestion suggestion;

    suggestion_init(&suggestion, name);
    for (int kind = 0; kind < GAVEL_EVENT_COUNT; kind++)
        suggestion_offer(&suggestion, gavel_event_name((enum gavel_event_kind)kind));
    if (suggestion.best)
        return error_set(error, GAVEL_ERR_INVALID, "there is no event \"%.60s\"; did you mean %s?", name,
                         suggestion.best);
    return error_set(error, GAVEL_ERR_INVALID, "there is no event \"%.60s\"; gavel-elect(1) lists them",
                     name);
}

enum gavel_status event_set_parse(const char *names, unsigned *ret_set, struct gavel_error *error)
{
    unsigned set = 0;

    while (*names) {
        size_t length = strcspn(names, ",");
        char name[64];
        int kind = 0;

        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), names);
        while (kind < GAVEL_EVENT_COUNT && strcmp(name, gavel_event_name((enum gavel_event_kind)kind)) != 0)
            kind++;
        if (kind == GAVEL_EVENT_COUNT)
            return unknown_event(name, error);
        set |= 1U << kind;
        names += length + (names[length] == ',');
    }
    if (!set)
        return error_set(error, GAVEL_ERR_INVALID, "no event is named; gavel-elect(1) lists them");
    *ret_set = set;
    return GAVEL_OK;
}
