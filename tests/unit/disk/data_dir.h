/* SPDX-License-Identifier: Apache-2.0 */

/* A data directory in a temporary place, and what the tests of src/disk write into it. */
#ifndef TEST_DISK_DATA_DIR_H
#define TEST_DISK_DATA_DIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "disk/disk.h"

#define OUR_CLUSTER 77
#define OUR_NODE 1

struct data_dir {
    char base[64];
    char path[128]; /* base/data */
    struct disk_options options;
    struct disk *disk;
    struct gavel_error error;
};

int data_dir_setup(void **state);
int data_dir_teardown(void **state);

/* Opens it, founds it with three members if it is new, and leaves it open. */
void data_dir_open(struct data_dir *f);
void data_dir_close(struct data_dir *f);
/* Opens an existing one; begins it. */
struct raft_restore data_dir_begin(struct data_dir *f);
/* A second look: opens, begins and closes. */
struct raft_restore data_dir_reload(struct data_dir *f);

enum gavel_status data_dir_try_open(struct data_dir *f);

void three_members(struct raft_config *ret_config);

/* Entries `first` … of a term, each of that many bytes that tell index and term. */
struct raft_entry *make_entries(raft_index first, size_t count, raft_term term, uint32_t size);
void free_entries(struct raft_entry *entries, size_t count);
bool is_entry(const struct raft_entry *entry, raft_index index, raft_term term, uint32_t size);

/* One append as one transaction. */
enum gavel_status append(struct data_dir *f, raft_index first, size_t count, raft_term term, uint32_t size);

/* The state that the node would write. */
struct raft_state state_of(const struct raft_restore *restore, raft_term term, raft_id vote);

/* Removes a directory and all that is in it. */
void remove_tree(const char *path);

#endif
