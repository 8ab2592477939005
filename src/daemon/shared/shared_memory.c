/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/shared/shared_memory.h"

#include <sys/mman.h>

/* Of a lease epoch: the rest is for the term. */
#define EPOCH_BITS 16

enum gavel_status shared_memory_new(struct shared_memory **ret_memory)
{
    void *memory =
        mmap(NULL, sizeof(struct shared_memory), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return GAVEL_ERR_NO_MEMORY;
    *ret_memory = memory;
    return GAVEL_OK;
}

void shared_memory_free(struct shared_memory *memory)
{
    if (memory)
        (void)munmap(memory, sizeof *memory); /* fails only for what is not mapped */
}

void shared_memory_set_peers(struct shared_memory *memory, const struct shared_memory_peers *peers)
{
    uint32_t other = 1 - atomic_load(&memory->peers_which);

    memory->peers[other] = *peers;
    atomic_store(&memory->peers_which, other);
}

void shared_memory_get_peers(const struct shared_memory *memory, struct shared_memory_peers *ret_peers)
{
    *ret_peers = memory->peers[atomic_load(&memory->peers_which)];
    if (ret_peers->count > RAFT_MEMBERS_MAX)
        ret_peers->count = 0; /* whoever wrote it was damaged before it died */
}

bool shared_memory_epoch(raft_term term, uint64_t lease_epoch, uint64_t *ret_epoch)
{
    if (lease_epoch >> EPOCH_BITS || term >> (63 - EPOCH_BITS))
        return false;
    *ret_epoch = term << EPOCH_BITS | lease_epoch;
    return true;
}

void shared_memory_token(uint64_t epoch, raft_term *ret_term, uint64_t *ret_lease_epoch)
{
    *ret_term = epoch >> EPOCH_BITS;
    *ret_lease_epoch = epoch & ((UINT64_C(1) << EPOCH_BITS) - 1);
}

/* The reader must never see the instants of one mandate under the epoch of another. */
void shared_memory_set_mandate(struct shared_memory *memory, uint64_t epoch, gavel_ns stop_at,
                               gavel_ns deadline)
{
    if (atomic_load(&memory->epoch) != epoch)
        atomic_store(&memory->epoch, 0);
    atomic_store(&memory->stop_at, stop_at);
    atomic_store(&memory->deadline, deadline);
    atomic_store(&memory->epoch, epoch);
}

bool shared_memory_read_mandate(void *user, uint64_t epoch, gavel_ns *ret_stop_at, gavel_ns *ret_deadline)
{
    const struct shared_memory *memory = user;
    gavel_ns stop_at, deadline;

    if (epoch == 0 || atomic_load(&memory->epoch) != epoch)
        return false;
    stop_at = atomic_load(&memory->stop_at);
    deadline = atomic_load(&memory->deadline);
    if (atomic_load(&memory->epoch) != epoch)
        return false;
    *ret_stop_at = stop_at < deadline ? stop_at : deadline;
    *ret_deadline = deadline;
    return true;
}
