/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A table to try operations on: each function applies one command of one
 * operation and returns the result. Sessions count their requests by
 * themselves.
 */
#ifndef UNIT_TABLE_FIXTURE_H
#define UNIT_TABLE_FIXTURE_H

#include "core/table/history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct table_fixture {
    struct table table;
    int64_t wall_ms;
    uint64_t generation;
    uint32_t version;          /* of the table, that commands name */
    uint64_t session_revision; /* likewise: which session is meant */
    bool is_in_need; /* memory runs out at every allocation of a command, before it is finally applied */
    struct table_result result; /* of the last operation */
    struct table_cursor cursor; /* of next_change() */
    Gavel__Change *change;      /* the last one that was read */
};

/* For setup and teardown of cmocka: *state is a struct table_fixture that keeps its history. */
int table_fixture_setup(void **state);
int table_fixture_teardown(void **state);

/* Applies a command of one op; id 0: the next of its session, if there is one. The status of the command as a
 * whole if that is not OK. */
enum gavel_status apply_op(struct table_fixture *fixture, uint64_t session, uint64_t id, Gavel__Op *op);
/* Of several. The results are handed over. */
enum gavel_status apply_ops(struct table_fixture *fixture, uint64_t session, uint64_t id, Gavel__Op **ops,
                            size_t count, struct table_result **ret_results, size_t *ret_count);

/* Messages have no const. */
char *mutable(const char *string);

enum gavel_status open_session(struct table_fixture *fixture, uint64_t session);
enum gavel_status close_session(struct table_fixture *fixture, uint64_t session, Gavel__Ending ending);
/* It leaves so many groups. */
enum gavel_status close_part(struct table_fixture *fixture, uint64_t session, Gavel__Ending ending,
                             uint32_t groups_max);
enum gavel_status campaign(struct table_fixture *fixture, uint64_t session, const char *group,
                           const char *id);
enum gavel_status campaign_with(struct table_fixture *fixture, uint64_t session, const char *group,
                                const char *id, int priority, Gavel__Policy policy, bool preempts);
enum gavel_status campaign_as(struct table_fixture *fixture, uint64_t session, Gavel__Campaign *message);
enum gavel_status withdraw(struct table_fixture *fixture, uint64_t session, const char *group, uint64_t epoch,
                           bool stays);
enum gavel_status withdraw_as(struct table_fixture *fixture, uint64_t session, Gavel__Withdraw *message);
/* The nonce of a holder is {nonce, ~nonce}. */
enum gavel_status claim(struct table_fixture *fixture, const char *group, const char *holder, uint64_t nonce,
                        uint64_t version, uint64_t epoch_at_least);
enum gavel_status renew(struct table_fixture *fixture, const char *group, const char *holder, uint64_t nonce,
                        uint64_t epoch, int64_t lease_ms);
enum gavel_status release(struct table_fixture *fixture, const char *group, const char *holder,
                          uint64_t nonce, uint64_t epoch, const char *successor, bool is_done);
enum gavel_status release_dead(struct table_fixture *fixture, const char *group, uint64_t epoch);
enum gavel_status wish(struct table_fixture *fixture, const char *group, uint64_t epoch,
                       const char *successor);
enum gavel_status wish_over(struct table_fixture *fixture, const char *group, uint64_t epoch);
enum gavel_status reopen(struct table_fixture *fixture, const char *group, uint64_t version);
enum gavel_status lapse(struct table_fixture *fixture, const char *group, uint64_t epoch);
enum gavel_status register_candidate(struct table_fixture *fixture, const char *group, const char *id,
                                     uint64_t instance, uint64_t replaces);
enum gavel_status leave(struct table_fixture *fixture, const char *group, const char *id, uint64_t instance);
/* expected UINT64_MAX: none. */
enum gavel_status put_note(struct table_fixture *fixture, const char *group, const char *key,
                           const char *value, uint64_t epoch, uint64_t expected);
enum gavel_status delete_note(struct table_fixture *fixture, const char *group, const char *key,
                              uint64_t epoch, uint64_t expected);

struct table_group *group_named(struct table_fixture *fixture, const char *name);
/* Fails unless this one leads the group, with a session or a lease; NULL: it is vacant. Returns its epoch. */
uint64_t assert_leader(struct table_fixture *fixture, const char *group, const char *holder);

/* The next change after the cursor, which must be of this kind and concern this group and holder. Lives until
 * the next. */
const Gavel__Change *next_change(struct table_fixture *fixture, Gavel__Change__Kind kind, const char *group,
                                 const char *holder);
void assert_no_change(struct table_fixture *fixture);

/* The same number and the same bytes. */
void assert_same_table(const struct table *a, const struct table *b);

#endif
