/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The leadership of a group as an onlooker sees it: who leads, and whether that
 * still counts. The record alone does not say: its lease may have run out, or
 * its process may be provably dead.
 */
#ifndef CLI_GROUP_LEADERSHIP_H
#define CLI_GROUP_LEADERSHIP_H

#include "cli/cli.h"
#include "os/process.h"
#include "store/store.h"

#include <jansson.h>

enum leadership_state {
    LEADERSHIP_EMPTY,    /* nobody has ever led */
    LEADERSHIP_RELEASED, /* the last leader released it */
    LEADERSHIP_KILLED,   /* the last leader was killed, and its guard released it */
    LEADERSHIP_LAPSED,   /* the last leader had not renewed in time, and released it */
    LEADERSHIP_HELD,     /* somebody leads */
    LEADERSHIP_EXPIRED,  /* the lease has run out, nobody has taken over */
    LEADERSHIP_DEAD,     /* the process of the holder is dead, nobody has taken over */
    LEADERSHIP_DONE,     /* the last leader has done the work for good, and nobody will follow */
};

struct leadership {
    enum leadership_state state;
    gavel_ms remaining_ms; /* of the lease; -1 if the store has no clock */
    struct record record;  /* zeroed for LEADERSHIP_EMPTY */
    char note[256];        /* what the store says about the holder; usually "" */
};

/* An open store and who we are, to judge the processes of others. */
struct onlooker {
    struct store *store;
    struct process_id self;
};

/*
 * Opens the store of the configuration. Looking does not create one: if its
 * file does not exist yet, waits for it until `until`; then ERR_TIMEOUT, or
 * ERR_STORE_UNAVAILABLE if nobody has asked to wait. asked_ms is what was asked
 * for, for the message; 0: nothing. On failure *error says what to do, and there
 * is nothing to close.
 */
GAVEL_CHECKED enum gavel_status onlooker_open(const struct cli *cli, gavel_ns until, gavel_ms asked_ms,
                                              struct onlooker *ret_onlooker, struct gavel_error *error);

/* Safe on a zeroed struct. */
void onlooker_close(struct onlooker *onlooker);

/* One call to the store with the CLI's time limit. The caller frees the reply, also after a failure. */
GAVEL_CHECKED enum gavel_status onlooker_call(const struct onlooker *onlooker, struct store_request *request,
                                              struct store_reply *ret_reply, struct gavel_error *error);

GAVEL_CHECKED enum gavel_status leadership_read(const struct onlooker *onlooker, const char *group,
                                                struct leadership *ret_leadership, struct gavel_error *error);

/* Why a store has no list of candidates that an onlooker could see; NULL if it has one. */
const char *leadership_no_list_reason(const struct store *store);

/* The state that a record in a listing stands for. */
enum leadership_state leadership_judge(const struct onlooker *onlooker, const struct record *record,
                                       bool found, bool expired);

/* "empty", "released" (of any kind), "held", "expired", "dead", "done". */
const char *leadership_state_name(enum leadership_state state);

/* The same as a word for people, which tells "released", "killed" and "lapsed" apart. */
const char *leadership_state_word(enum leadership_state state);

/* How the leader was lost; NONE if there is one, if the last one released it, or if there never was one. */
enum gavel_loss leadership_loss(enum leadership_state state);

/* A sentence about a leadership that is not held, for error messages. */
const char *leadership_state_text(enum leadership_state state);

/* Why nobody leads, short enough for a line with the time: what follows the name of who led last. */
const char *leadership_state_ending(enum leadership_state state);

/*
 * Whether the record is of a mandate that was not released. Its lease, renewals
 * and process are then meaningful, even if the holder was lost.
 */
bool leadership_has_mandate(const struct leadership *leadership);

/* {group, state, leader_id, leader_address, epoch, since, …}; every field is there, null where it does not
 * apply. */
json_t *leadership_json(const char *group, const struct leadership *leadership);

#endif
