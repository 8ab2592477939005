/* SPDX-License-Identifier: Apache-2.0 */

/* The parts of a fleet. */
#ifndef BENCH_SESSIONS_FLEET_INTERNAL_H
#define BENCH_SESSIONS_FLEET_INTERNAL_H

#include "bench/sessions/fleet.h"
#include "client/cluster.h"

#define FLEET_NAME_BYTES 32

struct fleet;
struct fleet_seat;

/* The groups of a set, by their number. */
struct fleet_groups {
    struct fleet *fleet;
    struct fleet_set set;
    size_t answered; /* campaigns */
    size_t held;
    uint64_t *epochs; /* that they are held with; 0 not */
};

/* A campaign of one seat for its part of a set. */
struct fleet_job {
    struct fleet_seat *seat;
    struct fleet_groups *groups;
    size_t next; /* the number of the group whose campaign is answered next */
};

enum { FLEET_OWN, FLEET_OTHERS, FLEET_SETS };

/* One connection and its session. */
struct fleet_seat {
    struct fleet *fleet;
    size_t number;
    struct cluster_link *cluster;
    bool is_watching;
    struct event *pace;
    gavel_ns sent_at; /* of the write under way */
    int32_t priority; /* of its last write */
    struct fleet_job jobs[FLEET_SETS];
};

struct fleet {
    const struct post *post;
    const struct fleet_plan *plan;
    struct event_base *base;
    struct event *control;
    size_t watching;
    bool is_writing;
    bool has_failed;
    struct fleet_groups groups[FLEET_SETS];
    struct {
        size_t seen;
        size_t wrong;
        char after[FLEET_NAME_BYTES];
    } survey;
    struct fleet_seat seats[FLEET_CONNECTIONS_MAX];
};

/* It gives up, for the driver to see. */
void fleet_fail(struct fleet *fleet, enum gavel_status status, const char *what, const char *message);

void fleet_tell(const struct fleet *fleet, enum fleet_news news, int64_t value);

/* Campaigns by a seat for its part of a set. */
void fleet_campaign(struct fleet_seat *seat, struct fleet_groups *groups);

/* Leaves the groups of that set, as far as they are the seat's. */
void fleet_leave(struct fleet_seat *seat, struct fleet_groups *groups);

/* The first group of the seat is given up; its candidate goes to the end of the queue. */
void fleet_resign(struct fleet_seat *seat);

/* One write more: the seat's candidate in its first group says something else of itself. */
void fleet_write(struct fleet_seat *seat);

/* A change of a group in which the seat's session takes part. */
void fleet_heard(struct fleet_seat *seat, const Gavel__Change *change);

/* Lists the groups of its own at the cluster, and compares. */
void fleet_verify(struct fleet *fleet);

#endif
