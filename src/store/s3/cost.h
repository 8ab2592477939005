/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cost of a group on an object store, which bills per request: how many
 * requests of each kind its idle candidates send per hour, and what they cost.
 * Pure arithmetic; tests/store/s3/answers.c counts requests to check that the
 * driver s3 behaves like this.
 *
 *              every heartbeat              every look    every candidate time-out
 *     leader   PUT state, PUT worker        –             LIST workers
 *     standby  PUT worker, LIST workers     GET state     –
 *
 * and after every S3_LISTS_PER_READ lists a GET of each other candidate.
 *
 * Subscribers do not appear: all those of a program share one candidate, so a
 * program with twenty of them costs one election. To see what twenty elections
 * would cost instead, ask for twenty.
 */
#ifndef STORE_S3_COST_H
#define STORE_S3_COST_H

#include <gavel/settings.h>

#include <stddef.h>

#define S3_LISTS_PER_READ 20

/* Requests, by the classes that providers bill. Deleting an object is free with most of them. */
struct s3_requests {
    double puts;
    double gets;
    double lists;
};

/* US dollars per thousand requests. */
struct s3_prices {
    double put_usd;
    double get_usd;
    double list_usd;
};

/*
 * The list prices of Amazon S3 Standard in us-east-1
 * (aws.amazon.com/s3/pricing, "Requests & data retrievals"): PUT and LIST
 * 0.005, GET 0.0004. Prices change and differ by provider and region; storage
 * and traffic are extra, but negligible here. A server of your own costs none
 * of this.
 */
extern const struct s3_prices s3_prices_default;

/* For one leader and `standbys` in each of `elections`. The settings have been checked. */
struct s3_requests s3_requests_per_hour(const struct gavel_settings *settings, size_t standbys,
                                        size_t elections);

/* US dollars. */
double s3_requests_cost(struct s3_requests requests, struct s3_prices prices);

#endif
