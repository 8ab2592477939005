/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/publish.h"

#include <stdlib.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096
#define SLOT_BYTES sizeof(struct published)
#define PAGE_SLOTS (PAGE_BYTES / SLOT_BYTES)

_Static_assert(PAGE_SLOTS == 64, "the slots in use are one bit each of a 64-bit word");
_Static_assert(sizeof(struct published_session) == SLOT_BYTES, "a session takes a slot, too");

struct publish_page {
    struct publish_page *next;
    struct publish_page *next_with_room;
    uint64_t used; /* outside the wiped page: a child that frees must not be confused */
    char *slots;
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

/* A free slot, and its page. */
static enum gavel_status take(struct publish *publish, struct publish_page **ret_page, void **ret_slot)
{
    struct publish_page *page = publish->with_room;
    enum gavel_status status;
    int index;

    if (!page) {
        status = page_new(&page);
        if (status != GAVEL_OK)
            return status;
        page->next = publish->pages;
        publish->pages = publish->with_room = page;
    }
    index = __builtin_ctzll(~page->used);
    page->used |= UINT64_C(1) << index;
    if (page->used == UINT64_MAX)
        publish->with_room = page->next_with_room;
    *ret_page = page;
    *ret_slot = page->slots + (size_t)index * SLOT_BYTES;
    return GAVEL_OK;
}

enum gavel_status publish_slot(struct publish *publish, const struct published_session *within,
                               struct published **ret_slot)
{
    struct publish_page *page;
    struct published *slot;
    void *memory;
    enum gavel_status status = take(publish, &page, &memory);

    if (status != GAVEL_OK)
        return status;
    slot = memory;
    publish_mandate(slot, 0, 0);
    slot->within = within;
    slot->page = page;
    *ret_slot = slot;
    return GAVEL_OK;
}

enum gavel_status publish_session_slot(struct publish *publish, struct published_session **ret_session)
{
    struct publish_page *page;
    void *memory;
    enum gavel_status status = take(publish, &page, &memory);

    if (status != GAVEL_OK)
        return status;
    *ret_session = memory;
    publish_session(*ret_session, &(struct store_session){0});
    return GAVEL_OK;
}

void publish_return(struct publish *publish, struct published *slot)
{
    struct publish_page *page = slot ? slot->page : NULL;
    size_t index;

    if (!page) /* in a forked child */
        return;
    publish_mandate(slot, 0, 0);
    index = (size_t)((char *)slot - page->slots) / SLOT_BYTES;
    if (page->used == UINT64_MAX) {
        page->next_with_room = publish->with_room;
        publish->with_room = page;
    }
    page->used &= ~(UINT64_C(1) << index);
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
    publish->with_room = NULL;
}
