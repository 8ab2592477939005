/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is left of a store when nobody uses it, what a copy of it is worth, and
 * that a log which should be there is missed.
 */
#include "store/conformance/conformance.h"
#include "store/scratch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT (60 * NS_PER_S) /* for anything that a test waits for */

static void beside(const char *file, const char *suffix, char *path, size_t size)
{
    (void)snprintf(path, size, "%s%s", file, suffix);
}

static bool is_there(const char *file, const char *suffix)
{
    char path[400];

    beside(file, suffix, path, sizeof path);
    return access(path, F_OK) == 0;
}

static bool is_whole(const char *file)
{
    return !is_there(file, "-wal") && !is_there(file, "-shm") && !is_there(file, "-switch") &&
           !is_there(file, "-journal");
}

static void copy_file(const char *from, const char *to)
{
    FILE *in = fopen(from, "r");
    FILE *out = fopen(to, "w");
    int c;

    assert_non_null(in);
    assert_non_null(out);
    while ((c = getc(in)) != EOF)
        assert_int_equal(putc(c, out), c);
    assert_int_equal(fclose(out), 0);
    (void)fclose(in);
}

/* The epoch of group "g" there, as a process of its own sees it. */
static uint64_t epoch_in(const char *file)
{
    struct store *store = open_store(file);
    uint64_t epoch = expect(store, ask_read("g"), GAVEL_OK).record.epoch;

    store_close(store);
    return epoch;
}

/* Claims and gives up, so often. */
static void lead(struct store *store, int times)
{
    for (int i = 0; i < times; i++) {
        uint64_t version = expect(store, ask_read("g"), GAVEL_OK).record.version;

        (void)expect(store, ask_claim("g", "one", 1, version), GAVEL_OK);
        (void)expect(store, ask_release("g", "one", 1, 0), GAVEL_OK);
    }
}

static void test_the_last_one_out_leaves_a_whole_file(void **state)
{
    struct scratch *s = *state;
    struct store *first = open_store(s->file);
    struct store *second = open_store(s->file);
    struct store_request finish = ask_release("done", "one", 1, 0);
    char copy[400];

    lead(first, 3);
    (void)expect(first, ask_claim("done", "one", 1, 0), GAVEL_OK);
    finish.record.done = true;
    (void)expect(first, finish, GAVEL_OK);
    store_close(first);
    assert_true(is_there(s->file, "-wal")); /* there is another */
    lead(second, 1);
    store_close(second);
    assert_true(is_whole(s->file));
    (void)snprintf(copy, sizeof copy, "%s/copy.db", s->directory);
    copy_file(s->file, copy);
    assert_int_equal(epoch_in(copy), 4);
    first = open_store(copy);
    assert_true(expect(first, ask_read("done"), GAVEL_OK).record.done);
    store_close(first);
    assert_true(is_whole(copy));
}

static void refuse(const char *file)
{
    struct gavel_error error = {0};
    struct store *store = NULL;
    char words[450];

    assert_int_equal(store_open(file, &store, &error), GAVEL_ERR_STORE_DAMAGED);
    assert_non_null(strstr(error.message, "-wal, is missing"));
    assert_non_null(strstr(error.message, "gavel store backup"));
    (void)snprintf(words, sizeof words, "touch %s-wal", file);
    assert_non_null(strstr(error.message, words));
    assert_true(is_whole(file)); /* nothing was made beside it */
}

static void test_a_copy_without_the_log_of_a_store_in_use_is_refused(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    char copy[400];
    char log[400];
    char log_copy[400];

    (void)snprintf(copy, sizeof copy, "%s/copy ?#%%41.db", s->directory);
    copy_file(s->file, copy); /* of one that is quite new */
    refuse(copy);
    lead(store, 3);
    copy_file(s->file, copy);
    refuse(copy);
    refuse(copy); /* for ever */
    beside(s->file, "-wal", log, sizeof log);
    beside(copy, "-wal", log_copy, sizeof log_copy);
    copy_file(log, log_copy);
    assert_int_equal(epoch_in(copy), 3); /* with it, all is there */
    store_close(store);
}

static void test_an_operator_may_go_on_without_the_log(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    char copy[400];
    char log[400];
    FILE *file;

    lead(store, 2);
    (void)snprintf(copy, sizeof copy, "%s/copy.db", s->directory);
    copy_file(s->file, copy);
    refuse(copy);
    beside(copy, "-wal", log, sizeof log);
    file = fopen(log, "w"); /* as touch does */
    assert_non_null(file);
    (void)fclose(file);
    assert_int_equal(epoch_in(copy), 0);
    assert_int_equal(epoch_in(copy), 0); /* and it is a store like any other */
    store_close(store);
}

static void test_a_file_that_an_older_gavel_has_closed_is_taken_as_it_is(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    char copy[400];

    lead(store, 2);
    store_close(store);
    scratch_sql(s->file, "DROP TABLE marks; PRAGMA journal_mode = WAL; SELECT count(*) FROM groups");
    assert_true(is_whole(s->file));
    assert_int_equal(epoch_in(s->file), 2);
    store = open_store(s->file); /* from now on it is one of this gavel */
    lead(store, 1);
    (void)snprintf(copy, sizeof copy, "%s/copy.db", s->directory);
    copy_file(s->file, copy);
    refuse(copy);
    store_close(store);
    assert_int_equal(epoch_in(s->file), 3);
}

static void test_all_who_used_it_were_killed(void **state)
{
    struct scratch *s = *state;
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        lead(open_store(s->file), 5);
        (void)raise(SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_true(is_there(s->file, "-wal"));
    assert_int_equal(epoch_in(s->file), 5);
    assert_true(is_whole(s->file));
}

/* Comes and goes until it is killed; each epoch is told before the next is asked for. */
static pid_t start_visitor(const char *file, int tell)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        struct gavel_error error = {0};
        struct store *store = NULL;
        struct store_request request = ask_read("g");
        struct store_reply reply;
        uint64_t epoch;

        if (store_open(file, &store, &error) != GAVEL_OK) {
            if (error.status == GAVEL_ERR_STORE_UNAVAILABLE || error.status == GAVEL_ERR_TIMEOUT)
                continue; /* others were there for too long */
            (void)fprintf(stderr, "%s\n", error.message);
            _exit(1);
        }
        request.give_up_at = clock_now() + LIMIT;
        if (store_call(store, &request, &reply) == GAVEL_OK) {
            request = ask_claim("g", "one", 1, reply.record.version);
            if (store_call(store, &request, &reply) == GAVEL_OK) {
                epoch = reply.record.epoch;
                if (write(tell, &epoch, sizeof epoch) != sizeof epoch)
                    _exit(2);
            }
        }
        store_close(store);
    }
}

static void test_whoever_is_killed_while_coming_or_going_leaves_a_store_that_opens(void **state)
{
    enum { ROUNDS = 40, VISITORS = 2 };
    struct scratch *s = *state;
    gavel_ns limit = clock_now() + LIMIT;
    uint64_t highest = 0;

    for (int i = 0; i < ROUNDS && clock_now() < limit; i++) {
        pid_t pids[VISITORS];
        uint64_t told;
        int ends[2];
        int status;

        assert_int_equal(pipe(ends), 0);
        for (int k = 0; k < VISITORS; k++)
            pids[k] = start_visitor(s->file, ends[1]);
        (void)close(ends[1]);
        (void)usleep((useconds_t)(5000 + i * 1713 % 40000));
        for (int k = 0; k < VISITORS; k++) {
            assert_int_equal(kill(pids[k], SIGKILL), 0);
            assert_int_equal(waitpid(pids[k], &status, 0), pids[k]);
            assert_true(WIFSIGNALED(status)); /* it was not refused before */
        }
        while (read(ends[0], &told, sizeof told) == sizeof told)
            highest = told > highest ? told : highest;
        (void)close(ends[0]);
        assert_true(epoch_in(s->file) >= highest);
    }
}

static void test_many_who_come_and_go_at_once_end_with_a_whole_file(void **state)
{
    enum { VISITORS = 6, VISITS = 15 };
    struct scratch *s = *state;
    pid_t pids[VISITORS];

    for (int k = 0; k < VISITORS; k++) {
        pids[k] = fork();
        assert_true(pids[k] >= 0);
        if (pids[k] > 0)
            continue;
        for (int i = 0; i < VISITS; i++) {
            struct store *store = NULL;
            struct gavel_error error = {0};

            if (store_open(s->file, &store, &error) != GAVEL_OK) {
                (void)fprintf(stderr, "%s\n", error.message);
                _exit(1);
            }
            store_close(store);
        }
        _exit(0);
    }
    for (int k = 0; k < VISITORS; k++) {
        int status;

        assert_int_equal(waitpid(pids[k], &status, 0), pids[k]);
        assert_int_equal(status, 0);
    }
    (void)epoch_in(s->file); /* at the latest now */
    assert_true(is_whole(s->file));
}

static void test_a_backup_of_a_store_in_use_is_whole(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    struct gavel_error error = {0};
    struct stat info;
    char path[400];

    lead(store, 7);
    (void)snprintf(path, sizeof path, "%s/backup.db", s->directory);
    assert_int_equal(store_backup(store, path, &error), GAVEL_OK);
    assert_true(is_whole(path));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    lead(store, 1); /* it goes on */
    assert_int_equal(epoch_in(path), 7);
    assert_int_equal(store_backup(store, path, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "name a new file"));
    assert_int_equal(epoch_in(path), 7); /* it was not touched */
    (void)snprintf(path, sizeof path, "%s/no/such/directory.db", s->directory);
    assert_int_not_equal(store_backup(store, path, &error), GAVEL_OK);
    assert_non_null(strstr(error.message, "No such file or directory"));
    store_close(store);
    assert_int_equal(epoch_in(s->file), 8);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_set_up, scratch_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_the_last_one_out_leaves_a_whole_file),
        TEST(test_a_copy_without_the_log_of_a_store_in_use_is_refused),
        TEST(test_an_operator_may_go_on_without_the_log),
        TEST(test_a_file_that_an_older_gavel_has_closed_is_taken_as_it_is),
        TEST(test_all_who_used_it_were_killed),
        TEST(test_whoever_is_killed_while_coming_or_going_leaves_a_store_that_opens),
        TEST(test_many_who_come_and_go_at_once_end_with_a_whole_file),
        TEST(test_a_backup_of_a_store_in_use_is_whole),
    };

    return cmocka_run_group_tests_name("sqlite: whole files", tests, NULL, NULL);
}
