/* SPDX-License-Identifier: Apache-2.0 */

#include "trace/actor.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void say(struct stage *stage, const struct actor *actor, const char *format, ...)
{
    va_list arguments;

    fprintf(stage->out, "%10.3f  %-3s ", (double)stage->now / (double)NS_PER_S, actor->name);
    va_start(arguments, format);
    vfprintf(stage->out, format, arguments);
    va_end(arguments);
    fputc('\n', stage->out);
}

struct actor *actor_add(struct stage *stage, const char *name, const char *id, int priority, bool is_eligible)
{
    struct actor *actor = calloc(1, sizeof *actor);
    struct candidate_config config = {
        .group = "g",
        .id = id,
        .address = name,
        .priority = priority,
        .eligible = is_eligible,
        .settings = stage->settings,
        .clock = stage->clock,
        .process = {.pid = ++stage->next_pid},
        .is_guarded = stage->is_guarded,
        .seed = (uint64_t)stage->next_pid,
    };
    struct gavel_error error;

    snprintf(actor->name, sizeof actor->name, "%s", name);
    actor->pid = stage->next_pid;
    if (candidate_init(&actor->candidate, &config, &error) != GAVEL_OK) {
        fprintf(stage->out, "refused: %s\n", error.message);
        free(actor);
        return NULL;
    }
    actor->is_alive = true;
    actor->stopped_at = actor->rung_at = actor->death_at = NEVER;
    stage->actors[stage->count++] = actor;
    return actor;
}

void actor_free(struct actor *actor)
{
    if (!actor)
        return;
    for (size_t i = 0; i < ANSWERS_MAX; i++)
        store_reply_done(&actor->answers[i].reply);
    candidate_done(&actor->candidate);
    free(actor);
}

/* What the stage's clockless and stepping stores make of the rules. */
static void run_request(struct stage *stage, struct store_request *request, struct store_reply *reply)
{
    static const struct process_id nobody;
    const struct rules_now now = {.now = stage->now + stage->store_stepped, .self = &nobody};

    if (request->op >= STORE_HEARTBEAT) {
        rows_registry(&stage->rows, request, now.now, 0, reply);
    } else {
        struct rows_group *group = rows_get(&stage->rows, "g");

        if (stage->clock == STORE_CLOCK_NONE)
            request->must_be_expired = false;
        rules_reply(&group->mandate, request, &now, rules_apply(&group->mandate, request, &now), reply);
    }
    if (stage->clock != STORE_CLOCK_NONE)
        return;
    reply->expired = false;
    reply->remaining_ms = -1;
    for (size_t i = 0; i < reply->registration_count; i++)
        reply->registrations[i].age_ms = -1;
}

static void carry_call(struct stage *stage, struct actor *actor, const struct candidate_action *action)
{
    struct store_request request = action->call.request;
    struct answer *answer = actor->answers;

    if (actor->is_cut)
        return;
    while (answer->is_pending)
        answer++;
    store_reply_done(&answer->reply);
    memset(&answer->reply, 0, sizeof answer->reply);
    run_request(stage, &request, &answer->reply);
    answer->is_pending = !actor->is_deaf;
    answer->at = stage->now + ANSWER_DELAY;
    answer->call = action->call.id;
}

static void tell(struct stage *stage, struct actor *actor, const struct gavel_event *event)
{
    const char *name = gavel_event_name(event->kind);

    switch (event->kind) {
    case GAVEL_EVENT_HEARTBEAT:
    case GAVEL_EVENT_ELECTION_CHECK:
    case GAVEL_EVENT_CANDIDATES_UPDATED:
        return; /* they would drown the story */
    case GAVEL_EVENT_LEADER_CHANGED:
        say(stage, actor, "%s: %s -> %s, epoch %llu", name, event->previous[0] ? event->previous : "nobody",
            event->leader[0] ? event->leader : "nobody", (unsigned long long)event->epoch);
        return;
    case GAVEL_EVENT_LEADER_DOWN:
        say(stage, actor, "%s: %s (%s), epoch %llu", name, event->previous, gavel_loss_name(event->how),
            (unsigned long long)event->epoch);
        return;
    case GAVEL_EVENT_PHASE_CHANGED:
        say(stage, actor, "%s: %s -> %s after %lld ms", name, gavel_phase_name(event->previous_phase),
            gavel_phase_name(event->phase), (long long)event->took_ms);
        return;
    case GAVEL_EVENT_LOST_LEADERSHIP:
        say(stage, actor, "%s: %s, epoch %llu", name, gavel_reason_name(event->reason),
            (unsigned long long)event->epoch);
        return;
    case GAVEL_EVENT_CONTENTION_DETECTED:
        say(stage, actor, "%s: %lld ms instead of %lld", name, (long long)event->took_ms,
            (long long)event->expected_ms);
        return;
    case GAVEL_EVENT_STOPPED:
        say(stage, actor, "%s: %s%s%s", name, gavel_status_name(event->status),
            event->status == GAVEL_OK ? "" : ", ", event->status == GAVEL_OK ? "" : event->message);
        return;
    case GAVEL_EVENT_BREAKER_OPEN:
        say(stage, actor, "%s: %s", name, gavel_status_name(event->status));
        return;
    default:
        say(stage, actor, "%s%s%.0llu", name, event->epoch ? ": epoch " : "",
            (unsigned long long)event->epoch);
    }
}

static void ring(struct stage *stage, const char *address)
{
    for (size_t i = 0; i < stage->count; i++)
        if (stage->actors[i]->is_alive && strcmp(stage->actors[i]->name, address) == 0)
            stage->actors[i]->rung_at = ns_min(stage->actors[i]->rung_at, stage->now + ANSWER_DELAY);
}

static bool is_dead(const struct stage *stage, int pid)
{
    for (size_t i = 0; i < stage->count; i++)
        if (stage->actors[i]->pid == pid)
            return !stage->actors[i]->is_alive && !stage->actors[i]->is_unseen;
    return true;
}

static void carry(struct stage *stage, struct actor *actor, const struct candidate_action *action)
{
    switch (action->kind) {
    case CANDIDATE_CALL:
        carry_call(stage, actor, action);
        break;
    case CANDIDATE_EMIT:
        tell(stage, actor, &action->event);
        break;
    case CANDIDATE_MANDATE:
        break;
    case CANDIDATE_WORK_START:
        say(stage, actor, "work starts");
        break;
    case CANDIDATE_WORK_STOP:
        actor->stopped_at = stage->now + actor->stop_takes;
        break;
    case CANDIDATE_RING:
        for (size_t i = 0; i < actor->candidate.peers.count; i++)
            if (strcmp(actor->candidate.peers.items[i].id, actor->candidate.id) != 0)
                ring(stage, actor->candidate.peers.items[i].address);
        break;
    case CANDIDATE_RING_ONE:
        ring(stage, action->address);
        break;
    case CANDIDATE_WATCH:
        actor->is_watching = true;
        actor->watched = action->watch.nonce;
        actor->watched_pid = action->watch.process.pid;
        if (is_dead(stage, actor->watched_pid))
            actor->death_at = stage->now;
        break;
    case CANDIDATE_UNWATCH:
        actor->is_watching = false;
        break;
    }
}

void actor_feed(struct stage *stage, struct actor *actor, struct candidate_event event)
{
    struct candidate_actions actions;
    enum candidate_state before = actor->candidate.state;

    event.now = stage->now;
    candidate_step(&actor->candidate, &event, &actions);
    if (actor->candidate.state != before)
        say(stage, actor, "%s -> %s", candidate_state_name(before),
            candidate_state_name(actor->candidate.state));
    for (size_t i = 0; i < actions.count; i++)
        carry(stage, actor, &actions.items[i]);
}

gavel_ns actor_due_at(const struct actor *actor)
{
    gavel_ns at = candidate_wake_at(&actor->candidate);

    if (!actor->is_alive || actor->is_paused)
        return NEVER;
    at = ns_min(at, ns_min(actor->stopped_at, ns_min(actor->rung_at, actor->death_at)));
    for (size_t i = 0; i < ANSWERS_MAX; i++)
        if (actor->answers[i].is_pending)
            at = ns_min(at, actor->answers[i].at);
    return at;
}

void actor_do_due(struct stage *stage, struct actor *actor)
{
    for (size_t i = 0; i < ANSWERS_MAX; i++) {
        struct answer *answer = &actor->answers[i];

        if (answer->is_pending && answer->at <= stage->now) {
            answer->is_pending = false;
            actor_feed(stage, actor,
                       (struct candidate_event){.kind = CANDIDATE_REPLY,
                                                .reply = {.call = answer->call, .reply = &answer->reply}});
            return;
        }
    }
    if (actor->stopped_at <= stage->now) {
        actor->stopped_at = NEVER;
        say(stage, actor, "work has stopped");
        actor_feed(stage, actor, (struct candidate_event){.kind = CANDIDATE_WORK_STOPPED});
    } else if (actor->death_at <= stage->now) {
        actor->death_at = NEVER;
        if (actor->is_watching)
            actor_feed(
                stage, actor,
                (struct candidate_event){.kind = CANDIDATE_HOLDER_DIED, .holder_died = {actor->watched}});
    } else if (actor->rung_at <= stage->now) {
        actor->rung_at = NEVER;
        actor_feed(stage, actor, (struct candidate_event){.kind = CANDIDATE_DOORBELL});
    } else {
        actor_feed(stage, actor, (struct candidate_event){.kind = CANDIDATE_TICK});
    }
}

void actor_die(struct stage *stage, struct actor *actor, bool is_seen)
{
    actor->is_alive = false;
    actor->is_unseen = !is_seen;
    for (size_t i = 0; is_seen && i < stage->count; i++)
        if (stage->actors[i]->is_watching && stage->actors[i]->watched_pid == actor->pid)
            stage->actors[i]->death_at = stage->now + ANSWER_DELAY;
}

void actor_kill(struct stage *stage, struct actor *actor)
{
    struct store_request request = {.op = STORE_RELEASE, .group = "g"};
    struct store_reply reply = {0};

    actor_die(stage, actor, true);
    request.record.nonce = actor->candidate.nonce;
    request.record.loss = GAVEL_LOSS_KILLED;
    memcpy(request.record.holder, actor->candidate.id, sizeof request.record.holder);
    run_request(stage, &request, &reply);
    store_reply_done(&reply);
    for (size_t i = 0; i < stage->count; i++)
        ring(stage, stage->actors[i]->name);
}
