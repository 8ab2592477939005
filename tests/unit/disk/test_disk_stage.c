/* SPDX-License-Identifier: Apache-2.0 */

/* A snapshot that is written in pieces beside the one in force, and crashes at every point of it. */
#include "data_dir.h"

#include "disk/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SNAPSHOT_BYTES 300000u
#define ENTRIES 1000u

static struct raft_snapshot make_snapshot(raft_index index, size_t size)
{
    struct raft_snapshot snapshot = {.index = index, .term = 1, .config_index = 1, .size = size};
    uint8_t *bytes = malloc(size + 1);

    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 7 + index);
    three_members(&snapshot.config);
    snapshot.data = bytes;
    return snapshot;
}

static void free_snapshot(struct raft_snapshot *snapshot) { free((void *)(uintptr_t)snapshot->data); }

static void check_snapshot(const struct raft_restore *restore, const struct raft_snapshot *wanted)
{
    assert_int_equal(restore->snapshot.index, wanted->index);
    assert_int_equal(restore->snapshot.size, wanted->size);
    assert_memory_equal(restore->snapshot.data, wanted->data, wanted->size);
}

static void stage(struct data_dir *f, const struct raft_snapshot *snapshot, uint32_t count)
{
    for (uint32_t done = 0; done < count; done += 16)
        assert_int_equal(disk_stage(f->disk, snapshot->data, snapshot->size, done,
                                    count - done < 16 ? count - done : 16, &f->error),
                         GAVEL_OK);
}

static void use(struct data_dir *f, const struct raft_snapshot *snapshot)
{
    struct disk_write write = {.persist = {.has_snapshot = true}, .snapshot = *snapshot, .is_staged = true};

    assert_int_equal(disk_write(f->disk, &write, 1, &f->error), GAVEL_OK);
}

static void begin(struct data_dir *f)
{
    struct raft_restore restore = data_dir_begin(f);

    disk_restore_done(&restore);
}

/* In a child that dies without a word, as a node does that is killed. */
static void in_a_life_that_ends(struct data_dir *f, const struct raft_snapshot *snapshot, uint32_t pieces,
                                bool is_used)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        begin(f);
        stage(f, snapshot, pieces);
        if (is_used)
            use(f, snapshot);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void fill(struct data_dir *f)
{
    begin(f);
    assert_int_equal(append(f, 1, ENTRIES, 1, 100), GAVEL_OK);
    data_dir_close(f);
}

static void test_a_crash_while_it_is_staged_leaves_the_old_one(void **state)
{
    struct data_dir *f = *state;
    struct raft_snapshot snapshot = make_snapshot(900, SNAPSHOT_BYTES);
    uint32_t whole = disk_piece_count(SNAPSHOT_BYTES);
    const uint32_t counts[] = {1, 16, 17, whole - 1, whole};

    fill(f);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct raft_restore restore;

        in_a_life_that_ends(f, &snapshot, counts[i], false);
        assert_int_equal(data_dir_try_open(f), GAVEL_OK);
        assert_int_equal(f->disk->contents.version, RECORD_VERSION);
        assert_int_equal(f->disk->contents.spare, counts[i]);
        data_dir_close(f);
        restore = data_dir_begin(f);
        assert_int_equal(restore.snapshot.index, 0);
        assert_int_equal(restore.entry_count, ENTRIES);
        assert_true(disk_is_plain(&f->disk->contents)); /* the leftovers are gone */
        assert_int_equal(f->disk->contents.version, RECORD_VERSION_PLAIN);
        disk_restore_done(&restore);
        data_dir_close(f);
    }
    free_snapshot(&snapshot);
}

static void test_a_crash_after_it_was_used_leaves_the_new_one(void **state)
{
    struct data_dir *f = *state;
    raft_index index = 0;

    fill(f);
    for (unsigned i = 1; i <= 4; i++) { /* from slot to slot, longer and shorter */
        struct raft_snapshot snapshot = make_snapshot(index += 200, i % 2 ? SNAPSHOT_BYTES : 100000);
        struct raft_restore restore;

        in_a_life_that_ends(f, &snapshot, disk_piece_count(snapshot.size), true);
        restore = data_dir_begin(f);
        check_snapshot(&restore, &snapshot);
        assert_int_equal(restore.entry_count, ENTRIES - snapshot.index);
        assert_true(is_entry(&restore.entries[0], snapshot.index + 1, 1, 100));
        assert_int_equal(f->disk->contents.stale_first, 0);
        assert_int_equal(f->disk->contents.spare, 0);
        disk_restore_done(&restore);
        f->disk->is_begun = i == 2; /* else it ends without being settled */
        data_dir_close(f);
        free_snapshot(&snapshot);
    }
}

static void test_a_node_that_ends_in_order_leaves_what_an_older_one_can_read(void **state)
{
    struct data_dir *f = *state;
    struct raft_snapshot snapshot = make_snapshot(900, SNAPSHOT_BYTES);
    struct raft_restore restore;

    fill(f);
    begin(f);
    stage(f, &snapshot, disk_piece_count(SNAPSHOT_BYTES));
    use(f, &snapshot);
    assert_int_equal(f->disk->contents.slot, 1);
    assert_int_equal(f->disk->contents.version, RECORD_VERSION);
    data_dir_close(f);
    assert_int_equal(data_dir_try_open(f), GAVEL_OK);
    assert_true(disk_is_plain(&f->disk->contents));
    assert_int_equal(f->disk->contents.version, RECORD_VERSION_PLAIN);
    data_dir_close(f);
    restore = data_dir_begin(f);
    check_snapshot(&restore, &snapshot);
    assert_int_equal(restore.entry_count, ENTRIES - 900);
    disk_restore_done(&restore);
    free_snapshot(&snapshot);
}

static void test_what_is_left_is_removed_bit_by_bit(void **state)
{
    struct data_dir *f = *state;
    struct raft_snapshot first = make_snapshot(900, SNAPSHOT_BYTES);
    struct raft_snapshot second = make_snapshot(950, 10);
    const struct disk_contents *contents;
    unsigned writes = 0;

    fill(f);
    begin(f);
    contents = &f->disk->contents;
    stage(f, &first, disk_piece_count(SNAPSHOT_BYTES));
    use(f, &first);
    assert_true(contents->stale_last - contents->stale_first > 500);
    for (; contents->stale_first != 0; writes++)
        assert_int_equal(append(f, ENTRIES + 1 + writes, 1, 1, 10), GAVEL_OK);
    assert_in_range(writes, 2, 4);
    /* The pieces of the first are left over when a short one follows. */
    stage(f, &second, 1);
    use(f, &second);
    assert_int_equal(contents->slot, 0);
    assert_int_equal(append(f, ENTRIES + 1 + writes, 1, 1, 10), GAVEL_OK);
    assert_true(disk_is_plain(contents));
    assert_int_equal(contents->version, RECORD_VERSION_PLAIN);
    free_snapshot(&first);
    free_snapshot(&second);
}

/* A stage that is given up for another, shorter or longer, or for a snapshot in one piece. */
static void test_another_stage_takes_the_place_of_one(void **state)
{
    struct data_dir *f = *state;
    struct raft_snapshot given_up = make_snapshot(800, SNAPSHOT_BYTES);
    struct raft_snapshot used = make_snapshot(900, 20000);
    struct raft_snapshot at_once = make_snapshot(950, 50000);
    struct disk_write write = {.persist = {.has_snapshot = true, .restarts_log = true}, .snapshot = at_once};
    struct raft_restore restore;

    fill(f);
    begin(f);
    stage(f, &given_up, 60);
    stage(f, &used, disk_piece_count(used.size));
    use(f, &used);
    stage(f, &given_up, 60);
    assert_int_equal(disk_write(f->disk, &write, 1, &f->error), GAVEL_OK);
    data_dir_close(f);
    restore = data_dir_reload(f);
    check_snapshot(&restore, &at_once);
    assert_int_equal(restore.entry_count, 0);
    disk_restore_done(&restore);
    free_snapshot(&given_up);
    free_snapshot(&used);
    free_snapshot(&at_once);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, data_dir_setup, data_dir_teardown)
        TEST(test_a_crash_while_it_is_staged_leaves_the_old_one),
        TEST(test_a_crash_after_it_was_used_leaves_the_new_one),
        TEST(test_a_node_that_ends_in_order_leaves_what_an_older_one_can_read),
        TEST(test_what_is_left_is_removed_bit_by_bit),
        TEST(test_another_stage_takes_the_place_of_one),
    };

    return cmocka_run_group_tests_name("disk stage", tests, NULL, NULL);
}
