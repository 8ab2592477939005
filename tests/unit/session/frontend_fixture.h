/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A frontend over a real table and a tiny log: what is proposed is applied when
 * the test says so; time is passed in.
 */
#ifndef UNIT_FRONTEND_FIXTURE_H
#define UNIT_FRONTEND_FIXTURE_H

#include "core/session/frontend.h"
#include "wire/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DRIFT_PPM 1000
#define LOG_MAX 8192
#define REPLIES_MAX 8192
#define OPS_MAX 2048
#define MS(n) ((n)*NS_PER_MS)

struct any_op {
    Gavel__Op op;
    Gavel__Process process;
    union {
        Gavel__OpenSession open;
        Gavel__CloseSession close;
        Gavel__Campaign campaign;
        Gavel__Withdraw withdraw;
        Gavel__Claim claim;
        Gavel__Renew renew;
        Gavel__Release release;
        Gavel__Wish wish;
        Gavel__Reopen reopen;
        Gavel__Register registration;
        Gavel__Leave leave;
        Gavel__PutNote put;
        Gavel__DeleteNote delete_note;
        Gavel__Lapse lapse;
        Gavel__Died died;
        Gavel__RemoveGroup remove;
    };
};

struct fixture {
    struct table table;
    struct frontend frontend;
    gavel_ns now;
    int64_t wall_ms;
    bool is_working;
    uint64_t term;
    struct {
        uint8_t *bytes;
        size_t size;
        uint64_t term;
    } log[LOG_MAX];
    size_t log_count;
    size_t proposals;
    size_t applied;
    enum gavel_status propose_status;
    bool closes_on_propose;
    Gavel__ClientFrame *replies[REPLIES_MAX];
    struct frontend_ticket tickets[REPLIES_MAX];
    size_t reply_count;
    uint64_t tags;
    struct any_op ops[OPS_MAX];
    size_t op_count;
};

int fixture_setup(void **state); /* the frontend is open in term 1, at 1000 s */
int fixture_teardown(void **state);

/* Another node leads: the same table, a new term, nothing heard. */
void fixture_change_leader(struct fixture *f);

/* Operations, good until the test ends. */
Gavel__Op *op_open(struct fixture *f, uint64_t session, uint32_t ttl_ms);
Gavel__Op *op_close(struct fixture *f, uint64_t session);
Gavel__Op *op_campaign(struct fixture *f, const char *group, const char *id);
Gavel__Op *op_withdraw(struct fixture *f, const char *group);
Gavel__Op *op_died(struct fixture *f, const char *group, uint64_t epoch, int32_t pid);
Gavel__Op *op_claim(struct fixture *f, const char *group, const char *holder, uint64_t nonce,
                    uint64_t version);
Gavel__Op *op_renew(struct fixture *f, const char *group, const char *holder, uint64_t nonce);
Gavel__Op *op_release(struct fixture *f, const char *group, const char *holder, uint64_t nonce);
Gavel__Op *op_wish(struct fixture *f, const char *group, const char *successor);
Gavel__Op *op_leave(struct fixture *f, const char *group, const char *id, uint64_t instance);
Gavel__Op *op_register(struct fixture *f, const char *group, const char *id, uint64_t instance,
                       uint64_t beats);
Gavel__Op *op_remove(struct fixture *f, const char *group, bool is_forced);
Gavel__Op *op_put(struct fixture *f, const char *group, const char *key, const char *value);
Gavel__Op *op_delete(struct fixture *f, const char *group, const char *key);

/* Hands a request in; flush and commit are up to the test. */
/* A copy of the frame arrives. */
void take_frame(struct fixture *f, uint64_t tag, const Gavel__ClientFrame *frame);
void send_request(struct fixture *f, uint64_t session, uint64_t id, size_t count, Gavel__Op *const *ops);
/* Takes out what was answered; whoever calls the frontend by itself does this. */
void collect(struct fixture *f);
/* Proposes what is in line, and collects; applies what is in the log. */
void flush(struct fixture *f);
void commit(struct fixture *f);
void commit_one(struct fixture *f);
/* All of it, for one operation or several; the reply is good until the test ends. */
const Gavel__Reply *request(struct fixture *f, uint64_t session, uint64_t id, Gavel__Op *op);
const Gavel__Reply *request_all(struct fixture *f, uint64_t session, uint64_t id, size_t count,
                                Gavel__Op *const *ops);
/* The same, and it succeeds: its only result. */
const Gavel__OpResult *must(struct fixture *f, uint64_t session, uint64_t id, Gavel__Op *op);

const Gavel__Reply *last_reply(const struct fixture *f);
const Gavel__Kept *keep_alive(struct fixture *f, uint64_t session);
/* Time goes on, with ticks close to each other and one at its end; what they propose is in the log. */
void run_until(struct fixture *f, gavel_ns until);
struct table_group *group_of(struct fixture *f, const char *name);
/* The command of an entry, from 0 on; freed by the caller with gavel__command__free_unpacked(). */
Gavel__Command *command_of(const struct fixture *f, size_t at);

#endif
