/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The changes of a group as they happen, from any node of a cluster. If the
 * node goes away, another one is asked, from the last change seen. All nodes
 * number the changes alike, so none is missed and none comes twice.
 */
#ifndef CLI_CLUSTER_GROUP_STREAM_H
#define CLI_CLUSTER_GROUP_STREAM_H

#include "cli/cluster/cluster_cli.h"

#include <signal.h>

/*
 * `kind` is "elected", "note_put" …; "watching" when a node begins to report,
 * and "missed" if there were changes that no node remembers. Returning false
 * ends it.
 */
typedef bool (*group_change_cb)(const char *kind, const json_t *change, void *user);

struct group_stream {
    const char *group;
    uint64_t after; /* changes after this revision */
    bool has_after; /* false: those from now on */
    gavel_ns until; /* NEVER: no end */
    const volatile sig_atomic_t *stop;
    group_change_cb cb;
    void *user;
};

/*
 * Reports changes. OK once the callback has returned false, the time is over or
 * *stop is set; otherwise the status says why no node can be followed.
 */
GAVEL_CHECKED enum gavel_status group_stream_run(struct cluster_client *client,
                                                 const struct group_stream *stream,
                                                 struct gavel_error *error);

#endif
