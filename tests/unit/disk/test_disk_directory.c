/* SPDX-License-Identifier: Apache-2.0 */

/* Directories that must not be used: taken, foreign, of another node, of a newer gavel, not to be written. */
#include "data_dir.h"

#include "disk/internal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs it in a child of its own, as another user if uid is not 0; the status that it returns. */
static enum gavel_status open_elsewhere(struct data_dir *f, uid_t uid)
{
    int pipes[2];
    int ended;
    enum gavel_status status = GAVEL_OK;
    pid_t pid;

    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bool is_new;

        f->disk = NULL; /* our parent's */
        if (uid != 0 && setresuid(uid, uid, uid) < 0)
            _exit(1);
        status = disk_open(&f->options, &f->disk, &is_new, &f->error);
        if (write(pipes[1], &status, sizeof status) != sizeof status ||
            write(pipes[1], f->error.message, sizeof f->error.message) != sizeof f->error.message)
            _exit(2);
        _exit(0);
    }
    assert_int_equal(read(pipes[0], &status, sizeof status), sizeof status);
    assert_int_equal(read(pipes[0], f->error.message, sizeof f->error.message), sizeof f->error.message);
    assert_int_equal(waitpid(pid, &ended, 0), pid);
    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), 0);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    return status;
}

static void test_a_second_process_is_refused_and_told_who_the_first_is(void **state)
{
    struct data_dir *f = *state;
    char pid[32];

    data_dir_open(f);
    assert_int_equal(open_elsewhere(f, 0), GAVEL_ERR_STATE);
    (void)snprintf(pid, sizeof pid, "process %ld ", (long)getpid());
    assert_non_null(strstr(f->error.message, pid));
    data_dir_close(f);
    assert_int_equal(open_elsewhere(f, 0), GAVEL_OK);
}

static volatile pid_t predecessor;

static void end_predecessor(int number)
{
    (void)number;
    (void)kill(predecessor, SIGKILL);
    (void)waitpid(predecessor, NULL, 0);
    predecessor = 0;
}

/* Its node is started again at once, and the kernel has not yet taken it apart. */
static void test_the_directory_of_a_dying_process_is_awaited(void **state)
{
    const struct itimerval soon = {.it_value.tv_usec = 50000};
    struct sigaction action = {.sa_handler = end_predecessor};
    struct data_dir *f = *state;
    int pipes[2];
    char byte;

    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    predecessor = fork();
    assert_true(predecessor >= 0);
    if (predecessor == 0) {
        bool is_new;

        if (disk_open(&f->options, &f->disk, &is_new, &f->error) != GAVEL_OK || write(pipes[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    (void)close(pipes[1]);
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    (void)close(pipes[0]);
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
    data_dir_open(f);
    assert_int_equal(predecessor, 0);
}

/* A child that was forked while the directory was open does not hold it. */
static void test_the_lock_is_not_passed_on_to_children(void **state)
{
    struct data_dir *f = *state;
    pid_t pid;

    data_dir_open(f);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        for (;;)
            (void)pause();
    }
    data_dir_close(f);
    assert_int_equal(open_elsewhere(f, 0), GAVEL_OK);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void make_file(const struct data_dir *f, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    (void)mkdir(f->path, 0700);
    (void)snprintf(path, sizeof path, "%s/%s", f->path, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_a_directory_with_the_files_of_others_is_left_alone(void **state)
{
    struct data_dir *f = *state;
    char path[256];

    make_file(f, "letter.txt", "dear reader");
    assert_int_equal(data_dir_try_open(f), GAVEL_ERR_INVALID);
    assert_non_null(strstr(f->error.message, "letter.txt"));
    (void)snprintf(path, sizeof path, "%s/lock", f->path);
    assert_int_equal(access(path, F_OK), -1); /* nothing was put there */
    (void)snprintf(path, sizeof path, "%s/letter.txt", f->path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(data_dir_try_open(f), GAVEL_OK);
}

static void test_what_is_no_database_is_refused(void **state)
{
    struct data_dir *f = *state;

    make_file(f, "data.mdb", "");
    assert_int_equal(data_dir_try_open(f), GAVEL_ERR_STORE_DAMAGED);
    make_file(f, "data.mdb", "this is a text, and has been one all its life");
    assert_int_equal(data_dir_try_open(f), GAVEL_ERR_STORE_DAMAGED);
}

static void test_a_crash_while_founding_leaves_a_new_directory(void **state)
{
    struct data_dir *f = *state;
    struct raft_restore restore;

    make_file(f, "data.new", "half of something");
    restore = data_dir_reload(f);
    assert_int_equal(restore.state.incarnation, 1);
    disk_restore_done(&restore);
}

static void test_the_directory_of_another_node_is_refused(void **state)
{
    struct data_dir *f = *state;
    const struct disk_identity ours = f->options.identity;

    data_dir_open(f);
    f->options.identity.node = 2;
    (void)snprintf(f->options.identity.node_name, DISK_NAME_MAX, "n2");
    assert_int_equal(data_dir_try_open(f), GAVEL_ERR_INVALID);
    assert_non_null(strstr(f->error.message, "belongs to node n1 of cluster home"));
    f->options.identity = ours;
    f->options.identity.cluster = 78;
    (void)snprintf(f->options.identity.cluster_name, DISK_NAME_MAX, "elsewhere");
    assert_int_equal(data_dir_try_open(f), GAVEL_ERR_INVALID);
    f->options.identity = ours;
    assert_int_equal(data_dir_try_open(f), GAVEL_OK);
}

static void test_the_directory_of_a_newer_gavel_is_refused(void **state)
{
    struct data_dir *f = *state;
    struct disk_txn txn;
    uint8_t identity[RECORD_IDENTITY_BYTES];

    data_dir_open(f);
    record_put_identity(identity, &f->options.identity, &(struct record_file_id){.inode = 1},
                        RECORD_VERSION_PLAIN);
    identity[8] = RECORD_VERSION + 1;
    assert_int_equal(disk_txn_begin(&txn, f->disk, NULL), GAVEL_OK);
    assert_int_equal(disk_put(&txn, record_key_identity(), identity, sizeof identity), 0);
    assert_int_equal(disk_txn_commit(&txn, NULL), GAVEL_OK);
    assert_int_equal(data_dir_try_open(f), GAVEL_ERR_STORE_TOO_NEW);
    assert_non_null(strstr(f->error.message, "newer"));
}

/* cp, tar, rsync: the same bytes in another file. */
static void put_a_copy_back(struct data_dir *f, bool is_in_place)
{
    char command[3 * PATH_MAX];

    (void)snprintf(command, sizeof command, "cd '%s' && cp data.mdb copy && %s", f->path,
                   is_in_place ? "cat copy >data.mdb && rm copy" : "mv copy data.mdb");
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a test of its own directory */
}

static void test_a_copy_of_the_data_is_refused_at_every_start(void **state)
{
    struct data_dir *f = *state;
    struct disk_mark mark, again;
    struct raft_restore restore;

    data_dir_open(f);
    restore = data_dir_begin(f);
    disk_restore_done(&restore);
    disk_mark_read(f->disk, &mark);
    assert_true(mark.directory != 0);
    data_dir_close(f);
    put_a_copy_back(f, false);
    for (int start = 0; start < 3; start++) {
        assert_int_equal(data_dir_try_open(f), GAVEL_ERR_INVALID);
        assert_non_null(strstr(f->error.message, "is a copy"));
        assert_non_null(strstr(f->error.message, "gavel member remove"));
    }
    f->options.accepts_copy = true; /* an operator says that it was moved */
    restore = data_dir_reload(f);
    disk_restore_done(&restore);
    f->options.accepts_copy = false;
    assert_int_equal(data_dir_try_open(f), GAVEL_OK);
    disk_mark_read(f->disk, &again);
    assert_true(again.directory == mark.directory && again.txn > mark.txn);
    data_dir_close(f);
    put_a_copy_back(f, true); /* nothing on this machine can tell; the peers may */
    assert_int_equal(data_dir_try_open(f), GAVEL_OK);
}

static void test_data_that_are_deleted_or_replaced_are_missed(void **state)
{
    struct data_dir *f = *state;
    struct raft_restore restore;
    char path[PATH_MAX + 16];

    data_dir_open(f);
    restore = data_dir_begin(f);
    disk_restore_done(&restore);
    assert_true(disk_is_there(f->disk));
    put_a_copy_back(f, false);
    assert_false(disk_is_there(f->disk));
    (void)snprintf(path, sizeof path, "%s/data.mdb", f->path);
    assert_int_equal(unlink(path), 0);
    assert_false(disk_is_there(f->disk));
}

/* What 0.6.0 has written: no number, and nothing about the file. */
static void test_the_directory_of_0_6_0_gets_its_number_when_it_begins(void **state)
{
    struct data_dir *f = *state;
    struct disk_txn txn;
    uint8_t identity[RECORD_IDENTITY_BYTES];
    struct raft_restore restore;
    uint64_t directory;

    data_dir_open(f);
    record_put_identity(identity, &f->options.identity, &(struct record_file_id){0}, RECORD_VERSION_PLAIN);
    identity[8] = 1;
    assert_int_equal(disk_txn_begin(&txn, f->disk, NULL), GAVEL_OK);
    txn.contents.state.directory = 0;
    assert_int_equal(disk_put(&txn, record_key_identity(), identity, RECORD_IDENTITY_V1_BYTES), 0);
    assert_int_equal(disk_txn_commit(&txn, NULL), GAVEL_OK);
    restore = data_dir_reload(f);
    directory = restore.state.directory;
    assert_true(directory != 0);
    disk_restore_done(&restore);
    restore = data_dir_reload(f);
    assert_true(restore.state.directory == directory);
    disk_restore_done(&restore);
}

/* Each record that should not be there, or is missing, with checksums that are right. */
static void test_records_that_contradict_each_other_are_refused(void **state)
{
    struct data_dir *f = *state;
    const struct raft_entry entry = {.term = 1, .kind = RAFT_ENTRY_NOOP};

    for (unsigned what = 0; what < 4; what++) {
        struct raft_restore restore;
        struct disk_txn txn;

        remove_tree(f->path);
        restore = data_dir_begin(f);
        disk_restore_done(&restore);
        assert_int_equal(append(f, 1, 5, 1, 10), GAVEL_OK);
        assert_int_equal(disk_txn_begin(&txn, f->disk, NULL), GAVEL_OK);
        switch (what) {
        case 0: /* a gap */
            assert_int_equal(disk_delete_entries(&txn, 3, 3), 0);
            break;
        case 1: /* an entry beyond the end */
            assert_int_equal(disk_put_entry(&txn, 7, &entry), 0);
            break;
        case 2: /* a piece of a snapshot that there is not */
            assert_int_equal(disk_put(&txn, record_key_piece(0, 0), (const uint8_t *)"rest", 4), 0);
            break;
        default: /* more is committed than there is */
            txn.contents.state.commit = 6;
        }
        assert_int_equal(disk_txn_commit(&txn, NULL), GAVEL_OK);
        assert_int_equal(data_dir_try_open(f), GAVEL_ERR_STORE_DAMAGED);
    }
}

static void test_a_directory_that_may_not_be_written_is_refused(void **state)
{
    const uid_t nobody = 65534;
    struct data_dir *f = *state;
    char path[256];

    if (geteuid() != 0)
        skip(); /* only root can become another user */
    data_dir_open(f);
    data_dir_close(f);
    assert_int_equal(chmod(f->base, 0755), 0);
    assert_int_equal(open_elsewhere(f, nobody), GAVEL_ERR_STORE_DENIED); /* cannot look into it */
    assert_int_equal(chmod(f->path, 0755), 0);
    (void)snprintf(path, sizeof path, "%s/lock", f->path);
    assert_int_equal(chmod(path, 0666), 0);
    (void)snprintf(path, sizeof path, "%s/data.mdb", f->path);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(open_elsewhere(f, nobody), GAVEL_ERR_STORE_DENIED); /* only read it */
    assert_non_null(strstr(f->error.message, "belong to the user"));
    remove_tree(f->path);
    assert_int_equal(open_elsewhere(f, nobody), GAVEL_ERR_STORE_DENIED); /* cannot make it */
}

static void test_options_that_cannot_be_are_refused(void **state)
{
    struct data_dir *f = *state;

    f->options.bytes_max = 4096;
    assert_int_equal(data_dir_try_open(f), GAVEL_ERR_INVALID);
    f->options.bytes_max = 0;
    f->options.data_dir = "";
    assert_int_equal(data_dir_try_open(f), GAVEL_ERR_INVALID);
    f->options.data_dir = "/dev/null";
    assert_int_equal(data_dir_try_open(f), GAVEL_ERR_INVALID);
    f->options.data_dir = "/dev/null/data";
    assert_int_equal(data_dir_try_open(f), GAVEL_ERR_INVALID);
    f->options.data_dir = "/proc/nowhere/data";
    assert_int_equal(data_dir_try_open(f), GAVEL_ERR_INVALID);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, data_dir_setup, data_dir_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_a_second_process_is_refused_and_told_who_the_first_is),
        CASE(test_the_directory_of_a_dying_process_is_awaited),
        CASE(test_the_lock_is_not_passed_on_to_children),
        CASE(test_a_directory_with_the_files_of_others_is_left_alone),
        CASE(test_what_is_no_database_is_refused),
        CASE(test_a_crash_while_founding_leaves_a_new_directory),
        CASE(test_the_directory_of_another_node_is_refused),
        CASE(test_the_directory_of_a_newer_gavel_is_refused),
        CASE(test_a_copy_of_the_data_is_refused_at_every_start),
        CASE(test_data_that_are_deleted_or_replaced_are_missed),
        CASE(test_the_directory_of_0_6_0_gets_its_number_when_it_begins),
        CASE(test_records_that_contradict_each_other_are_refused),
        CASE(test_a_directory_that_may_not_be_written_is_refused),
        CASE(test_options_that_cannot_be_are_refused),
    };

    return cmocka_run_group_tests_name("disk directory", tests, NULL, NULL);
}
