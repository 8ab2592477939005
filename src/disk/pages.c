/* SPDX-License-Identifier: Apache-2.0 */

/*
 * LMDB trusts its file: it has no checksums, and follows a damaged page number
 * out of its map and into a crash, or overwrites pages that a damaged list
 * calls free. So before LMDB opens the file every page that it would follow is
 * looked at here: that it is the page it should be, that what it points to
 * lies within it or within the file, and that no page is used twice. What the
 * records on these pages say is for verify.c and the checksums.
 *
 * The file is read through a map, once, as LMDB will. A file that another
 * process shortens meanwhile would end in a signal, here as there.
 */
#include "disk/pages.h"

#include "disk/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* LMDB's own limit of what a cursor can descend. */
#define DEPTH_MAX 32

struct pages {
    const uint8_t *bytes;
    size_t size; /* of the file */
    size_t page_size;
    struct page_meta meta; /* the newest */
    uint8_t *seen;         /* a bit for each page */
    const char *trouble;
};

static bool refuse(struct pages *p, const char *trouble)
{
    p->trouble = trouble;
    return false;
}

static bool read_meta(struct pages *p, size_t number, struct page_meta *ret_meta)
{
    struct page_header header;
    size_t at = number * p->page_size;

    if (p->size < at + sizeof header + sizeof *ret_meta)
        return refuse(p, "the file is too short");
    memcpy(&header, p->bytes + at, sizeof header);
    memcpy(ret_meta, p->bytes + at + sizeof header, sizeof *ret_meta);
    if (header.number != number || header.flags != PAGE_META || ret_meta->magic != PAGES_MAGIC ||
        ret_meta->version != PAGES_VERSION)
        return refuse(p, "a page that says what the newest transaction is cannot be read");
    return true;
}

/*
 * Transaction n is named on page n mod 2, so the two pages name two in a row. If they do not, one was
 * changed, and LMDB might go on with an older state. The newest names itself once more in its records.
 */
static bool choose_meta(struct pages *p)
{
    struct page_meta even;
    struct page_meta odd;

    p->page_size = 0; /* not known yet, and not needed for page 0 */
    if (!read_meta(p, 0, &even))
        return false;
    p->page_size = even.free_pages.pad;
    if (p->page_size < 512 || p->page_size > 65536 || (p->page_size & (p->page_size - 1)) != 0)
        return refuse(p, "the size of its pages cannot be");
    if (!read_meta(p, 1, &odd))
        return false;
    p->meta = odd.txn > even.txn ? odd : even;
    if (odd.free_pages.pad != p->page_size || even.txn % 2 != 0 || odd.txn % 2 != 1 ||
        p->meta.txn - (odd.txn > even.txn ? even.txn : odd.txn) != 1)
        return refuse(p, "the pages that say what the newest transaction is contradict each other");
    if (p->meta.last_page < 1 || p->meta.last_page >= p->size / p->page_size)
        return refuse(p, "the file is shorter than it says");
    if (p->meta.free_pages.flags != (TREE_INTEGER_KEYS | MDB_NOSUBDIR) || p->meta.records.flags != 0)
        return refuse(p, "its flags cannot be");
    return true;
}

/* Every page belongs to one place only. */
static bool mark(struct pages *p, size_t number, size_t count)
{
    if (number < 2 || number > p->meta.last_page || count == 0 || count > p->meta.last_page - number + 1)
        return refuse(p, "a page points out of the file");
    for (size_t i = number; i < number + count; i++) {
        if (p->seen[i / 8] & 1u << i % 8)
            return refuse(p, "a page is used twice");
        p->seen[i / 8] |= (uint8_t)(1u << i % 8);
    }
    return true;
}

static const uint8_t *page_at(const struct pages *p, size_t number)
{
    return p->bytes + number * p->page_size;
}

/* What is counted on the way through a tree; must agree with what the meta page says. */
struct count {
    size_t branch_pages;
    size_t leaf_pages;
    size_t overflow_pages;
    size_t entries;
    size_t last_txn; /* of the list of free pages */
};

/* A value on pages of its own. */
static bool check_overflow(struct pages *p, const uint8_t *node_data, size_t size, struct count *count,
                           const uint8_t **ret_value)
{
    struct page_header header;
    size_t number;

    memcpy(&number, node_data, sizeof number);
    if (number < 2 || number > p->meta.last_page)
        return refuse(p, "a page points out of the file");
    memcpy(&header, page_at(p, number), sizeof header);
    if (header.number != number || header.flags != PAGE_OVERFLOW)
        return refuse(p, "a page is not the one it should be");
    if (!mark(p, number, header.count))
        return false;
    if (size > header.count * p->page_size - sizeof header)
        return refuse(p, "a value is longer than its pages");
    count->overflow_pages += header.count;
    *ret_value = page_at(p, number) + sizeof header;
    return true;
}

/* The list of pages that a transaction freed: they must be free. */
static bool check_free(struct pages *p, const uint8_t *key, size_t key_size, const uint8_t *value,
                       size_t size, struct count *count)
{
    size_t txn;
    size_t length;

    if (key_size != sizeof txn || size < sizeof length)
        return refuse(p, "the list of free pages cannot be read");
    memcpy(&txn, key, sizeof txn);
    memcpy(&length, value, sizeof length);
    if (txn <= count->last_txn || txn > p->meta.txn || length > size / sizeof length - 1)
        return refuse(p, "the list of free pages cannot be read");
    count->last_txn = txn;
    for (size_t i = 1; i <= length; i++) {
        size_t number;

        memcpy(&number, value + i * sizeof number, sizeof number);
        if (!mark(p, number, 1))
            return false;
    }
    return true;
}

static bool check_leaf_node(struct pages *p, const uint8_t *page, size_t at, bool is_free_list,
                            struct count *count)
{
    struct page_node node;
    const uint8_t *value;
    size_t size;
    size_t stored;

    memcpy(&node, page + at, sizeof node);
    size = node.low | (size_t)node.high << 16;
    stored = node.flags & NODE_BIG ? sizeof(size_t) : size;
    if (node.flags & ~NODE_BIG || sizeof node + node.key_size + stored > p->page_size - at)
        return refuse(p, "a record does not fit its page");
    value = page + at + sizeof node + node.key_size;
    if (node.flags & NODE_BIG && !check_overflow(p, value, size, count, &value))
        return false;
    count->entries++;
    return !is_free_list || check_free(p, page + at + sizeof node, node.key_size, value, size, count);
}

static bool check_tree_page(struct pages *p, size_t number, unsigned levels, bool is_free_list,
                            struct count *count);

static bool check_branch_node(struct pages *p, const uint8_t *page, size_t at, unsigned levels,
                              bool is_free_list, struct count *count)
{
    struct page_node node;

    memcpy(&node, page + at, sizeof node);
    if (sizeof node + node.key_size > p->page_size - at)
        return refuse(p, "a key does not fit its page");
    return check_tree_page(p, node.low | (size_t)node.high << 16 | (size_t)node.flags << 32, levels - 1,
                           is_free_list, count);
}

/* Recursion: as deep as the tree, which has at most DEPTH_MAX levels. */
static bool check_tree_page(struct pages *p, size_t number, unsigned levels, bool is_free_list,
                            struct count *count)
{
    struct page_header header;
    const uint8_t *page;
    size_t nodes;

    if (!mark(p, number, 1))
        return false;
    page = page_at(p, number);
    memcpy(&header, page, sizeof header);
    if (header.number != number || header.flags != (levels > 1 ? PAGE_BRANCH : PAGE_LEAF))
        return refuse(p, "a page is not the one it should be");
    if (header.lower < sizeof header || header.lower % 2 != 0 || header.upper < header.lower ||
        header.upper > p->page_size)
        return refuse(p, "a page has no room for what it says");
    nodes = (header.lower - sizeof header) / 2;
    if (nodes < (levels > 1 && !is_free_list ? 2 : 1))
        return refuse(p, "a page is empty");
    *(levels > 1 ? &count->branch_pages : &count->leaf_pages) += 1;
    for (size_t i = 0; i < nodes; i++) {
        uint16_t at;

        memcpy(&at, page + sizeof header + 2 * i, sizeof at);
        if (at < header.upper || at % 2 != 0 || at + sizeof(struct page_node) > p->page_size)
            return refuse(p, "a record lies outside of its page");
        if (levels > 1 ? !check_branch_node(p, page, at, levels, is_free_list, count)
                       : !check_leaf_node(p, page, at, is_free_list, count))
            return false;
    }
    return true;
}

static bool check_tree(struct pages *p, const struct page_tree *tree, bool is_free_list)
{
    struct count count = {0};

    if ((tree->root == PAGES_NONE) != (tree->depth == 0) || tree->depth > DEPTH_MAX)
        return refuse(p, "a tree of pages cannot be");
    if (tree->depth > 0 && !check_tree_page(p, tree->root, tree->depth, is_free_list, &count))
        return false;
    if (count.branch_pages != tree->branch_pages || count.leaf_pages != tree->leaf_pages ||
        count.overflow_pages != tree->overflow_pages || count.entries != tree->entries)
        return refuse(p, "a tree of pages has another size than it says");
    return true;
}

static enum gavel_status check(const struct disk *disk, struct pages *p, struct gavel_error *error)
{
    bool is_good = choose_meta(p);

    if (is_good) {
        p->seen = calloc(1, p->meta.last_page / 8 + 1);
        if (!p->seen)
            return disk_error(disk, ENOMEM, "looking at its pages", error);
        is_good = check_tree(p, &p->meta.records, false) && check_tree(p, &p->meta.free_pages, true);
        free(p->seen);
    }
    return is_good ? GAVEL_OK : disk_damaged(disk, error, "%s: %s", DISK_FILE, p->trouble);
}

enum gavel_status disk_check_pages(const struct disk *disk, const char *path, struct gavel_error *error)
{
    struct pages pages = {0};
    struct stat info;
    void *map;
    enum gavel_status status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return disk_error(disk, errno, "opening " DISK_FILE, error);
    if (fstat(fd, &info) < 0) {
        status = disk_error(disk, errno, "looking at " DISK_FILE, error);
    } else if (info.st_size == 0) {
        status = disk_damaged(disk, error, "%s is empty", DISK_FILE);
    } else {
        pages.size = (size_t)info.st_size;
        map = mmap(NULL, pages.size, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED) {
            status = disk_error(disk, errno, "reading " DISK_FILE, error);
        } else {
            pages.bytes = map;
            status = check(disk, &pages, error);
            (void)munmap(map, pages.size); /* only read */
        }
    }
    (void)close(fd); /* only read */
    return status;
}
