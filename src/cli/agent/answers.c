/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What an agent answers: what libgavel says at this very moment, never what it
 * said a while ago. Once the agent is leaving, the candidate is not asked any
 * more, and the answer is that it does not lead: that is what is wanted.
 */
#include "cli/agent/agent.h"
#include "cli/agent/metrics.h"

#include "cli/json_out.h"
#include "lib/guard/on_death.h"
#include "os/clock.h"

#include <event2/buffer.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A mandate whose beginning the drain has not been told of would end without waiting for the program. */
static bool is_told(struct agent *agent)
{
    struct drain_view view;

    drain_look(&agent->drain, &view);
    return view.is_working;
}

bool agent_leads(struct agent *agent)
{
    return !agent->is_leaving && is_told(agent) && gavel_is_leader(agent->candidate);
}

/* Until when, NEVER without an election; as seen at `now`, which is no later than the answer. */
static enum gavel_answer answer_now(struct agent *agent, gavel_ns now, uint64_t *ret_epoch,
                                    gavel_ns *ret_until)
{
    enum gavel_answer answer;
    int64_t until = NEVER;

    *ret_epoch = 0;
    *ret_until = now;
    if (agent->is_leaving || !is_told(agent))
        return GAVEL_NOT_LEADER;
    answer = gavel_answer(agent->candidate, &until);
    if (answer == GAVEL_NOT_LEADER)
        return answer;
    *ret_epoch = gavel_epoch(agent->candidate); /* after it: a later one or none, never an earlier one */
    *ret_until = until;
    if ((*ret_epoch == 0 && agent->cli->config.enabled) || until <= clock_now())
        return GAVEL_NOT_LEADER;
    return answer;
}

/* Whom the group has, as far as is known here; false if nobody. */
static bool leader_now(struct agent *agent, struct gavel_leader_info *ret_leader)
{
    return !agent->is_leaving && gavel_leader(agent->candidate, ret_leader) == GAVEL_OK &&
           (!ret_leader->is_self || agent_leads(agent));
}

/* An instant of CLOCK_BOOTTIME; and what is left until then, for an answer, which counts from its
 * question. */
static void put_deadline(json_t *json, gavel_ns now, gavel_ns deadline, bool is_event)
{
    bool is_there = deadline != NEVER;

    json_put(json, "deadline_ns", is_there ? json_integer(deadline) : json_null());
    if (!is_event)
        json_put(json, "remaining_ms",
                 is_there ? json_integer(ms_from_ns(ns_max(deadline - now, 0))) : json_null());
}

/* What the program still has to stop, and by when; null if nothing. */
static json_t *stopping_json(struct agent *agent, gavel_ns now, bool is_event)
{
    gavel_ns stop_at, deadline;
    struct drain_view view;
    json_t *json;

    drain_look(&agent->drain, &view);
    if (!agent->waits_for_program || !view.is_stopping)
        return json_null();
    if (!agent->on_death || !on_death_read_mandate(agent->on_death, &agent->on_death->entries[0], view.first,
                                                   &stop_at, &deadline))
        deadline = now;
    json = json_object();
    json_put_number(json, "epoch", (int64_t)view.newest);
    put_deadline(json, now, deadline, is_event);
    return json;
}

json_t *agent_status_json(struct agent *agent, bool is_event)
{
    static const char *const states[] = {
        [GAVEL_NOT_LEADER] = "not_leader", [GAVEL_LEADER] = "leader", [GAVEL_UNKNOWN_UNTIL] = "unknown"};
    struct gavel_leader_info leader = {0};
    bool has_leader = leader_now(agent, &leader);
    gavel_ns now = clock_now();
    uint64_t epoch;
    gavel_ns until;
    enum gavel_answer answer = answer_now(agent, now, &epoch, &until);
    bool leads = answer != GAVEL_NOT_LEADER;
    json_t *json = json_object();

    json_put_text(json, "group", agent->cli->config.group);
    json_put_text(json, "candidate", agent->id);
    json_put_text(json, "state", states[answer]);
    json_put_bool(json, "is_leader", leads);
    json_put(json, "epoch", leads ? json_integer((json_int_t)epoch) : json_null());
    json_put_number(json, "at_ns", now);
    put_deadline(json, now, leads ? until : NEVER, is_event);
    json_put_time(json, "since", leads && has_leader && leader.is_self ? leader.since_wall_ms : 0);
    json_put_text_or_null(json, "leader_id", has_leader && leader.is_self == leads ? leader.id : "");
    json_put_bool(json, "drain", agent->waits_for_program);
    json_put(json, "stopping", stopping_json(agent, now, is_event));
    return json;
}

void agent_get_status(struct agent_call *call)
{
    agent_reply(call, 200, agent_status_json(call->agent, false));
}

/* As the leader-elector sidecar of Kubernetes does: always 200, and no name if there is none. */
void agent_get_sidecar(struct agent_call *call)
{
    struct gavel_leader_info leader = {0};
    bool has_leader = leader_now(call->agent, &leader);
    json_t *json = json_object();

    json_put_text(json, "name", has_leader ? leader.id : "");
    agent_reply(call, 200, json);
}

static json_t *leader_json(const struct gavel_leader_info *leader)
{
    json_t *json = json_object();

    json_put_text(json, "leader_id", leader->id);
    json_put_text_or_null(json, "leader_address", leader->address);
    json_put_number(json, "epoch", (int64_t)leader->epoch);
    return json;
}

void agent_get_leader(struct agent_call *call)
{
    struct gavel_leader_info leader = {0};
    bool has_leader = leader_now(call->agent, &leader);
    char *wanted = agent_query(call, "candidate");
    char *format = agent_query(call, "format");

    if (format && strcmp(format, "sidecar") == 0)
        agent_get_sidecar(call);
    else if (format)
        agent_reply_error(call, 400, GAVEL_ERR_INVALID, "format: there is only \"sidecar\"");
    else if (wanted && !*wanted)
        agent_reply_error(call, 400, GAVEL_ERR_INVALID, "candidate: name one, such as ?candidate=%s",
                          call->agent->id);
    else if (!has_leader)
        agent_reply_error(call, 503, GAVEL_ERR_NO_LEADER,
                          "the group \"%s\" has no known leader at the moment",
                          call->agent->cli->config.group);
    else if (wanted && strcmp(wanted, leader.id) != 0)
        agent_reply_error(call, 503, GAVEL_ERR_NOT_LEADER,
                          "\"%.255s\" does not lead the group \"%s\"; \"%s\" does", wanted,
                          call->agent->cli->config.group, leader.id);
    else
        agent_reply(call, 200, leader_json(&leader));
    free(wanted);
    free(format);
}

static json_t *candidate_json(const struct gavel_candidate_info *info)
{
    json_t *json = json_object();

    json_put_text(json, "candidate", info->id);
    json_put_text_or_null(json, "address", info->address);
    json_put_bool(json, "leader", info->is_leader);
    json_put_bool(json, "self", info->is_self);
    json_put_bool(json, "eligible", info->eligible);
    json_put_number(json, "priority", info->priority);
    json_put_time(json, "since", info->since_wall_ms);
    json_put_time(json, "last_heartbeat", info->last_heartbeat_wall_ms);
    return json;
}

void agent_get_candidates(struct agent_call *call)
{
    struct agent *agent = call->agent;
    struct gavel_candidate_info *infos;
    json_t *json, *list;
    size_t room = 0, count = 0;

    if (agent->is_leaving || gavel_candidates(agent->candidate, NULL, 0, &room) != GAVEL_OK) {
        agent_reply_error(call, 503, GAVEL_ERR_STOPPED, "this agent is leaving the group \"%s\"",
                          agent->cli->config.group);
        return;
    }
    infos = calloc(room + 1, sizeof *infos);
    if (!infos || gavel_candidates(agent->candidate, infos, room, &count) != GAVEL_OK) {
        free(infos);
        agent_reply(call, 500, NULL);
        return;
    }
    json = json_object();
    list = json_array();
    json_put_text(json, "group", agent->cli->config.group);
    for (size_t i = 0; i < count && i < room; i++)
        json_array_append_new(list, candidate_json(&infos[i]));
    json_put(json, "candidates", list);
    free(infos);
    agent_reply(call, 200, json);
}

/* Whether the agent itself is well: it answers, and its candidate has not ended. */
void agent_get_health(struct agent_call *call)
{
    const struct agent *agent = call->agent;
    json_t *json;

    if (atomic_load(&agent->has_ended)) {
        agent_reply_error(call, 503, GAVEL_ERR_STOPPED, "the candidate \"%s\" has left the group \"%s\"",
                          agent->id, agent->cli->config.group);
        return;
    }
    json = json_object();
    json_put_bool(json, "healthy", true);
    json_put_text(json, "group", agent->cli->config.group);
    json_put_text(json, "candidate", agent->id);
    agent_reply(call, 200, json);
}

/* Whether what it says of the group means something: it has looked, and the store answers. */
void agent_get_ready(struct agent_call *call)
{
    const struct agent *agent = call->agent;
    struct gavel_breaker breaker = {0};

    if (agent->is_leaving) {
        agent_reply_error(call, 503, GAVEL_ERR_STOPPED, "this agent is leaving the group \"%s\"",
                          agent->cli->config.group);
        return;
    }
    gavel_breaker(agent->candidate, &breaker);
    if (breaker.state != GAVEL_BREAKER_CLOSED)
        agent_reply_error(call, 503, GAVEL_ERR_STORE_UNAVAILABLE,
                          "the store has failed %d times in a row; its errors are in the log of the agent",
                          breaker.failures);
    else if (!atomic_load(&agent->has_looked) && agent->cli->config.enabled)
        agent_reply_error(call, 503, GAVEL_ERR_STATE, "it has not seen the group \"%s\" yet",
                          agent->cli->config.group);
    else
        agent_reply(call, 200, agent_status_json(call->agent, false));
}

void agent_get_metrics(struct agent_call *call)
{
    struct agent_figures figures = {.group = call->agent->cli->config.group,
                                    .candidate = call->agent->id,
                                    .connections = call->agent->connection_count,
                                    .streams = call->agent->stream_count,
                                    .requests = call->agent->requests,
                                    .cut = call->agent->cut,
                                    .is_leaving = call->agent->is_leaving};
    size_t length = 0;
    gavel_ns now = clock_now();
    gavel_ns until;
    uint64_t epoch;
    char *text;

    figures.answer = answer_now(call->agent, now, &epoch, &until);
    figures.left = until == NEVER ? NEVER : ns_max(until - now, 0);
    figures.epoch = epoch;
    if (!call->agent->is_leaving) {
        gavel_metrics(call->agent->candidate, &figures.metrics);
        gavel_breaker(call->agent->candidate, &figures.breaker);
        if (gavel_candidates(call->agent->candidate, NULL, 0, &figures.candidates) != GAVEL_OK)
            figures.candidates = 0;
    }
    text = agent_metrics_text(&figures, &length);
    if (text)
        agent_reply_text(call, 200, "text/plain; version=0.0.4", text, length);
    else
        agent_reply(call, 500, NULL);
    free(text);
}

/* The body as an object; an empty one stands for {}. NULL: the call has been answered. */
static json_t *body_of(struct agent_call *call)
{
    struct evbuffer *input = evhttp_request_get_input_buffer(call->http);
    size_t length = evbuffer_get_length(input);
    json_t *json;

    if (length == 0)
        return json_object();
    json = json_loadb((const char *)evbuffer_pullup(input, -1), length, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(json)) {
        json_decref(json);
        agent_reply_error(call, 400, GAVEL_ERR_INVALID, "the body is not a JSON object");
        return NULL;
    }
    return json;
}

/* False: the call has been answered. */
static bool knows_keys(struct agent_call *call, const json_t *body, const char *only)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)body, key, value) {
        if (strcmp(key, only) != 0) {
            agent_reply_error(call, 400, GAVEL_ERR_INVALID, "\"%.60s\" is not known here; there is \"%s\"",
                              key, only);
            return false;
        }
    }
    return true;
}

static void resign(struct agent_call *call, const json_t *body)
{
    struct agent *agent = call->agent;
    const json_t *named = json_object_get(body, "successor");
    const char *successor = json_string_value(named);
    uint64_t epoch;
    gavel_ns until;
    json_t *json;

    if (named && !json_is_null(named) && (!successor || strlen(successor) != json_string_length(named))) {
        agent_reply_error(call, 400, GAVEL_ERR_INVALID, "successor: write the id of a candidate as a string");
        return;
    }
    (void)answer_now(agent, clock_now(), &epoch, &until); /* only the epoch, for the answer */
    switch (agent->is_leaving ? GAVEL_ERR_STATE : gavel_resign(agent->candidate, successor)) {
    case GAVEL_OK:
        json = json_object();
        json_put(json, "epoch", epoch ? json_integer((json_int_t)epoch) : json_null());
        json_put_text_or_null(json, "successor", successor ? successor : "");
        agent_reply(call, 202, json);
        break;
    case GAVEL_ERR_INVALID:
        agent_reply_error(call, 400, GAVEL_ERR_INVALID, "successor: \"%.60s\" is not another candidate",
                          successor);
        break;
    case GAVEL_ERR_STATE:
        agent_reply_error(call, 409, GAVEL_ERR_STATE,
                          "\"%s\" does not lead the group \"%s\", so it cannot resign", agent->id,
                          agent->cli->config.group);
        break;
    default:
        agent_reply(call, 500, NULL);
    }
}

void agent_post_resign(struct agent_call *call)
{
    json_t *body = body_of(call);

    if (body && knows_keys(call, body, "successor"))
        resign(call, body);
    json_decref(body);
}

static void stopped(struct agent_call *call, const json_t *body)
{
    const json_t *epoch = json_object_get(body, "epoch");
    struct agent *agent = call->agent;
    struct gavel_error error = {0};
    json_t *json;

    if (!json_is_integer(epoch) || json_integer_value(epoch) < 0) {
        agent_reply_error(call, 400, GAVEL_ERR_INVALID,
                          "epoch: write the number that the work was done with, as {\"epoch\": 7}");
    } else if (!agent->waits_for_program) {
        agent_reply_error(
            call, 409, GAVEL_ERR_STATE,
            "this agent runs with --no-drain: it does not wait for the program before another may lead");
    } else if (drain_stopped(&agent->drain, (uint64_t)json_integer_value(epoch), agent_leads(agent),
                             &error) != GAVEL_OK) {
        agent_reply_error(call, error.status == GAVEL_ERR_INVALID ? 400 : 409, error.status, "%s",
                          error.message);
    } else {
        json = json_object();
        json_put(json, "epoch", json_integer(json_integer_value(epoch)));
        agent_reply(call, 200, json);
    }
}

void agent_post_stopped(struct agent_call *call)
{
    json_t *body = body_of(call);

    if (body && knows_keys(call, body, "epoch"))
        stopped(call, body);
    json_decref(body);
}

/* The program lives: whoever was not to lead for want of that may again. */
void agent_post_alive(struct agent_call *call)
{
    struct agent *agent = call->agent;
    json_t *body = body_of(call);

    if (!body)
        return;
    if (json_object_size(body)) {
        agent_reply_error(call, 400, GAVEL_ERR_INVALID, "leave the body empty");
    } else {
        agent->heard_at = clock_now();
        if (agent->is_mute && !agent->is_leaving)
            agent->is_mute = gavel_set_eligible(agent->candidate, true) != GAVEL_OK;
        agent_reply(call, 200, agent_status_json(agent, false));
    }
    json_decref(body);
}
