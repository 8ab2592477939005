/* SPDX-License-Identifier: Apache-2.0 */

/* Processes that the table names are watched, and their death is told with all that must end. */
#include "daemon/node/process_watch.h"

#include "os/process.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct event_base *base;
    struct table table;
    struct process_watch process_watch;
    uint64_t index;
    uint64_t id;
    bool is_replaced; /* the table: what it names is not met, entry by entry */
    size_t told;
    size_t calls;    /* that told of them */
    uint64_t closed; /* session */
    char released[64];
    char left[64];
    struct table_process child;
    char name[8]; /* of the candidate, and its groups */
    char claimed[4];
    char enrolled[4];
    pid_t pid;
};

static void tell(void *user, const Gavel__Op *const *ops, size_t count)
{
    struct fixture *f = user;

    for (size_t i = 0; i < count; i++) {
        if (ops[i]->what_case == GAVEL__OP__WHAT_CLOSE_SESSION) {
            assert_int_equal(ops[i]->close_session->ending, GAVEL__ENDING__ENDING_DEAD);
            f->closed = ops[i]->close_session->session;
        } else if (ops[i]->what_case == GAVEL__OP__WHAT_RELEASE) {
            assert_true(ops[i]->release->is_dead);
            (void)snprintf(f->released, sizeof f->released, "%s", ops[i]->release->group);
        } else {
            assert_int_equal(ops[i]->what_case, GAVEL__OP__WHAT_LEAVE);
            (void)snprintf(f->left, sizeof f->left, "%s", ops[i]->leave->id);
        }
    }
    f->told += count;
    f->calls++;
    event_base_loopbreak(f->base);
}

static void apply(struct fixture *f, uint64_t session, Gavel__Op *op)
{
    Gavel__Command command;
    struct table_outcome outcome = {0};
    uint8_t *bytes;
    size_t size;

    gavel__command__init(&command);
    command.session = session;
    command.id = session ? ++f->id : 0;
    command.n_ops = 1;
    command.ops = &op;
    assert_int_equal(table_ops_encode(&command, &bytes, &size), GAVEL_OK);
    assert_int_equal(table_apply_ops(&f->table, ++f->index, bytes, size, &outcome), GAVEL_OK);
    assert_int_equal(outcome.count, 1);
    assert_int_equal(outcome.results[0].status, GAVEL_OK);
    for (size_t i = 0; i < outcome.process_count && !f->is_replaced; i++)
        process_watch_meet(&f->process_watch, &outcome.processes[i]);
    table_outcome_done(&outcome);
    free(bytes);
}

static void say_process(const struct table_process *from, Gavel__Process *ret_process)
{
    gavel__process__init(ret_process);
    ret_process->boot_id = (char *)(uintptr_t)from->boot_id;
    ret_process->pid = from->pid;
    ret_process->pid_ns = from->pid_ns;
    ret_process->start_ticks = from->start_ticks;
}

static void open_session(struct fixture *f, uint64_t id, const struct table_process *of)
{
    Gavel__OpenSession open;
    Gavel__Op op;
    Gavel__Process process;

    gavel__open_session__init(&open);
    gavel__op__init(&op);
    say_process(of, &process);
    open.session = id;
    open.ttl_ms = 2000;
    open.process = &process;
    op.what_case = GAVEL__OP__WHAT_OPEN_SESSION;
    op.open_session = &open;
    apply(f, id, &op);
}

static void claim(struct fixture *f)
{
    Gavel__Claim claim;
    Gavel__Op op;
    Gavel__Process process;

    gavel__claim__init(&claim);
    gavel__op__init(&op);
    say_process(&f->child, &process);
    claim.group = f->claimed;
    claim.holder = f->name;
    claim.nonce_low = 1;
    claim.lease_ms = 5000;
    claim.process = &process;
    op.what_case = GAVEL__OP__WHAT_CLAIM;
    op.claim = &claim;
    apply(f, 0, &op);
}

static void enroll(struct fixture *f)
{
    Gavel__Register enroll;
    Gavel__Op op;
    Gavel__Process process;

    gavel__register__init(&enroll);
    gavel__op__init(&op);
    say_process(&f->child, &process);
    enroll.group = f->enrolled;
    enroll.id = f->name;
    enroll.instance = 7;
    enroll.timeout_ms = 1000;
    enroll.process = &process;
    op.what_case = GAVEL__OP__WHAT_REGISTER_CANDIDATE;
    op.register_candidate = &enroll;
    apply(f, 0, &op);
}

/* A process that waits to be killed, and who it is. */
static void begin_child(struct fixture *f)
{
    int channel[2];
    struct process_id id;

    assert_int_equal(pipe(channel), 0);
    f->pid = fork();
    assert_true(f->pid >= 0);
    if (f->pid == 0) {
        if (process_self(&id) != GAVEL_OK || write(channel[1], &id, sizeof id) != sizeof id)
            _exit(1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(channel[0], &id, sizeof id), sizeof id);
    (void)close(channel[0]);
    (void)close(channel[1]);
    memcpy(f->child.boot_id, id.boot_id, sizeof f->child.boot_id);
    f->child.pid = id.pid;
    f->child.pid_ns = id.pid_ns;
    f->child.start_ticks = id.start_ticks;
    assert_int_equal(id.pid, f->pid);
}

static void end_child(struct fixture *f)
{
    if (f->pid > 0) {
        (void)kill(f->pid, SIGKILL);
        (void)waitpid(f->pid, NULL, 0);
    }
    f->pid = 0;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->base = event_base_new();
    memcpy(f->name, "web-1", 6);
    memcpy(f->claimed, "g1", 3);
    memcpy(f->enrolled, "g2", 3);
    begin_child(f);
    process_watch_init(&f->process_watch, f->base, &f->table, tell, f);
    process_watch_tick(&f->process_watch);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    end_child(f);
    process_watch_done(&f->process_watch);
    table_done(&f->table);
    event_base_free(f->base);
    free(f);
    return 0;
}

/* Until something is told, or the limit. */
static void wait_for_news(struct fixture *f)
{
    (void)event_base_loopexit(f->base, &(struct timeval){.tv_sec = 20});
    (void)event_base_dispatch(f->base);
}

static void test_a_death_ends_session_mandate_and_registration(void **state)
{
    struct fixture *f = *state;

    open_session(f, 11, &f->child);
    claim(f);
    enroll(f);
    assert_int_equal(f->process_watch.count, 1);
    end_child(f);
    wait_for_news(f);
    assert_int_equal(f->told, 3);
    assert_int_equal(f->closed, 11);
    assert_string_equal(f->released, "g1");
    assert_string_equal(f->left, "web-1");
}

static void test_a_death_is_told_until_the_table_knows(void **state)
{
    struct fixture *f = *state;
    Gavel__CloseSession close;
    Gavel__Op op;

    gavel__close_session__init(&close);
    gavel__op__init(&op);
    open_session(f, 11, &f->child);
    end_child(f);
    wait_for_news(f);
    assert_int_equal(f->told, 1);
    process_watch_tick(&f->process_watch);
    assert_int_equal(f->told, 2);
    close.session = 11;
    close.ending = GAVEL__ENDING__ENDING_DEAD;
    op.what_case = GAVEL__OP__WHAT_CLOSE_SESSION;
    op.close_session = &close;
    apply(f, 0, &op);
    process_watch_tick(&f->process_watch);
    assert_int_equal(f->told, 2);
    assert_int_equal(f->process_watch.count, 0);
}

/* Its request was on its way to the leader when it died: nobody waits for a time to live, or for the tick. */
static void test_who_died_before_we_looked_is_told_of_at_once(void **state)
{
    struct fixture *f = *state;

    end_child(f);
    open_session(f, 11, &f->child);
    assert_int_equal(f->told, 0); /* the table is being changed */
    wait_for_news(f);
    assert_int_equal(f->closed, 11);
}

static void test_who_died_before_we_looked_is_told_by_the_tick_too(void **state)
{
    struct fixture *f = *state;

    end_child(f);
    open_session(f, 11, &f->child);
    process_watch_tick(&f->process_watch);
    assert_int_equal(f->closed, 11);
}

/* What another boot id means on a machine of its own, it does not mean among many. */
static void test_a_process_of_another_machine_is_never_called_dead(void **state)
{
    struct fixture *f = *state;
    struct table_process elsewhere = f->child;

    elsewhere.boot_id[0] = elsewhere.boot_id[0] == 'f' ? '0' : 'f';
    open_session(f, 11, &elsewhere);
    elsewhere = f->child;
    elsewhere.pid_ns++;
    open_session(f, 12, &elsewhere);
    process_watch_tick(&f->process_watch);
    assert_int_equal(f->told, 0);
    assert_int_equal(f->process_watch.count, 0);
}

static void test_a_table_that_was_replaced_is_looked_through(void **state)
{
    struct fixture *f = *state;

    f->is_replaced = true;
    open_session(f, 11, &f->child);
    claim(f);
    assert_int_equal(f->process_watch.count, 0);
    f->process_watch.is_rescan_due = true;
    process_watch_tick(&f->process_watch);
    assert_int_equal(f->process_watch.count, 1);
    end_child(f);
    wait_for_news(f);
    assert_int_equal(f->told, 2);
}

/* A walk over the table for each would keep the thread from all else. */
static void test_those_who_die_at_once_are_told_of_at_once(void **state)
{
    struct fixture *f = *state;
    pid_t pids[3];

    for (size_t i = 0; i < 3; i++) {
        if (i > 0)
            begin_child(f);
        pids[i] = f->pid;
        open_session(f, 11 + i, &f->child);
        f->id = 0;
    }
    for (size_t i = 0; i < 3; i++) {
        f->pid = pids[i];
        end_child(f);
    }
    wait_for_news(f);
    assert_int_equal(f->told, 3);
    assert_int_equal(f->calls, 1);
    process_watch_tick(&f->process_watch);
    assert_int_equal(f->told, 6);
    assert_int_equal(f->calls, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_a_death_ends_session_mandate_and_registration),
        TEST(test_a_death_is_told_until_the_table_knows),
        TEST(test_who_died_before_we_looked_is_told_of_at_once),
        TEST(test_who_died_before_we_looked_is_told_by_the_tick_too),
        TEST(test_a_process_of_another_machine_is_never_called_dead),
        TEST(test_a_table_that_was_replaced_is_looked_through),
        TEST(test_those_who_die_at_once_are_told_of_at_once),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
