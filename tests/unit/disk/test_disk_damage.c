/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files that were changed by something else than us. Whatever is flipped: the directory is refused as
 * damaged, or what it gives back is exactly what was written. Never a crash, never a different state.
 */
#include "data_dir.h"

#include "base/prng.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file as bytes. */
struct image {
    char path[256];
    uint8_t *bytes;
    size_t size;
};

static void image_load(struct image *image, const struct data_dir *f)
{
    struct stat info;
    int fd;

    (void)snprintf(image->path, sizeof image->path, "%s/data.mdb", f->path);
    fd = open(image->path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &info), 0);
    image->size = (size_t)info.st_size;
    image->bytes = malloc(image->size);
    assert_non_null(image->bytes);
    assert_int_equal(read(fd, image->bytes, image->size), (ssize_t)image->size);
    (void)close(fd);
}

static void image_patch(const struct image *image, size_t at, const void *bytes, size_t size)
{
    int fd = open(image->path, O_WRONLY);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, size, (off_t)at), (ssize_t)size);
    (void)close(fd);
}

/* What begin() would give, as one number; without its write, so that the file stays as it is. */
static uint64_t digest(const struct raft_restore *r)
{
    uint64_t sum = 1469598103934665603u;
    const struct {
        const void *bytes;
        size_t size;
    } parts[] = {
        {&r->state.term, sizeof r->state.term},
        {&r->state.vote, sizeof r->state.vote},
        {&r->state.commit, sizeof r->state.commit},
        {&r->state.promise, sizeof r->state.promise},
        {&r->snapshot.index, sizeof r->snapshot.index},
        {&r->snapshot.config, sizeof r->snapshot.config},
        {&r->state.incarnation, sizeof r->state.incarnation},
        {r->snapshot.data, r->snapshot.size},
    };

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        for (size_t j = 0; j < parts[i].size; j++)
            sum = (sum ^ ((const uint8_t *)parts[i].bytes)[j]) * 1099511628211u;
    }
    for (size_t i = 0; i < r->entry_count; i++) {
        sum = (sum ^ r->entries[i].term) * 1099511628211u;
        for (size_t j = 0; j < r->entries[i].size; j++)
            sum = (sum ^ r->entries[i].data[j]) * 1099511628211u;
    }
    return sum;
}

/* A file with some of everything: small and large entries, a snapshot in pieces, free pages. */
static void make_contents(struct data_dir *f)
{
    uint8_t bytes[70000];
    struct disk_write write = {.persist = {.has_snapshot = true, .has_state = true}};
    struct raft_restore restore = data_dir_begin(f);

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 256 * 11);
    write.persist.state = state_of(&restore, 5, 2);
    write.persist.state.commit = 30;
    write.persist.state.promise =
        (struct raft_promise){.leader = 2, .incarnation = 1, .term = 5, .length = 1000};
    write.snapshot = (struct raft_snapshot){
        .index = 25, .term = 4, .config_index = 3, .data = bytes, .size = sizeof bytes};
    three_members(&write.snapshot.config);
    assert_int_equal(append(f, 1, 40, 4, 300), GAVEL_OK);
    assert_int_equal(append(f, 41, 1, 5, 9000), GAVEL_OK);
    assert_int_equal(append(f, 42, 2, 5, 20), GAVEL_OK);
    assert_int_equal(disk_write(f->disk, &write, 1, &f->error), GAVEL_OK);
    assert_int_equal(append(f, 44, 30, 5, 90), GAVEL_OK);
    disk_restore_done(&restore);
    data_dir_close(f);
}

/* True if it was refused; otherwise it must be what it was, and must take writes. */
static bool is_refused(struct data_dir *f, uint64_t wanted, size_t at)
{
    struct raft_restore restore;

    switch (data_dir_try_open(f)) {
    case GAVEL_OK:
        break;
    case GAVEL_ERR_STORE_DAMAGED:
        assert_non_null(strstr(f->error.message, "let it join with an empty directory"));
        return true;
    default:
        fail_msg("byte %zu: %s", at, f->error.message);
    }
    assert_int_equal(disk_begin(f->disk, &restore, &f->error), GAVEL_OK);
    if (digest(&restore) != wanted)
        fail_msg("byte %zu: changed, and nobody noticed", at);
    disk_restore_done(&restore);
    data_dir_close(f);
    return false;
}

static void test_a_flipped_bit_is_found_or_does_no_harm(void **state)
{
    struct data_dir *f = *state;
    struct image image = {0};
    struct raft_restore restore;
    struct prng prng;
    uint64_t wanted;
    size_t used;
    size_t refused = 0;

    make_contents(f);
    image_load(&image, f);
    restore = data_dir_reload(f);
    wanted = digest(&restore);
    disk_restore_done(&restore);
    image_patch(&image, 0, image.bytes, image.size);
    for (used = image.size; used > 0 && image.bytes[used - 1] == 0; used--)
        ;
    assert_true(used > 30 * 4096);
    prng_seed(&prng, 1);
    for (size_t at = 0; at < used; at += 1 + prng_below(&prng, at < 8192 ? 24 : 300)) {
        uint8_t byte = image.bytes[at] ^ (uint8_t)(1u << prng_below(&prng, 8));

        image_patch(&image, at, &byte, 1);
        if (is_refused(f, wanted, at))
            refused++;
        else
            image_patch(&image, 0, image.bytes, used + 65536); /* beginning has written */
        image_patch(&image, at, &image.bytes[at], 1);
    }
    print_message("# %zu bytes, %zu flips refused\n", used, refused);
    assert_true(refused > used / 600);
    free(image.bytes);
}

static void test_a_page_of_noise_is_found(void **state)
{
    struct data_dir *f = *state;
    struct image image = {0};
    struct raft_restore restore;
    struct prng prng;
    uint64_t wanted;
    size_t refused = 0;

    make_contents(f);
    image_load(&image, f);
    restore = data_dir_reload(f);
    wanted = digest(&restore);
    disk_restore_done(&restore);
    prng_seed(&prng, 2);
    for (size_t page = 0; page < 60; page++) {
        uint8_t noise[4096];

        for (size_t i = 0; i < sizeof noise; i++)
            noise[i] = page % 2 ? (uint8_t)prng_below(&prng, 256) : 0xFF;
        image_patch(&image, 0, image.bytes, image.size);
        image_patch(&image, page * 4096, noise, sizeof noise);
        refused += is_refused(f, wanted, page * 4096);
    }
    assert_true(refused >= 20);
    free(image.bytes);
}

static void test_pages_that_changed_places_are_found(void **state)
{
    struct data_dir *f = *state;
    struct image image = {0};
    struct raft_restore restore;
    uint64_t wanted;
    size_t refused = 0;

    make_contents(f);
    image_load(&image, f);
    restore = data_dir_reload(f);
    wanted = digest(&restore);
    disk_restore_done(&restore);
    for (size_t page = 0; page < 60; page++) {
        image_patch(&image, 0, image.bytes, image.size);
        image_patch(&image, page * 4096, image.bytes + (page + 1) * 4096, 4096);
        refused += is_refused(f, wanted, page * 4096);
    }
    assert_true(refused >= 20);
    free(image.bytes);
}

static void test_a_file_that_is_cut_off_is_refused(void **state)
{
    static const off_t sizes[] = {0, 1, 100, 4096, 8191, 8192, 12288, 40000};
    struct data_dir *f = *state;
    struct image image = {0};

    make_contents(f);
    image_load(&image, f);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(truncate(image.path, sizes[i]), 0);
        assert_int_equal(data_dir_try_open(f), GAVEL_ERR_STORE_DAMAGED);
    }
    free(image.bytes);
}

/*
 * Where the file names its transactions: n on page n mod 2, in its last field. Of the two pages at rest one
 * has the newest, the other the one before.
 */
#define TXN_AT 144

static uint64_t txn_on(const struct image *image, size_t page)
{
    uint64_t txn;

    memcpy(&txn, image->bytes + page * 4096 + TXN_AT, sizeof txn);
    return txn;
}

static void test_an_older_transaction_is_not_taken_for_the_newest(void **state)
{
    struct data_dir *f = *state;
    struct image older = {0};
    struct image newer = {0};
    size_t before;
    struct raft_restore restore = data_dir_begin(f);

    disk_restore_done(&restore);
    for (raft_index i = 1; i <= 6; i++)
        assert_int_equal(append(f, i, 1, 1, 10), GAVEL_OK);
    data_dir_close(f);
    image_load(&older, f);
    restore = data_dir_begin(f);
    disk_restore_done(&restore);
    assert_int_equal(append(f, 7, 1, 1, 10), GAVEL_OK);
    data_dir_close(f);
    image_load(&newer, f);
    before = txn_on(&newer, 0) < txn_on(&newer, 1) ? 0 : 1;
    image_patch(&newer, before * 4096, older.bytes + before * 4096, 4096);
    assert_int_equal(data_dir_try_open(f), GAVEL_ERR_STORE_DAMAGED);
    /* Only the number is changed, so that the two look as if they followed each other. */
    for (size_t page = 0; page < 2; page++) {
        for (int by = -2; by <= 2; by += 4) {
            uint64_t changed = txn_on(&newer, page) + (uint64_t)by;

            image_patch(&newer, 0, newer.bytes, newer.size);
            image_patch(&newer, page * 4096 + TXN_AT, &changed, sizeof changed);
            assert_int_equal(data_dir_try_open(f), GAVEL_ERR_STORE_DAMAGED);
        }
    }
    image_patch(&newer, 0, newer.bytes, newer.size);
    assert_int_equal(data_dir_try_open(f), GAVEL_OK);
    free(older.bytes);
    free(newer.bytes);
}

static void test_a_page_of_another_node_is_found(void **state)
{
    struct data_dir *f = *state;
    struct image theirs = {0};
    struct image ours = {0};
    char path[sizeof f->path];
    size_t refused = 0;

    (void)snprintf(path, sizeof path, "%s/other", f->base);
    make_contents(f);
    image_load(&ours, f);
    f->options.identity.node = 2;
    (void)snprintf(f->options.identity.node_name, DISK_NAME_MAX, "n2");
    (void)snprintf(f->path, sizeof f->path, "%s", path);
    /* The same writes, so that all pages lie where ours do. The founded state names its own id. */
    make_contents(f);
    image_load(&theirs, f);
    f->options.identity.node = OUR_NODE;
    (void)snprintf(f->options.identity.node_name, DISK_NAME_MAX, "n1");
    (void)snprintf(f->path, sizeof f->path, "%s/data", f->base);
    for (size_t page = 2; page < 60; page++) {
        if (memcmp(ours.bytes + page * 4096, theirs.bytes + page * 4096, 4096) == 0)
            continue;
        image_patch(&ours, 0, ours.bytes, ours.size);
        image_patch(&ours, page * 4096, theirs.bytes + page * 4096, 4096);
        if (data_dir_try_open(f) != GAVEL_OK)
            refused++;
    }
    assert_true(refused >= 4);
    free(ours.bytes);
    free(theirs.bytes);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, data_dir_setup, data_dir_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_a_flipped_bit_is_found_or_does_no_harm),
        CASE(test_a_page_of_noise_is_found),
        CASE(test_pages_that_changed_places_are_found),
        CASE(test_a_file_that_is_cut_off_is_refused),
        CASE(test_an_older_transaction_is_not_taken_for_the_newest),
        CASE(test_a_page_of_another_node_is_found),
    };

    return cmocka_run_group_tests_name("disk damage", tests, NULL, NULL);
}
