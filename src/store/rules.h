/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a claim, a renewal, a release, a wish and a heartbeat do to stored rows.
 * Drivers whose store cannot decide for itself fetch a row, apply a rule and
 * put the row back, all in one transaction; so the promise of every store is in
 * one place. Pure: the time and the fate of processes are passed in.
 */
#ifndef STORE_RULES_H
#define STORE_RULES_H

#include "base/request.h"

/* The largest epoch and version: stores keep them as signed numbers, and the last one is left free. */
#define RULES_NUMBER_MAX ((uint64_t)INT64_MAX - 1)

/* A record and when its lease began on the store's clock. */
struct mandate_row {
    bool is_found; /* false: there is no record; everything else is zero */
    struct record record;
    gavel_ns applied_at; /* of the last claim or renewal */
    char boot_id[37];    /* of the machine when applied_at was read; "" where the row cannot outlive a boot */
};

/* What is known at the time of the call. */
struct rules_now {
    gavel_ns now;
    int64_t wall_ms;
    const struct process_id *self; /* the process that asks */
};

/*
 * Whether the lease of a row has run out. *ret_remaining is what is left of
 * it, 0 if expired. The clock must have been read after the row.
 */
bool mandate_expired(const struct mandate_row *row, const struct rules_now *now, gavel_ms *ret_remaining);

/*
 * Each changes *row and returns OK, or leaves it and returns ERR_CONFLICT,
 * ERR_NOT_HOLDER, or for a claim ERR_DONE, or ERR_STORE_FULL when there is no
 * higher epoch.
 */
GAVEL_CHECKED enum gavel_status rules_claim(struct mandate_row *row, const struct store_request *request,
                                            const struct rules_now *now);
GAVEL_CHECKED enum gavel_status rules_renew(struct mandate_row *row, const struct store_request *request,
                                            const struct rules_now *now);
GAVEL_CHECKED enum gavel_status rules_release(struct mandate_row *row, const struct store_request *request);
GAVEL_CHECKED enum gavel_status rules_ask(struct mandate_row *row, const struct store_request *request);
GAVEL_CHECKED enum gavel_status rules_reopen(struct mandate_row *row, const struct store_request *request);

/* One of the five above, by the operation of the request. */
GAVEL_CHECKED enum gavel_status rules_apply(struct mandate_row *row, const struct store_request *request,
                                            const struct rules_now *now);

/*
 * Tables have a column `wish_force`, which has no meaning once a record is
 * released; from then on it says how the mandate ended. So tables of 0.6.0 need
 * no further column, and gavel 0.6.0 reads the rows as before. The record's
 * held and done must be read first.
 */
int rules_wish_column(const struct record *record);
void rules_take_wish_column(struct record *record, int64_t column);

/* A stored number as a loss; one written by a later version is taken as LAPSED. */
enum gavel_loss rules_loss(int64_t number);

/* Fills in what a reply says about a row after the call ended with `status`. */
void rules_reply(const struct mandate_row *row, const struct store_request *request,
                 const struct rules_now *now, enum gavel_status status, struct store_reply *reply);

/* The same for a store without a clock: a held mandate does not expire there. */
void rules_reply_untimed(const struct mandate_row *row, const struct store_request *request,
                         enum gavel_status status, struct store_reply *reply);

/* Fills in the status and, if it is one of those above, its meaning; the record is already in the reply. */
void rules_explain(const struct store_request *request, enum gavel_status status, struct store_reply *reply);

/* When a registration last beat on the store's clock. */
struct registration_row {
    struct registration registration;
    gavel_ns beat_at;
};

/* How long a registration has been silent; the largest value if it beat on another boot. */
gavel_ms registration_age(const struct registration_row *row, gavel_ns now);

/*
 * Whether a heartbeat may replace the registration under its id: that is the
 * same instance, or the one it says it replaces, or has been silent too long,
 * or is_dead. If not, the reply says ERR_ID_IN_USE.
 */
bool rules_heartbeat(const struct registration_row *row, const struct store_request *request, gavel_ns now,
                     bool is_dead, struct store_reply *reply);

#endif
