/* SPDX-License-Identifier: Apache-2.0 */

/* What is written is there again after opening anew: all of it, and nothing else. */
#include "data_dir.h"

#include "base/prng.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void put(struct data_dir *f, const struct disk_write *writes, size_t count)
{
    if (disk_write(f->disk, writes, count, &f->error) != GAVEL_OK)
        fail_msg("%s", f->error.message);
}

static void test_a_new_directory_is_private_and_says_that_it_is_new(void **state)
{
    struct data_dir *f = *state;
    struct stat info;
    char path[256];
    bool is_new = false;

    assert_int_equal(disk_open(&f->options, &f->disk, &is_new, &f->error), GAVEL_OK);
    assert_true(is_new);
    data_dir_close(f);
    assert_int_equal(disk_open(&f->options, &f->disk, &is_new, &f->error), GAVEL_OK);
    assert_true(is_new); /* nothing was founded */
    data_dir_open(f);
    data_dir_close(f);
    assert_int_equal(disk_open(&f->options, &f->disk, &is_new, &f->error), GAVEL_OK);
    assert_false(is_new);
    assert_int_equal(stat(f->path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    (void)snprintf(path, sizeof path, "%s/data.mdb", f->path);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
}

static void test_directories_above_are_made_too(void **state)
{
    struct data_dir *f = *state;
    char deep[160];

    (void)snprintf(deep, sizeof deep, "%s/a/b//c/", f->base);
    f->options.data_dir = deep;
    data_dir_open(f);
    assert_int_equal(access(deep, F_OK), 0);
    data_dir_close(f);
}

static void test_everything_of_the_state_comes_back(void **state)
{
    struct data_dir *f = *state;
    struct raft_restore restore = data_dir_begin(f);
    struct raft_state wanted = state_of(&restore, 9, 3);
    struct disk_write write = {.persist = {.has_state = true}};

    assert_int_equal(restore.state.incarnation, 1);
    assert_int_equal(restore.snapshot.config.count, 3);
    assert_int_equal(restore.snapshot.config.members[2].priority, 20);
    wanted.promise = (struct raft_promise){
        .leader = 3, .incarnation = 12, .term = 8, .lease_epoch = 4, .length = 150 * NS_PER_MS};
    write.persist.state = wanted;
    put(f, &write, 1);
    disk_restore_done(&restore);
    data_dir_close(f);
    restore = data_dir_reload(f);
    wanted.incarnation++;
    assert_memory_equal(&restore.state.promise, &wanted.promise, sizeof wanted.promise);
    assert_int_equal(restore.state.cluster, OUR_CLUSTER);
    assert_int_equal(restore.state.id, OUR_NODE);
    assert_int_equal(restore.state.generation, 1);
    assert_int_equal(restore.state.term, 9);
    assert_int_equal(restore.state.vote, 3);
    assert_int_equal(restore.state.incarnation, 2);
    disk_restore_done(&restore);
}

static void test_what_is_known_of_others_comes_back(void **state)
{
    static const struct raft_met known[] = {
        {.id = 2, .directory = 77, .incarnation = 5, .start = 99, .began_at = 3, .acked = 12},
        {.id = 3, .directory = 78, .incarnation = 1, .start = 98, .is_refused = true},
    };
    struct data_dir *f = *state;
    struct raft_restore restore = data_dir_begin(f);
    struct disk_write write = {.persist = {.has_met = true}};
    uint64_t start = restore.state.start;

    assert_int_equal(restore.state.met_count, 0);
    assert_int_not_equal(start, 0);
    write.persist.state = state_of(&restore, 9, 3);
    write.persist.state.met_count = 2;
    memcpy(write.persist.state.met, known, sizeof known);
    put(f, &write, 1);
    disk_restore_done(&restore);
    data_dir_close(f);
    restore = data_dir_reload(f);
    assert_int_equal(restore.state.term, 0); /* nothing else was to be written */
    assert_int_equal(restore.state.met_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(restore.state.met[i].id, known[i].id);
        assert_int_equal(restore.state.met[i].directory, known[i].directory);
        assert_int_equal(restore.state.met[i].incarnation, known[i].incarnation);
        assert_int_equal(restore.state.met[i].start, known[i].start);
        assert_int_equal(restore.state.met[i].began_at, known[i].began_at);
        assert_int_equal(restore.state.met[i].acked, known[i].acked);
        assert_int_equal(restore.state.met[i].is_refused, known[i].is_refused);
    }
    assert_int_not_equal(restore.state.start, start); /* another one each time */
    disk_restore_done(&restore);
}

static void test_the_incarnation_grows_with_each_beginning(void **state)
{
    struct data_dir *f = *state;

    for (unsigned i = 1; i <= 5; i++) {
        struct raft_restore restore = data_dir_reload(f);

        assert_int_equal(restore.state.incarnation, i);
        disk_restore_done(&restore);
        data_dir_open(f); /* without beginning */
        data_dir_close(f);
    }
}

static void test_entries_of_all_sizes_come_back(void **state)
{
    static const uint32_t sizes[] = {0, 1, 7, 8, 100, 1990, 2100, 4096, 70000, RAFT_ENTRY_BYTES_MAX};
    const size_t count = sizeof sizes / sizeof *sizes;
    struct data_dir *f = *state;
    struct raft_restore restore = data_dir_begin(f);

    disk_restore_done(&restore);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(append(f, i + 1, 1, i + 1, sizes[i]), GAVEL_OK);
    data_dir_close(f);
    restore = data_dir_reload(f);
    assert_int_equal(restore.entry_count, count);
    for (size_t i = 0; i < count; i++)
        assert_true(is_entry(&restore.entries[i], i + 1, i + 1, sizes[i]));
    disk_restore_done(&restore);
}

static void test_what_is_cut_off_stays_away(void **state)
{
    struct data_dir *f = *state;
    struct raft_restore restore = data_dir_begin(f);
    struct raft_entry *entries = make_entries(4, 3, 2, 50);
    struct disk_write writes[] = {
        {.persist = {.truncate = 8}},
        {.persist = {.truncate = 4, .first = 4, .last = 6}, .entries = entries},
    };

    disk_restore_done(&restore);
    assert_int_equal(append(f, 1, 10, 1, 50), GAVEL_OK);
    put(f, writes, 2);
    data_dir_close(f);
    restore = data_dir_reload(f);
    assert_int_equal(restore.entry_count, 6);
    for (size_t i = 0; i < 6; i++)
        assert_true(is_entry(&restore.entries[i], i + 1, i < 3 ? 1 : 2, 50));
    disk_restore_done(&restore);
    free_entries(entries, 3);
}

/* A snapshot of so many bytes that stands for the log up to index. */
static struct raft_snapshot make_snapshot(raft_index index, raft_term term, size_t size)
{
    struct raft_snapshot snapshot = {.index = index, .term = term, .config_index = 1, .size = size};
    uint8_t *bytes = malloc(size + 1);

    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 13 + index);
    three_members(&snapshot.config);
    snapshot.data = bytes;
    return snapshot;
}

static void free_snapshot(struct raft_snapshot *snapshot) { free((void *)(uintptr_t)snapshot->data); }

static void check_snapshot(const struct raft_restore *restore, const struct raft_snapshot *wanted)
{
    assert_int_equal(restore->snapshot.index, wanted->index);
    assert_int_equal(restore->snapshot.term, wanted->term);
    assert_int_equal(restore->snapshot.config_index, wanted->config_index);
    assert_int_equal(restore->snapshot.size, wanted->size);
    assert_memory_equal(restore->snapshot.data, wanted->data, wanted->size);
    assert_memory_equal(&restore->snapshot.config, &wanted->config, sizeof wanted->config);
}

static void test_compaction_keeps_the_entries_behind_the_snapshot(void **state)
{
    static const size_t sizes[] = {300000, 4072, 4073, 10, 0, 8144};
    struct data_dir *f = *state;
    struct raft_restore restore = data_dir_begin(f);

    disk_restore_done(&restore);
    assert_int_equal(append(f, 1, 20, 1, 200), GAVEL_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct raft_snapshot snapshot = make_snapshot(i + 5, 1, sizes[i]);
        struct disk_write write = {.persist = {.has_snapshot = true}, .snapshot = snapshot};

        put(f, &write, 1);
        data_dir_close(f);
        restore = data_dir_begin(f);
        check_snapshot(&restore, &snapshot);
        assert_int_equal(restore.entry_count, 20 - snapshot.index);
        assert_true(is_entry(&restore.entries[0], snapshot.index + 1, 1, 200));
        disk_restore_done(&restore);
        free_snapshot(&snapshot);
    }
}

static void test_a_snapshot_of_the_leader_takes_the_place_of_the_log(void **state)
{
    struct data_dir *f = *state;
    struct raft_snapshot behind = make_snapshot(7, 3, 1000);
    struct raft_snapshot beyond = make_snapshot(50, 4, 1000);
    struct raft_entry *entries = make_entries(51, 2, 4, 30);
    struct disk_write restarts = {.persist = {.has_snapshot = true, .restarts_log = true},
                                  .snapshot = behind};
    struct disk_write more = {
        .persist = {.has_snapshot = true, .first = 51, .last = 52}, .snapshot = beyond, .entries = entries};
    struct raft_restore restore = data_dir_begin(f);

    disk_restore_done(&restore);
    assert_int_equal(append(f, 1, 20, 1, 200), GAVEL_OK);
    put(f, &restarts, 1);
    data_dir_close(f);
    restore = data_dir_begin(f);
    check_snapshot(&restore, &behind);
    assert_int_equal(restore.entry_count, 0);
    disk_restore_done(&restore);
    put(f, &more, 1);
    data_dir_close(f);
    restore = data_dir_reload(f);
    check_snapshot(&restore, &beyond);
    assert_int_equal(restore.entry_count, 2);
    assert_true(is_entry(&restore.entries[1], 52, 4, 30));
    disk_restore_done(&restore);
    free_entries(entries, 2);
    free_snapshot(&behind);
    free_snapshot(&beyond);
}

static void test_joint_configurations_come_back(void **state)
{
    struct data_dir *f = *state;
    struct raft_snapshot snapshot = make_snapshot(3, 2, 10);
    struct disk_write write = {.persist = {.has_snapshot = true}};
    struct raft_restore restore = data_dir_begin(f);

    disk_restore_done(&restore);
    snapshot.config.is_joint = true;
    for (unsigned i = 0; i < 3; i++)
        snapshot.config.members[i].was_voter = i < 2;
    snapshot.config.members[2].is_witness = true;
    write.snapshot = snapshot;
    assert_int_equal(append(f, 1, 3, 2, 5), GAVEL_OK);
    put(f, &write, 1);
    data_dir_close(f);
    restore = data_dir_reload(f);
    check_snapshot(&restore, &snapshot);
    disk_restore_done(&restore);
    free_snapshot(&snapshot);
}

static void test_nothing_is_passed_on_to_programs_that_are_started(void **state)
{
    struct data_dir *f = *state;
    DIR *fds;
    struct dirent *item;
    unsigned ours = 0;

    data_dir_open(f);
    fds = opendir("/proc/self/fd");
    assert_non_null(fds);
    while ((item = readdir(fds))) {
        char link[300];
        char target[256] = "";

        (void)snprintf(link, sizeof link, "/proc/self/fd/%s", item->d_name);
        if (readlink(link, target, sizeof target - 1) < 0 || !strstr(target, f->path))
            continue;
        ours++;
        assert_true(fcntl(atoi(item->d_name), F_GETFD) & FD_CLOEXEC);
    }
    (void)closedir(fds);
    assert_true(ours >= 3); /* the lock, and two of LMDB */
}

static void test_usage_counts_what_is_there(void **state)
{
    struct data_dir *f = *state;
    struct disk_usage usage;
    struct raft_restore restore = data_dir_begin(f);

    disk_restore_done(&restore);
    disk_usage_read(f->disk, &usage);
    assert_int_equal(usage.entries, 0);
    assert_int_equal(usage.bytes_max, 64 << 20);
    assert_int_equal(append(f, 1, 10, 1, 100000), GAVEL_OK);
    disk_usage_read(f->disk, &usage);
    assert_int_equal(usage.entries, 10);
    assert_true(usage.bytes_used > 1000000);
    assert_true(usage.bytes_used < 1200000);
}

/* What the disk should hold: for each index the term and the size of its entry. */
struct model {
    raft_index base;
    raft_index last;
    raft_term terms[4096];
    uint32_t sizes[4096];
};

static void compare(struct data_dir *f, const struct model *model)
{
    struct raft_restore restore = data_dir_begin(f);

    assert_int_equal(restore.snapshot.index, model->base);
    assert_int_equal(restore.snapshot.index + restore.entry_count, model->last);
    for (raft_index i = model->base + 1; i <= model->last; i++)
        assert_true(is_entry(&restore.entries[i - model->base - 1], i, model->terms[i], model->sizes[i]));
    disk_restore_done(&restore);
}

/* Fills in one write, and what it makes of the model. */
static void choose_write(struct prng *prng, struct model *model, raft_term term, struct disk_write *write,
                         size_t *ret_count)
{
    size_t count = prng_below(prng, 20);
    uint32_t size = (uint32_t)prng_below(prng, prng_chance(prng, 200) ? 30000 : 300);

    memset(write, 0, sizeof *write);
    if (model->last > model->base && prng_chance(prng, 200)) {
        write->persist.truncate = model->base + 1 + prng_below(prng, model->last - model->base);
        model->last = write->persist.truncate - 1;
    } else if (model->last > model->base && prng_chance(prng, 100)) {
        write->persist.has_snapshot = true;
        write->snapshot = make_snapshot(model->base + 1 + prng_below(prng, model->last - model->base), term,
                                        prng_below(prng, 40000));
        write->snapshot.term = model->terms[write->snapshot.index];
        write->persist.restarts_log = prng_chance(prng, 200);
        model->base = write->snapshot.index;
        if (write->persist.restarts_log)
            model->last = model->base;
    }
    if (count > 0) {
        write->persist.first = model->last + 1;
        write->persist.last = model->last + count;
        write->entries = make_entries(write->persist.first, count, term, size);
    }
    for (size_t i = 0; i < count; i++) {
        model->last++;
        model->terms[model->last] = term;
        model->sizes[model->last] = size;
    }
    *ret_count = count;
}

static void test_any_order_of_writes_comes_back(void **state)
{
    struct data_dir *f = *state;
    struct model *model = calloc(1, sizeof *model);
    struct raft_restore restore = data_dir_begin(f);
    struct prng prng;

    assert_non_null(model);
    disk_restore_done(&restore);
    prng_seed(&prng, 4);
    for (raft_term term = 1; term < 400 && model->last < 3900; term++) {
        struct disk_write writes[3];
        size_t counts[3];
        size_t count = 1 + prng_below(&prng, 3);

        for (size_t i = 0; i < count; i++)
            choose_write(&prng, model, term, &writes[i], &counts[i]);
        put(f, writes, count);
        for (size_t i = 0; i < count; i++) {
            if (counts[i] > 0)
                free_entries(writes[i].entries, counts[i]);
            free_snapshot(&writes[i].snapshot);
        }
        if (prng_chance(&prng, 300)) {
            data_dir_close(f);
            compare(f, model);
        }
    }
    assert_true(model->base > 0);
    assert_true(model->last > 1000);
    free(model);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, data_dir_setup, data_dir_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_a_new_directory_is_private_and_says_that_it_is_new),
        CASE(test_directories_above_are_made_too),
        CASE(test_everything_of_the_state_comes_back),
        CASE(test_what_is_known_of_others_comes_back),
        CASE(test_the_incarnation_grows_with_each_beginning),
        CASE(test_entries_of_all_sizes_come_back),
        CASE(test_what_is_cut_off_stays_away),
        CASE(test_compaction_keeps_the_entries_behind_the_snapshot),
        CASE(test_a_snapshot_of_the_leader_takes_the_place_of_the_log),
        CASE(test_joint_configurations_come_back),
        CASE(test_nothing_is_passed_on_to_programs_that_are_started),
        CASE(test_usage_counts_what_is_there),
        CASE(test_any_order_of_writes_comes_back),
    };

    return cmocka_run_group_tests_name("disk writes", tests, NULL, NULL);
}
