/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Groups as they stand: a page of them, one with its candidates, and the leader of
 * one, in the three forms in which clients ask for it:
 *
 *     GET /groups/G/leader                  JSON; 503 if nobody leads
 *     GET /groups/G/leader?candidate=ID     200 if ID leads, else 503: a health check
 *     GET /groups/G/leader?format=sidecar   {"name":"ID"}, "" if nobody leads; also /groups/G/leader/name
 *
 * Only the leader of the cluster knows until when a mandate holds. The last two
 * decide whether somebody works, so it is asked for them; if it cannot be asked,
 * the answer is that nobody leads. It is also asked about a group that is led by
 * lease, because the table keeps an expired mandate until somebody claims it. The
 * mandate of a session is gone as soon as the session is.
 *
 * Ids of sessions are never shown: anybody who knows one can end it.
 */
#include "daemon/api/ask.h"
#include "daemon/api/metrics.h"

#include "base/log.h"
#include "os/clock.h"

#include <event2/keyvalq_struct.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Changes that are counted under one hold of the lock. */
#define COUNT_PAGE 512

/* api_call.wants */
enum { WANTS_JSON, WANTS_CHECK, WANTS_SIDECAR };

const char *api_ending_name(Gavel__Ending ending)
{
    static const char *const names[] = {[GAVEL__ENDING__ENDING_CLOSED] = "closed",
                                        [GAVEL__ENDING__ENDING_EXPIRED] = "expired",
                                        [GAVEL__ENDING__ENDING_DEAD] = "dead",
                                        [GAVEL__ENDING__ENDING_RESIGNED] = "resigned",
                                        [GAVEL__ENDING__ENDING_RELEASED] = "released",
                                        [GAVEL__ENDING__ENDING_LAPSED] = "lapsed",
                                        [GAVEL__ENDING__ENDING_HANDED_OVER] = "handed_over"};

    return (size_t)ending < sizeof names / sizeof *names ? names[ending] : "unknown";
}

static const char *policy_name(Gavel__Policy policy)
{
    switch (policy) {
    case GAVEL__POLICY__POLICY_LEXICOGRAPHIC:
        return "lexicographic";
    case GAVEL__POLICY__POLICY_PRIORITY:
        return "priority";
    case GAVEL__POLICY__POLICY_BALANCED:
        return "balanced";
    default:
        return "first";
    }
}

static json_t *wish_json(const Gavel__Group *group)
{
    if (group->wish_epoch == 0)
        return json_null();
    return json_pack("{s:o,s:o,s:b,s:o}", "epoch", json_u64(group->wish_epoch), "successor",
                     json_text(group->wish_successor), "force", (int)group->wish_is_forced, "timeout_ms",
                     group->wish_timeout_ms ? json_u64(group->wish_timeout_ms) : json_null());
}

static const char *mandate_name(const Gavel__Group *group) { return group->session ? "session" : "lease"; }

static json_t *group_json(const Gavel__Group *group)
{
    bool is_lapsed = group->is_held && group->is_expired;
    bool is_held = group->is_held && !is_lapsed;
    bool has_former = group->previous_holder[0] || (!is_held && group->holder[0]);
    Gavel__Ending ending = is_lapsed ? GAVEL__ENDING__ENDING_LAPSED : group->last_ending;

    return json_pack(
        "{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:s,s:I,s:b,s:o,s:o,s:o,s:o}", "group", json_words(group->name),
        "leader", json_text(is_held ? group->holder : ""), "address",
        json_text(is_held ? group->address : ""), "epoch", json_u64(group->epoch), "since",
        is_held ? json_wall(group->since_wall_ms) : json_null(), "mandate",
        is_held ? json_string(mandate_name(group)) : json_null(), "ttl_ms",
        is_held ? json_integer(group->lease_ms) : json_null(), "done", (int)group->is_done, "policy",
        policy_name(group->policy), "min_mandate_ms", (json_int_t)group->min_mandate_ms, "preempt",
        (int)group->preempts, "wish", wish_json(group), "former_leader",
        json_text(is_held ? group->previous_holder : group->holder), "former_ending",
        has_former ? json_string(api_ending_name(ending)) : json_null(), "version", json_u64(group->version));
}

static void show_groups(struct api_call *call, const Gavel__Answer *answer)
{
    json_t *list = json_array();
    const char *next = answer->has_more && answer->n_groups ? answer->groups[answer->n_groups - 1]->name : "";

    for (size_t i = 0; i < answer->n_groups; i++)
        (void)json_array_append_new(list, group_json(answer->groups[i]));
    api_reply_json(call, 200,
                   json_pack("{s:o,s:o,s:o}", "groups", list, "next", json_text(next), "revision",
                             json_u64(answer->revision)));
}

void api_get_groups(struct api_call *call)
{
    Gavel__Ask ask;
    struct api_page page;

    gavel__ask__init(&ask);
    if (api_page_read(call, &page)) {
        ask.kind = GAVEL__ASK__KIND__GROUPS;
        api_page_ask(call, &page, &ask, show_groups);
    }
    api_page_done(&page);
}

static json_t *candidate_json(const Gavel__Candidate *candidate)
{
    json_t *json = json_pack("{s:o,s:o,s:i,s:b,s:b,s:o,s:o}", "candidate", json_words(candidate->id),
                             "address", json_text(candidate->address), "priority", (int)candidate->priority,
                             "eligible", (int)!candidate->is_ineligible, "has_session",
                             (int)(candidate->session != 0), "since", json_wall(candidate->since_wall_ms),
                             "joined_revision", json_u64(candidate->joined_revision));
    json_t *metadata = json_stringn((const char *)candidate->metadata.data, candidate->metadata.len);

    /* Text in most cases; a key that does not go in for want of memory makes the object smaller. */
    if (json && metadata)
        (void)json_object_set(json, "metadata", candidate->metadata.len ? metadata : json_null());
    else if (json)
        (void)json_object_set_new(json, "metadata_base64",
                                  json_base64(candidate->metadata.data, candidate->metadata.len));
    json_decref(metadata);
    return json;
}

static void show_group(struct api_call *call, const Gavel__Answer *answer)
{
    const Gavel__Group *group = answer->n_groups ? answer->groups[0] : NULL;
    json_t *candidates;
    json_t *json;

    if (!group) {
        api_reply_error(call, 404, GAVEL_ERR_NOT_FOUND,
                        "there is no group \"%s\"; its first candidate creates it", call->names.group);
        return;
    }
    json = group_json(group);
    candidates = json_array();
    for (size_t i = 0; i < group->n_candidates; i++)
        (void)json_array_append_new(candidates, candidate_json(group->candidates[i]));
    if (!json || json_object_set_new(json, "candidates", candidates) ||
        json_object_set_new(json, "remaining_ms",
                            group->is_held && !group->is_expired && group->remaining_ms >= 0
                                ? json_integer(group->remaining_ms)
                                : json_null()) ||
        json_object_set_new(json, "revision", json_u64(answer->revision))) {
        json_decref(json);
        json = NULL;
    }
    api_reply_json(call, 200, json);
}

/* False: the call has been answered. */
static bool read_fresh(struct api_call *call, bool *ret_is_fresh)
{
    struct evkeyvalq pairs;
    bool is_good = api_query_read(call, &pairs) && api_query_flag(call, &pairs, "fresh", ret_is_fresh);

    evhttp_clear_headers(&pairs);
    return is_good;
}

/* Whether the table of this node has it as led by lease. */
static bool is_leased(struct api_call *call)
{
    struct table_box *box = &call->api->shared->table;
    const struct table_group *group;
    bool is_leased;

    table_box_lock(box);
    group = table_group_find(&box->table, call->names.group);
    is_leased = group && group->is_held && !group->session;
    table_box_unlock(box);
    return is_leased;
}

void api_get_group(struct api_call *call)
{
    Gavel__Ask ask;
    bool is_fresh = false;

    gavel__ask__init(&ask);
    if (!read_fresh(call, &is_fresh))
        return;
    ask.kind = GAVEL__ASK__KIND__CANDIDATES;
    ask.group = call->names.group;
    if (!is_fresh && is_leased(call))
        is_fresh = !api_is_stale(call); /* without a leader there is nobody to ask */
    api_ask(call, &ask, is_fresh, show_group);
}

/* Who leads, of whichever table. */
struct leader {
    bool has_group;
    bool is_held;
    char name[NAME_MAX_BYTES + 1];
    char address[ADDRESS_MAX_BYTES + 1];
    uint64_t epoch;
    int64_t since_wall_ms;
    uint64_t revision;
};

static void reply_no_leader(struct api_call *call, const struct leader *leader)
{
    if (!leader->has_group)
        api_reply_error(call, 404, GAVEL_ERR_NOT_FOUND,
                        "there is no group \"%s\"; its first candidate creates it", call->names.group);
    else
        api_reply_error(call, 503, GAVEL_ERR_NO_LEADER, "nobody leads \"%s\" at the moment",
                        call->names.group);
}

/* No tree, no allocation of ours. False: something in it does not stand for itself in JSON. */
static bool reply_plainly(struct api_call *call, const struct leader *leader)
{
    char body[2 * NAME_MAX_BYTES + ADDRESS_MAX_BYTES + 160];
    bool has_address = leader->address[0];
    char since[25];
    int length;

    if (!json_is_plain(call->names.group) || !json_is_plain(leader->name) || !json_is_plain(leader->address))
        return false;
    wall_time_format(leader->since_wall_ms, since);
    length = snprintf(body, sizeof body,
                      "{\"group\":\"%s\",\"leader\":\"%s\",\"address\":%s%s%s,\"epoch\":%" PRIu64
                      ",\"since\":\"%s\",\"revision\":%" PRIu64 "}\n",
                      call->names.group, leader->name, has_address ? "\"" : "null", leader->address,
                      has_address ? "\"" : "", leader->epoch, since, leader->revision);
    api_reply(call, 200, "application/json", body, (size_t)length);
    return true;
}

static void reply_leader(struct api_call *call, const struct leader *leader)
{
    if (call->wants == WANTS_SIDECAR)
        api_reply_json(call, 200,
                       json_pack("{s:o}", "name", json_words(leader->is_held ? leader->name : "")));
    else if (!leader->is_held)
        reply_no_leader(call, leader);
    else if (call->wants == WANTS_CHECK && strcmp(leader->name, call->names.key) != 0)
        api_reply_error(call, 503, GAVEL_ERR_NO_LEADER, "\"%s\" does not lead \"%s\"; \"%s\" does",
                        call->names.key, call->names.group, leader->name);
    else if (!reply_plainly(call, leader))
        api_reply_json(call, 200,
                       json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "group", json_words(call->names.group),
                                 "leader", json_words(leader->name), "address", json_text(leader->address),
                                 "epoch", json_u64(leader->epoch), "since", json_wall(leader->since_wall_ms),
                                 "revision", json_u64(leader->revision)));
}

/* Whether the mandate holds, as far as the leader of the cluster knew when it was asked; it answered
 * later. */
static bool holds(const struct api_call *call, const Gavel__Group *group)
{
    return group->is_held && !group->is_expired &&
           (group->remaining_ms < 0 || clock_now() < call->asked_at + ns_from_ms(group->remaining_ms));
}

static void show_leader(struct api_call *call, const Gavel__Answer *answer)
{
    struct leader leader = {.has_group = answer->n_groups > 0, .revision = answer->revision};

    if (leader.has_group) {
        const Gavel__Group *group = answer->groups[0];

        leader.is_held = holds(call, group);
        leader.epoch = group->epoch;
        leader.since_wall_ms = group->since_wall_ms;
        (void)snprintf(leader.name, sizeof leader.name, "%s", group->holder);
        (void)snprintf(leader.address, sizeof leader.address, "%s", group->address);
    }
    reply_leader(call, &leader);
}

/* The call that is made thousands of times a second: what it needs is copied, and nothing else. */
static void look(struct api_call *call, struct leader *ret_leader)
{
    struct table_box *box = &call->api->shared->table;
    const struct table_group *group;

    table_box_lock(box);
    group = table_group_find(&box->table, call->names.group);
    ret_leader->revision = box->table.revision;
    ret_leader->has_group = group;
    ret_leader->is_held = group && group->is_held;
    if (ret_leader->is_held) {
        (void)snprintf(ret_leader->name, sizeof ret_leader->name, "%s", group->holder);
        (void)snprintf(ret_leader->address, sizeof ret_leader->address, "%s", group->address);
        ret_leader->epoch = group->epoch;
        ret_leader->since_wall_ms = group->since_wall_ms;
    }
    table_box_unlock(box);
}

static void reply_unknown(struct api_call *call)
{
    static const struct leader nobody;

    if (call->wants == WANTS_SIDECAR)
        reply_leader(call, &nobody);
    else
        api_reply_error(
            call, 503, GAVEL_ERR_NO_LEADER,
            "this node follows no leader of the cluster at the moment, so it cannot tell whether \"%s\" leads \"%s\"",
            call->names.key, call->names.group);
}

static void get_leader(struct api_call *call, bool is_fresh)
{
    Gavel__Ask ask;
    struct leader leader = {0};
    bool is_stale = !is_fresh && api_is_stale(call);

    gavel__ask__init(&ask);
    if (is_stale)
        api_reply_stale(call);
    if (is_stale && call->wants != WANTS_JSON) {
        reply_unknown(call);
    } else if (is_fresh || call->wants != WANTS_JSON || (!is_stale && is_leased(call))) {
        ask.kind = GAVEL__ASK__KIND__GROUP;
        ask.group = call->names.group;
        api_ask(call, &ask, true, show_leader);
    } else {
        if (!is_stale && call->api->is_blind)
            api_reply_stale(call);
        look(call, &leader);
        reply_leader(call, &leader);
    }
}

/* False: the call has been answered. */
static bool read_leader_query(struct api_call *call, const struct evkeyvalq *pairs, bool *ret_is_fresh)
{
    const char *candidate;
    const char *format;

    if (!api_query_text(call, pairs, "candidate", NAME_MAX_BYTES, &candidate) ||
        !api_query_text(call, pairs, "format", 16, &format) ||
        !api_query_flag(call, pairs, "fresh", ret_is_fresh))
        return false;
    if (strcmp(format, "sidecar") == 0) {
        call->wants = WANTS_SIDECAR;
    } else if (format[0] && strcmp(format, "json") != 0) {
        api_reply_error(call, 400, GAVEL_ERR_INVALID, "format must be json or sidecar");
        return false;
    } else if (evhttp_find_header(pairs, "candidate")) {
        call->wants = WANTS_CHECK;
        (void)snprintf(call->names.key, sizeof call->names.key, "%s", candidate);
    }
    return true;
}

void api_get_group_leader(struct api_call *call)
{
    struct evkeyvalq pairs;
    bool is_fresh = false;
    bool is_good = api_query_read(call, &pairs) && read_leader_query(call, &pairs, &is_fresh);

    evhttp_clear_headers(&pairs);
    if (is_good)
        get_leader(call, is_fresh);
}

void api_get_group_leader_name(struct api_call *call)
{
    bool is_fresh = false;

    if (!read_fresh(call, &is_fresh))
        return;
    call->wants = WANTS_SIDECAR;
    get_leader(call, is_fresh);
}

void api_groups_measure(struct api *api, struct metrics_api *ret_measure)
{
    struct table_box *box = &api->shared->table;
    const struct api_stream *stream;

    api_groups_count(api);
    ret_measure->group_elections = api->elected;
    for (stream = LIST_FIRST(&api->streams); stream; stream = LIST_NEXT(stream, next))
        ret_measure->campaigns += api_stream_is_campaign(stream);
    table_box_lock(box);
    ret_measure->groups = box->table.group_count;
    ret_measure->sessions = box->table.session_count;
    ret_measure->notes = box->table.note_count;
    table_box_unlock(box);
}

void api_groups_count(struct api *api)
{
    struct table_box *box = &api->shared->table;
    const struct table_change *change;
    bool has_more = true;

    while (has_more) {
        table_box_lock(box);
        if (table_history_after(&box->table, api->counted, &change) != GAVEL_OK) {
            api->counted =
                (struct table_cursor){.revision = table_history_floor(&box->table), .part = UINT32_MAX};
            change = NULL; /* what was forgotten is not counted */
        }
        for (int i = 0; change && i < COUNT_PAGE; i++) {
            api->counted = change->at;
            api->elected += change->kind == GAVEL__CHANGE__KIND__ELECTED;
            if (table_history_after(&box->table, api->counted, &change) != GAVEL_OK)
                change = NULL;
        }
        has_more = change;
        table_box_unlock(box);
    }
}
