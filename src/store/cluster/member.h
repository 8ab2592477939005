/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The candidates of the caller that take part in groups in its session: one
 * per group, since a session takes part once.
 *
 *     HEARTBEAT said ──► [campaigning] ── answered OK ──► [joined] ── left, or the session is over ──►
 * forgotten │                              ▲ │ given up, and nobody knows   │ said again └────────► [in
 * doubt] ─────────┘ └── not said again ──► withdrawn ──► forgotten
 *
 * While one is in a group another is refused, and the cluster is not asked.
 *
 * A campaign that goes with the opening of a session may be carried out
 * though its caller was told that it was not answered in time. Who says so
 * again takes part; of the others nobody would know, and the cluster would
 * grant mandates to them. So once a session is open, they are withdrawn.
 *
 * A withdrawal is said until it is answered or the session is over, however
 * long its caller waits for it; who says it again waits for the same answer.
 */
#ifndef STORE_CLUSTER_MEMBER_H
#define STORE_CLUSTER_MEMBER_H

#include "base/request.h"

#include <bsd/sys/tree.h>
#include <sys/queue.h>

struct gavel_store;
struct gavel_parcel;
struct gavel_withdrawal;

struct gavel_member {
    RB_ENTRY(gavel_member) by_group;
    struct gavel_store *store;
    const char *group;
    const char *id;
    uint64_t instance; /* 0: not told; it was met when something of it was to be given up */
    size_t campaigns;  /* that were said, and not answered */
    bool is_joined;
    bool is_in_doubt;
    LIST_HEAD(, gavel_withdrawal) withdrawals; /* likewise */
};
RB_HEAD(gavel_members, gavel_member);

/* One campaign of a parcel. */
struct gavel_said {
    struct gavel_member *member;
    bool is_of_any_session; /* its caller saw none */
    bool renews;            /* asks to go on under a new epoch */
};

/* A RELEASE or a LEAVE on its way. */
struct gavel_withdrawal {
    LIST_ENTRY(gavel_withdrawal) in_member;
    struct gavel_member *member;
    LIST_HEAD(, gavel_parcel) parcels; /* whose callers wait for the answer, or have waited */
    bool is_overtaken;                 /* the candidate has said since that it takes part */
    uint64_t epoch;                    /* 0: whatever it leads with */
    bool stays;
    bool is_done;
    enum gavel_loss loss;
    char successor[NAME_MAX_BYTES + 1];
};

/* Everything here is called with the lock of the store held. */

/* NULL: no candidate of ours is in the group. */
struct gavel_member *gavel_member_find(struct gavel_store *gavel, const char *group);
/* There is none yet; NULL without memory. */
struct gavel_member *gavel_member_new(struct gavel_store *gavel, const char *group, const char *id,
                                      uint64_t instance);
/* Forgets it if it is not, and will not be, in the group. */
void gavel_member_settle(struct gavel_member *member);
struct gavel_member *gavel_member_first(struct gavel_store *gavel);
struct gavel_member *gavel_member_next(struct gavel_member *member);
/* The first group by name behind `after`; NULL: none. */
const char *gavel_member_after(struct gavel_store *gavel, const char *after);
void gavel_members_free(struct gavel_store *gavel);

#endif
