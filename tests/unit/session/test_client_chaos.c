/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Anything in any order: a node that answers, lies, repeats itself or says
 * nothing, connections that come and go. Whatever happens, each submit and each
 * ask has one outcome, changes come once and in order, the deadline of a
 * session never goes back, and the client never keeps its caller busy. Some
 * have their session later, and take its deadlines when they like: nothing is
 * kept before they do.
 */

#include "scripted.h"

#include "allocator.h"
#include "base/prng.h"

#include <string.h>

#define TOKENS 4096
#define STEPS 3000

struct chaos {
    struct scripted s;
    struct prng prng;
    uint8_t asked[TOKENS];
    uint64_t tokens;
    size_t done;
    gavel_ns deadline;
    uint64_t number;     /* of the session that has it; 0: none */
    uint64_t number_max; /* of all sessions so far */
    bool is_late;        /* its session is asked for some time */
    bool is_paced;
    bool is_untaken;
    size_t waits;     /* deadlines that were taken after their keep-alive was due */
    uint64_t seen;    /* revision of the newest change of the watch */
    uint64_t tags[8]; /* the newest that the client has sent, of any kind */
    Gavel__ClientFrame__WhatCase kinds[8];
    size_t ops[8];
    size_t sent;
    bool is_closed;
    size_t kinds_seen[CLIENT_DO_CLOSED + 1];
};

static void note_sent(struct chaos *chaos, const Gavel__ClientFrame *frame)
{
    size_t at = chaos->sent % 8;

    switch (frame->what_case) {
    case GAVEL__CLIENT_FRAME__WHAT_REQUEST:
        chaos->tags[at] = frame->request->tag;
        chaos->ops[at] = frame->request->n_ops;
        break;
    case GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE:
        assert_false(chaos->is_paced && chaos->is_untaken);
        chaos->tags[at] = frame->keep_alive->tag;
        break;
    case GAVEL__CLIENT_FRAME__WHAT_ASK:
        chaos->tags[at] = frame->ask->tag;
        break;
    case GAVEL__CLIENT_FRAME__WHAT_WATCH:
        chaos->tags[at] = frame->watch->watch;
        break;
    default:
        return;
    }
    chaos->kinds[at] = frame->what_case;
    chaos->sent++;
}

static void outcome(struct chaos *chaos, uint64_t token)
{
    assert_true(token < chaos->tokens);
    assert_int_equal(chaos->asked[token], 1);
    chaos->asked[token] = 2;
    chaos->done++;
}

static void take_deadline(struct chaos *chaos, const struct client_action *action)
{
    assert_int_not_equal(action->number, 0);
    assert_true(action->at == 0 || action->at > chaos->deadline);
    assert_false(chaos->is_paced && chaos->is_untaken && action->at != 0);
    if (chaos->number == 0) { /* another session */
        assert_true(action->number > chaos->number_max);
        chaos->number_max = action->number;
    } else {
        assert_int_equal(action->number, chaos->number);
    }
    chaos->deadline = action->at;
    chaos->number = action->at != 0 ? action->number : 0;
    chaos->is_untaken = action->at != 0;
}

static void look(struct chaos *chaos)
{
    for (size_t i = 0; i < chaos->s.actions->count; i++) {
        const struct client_action *action = &chaos->s.actions->items[i];

        assert_false(chaos->is_closed && action->kind != CLIENT_DO_RESULT &&
                     action->kind != CLIENT_DO_ANSWER);
        chaos->kinds_seen[action->kind]++;
        switch (action->kind) {
        /* What was asked before is asked again; now and then it is answered all the same. */
        case CLIENT_DO_CONNECT:
            if (!prng_chance(&chaos->prng, 50))
                memset(chaos->kinds, 0, sizeof chaos->kinds);
            break;
        case CLIENT_DO_SEND:
            note_sent(chaos, action->frame);
            break;
        case CLIENT_DO_RESULT:
        case CLIENT_DO_ANSWER:
            outcome(chaos, action->token);
            break;
        case CLIENT_DO_CHANGE:
            assert_true(action->change->revision > chaos->seen);
            chaos->seen = action->change->revision;
            break;
        case CLIENT_DO_GAP:
            chaos->seen = action->revision > chaos->seen ? action->revision : chaos->seen;
            break;
        case CLIENT_DO_DEADLINE:
            take_deadline(chaos, action);
            break;
        case CLIENT_DO_SESSION_LOST:
            assert_int_equal(action->number, chaos->number);
            break;
        case CLIENT_DO_CLOSED:
            chaos->is_closed = true;
            break;
        default:
            break;
        }
    }
    assert_int_equal(client_deadline(chaos->s.client), chaos->deadline);
}

/* An answer to something that was asked, or to nothing. */
static void answer(struct chaos *chaos)
{
    static const enum gavel_status statuses[] = {GAVEL_OK,
                                                 GAVEL_OK,
                                                 GAVEL_OK,
                                                 GAVEL_ERR_NOT_LEADER,
                                                 GAVEL_ERR_STORE_UNAVAILABLE,
                                                 GAVEL_ERR_SESSION_GONE,
                                                 GAVEL_ERR_INVALID,
                                                 GAVEL_ERR_FORGOTTEN};
    size_t at = (size_t)prng_below(&chaos->prng, 8);
    enum gavel_status status = statuses[prng_below(&chaos->prng, 8)];
    uint64_t tag = chaos->tags[at] + (prng_chance(&chaos->prng, 5) ? prng_below(&chaos->prng, 50) : 0);
    uint64_t revision = prng_below(&chaos->prng, 40) + chaos->seen;
    uint64_t changes[] = {revision + 1, revision + 1 + prng_below(&chaos->prng, 20), 0};

    switch (chaos->kinds[at]) {
    case GAVEL__CLIENT_FRAME__WHAT_REQUEST:
        scripted_reply(&chaos->s, tag, status,
                       status == GAVEL_OK && prng_chance(&chaos->prng, 980) ? chaos->ops[at] : 0);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE:
        scripted_kept(&chaos->s, tag, status,
                      prng_chance(&chaos->prng, 100) ? client_session(chaos->s.client) : 0);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_ASK:
        scripted_answer(&chaos->s, tag, status);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_WATCH:
        if (status == GAVEL_OK)
            scripted_changes(&chaos->s, tag, prng_chance(&chaos->prng, 500) ? revision : changes[1],
                             prng_chance(&chaos->prng, 300) ? NULL : changes);
        else
            scripted_ended(&chaos->s, tag, status, revision);
        break;
    default:
        scripted_event(&chaos->s, CLIENT_TIMER);
        break;
    }
}

static void open_late(struct chaos *chaos)
{
    struct client_open open = {.ttl_ms = TTL_MS, .session = SESSION, .is_paced = chaos->is_paced};

    if (prng_chance(&chaos->prng, 500))
        open.silence = prng_between(&chaos->prng, NS_PER_MS, NS_PER_S);
    chaos->is_late = false;
    scripted_open(&chaos->s, &open);
    look(chaos);
}

/* At once, or much later. */
static void take(struct chaos *chaos)
{
    bool was_untaken = chaos->is_untaken;

    chaos->is_untaken = false;
    scripted_event(&chaos->s, CLIENT_TAKEN);
    for (size_t i = 0; i < chaos->s.actions->count; i++)
        if (chaos->s.actions->items[i].kind == CLIENT_DO_SEND && was_untaken)
            chaos->waits +=
                chaos->s.actions->items[i].frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE;
    look(chaos);
}

static void one_step(struct chaos *chaos)
{
    struct scripted *s = &chaos->s;
    gavel_ns limit =
        prng_chance(&chaos->prng, 500) ? NEVER : s->now + prng_between(&chaos->prng, 1, NS_PER_S);

    if (chaos->is_late && prng_chance(&chaos->prng, 10))
        open_late(chaos);
    if (chaos->is_paced && prng_chance(&chaos->prng, 100))
        take(chaos);
    switch (prng_below(&chaos->prng, 12)) {
    case 0:
        if (chaos->tokens < TOKENS) {
            chaos->asked[chaos->tokens] = 1;
            scripted_submit(s, chaos->tokens++, prng_below(&chaos->prng, 4), 10, limit);
            break;
        } /* fall through */
    case 1:
        if (chaos->tokens < TOKENS) {
            chaos->asked[chaos->tokens] = 1;
            scripted_ask(s, chaos->tokens++, limit);
            break;
        } /* fall through */
    case 2:
        scripted_event(s, prng_chance(&chaos->prng, 100) ? CLIENT_LOST : CLIENT_TIMER);
        break;
    case 3:
    case 4:
        s->now += prng_between(&chaos->prng, 0, 100 * NS_PER_MS);
        scripted_event(s, CLIENT_TIMER);
        break;
    case 5:
        scripted_event(s, CLIENT_CONNECTED);
        break;
    case 6:
        if (client_state(s->client) == CLIENT_GREETING)
            scripted_welcome(s, prng_chance(&chaos->prng, 20) ? "another" : "test", 1);
        else
            scripted_event(s, CLIENT_TIMER);
        break;
    default:
        answer(chaos);
        break;
    }
    look(chaos);
}

/* All that is left ends. */
static void finish(struct chaos *chaos)
{
    struct scripted *s = &chaos->s;
    gavel_ns limit = s->now + 2 * TTL_MS * NS_PER_MS;
    size_t steps = 0;

    scripted_event(s, CLIENT_CLOSE);
    look(chaos);
    while (!chaos->is_closed) {
        assert_true(client_wake_at(s->client) <= limit);
        s->now = ns_max(s->now, client_wake_at(s->client));
        scripted_event(s, CLIENT_TIMER);
        look(chaos);
        assert_true(++steps < 2000);
    }
    assert_int_equal(chaos->done, chaos->tokens);
    assert_int_equal(client_wake_at(s->client), NEVER);
}

/* Memory runs out somewhere in about every second step. */
static void starve(void *user)
{
    struct chaos *chaos = user;

    allocator.fail_after = prng_below(&chaos->prng, 12);
}

static void feed(void *user)
{
    (void)user;
    allocator.fail_after = UINT64_MAX;
}

static void run(bool is_starved, bool is_late)
{
    size_t seen[CLIENT_DO_CLOSED + 1] = {0};
    size_t waits = 0;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct client_settings settings = scripted_settings(1 + seed % 4);
        struct chaos chaos = {.is_late = is_late, .is_paced = is_late && seed % 2 == 0};

        settings.seed = seed;
        if (is_late)
            settings.ttl_ms = 0;
        settings.near_count = seed % 2;
        prng_seed(&chaos.prng, seed);
        scripted_begin(&chaos.s, &settings);
        scripted_watch(&chaos.s, 1, "g", seed % 3);
        if (is_starved) {
            chaos.s.before = starve;
            chaos.s.after = feed;
            chaos.s.user = &chaos;
        }
        for (size_t i = 0; i < STEPS; i++)
            one_step(&chaos);
        finish(&chaos);
        scripted_end(&chaos.s);
        for (size_t i = 0; i <= CLIENT_DO_CLOSED; i++)
            seen[i] += chaos.kinds_seen[i];
        waits += chaos.waits;
    }
    assert_true(!is_late || waits >= 10);
    for (size_t i = 0; i <= CLIENT_DO_CLOSED; i++) /* else nothing was shown */
        assert_true(seen[i] >= 10);
}

static void test_whatever_a_node_says_each_call_has_one_outcome(void **state)
{
    (void)state;
    run(false, false);
}

static void test_each_call_has_one_outcome_also_without_memory(void **state)
{
    (void)state;
    run(true, false);
}

static void test_a_session_that_is_asked_for_late_is_kept_as_it_is_taken(void **state)
{
    (void)state;
    run(false, true);
    run(true, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whatever_a_node_says_each_call_has_one_outcome),
        cmocka_unit_test(test_each_call_has_one_outcome_also_without_memory),
        cmocka_unit_test(test_a_session_that_is_asked_for_late_is_kept_as_it_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
