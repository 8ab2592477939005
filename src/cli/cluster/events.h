/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The events of all nodes of a cluster as one stream. Each node sends its own
 * as server-sent events. They are held back for a moment and sorted by time. A
 * node that goes away is asked again until it is back, from the last event
 * seen, so that nothing it still remembers is missed.
 */
#ifndef CLI_CLUSTER_EVENTS_H
#define CLI_CLUSTER_EVENTS_H

#include "cli/cluster/client.h"

#include <signal.h>
#include <stdint.h>

struct cluster_event {
    const char *teller; /* the node that reports it */
    const char *name;
    const char *at;       /* ISO 8601 */
    const char *node;     /* the node it is about; "": none */
    const char *previous; /* of leader_changed */
    const char *text;
    uint64_t term;
    const json_t *json; /* the whole event */
};

/* The event is valid only during the call. */
typedef void (*cluster_event_cb)(const struct cluster_event *event, void *user);

struct cluster_streams;

/* The client is borrowed. NULL: no memory. */
struct cluster_streams *cluster_streams_new(const struct cluster_client *client, cluster_event_cb cb,
                                            void *user);
void cluster_streams_free(struct cluster_streams *streams);

/* Follows a node: events from now on, or also those it remembers. ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status cluster_streams_add(struct cluster_streams *streams, const char *url,
                                                    const char *name, bool from_the_beginning);

/* Delivers events until `until`, or until *stop is set. */
void cluster_streams_run(struct cluster_streams *streams, gavel_ns until, const volatile sig_atomic_t *stop);

/* One sentence about it, without a full stop. Returns buffer. */
const char *cluster_event_words(const struct cluster_event *event, char *buffer, size_t size);

#endif
