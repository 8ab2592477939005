/* SPDX-License-Identifier: Apache-2.0 */

/* A forwarder whose leader and clients are played by the tests: what it delivers and answers is kept. */
#ifndef UNIT_FORWARDER_FIXTURE_H
#define UNIT_FORWARDER_FIXTURE_H

#include "base/prng.h"
#include "core/session/forwarder.h"
#include "core/table/table.h"
#include "wire/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KEPT_MAX 20000
#define GONE_MAX 16
#define TAGS_MAX 4096

struct delivery {
    uint64_t node;
    uint64_t number;
    Gavel__ClientFrame__WhatCase what;
    uint64_t tag;
    size_t session_count;
};

struct answer {
    uint64_t client;
    uint64_t tag;
    Gavel__ClientFrame__WhatCase what;
    enum gavel_status status;
    char message[128];
    size_t gone_count;
    uint64_t gone[GONE_MAX];
    size_t revision_count;
    uint64_t revisions[GONE_MAX];
};

struct fixture {
    struct forwarder forwarder;
    gavel_ns now;
    bool is_unreachable;
    size_t room; /* for so many more */
    size_t delivered;
    struct delivery deliveries[KEPT_MAX];
    uint64_t revisions[GONE_MAX]; /* that the frontend tells of the sessions it keeps */
    size_t revision_count;        /* 0: it is one of before 0.7.0 */
    size_t answered;
    struct answer answers[KEPT_MAX];
    /* Writes without a session, by tag: the frontend has it, and has not refused it. */
    bool is_at_frontend[TAGS_MAX];
};

int set_up(void **state);
int tear_down(void **state);
void set_leader(struct fixture *f, uint64_t node, uint64_t term);
void take(struct fixture *f, uint64_t client, const Gavel__ClientFrame *frame);
void ask_write(struct fixture *f, uint64_t client, uint64_t tag, uint64_t session, uint32_t timeout_ms);
void ask_question(struct fixture *f, uint64_t client, uint64_t tag);
void keep_alive(struct fixture *f, uint64_t client, uint64_t tag, size_t count, uint64_t *sessions);
/* The frontend answers this delivery, whose tag is no longer in use. */
void reply_gone(struct fixture *f, struct delivery d, enum gavel_status status, size_t gone_count,
                uint64_t *gone);
void reply(struct fixture *f, struct delivery d, enum gavel_status status);
/* Time goes on, and the forwarder is woken whenever it wants to be. */
void pass(struct fixture *f, gavel_ns time);
void assert_answer(const struct fixture *f, size_t which, uint64_t client, uint64_t tag,
                   enum gavel_status status);

#endif
