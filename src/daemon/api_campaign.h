/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A campaign over HTTP: one session, one candidate, one stream of events.
 *
 *     POST ─► [OPENING] ─ session is open ─► [OPEN] ─ client closes ─► [CLOSING] ─ closed ─► freed
 *                 │ refused, client gone       │ the node ends it, while it leads
 *                 ▼                            ▼
 *             [CLOSING]                      freed: the session expires by itself
 *
 * With keepalive "client" the session is always left to its client. A node that ends waits a while for
 * clients to close their streams (LEAVING).
 */
#ifndef DAEMON_API_CAMPAIGN_H
#define DAEMON_API_CAMPAIGN_H

#include "daemon/api_ask.h"

/* Keep-alives that may be without an answer at once: one is sent each third of the time to live, and an
 * answer to an older one than these would be too late to be of use. */
#define CAMPAIGN_KEEP_ALIVES 3
#define CAMPAIGN_TTL_MS 2000

struct api_keeping {
    struct api_errand errand;
    struct api_campaign *campaign;
};

struct api_campaign {
    struct api_stream stream; /* first; while it is OPEN */
    LIST_ENTRY(api_campaign) in_api;
    struct api *api;
    enum { CAMPAIGN_OPENING, CAMPAIGN_OPEN, CAMPAIGN_LEAVING, CAMPAIGN_CLOSING } state;
    struct api_later later;    /* OPENING */
    struct api_errand request; /* to open, to join, to close */
    Gavel__Op *op;             /* OPENING: Campaign */
    struct api_keeping keep_alives[CAMPAIGN_KEEP_ALIVES];
    size_t next_keep_alive;
    struct event *timer;
    char group[NAME_MAX_BYTES + 1];
    char candidate[NAME_MAX_BYTES + 1];
    uint64_t session;
    uint32_t ttl_ms;
    bool is_kept_by_client;
    bool is_abandoned; /* OPENING: nobody waits for it any more */
    uint64_t revision; /* of the table that has the session; an older one knows nothing of it */
    gavel_ns kept_at;  /* the send time of the newest opening or keep-alive that was answered */
    gavel_ns keep_at;  /* when the next one is due */
    gavel_ns close_until;

    /* what the client was told */
    uint64_t epoch;  /* it leads with; 0: it does not */
    bool has_wish;   /* it shall hand over */
    bool has_leader; /* who leads instead, `other` (epoch; 0 nobody) */
    uint64_t other;
    uint64_t seen_revision; /* of the table when it was last looked at */
};

/* api_campaign_open.c: from the body to the request. */
void api_campaign_free(struct api_campaign *campaign);

/* api_campaign.c: the session is open; the stream begins. */
void api_campaign_begin(struct api_campaign *campaign, struct api_call *call);
/* Ends the session, and then itself. */
void api_campaign_close(struct api_campaign *campaign);

#endif
