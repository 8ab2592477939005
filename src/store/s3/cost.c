/* SPDX-License-Identifier: Apache-2.0 */

#include "store/s3/cost.h"

#define MS_PER_HOUR 3600000.0

const struct s3_prices s3_prices_default = {.put_usd = 0.005, .get_usd = 0.0004, .list_usd = 0.005};

/* How often something happens in an hour; the jitter that is added at random is half its most, on average. */
static double per_hour(const struct gavel_settings *settings, gavel_ms every_ms)
{
    double interval = (double)every_ms + (double)settings->heartbeat_jitter_ms / 2;

    return interval > 0 ? MS_PER_HOUR / interval : 0;
}

struct s3_requests s3_requests_per_hour(const struct gavel_settings *settings, size_t standbys,
                                        size_t elections)
{
    double beats = per_hour(settings, settings->heartbeat_ms);
    double looks = per_hour(settings, settings->election_interval_ms);
    double lists_of_leader = per_hour(settings, settings->candidate_timeout_ms);
    double others = (double)standbys; /* of each: the standbys of the leader, and the leader and the rest */
    double n = (double)standbys;
    double count = (double)elections;

    return (struct s3_requests){
        .puts = count * (beats + beats + n * beats),
        .gets = count * (n * looks + (lists_of_leader + n * beats) * others / S3_LISTS_PER_READ),
        .lists = count * (lists_of_leader + n * beats),
    };
}

double s3_requests_cost(struct s3_requests requests, struct s3_prices prices)
{
    return (requests.puts * prices.put_usd + requests.gets * prices.get_usd +
            requests.lists * prices.list_usd) /
           1000;
}
