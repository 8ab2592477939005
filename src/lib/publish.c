/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/publish.h"

#include <stdlib.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096
#define PAGE_SLOTS (PAGE_BYTES / sizeof(struct published))

_Static_assert(PAGE_SLOTS == 64, "the slots in use are one bit each of a 64-bit word");

struct publish_page {
    struct publish_page *next;
    uint64_t used; /* outside the wiped page: a child that frees must not be confused */
    struct published *slots;
};

static enum gavel_status page_new(struct publish_page **ret_page)
{
    struct publish_page *page = calloc(1, sizeof *page);
    void *memory;

    if (!page)
        return GAVEL_ERR_NO_MEMORY;
    memory = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        free(page);
        return GAVEL_ERR_NO_MEMORY;
    }
    if (madvise(memory, PAGE_BYTES, MADV_WIPEONFORK) < 0) {
        (void)munmap(memory, PAGE_BYTES); /* it was just mapped */
        free(page);
        return GAVEL_ERR_IO;
    }
    page->slots = memory;
    *ret_page = page;
    return GAVEL_OK;
}

enum gavel_status publish_slot(struct publish *publish, struct published **ret_slot)
{
    struct publish_page *page = publish->pages;
    enum gavel_status status;
    int index;

    while (page && page->used == UINT64_MAX)
        page = page->next;
    if (!page) {
        status = page_new(&page);
        if (status != GAVEL_OK)
            return status;
        page->next = publish->pages;
        publish->pages = page;
    }
    index = __builtin_ctzll(~page->used);
    page->used |= UINT64_C(1) << index;
    publish_mandate(&page->slots[index], 0, 0);
    *ret_slot = &page->slots[index];
    return GAVEL_OK;
}

void publish_return(struct publish *publish, struct published *slot)
{
    if (!slot)
        return;
    for (struct publish_page *page = publish->pages; page; page = page->next) {
        if (slot < page->slots || slot >= page->slots + PAGE_SLOTS)
            continue;
        publish_mandate(slot, 0, 0);
        page->used &= ~(UINT64_C(1) << (slot - page->slots));
    }
}

void publish_done(struct publish *publish)
{
    if (!publish)
        return;
    while (publish->pages) {
        struct publish_page *page = publish->pages;

        publish->pages = page->next;
        (void)munmap(page->slots, PAGE_BYTES); /* ours, so it cannot fail */
        free(page);
    }
}
