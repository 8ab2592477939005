/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The pages of LMDB's file, as lmdb 0.9 lays them out (data version 1). LMDB
 * keeps the layout private; it is repeated here because pages.c must check a
 * file before LMDB opens it.
 *
 *   page 0, page 1    header · meta: the two newest transactions, alternating
 *   branch, leaf      header · offsets of nodes, growing up · room · nodes, growing down
 *   overflow          header · a value that is too large for a leaf, on consecutive pages
 */
#ifndef DISK_PAGES_H
#define DISK_PAGES_H

#include <stddef.h>
#include <stdint.h>

#define PAGES_MAGIC 0xBEEFC0DE
#define PAGES_VERSION 1
#define PAGES_NONE SIZE_MAX /* the root of an empty tree */

enum { PAGE_BRANCH = 0x01, PAGE_LEAF = 0x02, PAGE_OVERFLOW = 0x04, PAGE_META = 0x08 };
enum { NODE_BIG = 0x01 };
enum { TREE_INTEGER_KEYS = 0x08 };

struct page_header {
    size_t number;
    uint16_t pad;
    uint16_t flags;
    union {
        struct {
            uint16_t lower; /* where the offsets end */
            uint16_t upper; /* where the nodes begin */
        };
        uint32_t count; /* of consecutive overflow pages */
    };
};

struct page_node {
    uint16_t low; /* of a leaf: the size of the value; of a branch: the page below, with flags on top */
    uint16_t high;
    uint16_t flags;
    uint16_t key_size;
};

struct page_tree {
    uint32_t pad; /* of the first tree: the size of a page */
    uint16_t flags;
    uint16_t depth;
    size_t branch_pages;
    size_t leaf_pages;
    size_t overflow_pages;
    size_t entries;
    size_t root;
};

struct page_meta {
    uint32_t magic;
    uint32_t version;
    size_t address;
    size_t map_size;
    struct page_tree free_pages; /* transaction → pages that it freed */
    struct page_tree records;
    size_t last_page;
    size_t txn;
};

#endif
