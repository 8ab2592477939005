/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A client whose time, connection and node the test controls: it checks every
 * frame sent, and writes every answer by hand.
 */
#ifndef TESTS_SESSION_SCRIPTED_H
#define TESTS_SESSION_SCRIPTED_H

#include "core/session/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SESSION 0xABCDu
#define TTL_MS 2000

struct scripted {
    struct client *client;
    gavel_ns now;
    const struct client_actions *actions; /* of the newest step */
    uint64_t session_revision;            /* that the node tells; 0: one of before 0.7.0 */
    void (*before)(void *user);           /* each step; NULL */
    void (*after)(void *user);
    void *user;
};

void scripted_begin(struct scripted *s, const struct client_settings *settings);
void scripted_end(struct scripted *s);
struct client_settings scripted_settings(size_t addresses);

void scripted_event(struct scripted *s, enum client_event_kind kind);
/* Time goes on to the instant; what is due on the way is done. Returns how many steps that took. */
size_t scripted_pass(struct scripted *s, gavel_ns until);
void scripted_submit(struct scripted *s, uint64_t token, size_t ops, size_t bytes, gavel_ns give_up_at);
void scripted_campaign(struct scripted *s, uint64_t token); /* one operation, without a time limit */
void scripted_campaign_by(struct scripted *s, uint64_t token, gavel_ns give_up_at);
void scripted_ask(struct scripted *s, uint64_t token, gavel_ns give_up_at);
void scripted_watch(struct scripted *s, uint64_t watch, const char *group, uint64_t after);
void scripted_open(struct scripted *s, const struct client_open *open);
void scripted_watch_session(struct scripted *s, uint64_t watch);

/* From the node. */
void scripted_frame(struct scripted *s, Gavel__ClientFrame *frame);
void scripted_welcome(struct scripted *s, const char *cluster, uint32_t version);
void scripted_welcome_drift(struct scripted *s, uint32_t drift_ppm); /* of the cluster "test" */
void scripted_reply(struct scripted *s, uint64_t tag, enum gavel_status status, size_t results);
void scripted_kept(struct scripted *s, uint64_t tag, enum gavel_status status, uint64_t gone);
void scripted_answer(struct scripted *s, uint64_t tag, enum gavel_status status);
/* Revisions, each with part 0; 0 ends them. */
void scripted_changes(struct scripted *s, uint64_t watch, uint64_t revision, const uint64_t *changes);
void scripted_session_ended(struct scripted *s, uint64_t watch, uint64_t session, uint64_t revision);
void scripted_ended(struct scripted *s, uint64_t watch, enum gavel_status status, uint64_t revision);

/* From AWAY to UP: connected, welcome, session opened. */
void scripted_up(struct scripted *s);

/* The n-th action of that kind in the newest step; NULL if there are fewer. */
const struct client_action *scripted_find(const struct scripted *s, enum client_action_kind kind, size_t n);
size_t scripted_count(const struct scripted *s, enum client_action_kind kind);
/* The only frame of that kind in the newest step; NULL if there is none. */
const Gavel__ClientFrame *scripted_sent(const struct scripted *s, Gavel__ClientFrame__WhatCase what);
uint64_t scripted_tag(const struct scripted *s, Gavel__ClientFrame__WhatCase what);
/* The connection was dropped, and its trouble says so. */
void scripted_expect_dropped(const struct scripted *s, const char *trouble);

#endif
