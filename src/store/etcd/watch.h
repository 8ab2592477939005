/* SPDX-License-Identifier: Apache-2.0 */

/* What the watched groups (watch.c) and the stream that tells of them (stream.c) say to each other. */
#ifndef STORE_ETCD_WATCH_H
#define STORE_ETCD_WATCH_H

#include "store/etcd/etcd.h"

/* With more groups than this the stream is about all keys: it need not be made anew for each group. */
#define ETCD_STREAM_GROUPS_MAX 32

/* What the stream has told of a watched group. */
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

/* All of these with the lock held. */

/* The record of a group was written; NULL: nobody knows what it says now. */
void etcd_watch_tell(struct etcd_store *etcd, const char *group, const struct record *record);
void etcd_watch_tell_wish(struct etcd_store *etcd, const char *group);
/* Something may have been missed. */
void etcd_watch_tell_all(struct etcd_store *etcd);
/* What a stream has to ask, and how many questions that is; false: out of memory. The caller frees it. */
bool etcd_watch_questions(struct etcd_store *etcd, char **ret_text, size_t *ret_count);

/* Another set of groups is watched; starts the thread if there is none. */
void etcd_stream_renew(struct etcd_store *etcd);

#endif
