/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Namespaces of s3db.js, whose coordinator keeps its leader under the same keys:
 *
 *     state.json               leaderId, epoch, leaseStart, leaseEnd
 *     workers/worker=<id>.json workerId, lastHeartbeat, startTime
 *
 * To gavel such a state is another's mandate. Anything that s3db.js writes
 * there "renews" it: its version is a hash of the ETags of the state and of all
 * workers, so a standby waits until nothing has changed for a whole lease on
 * its own clock. Then it claims as from any other leader, with the next epoch.
 *
 * s3db.js elects the first of all objects below workers/, no matter what wrote
 * it. So gavel registers no candidates there until it has taken over: otherwise
 * s3db.js could elect a candidate of gavel, which in turn waits for s3db.js. A
 * state of gavel has no leaseEnd; s3db.js never takes over from it.
 */
#ifndef STORE_S3_FOREIGN_H
#define STORE_S3_FOREIGN_H

#include "store/s3/s3.h"

/* Whether the text is a state of s3db.js; *ret_row is then its meaning, except for the version. */
bool s3_foreign_state(const char *text, size_t size, struct mandate_row *ret_row);

/* Whether it is a registration of s3db.js. */
bool s3_foreign_is_worker(const char *text, size_t size);

/* The version of such a row, from its ETag and a list of the workers; *ret_workers is their number. */
uint64_t s3_foreign_version(const char *etag, struct s3_span list, size_t *ret_workers);

/* For people: what was found, and what to do. */
void s3_foreign_tell(const struct mandate_row *row, size_t workers, struct store_reply *reply);

#endif
