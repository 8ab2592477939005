/* SPDX-License-Identifier: Apache-2.0 */

/* A candidate on a store with sessions, whose every answer the test gives. A millisecond passes per event. */
#ifndef TESTS_UNIT_CANDIDATE_SESSION_FIXTURE_H
#define TESTS_UNIT_CANDIDATE_SESSION_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "core/candidate/candidate.h"

#define TTL_MS 2000

struct fixture {
    struct candidate candidate;
    struct candidate_config config;
    struct candidate_actions actions;
    struct store_session session;
    gavel_ms now;
};

/* The preset "local", with what a test changes in f->config.settings before begin(). */
static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->config = (struct candidate_config){
        .group = "g", .id = "me", .eligible = true, .has_sessions = true, .seed = 1, .process = {.pid = 7}};
    assert_int_equal(gavel_settings_preset("local", &f->config.settings), GAVEL_OK);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;

    candidate_done(&f->candidate);
    free(f);
    return 0;
}

static inline void feed(struct fixture *f, struct candidate_event event)
{
    event.now = ns_from_ms(++f->now);
    event.session = f->session;
    candidate_step(&f->candidate, &event, &f->actions);
    for (size_t i = 0; i < f->actions.count; i++) { /* the store tells everybody itself */
        assert_int_not_equal(f->actions.items[i].kind, CANDIDATE_RING);
        assert_int_not_equal(f->actions.items[i].kind, CANDIDATE_RING_ONE);
    }
}

static inline void tick(struct fixture *f) { feed(f, (struct candidate_event){.kind = CANDIDATE_TICK}); }

/* A keep-alive that was sent now has been acknowledged: nobody tells the candidate. */
static inline void keep_alive(struct fixture *f) { f->session.deadline = ns_from_ms(f->now + TTL_MS); }

/* Lets time pass, with keep-alives and ticks. */
static inline void pass(struct fixture *f, gavel_ms ms)
{
    for (gavel_ms until = f->now + ms; f->now < until;) {
        keep_alive(f);
        tick(f);
    }
}

static inline void open_session(struct fixture *f, uint64_t number)
{
    if (f->session.number != 0)
        f->session.former_deadline = f->session.deadline;
    f->session.number = number;
    f->session.deadline = number ? ns_from_ms(f->now + TTL_MS) : 0;
}

static inline const struct candidate_call *pending(const struct fixture *f, enum store_op op)
{
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        if (f->candidate.calls[slot].is_pending && f->candidate.calls[slot].op == op)
            return &f->candidate.calls[slot];
    return NULL;
}

static inline void answer(struct fixture *f, enum store_op op, struct store_reply reply)
{
    const struct candidate_call *call = pending(f, op);

    if (!call)
        fail_msg("no %s is under way", store_op_name(op));
    feed(f, (struct candidate_event){.kind = CANDIDATE_REPLY, .reply = {.call = call->id, .reply = &reply}});
}

/* What the last step did; NULL: nothing of that kind. */
static inline const struct candidate_action *find(const struct fixture *f, enum candidate_action_kind kind)
{
    for (size_t i = 0; i < f->actions.count; i++)
        if (f->actions.items[i].kind == kind)
            return &f->actions.items[i];
    return NULL;
}

static inline const struct store_request *sent(const struct fixture *f, enum store_op op)
{
    for (size_t i = 0; i < f->actions.count; i++)
        if (f->actions.items[i].kind == CANDIDATE_CALL && f->actions.items[i].call.request.op == op)
            return &f->actions.items[i].call.request;
    return NULL;
}

/* Ticks until that operation goes out; the request of it. The answers to other calls are those of a store
 * where nothing changes. */
static inline struct store_request await(struct fixture *f, enum store_op op)
{
    for (int i = 0; i < 20000; i++) {
        if (sent(f, op))
            return *sent(f, op);
        keep_alive(f);
        tick(f);
    }
    fail_msg("no %s was sent", store_op_name(op));
    return (struct store_request){0};
}

/* The record with that version, as the store shows it in the session that is open. */
static inline struct store_reply shown(const struct fixture *f, uint64_t version, const char *holder,
                                       bool is_held)
{
    struct store_reply reply = {
        .found = version != 0,
        .is_ours = is_held && strcmp(holder, "me") == 0,
        .session = f->session.number,
        .revision = version,
        .record = {.epoch = version, .version = version, .lease_ms = TTL_MS, .held = is_held},
    };

    (void)strcpy(reply.record.holder, holder);
    return reply;
}

static inline void tell(struct fixture *f, struct store_reply shown_to_us)
{
    feed(f, (struct candidate_event){.kind = CANDIDATE_TOLD,
                                     .told = {.record = &shown_to_us.record,
                                              .is_found = shown_to_us.found,
                                              .is_ours = shown_to_us.is_ours,
                                              .revision = shown_to_us.revision}});
}

static inline void begin(struct fixture *f)
{
    assert_int_equal(candidate_init(&f->candidate, &f->config, NULL), GAVEL_OK);
    open_session(f, 1);
    feed(f, (struct candidate_event){.kind = CANDIDATE_START});
}

static inline void list_nobody(struct fixture *f)
{
    if (pending(f, STORE_CANDIDATES))
        answer(f, STORE_CANDIDATES, (struct store_reply){0});
}

/* Starts where "other" leads with epoch 5, and settles down. */
static inline void follow(struct fixture *f)
{
    begin(f);
    answer(f, STORE_HEARTBEAT, shown(f, 5, "other", true));
    answer(f, STORE_READ, shown(f, 5, "other", true));
    list_nobody(f);
    pass(f, 600);
    while (pending(f, STORE_READ) || pending(f, STORE_CANDIDATES)) {
        if (pending(f, STORE_READ))
            answer(f, STORE_READ, shown(f, 5, "other", true));
        list_nobody(f);
    }
    assert_int_equal(f->candidate.state, CANDIDATE_STANDBY);
}

/* Leads with epoch 7, in session 1. */
static inline void lead(struct fixture *f)
{
    begin(f);
    answer(f, STORE_READ, shown(f, 0, "", false));
    list_nobody(f);
    answer(f, STORE_HEARTBEAT, shown(f, 7, "me", true));
    assert_int_equal(f->candidate.state, CANDIDATE_LEADING);
    if (!pending(f, STORE_CANDIDATES))
        (void)await(f, STORE_CANDIDATES);
    list_nobody(f);
}

static inline void resign(struct fixture *f)
{
    feed(f, (struct candidate_event){.kind = CANDIDATE_RESIGN, .resign = {.successor = ""}});
    assert_int_equal(f->candidate.state, CANDIDATE_STOPPING);
}

static inline void work_stopped(struct fixture *f)
{
    feed(f, (struct candidate_event){.kind = CANDIDATE_WORK_STOPPED});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
