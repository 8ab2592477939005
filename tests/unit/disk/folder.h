/* SPDX-License-Identifier: Apache-2.0 */

/* A data folder in a temporary place, and what the tests of src/disk write into it. */
#ifndef TEST_DISK_FOLDER_H
#define TEST_DISK_FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "disk/disk.h"

#define OUR_CLUSTER 77
#define OUR_NODE 1

struct folder {
    char base[64];
    char path[128]; /* base/data */
    struct disk_options options;
    struct disk *disk;
    struct gavel_error error;
};

int folder_setup(void **state);
int folder_teardown(void **state);

/* Opens it, founds it with three members if it is new, and leaves it open. */
void folder_open(struct folder *f);
void folder_close(struct folder *f);
/* Opens an existing one; begins it. */
struct raft_restore folder_begin(struct folder *f);
/* A second look: opens, begins and closes. */
struct raft_restore folder_reload(struct folder *f);

enum gavel_status folder_try_open(struct folder *f);

void three_members(struct raft_config *ret_config);

/* Entries `first` … of a term, each of that many bytes that tell index and term. */
struct raft_entry *make_entries(raft_index first, size_t count, raft_term term, uint32_t size);
void free_entries(struct raft_entry *entries, size_t count);
bool is_entry(const struct raft_entry *entry, raft_index index, raft_term term, uint32_t size);

/* One append as one transaction. */
enum gavel_status append(struct folder *f, raft_index first, size_t count, raft_term term, uint32_t size);

/* The state that the node would write. */
struct raft_state state_of(const struct raft_restore *restore, raft_term term, raft_id vote);

/* Removes a folder and all that is in it. */
void remove_tree(const char *path);

#endif
