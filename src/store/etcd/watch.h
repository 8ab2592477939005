/* SPDX-License-Identifier: Apache-2.0 */

/* The interface between the watched groups (watch.c) and the stream of their changes (stream.c). */
#ifndef STORE_ETCD_WATCH_H
#define STORE_ETCD_WATCH_H

#include "store/etcd/etcd.h"

/* With more groups than this, the stream covers all keys, so it need not be reopened for each group. */
#define ETCD_STREAM_GROUPS_MAX 32

/* What the stream has reported about a watched group. */
struct etcd_watched {
    struct push_watched push;
    bool has_seen;
    struct {
        struct nonce nonce;
        uint64_t epoch;
        bool held;
        bool done;
    } seen; /* what makes a candidate act, as of the last event */
};

/* The lock is held for all of these. */

/* The record of a group was written; NULL: its contents are unknown. */
void etcd_watch_tell(struct etcd_store *etcd, const char *group, const struct record *record);
void etcd_watch_tell_wish(struct etcd_store *etcd, const char *group);
/* Something may have been missed. */
void etcd_watch_tell_all(struct etcd_store *etcd);
/* The requests that a stream has to send, and how many; false: out of memory. The caller frees the text. */
bool etcd_watch_questions(struct etcd_store *etcd, char **ret_text, size_t *ret_count);

/* The set of watched groups has changed; starts the thread if there is none. */
void etcd_stream_renew(struct etcd_store *etcd);

#endif
