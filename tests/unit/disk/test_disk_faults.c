/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Faults of the machine: no room, a disk that fails, a process that is killed in the middle. fdatasync() is
 * replaced here, also for LMDB, so that it can be made to fail.
 */
#include "data_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/prng.h"

/* What the next calls of fdatasync() fail with; 0 not at all. A file static, since libc's name has no
 * context.
 */
static int fdatasync_error;
static unsigned fdatasync_count;

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    fdatasync_count++;
    if (fdatasync_error != 0) {
        errno = fdatasync_error;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, fd);
}

static enum gavel_status write_state(struct data_dir *f, const struct raft_restore *restore, raft_term term)
{
    struct disk_write write = {.persist = {.has_state = true, .state = state_of(restore, term, 1)}};

    return disk_write(f->disk, &write, 1, &f->error);
}

/* Appends until there is no room; how many entries there are then. */
static raft_index fill_up(struct data_dir *f, raft_index last, uint32_t size)
{
    for (;;) {
        enum gavel_status status = append(f, last + 1, 1, 1, size);

        if (status == GAVEL_ERR_STORE_FULL)
            return last;
        if (status != GAVEL_OK)
            fail_msg("%s", f->error.message);
        last++;
        assert_true(last < 100000);
    }
}

static enum gavel_status compact(struct data_dir *f, raft_index index, size_t size)
{
    uint8_t *bytes = calloc(1, size + 1);
    struct disk_write write = {.persist = {.has_snapshot = true}};
    enum gavel_status status;

    assert_non_null(bytes);
    write.snapshot =
        (struct raft_snapshot){.index = index, .term = 1, .config_index = 0, .data = bytes, .size = size};
    three_members(&write.snapshot.config);
    status = disk_write(f->disk, &write, 1, &f->error);
    free(bytes);
    return status;
}

static void test_a_full_directory_still_votes_and_compacts(void **state)
{
    struct data_dir *f = *state;
    struct raft_restore restore;
    raft_index last;
    struct disk_usage usage;

    f->options.bytes_max = 4 << 20;
    restore = data_dir_begin(f);
    last = fill_up(f, 0, 3000);
    assert_true(last > 500);
    assert_non_null(strstr(f->error.message, "data_max"));
    disk_usage_read(f->disk, &usage);
    assert_int_equal(usage.entries, last); /* what did not fit has left nothing behind */
    for (raft_term term = 2; term < 200; term++)
        assert_int_equal(write_state(f, &restore, term), GAVEL_OK);
    assert_int_equal(append(f, last + 1, 1, 1, 3000), GAVEL_ERR_STORE_FULL);
    for (unsigned round = 0; round < 4; round++) { /* room is found again, every time */
        raft_index before = last;

        if (compact(f, last, 200000) != GAVEL_OK)
            fail_msg("round %u: %s", round, f->error.message);
        last = fill_up(f, last, 3000);
        assert_true(last > before + 300);
    }
    disk_restore_done(&restore);
    data_dir_close(f);
    restore = data_dir_reload(f);
    assert_int_equal(restore.snapshot.index + restore.entry_count, last);
    assert_int_equal(restore.state.term, 199);
    disk_restore_done(&restore);
}

static void test_a_snapshot_beyond_the_limit_changes_nothing(void **state)
{
    struct data_dir *f = *state;
    struct raft_restore restore;

    f->options.bytes_max = 2 << 20;
    restore = data_dir_begin(f);
    disk_restore_done(&restore);
    assert_int_equal(append(f, 1, 10, 1, 100), GAVEL_OK);
    assert_int_equal(compact(f, 5, 4 << 20), GAVEL_ERR_STORE_FULL);
    assert_int_equal(append(f, 11, 10, 1, 100), GAVEL_OK);
    data_dir_close(f);
    restore = data_dir_reload(f);
    assert_int_equal(restore.snapshot.index, 0);
    assert_int_equal(restore.entry_count, 20);
    disk_restore_done(&restore);
}

static void test_a_failed_fsync_is_final(void **state)
{
    struct data_dir *f = *state;
    struct raft_restore restore = data_dir_begin(f);

    assert_int_equal(append(f, 1, 3, 1, 100), GAVEL_OK);
    fdatasync_error = EIO;
    assert_int_equal(append(f, 4, 1, 1, 100), GAVEL_ERR_IO);
    assert_non_null(strstr(f->error.message, "must stop"));
    fdatasync_error = 0;
    assert_int_equal(append(f, 4, 1, 1, 100), GAVEL_ERR_IO); /* although the disk is well again */
    assert_int_equal(write_state(f, &restore, 2), GAVEL_ERR_IO);
    disk_restore_done(&restore);
    data_dir_close(f);
    restore = data_dir_reload(f);
    assert_int_equal(restore.entry_count, 3);
    disk_restore_done(&restore);
}

static void test_a_full_disk_at_commit_may_be_tried_again(void **state)
{
    struct data_dir *f = *state;
    struct raft_restore restore = data_dir_begin(f);

    disk_restore_done(&restore);
    assert_int_equal(append(f, 1, 3, 1, 100), GAVEL_OK);
    fdatasync_error = ENOSPC;
    assert_int_equal(append(f, 4, 1, 1, 100), GAVEL_ERR_STORE_FULL);
    fdatasync_error = 0;
    assert_int_equal(append(f, 4, 1, 1, 100), GAVEL_OK);
    data_dir_close(f);
    restore = data_dir_reload(f);
    assert_int_equal(restore.entry_count, 4);
    disk_restore_done(&restore);
}

/* Many changes at once cost as much as one: one fdatasync(), and the page that LMDB writes after it. */
static void test_several_changes_are_one_transaction(void **state)
{
    struct data_dir *f = *state;
    struct raft_restore restore = data_dir_begin(f);
    struct raft_entry *entries = make_entries(1, 50, 1, 100);
    struct disk_write writes[50] = {0};
    unsigned before;

    for (size_t i = 0; i < 50; i++)
        writes[i] = (struct disk_write){.persist = {.has_state = true,
                                                    .state = state_of(&restore, i + 1, 0),
                                                    .first = i + 1,
                                                    .last = i + 1},
                                        .entries = &entries[i]};
    before = fdatasync_count;
    assert_int_equal(disk_write(f->disk, writes, 50, &f->error), GAVEL_OK);
    assert_int_equal(fdatasync_count - before, 1);
    disk_restore_done(&restore);
    free_entries(entries, 50);
}

/* A small file system of its own for this process, and nobody else sees it. */
static void mount_small(const struct data_dir *f)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mkdir(f->path, 0700) < 0 || mount("tmpfs", f->path, "tmpfs", 0, "size=3m") < 0)
        _exit(99);
}

static void run_on_a_full_disk(struct data_dir *f)
{
    char ballast[200];
    struct raft_restore restore;
    raft_index last;
    raft_index filled;

    mount_small(f);
    restore = data_dir_begin(f);
    last = fill_up(f, 0, 1000);
    if (!strstr(f->error.message, "no space left") || last < 200)
        _exit(1);
    for (raft_term term = 2; term < 100; term++) {
        if (write_state(f, &restore, term) != GAVEL_OK)
            _exit(2);
    }
    disk_restore_done(&restore);
    data_dir_close(f);
    restore = data_dir_begin(f); /* also when it is opened on the full disk */
    if (restore.entry_count != last || restore.state.term != 99)
        _exit(3);
    disk_restore_done(&restore);
    (void)snprintf(ballast, sizeof ballast, "size=6m");
    if (mount(NULL, f->path, NULL, MS_REMOUNT, ballast) < 0)
        _exit(4);
    filled = fill_up(f, last, 1000);
    if (filled < last + 200)
        _exit(5);
    data_dir_close(f);
    restore = data_dir_reload(f);
    if (restore.entry_count != filled)
        _exit(6);
    disk_restore_done(&restore);
    _exit(0);
}

static void test_a_full_file_system_loses_nothing(void **state)
{
    struct data_dir *f = *state;
    int status;
    pid_t pid;

    if (geteuid() != 0)
        skip(); /* only root can mount a small file system */
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        run_on_a_full_disk(f);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/*
 * The child writes in transactions of three writes each, that belong together: the term, an entry that names
 * it, and now and then a snapshot. It tells how far it is, and is killed at any instant.
 */
static void write_for_ever(struct data_dir *f, int told)
{
    struct raft_restore restore = data_dir_begin(f);
    raft_index last = restore.snapshot.index + restore.entry_count;

    for (;; last++) {
        struct raft_entry *entries = make_entries(last + 1, 1, last + 1, (uint32_t)(last % 7 * 900 + 1));
        uint8_t bytes[5000] = {0};
        struct disk_write writes[] = {
            {.persist = {.has_state = true, .state = state_of(&restore, last + 1, last % 3 + 1)}},
            {.persist = {.first = last + 1, .last = last + 1}, .entries = entries},
            {.persist = {.has_snapshot = last % 20 == 19}},
        };

        memset(bytes, (int)(last & 0xFF), sizeof bytes);
        writes[2].snapshot = (struct raft_snapshot){
            .index = last - 5, .term = last - 5, .config_index = 0, .data = bytes, .size = sizeof bytes};
        three_members(&writes[2].snapshot.config);
        if (disk_write(f->disk, writes, 3, &f->error) != GAVEL_OK)
            _exit(1);
        free_entries(entries, 1);
        if (write(told, &(raft_index){last + 1}, sizeof last) != sizeof last)
            _exit(2);
    }
}

static raft_index kill_a_writer(struct data_dir *f, unsigned after_us, raft_index reads)
{
    int pipes[2];
    raft_index told = 0;
    raft_index got;
    int status;
    pid_t pid;

    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        write_for_ever(f, pipes[1]);
    (void)close(pipes[1]);
    for (raft_index i = 0; i < reads && read(pipes[0], &got, sizeof got) == sizeof got; i++)
        told = got;
    (void)usleep(after_us); /* not to wait for anything: to hit it at another instant each time */
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    while (read(pipes[0], &got, sizeof got) == sizeof got)
        told = got;
    (void)close(pipes[0]);
    return told;
}

static void test_a_killed_writer_leaves_whole_transactions(void **state)
{
    struct data_dir *f = *state;
    struct prng prng;

    prng_seed(&prng, 3);
    data_dir_open(f);
    data_dir_close(f);
    for (unsigned round = 0; round < 40; round++) {
        raft_index told = kill_a_writer(f, (unsigned)prng_below(&prng, 1500), 1 + prng_below(&prng, 15));
        struct raft_restore restore = data_dir_reload(f);
        raft_index last = restore.snapshot.index + restore.entry_count;

        assert_true(last == told || last == told + 1); /* all it told of, and at most the one under way */
        assert_int_equal(restore.state.term, last);    /* and that one as a whole */
        assert_int_equal(restore.state.vote, (last - 1) % 3 + 1);
        assert_true(restore.entry_count < 26);
        for (size_t i = 0; i < restore.entry_count; i++) {
            raft_index index = restore.snapshot.index + 1 + i;

            assert_true(is_entry(&restore.entries[i], index, index, (uint32_t)((index - 1) % 7 * 900 + 1)));
        }
        disk_restore_done(&restore);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, data_dir_setup, data_dir_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_a_full_directory_still_votes_and_compacts),
        CASE(test_a_snapshot_beyond_the_limit_changes_nothing),
        CASE(test_a_failed_fsync_is_final),
        CASE(test_a_full_disk_at_commit_may_be_tried_again),
        CASE(test_several_changes_are_one_transaction),
        CASE(test_a_full_file_system_loses_nothing),
        CASE(test_a_killed_writer_leaves_whole_transactions),
    };

    return cmocka_run_group_tests_name("disk faults", tests, NULL, NULL);
}
