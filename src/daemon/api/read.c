/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calls that only read. They answer from the view that the consensus thread
 * has published and from the journal, on every node, with or without a leader. An
 * answer that may be out of date says so ("stale", and a header).
 */
#include "daemon/api/json.h"
#include "daemon/api/metrics.h"
#include "daemon/api/openapi_json.h"

#include "os/clock.h"

#include <event2/keyvalq_struct.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The call that is made thousands of times a second: no tree, no allocation of ours. */
void api_get_leader(struct api_call *call)
{
    struct view_leader leader;
    char body[PEER_NAME_MAX + PEER_ADDRESS_MAX + 96];
    int length;

    view_leader_read(&call->api->shared->view, &leader);
    call->now = clock_now(); /* after the copy: it may be old */
    if (!view_leader_holds(&leader, call->now)) {
        api_reply_stale(call);
        api_reply_error(call, 503, GAVEL_ERR_NO_LEADER,
                        "this node knows of no leader in term %" PRIu64 "; ask again, or another node",
                        leader.term);
        return;
    }
    if (!json_is_plain(leader.name) || !json_is_plain(leader.api)) {
        api_reply_json(call, 200,
                       json_pack("{s:s,s:o,s:o}", "leader_id", leader.name, "leader_address",
                                 json_text(leader.api), "term", json_u64(leader.term)));
        return;
    }
    length = snprintf(body, sizeof body,
                      "{\"leader_id\":\"%s\",\"leader_address\":%s%s%s,\"term\":%" PRIu64 "}\n", leader.name,
                      leader.api[0] ? "\"" : "null", leader.api, leader.api[0] ? "\"" : "", leader.term);
    api_reply(call, 200, "application/json", body, (size_t)length);
}

static const char *role_of(const struct view_member *member)
{
    if (member->is_witness)
        return "witness";
    return member->is_voter || member->was_voter ? "voter" : "learner";
}

static json_t *ms_since(gavel_ns then, gavel_ns now)
{
    return then > 0 ? json_integer(ms_from_ns(ns_max(now - then, 0))) : json_null();
}

static bool has_lease(const struct view *view, gavel_ns now)
{
    return view->is_claimed && now < view->deadline;
}

/* What a member says of itself; of ourselves, what we know. */
static void add_own_words(json_t *peer, const struct view *view, const struct view_member *member,
                          gavel_ns now)
{
    /* What it said long ago is no news: a dead leader has no lease. */
    bool has_told = member->is_self || (member->status.node != 0 && view_is_healthy(view, member, now));
    bool is_leader = member->is_self ? view->is_leader : member->status.is_leader;
    bool is_working = member->is_self ? has_lease(view, now) : member->status.is_working;
    bool disk_hangs = member->is_self ? view->is_disk_hung : member->status.disk_hangs_ms > 0;
    raft_term term = member->is_self ? view->term : member->status.term;

    /* A key that does not go in for want of memory makes the object smaller; the walker of the test sees
     * it. */
    (void)json_object_set_new(peer, "term", has_told ? json_u64(term) : json_null());
    (void)json_object_set_new(peer, "is_leader", has_told ? json_boolean(is_leader) : json_null());
    (void)json_object_set_new(peer, "has_lease", has_told ? json_boolean(is_working) : json_null());
    (void)json_object_set_new(peer, "disk_hangs", has_told ? json_boolean(disk_hangs) : json_null());
}

static json_t *peer_json(const struct view *view, const struct view_member *member, gavel_ns now)
{
    uint64_t incarnation = member->is_self ? view->incarnation : member->incarnation;
    raft_index match = member->is_self ? view->last : member->match;
    json_t *peer = json_pack(
        "{s:s,s:s,s:o,s:s,s:i,s:b,s:b,s:b,s:o,s:o,s:o,s:o,s:s,s:o}", "id", member->name, "address",
        member->address, "api_address", json_text(member->api), "role", role_of(member), "priority",
        (int)member->priority, "self", (int)member->is_self, "healthy",
        (int)view_is_healthy(view, member, now), "connected", (int)(member->is_self || member->is_connected),
        "last_contact_ms", member->is_self ? json_null() : ms_since(member->heard_at, now), "match",
        view->is_leader ? json_u64(match) : json_null(), "round_trip_ms",
        member->round_trip > 0 ? json_integer(ms_from_ns(member->round_trip)) : json_null(), "incarnation",
        json_u64(incarnation), "breaker", member->is_breaker_open ? "open" : "closed", "trouble",
        json_text(member->trouble));

    if (peer)
        add_own_words(peer, view, member, now);
    return peer;
}

static json_t *counters_json(const struct view_counters *c)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "elections",
                     json_u64(c->elections), "elections_won", json_u64(c->elections_won), "candidacies",
                     json_u64(c->candidacies), "failovers", json_u64(c->failovers), "transfers",
                     json_u64(c->transfers), "transfers_failed", json_u64(c->transfers_failed),
                     "split_brains", json_u64(c->split_brains), "obituaries", json_u64(c->obituaries),
                     "refused_messages", json_u64(c->refused_messages), "dropped_votes",
                     json_u64(c->dropped_votes), "late_heartbeats", json_u64(c->late_heartbeats),
                     "disk_writes", json_u64(c->disk_writes), "disk_fulls", json_u64(c->disk_fulls),
                     "disk_hangs", json_u64(c->disk_hangs));
}

static const struct view *look(struct api_call *call, bool *ret_is_stale)
{
    struct view *view = &call->api->view;

    view_read(&call->api->shared->view, view);
    call->now = clock_now(); /* after the copy: it may be old */
    *ret_is_stale = view_is_stale(view, call->now);
    if (*ret_is_stale)
        api_reply_stale(call);
    return view;
}

static json_t *status_head(const struct view *view, bool is_stale, gavel_ns now)
{
    const struct view_member *leader = is_stale ? NULL : view_find(view, view->leader);
    bool is_leased = has_lease(view, now);

    return json_pack("{s:s,s:o,s:s,s:o,s:s,s:o,s:o,s:o,s:b,s:b,s:o,s:o}", "cluster", view->cluster_name,
                     "generation", json_u64(view->generation), "node", view->name, "incarnation",
                     json_u64(view->incarnation), "role", raft_role_name(view->role), "term",
                     json_u64(view->term), "leader_id", leader ? json_text(leader->name) : json_null(),
                     "leader_address", leader ? json_text(leader->api) : json_null(), "is_leader",
                     (int)view->is_leader, "has_lease", (int)is_leased, "lease_remaining_ms",
                     is_leased && view->deadline != NEVER ? json_integer(ms_from_ns(view->deadline - now))
                                                          : json_null(),
                     "lease_epoch", json_u64(view->lease_epoch));
}

static json_t *status_rest(const struct api *api, const struct view *view, bool is_stale, gavel_ns now)
{
    return json_pack(
        "{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:i,s:i,s:o,s:I,s:s,s:b,s:b,s:b,s:b,s:o,s:I,s:o}", "commit",
        json_u64(view->commit), "applied", json_u64(view->applied), "last", json_u64(view->last), "last_term",
        json_u64(view->last_term), "snapshot", json_u64(view->snapshot), "revision", json_u64(view->revision),
        "digest", json_hex(view->digest), "stale", (int)is_stale, "pid", (int)view->pid, "guard_pid",
        (int)view->guard_pid, "started_at", json_wall(view->started_wall_ms), "uptime_ms",
        (json_int_t)ms_from_ns(clock_now() - view->started_at), "version", GAVEL_VERSION, "disk_full",
        (int)view->is_disk_full, "waits_for_operator", (int)view->waits_for_operator, "handing_over",
        (int)view->is_handing_over, "changing_members", (int)view->is_changing, "api_address",
        json_text(api->shared->config->api_advertise), "now_ns", (json_int_t)now, "counters",
        counters_json(&view->counters));
}

/* What stands still without an error. */
static json_t *status_hangs(const struct view *view, gavel_ns now)
{
    return json_pack("{s:b,s:o,s:b,s:o,s:b,s:I}", "disk_hangs", (int)view->is_disk_hung, "oldest_write_ms",
                     ms_since(view->write_since, now), "commits_hang", view_commits_hang_for(view, now) > 0,
                     "oldest_uncommitted_ms", ms_since(view->uncommitted_since, now), "too_far",
                     (int)view->is_in_vain, "lease_round_trip_ms",
                     (json_int_t)ms_from_ns(view->round_trip_limit));
}

void api_get_status(struct api_call *call)
{
    bool is_stale;
    const struct view *view = look(call, &is_stale);
    json_t *peers = json_array();
    json_t *body = status_head(view, is_stale, call->now);
    json_t *rest = status_rest(call->api, view, is_stale, call->now);
    json_t *hangs = status_hangs(view, call->now);

    for (size_t i = 0; i < view->member_count; i++)
        (void)json_array_append_new(peers, peer_json(view, &view->members[i], call->now));
    if (!body || !rest || !hangs || json_object_update(body, rest) || json_object_update(body, hangs) ||
        json_object_set_new(body, "peers", peers)) {
        json_decref(body);
        body = NULL;
    }
    json_decref(rest);
    json_decref(hangs);
    api_reply_json(call, 200, body);
}

static json_t *member_json(const struct view *view, const struct view_member *member, gavel_ns now)
{
    return json_pack(
        "{s:s,s:o,s:s,s:o,s:s,s:i,s:b,s:o,s:b}", "id", member->name, "node_id", json_hex(member->id),
        "address", member->address, "api_address", json_text(member->api), "role", role_of(member),
        "priority", (int)member->priority, "healthy", (int)view_is_healthy(view, member, now), "directory",
        member->directory ? json_hex(member->directory) : json_null(), "refused", (int)member->is_refused);
}

void api_get_members(struct api_call *call)
{
    bool is_stale;
    const struct view *view = look(call, &is_stale);
    json_t *members = json_array();

    for (size_t i = 0; i < view->member_count; i++)
        (void)json_array_append_new(members, member_json(view, &view->members[i], call->now));
    api_reply_json(call, 200,
                   json_pack("{s:o,s:b,s:b,s:o}", "term", json_u64(view->term), "stale", (int)is_stale,
                             "changing_members", (int)view->is_changing, "members", members));
}

static const char *result_name(enum raft_result result)
{
    return result == RAFT_TIMED_OUT ? "timed_out" : raft_result_name(result);
}

static json_t *election_json(const struct journal_election *record)
{
    const struct raft_election *election = &record->election;
    bool has_ended = election->result != RAFT_RUNNING;
    json_t *votes = json_array();

    for (size_t i = 0; i < election->ballot_count && i < RAFT_MEMBERS_MAX; i++)
        (void)json_array_append_new(votes, json_pack("{s:s,s:o,s:s}", "voter", record->names[i].voter, "vote",
                                                     json_text(record->names[i].vote), "reason",
                                                     raft_reason_name(election->ballots[i].reason)));
    return json_pack(
        "{s:o,s:o,s:s,s:b,s:s,s:o,s:o,s:o,s:o}", "id", json_u64(record->id), "term", json_u64(election->term),
        "candidate", record->candidate, "pre_vote", (int)election->is_pre_vote, "result",
        result_name(election->result), "started_at", json_wall(record->started_wall_ms), "ended_at",
        has_ended ? json_wall(record->ended_wall_ms) : json_null(), "duration_ms",
        has_ended ? json_real((double)(election->ended_at - election->started_at) / (double)NS_PER_MS)
                  : json_null(),
        "votes", votes);
}

void api_get_elections(struct api_call *call)
{
    struct journal_election *records;
    struct evkeyvalq pairs;
    int64_t limit = 20;
    json_t *list;
    size_t count;
    bool is_good = api_query_read(call, &pairs) &&
                   api_query_number(call, &pairs, "limit", 1, JOURNAL_ELECTIONS_KEPT, &limit);

    evhttp_clear_headers(&pairs);
    if (!is_good)
        return;
    records = calloc((size_t)limit, sizeof *records);
    if (!records) {
        api_reply_json(call, 500, NULL);
        return;
    }
    count = journal_elections(call->api->shared->journal, records, (size_t)limit);
    list = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(list, election_json(&records[i]));
    free(records);
    api_reply_json(call, 200, json_pack("{s:o}", "elections", list));
}

/* It publishes a view several times a second, whatever happens: silence means that it is stuck. */
void api_get_health(struct api_call *call)
{
    const struct view *view = &call->api->view;
    gavel_ms age;

    view_read(&call->api->shared->view, &call->api->view);
    call->now = clock_now();
    age = ms_from_ns(ns_max(call->now - view->at, 0));
    if (age > API_SILENCE_MS)
        api_reply_error(call, 503, GAVEL_ERR_TIMEOUT,
                        "the consensus thread of %s has not responded for %" PRId64 " ms", view->name,
                        (int64_t)age);
    else
        api_reply_json(
            call, 200,
            json_pack("{s:b,s:s,s:I}", "healthy", 1, "node", view->name, "age_ms", (json_int_t)age));
}

void api_get_ready(struct api_call *call)
{
    bool is_stale;
    const struct view *view = look(call, &is_stale);
    const struct view_member *leader = view_find(view, view->leader);
    gavel_ns idle = view_commits_hang_for(view, call->now);

    if (is_stale || view->is_stopping)
        api_reply_error(call, 503, GAVEL_ERR_NO_LEADER, "%s %s", view->name,
                        view->is_stopping ? "is ending"
                        : view->is_leader ? "leads without a lease"
                        : view->waits_for_operator
                            ? "has no leader and waits for an operator (auto_failover is off)"
                            : "follows no leader at the moment");
    else if (view->is_disk_hung)
        api_reply_error(call, 503, GAVEL_ERR_TIMEOUT, "the disk of %s has not answered for %" PRId64 " ms",
                        view->name, (int64_t)ms_from_ns(call->now - view->write_since));
    else if (idle > 0)
        api_reply_error(call, 503, GAVEL_ERR_TIMEOUT,
                        "nothing has been committed for %" PRId64
                        " ms: too few of the voters write to their disks",
                        (int64_t)ms_from_ns(idle));
    else
        api_reply_json(call, 200,
                       json_pack("{s:b,s:s,s:s,s:s,s:o}", "ready", 1, "node", view->name, "role",
                                 raft_role_name(view->role), "leader_id", leader ? leader->name : "", "term",
                                 json_u64(view->term)));
}

void api_get_openapi(struct api_call *call)
{
    api_reply(call, 200, "application/json", (const char *)openapi_json, sizeof openapi_json);
}

/* What was never answered has no line. */
static size_t list_calls(const struct api *api, struct metrics_call *ret_calls)
{
    size_t count = 0;

    for (size_t route = 0; route <= api_route_count(); route++) {
        bool is_known = route < api_route_count();
        for (size_t code = 0; code < api_code_count(); code++) {
            struct metrics_call *call = &ret_calls[count];

            call->method = is_known ? api_method_name(api_route_at(route)->method) : "other";
            call->path = is_known ? api_route_at(route)->path : "other";
            call->code = api_code_at(code);
            call->count = api->counts.by_code[is_known ? route : API_ROUTES_MAX][code];
            count += call->count > 0;
        }
    }
    return count;
}

void api_get_metrics(struct api_call *call)
{
    struct metrics_call calls[(API_ROUTES_MAX + 1) * API_CODES_MAX];
    struct api *api = call->api;
    struct metrics_api own = {.calls = calls,
                              .call_count = list_calls(api, calls),
                              .connections = api->connection_count,
                              .accepted = api->counts.connections,
                              .cut = api->counts.cut,
                              .streams = api->stream_count};
    size_t length;
    char *text;

    api_groups_measure(api, &own);
    view_read(&api->shared->view, &api->view);
    call->now = clock_now();
    text = metrics_text(&api->view, call->now, &own, &length);
    if (!text) {
        api_reply_json(call, 500, NULL);
        return;
    }
    api_reply(call, 200, "text/plain; version=0.0.4; charset=utf-8", text, length);
    free(text);
}
