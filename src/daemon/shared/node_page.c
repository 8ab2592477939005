/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/shared/node_page.h"

#include <sys/mman.h>

/* Of a lease epoch: the rest is for the term. */
#define EPOCH_BITS 16

enum gavel_status node_page_new(struct node_page **ret_page)
{
    void *memory =
        mmap(NULL, sizeof(struct node_page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return GAVEL_ERR_NO_MEMORY;
    *ret_page = memory;
    return GAVEL_OK;
}

void node_page_free(struct node_page *page)
{
    if (page)
        (void)munmap(page, sizeof *page); /* fails only for what is not mapped */
}

void node_page_set_peers(struct node_page *page, const struct node_page_peers *peers)
{
    uint32_t other = 1 - atomic_load(&page->peers_which);

    page->peers[other] = *peers;
    atomic_store(&page->peers_which, other);
}

void node_page_get_peers(const struct node_page *page, struct node_page_peers *ret_peers)
{
    *ret_peers = page->peers[atomic_load(&page->peers_which)];
    if (ret_peers->count > RAFT_MEMBERS_MAX)
        ret_peers->count = 0; /* whoever wrote it was damaged before it died */
}

bool node_page_epoch(raft_term term, uint64_t lease_epoch, uint64_t *ret_epoch)
{
    if (lease_epoch >> EPOCH_BITS || term >> (63 - EPOCH_BITS))
        return false;
    *ret_epoch = term << EPOCH_BITS | lease_epoch;
    return true;
}

/* The reader must never see the instants of one mandate under the epoch of another. */
void node_page_set_mandate(struct node_page *page, uint64_t epoch, gavel_ns stop_at, gavel_ns deadline)
{
    if (atomic_load(&page->epoch) != epoch)
        atomic_store(&page->epoch, 0);
    atomic_store(&page->stop_at, stop_at);
    atomic_store(&page->deadline, deadline);
    atomic_store(&page->epoch, epoch);
}

bool node_page_read_mandate(void *user, uint64_t epoch, gavel_ns *ret_stop_at, gavel_ns *ret_deadline)
{
    const struct node_page *page = user;
    gavel_ns stop_at, deadline;

    if (epoch == 0 || atomic_load(&page->epoch) != epoch)
        return false;
    stop_at = atomic_load(&page->stop_at);
    deadline = atomic_load(&page->deadline);
    if (atomic_load(&page->epoch) != epoch)
        return false;
    *ret_stop_at = stop_at < deadline ? stop_at : deadline;
    *ret_deadline = deadline;
    return true;
}
