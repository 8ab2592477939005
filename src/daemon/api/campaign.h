/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A campaign over HTTP: one session, one candidate, and streams of events about it.
 *
 *     POST campaign ─► [OPENING] ─ it is open ─► [OPEN] ─ resigned, expired ─► [CLOSING] ─► freed
 *                          │ refused                │ the stream ends, by either side
 *                          ▼                        ▼
 *                      [CLOSING]                  freed: the session lives until it expires
 *                                                   ▲
 *     POST events ───► [ATTACHING] ─ it is open ─► [OPEN]
 *
 * The end of a stream says nothing about the client: a proxy may have closed one side only. So it releases
 * nothing; the client resigns, or its session expires.
 */
#ifndef DAEMON_API_CAMPAIGN_H
#define DAEMON_API_CAMPAIGN_H

#include "daemon/api/ask.h"

/* Keep-alives that may be unanswered at once. One is sent each third of the time to live, so an answer to an
 * older one would be too late to be of use. */
#define CAMPAIGN_KEEP_ALIVES 3
#define CAMPAIGN_TTL_MS 2000
/* With keepalive "stream", this node keeps the session alive after the client's last word for this many times
 * the time to live. A client that is frozen for longer is replaced. It also bounds how far clocks can drift
 * apart meanwhile. */
#define CAMPAIGN_VOUCHES 30
/* The largest integer that every language reads from JSON without loss. */
#define CAMPAIGN_STAMP_MAX ((INT64_C(1) << 53) - 1)
#define CAMPAIGN_NO_STAMP (-1)

struct api_keeping {
    struct api_forwarding forwarding;
    struct api_campaign *campaign;
};

/* A request of the client itself, the opening or a keep-alive, that the cluster has answered. */
struct api_word {
    gavel_ns at;   /* when this node passed it on: no earlier than the client sent it */
    int64_t stamp; /* "sent_at" of the client's own clock, or CAMPAIGN_NO_STAMP */
};

struct api_campaign {
    struct api_stream stream; /* first; while it is OPEN */
    LIST_ENTRY(api_campaign) in_api;
    struct api *api;
    enum { CAMPAIGN_OPENING, CAMPAIGN_ATTACHING, CAMPAIGN_OPEN, CAMPAIGN_CLOSING } state;
    struct api_later later;        /* OPENING, ATTACHING */
    struct api_forwarding request; /* to open, to join, to close */
    Gavel__Op *op;                 /* OPENING: Campaign */
    struct api_keeping keep_alives[CAMPAIGN_KEEP_ALIVES];
    size_t next_keep_alive;
    struct event *timer;
    char group[NAME_MAX_BYTES + 1];
    char candidate[NAME_MAX_BYTES + 1];
    uint64_t session;
    uint64_t session_revision; /* that opened it; 0: not told, as by a leader of before 0.7.0 */
    uint32_t ttl_ms;
    bool is_kept_by_client;
    bool is_abandoned;    /* OPENING: nobody waits for it any more */
    bool is_over;         /* the session is of no more use: it has expired, or is no candidate */
    uint64_t revision;    /* of the table that has the session; an older one knows nothing of it */
    struct api_word word; /* the newest of the client */
    gavel_ns kept_at;     /* when the newest answered opening or keep-alive was sent, by anyone */
    gavel_ns keep_at;     /* when the next one of this node is due */
    gavel_ns close_until;

    /* what the client was told */
    uint64_t epoch;  /* with which it leads; 0: it does not */
    bool has_wish;   /* it should hand over */
    bool has_leader; /* who leads instead: `other`, an epoch; 0 nobody */
    uint64_t other;
    uint64_t seen_revision; /* of the table when it was last looked at */
};

/* campaign_open.c: from the body to the request. */
void api_campaign_free(struct api_campaign *campaign);
/* A campaign without a stream yet; NULL: no memory. */
struct api_campaign *api_campaign_new(struct api *api, const char *group, const char *candidate);

/* campaign_time.c */
/* "sent_at" of a body. False: the call has been answered. */
bool api_stamp_read(struct api_call *call, json_t *body, int64_t *ret_stamp);
/* When its client must have stopped, by the clock of this node and as far as this node knows. */
gavel_ns api_campaign_deadline(const struct api_campaign *campaign);
/* Adds "sent_at" and "valid_ms": how long the client may count on its session, from its own send. */
void api_campaign_add_time(const struct api_campaign *campaign, json_t *json);
/* "valid_ms" of a keep-alive that has just been answered, for a session of this time to live. */
json_t *api_valid_json(const struct api *api, uint32_t ttl_ms);
json_t *api_stamp_json(int64_t stamp);

/* session.c: what this node's table knows about a session. */
struct api_session_sight {
    bool is_known;
    bool is_candidate; /* of the group that was asked for */
    uint64_t last_id;
    uint32_t ttl_ms;
    uint64_t revision; /* of the table */
    char candidate[NAME_MAX_BYTES + 1];
};
void api_session_look(struct api *api, uint64_t id, const char *group, struct api_session_sight *ret_sight);
/* "session" of a body. False: the call has been answered. */
bool api_session_read(struct api_call *call, json_t *body, uint64_t *ret_session);
/* What the body of a call says of the session that it means. */
struct api_session_named {
    uint64_t id;
    uint64_t revision; /* that opened it, as the event "session" told; 0: not said */
    int64_t stamp;     /* "sent_at", or CAMPAIGN_NO_STAMP */
};
/* The body {"session", "session_revision"?, "sent_at"?} of a call. False: the call has been answered. */
bool api_session_named_read(struct api_call *call, struct api_session_named *ret_named);
/* Whether a keep-alive of this session has kept it: it is open, and was not opened anew under its id (a copy
 * of its opening may come late, when it has expired). revision 0: not known. */
bool api_session_was_kept(const Gavel__Kept *kept, uint64_t id, uint64_t revision);
/* The session is known here, and no candidate of the group: the call has been answered. */
bool api_session_is_foreign(struct api_call *call, uint64_t session);
void api_reply_session_gone(struct api_call *call);

/* campaign.c. False: the call has been answered, because this node cannot report on a campaign. */
bool api_campaign_may_open(struct api_call *call);
/* The session is open; the stream begins. */
void api_campaign_begin(struct api_campaign *campaign, struct api_call *call);
/* Ends the session, and then itself. */
void api_campaign_close(struct api_campaign *campaign);

#endif
