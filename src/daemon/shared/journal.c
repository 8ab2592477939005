/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/shared/journal.h"

#include "daemon/shared/lock.h"
#include "os/wakeup.h"

#include <stdlib.h>
#include <string.h>

struct journal {
    pthread_mutex_t mutex;
    uint64_t first_id; /* of this incarnation, less one */
    uint64_t count;    /* events ever put; the newest has first_id + count */
    uint64_t election_count;
    int bell;
    struct journal_entry entries[JOURNAL_ENTRIES_KEPT];
    struct journal_election elections[JOURNAL_ELECTIONS_KEPT];
};

enum gavel_status journal_new(uint64_t incarnation, struct journal **ret_journal)
{
    struct journal *journal = calloc(1, sizeof *journal);

    if (!journal)
        return GAVEL_ERR_NO_MEMORY;
    journal->first_id = incarnation << 32;
    journal->bell = -1;
    if (lock_init(&journal->mutex) != GAVEL_OK) {
        free(journal);
        return GAVEL_ERR_NO_MEMORY;
    }
    *ret_journal = journal;
    return GAVEL_OK;
}

void journal_free(struct journal *journal)
{
    if (!journal)
        return;
    (void)pthread_mutex_destroy(&journal->mutex);
    free(journal);
}

void journal_set_bell(struct journal *journal, int fd) { journal->bell = fd; }

uint64_t journal_put(struct journal *journal, const struct journal_entry *entry)
{
    struct journal_entry *slot;
    uint64_t id;

    (void)pthread_mutex_lock(&journal->mutex);
    slot = &journal->entries[journal->count % JOURNAL_ENTRIES_KEPT];
    id = journal->first_id + ++journal->count;
    *slot = *entry;
    slot->id = id;
    (void)pthread_mutex_unlock(&journal->mutex);
    if (journal->bell >= 0)
        wakeup_ring(journal->bell);
    return id;
}

void journal_put_election(struct journal *journal, const struct journal_election *election)
{
    struct journal_election *slot;

    (void)pthread_mutex_lock(&journal->mutex);
    slot = &journal->elections[journal->election_count % JOURNAL_ELECTIONS_KEPT];
    *slot = *election;
    slot->id = ++journal->election_count;
    (void)pthread_mutex_unlock(&journal->mutex);
}

bool journal_next(struct journal *journal, uint64_t after, struct journal_entry *ret_entry, bool *ret_missed)
{
    uint64_t oldest, wanted;
    bool is_there;

    (void)pthread_mutex_lock(&journal->mutex);
    oldest = journal->count > JOURNAL_ENTRIES_KEPT ? journal->count - JOURNAL_ENTRIES_KEPT + 1 : 1;
    wanted = after >= journal->first_id ? after - journal->first_id + 1 : 1;
    is_there = journal->count > 0 && after < journal->first_id + journal->count;
    if (is_there) {
        if (ret_missed)
            *ret_missed = wanted < oldest || (after > 0 && after < journal->first_id);
        wanted = wanted < oldest ? oldest : wanted;
        *ret_entry = journal->entries[(wanted - 1) % JOURNAL_ENTRIES_KEPT];
    }
    (void)pthread_mutex_unlock(&journal->mutex);
    return is_there;
}

uint64_t journal_newest(struct journal *journal)
{
    uint64_t id;

    (void)pthread_mutex_lock(&journal->mutex);
    id = journal->count > 0 ? journal->first_id + journal->count : 0;
    (void)pthread_mutex_unlock(&journal->mutex);
    return id;
}

size_t journal_elections(struct journal *journal, struct journal_election *ret_elections, size_t most)
{
    size_t count = 0;
    uint64_t wanted = UINT64_MAX; /* the newest */

    /* One at a time: the consensus thread may be waiting. */
    while (count < most) {
        bool is_there;

        (void)pthread_mutex_lock(&journal->mutex);
        if (wanted > journal->election_count)
            wanted = journal->election_count;
        is_there = wanted > 0 && wanted + JOURNAL_ELECTIONS_KEPT > journal->election_count;
        if (is_there)
            ret_elections[count] = journal->elections[(wanted - 1) % JOURNAL_ELECTIONS_KEPT];
        (void)pthread_mutex_unlock(&journal->mutex);
        if (!is_there)
            break;
        count++;
        wanted--;
    }
    return count;
}

const char *journal_event_name(enum journal_event event)
{
#define JOURNAL_NAME(name, text) [JOURNAL_##name] = text,
    static const char *const names[] = {JOURNAL_EVENT_MAP(JOURNAL_NAME)};
#undef JOURNAL_NAME

    return names[event];
}
