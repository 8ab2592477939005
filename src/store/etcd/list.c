/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Listings, page by page: the candidates of a group; and all groups, then the
 * wishes, which stand beside them.
 */
#include "store/etcd/etcd.h"

#include "os/clock.h"

#include <stdlib.h>
#include <string.h>

#define RANGE_PATH "/v3/kv/range"
#define TXN_PATH "/v3/kv/txn"
#define PAGE 500
#define SIGHTINGS_KEPT (10 * 60 * NS_PER_S) /* of groups that nobody asks about */

/* ---- groups ---- */

static bool ask_page(struct etcd_job *job, enum etcd_family family)
{
    char first[ETCD_KEY_SIZE];

    etcd_key(job->etcd, family, job->request->prefix, NULL, first); /* each byte has its own place in a key */
    etcd_ask(job->call, RANGE_PATH, etcd_body_page(first, job->after, PAGE), false);
    return true;
}

/* What is of a newer gavel, or makes no sense, is left out; a READ of such a group says so. */
static bool add_group(struct etcd_job *job, const struct etcd_kv *kv)
{
    char name[NAME_MAX_BYTES + 1];
    struct mandate_row row;
    struct nonce write;
    uint64_t offset;
    struct group_row *slot;

    if (!etcd_key_read(job->etcd, ETCD_GROUPS, NULL, kv->key, name) ||
        etcd_row_read(kv, &row, &write, &offset) != GAVEL_OK)
        return true;
    slot = reply_add_group(job->reply);
    if (!slot)
        return job->reply->has_more; /* the wishes of those that are listed are read all the same */
    name_copy(slot->group, sizeof slot->group, name);
    slot->record = row.record;
    slot->record.process = process_within_sight(&row.record.process, &job->etcd->self);
    slot->expired = !row.record.held;
    slot->remaining_ms = row.record.held ? -1 : 0;
    return true;
}

static bool add_wish(struct etcd_job *job, const struct etcd_kv *kv)
{
    struct group_row sought = {0};
    struct group_row *found;
    struct nonce write;

    if (!etcd_key_read(job->etcd, ETCD_WISHES, NULL, kv->key, sought.group) || job->reply->group_count == 0)
        return true;
    found = bsearch(&sought, job->reply->groups, job->reply->group_count, sizeof sought, group_order);
    if (found)
        etcd_wish_read(kv, &found->record, &write);
    return true;
}

static bool take_wishes(struct etcd_job *job)
{
    bool is_last;

    return etcd_job_take_page(job, add_wish, &is_last) && !is_last && ask_page(job, ETCD_WISHES);
}

static bool take_groups(struct etcd_job *job)
{
    bool is_last;

    if (!etcd_job_take_page(job, add_group, &is_last))
        return false;
    if (!is_last && !job->reply->has_more)
        return ask_page(job, ETCD_GROUPS);
    if (job->reply->group_count > 0)
        qsort(job->reply->groups, job->reply->group_count, sizeof *job->reply->groups, group_order);
    job->after[0] = '\0';
    job->next = take_wishes;
    return ask_page(job, ETCD_WISHES);
}

void etcd_begin_groups(struct etcd_job *job)
{
    job->next = take_groups;
    (void)ask_page(job, ETCD_GROUPS); /* which it always does */
}

/* ---- the candidates of a group ---- */

/* One that nobody has heard of for so long is cleared away by whoever looks, one with each look. */
static void note_stale(struct etcd_job *job, const struct etcd_kv *kv, gavel_ms age_ms)
{
    if (age_ms / STORE_PRUNE_TIMEOUTS <= job->request->candidate_timeout_ms || job->revision != 0)
        return;
    job->revision = kv->revision;
    name_copy(job->stale, sizeof job->stale, kv->key);
}

static bool add_candidate(struct etcd_job *job, const struct etcd_kv *kv)
{
    struct etcd_store *etcd = job->etcd;
    const struct store_request *request = job->request;
    char name[NAME_MAX_BYTES + 1];
    struct registration registration;
    struct registration *slot;

    if (!etcd_key_read(etcd, ETCD_CANDIDATES, request->group, kv->key, name) ||
        registration_json_read(kv->value, kv->size, &registration, NULL) != ROW_JSON_GOOD ||
        strcmp(name, registration.id) != 0)
        return true; /* of a newer gavel, or of somebody else */
    registration.age_ms = sightings_age(&etcd->sightings, request->group, &registration, clock_now());
    registration.process = process_within_sight(&registration.process, &etcd->self);
    if (registration.age_ms > request->candidate_timeout_ms) {
        reply_add_silent(job->reply, &registration, registration.age_ms, request->candidate_timeout_ms);
        note_stale(job, kv, registration.age_ms);
        return true;
    }
    if (process_is_known_dead(&registration.process, &etcd->self)) {
        reply_add_silent(job->reply, &registration, 0, 0);
        return true;
    }
    if (job->reply->registration_count == STORE_CANDIDATES_MAX)
        return true;
    slot = reply_add_registration(job->reply);
    if (slot)
        *slot = registration;
    return slot;
}

static bool take_candidates(struct etcd_job *job);

/* It was in nobody's way: whether it is gone now does not matter to who looked. */
static bool take_stale(struct etcd_job *job)
{
    (void)job;
    return false;
}

static bool ask_delete_stale(struct etcd_job *job)
{
    const struct etcd_put put = {.compared = job->stale, .key = job->stale, .revision = job->revision};

    job->next = take_stale;
    etcd_ask(job->call, TXN_PATH, etcd_body_put(&put, NULL, NULL), false);
    return true;
}

static bool ask_candidates(struct etcd_job *job)
{
    char first[ETCD_KEY_SIZE];

    etcd_key(job->etcd, ETCD_CANDIDATES, job->request->group, NULL, first);
    job->next = take_candidates;
    etcd_ask(job->call, RANGE_PATH, etcd_body_page(first, job->after, PAGE), false);
    return true;
}

static bool take_candidates(struct etcd_job *job)
{
    bool is_last;

    if (!etcd_job_take_page(job, add_candidate, &is_last))
        return false;
    if (!is_last && job->reply->registration_count < STORE_CANDIDATES_MAX)
        return ask_candidates(job);
    if (job->reply->registration_count > 0)
        qsort(job->reply->registrations, job->reply->registration_count, sizeof *job->reply->registrations,
              registration_order);
    sightings_prune(&job->etcd->sightings,
                    clock_now() - SIGHTINGS_KEPT -
                        STORE_PRUNE_TIMEOUTS * ns_from_ms(job->request->candidate_timeout_ms));
    return job->revision != 0 && ask_delete_stale(job);
}

void etcd_begin_candidates(struct etcd_job *job) { (void)ask_candidates(job); /* which it always does */ }
