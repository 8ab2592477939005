/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Release on death: the mandates of a dead process are released and the other
 * candidates rung, so that they need not wait for the leases.
 *
 * Each release names the nonce of a claim. If that claim was never applied, or
 * somebody else holds the group by now, it does nothing; so a list that is out
 * of date does no harm, and a release may be tried again as often as it takes.
 * Whatever the dead process still has under way comes too late: renewals and
 * claims of a new epoch are refused once the record is released. A first claim
 * that arrives after all holds the group for one lease.
 *
 * In a store with sessions the mandates last as long as the session of the dead
 * process, which is closed with its key. The store tells and elects the others
 * by itself, so nobody is rung.
 *
 * The memory was written by a program that has crashed, perhaps after writing
 * all over it: nothing in it is trusted to be in bounds.
 */
#include "base/error.h"
#include "lib/bell.h"
#include "lib/guard/on_death.h"
#include "os/clock.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* So many mandates go in one batch, each a release and a list of whom to ring. They lie on the stack. */
#define BATCH_ENTRIES 16

/* What a call may take before the next try. */
#define CALL_TIMEOUT (2 * NS_PER_S)

/* Between two tries on a store that cannot be reached: at first, and at most. */
#define PAUSE_FIRST (5 * NS_PER_MS)
#define PAUSE_MOST (500 * NS_PER_MS)

#define CANDIDATE_TIMEOUT_DEFAULT_MS 60000

/* Leases are shorter than that, whatever the memory says. */
#define LEASE_MAX (INT64_C(31) * 24 * 3600 * NS_PER_S)

struct batch {
    size_t count; /* of entries */
    struct store_request requests[2 * BATCH_ENTRIES];
    struct store_reply replies[2 * BATCH_ENTRIES];
    char groups[BATCH_ENTRIES][NAME_MAX_BYTES + 1];
};

struct release_run {
    const struct on_death *on_death;
    char url[ON_DEATH_STORE_MAX]; /* as the list has it, and ended */
    struct store *store;
    struct store *own; /* the one that was opened here; NULL: none */
    gavel_ns until;
    gavel_ns pause;
    struct ringer ringer;
    size_t released;
    enum gavel_status status; /* of the last failure */
    struct gavel_error *error;
};

/* Trying again may help. */
static bool is_passing(enum gavel_status status)
{
    switch (status) {
    case GAVEL_OK:
    case GAVEL_ERR_NOT_HOLDER:
    case GAVEL_ERR_INVALID:
    case GAVEL_ERR_DENIED:
    case GAVEL_ERR_STORE_UNSUPPORTED:
    case GAVEL_ERR_STORE_TOO_NEW:
        return false;
    default:
        return true;
    }
}

/* Waits before the next try; false if there is no time for one. */
static bool wait_to_try_again(struct release_run *release_run)
{
    gavel_ns left = release_run->until - clock_now();
    struct timespec pause;

    if (left <= 0)
        return false;
    left = ns_min(left, release_run->pause);
    pause = (struct timespec){.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
    (void)nanosleep(&pause, NULL); /* waking early does no harm */
    release_run->pause = ns_min(2 * release_run->pause, PAUSE_MOST);
    return true;
}

/* A SQLite file that is missing is away, and opening would make another in its place, with epochs from 1. */
static bool is_missing(const char *url)
{
    static const char scheme[] = "sqlite:";
    const struct store_capabilities *capabilities = store_capabilities_of(url);

    if (!capabilities || strcmp(capabilities->name, "sqlite") != 0)
        return false;
    if (strncmp(url, scheme, strlen(scheme)) == 0)
        url += strlen(scheme);
    return access(url, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR);
}

/* Opens the store, unless it is open. False if it cannot be; the status says why. */
static bool has_store(struct release_run *release_run)
{
    const char *url = release_run->url;

    if (release_run->store)
        return true;
    release_run->pause = PAUSE_FIRST;
    do {
        if (is_missing(url))
            release_run->status = error_set(
                release_run->error, GAVEL_ERR_STORE_UNAVAILABLE,
                "the store %.200s is not there, so nothing can be released in it; put it back", url);
        else
            release_run->status = store_open(url, &release_run->own, release_run->error);
    } while (is_passing(release_run->status) && wait_to_try_again(release_run));
    if (release_run->status == GAVEL_OK)
        release_run->store = release_run->own;
    return release_run->status == GAVEL_OK;
}

static void copy_name(char *to, const char *from)
{
    size_t length = strnlen(from, NAME_MAX_BYTES);

    memcpy(to, from, length);
    to[length] = '\0';
}

static void add(struct batch *batch, const struct on_death_entry *entry)
{
    struct store_request *release = &batch->requests[2 * batch->count];
    struct store_request *list = release + 1;
    char *group = batch->groups[batch->count];
    gavel_ms timeout_ms = entry->candidate_timeout_ms;

    copy_name(group, entry->group);
    *release = (struct store_request){.op = STORE_RELEASE, .group = group};
    release->record.nonce = entry->nonce;
    release->record.loss = GAVEL_LOSS_KILLED;
    copy_name(release->record.holder, entry->holder);
    *list = (struct store_request){
        .op = STORE_CANDIDATES,
        .group = group,
        .candidate_timeout_ms = timeout_ms > 0 ? timeout_ms : CANDIDATE_TIMEOUT_DEFAULT_MS,
    };
    batch->count++;
}

/* How many entries there are to look at, whatever the list says. */
static uint32_t entry_count(const struct on_death *on_death)
{
    uint32_t count = atomic_load(&on_death->count);

    if (count > on_death->capacity)
        count = on_death->capacity;
    return count > ON_DEATH_ENTRIES_MAX ? ON_DEATH_ENTRIES_MAX : count;
}

/* Takes entries from *index on until the batch is full. False if there was none left. */
static bool fill(struct batch *batch, const struct on_death *on_death, uint32_t *index)
{
    uint32_t count = entry_count(on_death);

    batch->count = 0;
    for (; *index < count && batch->count < BATCH_ENTRIES; (*index)++) {
        const struct on_death_entry *entry = &on_death->entries[*index];

        if (atomic_load(&entry->is_used) && entry->group[0] != '\0')
            add(batch, entry);
    }
    return batch->count > 0;
}

static void ring_listed(struct release_run *release_run, const char *group, const struct store_reply *list)
{
    for (size_t i = 0; i < list->registration_count; i++)
        if (list->registrations[i].address[0] != '\0')
            ringer_ring(&release_run->ringer, group, list->registrations[i].address);
}

/* Looks at the answers; true if some of them may be better another time. */
static bool take_in(struct release_run *release_run, struct batch *batch, bool was_tried)
{
    bool is_open = false;

    for (size_t i = 0; i < batch->count; i++) {
        struct store_reply *release = &batch->replies[2 * i];
        struct store_reply *list = release + 1;

        if (release->status == GAVEL_OK)
            release_run->released++;
        else if (release->status != GAVEL_ERR_NOT_HOLDER)
            release_run->status =
                error_set(release_run->error, release->status, "cannot release group \"%.100s\": %s",
                          batch->groups[i], release->message);
        /* A try before this one may have released it, and its answer was lost. */
        if (release->status == GAVEL_OK || (was_tried && release->status == GAVEL_ERR_NOT_HOLDER))
            ring_listed(release_run, batch->groups[i], list);
        is_open |= is_passing(release->status);
        store_reply_done(release);
        store_reply_done(list);
    }
    return is_open;
}

static void run(struct release_run *release_run, struct batch *batch)
{
    enum gavel_status before = release_run->status;
    bool was_tried = false;

    release_run->pause = PAUSE_FIRST;
    do {
        gavel_ns give_up_at = clock_now() + CALL_TIMEOUT;

        release_run->status = before;
        for (size_t i = 0; i < 2 * batch->count; i++)
            batch->requests[i].give_up_at = give_up_at;
        store_run(release_run->store, batch->requests, batch->replies, 2 * batch->count);
        if (!take_in(release_run, batch, was_tried))
            return;
        was_tried = true;
    } while (wait_to_try_again(release_run));
}

static void release_claims(struct release_run *release_run)
{
    struct batch batch;
    uint32_t index = 0;

    while (fill(&batch, release_run->on_death, &index)) {
        if (!has_store(release_run))
            return;
        run(release_run, &batch);
        if (is_passing(release_run->status))
            return; /* the time is over, and the store still cannot be reached */
    }
}

/* Of the session: those with a mandate, as far as the dead process knew. */
static size_t count_mandates(const struct on_death *on_death)
{
    uint32_t count = entry_count(on_death);
    size_t mandates = 0;

    for (uint32_t i = 0; i < count; i++)
        mandates += on_death->entries[i].group[0] != '\0' && atomic_load(&on_death->entries[i].epoch) != 0;
    return mandates;
}

static void close_session(struct release_run *release_run)
{
    const struct store_session_key *key = &release_run->on_death->key;

    if (!atomic_load(&key->is_known))
        return; /* it never had one, or died before it could ask for it */
    if (!has_store(release_run))
        return;
    release_run->pause = PAUSE_FIRST;
    do {
        release_run->status =
            store_close_dead(release_run->store, key, clock_now() + CALL_TIMEOUT, release_run->error);
    } while (is_passing(release_run->status) && wait_to_try_again(release_run));
    if (release_run->status == GAVEL_OK)
        release_run->released = count_mandates(release_run->on_death);
}

/* What the store is like, and not what the memory says: a release means something else in each of them. */
static bool has_sessions(const struct release_run *release_run)
{
    const struct store_capabilities *capabilities =
        release_run->store ? store_capabilities(release_run->store) : store_capabilities_of(release_run->url);

    return capabilities && capabilities->has_sessions;
}

gavel_ns on_death_give_up_at(const struct on_death *on_death, gavel_ns patience)
{
    gavel_ns now = clock_now();

    return ns_min(ns_max(on_death_last_deadline(on_death), now), now + LEASE_MAX) + patience;
}

enum gavel_status on_death_release(const struct on_death *on_death, struct store *store, gavel_ns until,
                                   size_t *ret_released, struct gavel_error *error)
{
    struct release_run release_run = {
        .on_death = on_death, .store = store, .until = until, .ringer = RINGER_INIT, .error = error};

    memcpy(release_run.url, on_death->store, sizeof release_run.url);
    release_run.url[sizeof release_run.url - 1] = '\0';
    if (release_run.url[0] == '\0')
        release_run.status = GAVEL_OK; /* there is no store to release in */
    else if (has_sessions(&release_run))
        close_session(&release_run);
    else
        release_claims(&release_run);
    store_close(release_run.own);
    ringer_done(&release_run.ringer);
    if (ret_released)
        *ret_released = release_run.released;
    return release_run.status;
}
