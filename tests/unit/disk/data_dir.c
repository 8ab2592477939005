/* SPDX-License-Identifier: Apache-2.0 */

#include "data_dir.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int remove_item(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

void remove_tree(const char *path) { (void)nftw(path, remove_item, 16, FTW_DEPTH | FTW_PHYS); }

int data_dir_setup(void **state)
{
    struct data_dir *f = calloc(1, sizeof *f);
    const char *base = getenv("TMPDIR");

    assert_non_null(f);
    (void)snprintf(f->base, sizeof f->base, "%.40s/gavel-disk-XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(f->base));
    (void)snprintf(f->path, sizeof f->path, "%s/data", f->base);
    f->options = (struct disk_options){
        .data_dir = f->path,
        .identity = {.cluster_name = "home", .node_name = "n1", .cluster = OUR_CLUSTER, .node = OUR_NODE},
        .bytes_max = 64 << 20,
    };
    *state = f;
    return 0;
}

int data_dir_teardown(void **state)
{
    struct data_dir *f = *state;

    data_dir_close(f);
    remove_tree(f->base);
    free(f);
    return 0;
}

void three_members(struct raft_config *ret_config)
{
    *ret_config = (struct raft_config){.count = 3};
    for (unsigned i = 0; i < 3; i++)
        ret_config->members[i] =
            (struct raft_member){.id = i + 1, .priority = (uint8_t)(10 * i), .is_voter = true};
}

enum gavel_status data_dir_try_open(struct data_dir *f)
{
    bool is_new;

    data_dir_close(f);
    memset(&f->error, 0, sizeof f->error);
    return disk_open(&f->options, &f->disk, &is_new, &f->error);
}

void data_dir_open(struct data_dir *f)
{
    bool is_new;
    struct raft_state state = {.cluster = OUR_CLUSTER, .generation = 1, .id = OUR_NODE};
    struct raft_snapshot snapshot = {0};

    data_dir_close(f);
    if (disk_open(&f->options, &f->disk, &is_new, &f->error) != GAVEL_OK)
        fail_msg("%s", f->error.message);
    if (!is_new)
        return;
    three_members(&snapshot.config);
    if (disk_found(f->disk, &state, &snapshot, &f->error) != GAVEL_OK)
        fail_msg("%s", f->error.message);
}

void data_dir_close(struct data_dir *f)
{
    if (f->disk)
        disk_settle(f->disk);
    disk_close(f->disk);
    f->disk = NULL;
}

struct raft_restore data_dir_begin(struct data_dir *f)
{
    struct raft_restore restore = {0};

    data_dir_open(f);
    if (disk_begin(f->disk, &restore, &f->error) != GAVEL_OK)
        fail_msg("%s", f->error.message);
    return restore;
}

struct raft_restore data_dir_reload(struct data_dir *f)
{
    struct raft_restore restore = data_dir_begin(f);

    data_dir_close(f);
    return restore;
}

static void fill(uint8_t *bytes, uint32_t size, raft_index index, raft_term term)
{
    for (uint32_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(index * 31 + term * 7 + i);
}

struct raft_entry *make_entries(raft_index first, size_t count, raft_term term, uint32_t size)
{
    struct raft_entry *entries = calloc(count + 1, sizeof *entries);

    assert_non_null(entries);
    for (size_t i = 0; i < count; i++) {
        uint8_t *bytes = size > 0 ? malloc(size) : NULL;

        if (size > 0) {
            assert_non_null(bytes);
            fill(bytes, size, first + i, term);
        }
        entries[i] = (struct raft_entry){
            .term = term, .kind = size > 0 ? RAFT_ENTRY_DATA : RAFT_ENTRY_NOOP, .size = size, .data = bytes};
    }
    return entries;
}

void free_entries(struct raft_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)entries[i].data);
    free(entries);
}

bool is_entry(const struct raft_entry *entry, raft_index index, raft_term term, uint32_t size)
{
    struct raft_entry *wanted = make_entries(index, 1, term, size);
    bool is_same = entry->term == term && entry->kind == wanted->kind && entry->size == size &&
                   (size == 0 || memcmp(entry->data, wanted->data, size) == 0);

    free_entries(wanted, 1);
    return is_same;
}

enum gavel_status append(struct data_dir *f, raft_index first, size_t count, raft_term term, uint32_t size)
{
    struct raft_entry *entries = make_entries(first, count, term, size);
    struct disk_write write = {.persist = {.first = first, .last = first + count - 1}, .entries = entries};
    enum gavel_status status = disk_write(f->disk, &write, 1, &f->error);

    free_entries(entries, count);
    return status;
}

struct raft_state state_of(const struct raft_restore *restore, raft_term term, raft_id vote)
{
    struct raft_state state = restore->state;

    state.term = term;
    state.vote = vote;
    return state;
}
