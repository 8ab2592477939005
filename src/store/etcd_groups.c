/* SPDX-License-Identifier: Apache-2.0 */

/* All groups, page by page; then the wishes, which stand beside them. */
#include "store/etcd.h"

#include <stdlib.h>
#include <string.h>

#define RANGE_PATH "/v3/kv/range"
#define PAGE 500

static bool ask_page(struct etcd_job *job, enum etcd_family family)
{
    char first[ETCD_KEY_SIZE];

    etcd_key(job->etcd, family, NULL, NULL, first);
    etcd_ask(job->call, RANGE_PATH, etcd_body_page(first, job->after, PAGE), false);
    return true;
}

static int compare_names(const void *a, const void *b)
{
    const struct group_row *one = a;
    const struct group_row *other = b;

    return strcmp(one->group, other->group);
}

/* What is of a newer gavel, or makes no sense, is left out; a READ of such a group says so. */
static bool add_group(struct etcd_job *job, const struct etcd_kv *kv)
{
    char name[NAME_MAX_BYTES + 1];
    struct mandate_row row;
    struct nonce write;
    uint64_t offset;
    struct group_row *place;

    if (!etcd_key_read(job->etcd, ETCD_GROUPS, NULL, kv->key, name) ||
        etcd_row_read(kv, &row, &write, &offset) || job->reply->group_count == STORE_GROUPS_MAX)
        return true;
    place = reply_add_group(job->reply);
    if (!place)
        return false;
    name_copy(place->group, sizeof place->group, name);
    place->record = row.record;
    place->record.process = process_within_sight(&row.record.process, &job->etcd->self);
    place->expired = !row.record.held;
    place->remaining_ms = row.record.held ? -1 : 0;
    return true;
}

static bool add_wish(struct etcd_job *job, const struct etcd_kv *kv)
{
    struct group_row sought = {0};
    struct group_row *found;
    struct nonce write;

    if (!etcd_key_read(job->etcd, ETCD_WISHES, NULL, kv->key, sought.group) || job->reply->group_count == 0)
        return true;
    found = bsearch(&sought, job->reply->groups, job->reply->group_count, sizeof sought, compare_names);
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
    if (!is_last)
        return ask_page(job, ETCD_GROUPS);
    if (job->reply->group_count > 0)
        qsort(job->reply->groups, job->reply->group_count, sizeof *job->reply->groups, compare_names);
    job->after[0] = '\0';
    job->next = take_wishes;
    return ask_page(job, ETCD_WISHES);
}

void etcd_begin_groups(struct etcd_job *job)
{
    job->next = take_groups;
    (void)ask_page(job, ETCD_GROUPS); /* which it always does */
}
