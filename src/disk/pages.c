/* SPDX-License-Identifier: Apache-2.0 */

/*
 * LMDB trusts its file: it has no checksums, and follows a damaged page number
 * out of its map and into a crash, or overwrites pages that a damaged list
 * calls free. So before LMDB opens the file every page that it would follow is
 * looked at here: that it is the page it should be, that what it points to
 * lies within it or within the file, and that no page is used twice. What the
 * records on these pages say is for verify.c and the checksums.
 *
 * What cannot be found: that the file as a whole, or the page of the newest
 * transaction, was put back to what it was before. It looks as if the
 * transactions since had not been made.
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

static const uint8_t *page_at(const struct pages *p, size_t number)
{
    return p->bytes + number * p->page_size;
}

/* The page of a tree, if it can be one. */
static bool read_page(struct pages *p, const struct page_meta *meta, size_t number, unsigned levels,
                      struct page_header *ret_header)
{
    if (number < 2 || number > meta->last_page)
        return refuse(p, "a page points out of the file");
    memcpy(ret_header, page_at(p, number), sizeof *ret_header);
    if (ret_header->number != number || ret_header->flags != (levels > 1 ? PAGE_BRANCH : PAGE_LEAF))
        return refuse(p, "a page is not the one it should be");
    if (ret_header->lower < sizeof *ret_header || ret_header->lower % 2 != 0 ||
        ret_header->upper < ret_header->lower || ret_header->upper > p->page_size)
        return refuse(p, "a page has no room for what it says");
    if (ret_header->lower == sizeof *ret_header)
        return refuse(p, "a page is empty");
    return true;
}

static bool read_node(struct pages *p, const uint8_t *page, const struct page_header *header, size_t which,
                      uint16_t *ret_at, struct page_node *ret_node)
{
    memcpy(ret_at, page + sizeof *header + 2 * which, sizeof *ret_at);
    if (*ret_at < header->upper || *ret_at % 2 != 0 || *ret_at + sizeof *ret_node > p->page_size)
        return refuse(p, "a record lies outside of its page");
    memcpy(ret_node, page + *ret_at, sizeof *ret_node);
    return true;
}

static size_t page_below(const struct page_node *node)
{
    return node->low | (size_t)node->high << 16 | (size_t)node->flags << 32;
}

/*
 * The state is the last record of a tree, and begins with the number of the transaction that wrote it: it
 * must be the one that the meta page says.
 */
static bool check_txn(struct pages *p, const struct page_meta *meta)
{
    static const char contradiction[] = "a page names another transaction than it shows";
    size_t number = meta->records.root;
    struct page_header header;
    struct page_node node;
    const uint8_t *page;
    uint16_t at;

    if (meta->txn == 0)
        return number == PAGES_NONE || refuse(p, contradiction);
    if (meta->records.depth == 0 || meta->records.depth > DEPTH_MAX)
        return refuse(p, contradiction);
    for (unsigned levels = meta->records.depth;; levels--) {
        if (!read_page(p, meta, number, levels, &header))
            return false;
        page = page_at(p, number);
        if (!read_node(p, page, &header, (header.lower - sizeof header) / 2 - 1, &at, &node))
            return false;
        if (levels == 1)
            break;
        number = page_below(&node);
    }
    page += at + sizeof node;
    at = (uint16_t)(p->page_size - at - sizeof node);
    if (node.key_size != 1 || at < 1 + RECORD_SUM_BYTES + RECORD_STATE_BYTES ||
        *page != record_key_state().bytes[0] || record_get_u64(page + 1 + RECORD_SUM_BYTES) != meta->txn)
        return refuse(p, contradiction);
    return true;
}

/*
 * Transaction n is named on page n mod 2, so the two pages name two in a row, and each names itself once more
 * in its records. If not, one was changed, and LMDB might go on with an older state. (The records of both are
 * whole at any time: LMDB reuses no page that either needs.)
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
    if (even.last_page < 1 || even.last_page >= p->size / p->page_size || odd.last_page < 1 ||
        odd.last_page >= p->size / p->page_size)
        return refuse(p, "the file is shorter than it says");
    if (p->meta.free_pages.flags != (TREE_INTEGER_KEYS | MDB_NOSUBDIR) || p->meta.records.flags != 0)
        return refuse(p, "its flags cannot be");
    return check_txn(p, &even) && check_txn(p, &odd);
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

static bool check_leaf_node(struct pages *p, const uint8_t *page, size_t at, const struct page_node *node,
                            bool is_free_list, struct count *count)
{
    const uint8_t *value;
    size_t size = node->low | (size_t)node->high << 16;
    size_t stored = node->flags & NODE_BIG ? sizeof(size_t) : size;

    if (node->flags & ~NODE_BIG || sizeof *node + node->key_size + stored > p->page_size - at)
        return refuse(p, "a record does not fit its page");
    value = page + at + sizeof *node + node->key_size;
    if (node->flags & NODE_BIG && !check_overflow(p, value, size, count, &value))
        return false;
    count->entries++;
    return !is_free_list || check_free(p, page + at + sizeof *node, node->key_size, value, size, count);
}

static bool check_tree_page(struct pages *p, size_t number, unsigned levels, bool is_free_list,
                            struct count *count);

static bool check_branch_node(struct pages *p, size_t at, const struct page_node *node, unsigned levels,
                              bool is_free_list, struct count *count)
{
    if (sizeof *node + node->key_size > p->page_size - at)
        return refuse(p, "a key does not fit its page");
    return check_tree_page(p, page_below(node), levels - 1, is_free_list, count);
}

/* Recursion: as deep as the tree, which has at most DEPTH_MAX levels. */
static bool check_tree_page(struct pages *p, size_t number, unsigned levels, bool is_free_list,
                            struct count *count)
{
    struct page_header header;
    const uint8_t *page;
    size_t nodes;

    if (!mark(p, number, 1) || !read_page(p, &p->meta, number, levels, &header))
        return false;
    page = page_at(p, number);
    nodes = (header.lower - sizeof header) / 2;
    if (levels > 1 && !is_free_list && nodes < 2)
        return refuse(p, "a page is empty"); /* LMDB insists on it */
    *(levels > 1 ? &count->branch_pages : &count->leaf_pages) += 1;
    for (size_t i = 0; i < nodes; i++) {
        struct page_node node;
        uint16_t at;

        if (!read_node(p, page, &header, i, &at, &node))
            return false;
        if (levels > 1 ? !check_branch_node(p, at, &node, levels, is_free_list, count)
                       : !check_leaf_node(p, page, at, &node, is_free_list, count))
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
