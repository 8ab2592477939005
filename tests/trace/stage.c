/* SPDX-License-Identifier: Apache-2.0 */

#include "trace/stage.h"

#include "trace/actor.h"
#include "trace/words.h"

#include <stdlib.h>
#include <string.h>

struct stage *stage_new(FILE *out)
{
    struct stage *stage = calloc(1, sizeof *stage);

    stage->out = out;
    stage->clock = STORE_CLOCK_STEADY;
    return stage;
}

void stage_free(struct stage *stage)
{
    for (size_t i = 0; i < stage->count; i++)
        actor_free(stage->actors[i]);
    rows_done(&stage->rows);
    free(stage);
}

static struct actor *find(struct stage *stage, const char *name)
{
    /* The newest of that name: a restarted process takes the place of the dead one. */
    for (size_t i = stage->count; i-- > 0;)
        if (strcmp(stage->actors[i]->name, name) == 0)
            return stage->actors[i];
    return NULL;
}

/* Carries out what is due next if it is due by `end`; false if nothing is. */
static bool advance(struct stage *stage, gavel_ns end)
{
    struct actor *next = NULL;
    gavel_ns at = NEVER;

    for (size_t i = 0; i < stage->count; i++) {
        gavel_ns due = actor_due_at(stage->actors[i]);

        if (due < at) {
            at = due;
            next = stage->actors[i];
        }
    }
    if (!next || at > end)
        return false;
    stage->now = ns_max(stage->now, at);
    actor_do_due(stage, next);
    return true;
}

static void run_for(struct stage *stage, gavel_ns length)
{
    gavel_ns end = stage->now + length;
    int steps = 0;

    while (advance(stage, end)) {
        if (++steps > 1000000) {
            fprintf(stage->out, "time stands still: a candidate is due again and again\n");
            return;
        }
    }
    stage->now = end;
}

static void run_until(struct stage *stage, struct actor *actor, const char *state)
{
    gavel_ns end = stage->now + 600 * NS_PER_S;

    while (strcmp(candidate_state_name(actor->candidate.state), state) != 0) {
        if (!advance(stage, end)) {
            fprintf(stage->out, "%s is %s, not %s, after ten minutes\n", actor->name,
                    candidate_state_name(actor->candidate.state), state);
            return;
        }
    }
}

/* One key=value of the settings; false if there is no such key. */
static bool set(struct stage *stage, const char *key, const char *value)
{
    struct gavel_settings *s = &stage->settings;
    static const struct {
        const char *key;
        size_t offset;
    } times[] = {
#define TIME(field) {#field, offsetof(struct gavel_settings, field##_ms)}
        TIME(heartbeat),         TIME(heartbeat_jitter), TIME(lease),
        TIME(candidate_timeout), TIME(observation),      TIME(election_interval),
        TIME(preparation),       TIME(min_mandate),      TIME(max_mandate),
        TIME(takeover_delay),    TIME(start_jitter_min), TIME(start_jitter_max),
        TIME(call_timeout),      TIME(stop_grace),       TIME(stagger),
        TIME(breaker_reset),
#undef TIME
    };

    if (strcmp(key, "preset") == 0)
        return gavel_settings_preset(value, s) == GAVEL_OK;
    if (strcmp(key, "policy") == 0)
        return gavel_policy_parse(value, &s->policy) == GAVEL_OK;
    if (strcmp(key, "preempt") == 0) {
        s->preempt = strcmp(value, "yes") == 0;
        return true;
    }
    if (strcmp(key, "guarded") == 0) {
        stage->is_guarded = strcmp(value, "yes") == 0;
        return true;
    }
    if (strcmp(key, "clock") == 0) {
        stage->clock = strcmp(value, "none") == 0    ? STORE_CLOCK_NONE
                       : strcmp(value, "steps") == 0 ? STORE_CLOCK_STEPS
                                                     : STORE_CLOCK_STEADY;
        return true;
    }
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        if (strcmp(key, times[i].key) == 0) {
            gavel_ms ms = atoll(value);

            memcpy((char *)s + times[i].offset, &ms, sizeof ms);
            return true;
        }
    }
    return false;
}

static void start(struct stage *stage, const char *name, const char *id, int priority, bool is_eligible)
{
    struct actor *actor = actor_add(stage, name, id, priority, is_eligible);

    if (actor)
        actor_feed(stage, actor, (struct candidate_event){.kind = CANDIDATE_START});
}

static bool command_candidates(struct stage *stage, char **words, size_t count)
{
    if (gavel_settings_preset("local", &stage->settings) != GAVEL_OK)
        return false;
    stage->settings.heartbeat_jitter_ms = 0; /* stories are easier to follow in step */
    for (size_t i = 1; i < count; i++) {
        char *value = strchr(words[i], '=');

        if (!value)
            continue;
        *value = '\0';
        if (!set(stage, words[i], value + 1))
            return false;
        words[i] = NULL;
    }
    for (size_t i = 1; i < count; i++)
        if (words[i])
            start(stage, words[i], words[i], 0, true);
    return true;
}

static bool command_candidate(struct stage *stage, char **words, size_t count)
{
    int priority = 0;
    bool is_eligible = true;

    for (size_t i = 2; i < count; i++) {
        if (strncmp(words[i], "priority=", 9) == 0)
            priority = atoi(words[i] + 9);
        else if (strcmp(words[i], "eligible=no") == 0)
            is_eligible = false;
        else
            return false;
    }
    start(stage, words[1], words[1], priority, is_eligible);
    return true;
}

static void show(struct stage *stage)
{
    for (size_t i = 0; i < stage->count; i++) {
        const struct actor *actor = stage->actors[i];
        gavel_ns until = 0;
        enum candidate_answer answer = candidate_answer(&actor->candidate, stage->now, &until);

        if (!actor->is_alive || find(stage, actor->name) != actor)
            continue;
        fprintf(stage->out, "            %-3s %s%s", actor->name,
                candidate_state_name(actor->candidate.state), actor->is_paused ? ", paused" : "");
        if (answer == CANDIDATE_LEADER)
            fprintf(stage->out, ", leader, epoch %llu", (unsigned long long)actor->candidate.epoch);
        if (answer == CANDIDATE_UNKNOWN_UNTIL)
            fprintf(stage->out, ", unknown until %.3f, epoch %llu", (double)until / (double)NS_PER_S,
                    (unsigned long long)actor->candidate.epoch);
        fputc('\n', stage->out);
    }
}

/* Commands about one actor that only set something. */
static bool command_set(struct stage *stage, struct actor *actor, char **words, size_t count)
{
    if (strcmp(words[0], "cut") == 0)
        actor->is_cut = true;
    else if (strcmp(words[0], "heal") == 0)
        actor->is_cut = false;
    else if (strcmp(words[0], "deafen") == 0)
        actor->is_deaf = true;
    else if (strcmp(words[0], "hear") == 0)
        actor->is_deaf = false;
    else if (strcmp(words[0], "pause") == 0)
        actor->is_paused = true;
    else if (strcmp(words[0], "resume") == 0)
        actor->is_paused = false;
    else if (strcmp(words[0], "crash") == 0)
        actor_die(stage, actor, true);
    else if (strcmp(words[0], "vanish") == 0)
        actor_die(stage, actor, false);
    else if (strcmp(words[0], "kill") == 0)
        actor_kill(stage, actor);
    else if (strcmp(words[0], "restart") == 0)
        start(stage, actor->name, actor->candidate.id, actor->candidate.priority, true);
    else if (strcmp(words[0], "twin") == 0 && count == 4)
        start(stage, words[3], actor->candidate.id, 0, true);
    else if (strcmp(words[0], "slow-stop") == 0 && count == 3)
        actor->stop_takes = words_duration(words[2]);
    else
        return false;
    return true;
}

/* Commands that tell one actor something. */
static bool command_tell(struct stage *stage, struct actor *actor, char **words, size_t count)
{
    struct candidate_event event = {0};

    if (strcmp(words[0], "resign") == 0) {
        event.kind = CANDIDATE_RESIGN;
        event.resign.successor = count == 4 ? words[3] : "";
    } else if (strcmp(words[0], "ensure") == 0) {
        event.kind = CANDIDATE_ENSURE;
        event.ensure.epoch = candidate_leader_epoch(&actor->candidate);
        event.ensure.force = count > 2 && strcmp(words[2], "force") == 0;
        event.ensure.desired = count > (event.ensure.force ? 3u : 2u) ? words[count - 1] : "";
    } else if (strcmp(words[0], "finish") == 0) {
        event.kind = CANDIDATE_FINISH;
    } else if (strcmp(words[0], "ring") == 0) {
        event.kind = CANDIDATE_DOORBELL;
    } else if (strcmp(words[0], "eligible") == 0 && count == 3) {
        event.kind = CANDIDATE_SET_ELIGIBLE;
        event.eligible = strcmp(words[2], "yes") == 0;
    } else if (strcmp(words[0], "leave") == 0) {
        event.kind = CANDIDATE_STOP;
    } else {
        return false;
    }
    actor_feed(stage, actor, event);
    return true;
}

static bool carry_out(struct stage *stage, char **words, size_t count)
{
    struct actor *actor = count > 1 ? find(stage, words[1]) : NULL;

    if (strcmp(words[0], "candidates") == 0)
        return command_candidates(stage, words, count);
    if (strcmp(words[0], "candidate") == 0 && count > 1)
        return command_candidate(stage, words, count);
    if (strcmp(words[0], "run") == 0 && count == 2)
        run_for(stage, words_duration(words[1]));
    else if (strcmp(words[0], "step-clock") == 0 && count == 2)
        stage->store_stepped += words_duration(words[1]);
    else if (strcmp(words[0], "show") == 0)
        show(stage);
    else if (actor && strcmp(words[0], "until") == 0 && count == 3)
        run_until(stage, actor, words[2]);
    else
        return actor && (command_set(stage, actor, words, count) || command_tell(stage, actor, words, count));
    return true;
}

void stage_command(struct stage *stage, const char *command)
{
    char *words[WORDS_MAX];
    char *copy = strdup(command);
    size_t count = words_split(copy, words);

    if (count == 0 || !carry_out(stage, words, count))
        fprintf(stage->out, "cannot be understood:%s\n", command);
    free(copy);
}
