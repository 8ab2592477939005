/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program: a process with a real client, a clock, and candidacies in some groups.
 * It can be stopped for any time: then nothing of it runs, and what comes for
 * it waits. It can be killed: then only the cluster remembers it.
 */
#include "sim/session/world.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

#define WAKES_MAX 200

const char *program_boot_id(const struct program *program)
{
    return program->index % 2 == 0 ? "11111111-2222-3333-4444-555555555555"
                                   : "66666666-7777-8888-9999-000000000000";
}

gavel_ns program_clock(const struct program *program)
{
    return clock_local(&program->clock, program->testbed->cluster->now);
}

bool program_is_frozen(const struct program *program)
{
    return program->testbed->cluster->now < program->frozen_until;
}

/* ---- steps ---- */

static void arm(struct program *program)
{
    struct testbed *testbed = program->testbed;
    gavel_ns wake = client_wake_at(program->client);
    gavel_ns at;

    if (wake == NEVER)
        return;
    at = ns_max(clock_real(&program->clock, wake), testbed->cluster->now);
    if (program->timer_at <= at)
        return;
    program->timer_at = at;
    testbed_push(testbed, at, TESTBED_CLIENT_TIMER, program->index, ++program->timer);
}

/* Usually soon; what is late makes its keep-alive late. */
static gavel_ns take_delay(struct program *program)
{
    struct testbed *testbed = program->testbed;
    gavel_ns ttl = ns_from_ms(program->open.ttl_ms);
    bool is_late = testbed_chance(testbed, TESTBED_STREAM_PACE, 100) && !testbed->is_healed;

    return testbed_between(testbed, TESTBED_STREAM_PACE, 0,
                           testbed->profile.is_quiet || !is_late ? ttl / 16 : ttl);
}

static void deadline(struct program *program, gavel_ns at)
{
    struct testbed *testbed = program->testbed;

    if (at != 0 && program->is_untaken)
        session_referee_not_taken(testbed->referee, program->index);
    program->is_untaken = at != 0 && program->open.is_paced;
    if (program->is_untaken && !program->is_hanging)
        testbed_push(testbed, testbed->cluster->now + take_delay(program), TESTBED_TAKE, program->index,
                     program->life);
    program->deadline = at;
    if (at != 0 && !program->is_closing)
        session_referee_counts_on(testbed->referee, testbed->cluster->now, program->index,
                                  client_session(program->client), client_session_number(program->client),
                                  clock_real(&program->clock, at));
    campaign_deadline(program);
}

static void take_watch(struct program *program, const struct client_action *action)
{
    struct testbed *testbed = program->testbed;
    unsigned group = (unsigned)action->token - 1;

    program->candidacies[group].told = action->revision > program->candidacies[group].told
                                           ? action->revision
                                           : program->candidacies[group].told;
    if (action->kind == CLIENT_DO_CHANGE) {
        testbed_see(testbed, SESSION_SIGHT_CHANGES);
        session_referee_sees(testbed->referee, program->index, group, action->change);
        campaign_change(program, action->change);
        return;
    }
    if (action->kind == CLIENT_DO_GAP)
        testbed_see(testbed, SESSION_SIGHT_GAPS);
    if (action->status == GAVEL_OK)
        session_referee_watches(testbed->referee, program->index, group, action->revision,
                                action->kind == CLIENT_DO_GAP);
    program->candidacies[group].is_looking = false; /* what was missed is seen by looking */
    pending_ask(program, PENDING_LOOK, group);
}

static void carry_out(struct program *program, const struct client_action *action)
{
    switch (action->kind) {
    case CLIENT_DO_CONNECT:
        connection_dial(program, action->which);
        break;
    case CLIENT_DO_DISCONNECT:
        connection_drop(program);
        break;
    case CLIENT_DO_SEND:
        if (program->is_taking && action->frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE)
            testbed_see(program->testbed, SESSION_SIGHT_OVERDUE);
        connection_send_up(program, action->frame);
        break;
    case CLIENT_DO_RESULT:
        pending_result(program, action);
        break;
    case CLIENT_DO_ANSWER:
        pending_answer(program, action);
        break;
    case CLIENT_DO_CHANGE:
    case CLIENT_DO_WATCHING:
    case CLIENT_DO_GAP:
        take_watch(program, action);
        break;
    case CLIENT_DO_DEADLINE:
        deadline(program, action->at);
        break;
    case CLIENT_DO_SESSION_LOST:
        TRACE(program->testbed->cluster, NULL, "%s has lost its session", program->label);
        campaign_session_lost(program);
        break;
    case CLIENT_DO_CLOSED:
        break;
    }
}

/* What comes out is carried out in order; what that asks for waits until then. */
void program_step(struct program *program, struct client_event *event)
{
    struct testbed *testbed = program->testbed;
    const struct client_actions *actions;
    struct client_action copies[160];
    size_t count;
    uint64_t life = program->life;

    event->now = program_clock(program);
    actions = client_step(program->client, event);
    /* Frames that were to be sent live until the next step, so they go first. */
    count = 0;
    for (size_t i = 0; i < actions->count; i++) {
        const struct client_action *action = &actions->items[i];

        if (action->kind == CLIENT_DO_SEND || action->kind == CLIENT_DO_CONNECT ||
            action->kind == CLIENT_DO_DISCONNECT)
            carry_out(program, action);
        else if (count < sizeof copies / sizeof *copies)
            copies[count++] = *action;
        else
            ASSERT(!"a step has more actions than there is room for");
    }
    for (size_t i = 0; i < count && program->life == life; i++)
        carry_out(program, &copies[i]);
    if (program->life != life)
        return;
    if (client_state(program->client) == CLIENT_UP && program->up_since == 0)
        program->up_since = testbed->cluster->now;
    else if (client_state(program->client) != CLIENT_UP)
        program->up_since = 0;
    if (client_state(program->client) == CLIENT_CLOSED)
        program_kill(program, "has closed its session, and ends");
    else
        arm(program);
}

/* ---- life ---- */

static int64_t draw_rate(struct testbed *testbed)
{
    int64_t half = (int64_t)testbed->profile.cluster.worst.drift_ppm * 1000 / 2 - 1;
    unsigned extreme = testbed_below(testbed, TESTBED_STREAM_PROGRAM, 3);
    int64_t rate = testbed_between(testbed, TESTBED_STREAM_PROGRAM, -half, half);

    if (half <= 0 || !(testbed->profile.faults & CLIENT_FAULT_BIT(CLIENT_FAULT_CLIENT_RATE)))
        return 0;
    return extreme == 0 ? half : extreme == 1 ? -half : rate;
}

static void watch_groups(struct program *program)
{
    for (unsigned group = 0; group < program->testbed->profile.groups; group++) {
        struct client_event event = {.kind = CLIENT_WATCH};

        event.watch.watch = group + 1;
        event.watch.group = testbed_group_name(group);
        event.watch.prefix = "";
        event.watch.is_of_session = false;
        event.watch.after_revision = 0;
        program_step(program, &event);
    }
}

/* Half of them have a session from the beginning. The others ask for one later; most of these are paced. */
static void plan_opening(struct program *program)
{
    struct testbed *testbed = program->testbed;
    bool is_late = testbed_chance(testbed, TESTBED_STREAM_PACE, 500);
    bool is_at_once = testbed_chance(testbed, TESTBED_STREAM_PACE, 300);
    bool is_paced = testbed_chance(testbed, TESTBED_STREAM_PACE, 700);
    gavel_ns delay = testbed_length(testbed, TESTBED_STREAM_PACE, NS_PER_MS, NS_PER_S);

    if (!is_late)
        return;
    program->open.is_paced = is_paced;
    program->open_at = program_clock(program) + (is_at_once ? 0 : delay);
}

void program_start(struct testbed *testbed, struct program *program)
{
    unsigned index = program->index;
    uint64_t life = program->life;
    const struct program_profile *profile = &testbed->profile.program[index];
    gavel_ns ttl = ns_from_ms(profile->ttl_ms);
    uint64_t session = prng_next(&testbed->streams[TESTBED_STREAM_PROGRAM]) | 1;
    struct client_settings settings = {
        .drift_ppm = 1000, /* the nodes tell if it is more */
        .connect_timeout = ttl / 3,
        .silence = ttl / 2,
        .retry_min = 2 * NS_PER_MS,
        .retry_max = 100 * NS_PER_MS,
        .address_count = testbed->profile.cluster.nodes,
        .session = session,
        .seed = prng_next(&testbed->streams[TESTBED_STREAM_PROGRAM]),
        .name = "test",
        .program = "gavel-sim",
    };
    enum gavel_status status;

    if (program->is_alive)
        return;
    *program = (struct program){.testbed = testbed, .index = index, .life = life + 1, .timer_at = NEVER};
    (void)snprintf(program->label, sizeof program->label, "%c", (char)('P' + index)); /* they fit */
    (void)snprintf(program->id, sizeof program->id, "c%u", index * 5 % 8);            /* not as they join */
    program->is_alive = true;
    program->pid = ++testbed->pids;
    program->clock.rate_ppb = draw_rate(testbed);
    program->clock.offset = testbed_between(testbed, TESTBED_STREAM_PROGRAM, NS_PER_S, 1000000 * NS_PER_S);
    program->tokens = (uint64_t)program->pid << 32;
    settings.process = (struct table_process){.pid = program->pid};
    (void)snprintf(settings.process.boot_id, sizeof settings.process.boot_id, "%s", program_boot_id(program));
    for (unsigned group = 0; group < GROUPS_MAX; group++) {
        program->candidacies[group].priority = (int32_t)testbed_below(testbed, TESTBED_STREAM_PROGRAM, 3);
        if (testbed_chance(testbed, TESTBED_STREAM_PROGRAM, 250))
            program->candidacies[group].patience =
                testbed_between(testbed, TESTBED_STREAM_PROGRAM, NS_PER_MS, 600 * NS_PER_MS);
        program->candidacies[group].is_patient = program->candidacies[group].patience > 0;
        memcpy(program->candidacies[group].own.id, program->id, sizeof program->id);
    }
    program->open = (struct client_open){
        .ttl_ms = profile->ttl_ms, .silence = ttl / 2, .session = session, .process = settings.process};
    plan_opening(program);
    if (program->open_at == 0)
        settings.ttl_ms = profile->ttl_ms;
    status = client_new(&settings, program_clock(program), &program->client);
    ASSERT(status == GAVEL_OK);
    session_referee_born(testbed->referee, index, program->pid);
    TRACE(testbed->cluster, NULL, "%s starts, process %d", program->label, (int)program->pid);
    testbed_push(testbed, testbed->cluster->now, TESTBED_ACT, index, program->life);
    watch_groups(program);
}

void program_clear(struct program *program)
{
    client_free(program->client);
    program->client = NULL;
}

void program_kill(struct program *program, const char *why)
{
    struct testbed *testbed = program->testbed;
    unsigned machine = testbed->profile.program[program->index].machine;
    gavel_ns delay = testbed_length(testbed, TESTBED_STREAM_PROGRAM, NS_PER_MS, 300 * NS_PER_MS);

    if (!program->is_alive)
        return;
    TRACE(testbed->cluster, NULL, "%s %s", program->label, why);
    campaign_stop_all(program);
    program->is_alive = false;
    program->life++;
    connection_program_died(program);
    session_referee_died(testbed->referee, program->index, program->pid);
    if (machine < SLOTS_MAX && host_is_up(&testbed->cluster->hosts[machine]))
        testbed_push(testbed, testbed->cluster->now + delay, TESTBED_DEATH, machine, (uint64_t)program->pid);
    delay = testbed_length(testbed, TESTBED_STREAM_PROGRAM, NS_PER_MS, 2 * NS_PER_S);
    testbed_push(testbed, testbed->cluster->now + delay, TESTBED_START, program->index, program->life);
}

void program_freeze(struct program *program, gavel_ns length)
{
    struct testbed *testbed = program->testbed;

    if (!program->is_alive || program_is_frozen(program))
        return;
    TRACE(testbed->cluster, NULL, "%s is stopped for %.3f s", program->label, (double)length / 1e9);
    program->frozen_until = testbed->cluster->now + length;
}

void program_resume(struct program *program)
{
    struct testbed *testbed = program->testbed;

    if (!program->is_alive || !program_is_frozen(program))
        return;
    TRACE(testbed->cluster, NULL, "%s runs again", program->label);
    heap_hurry(&testbed->cluster->heap, 0, program->frozen_until, testbed->cluster->now);
    program->frozen_until = 0;
}

void program_hang(struct program *program, gavel_ns length)
{
    struct testbed *testbed = program->testbed;

    if (!program->is_alive || program->is_hanging || !program->open.is_paced)
        return;
    TRACE(testbed->cluster, NULL, "%s hangs for %.3f s", program->label, (double)length / 1e9);
    program->is_hanging = true;
    program->hangs_since = testbed->cluster->now;
    program->hangs_until = testbed->cluster->now + length;
    testbed_push(testbed, program->hangs_until, TESTBED_TAKE, program->index, program->life);
}

void program_recover(struct program *program)
{
    struct testbed *testbed = program->testbed;
    bool is_for_good = testbed_chance(testbed, TESTBED_STREAM_PACE, 300);

    if (!program->is_alive || !program->open.is_paced ||
        !(testbed->profile.faults & CLIENT_FAULT_BIT(CLIENT_FAULT_FREEZE)))
        return;
    program->hangs_until = testbed->cluster->now;
    if (is_for_good) {
        TRACE(testbed->cluster, NULL, "%s hangs for good", program->label);
        program->is_hanging = program->is_hanging_for_good = true;
        program->hangs_since = testbed->cluster->now;
    } else if (program->is_hanging) {
        testbed_push(testbed, testbed->cluster->now, TESTBED_TAKE, program->index, program->life);
    }
}

/* Unless it hangs: then it does so when that is over. */
static void take(struct program *program)
{
    struct testbed *testbed = program->testbed;
    struct client_event event = {.kind = CLIENT_TAKEN};
    uint64_t life = program->life;

    if (program->is_hanging_for_good || testbed->cluster->now < program->hangs_until)
        return;
    if (program->is_hanging && session_referee_has_expired(testbed->referee, client_session(program->client)))
        testbed_see(testbed, SESSION_SIGHT_HUNG);
    program->is_hanging = false;
    if (!program->is_untaken)
        return;
    program->is_untaken = false;
    program->is_taking = true;
    program_step(program, &event);
    if (program->life == life)
        program->is_taking = false;
}

static void timer(struct program *program, uint64_t number)
{
    struct testbed *testbed = program->testbed;
    struct client_event event = {.kind = CLIENT_TIMER};

    if (number != program->timer)
        return;
    program->timer_at = NEVER;
    if (program_clock(program) < client_wake_at(program->client)) {
        arm(program);
        return;
    }
    program->wakes = testbed->cluster->now == program->woken_at ? program->wakes + 1 : 0;
    program->woken_at = testbed->cluster->now;
    if (program->wakes > WAKES_MAX)
        session_referee_stuck(testbed->referee, program->label);
    else
        program_step(program, &event);
    if (program->is_alive)
        pending_check(program);
}

static void open_session(struct program *program)
{
    struct client_event event = {.kind = CLIENT_OPEN, .open = program->open};

    TRACE(program->testbed->cluster, NULL, "%s asks for a session%s", program->label,
          program->open.is_paced ? ", which is paced" : "");
    if (client_state(program->client) == CLIENT_UP)
        testbed_see(program->testbed, SESSION_SIGHT_LATER);
    program->open_at = 0;
    program_step(program, &event);
}

/* Until it has asked for a session it only looks. */
static void look(struct program *program)
{
    struct testbed *testbed = program->testbed;

    for (unsigned group = 0; group < testbed->profile.groups; group++)
        if (testbed_chance(testbed, TESTBED_STREAM_PACE, 500))
            pending_ask(program, PENDING_LOOK, group);
}

static void act(struct program *program)
{
    struct testbed *testbed = program->testbed;
    const struct program_profile *profile = &testbed->profile.program[program->index];
    uint64_t life = program->life;
    gavel_ns every = profile->act_every;

    testbed_push(testbed,
                 testbed->cluster->now +
                     testbed_between(testbed, TESTBED_STREAM_PROGRAM, every / 4, 2 * every),
                 TESTBED_ACT, program->index, program->life);
    if (program->is_hanging)
        return;
    if (program->open_at != 0 && (testbed->is_healed || program_clock(program) >= program->open_at))
        open_session(program);
    else if (program->open_at != 0)
        look(program);
    if (program->open_at != 0)
        return;
    for (unsigned group = 0; group < testbed->profile.groups && program->life == life; group++) {
        if (profile->roles[group] == ROLE_CAMPAIGN)
            campaign_act(program, group);
        else if (profile->roles[group] == ROLE_LEASE)
            lease_act(program, group);
    }
}

void program_take(struct testbed *testbed, const struct event *event)
{
    struct program *program = &testbed->programs[event->slot];
    struct event deferred;

    if (event->kind == TESTBED_START) {
        if (event->number == program->life && !program->is_alive) {
            program_clear(program);
            program_start(testbed, program);
        }
        return;
    }
    if (!program->is_alive)
        return;
    if (program_is_frozen(program)) {
        deferred = *event;
        testbed_push(testbed, program->frozen_until, (enum testbed_event)deferred.kind, deferred.slot,
                     deferred.number);
        return;
    }
    if (event->kind == TESTBED_CLIENT_TIMER)
        timer(program, event->number);
    else if (event->number == program->life && event->kind == TESTBED_TAKE)
        take(program);
    else if (event->number == program->life)
        act(program);
}
