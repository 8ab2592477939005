/* SPDX-License-Identifier: Apache-2.0 */

/* What those who want to be told (etcd_watch.c) and the stream that tells (etcd_stream.c) say to each other.
 */
#ifndef STORE_ETCD_WATCH_H
#define STORE_ETCD_WATCH_H

#include "store/etcd/etcd.h"

/* With more groups than this the stream is about all keys: it need not be made anew for each group. */
#define ETCD_STREAM_GROUPS_MAX 32

/* A group that somebody wants to be told of. */
struct etcd_watched {
    RB_ENTRY(etcd_watched) by_name;
    TAILQ_ENTRY(etcd_watched) in_changes;
    struct etcd_store *etcd;
    size_t watchers;    /* of store_watch() */
    bool is_waited_for; /* by store_wait(), now or the last time */
    bool is_changed;    /* store_changed() has it to tell */
    uint64_t told;      /* how often something was told of it */
    uint64_t known_version;
    uint64_t known_told; /* when that was known; 0 never */
    bool has_seen;
    struct {
        struct nonce nonce;
        uint64_t epoch;
        bool held;
        bool done;
    } seen; /* what makes a candidate act, as of the last event */
    char group[];
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
/* Without the lock. Safe if there is no thread. */
void etcd_stream_stop(struct etcd_store *etcd);
/* Waits for `changed`; false when that instant has come. */
bool etcd_wait_until(struct etcd_store *etcd, gavel_ns until);

#endif
