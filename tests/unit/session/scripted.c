/* SPDX-License-Identifier: Apache-2.0 */

#include "scripted.h"

#include <stdlib.h>
#include <string.h>

struct client_settings scripted_settings(size_t addresses)
{
    return (struct client_settings){
        .ttl_ms = TTL_MS,
        .drift_ppm = 1000,
        .address_count = addresses,
        .session = SESSION,
        .seed = 7,
        .name = "test",
        .program = "test 1",
    };
}

void scripted_begin(struct scripted *s, const struct client_settings *settings)
{
    *s = (struct scripted){.now = 1000 * NS_PER_S};
    assert_int_equal(client_new(settings, s->now, &s->client), GAVEL_OK);
    assert_int_equal(client_wake_at(s->client), s->now);
    scripted_event(s, CLIENT_TIMER);
    assert_int_equal(scripted_count(s, CLIENT_DO_CONNECT), 1);
}

void scripted_end(struct scripted *s) { client_free(s->client); }

static void step(struct scripted *s, struct client_event *event)
{
    event->now = s->now;
    if (s->before)
        s->before(s->user);
    s->actions = client_step(s->client, event);
    if (s->after)
        s->after(s->user);
}

void scripted_event(struct scripted *s, enum client_event_kind kind)
{
    struct client_event event = {.kind = kind};

    if (kind == CLIENT_LOST)
        event.reason = "the cable was cut";
    step(s, &event);
}

size_t scripted_pass(struct scripted *s, gavel_ns until)
{
    size_t steps = 0;

    while (client_wake_at(s->client) <= until) {
        s->now = ns_max(s->now, client_wake_at(s->client));
        scripted_event(s, CLIENT_TIMER);
        assert_true(++steps < 10000);
    }
    s->now = until;
    return steps;
}

void scripted_submit(struct scripted *s, uint64_t token, size_t count, size_t bytes, gavel_ns give_up_at)
{
    struct client_event event = {.kind = CLIENT_SUBMIT};
    Gavel__PutNote put;
    Gavel__Op op = GAVEL__OP__INIT;
    const Gavel__Op **ops = calloc(count + 1, sizeof *ops);
    uint8_t *value = calloc(1, bytes + 1);

    gavel__put_note__init(&put);
    assert_non_null(ops);
    assert_non_null(value);
    put.group = (char *)(uintptr_t) "g";
    put.key = (char *)(uintptr_t) "k";
    put.value.data = value;
    put.value.len = bytes;
    op.what_case = GAVEL__OP__WHAT_PUT_NOTE;
    op.put_note = &put;
    for (size_t i = 0; i < count; i++)
        ops[i] = &op;
    event.submit.token = token;
    event.submit.ops = ops;
    event.submit.count = count;
    event.submit.give_up_at = give_up_at;
    step(s, &event);
    free(ops);
    free(value);
}

void scripted_campaign(struct scripted *s, uint64_t token) { scripted_campaign_by(s, token, NEVER); }

void scripted_campaign_by(struct scripted *s, uint64_t token, gavel_ns give_up_at)
{
    struct client_event event = {.kind = CLIENT_SUBMIT};
    Gavel__Campaign campaign;
    Gavel__Op op = GAVEL__OP__INIT;
    const Gavel__Op *ops[] = {&op};

    gavel__campaign__init(&campaign);
    campaign.group = (char *)(uintptr_t) "g";
    campaign.id = (char *)(uintptr_t) "one";
    op.what_case = GAVEL__OP__WHAT_CAMPAIGN;
    op.campaign = &campaign;
    event.submit.token = token;
    event.submit.ops = ops;
    event.submit.count = 1;
    event.submit.give_up_at = give_up_at;
    step(s, &event);
}

void scripted_ask(struct scripted *s, uint64_t token, gavel_ns give_up_at)
{
    struct client_event event = {.kind = CLIENT_ASK};
    Gavel__Ask ask;

    gavel__ask__init(&ask);
    ask.kind = GAVEL__ASK__KIND__GROUP;
    ask.group = (char *)(uintptr_t) "g";
    event.ask.token = token;
    event.ask.ask = &ask;
    event.ask.give_up_at = give_up_at;
    step(s, &event);
}

void scripted_watch(struct scripted *s, uint64_t watch, const char *group, uint64_t after)
{
    struct client_event event = {.kind = CLIENT_WATCH};

    event.watch.watch = watch;
    event.watch.group = group;
    event.watch.after_revision = after;
    step(s, &event);
}

void scripted_open(struct scripted *s, const struct client_open *open)
{
    struct client_event event = {.kind = CLIENT_OPEN, .open = *open};

    step(s, &event);
}

void scripted_watch_session(struct scripted *s, uint64_t watch)
{
    struct client_event event = {.kind = CLIENT_WATCH};

    event.watch.watch = watch;
    event.watch.is_of_session = true;
    step(s, &event);
}

void scripted_frame(struct scripted *s, Gavel__ClientFrame *frame)
{
    struct client_event event = {.kind = CLIENT_RECEIVED};

    event.frame = frame;
    step(s, &event);
}

static void welcome_with(struct scripted *s, const char *cluster, uint32_t version, uint32_t drift_ppm)
{
    Gavel__ClientWelcome welcome;
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;

    gavel__client_welcome__init(&welcome);
    welcome.version = version;
    welcome.cluster = (char *)(uintptr_t)cluster;
    welcome.node = (char *)(uintptr_t) "n1";
    welcome.drift_ppm = drift_ppm;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_WELCOME;
    frame.welcome = &welcome;
    scripted_frame(s, &frame);
}

void scripted_welcome(struct scripted *s, const char *cluster, uint32_t version)
{
    welcome_with(s, cluster, version, 0);
}

void scripted_welcome_drift(struct scripted *s, uint32_t drift_ppm) { welcome_with(s, "test", 1, drift_ppm); }

/* The results of a reply are borrowed by the actions, so they stay. */
void scripted_reply(struct scripted *s, uint64_t tag, enum gavel_status status, size_t count)
{
    static Gavel__OpResult results[2 * TABLE_OPS_MAX];
    static Gavel__OpResult *pointers[2 * TABLE_OPS_MAX];
    Gavel__Reply reply;
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;

    gavel__reply__init(&reply);
    assert_true(count <= 2 * TABLE_OPS_MAX);
    for (size_t i = 0; i < count; i++) {
        gavel__op_result__init(&results[i]);
        results[i].revision = i + 1;
        results[i].session_revision = i == 0 ? s->session_revision : 0;
        pointers[i] = &results[i];
    }
    reply.tag = tag;
    reply.status = status;
    if (status != GAVEL_OK)
        reply.message = (char *)(uintptr_t) "so it is";
    reply.n_results = count;
    reply.results = pointers;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REPLY;
    frame.reply = &reply;
    scripted_frame(s, &frame);
}

void scripted_kept(struct scripted *s, uint64_t tag, enum gavel_status status, uint64_t gone)
{
    Gavel__Kept kept = GAVEL__KEPT__INIT;
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;

    kept.tag = tag;
    kept.status = status;
    kept.n_gone = gone != 0;
    kept.gone = &gone;
    kept.n_revisions = s->session_revision != 0;
    kept.revisions = &s->session_revision;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEPT;
    frame.kept = &kept;
    scripted_frame(s, &frame);
}

void scripted_answer(struct scripted *s, uint64_t tag, enum gavel_status status)
{
    Gavel__Answer answer;
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;

    gavel__answer__init(&answer);
    answer.tag = tag;
    answer.status = status;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ANSWER;
    frame.answer = &answer;
    scripted_frame(s, &frame);
}

/* The changes are borrowed by the actions, so they stay. */
void scripted_changes(struct scripted *s, uint64_t watch, uint64_t revision, const uint64_t *at)
{
    static Gavel__Change changes[16];
    static Gavel__Change *pointers[16];
    Gavel__Changes message = GAVEL__CHANGES__INIT;
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;

    for (; at && at[message.n_changes] != 0; message.n_changes++) {
        assert_true(message.n_changes < 16);
        gavel__change__init(&changes[message.n_changes]);
        changes[message.n_changes].revision = at[message.n_changes];
        pointers[message.n_changes] = &changes[message.n_changes];
    }
    message.watch = watch;
    message.revision = revision;
    message.changes = pointers;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_CHANGES;
    frame.changes = &message;
    scripted_frame(s, &frame);
}

void scripted_session_ended(struct scripted *s, uint64_t watch, uint64_t session, uint64_t revision)
{
    static Gavel__Change change;
    Gavel__Change *changes = &change;
    Gavel__Changes message = GAVEL__CHANGES__INIT;
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;

    gavel__change__init(&change);
    change.kind = GAVEL__CHANGE__KIND__SESSION_ENDED;
    change.revision = revision;
    change.session = session;
    message.watch = watch;
    message.n_changes = 1;
    message.changes = &changes;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_CHANGES;
    frame.changes = &message;
    scripted_frame(s, &frame);
}

void scripted_ended(struct scripted *s, uint64_t watch, enum gavel_status status, uint64_t revision)
{
    Gavel__WatchEnded ended;
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;

    gavel__watch_ended__init(&ended);
    ended.watch = watch;
    ended.status = status;
    ended.revision = revision;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_WATCH_ENDED;
    frame.watch_ended = &ended;
    scripted_frame(s, &frame);
}

void scripted_up(struct scripted *s)
{
    const Gavel__ClientFrame *open;

    scripted_event(s, CLIENT_CONNECTED);
    assert_non_null(scripted_sent(s, GAVEL__CLIENT_FRAME__WHAT_HELLO));
    assert_int_equal(client_state(s->client), CLIENT_GREETING);
    scripted_welcome(s, "test", 1);
    assert_int_equal(client_state(s->client), CLIENT_OPENING);
    assert_int_equal(client_deadline(s->client), 0);
    open = scripted_sent(s, GAVEL__CLIENT_FRAME__WHAT_REQUEST);
    assert_non_null(open);
    assert_int_equal(open->request->n_ops, 1);
    assert_int_equal(open->request->ops[0]->what_case, GAVEL__OP__WHAT_OPEN_SESSION);
    assert_int_equal(open->request->session, client_session(s->client));
    scripted_reply(s, open->request->tag, GAVEL_OK, 1);
    assert_int_equal(client_state(s->client), CLIENT_UP);
    assert_string_equal(client_trouble(s->client), "");
}

const struct client_action *scripted_find(const struct scripted *s, enum client_action_kind kind, size_t n)
{
    for (size_t i = 0; i < s->actions->count; i++) {
        if (s->actions->items[i].kind == kind && n-- == 0)
            return &s->actions->items[i];
    }
    return NULL;
}

size_t scripted_count(const struct scripted *s, enum client_action_kind kind)
{
    size_t count = 0;

    while (scripted_find(s, kind, count))
        count++;
    return count;
}

const Gavel__ClientFrame *scripted_sent(const struct scripted *s, Gavel__ClientFrame__WhatCase what)
{
    const Gavel__ClientFrame *found = NULL;

    for (size_t i = 0; i < scripted_count(s, CLIENT_DO_SEND); i++) {
        const Gavel__ClientFrame *frame = scripted_find(s, CLIENT_DO_SEND, i)->frame;

        if (frame->what_case != what)
            continue;
        assert_null(found);
        found = frame;
    }
    return found;
}

uint64_t scripted_tag(const struct scripted *s, Gavel__ClientFrame__WhatCase what)
{
    const Gavel__ClientFrame *frame = scripted_sent(s, what);

    assert_non_null(frame);
    switch (what) {
    case GAVEL__CLIENT_FRAME__WHAT_REQUEST:
        return frame->request->tag;
    case GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE:
        return frame->keep_alive->tag;
    case GAVEL__CLIENT_FRAME__WHAT_ASK:
        return frame->ask->tag;
    case GAVEL__CLIENT_FRAME__WHAT_WATCH:
        return frame->watch->watch;
    default:
        fail();
        return 0;
    }
}

void scripted_expect_dropped(const struct scripted *s, const char *trouble)
{
    assert_int_equal(scripted_count(s, CLIENT_DO_DISCONNECT), 1);
    assert_int_equal(client_state(s->client), CLIENT_AWAY);
    if (!strstr(client_trouble(s->client), trouble))
        fail_msg("the trouble is \"%s\", without \"%s\"", client_trouble(s->client), trouble);
}
