/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The memory that says what to release on death. Its writer may die between any
 * two stores, and its reader looks at any time, so the order of the stores is
 * what counts:
 *
 *   claim     not used · nonce · used            a half nonce is never released
 *   mandate   no epoch · instants · epoch        instants are never read under another epoch
 *   later     deadline, then stop_at             so that stop_at is not after the deadline
 *   sooner    stop_at, then deadline             for whoever reads them in between
 *   session   no number · deadline · number      a deadline is never read under another number
 *
 * A mandate may be replaced under its own epoch, when its session is lost. So
 * replacements are counted, too: a reader for whom the count has changed has
 * seen a mixture, though the epoch is the one that it began with.
 *
 * Dying in between leaves "nothing to release" or "no mandate". The first
 * costs the lease, the second stops work that nobody could go on renewing.
 */
#include "lib/guard/on_death.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t size_of(uint32_t capacity)
{
    return sizeof(struct on_death) + capacity * sizeof(struct on_death_entry);
}

#define WHOLE_SIZE size_of(ON_DEATH_ENTRIES_MAX)

enum gavel_status on_death_new(uint32_t capacity, struct on_death **ret_on_death)
{
    struct on_death *on_death = mmap(NULL, size_of(capacity), PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (on_death == MAP_FAILED)
        return GAVEL_ERR_NO_MEMORY;
    on_death->format = ON_DEATH_FORMAT;
    on_death->capacity = capacity;
    *ret_on_death = on_death;
    return GAVEL_OK;
}

static enum gavel_status fill_file(int fd, struct on_death **ret_on_death)
{
    struct on_death *on_death;

    /* Sealed, so that nobody can take the memory away from under its reader. */
    if (ftruncate(fd, (off_t)WHOLE_SIZE) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return errno == ENOMEM || errno == ENOSPC ? GAVEL_ERR_NO_MEMORY : GAVEL_ERR_IO;
    on_death = mmap(NULL, WHOLE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (on_death == MAP_FAILED)
        return GAVEL_ERR_NO_MEMORY;
    on_death->format = ON_DEATH_FORMAT;
    on_death->capacity = ON_DEATH_ENTRIES_MAX;
    if (madvise(on_death, WHOLE_SIZE, MADV_DONTFORK) < 0) {
        on_death_free(on_death);
        return GAVEL_ERR_IO;
    }
    *ret_on_death = on_death;
    return GAVEL_OK;
}

enum gavel_status on_death_new_file(struct on_death **ret_on_death, int *ret_fd)
{
    int fd = memfd_create("gavel-on-death", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    enum gavel_status status;

    if (fd < 0)
        return errno == ENOMEM ? GAVEL_ERR_NO_MEMORY : GAVEL_ERR_IO;
    status = fill_file(fd, ret_on_death);
    if (status != GAVEL_OK) {
        (void)close(fd); /* memory that nobody has seen */
        return status;
    }
    *ret_fd = fd;
    return GAVEL_OK;
}

enum gavel_status on_death_map_file(int fd, const struct on_death **ret_on_death)
{
    const struct on_death *on_death;
    struct stat info;

    if (fstat(fd, &info) < 0)
        return GAVEL_ERR_IO;
    if (info.st_size != (off_t)WHOLE_SIZE)
        return GAVEL_ERR_INVALID;
    on_death = mmap(NULL, WHOLE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
    if (on_death == MAP_FAILED)
        return errno == ENOMEM ? GAVEL_ERR_NO_MEMORY : GAVEL_ERR_INVALID;
    if (on_death->format != ON_DEATH_FORMAT || on_death->capacity != ON_DEATH_ENTRIES_MAX) {
        (void)munmap((void *)(uintptr_t)on_death, WHOLE_SIZE); /* ours, so it cannot fail */
        return GAVEL_ERR_INVALID;
    }
    *ret_on_death = on_death;
    return GAVEL_OK;
}

void on_death_free(const struct on_death *on_death)
{
    if (on_death)
        (void)munmap((void *)(uintptr_t)on_death, size_of(on_death->capacity)); /* ours, so it cannot fail */
}

enum gavel_status on_death_set_store(struct on_death *on_death, const char *url)
{
    size_t length = strlen(url);

    if (length >= sizeof on_death->store)
        return GAVEL_ERR_INVALID;
    memcpy(on_death->store, url, length + 1);
    return GAVEL_OK;
}

struct on_death_entry *on_death_take(struct on_death *on_death, const char *group, const char *holder)
{
    uint32_t count = atomic_load(&on_death->count);
    struct on_death_entry *entry;
    uint32_t i = on_death->first_free;

    if (strlen(group) >= sizeof entry->group || strlen(holder) >= sizeof entry->holder)
        return NULL;
    while (i < count && on_death->entries[i].group[0] != '\0')
        i++;
    on_death->first_free = i;
    if (i == on_death->capacity)
        return NULL;
    on_death->first_free++;
    entry = &on_death->entries[i];
    memcpy(entry->group, group, strlen(group) + 1);
    memcpy(entry->holder, holder, strlen(holder) + 1);
    if (i == count)
        atomic_store(&on_death->count, count + 1);
    return entry;
}

void on_death_give_back(struct on_death *on_death, struct on_death_entry *entry)
{
    uint32_t index;

    if (!entry)
        return;
    index = (uint32_t)(entry - on_death->entries);
    if (index < on_death->first_free)
        on_death->first_free = index;
    on_death_note_stopped(entry);
    atomic_store(&entry->is_used, 0);
    entry->nonce = (struct nonce){0};
    entry->candidate_timeout_ms = 0;
    entry->group[0] = '\0';
}

void on_death_note_claim(struct on_death_entry *entry, struct nonce nonce)
{
    if (!entry || (atomic_load(&entry->is_used) && nonce_equal(entry->nonce, nonce)))
        return;
    atomic_store(&entry->is_used, 0);
    entry->nonce = nonce;
    atomic_store(&entry->is_used, 1);
}

/* Fills in an entry under its epoch, so that no reader takes a mixture of two mandates for one. */
static void note(struct on_death_entry *entry, uint64_t epoch, uint64_t session, gavel_ns stop_at,
                 gavel_ns deadline)
{
    bool is_same = atomic_load(&entry->epoch) == epoch && atomic_load(&entry->session) == session;

    if (!is_same) {
        atomic_store(&entry->changes, atomic_load(&entry->changes) | 1);
        atomic_store(&entry->epoch, 0);
    }
    atomic_store(&entry->session, session);
    if (stop_at < atomic_load(&entry->stop_at)) {
        atomic_store(&entry->stop_at, stop_at);
        atomic_store(&entry->deadline, deadline);
    } else {
        atomic_store(&entry->deadline, deadline);
        atomic_store(&entry->stop_at, stop_at);
    }
    if (is_same)
        return;
    atomic_store(&entry->epoch, epoch);
    atomic_store(&entry->changes, atomic_load(&entry->changes) + 1);
}

void on_death_note_mandate(struct on_death_entry *entry, uint64_t epoch, gavel_ns stop_at, gavel_ns deadline)
{
    if (entry)
        note(entry, epoch, 0, stop_at, deadline);
}

void on_death_note_session_mandate(struct on_death_entry *entry, uint64_t epoch, uint64_t session,
                                   gavel_ns stop_lead, gavel_ns margin, gavel_ns term_ends_at)
{
    gavel_ns grace = stop_lead - margin;

    if (!entry)
        return;
    ASSERT(session != 0 && grace >= 0);
    if (atomic_load(&entry->stop_lead) != stop_lead || atomic_load(&entry->margin) != margin) {
        atomic_store(&entry->epoch, 0);
        atomic_store(&entry->stop_lead, stop_lead);
        atomic_store(&entry->margin, margin);
    }
    note(entry, epoch, session, term_ends_at == NEVER ? NEVER : term_ends_at - grace, term_ends_at);
}

void on_death_note_session(struct on_death *on_death, uint64_t session, gavel_ns deadline)
{
    bool is_same;

    if (!on_death)
        return;
    is_same = atomic_load(&on_death->session) == session;
    if (!is_same)
        atomic_store(&on_death->session, 0);
    atomic_store(&on_death->session_deadline, deadline);
    if (!is_same)
        atomic_store(&on_death->session, session);
}

void on_death_note_stopped(struct on_death_entry *entry)
{
    if (!entry)
        return;
    atomic_store(&entry->epoch, 0);
    atomic_store(&entry->stop_at, 0);
    atomic_store(&entry->deadline, 0);
    atomic_store(&entry->session, 0);
}

/* The deadline of a session, if it is the one that is open. */
static bool read_session(const struct on_death *on_death, uint64_t session, gavel_ns *ret_deadline)
{
    if (atomic_load(&on_death->session) != session)
        return false;
    *ret_deadline = atomic_load(&on_death->session_deadline);
    return atomic_load(&on_death->session) == session;
}

bool on_death_read_mandate(const struct on_death *on_death, const struct on_death_entry *entry,
                           uint64_t epoch, gavel_ns *ret_stop_at, gavel_ns *ret_deadline)
{
    uint32_t changes = atomic_load(&entry->changes);
    gavel_ns stop_at, deadline, lasts;
    uint64_t session;

    if (changes % 2 != 0 || epoch == 0 || atomic_load(&entry->epoch) != epoch)
        return false;
    session = atomic_load(&entry->session);
    stop_at = atomic_load(&entry->stop_at);
    deadline = atomic_load(&entry->deadline);
    if (session != 0) {
        if (!read_session(on_death, session, &lasts))
            return false;
        stop_at = ns_min(stop_at, lasts - atomic_load(&entry->stop_lead));
        deadline = ns_min(deadline, lasts - atomic_load(&entry->margin));
    }
    if (atomic_load(&entry->epoch) != epoch || atomic_load(&entry->changes) != changes || deadline == 0)
        return false;
    *ret_stop_at = ns_min(stop_at, deadline);
    *ret_deadline = deadline;
    return true;
}

gavel_ns on_death_last_deadline(const struct on_death *on_death)
{
    uint32_t count = atomic_load(&on_death->count);
    gavel_ns last = 0;

    if (atomic_load(&on_death->session) != 0)
        last = atomic_load(&on_death->session_deadline);
    for (uint32_t i = 0; i < count && i < on_death->capacity && i < ON_DEATH_ENTRIES_MAX; i++) {
        gavel_ns deadline = atomic_load(&on_death->entries[i].deadline);

        /* That of a session ends before its session does. */
        if (atomic_load(&on_death->entries[i].session) == 0 && deadline != NEVER)
            last = ns_max(last, deadline);
    }
    return last == NEVER ? 0 : last;
}
