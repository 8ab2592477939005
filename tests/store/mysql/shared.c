/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One table, two kinds of programs: gavel, and those that know three columns
 * and nothing else. No two hold a group at once, and the epochs that gavel
 * grants only grow, whatever the others do to the row.
 */
#include "bench.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT (60 * NS_PER_S) /* for anything that a test waits for */
#define LEASE_MS 400
#define MARGIN_MS 20
#define TURNS 5 /* that each kind must have had */
#define LINES_MAX 4000

/* What a program of three columns does. */
#define FOREIGN_INSERT                                                                                       \
    "INSERT INTO %s (lock_key, owner_id, expires_at) VALUES ('g', '%s', NOW() + INTERVAL %d SECOND)"
#define FOREIGN_TAKE                                                                                         \
    FOREIGN_INSERT " ON DUPLICATE KEY UPDATE owner_id = IF(expires_at < NOW(), VALUES(owner_id), owner_id)," \
                   " expires_at = IF(owner_id = VALUES(owner_id), VALUES(expires_at), expires_at)"
#define FOREIGN_RENEW "UPDATE %s SET expires_at = NOW() + INTERVAL %d SECOND WHERE lock_key = 'g'"

static void test_a_foreign_holder_is_a_record_like_any_other(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    struct store_request claim;
    struct record first;
    struct record second;

    assert_int_equal(store_probe(store, NULL), GAVEL_OK);
    mysql_bench_sql(b, FOREIGN_INSERT, b->table, "foreign", 100);
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_ERR_CONFLICT);
    first = expect(store, ask_read("g"), GAVEL_OK).record;
    assert_true(first.held);
    assert_string_equal(first.holder, "foreign");
    assert_in_range(first.lease_ms, 90000, 101000);
    assert_int_equal(expect(store, ask_read("g"), GAVEL_OK).record.version,
                     first.version); /* once is enough */
    claim = ask_claim("g", "one", 1, first.version);
    claim.must_be_expired = true;
    (void)expect(store, claim, GAVEL_ERR_CONFLICT);
    mysql_bench_sql(b, FOREIGN_RENEW, b->table, 200);
    second = expect(store, ask_read("g"), GAVEL_OK).record;
    assert_true(second.version > first.version);
    assert_int_equal(second.epoch, first.epoch); /* it is the same mandate */
    mysql_bench_sql(b, FOREIGN_RENEW, b->table, -1);
    assert_true(expect(store, ask_read("g"), GAVEL_OK).expired);
    claim.expected_version = expect(store, ask_read("g"), GAVEL_OK).record.version;
    assert_int_equal(expect(store, claim, GAVEL_OK).record.epoch, first.epoch + 1);
    mysql_bench_sql(b, FOREIGN_TAKE, b->table, "foreign", 100); /* too late for it */
    assert_string_equal(expect(store, ask_read("g"), GAVEL_OK).record.holder, "one");
    (void)expect(store, ask_renew("g", "one", 1, first.epoch + 1), GAVEL_OK);
    store_close(store);
}

static void test_who_was_taken_over_by_a_foreign_program_is_no_longer_the_holder(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    struct store_reply reply;
    uint64_t epoch = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;

    mysql_bench_sql(b, "UPDATE %s SET owner_id = 'foreign', expires_at = NOW() + INTERVAL 9 SECOND",
                    b->table);
    reply = expect(store, ask_renew("g", "one", 1, epoch), GAVEL_ERR_NOT_HOLDER);
    assert_string_equal(reply.record.holder, "foreign");
    assert_int_equal(reply.record.epoch, epoch + 1);
    (void)expect(store, ask_release("g", "one", 1, epoch), GAVEL_ERR_NOT_HOLDER);
    (void)expect(store, ask_wish("g", epoch, ""), GAVEL_ERR_NOT_HOLDER);
    assert_string_equal(expect(store, ask_read("g"), GAVEL_OK).record.holder, "foreign");
    store_close(store);
}

static void test_a_foreign_namesake_is_not_taken_for_the_holder(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    uint64_t epoch = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record.epoch;

    mysql_bench_sql(b, FOREIGN_RENEW, b->table, 100); /* under the name of the holder */
    (void)expect(store, ask_renew("g", "one", 1, epoch), GAVEL_ERR_NOT_HOLDER);
    assert_int_equal(expect(store, ask_read("g"), GAVEL_OK).record.epoch, epoch + 1);
    store_close(store);
}

static void test_a_released_row_is_free_for_a_foreign_program_at_once(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    struct store_reply reply;

    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    mysql_bench_sql(b, FOREIGN_TAKE, b->table, "foreign", 100);
    assert_string_equal(expect(store, ask_read("g"), GAVEL_OK).record.holder, "one");
    (void)expect(store, ask_release("g", "one", 1, 0), GAVEL_OK);
    mysql_bench_sql(b, FOREIGN_TAKE, b->table, "foreign", 100);
    reply = expect(store, ask_read("g"), GAVEL_OK);
    assert_string_equal(reply.record.holder, "foreign");
    assert_true(reply.record.held);
    assert_int_equal(reply.record.epoch, 2);
    store_close(store);
}

static void test_epochs_and_versions_outlive_the_row(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    uint64_t version = 0;

    for (uint64_t i = 1; i <= 6; i++) {
        struct record record;

        if (i % 2 == 1) {
            record = expect(store, ask_claim("g", "one", i, 0), GAVEL_OK).record;
        } else {
            mysql_bench_sql(b, FOREIGN_INSERT, b->table, "foreign", 100);
            record = expect(store, ask_read("g"), GAVEL_OK).record;
        }
        assert_int_equal(record.epoch, i);
        assert_true(record.version > version);
        version = record.version;
        mysql_bench_sql(b, "DELETE FROM %s", b->table);
        assert_false(expect(store, ask_read("g"), GAVEL_OK).found);
        (void)expect(store, ask_renew("g", "one", i, 0), GAVEL_ERR_NOT_HOLDER);
    }
    store_close(store);
}

static void test_a_finished_group_stays_finished(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    struct store_request finish = ask_release("g", "one", 1, 0);
    struct store_request reopen = ask_read("g");
    struct store_reply reply;

    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    finish.record.done = true;
    (void)expect(store, finish, GAVEL_OK);
    mysql_bench_sql(b, FOREIGN_TAKE, b->table, "foreign", 100);
    reply = expect(store, ask_claim("g", "two", 2, 0), GAVEL_ERR_DONE);
    assert_string_equal(reply.record.holder, "one");
    reopen.op = STORE_REOPEN;
    reopen.expected_version = reply.record.version;
    reply = expect(store, reopen, GAVEL_OK);
    assert_string_equal(reply.record.holder, "foreign"); /* who holds it meanwhile is waited for */
    assert_true(reply.record.held);
    store_close(store);
}

static void test_an_expiry_that_changes_by_itself_does_not_with_gavel(void **state)
{
    struct mysql_bench *b = *state;
    struct store *store;
    struct record record;

    mysql_bench_sql(
        b,
        "CREATE TABLE %s (lock_key VARCHAR(255) PRIMARY KEY, owner_id VARCHAR(255) NOT NULL, expires_at"
        " TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6))",
        b->table);
    store = mysql_bench_open(b, NULL, NULL);
    assert_int_equal(store_probe(store, NULL), GAVEL_OK);
    record = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    (void)expect(store, ask_wish("g", record.epoch, "two"), GAVEL_OK);
    (void)expect(store, ask_claim("g", "two", 2, 0), GAVEL_ERR_CONFLICT);
    assert_in_range(expect(store, ask_read("g"), GAVEL_OK).remaining_ms, 30000, 60000);
    assert_int_equal(expect(store, ask_read("g"), GAVEL_OK).record.version, record.version);
    mysql_bench_sql(b, FOREIGN_RENEW, b->table, 100);
    assert_in_range(expect(store, ask_read("g"), GAVEL_OK).remaining_ms, 70000, 100000);
    assert_in_range(expect(store, ask_read("g"), GAVEL_OK).remaining_ms, 70000,
                    100000); /* absorbed as it was */
    store_close(store);
}

/* The log of who held the group when: a file that all append to. */
struct turn {
    char owner[32];
    long long began;
    long long ended;
    unsigned long long epoch; /* 0: of a foreign program */
};

static void note(int log, const char *owner, gavel_ns began, gavel_ns ended, uint64_t epoch)
{
    char line[200];
    int length = snprintf(line, sizeof line, "%s %lld %lld %llu\n", owner, (long long)began, (long long)ended,
                          (unsigned long long)epoch);

    if (ended > began && write(log, line, (size_t)length) != length)
        _exit(1);
}

static void pause_ms(long ms)
{
    const struct timespec t = {.tv_nsec = ms * NS_PER_MS};

    (void)nanosleep(&t, NULL);
}

/* Holds the group for some renewals, then lets go by a release or by doing nothing. */
static void lead(struct store *store, const char *id, uint64_t n, uint64_t epoch, gavel_ns sent_at, int log)
{
    gavel_ns began = clock_now();
    gavel_ns until = sent_at + ns_from_ms(LEASE_MS - MARGIN_MS);

    for (int i = 0; i < 4 && clock_now() < until; i++) {
        struct store_request renew = ask_renew("g", id, n, epoch);
        struct store_reply reply;
        enum gavel_status status;

        pause_ms(40);
        renew.record.lease_ms = LEASE_MS;
        sent_at = clock_now();
        renew.give_up_at = until;
        if (sent_at >= until)
            break;
        status = store_call(store, &renew, &reply);
        store_reply_done(&reply);
        if (status != GAVEL_OK)
            break;
        until = sent_at + ns_from_ms(LEASE_MS - MARGIN_MS);
    }
    note(log, id, began, ns_min(clock_now(), until), epoch);
    if (n % 2 == 0) {
        struct store_request release = ask_release("g", id, n, epoch);
        struct store_reply reply;

        store_run(store, &release, &reply, 1);
        store_reply_done(&reply);
    }
    pause_ms(150); /* for others */
}

/* What a candidate does: it claims what the store calls expired and what it saw unchanged for a whole
 * lease. */
static _Noreturn void run_gavel(const char *url, const char *id, int log)
{
    struct store *store;
    uint64_t seen = 0;
    gavel_ns seen_at = 0;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (store_open(url, &store, NULL) != GAVEL_OK)
        _exit(1);
    for (uint64_t n = 1;; pause_ms(15)) {
        struct store_request request = ask_read("g");
        struct store_reply reply;
        gavel_ns sent_at;

        if (store_call(store, &request, &reply) != GAVEL_OK)
            _exit(2);
        store_reply_done(&reply);
        if (reply.record.version != seen) {
            seen = reply.record.version;
            seen_at = clock_now();
        }
        if (reply.found && (!reply.expired ||
                            (reply.record.held && clock_now() - seen_at < ns_from_ms(reply.record.lease_ms))))
            continue;
        request = ask_claim("g", id, ++n, seen);
        request.must_be_expired = true;
        request.record.lease_ms = LEASE_MS;
        sent_at = clock_now();
        if (store_call(store, &request, &reply) == GAVEL_OK)
            lead(store, id, n, reply.record.epoch, sent_at, log);
        store_reply_done(&reply);
    }
}

static pid_t start_gavel(const char *url, const char *id, int log)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        run_gavel(url, id, log);
    return pid;
}

static pid_t start_foreign(struct mysql_bench *b, const char *owner, const char *log)
{
    const char *program = getenv("THREE_COLUMNS");
    char port[16];
    pid_t pid;

    if (!program)
        fail_msg("THREE_COLUMNS must name the program three-columns");
    (void)snprintf(port, sizeof port, "%d", b->server.port);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)execl(program, program, port, MYSQL_BENCH_DATABASE, b->table, "g", owner, log, (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* Reads the log; how many turns of each owner there are stands in `counts`. */
static size_t read_log(const char *path, struct turn *turns, const char *const *owners, int *counts,
                       size_t kinds)
{
    FILE *file = fopen(path, "r");
    size_t count = 0;

    assert_non_null(file);
    memset(counts, 0, kinds * sizeof *counts);
    while (count < LINES_MAX && fscanf(file, "%31s %lld %lld %llu", turns[count].owner, &turns[count].began,
                                       &turns[count].ended, &turns[count].epoch) == 4) {
        for (size_t i = 0; i < kinds; i++)
            counts[i] += strcmp(owners[i], turns[count].owner) == 0;
        count++;
    }
    (void)fclose(file);
    return count;
}

static int compare_turns(const void *a, const void *b)
{
    const struct turn *x = a;
    const struct turn *y = b;

    return (x->began > y->began) - (x->began < y->began);
}

static void check_turns(struct turn *turns, size_t count)
{
    unsigned long long epoch = 0;

    qsort(turns, count, sizeof *turns, compare_turns);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && turns[i].began < turns[i - 1].ended)
            fail_msg("%s began %lld ns before %s had ended", turns[i].owner,
                     turns[i - 1].ended - turns[i].began, turns[i - 1].owner);
        if (turns[i].epoch == 0)
            continue;
        assert_true(turns[i].epoch > epoch);
        epoch = turns[i].epoch;
    }
}

static void compete(struct mysql_bench *b)
{
    enum { KINDS = 4 };
    static const char *const owners[KINDS] = {"gavel-1", "gavel-2", "plain-1", "plain-2"};
    struct turn *turns = test_calloc(LINES_MAX, sizeof *turns);
    gavel_ns limit = clock_now() + LIMIT;
    struct store *store = mysql_bench_open(b, NULL, NULL);
    pid_t pids[KINDS];
    int counts[KINDS];
    char path[150];
    char url[512];
    size_t count;
    int log;

    (void)snprintf(path, sizeof path, "%s/turns-%s", b->server.directory, b->table);
    log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(log >= 0);
    assert_int_equal(store_probe(store, NULL), GAVEL_OK);
    store_close(store);
    mysql_bench_url(b, NULL, NULL, url, sizeof url);
    for (int i = 0; i < KINDS; i++)
        pids[i] = i < 2 ? start_gavel(url, owners[i], log) : start_foreign(b, owners[i], path);
    do {
        assert_true(clock_now() < limit);
        pause_ms(100);
        for (int i = 0; i < KINDS; i++)
            assert_int_equal(waitpid(pids[i], NULL, WNOHANG), 0); /* none has given up */
        count = read_log(path, turns, owners, counts, KINDS);
    } while (counts[0] + counts[1] < TURNS || counts[2] + counts[3] < TURNS || counts[0] == 0 ||
             counts[1] == 0);
    for (int i = 0; i < KINDS; i++) {
        assert_int_equal(kill(pids[i], SIGKILL), 0);
        assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
    }
    (void)close(log);
    check_turns(turns, count);
    test_free(turns);
}

static void test_both_kinds_compete_and_never_two_hold_the_group(void **state) { compete(*state); }

/* As such programs make it: whole seconds, and an old character set. */
static void test_they_compete_on_a_table_that_was_migrated(void **state)
{
    struct mysql_bench *b = *state;
    struct gavel_error error = {0};
    struct store *store;
    char *told = NULL;

    mysql_bench_sql(b,
                    "CREATE TABLE %s (lock_key VARCHAR(255) PRIMARY KEY, owner_id VARCHAR(255) NOT NULL,"
                    " expires_at TIMESTAMP NOT NULL) CHARACTER SET latin1",
                    b->table);
    store = mysql_bench_open(b, NULL, NULL);
    assert_int_equal(store_migrate(store, &told, &error), GAVEL_OK);
    assert_non_null(told);
    free(told);
    store_close(store);
    compete(b);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, mysql_bench_next)
    const struct CMUnitTest tests[] = {
        TEST(test_a_foreign_holder_is_a_record_like_any_other),
        TEST(test_who_was_taken_over_by_a_foreign_program_is_no_longer_the_holder),
        TEST(test_a_foreign_namesake_is_not_taken_for_the_holder),
        TEST(test_a_released_row_is_free_for_a_foreign_program_at_once),
        TEST(test_epochs_and_versions_outlive_the_row),
        TEST(test_a_finished_group_stays_finished),
        TEST(test_an_expiry_that_changes_by_itself_does_not_with_gavel),
        TEST(test_both_kinds_compete_and_never_two_hold_the_group),
        TEST(test_they_compete_on_a_table_that_was_migrated),
    };

    return cmocka_run_group_tests_name("mysql shared with others", tests, mysql_bench_start,
                                       mysql_bench_stop);
}
