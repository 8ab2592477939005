/* SPDX-License-Identifier: Apache-2.0 */

#include "store/s3/foreign.h"

#include "base/hash.h"

#include <jansson.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX (64 * 1024)
#define WALL_MAX_MS INT64_C(253402300799999)

/*
 * What s3db.js is waited for: twice its lease, and at least this, which is more than twice the time after
 * which it takes a worker for dead unless told otherwise.
 */
#define SILENCE_MIN_MS 60000
#define SILENCE_MAX_MS 3600000

static json_t *load(const char *text, size_t size)
{
    json_t *object = size <= TEXT_MAX ? json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL) : NULL;

    if (json_is_object(object) && !json_object_get(object, "format"))
        return object;
    json_decref(object); /* safe on NULL */
    return NULL;
}

/* A number as JavaScript writes it; false if it is none that makes sense. */
static bool read_number(const json_t *object, const char *name, int64_t highest, int64_t *ret_value)
{
    const json_t *value = json_object_get(object, name);
    double number = json_number_value(value);

    if (!json_is_number(value) || !(number >= 0) || number > (double)highest)
        return false;
    *ret_value = json_is_integer(value) ? json_integer_value(value) : (int64_t)number;
    return true;
}

bool s3_foreign_state(const char *text, size_t size, struct mandate_row *ret_row)
{
    json_t *object = load(text, size);
    const char *leader = json_string_value(json_object_get(object, "leaderId"));
    struct mandate_row row = {.is_found = true};
    int64_t epoch = 0;
    int64_t ends = 0;
    int64_t began = 0;
    bool is_one = leader && *leader &&
                  read_number(object, "epoch", (int64_t)(RULES_NUMBER_MAX >> 1), &epoch) && epoch > 0 &&
                  read_number(object, "leaseEnd", WALL_MAX_MS, &ends);

    if (is_one) {
        if (!read_number(object, "leaseStart", WALL_MAX_MS, &began) || began > ends)
            began = ends;
        row.record.epoch = (uint64_t)epoch;
        row.record.held = true;
        row.record.lease_ms = 2 * (ends - began);
        if (row.record.lease_ms < SILENCE_MIN_MS)
            row.record.lease_ms = SILENCE_MIN_MS;
        if (row.record.lease_ms > SILENCE_MAX_MS)
            row.record.lease_ms = SILENCE_MAX_MS;
        row.record.since_wall_ms = row.record.renewed_wall_ms = began;
        name_copy(row.record.holder, sizeof row.record.holder, leader);
        *ret_row = row;
    }
    json_decref(object); /* safe on NULL */
    return is_one;
}

bool s3_foreign_is_worker(const char *text, size_t size)
{
    json_t *object = load(text, size);
    int64_t beat;
    bool is_one = json_is_string(json_object_get(object, "workerId")) &&
                  read_number(object, "lastHeartbeat", WALL_MAX_MS, &beat);

    json_decref(object); /* safe on NULL */
    return is_one;
}

uint64_t s3_foreign_version(const char *etag, struct s3_span list, size_t *ret_workers)
{
    uint64_t hash = hash_text(HASH_BEGIN, etag);
    struct s3_span item;

    *ret_workers = 0;
    while (s3_xml_find(list, "Contents", &item, &list)) {
        hash = hash_bytes(hash, item.at, item.length); /* its key, its ETag, and when it was written */
        ++*ret_workers;
    }
    return 1 + hash % (RULES_NUMBER_MAX >> 1); /* far from the highest: gavel's own go on from there */
}

void s3_foreign_tell(const struct mandate_row *row, size_t workers, struct store_reply *reply)
{
    const struct record *record = &row->record;

    (void)snprintf(reply->note, sizeof reply->note,
                   "s3db.js leads here: %.60s, epoch %" PRIu64
                   ", %zu workers; stop its processes: gavel takes over with epoch %" PRIu64
                   " when nothing of s3db.js has changed for %" PRId64 " s",
                   record->holder, record->epoch, workers, record->epoch + 1,
                   (int64_t)(record->lease_ms / 1000));
}
