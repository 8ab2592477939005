/* SPDX-License-Identifier: Apache-2.0 */

/* The disk thread on a real, small disk: order, a disk that is full, and what becomes of it. */
#include "daemon/node/writer.h"

#include "disk/internal.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define ENTRY_BYTES 32768
#define LIMIT_MS 60000
#define STAGES 100000

/* What LMDB calls: a disk that hangs, while this says so. */
static _Atomic bool is_hanging;

static int sync_of(long number, int fd)
{
    while (atomic_load(&is_hanging))
        (void)poll(NULL, 0, 1);
    return (int)syscall(number, fd);
}

__attribute__((visibility("default"))) int fdatasync(int fd) { return sync_of(SYS_fdatasync, fd); }
__attribute__((visibility("default"))) int fsync(int fd) { return sync_of(SYS_fsync, fd); }

struct fixture {
    char directory[64];
    struct disk_options options;
    struct disk *disk;
    struct raft raft;
    struct writer writer;
    uint64_t seq;
    uint8_t bytes[ENTRY_BYTES];
};

static int set_up_with(void **state, size_t bytes_max)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct raft_state first = {.cluster = 7, .generation = 1, .id = 9};
    struct raft_snapshot snapshot = {.config = {.count = 1, .members = {{.id = 9, .is_voter = true}}}};
    struct raft_restore restore = {0};
    struct raft_settings settings;
    bool is_new;

    assert_non_null(f);
    (void)snprintf(f->directory, sizeof f->directory, "/tmp/gavel-test-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    f->options = (struct disk_options){.data_dir = f->directory, .bytes_max = bytes_max};
    f->options.identity.cluster = 7;
    f->options.identity.node = 9;
    (void)snprintf(f->options.identity.cluster_name, DISK_NAME_MAX, "c");
    (void)snprintf(f->options.identity.node_name, DISK_NAME_MAX, "n");
    assert_int_equal(disk_open(&f->options, &f->disk, &is_new, NULL), GAVEL_OK);
    assert_int_equal(disk_found(f->disk, &first, &snapshot, NULL), GAVEL_OK);
    assert_int_equal(disk_begin(f->disk, &restore, NULL), GAVEL_OK);
    raft_settings_default(&settings);
    assert_int_equal(raft_init(&f->raft, &settings, &restore, 1, NULL), GAVEL_OK);
    disk_restore_done(&restore);
    assert_int_equal(writer_start(&f->writer, f->disk, false), GAVEL_OK);
    *state = f;
    return 0;
}

static int set_up(void **state) { return set_up_with(state, 1 << 20); }

/* Room for a part of a snapshot. */
static int set_up_larger(void **state) { return set_up_with(state, 4 << 20); }

static int tear_down(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"data.mdb", "lock.mdb", "lock"};
    char path[128];

    assert_true(writer_stop(&f->writer));
    disk_close(f->disk);
    raft_done(&f->raft);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", f->directory, names[i]);
        (void)unlink(path); /* not all of them are there */
    }
    (void)rmdir(f->directory);
    free(f);
    return 0;
}

static struct raft_persist change(struct fixture *f, raft_term term, raft_index commit)
{
    struct raft_persist persist = {.seq = ++f->seq, .has_state = true, .state = f->raft.state};

    persist.state.term = term;
    persist.state.commit = commit;
    return persist;
}

static void put(struct fixture *f, const struct raft_persist *persist)
{
    assert_int_equal(writer_put(&f->writer, &f->raft, persist), GAVEL_OK);
}

static raft_index put_entry(struct fixture *f)
{
    struct raft_entry entry = {.term = 1, .kind = RAFT_ENTRY_DATA, .data = f->bytes, .size = sizeof f->bytes};
    struct raft_persist persist;

    assert_int_equal(raft_log_append(&f->raft.log, &entry), GAVEL_OK);
    persist = change(f, 1, raft_log_last(&f->raft.log) - 1);
    persist.first = persist.last = raft_log_last(&f->raft.log);
    put(f, &persist);
    return persist.last;
}

/* Waits until everything is durable, or the disk is full. True if it is durable. */
static bool await(struct fixture *f)
{
    for (int i = 0; i < LIMIT_MS; i++) {
        struct pollfd p = {.fd = f->writer.fd, .events = POLLIN};
        uint64_t rings;

        if (atomic_load(&f->writer.durable) == f->seq)
            return true;
        if (atomic_load(&f->writer.state) == WRITER_FULL)
            return false;
        (void)poll(&p, 1, 1);
        (void)!read(f->writer.fd, &rings, sizeof rings);
    }
    fail_msg("nothing happens");
    return false;
}

/* Entries until there is no room; returns the one that did not fit. */
static raft_index fill(struct fixture *f)
{
    raft_index index;

    do {
        index = put_entry(f);
        assert_true(index < 200);
    } while (await(f));
    return index;
}

static void test_changes_become_durable_in_order(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 5; i++)
        (void)put_entry(f);
    assert_true(await(f));
    assert_int_equal(atomic_load(&f->writer.state), WRITER_GOOD);
    assert_in_range(atomic_load(&f->writer.writes), 1, 5);
}

static void test_nothing_overtakes_what_did_not_fit(void **state)
{
    struct fixture *f = *state;
    raft_index full = fill(f);
    uint64_t durable = atomic_load(&f->writer.durable);
    struct raft_persist persist = change(f, 2, full); /* needs little room, and rests on the entry */
    struct gavel_error error = {0};
    bool is_new;

    put(f, &persist);
    assert_true(writer_stop(&f->writer));
    assert_int_equal(atomic_load(&f->writer.durable), durable);
    disk_close(f->disk);
    f->disk = NULL;
    if (disk_open(&f->options, &f->disk, &is_new, &error) != GAVEL_OK)
        fail_msg("%s", error.message);
}

static void test_a_snapshot_that_waits_makes_the_room(void **state)
{
    struct fixture *f = *state;
    raft_index full = fill(f);
    struct raft_persist persist = change(f, 1, full - 1);

    persist.has_snapshot = true;
    f->raft.snapshot.index = full - 1;
    f->raft.snapshot.term = 1;
    put(f, &persist);
    for (int i = 0; i < LIMIT_MS / 10 && atomic_load(&f->writer.durable) != f->seq; i++)
        (void)poll(NULL, 0, 10);
    assert_int_equal(atomic_load(&f->writer.durable), f->seq);
    assert_int_equal(atomic_load(&f->writer.state), WRITER_GOOD);
}

/* The thread that writes may be done with a blob before the one that handed it over goes on. */
static void test_what_is_staged_is_counted_however_fast_the_disk_is(void **state)
{
    struct fixture *f = *state;
    struct blob *blob = blob_copy(f->bytes, sizeof f->bytes);

    assert_non_null(blob);
    for (uint64_t i = 1; i <= STAGES; i++)
        assert_int_equal(writer_stage(&f->writer, blob), i);
    blob_drop(blob);
    for (int i = 0; i < LIMIT_MS / 10 && atomic_load(&f->writer.staged) != STAGES; i++)
        (void)poll(NULL, 0, 10);
    assert_int_equal(atomic_load(&f->writer.staged), STAGES);
}

static struct blob *make_blob(size_t size)
{
    uint8_t *bytes = calloc(1, size);
    struct blob *blob;

    assert_non_null(bytes);
    blob = blob_own(bytes, size);
    assert_non_null(blob);
    return blob;
}

static void await_stage(struct fixture *f, uint64_t number)
{
    for (int i = 0; i < LIMIT_MS && atomic_load(&f->writer.staged) < number; i++)
        (void)poll(NULL, 0, 1);
    assert_true(atomic_load(&f->writer.staged) >= number);
}

/* How many entries fit into a directory in which nothing was staged. */
static raft_index entries_that_fit(size_t bytes_max)
{
    void *state = NULL;
    raft_index index;

    (void)set_up_with(&state, bytes_max);
    index = fill(state);
    (void)tear_down(&state);
    return index;
}

static void test_a_stage_that_gives_up_gives_its_room_back(void **state)
{
    struct fixture *f = *state;
    raft_index fits = entries_that_fit(4 << 20);
    struct blob *blob = make_blob(4 << 20); /* more than there is room for, and much of it fits */

    await_stage(f, writer_stage(&f->writer, blob));
    assert_int_equal(fill(f), fits);
    blob_drop(blob);
}

static void test_a_stage_that_nobody_wants_gives_its_room_back(void **state)
{
    struct fixture *f = *state;
    raft_index fits = entries_that_fit(1 << 20);
    struct blob *blob = make_blob(100000);
    uint64_t number = writer_stage(&f->writer, blob);

    await_stage(f, number);
    writer_unstage(&f->writer, number);
    assert_int_equal(fill(f), fits);
    blob_drop(blob);
}

/* Nothing is written any more, and the pieces go all the same. */
static void test_what_is_left_goes_without_another_write(void **state)
{
    struct fixture *f = *state;
    struct blob *blob = make_blob(100000);
    uint64_t number = writer_stage(&f->writer, blob);
    uint64_t before;

    await_stage(f, number);
    before = atomic_load(&f->writer.written);
    writer_unstage(&f->writer, number);
    for (int i = 0; i < LIMIT_MS && atomic_load(&f->writer.written) == before; i++)
        (void)poll(NULL, 0, 1);
    assert_true(writer_stop(&f->writer));
    assert_true(disk_is_plain(&f->disk->contents));
    blob_drop(blob);
}

/* A snapshot is in force that was staged. */
static void use_stage(struct fixture *f)
{
    struct blob *blob = make_blob(100000);
    raft_index last = put_entry(f);
    uint64_t number = writer_stage(&f->writer, blob);
    struct raft_persist persist;

    assert_true(await(f));
    await_stage(f, number);
    persist = change(f, 1, last);
    persist.has_snapshot = true;
    f->raft.snapshot.index = last;
    f->raft.snapshot.term = 1;
    f->raft.snapshot.data = blob->bytes;
    f->raft.snapshot.size = blob->size;
    blob_drop(f->raft.snapshot.blob);
    f->raft.snapshot.blob = blob; /* its owner from now on */
    put(f, &persist);
    writer_unstage(&f->writer, number);
    assert_true(await(f));
}

/* Looked at while the disk hangs: settling moves the snapshot to the other slot. */
static void test_a_write_before_it_still_uses_the_stage_and_the_end_waits_for_no_hung_disk(void **state)
{
    struct fixture *f = *state;

    use_stage(f);
    atomic_store(&is_hanging, true);
    assert_false(writer_stop(&f->writer)); /* within a limit */
    assert_true(atomic_load(&f->writer.is_settling));
    assert_int_equal(f->disk->contents.slot, 1);
    assert_int_equal(f->disk->contents.snapshot.index, raft_log_last(&f->raft.log));
    atomic_store(&is_hanging, false);
    assert_true(writer_stop(&f->writer));
    assert_true(disk_is_plain(&f->disk->contents));
}

/* A write that hangs costs what a crash does, and the disk is not settled. */
static void test_the_end_does_not_wait_for_a_write_that_hangs(void **state)
{
    struct fixture *f = *state;

    use_stage(f);
    atomic_store(&is_hanging, true);
    (void)put_entry(f);
    assert_false(writer_stop(&f->writer));
    assert_false(atomic_load(&f->writer.is_settling));
    atomic_store(&is_hanging, false);
    assert_true(writer_stop(&f->writer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_changes_become_durable_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_overtakes_what_did_not_fit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_snapshot_that_waits_makes_the_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_staged_is_counted_however_fast_the_disk_is, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_stage_that_gives_up_gives_its_room_back, set_up_larger,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_stage_that_nobody_wants_gives_its_room_back, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_left_goes_without_another_write, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_write_before_it_still_uses_the_stage_and_the_end_waits_for_no_hung_disk, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(test_the_end_does_not_wait_for_a_write_that_hangs, set_up_larger,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
