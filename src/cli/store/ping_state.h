/* SPDX-License-Identifier: Apache-2.0 */

/* What the files of `gavel store ping` share. */
#ifndef CLI_STORE_PING_STATE_H
#define CLI_STORE_PING_STATE_H

#include "cli/store/ping.h"

#include <signal.h>

#define PING_PATIENCE_MS 5000 /* a call that takes longer has failed, whatever the preset */
#define PING_TIDY_MS 2000     /* to give up what may be held; it ends by itself, too */
#define PING_LEASE_MS 10000
#define PING_WAIT_FOR_OTHERS_MS 30000
#define PING_LOOK_AGAIN_MS 20
#define PING_CANDIDATE_TIMEOUT_MS 60000 /* of lease candidates of before 0.7.0 */

struct ping {
    const struct cli *cli;
    struct ping_result *result;
    struct store *store;
    struct process_id self;
    struct nonce nonce;   /* of the present mandate */
    bool may_hold;        /* it was claimed, or perhaps */
    bool has_looked;      /* at the group; then the next is known */
    bool is_foreign;      /* somebody else has used the group, so that it is not removed */
    size_t rounds_wanted; /* 0: as many as fit */
    gavel_ns began_at;
    gavel_ns shown_at; /* when progress was shown last; 0 never */
    bool is_busy;      /* another ping did not end */
    unsigned failures; /* in a row */
    gavel_ns good_at;  /* when a call succeeded last */
    int signals;       /* a signalfd, or -1 */
    sigset_t signal_set;
    struct gavel_error *error;

    /* in a store with sessions */
    struct store_session session; /* as told last */
    bool is_member;               /* takes part in the group, or perhaps */
    uint64_t instance;            /* that it takes part with */
    uint64_t epoch;               /* that it was granted; 0: none */
    uint64_t had_epoch;           /* of the mandate before */
};

/* Somebody wants it to end. From then on a second signal ends it at once. */
bool ping_is_told_to_end(struct ping *ping);

/* One call. The reply is the caller's, also after a failure. */
enum gavel_status ping_call(struct ping *ping, struct store_request *request, gavel_ms patience_ms,
                            struct store_reply *ret_reply);

/* An operation that began then has ended now: measured, and counted if it failed. Returns its status. */
enum gavel_status ping_measured(struct ping *ping, enum ping_op op, gavel_ns began, enum gavel_status status,
                                const char *message);

/* Reads the group, measured. ERR_DONE: somebody has used it for good. The reply is the caller's. */
enum gavel_status ping_read(struct ping *ping, struct store_reply *ret_reply);

/* ping_session.c: opens the session of the store object, and waits for it. */
enum gavel_status ping_session_begin(struct ping *ping);

/*
 * One round: read, campaign until elected, release. Others that use the group
 * are waited for. ERR_STOPPED: a signal came.
 */
enum gavel_status ping_session_round(struct ping *ping);

/* Leaves the group, if it may take part, and so gives up what it may hold. */
enum gavel_status ping_session_leave(struct ping *ping, struct gavel_error *error);

#endif
