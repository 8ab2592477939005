/* SPDX-License-Identifier: Apache-2.0 */

/*
 * POST /groups/{group}/events: the events of a campaign whose stream was lost, at
 * any node. Sessions are replicated, so the node that opened one need not be alive.
 *
 *     KeepAlive ──► Ask the leader for the group ──► this node's table has caught up ──► the stream
 *
 * It proves that the client is alive, like any keep-alive. It waits until this
 * node's table has everything that the leader had: a table that is behind would
 * report a mandate that the client has already given up.
 */
#include "daemon/api/campaign.h"

#include "os/clock.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define LOOK_AGAIN_MS 10
/* How far a table may be behind. */
#define CATCH_UP_MS 5000

/* Nobody waits any more; the session lives on. */
static void gone(void *user) { api_campaign_free(user); }

static void refuse(struct api_campaign *campaign, enum gavel_status status, const char *message)
{
    struct api_call call = api_later_end(&campaign->later);

    if (status == GAVEL_ERR_SESSION_GONE)
        api_reply_session_gone(&call);
    else
        api_reply_failure(&call, status, message);
    api_campaign_free(campaign);
}

static void look_again(struct api_campaign *campaign)
{
    struct timeval wait = {.tv_usec = LOOK_AGAIN_MS * 1000};

    if (clock_now() >= campaign->close_until || event_add(campaign->timer, &wait))
        refuse(campaign, GAVEL_ERR_STORE_UNAVAILABLE,
               "the table of this node is behind that of the cluster's leader; ask another one");
}

static void begin(struct api_campaign *campaign, const struct api_session_sight *sight)
{
    struct api_call call = api_later_end(&campaign->later);

    campaign->ttl_ms = sight->ttl_ms;
    memcpy(campaign->candidate, sight->candidate, sizeof campaign->candidate);
    event_free(campaign->timer); /* the stream has one of its own */
    campaign->timer = NULL;
    if (api_campaign_may_open(&call))
        api_campaign_begin(campaign, &call);
    else
        api_campaign_free(campaign);
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
    struct api_campaign *campaign = user;
    struct api_session_sight sight;

    (void)fd;
    (void)what;
    api_session_look(campaign->api, campaign->session, campaign->group, &sight);
    if (sight.revision < campaign->revision)
        look_again(campaign);
    else if (!sight.is_known || !sight.is_candidate)
        refuse(campaign, sight.is_known ? GAVEL_ERR_STATE : GAVEL_ERR_SESSION_GONE,
               "this session is no longer a candidate of the group; campaign again");
    else
        begin(campaign, &sight);
}

static void asked(void *user, const Gavel__ClientFrame *frame)
{
    const Gavel__Answer *answer = frame->what_case == GAVEL__CLIENT_FRAME__WHAT_ANSWER ? frame->answer : NULL;
    struct api_campaign *campaign = user;

    if (!answer || answer->status != GAVEL_OK) {
        refuse(campaign, answer ? (enum gavel_status)answer->status : GAVEL_ERR_IO,
               "the cluster did not answer in time; ask again");
        return;
    }
    campaign->revision = answer->revision;
    campaign->close_until = clock_now() + ns_from_ms(CATCH_UP_MS);
    on_timer(-1, 0, campaign);
}

static void kept(void *user, const Gavel__ClientFrame *frame)
{
    const Gavel__Kept *answer = frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEPT ? frame->kept : NULL;
    struct api_campaign *campaign = user;
    Gavel__Ask ask;

    if (!answer || answer->status != GAVEL_OK) {
        refuse(campaign, answer ? (enum gavel_status)answer->status : GAVEL_ERR_IO,
               "the cluster did not answer in time; ask again");
        return;
    }
    if (!api_session_was_kept(answer, campaign->session, campaign->session_revision)) {
        refuse(campaign, GAVEL_ERR_SESSION_GONE, "");
        return;
    }
    if (answer->n_revisions == 1)
        campaign->session_revision = answer->revisions[0];
    campaign->kept_at = campaign->word.at = campaign->request.sent_at;
    gavel__ask__init(&ask);
    ask.kind = GAVEL__ASK__KIND__GROUP;
    ask.group = campaign->group;
    api_forwarding_init(&campaign->request, campaign->api, asked, campaign);
    if (!api_forwarding_ask(&campaign->request, &ask))
        refuse(campaign, GAVEL_ERR_STORE_UNAVAILABLE,
               "this node has too many requests under way; ask another one");
}

static void attach(struct api_call *call, const struct api_session_named *named)
{
    struct api_campaign *campaign = api_campaign_new(call->api, call->names.group, "");

    if (campaign)
        campaign->timer = event_new(call->api->base, -1, 0, on_timer, campaign);
    if (!campaign || !campaign->timer) {
        api_campaign_free(campaign);
        api_reply_json(call, 500, NULL);
        return;
    }
    campaign->state = CAMPAIGN_ATTACHING;
    campaign->session = named->id;
    campaign->session_revision = named->revision;
    campaign->word.stamp = named->stamp;
    api_forwarding_init(&campaign->request, call->api, kept, campaign);
    if (!api_forwarding_keep_alive(&campaign->request, named->id)) {
        api_campaign_free(campaign);
        api_reply_busy(call);
        return;
    }
    api_later_begin(call, &campaign->later, gone, campaign);
}

void api_post_own_events(struct api_call *call)
{
    struct api_session_named named = {.stamp = CAMPAIGN_NO_STAMP};

    if (api_session_named_read(call, &named) && !api_session_is_foreign(call, named.id) &&
        api_campaign_may_open(call))
        attach(call, &named);
}
