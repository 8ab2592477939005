/* SPDX-License-Identifier: Apache-2.0 */

/* An event of libgavel as one JSON object. */
#ifndef CLI_RUN_EVENT_JSON_H
#define CLI_RUN_EVENT_JSON_H

#include "base/time.h"

#include <gavel/event.h>

#include <jansson.h>

/*
 * {time, event, group, candidate, …} with the fields that apply to this kind of
 * event; gavel-elect(1) lists them. The instant of the event is converted to
 * wall time by what both clocks say now.
 */
json_t *event_json(const struct gavel_event *event, gavel_ns now, int64_t now_wall_ms);

/*
 * Reads names of events, separated by commas, into a bit set by
 * enum gavel_event_kind. ERR_INVALID for one that does not exist.
 */
GAVEL_CHECKED enum gavel_status event_set_parse(const char *names, unsigned *ret_set,
                                                struct gavel_error *error);

/*
 * The fields of the events leader_changed and leader_down, which `gavel watch`
 * prints too: one name has one shape. "" stands for nobody and becomes null.
 */
void event_json_put_change(json_t *json, const char *previous, const char *leader);
void event_json_put_loss(json_t *json, const char *former, enum gavel_loss how);

#endif
