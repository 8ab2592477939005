/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How long a candidate over HTTP may count on its session, in a form that is valid
 * whenever it is read. A client that was frozen reads old buffers as if they were
 * new, and a proxy may delay an answer. So no time is counted from the arrival of
 * an answer. Every time is counted from a request of the client itself, which it
 * names by its own clock:
 *
 *     client   ──sent_at─────────────────────────────── sent_at + valid_ms: it has stopped
 *                    \ word.at       kept_at           /
 *     node            ●───────────────●               /
 *                                      \             /
 *     leader                            ●───── ttl ─────────── the session may end
 *
 * The node passes the word on after it was sent, and the leader counts the time
 * to live from the arrival of a keep-alive, stretched by the drift of clocks; so
 *
 *     valid = (kept_at - word.at + ttl) * (1 - drift) / (1 + drift)
 *
 * With keepalive "client" kept_at is word.at.
 */
#include "daemon/api/campaign.h"

#define PPM 1000000

static gavel_ns shrink(const struct api *api, gavel_ns time)
{
    int64_t drift = api->shared->config->raft.drift_ppm;

    return time / NS_PER_US * (PPM - drift) / (PPM + drift) * NS_PER_US; /* fits for 31 days and more */
}

gavel_ns api_campaign_deadline(const struct api_campaign *campaign)
{
    return campaign->kept_at + shrink(campaign->api, ns_from_ms(campaign->ttl_ms));
}

json_t *api_valid_json(const struct api *api, uint32_t ttl_ms)
{
    return json_integer(ms_from_ns(shrink(api, ns_from_ms(ttl_ms))));
}

json_t *api_stamp_json(int64_t stamp)
{
    return stamp == CAMPAIGN_NO_STAMP ? json_null() : json_integer(stamp);
}

void api_campaign_add_time(const struct api_campaign *campaign, json_t *json)
{
    gavel_ns valid = campaign->kept_at - campaign->word.at + ns_from_ms(campaign->ttl_ms);
    bool has_stamp = campaign->word.stamp != CAMPAIGN_NO_STAMP;

    /* Without memory they are missing, and the client counts on nothing. */
    (void)json_object_set_new(json, "sent_at", api_stamp_json(campaign->word.stamp));
    (void)json_object_set_new(
        json, "valid_ms", has_stamp ? json_integer(ms_from_ns(shrink(campaign->api, valid))) : json_null());
}

bool api_stamp_read(struct api_call *call, json_t *body, int64_t *ret_stamp)
{
    *ret_stamp = CAMPAIGN_NO_STAMP;
    return api_body_number(call, body, "sent_at", 0, CAMPAIGN_STAMP_MAX, ret_stamp);
}
