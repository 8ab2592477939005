/* SPDX-License-Identifier: Apache-2.0 */

/* What the gavel:// driver passes on of the cluster's words. */
#include "store/cluster/cluster.h"
#include "store/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct process_id self;
    char name[8];
    char boot_id[37];
    Gavel__Process process;
    Gavel__Group group;
    Gavel__Candidate candidate;
    Gavel__Group *groups[1];
    Gavel__Candidate *candidates[1];
    Gavel__Answer answer;
};

/* A group that a process of this machine leads, in which it is also registered. */
static void begin(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    memcpy(f->name, "web-1", 6);
    memcpy(f->boot_id, "11111111-2222-3333-4444-555555555555", 37);
    memcpy(f->self.boot_id, f->boot_id, sizeof f->self.boot_id);
    f->self.pid = 100;
    f->self.pid_ns = UINT64_C(0xEFFFFFFC); /* the first of a machine, whose boot id is its own */
    f->self.start_ticks = 7;
    gavel__process__init(&f->process);
    f->process.boot_id = f->boot_id;
    f->process.pid = 100;
    f->process.pid_ns = f->self.pid_ns;
    f->process.start_ticks = 7;
    gavel__candidate__init(&f->candidate);
    f->candidate.id = f->name;
    f->candidate.instance = 1;
    f->candidate.process = &f->process;
    gavel__group__init(&f->group);
    f->group.name = f->name;
    f->group.holder = f->name;
    f->group.version = 5;
    f->group.epoch = 5;
    f->group.is_held = true;
    f->group.process = &f->process;
    f->candidates[0] = &f->candidate;
    f->group.candidates = f->candidates;
    f->group.n_candidates = 1;
    f->groups[0] = &f->group;
    gavel__answer__init(&f->answer);
    f->answer.groups = f->groups;
    f->answer.n_groups = 1;
}

static int32_t pid_of_holder(const struct fixture *f)
{
    const struct store_request request = {.op = STORE_READ, .group = f->name};
    struct store_reply reply = {0};

    gavel_take_answer(&request, &f->answer, &f->self, false, &reply);
    assert_true(reply.found);
    assert_string_equal(reply.record.holder, "web-1");
    return reply.record.process.pid;
}

static void test_a_process_of_this_machine_is_passed_on(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    assert_int_equal(pid_of_holder(&f), 100);
}

/* For one machine another boot id means dead; for many it means elsewhere, and alive as far as anybody
 * knows. */
static void test_a_leader_on_another_machine_is_never_called_dead(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    f.boot_id[0] = '9';
    assert_int_equal(pid_of_holder(&f), 0);
    begin(&f);
    f.process.pid_ns++;
    assert_int_equal(pid_of_holder(&f), 0);
    begin(&f);
    f.self.pid = 0; /* we cannot see anybody */
    assert_int_equal(pid_of_holder(&f), 0);
}

static void test_a_candidate_on_another_machine_is_listed(void **state)
{
    const struct store_request request = {
        .op = STORE_CANDIDATES, .group = "web-1", .candidate_timeout_ms = 1000};
    struct store_reply reply = {0};
    struct fixture f;

    (void)state;
    begin(&f);
    f.boot_id[0] = '9';
    gavel_take_answer(&request, &f.answer, &f.self, false, &reply);
    assert_int_equal(reply.registration_count, 1);
    assert_int_equal(reply.silent_count, 0);
    store_reply_done(&reply);
}

/* Whoever lists all and is shown a part must know it, or an operator takes the rest for deleted. */
static void test_a_listing_that_is_full_says_that_there_are_more(void **state)
{
    const struct store_request request = {.op = STORE_GROUPS, .prefix = "web"};
    Gavel__Group **groups = calloc(STORE_GROUPS_MAX + 1, sizeof *groups);
    struct store_reply reply = {0};
    struct fixture f;
    Gavel__Ask ask;

    (void)state;
    assert_non_null(groups);
    begin(&f);
    for (size_t i = 0; i < STORE_GROUPS_MAX + 1; i++)
        groups[i] = &f.group;
    f.answer.groups = groups;
    f.answer.n_groups = STORE_GROUPS_MAX;
    gavel_take_answer(&request, &f.answer, &f.self, false, &reply);
    assert_int_equal(reply.group_count, STORE_GROUPS_MAX);
    assert_false(reply.has_more);
    store_reply_done(&reply);
    f.answer.n_groups = STORE_GROUPS_MAX + 1;
    gavel_take_answer(&request, &f.answer, &f.self, false, &reply);
    assert_int_equal(reply.group_count, STORE_GROUPS_MAX);
    assert_true(reply.has_more);
    store_reply_done(&reply);
    free(groups);
    gavel_draft_ask(&request, "web-1", &ask);
    assert_string_equal(ask.prefix, "web"); /* the cluster is asked for no others */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_process_of_this_machine_is_passed_on),
        cmocka_unit_test(test_a_leader_on_another_machine_is_never_called_dead),
        cmocka_unit_test(test_a_candidate_on_another_machine_is_listed),
        cmocka_unit_test(test_a_listing_that_is_full_says_that_there_are_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
