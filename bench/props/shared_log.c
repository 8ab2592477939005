/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The head of the log is one 64-bit word, {highest epoch, number of beats}.
 * Whoever moves it on from a value with no higher epoch than its own has had
 * its beat taken at that very moment; it then fills in the slot it won. A
 * process that dies in between leaves an empty slot, which readers pass over.
 */
#include "bench/props/shared_log.h"

#include "base/assert.h"
#include "os/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BEATS_MAX (1u << 17)
#define MARKS_MAX (1u << 15)

struct shared_log {
    uint64_t head; /* epoch << 32 | beats */
    uint64_t fenced;
    uint64_t lost;
    uint32_t marks_begun;
    uint32_t marks_finished; /* a futex */
    struct mark marks[MARKS_MAX];
    struct beat beats[BEATS_MAX];
};

enum gavel_status shared_log_map(int fd, struct shared_log **ret_shared_log)
{
    struct stat about;

    if (fstat(fd, &about) < 0 || about.st_size != (off_t)sizeof(struct shared_log))
        return GAVEL_ERR_INVALID;
    void *memory = mmap(NULL, sizeof(struct shared_log), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return errno == ENOMEM ? GAVEL_ERR_NO_MEMORY : GAVEL_ERR_INVALID;
    *ret_shared_log = memory;
    return GAVEL_OK;
}

enum gavel_status shared_log_new(struct shared_log **ret_shared_log, int *ret_fd)
{
    int fd = memfd_create("gavel-shared_log", MFD_CLOEXEC);

    if (fd < 0)
        return GAVEL_ERR_NO_MEMORY;
    if (ftruncate(fd, sizeof(struct shared_log)) < 0 || shared_log_map(fd, ret_shared_log) != GAVEL_OK) {
        (void)close(fd); /* nothing is in it */
        return GAVEL_ERR_NO_MEMORY;
    }
    *ret_fd = fd;
    return GAVEL_OK;
}

void shared_log_free(struct shared_log *shared_log)
{
    if (shared_log)
        (void)munmap(shared_log, sizeof *shared_log); /* fails only for an address that is none */
}

bool shared_log_beat(struct shared_log *shared_log, uint32_t member, uint64_t epoch, gavel_ns at)
{
    uint64_t head = __atomic_load_n(&shared_log->head, __ATOMIC_ACQUIRE);
    uint32_t index;

    ASSERT(epoch <= UINT32_MAX); /* the store of a demonstration is new, its epochs are small */
    do {
        if (head >> 32 > epoch) {
            __atomic_fetch_add(&shared_log->fenced, 1, __ATOMIC_RELAXED);
            return false;
        }
        index = (uint32_t)head;
        if (index == BEATS_MAX) {
            __atomic_fetch_add(&shared_log->lost, 1, __ATOMIC_RELAXED);
            return false;
        }
    } while (!__atomic_compare_exchange_n(&shared_log->head, &head, epoch << 32 | (index + 1), false,
                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    struct beat *beat = &shared_log->beats[index];
    beat->epoch = epoch;
    beat->member = member;
    __atomic_store_n(&beat->at, at, __ATOMIC_RELEASE);
    return true;
}

uint64_t shared_log_highest_epoch(const struct shared_log *shared_log)
{
    return __atomic_load_n(&shared_log->head, __ATOMIC_ACQUIRE) >> 32;
}

uint64_t shared_log_fenced(const struct shared_log *shared_log)
{
    return __atomic_load_n(&shared_log->fenced, __ATOMIC_RELAXED);
}

uint64_t shared_log_lost(const struct shared_log *shared_log)
{
    return __atomic_load_n(&shared_log->lost, __ATOMIC_RELAXED);
}

const struct beat *shared_log_beats(const struct shared_log *shared_log, size_t *ret_count)
{
    *ret_count = (uint32_t)__atomic_load_n(&shared_log->head, __ATOMIC_ACQUIRE);
    return shared_log->beats;
}

void shared_log_mark(struct shared_log *shared_log, const struct mark *mark)
{
    uint32_t index = __atomic_fetch_add(&shared_log->marks_begun, 1, __ATOMIC_ACQ_REL);

    if (index >= MARKS_MAX) {
        __atomic_fetch_add(&shared_log->lost, 1, __ATOMIC_RELAXED);
        return;
    }
    struct mark *slot = &shared_log->marks[index];
    slot->member = mark->member;
    slot->epoch = mark->epoch;
    slot->at = mark->at;
    slot->value = mark->value;
    __atomic_store_n(&slot->kind, mark->kind, __ATOMIC_RELEASE);
    __atomic_fetch_add(&shared_log->marks_finished, 1, __ATOMIC_RELEASE);
    /* Waking nobody is no error, and a waiter has a limit anyway. */
    (void)syscall(SYS_futex, &shared_log->marks_finished, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

const struct mark *shared_log_marks(const struct shared_log *shared_log, size_t *ret_count)
{
    uint32_t begun = __atomic_load_n(&shared_log->marks_begun, __ATOMIC_ACQUIRE);

    *ret_count = begun < MARKS_MAX ? begun : MARKS_MAX;
    return shared_log->marks;
}

enum mark_kind mark_kind(const struct mark *mark) { return __atomic_load_n(&mark->kind, __ATOMIC_ACQUIRE); }

uint32_t shared_log_finished(const struct shared_log *shared_log)
{
    return __atomic_load_n(&shared_log->marks_finished, __ATOMIC_ACQUIRE);
}

void shared_log_wait(const struct shared_log *shared_log, uint32_t seen, gavel_ns until)
{
    gavel_ns left = until - clock_now();

    if (left <= 0)
        return;
    struct timespec timeout = {.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
    /* Every outcome (woken, changed before, too late, a signal) means: look again. */
    (void)syscall(SYS_futex, &shared_log->marks_finished, FUTEX_WAIT, seen, &timeout, NULL, 0);
}
