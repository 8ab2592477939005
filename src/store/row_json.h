/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mandates and registrations as JSON, for stores that keep bytes. People and
 * other programs read it: names are spelled out, times are for reading only.
 *
 *     {"format": 1, "leaderId": "web-1", "epoch": 7, "version": 31, "nonce": "…", "write": "…", "held": true,
 *      "done": false, "address": "10.0.0.7:41000", "leaseMs": 15000,
 *      "leaseExpiresAt": "2026-11-16T14:00:15.000Z", "since": "…", "renewedAt": "…", "successor": "",
 *      "wish": {"epoch": 7, "force": false, "successor": ""},
 *      "process": {"bootId": "…", "pid": 1, "pidNamespace": …, "startTicks": …}}
 *
 * Numbers beyond 2^53 are safe: jansson keeps 64 bits. Unknown members are ignored; an unknown format is not.
 */
#ifndef STORE_ROW_JSON_H
#define STORE_ROW_JSON_H

#include "store/rules.h"

#define ROW_JSON_FORMAT 1

enum row_json_kind {
    ROW_JSON_GOOD,
    ROW_JSON_TOO_NEW,
    ROW_JSON_DAMAGED, /* not JSON, or a member is missing or makes no sense */
};

/*
 * `write` is unique to this write, so that two writes never have the same
 * bytes. NULL when out of memory; the caller frees it.
 */
char *row_json_write(const struct mandate_row *row, struct nonce write);
/* *ret_write may be NULL. The row's applied_at and boot_id are 0 and "". */
enum row_json_kind row_json_read(const char *text, size_t size, struct mandate_row *ret_row,
                                 struct nonce *ret_write);

/*
 * For a store that numbers its writes by itself: the number of the write that
 * put the text there is its version. A claim cannot know its own number, so it
 * leaves out its epoch ("epoch": 0), which is then that number plus an offset;
 * later writes spell the epoch out.
 */
struct row_json_number {
    uint64_t revision;     /* when reading: of the write that the text comes from */
    uint64_t epoch_offset; /* "epochOffset": claims add it to their number */
    bool is_claim;
};

/* The same two functions; with a NULL number they are the two above. Reading fills in *number. */
char *row_json_write_numbered(const struct mandate_row *row, struct nonce write,
                              const struct row_json_number *number);
enum row_json_kind row_json_read_numbered(const char *text, size_t size, struct mandate_row *ret_row,
                                          struct nonce *ret_write, struct row_json_number *number);

/* {"format", "id", "instance", "beats", "address", "priority", "eligible", "since", "lastHeartbeat",
 * "process"}; age_ms is not written, and -1 when read. */
char *registration_json_write(const struct registration *registration, struct nonce write);
enum row_json_kind registration_json_read(const char *text, size_t size,
                                          struct registration *ret_registration, struct nonce *ret_write);

#endif
