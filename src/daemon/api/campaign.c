/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An open campaign: its events, its keep-alives, its end.
 *
 * Events are differences: whenever the table has changed, what it says of the
 * group is compared with what the client was told. So nothing piles up for a
 * client that reads slowly, and nothing depends on the length of the history.
 *
 * Time. The client keeps its session alive itself (keepalive "client"), or this
 * node does so for a while after each word of the client ("stream"). Past the
 * deadline that this node knows, a client of the second kind is told that it
 * no longer leads ("deadline"). If the cluster answers after all, it is told that
 * it leads again, with the same epoch. All times are counted from the client's own
 * sends: campaign_time.c.
 *
 * The end. The end of a stream, by either side and in any way, says nothing about
 * the client's work: a proxy may have closed the node's side alone, and the client
 * may go on for as long as it was told. So the session is not closed then, but
 * expires by itself, later than that. Only a session that is of no more use,
 * because it has expired or resigned, is closed.
 */
#include "daemon/api/campaign.h"

#include "os/clock.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define CLOSE_AGAIN_MS 200
/* Data that the client's machine does not acknowledge for so long, or for the time to live: it is gone. */
#define SILENT_PEER_MS 1000
#define SEND_BUFFER (16 * 1024)
/* Changes that are looked through for the end of a session, under the lock. */
#define ENDING_LOOKS 1024

/* What the table says of the campaign's group. */
struct sight {
    bool is_behind; /* this table does not have the session yet */
    bool has_session;
    bool is_candidate;
    bool is_held;
    bool is_ours;
    uint64_t epoch;
    bool has_wish;
    bool is_forced;
    uint32_t timeout_ms;
    char holder[NAME_MAX_BYTES + 1];
    char address[ADDRESS_MAX_BYTES + 1];
    char successor[NAME_MAX_BYTES + 1];
    char former[NAME_MAX_BYTES + 1];
    Gavel__Ending ending; /* of the mandate before, or of the session */
    uint64_t revision;
};

static void tell(struct api_campaign *campaign, const char *event, json_t *data)
{
    if (data) { /* of when it is, for who reads it late */
        (void)json_object_set_new(data, "at", json_wall(clock_wall_ms()));
        (void)json_object_set_new(data, "at_ns", json_integer(clock_now()));
    }
    api_stream_tell(&campaign->stream, NULL, event, data);
}

/* The same, with how long the session holds. */
static void tell_time(struct api_campaign *campaign, const char *event, json_t *data)
{
    if (data)
        api_campaign_add_time(campaign, data);
    tell(campaign, event, data);
}

static void copy(char *to, size_t size, const char *from)
{
    (void)strncpy(to, from, size - 1);
    to[size - 1] = '\0';
}

/* Why the session ended, if the table remembers. */
static Gavel__Ending find_ending(const struct table *table, const struct api_campaign *campaign)
{
    struct table_cursor at = {.revision = campaign->seen_revision, .part = UINT32_MAX};
    const struct table_change *change = NULL;

    for (int i = 0; i < ENDING_LOOKS; i++) {
        if (table_history_after(table, at, &change) != GAVEL_OK || !change)
            break;
        if (change->kind == GAVEL__CHANGE__KIND__SESSION_ENDED && change->session == campaign->session) {
            Gavel__Change *whole = gavel__change__unpack(NULL, change->size, change->bytes);
            Gavel__Ending ending = whole ? whole->why : GAVEL__ENDING__ENDING_EXPIRED;

            if (whole)
                gavel__change__free_unpacked(whole, NULL);
            return ending;
        }
        at = change->at;
    }
    return GAVEL__ENDING__ENDING_EXPIRED; /* nobody else ends it so silently */
}

static void look_at_group(const struct table_group *group, const struct api_campaign *campaign,
                          struct sight *sight)
{
    const struct table_candidate *candidate = table_candidate_find(group, campaign->candidate);

    sight->is_candidate = candidate && candidate->session && candidate->session->id == campaign->session;
    sight->is_held = group->is_held;
    sight->is_ours = group->is_held && group->session && group->session->id == campaign->session;
    sight->epoch = group->epoch;
    sight->has_wish = group->wish_epoch != 0 && group->wish_epoch == group->epoch;
    sight->is_forced = group->wish_is_forced;
    sight->timeout_ms = group->wish_timeout_ms;
    sight->ending = group->last_ending;
    copy(sight->holder, sizeof sight->holder, group->holder);
    copy(sight->address, sizeof sight->address, group->address);
    copy(sight->successor, sizeof sight->successor, group->wish_successor);
    copy(sight->former, sizeof sight->former, group->is_held ? group->previous_holder : group->holder);
}

static void look(const struct api_campaign *campaign, struct sight *sight)
{
    struct table_box *box = &campaign->api->shared->table;
    const struct table_group *group;

    *sight = (struct sight){0};
    table_box_lock(box);
    sight->revision = box->table.revision;
    sight->is_behind = sight->revision < campaign->revision;
    sight->has_session = table_session_find(&box->table, campaign->session);
    group = table_group_find(&box->table, campaign->group);
    if (group)
        look_at_group(group, campaign, sight);
    if (!sight->has_session && !sight->is_behind)
        sight->ending = find_ending(&box->table, campaign);
    table_box_unlock(box);
}

static void say_demoted(struct api_campaign *campaign, const char *reason)
{
    tell(campaign, "demoted", json_pack("{s:o,s:s}", "epoch", json_u64(campaign->epoch), "reason", reason));
}

static void tell_demoted(struct api_campaign *campaign, const char *reason)
{
    say_demoted(campaign, reason);
    campaign->epoch = 0;
    campaign->has_wish = false;
    campaign->has_leader = false;
}

static void tell_elected(struct api_campaign *campaign, const struct sight *sight)
{
    campaign->epoch = sight->epoch;
    campaign->has_wish = campaign->has_leader = false;
    tell_time(campaign, "elected",
              json_pack("{s:o,s:o,s:o}", "group", json_words(campaign->group), "candidate",
                        json_words(campaign->candidate), "epoch", json_u64(sight->epoch)));
}

static void tell_wish(struct api_campaign *campaign, const struct sight *sight)
{
    campaign->has_wish = sight->has_wish;
    if (sight->has_wish)
        tell(campaign, "hand_over",
             json_pack("{s:o,s:o,s:b,s:o}", "epoch", json_u64(sight->epoch), "successor",
                       json_text(sight->successor), "force", (int)sight->is_forced, "timeout_ms",
                       sight->timeout_ms ? json_u64(sight->timeout_ms) : json_null()));
    else
        tell(campaign, "hand_over_cancelled", json_pack("{s:o}", "epoch", json_u64(sight->epoch)));
}

static void tell_leader(struct api_campaign *campaign, const struct sight *sight)
{
    campaign->has_leader = true;
    campaign->other = sight->is_held ? sight->epoch : 0;
    tell(campaign, "leader",
         json_pack("{s:o,s:o,s:o,s:o}", "group", json_words(campaign->group), "leader",
                   json_text(sight->is_held ? sight->holder : ""), "address",
                   json_text(sight->is_held ? sight->address : ""), "epoch",
                   sight->is_held ? json_u64(sight->epoch) : json_null()));
}

/* The last words; the campaign is gone then. */
static void finish(struct api_campaign *campaign, const char *demoted, const char *reason)
{
    if (campaign->epoch)
        tell_demoted(campaign, demoted);
    tell(campaign, "ended", json_pack("{s:s}", "reason", reason));
    campaign->is_over = true;
    api_stream_end(&campaign->stream);
}

/* How the mandate ended that it was told of. */
static const char *demotion(const struct api_campaign *campaign, const struct sight *sight)
{
    return strcmp(sight->former, campaign->candidate) == 0 ? api_ending_name(sight->ending) : "replaced";
}

static bool may_lead(const struct api_campaign *campaign)
{
    return campaign->is_kept_by_client || clock_now() < api_campaign_deadline(campaign);
}

/* Tells what is new. False: the campaign is gone. */
static bool compare(struct api_campaign *campaign)
{
    struct sight sight;
    bool is_ours;

    look(campaign, &sight);
    if (sight.is_behind)
        return true;
    if (!sight.has_session || !sight.is_candidate) {
        const char *reason = sight.has_session ? "resigned" : api_ending_name(sight.ending);

        finish(campaign, sight.has_session ? demotion(campaign, &sight) : reason, reason);
        return false;
    }
    campaign->seen_revision = sight.revision;
    is_ours = sight.is_ours && may_lead(campaign);
    if (campaign->epoch && (!sight.is_ours || sight.epoch != campaign->epoch))
        tell_demoted(campaign, demotion(campaign, &sight));
    else if (campaign->epoch && !is_ours)
        tell_demoted(campaign, "deadline");
    if (is_ours && !campaign->epoch)
        tell_elected(campaign, &sight);
    if (is_ours && sight.has_wish != campaign->has_wish)
        tell_wish(campaign, &sight);
    if (!sight.is_ours && (!campaign->has_leader || campaign->other != (sight.is_held ? sight.epoch : 0)))
        tell_leader(campaign, &sight);
    return true;
}

/* A client that takes nothing would lead for ever, as far as it knows nothing of the end. It may be at work
 * for as long as it was told last; then its session expires. */
static bool is_too_slow(struct api_campaign *campaign)
{
    if (api_stream_waiting(&campaign->stream) <= API_CAMPAIGN_BYTES_MAX)
        return false;
    api_stream_cut(&campaign->stream);
    return true;
}

static void set_timer(struct api_campaign *campaign, gavel_ns at)
{
    gavel_ns wait = ns_max(at - clock_now(), 0) + NS_PER_MS; /* libevent counts in milliseconds */
    struct timeval timeout = {.tv_sec = wait / NS_PER_S, .tv_usec = wait % NS_PER_S / 1000};

    (void)event_add(campaign->timer, &timeout); /* fails only for want of memory; then the session expires */
}

/* Until then this node keeps the session alive for a client of which it has heard nothing since its last
 * word. */
static gavel_ns vouches_until(const struct api_campaign *campaign)
{
    return campaign->word.at + CAMPAIGN_VOUCHES * ns_from_ms(campaign->ttl_ms);
}

static void set_next(struct api_campaign *campaign)
{
    gavel_ns at = campaign->keep_at;

    if (campaign->is_kept_by_client)
        return;
    if (at >= vouches_until(campaign))
        at = NEVER; /* the session expires, and the table tells of it */
    if (campaign->epoch)
        at = ns_min(at, api_campaign_deadline(campaign));
    if (at != NEVER)
        set_timer(campaign, at);
}

static void pump(struct api_stream *stream)
{
    struct api_campaign *campaign = (struct api_campaign *)stream;

    if (campaign->state == CAMPAIGN_OPEN && compare(campaign) && !is_too_slow(campaign))
        set_next(campaign);
}

static void kept(struct api_campaign *campaign, gavel_ns sent_at)
{
    campaign->kept_at = ns_max(campaign->kept_at, sent_at);
    tell_time(campaign, "alive", json_object());
    pump(&campaign->stream);
}

static void keep_alive_answered(void *user, const Gavel__ClientFrame *frame)
{
    const Gavel__Kept *answer = frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEPT ? frame->kept : NULL;
    const struct api_keeping *keeping = user;
    struct api_campaign *campaign = keeping->campaign;

    if (campaign->state != CAMPAIGN_OPEN || !answer || answer->status != GAVEL_OK)
        return; /* nothing is known; the next one follows */
    if (api_session_was_kept(answer, campaign->session, campaign->session_revision))
        kept(campaign, keeping->forwarding.sent_at);
    else
        finish(campaign, "expired", "expired");
}

static void send_keep_alive(struct api_campaign *campaign)
{
    struct api_forwarding *forwarding = &campaign->keep_alives[campaign->next_keep_alive].forwarding;

    campaign->next_keep_alive = (campaign->next_keep_alive + 1) % CAMPAIGN_KEEP_ALIVES;
    api_forwarding_drop(forwarding);
    (void)api_forwarding_keep_alive(forwarding, campaign->session); /* no room: the next one has */
}

static void closed(void *user, const Gavel__ClientFrame *frame)
{
    struct api_campaign *campaign = user;
    const Gavel__OpResult *result = NULL;
    const char *message;
    enum gavel_status status = api_forwarding_outcome(frame, 0, &result, &message);

    if (status == GAVEL_OK || status == GAVEL_ERR_SESSION_GONE || clock_now() >= campaign->close_until)
        api_campaign_free(campaign);
    else
        set_timer(campaign, clock_now() + ns_from_ms(CLOSE_AGAIN_MS));
}

/* Without a session of its own the request needs no id; it is harmless to repeat. */
static void send_close(struct api_campaign *campaign)
{
    Gavel__Request request = GAVEL__REQUEST__INIT;
    Gavel__CloseSession close = GAVEL__CLOSE_SESSION__INIT;
    Gavel__Op op = GAVEL__OP__INIT;
    Gavel__Op *ops[] = {&op};

    close.session = campaign->session;
    close.ending = GAVEL__ENDING__ENDING_CLOSED;
    op.what_case = GAVEL__OP__WHAT_CLOSE_SESSION;
    op.close_session = &close;
    request.n_ops = 1;
    request.ops = ops;
    api_forwarding_drop(&campaign->request);
    api_forwarding_init(&campaign->request, campaign->api, closed, campaign);
    if (!api_forwarding_request(&campaign->request, &request)) /* it expires by itself */
        api_campaign_free(campaign);
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
    struct api_campaign *campaign = user;

    (void)fd;
    (void)what;
    if (campaign->state == CAMPAIGN_CLOSING) {
        send_close(campaign);
        return;
    }
    if (campaign->state != CAMPAIGN_OPEN)
        return;
    if (clock_now() >= campaign->keep_at && campaign->keep_at < vouches_until(campaign)) {
        send_keep_alive(campaign);
        campaign->keep_at = clock_now() + ns_from_ms(campaign->ttl_ms) / CAMPAIGN_KEEP_ALIVES;
    }
    pump(&campaign->stream);
}

void api_campaign_close(struct api_campaign *campaign)
{
    for (size_t i = 0; i < CAMPAIGN_KEEP_ALIVES; i++)
        api_forwarding_drop(&campaign->keep_alives[i].forwarding);
    if (!campaign->timer)
        campaign->timer = event_new(campaign->api->base, -1, 0, on_timer, campaign);
    if (!campaign->timer || campaign->api->is_stopping) {
        api_campaign_free(campaign);
        return;
    }
    campaign->state = CAMPAIGN_CLOSING;
    campaign->close_until = clock_now() + ns_from_ms(campaign->ttl_ms);
    send_close(campaign);
}

static void gone(struct api_stream *stream)
{
    struct api_campaign *campaign = (struct api_campaign *)stream;

    if (campaign->is_over)
        api_campaign_close(campaign);
    else
        api_campaign_free(campaign);
}

/* The session lives on, and so does a mandate: the client keeps it alive at another node, or stops in
 * time. */
static void farewell(struct api_stream *stream)
{
    struct api_campaign *campaign = (struct api_campaign *)stream;

    tell_time(campaign, "stopping", json_object());
}

/* The table would not say that it was elected, or is to hand over. The session lives on, as above. */
static void blinded(struct api_stream *stream)
{
    struct api_campaign *campaign = (struct api_campaign *)stream;

    if (!campaign->api->is_blind)
        return;
    tell_time(campaign, "stale", json_pack("{s:s}", "reason", "disk_hangs"));
    api_stream_end(stream);
}

static const struct api_stream_kind kind = {
    .pump = pump, .gone = gone, .farewell = farewell, .blinded = blinded};

bool api_stream_is_campaign(const struct api_stream *stream) { return stream->kind == &kind; }

/* A machine that vanishes closes no connection; without the first of these the kernel would wait for it for a
 * quarter of an hour, and the session with it. And a client that reads nothing shall be noticed before
 * megabytes are under way. If one cannot be set it takes longer. */
static void mind_silence(const struct api_campaign *campaign)
{
    unsigned limit_ms = campaign->ttl_ms > SILENT_PEER_MS ? campaign->ttl_ms : SILENT_PEER_MS;

    (void)setsockopt(campaign->stream.connection->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms,
                     sizeof limit_ms);
    (void)setsockopt(campaign->stream.connection->fd, SOL_SOCKET, SO_SNDBUF, &(int){SEND_BUFFER},
                     sizeof(int));
}

void api_campaign_begin(struct api_campaign *campaign, struct api_call *call)
{
    campaign->timer = event_new(campaign->api->base, -1, 0, on_timer, campaign);
    if (!campaign->timer) {
        api_reply_json(call, 500, NULL);
        api_campaign_close(campaign);
        return;
    }
    for (size_t i = 0; i < CAMPAIGN_KEEP_ALIVES; i++) {
        struct api_keeping *keeping = &campaign->keep_alives[i];

        keeping->campaign = campaign;
        api_forwarding_init(&keeping->forwarding, campaign->api, keep_alive_answered, keeping);
    }
    campaign->state = CAMPAIGN_OPEN;
    campaign->keep_at = campaign->kept_at + ns_from_ms(campaign->ttl_ms) / CAMPAIGN_KEEP_ALIVES;
    campaign->seen_revision = campaign->revision;
    api_stream_open(call, &campaign->stream, &kind);
    if (!campaign->is_kept_by_client)
        mind_silence(campaign);
    tell_time(campaign, "session",
              json_pack("{s:o,s:o,s:I,s:s}", "session", json_hex(campaign->session), "session_revision",
                        campaign->session_revision ? json_u64(campaign->session_revision) : json_null(),
                        "ttl_ms", (json_int_t)campaign->ttl_ms, "keepalive",
                        campaign->is_kept_by_client ? "client" : "stream"));
    pump(&campaign->stream);
}

void api_campaign_kept(struct api *api, uint64_t session, const struct api_word *word)
{
    struct api_campaign *campaign;
    struct api_campaign *next;

    for (campaign = LIST_FIRST(&api->campaigns); campaign; campaign = next) {
        next = LIST_NEXT(campaign, in_api);
        if (campaign->session != session || campaign->state != CAMPAIGN_OPEN)
            continue;
        if (word->at >= campaign->word.at)
            campaign->word = *word;
        kept(campaign, word->at);
    }
}

bool api_campaign_may_open(struct api_call *call)
{
    if (call->api->is_leaving)
        api_reply_error(call, 503, GAVEL_ERR_STOPPED, "this node is stopping; ask another one");
    else if (atomic_load(&call->api->shared->is_blind))
        api_reply_error(call, 503, GAVEL_ERR_STORE_UNAVAILABLE, "%s", API_BLIND);
    else
        return api_stream_may_open(call);
    return false;
}

void api_campaigns_leave(struct api *api)
{
    struct api_campaign *campaign;
    struct api_campaign *next;

    api->is_leaving = true;
    for (campaign = LIST_FIRST(&api->campaigns); campaign; campaign = next) {
        next = LIST_NEXT(campaign, in_api);
        if (campaign->state == CAMPAIGN_OPEN) {
            farewell(&campaign->stream);
            api_stream_end(&campaign->stream);
        }
    }
}

void api_campaigns_done(struct api *api)
{
    while (!LIST_EMPTY(&api->campaigns))
        api_campaign_free(LIST_FIRST(&api->campaigns));
}
