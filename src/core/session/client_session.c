/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The session: opened once, kept alive over any number of connections, and
 * opened anew under another id only when the cluster has said that it is gone.
 *
 *     now ─── opening sent ──── kept ──── keep-alive sent ──── answered
 *                                              │
 *                                              └── + ttl * (1 - drift) / (1 + drift) = deadline
 *
 * Silence proves nothing. A session whose deadline has passed may live on: a
 * new leader of the cluster gives every session a part of its time to live, and
 * the whole of it where it knows nothing of its silence. So the client goes on
 * asking, and only the caller's work has to stop.
 */

#include "core/session/client_internal.h"

#include "base/assert.h"
#include "base/planted.h"

#include <stdlib.h>
#include <string.h>

#define PPM 1000000
#define SILENCE_MIN (500 * NS_PER_MS)
#define SILENCE_MAX (5 * NS_PER_S)
#define STOPPED "the client was closed before an answer came; it is unknown whether it was done"

/* The time to live on our clock, if ours is the slowest that is allowed and the cluster's is the fastest. */
static gavel_ns sure_time(const struct client *client)
{
    int64_t drift = client->link.drift_ppm;

    if (PLANTED(SESSION_WITHOUT_DRIFT))
        drift = 0;
    /* In microseconds: a day of them times a million fits. */
    return (gavel_ns)client->settings.ttl_ms * 1000 * (PPM - drift) / (PPM + drift) * NS_PER_US;
}

bool client_session_is_valid(uint32_t ttl_ms, uint64_t id)
{
    return ttl_ms >= TABLE_TTL_MIN_MS && ttl_ms <= TABLE_TTL_MAX_MS && id != 0;
}

gavel_ns client_silence_of(uint32_t ttl_ms)
{
    return ns_min(ns_max(ns_from_ms(ttl_ms) / 2, SILENCE_MIN), SILENCE_MAX);
}

static bool has_session(const struct client *client) { return client->settings.ttl_ms > 0; }

static gavel_ns pace(const struct client *client) { return ns_from_ms(client->settings.ttl_ms) / 3; }

/* Whether the caller keeps up with its session; without a new deadline there is nothing to take. */
static bool is_taken(const struct client *client)
{
    if (PLANTED(PACED_KEEP_ALIVE_UNASKED))
        return true;
    return !client->session.is_paced || !client->session.is_untaken;
}

static void tell_deadline(struct client *client, uint64_t number, gavel_ns deadline)
{
    struct client_action *action = client_act(client, CLIENT_DO_DEADLINE);

    ASSERT(number != 0);
    client->session.deadline = deadline;
    client->session.is_untaken = deadline != 0;
    action->at = deadline;
    action->number = number;
}

static void move_deadline(struct client *client, gavel_ns sent_at)
{
    gavel_ns deadline = sent_at + sure_time(client);

    ASSERT(sent_at <= client->now);
    if (deadline <= client->session.deadline)
        return;
    ASSERT(client->session.is_open);
    ASSERT(is_taken(client)); /* else nothing was sent that could move it */
    tell_deadline(client, client->session.number, deadline);
}

/*
 * Asks and watches go on as they are; on a connection that has been greeted the opening goes at once. Nodes
 * know us by the secret of the greeting, which was sent without a session, too.
 */
void client_session_begin(struct client *client, const struct client_open *open)
{
    struct client_settings *settings = &client->settings;

    ASSERT(!has_session(client)); /* once */
    ASSERT(client_session_is_valid(open->ttl_ms, open->session));
    ASSERT(open->silence >= 0);
    ASSERT(!client->session.is_closing);
    settings->ttl_ms = open->ttl_ms;
    settings->silence = open->silence != 0 ? open->silence : client_silence_of(open->ttl_ms);
    settings->session = open->session;
    settings->process = open->process;
    client->session.id = open->session;
    client->session.is_paced = open->is_paced;
    client_ask_patience(client);
    ASSERT(!client->session.is_open);
    ASSERT(client->session.deadline == 0);
    if (client_is_welcome(client))
        client_become(client, CLIENT_OPENING);
}

void client_session_taken(struct client *client) { client->session.is_untaken = false; }

gavel_ns client_session_lasts(const struct client *client)
{
    return has_session(client) ? sure_time(client) : 0;
}

void client_session_welcome(struct client *client)
{
    client->session.open = (struct client_try){0};
    client->session.keep = (struct client_try){0};
    client->session.keep_due = client->now;
    if (has_session(client))
        ASSERT(client->session.id != 0);
    if (has_session(client) && !client->session.is_open)
        client_become(client, CLIENT_OPENING);
    else
        client_become(client, CLIENT_UP);
}

void client_session_unlinked(struct client *client)
{
    client->session.open = (struct client_try){0};
    client->session.keep = (struct client_try){0};
}

/* What the opening asks for stays the same as long as its id does. */
static void begin_opening(struct client *client)
{
    ASSERT(client->session.open_ops == 0);
    client->session.open_request = ++client->session.last_request;
    if (!client->session.opens_alone)
        client->session.open_ops = client_request_join_opening(client);
}

static void send_open(struct client *client)
{
    const struct table_process *process = &client->settings.process;
    struct client_outgoing *outgoing = client_outgoing_new(client);

    ASSERT(!client->session.is_open);
    ASSERT(client->session.id != 0);
    ASSERT(client_is_welcome(client));
    if (client->session.open_request == 0)
        begin_opening(client);
    if (outgoing)
        outgoing->ops = calloc(1 + client->session.open_ops, sizeof(Gavel__Op *));
    if (!outgoing || !outgoing->ops) {
        client_link_lost(client, true, "out of memory");
        return;
    }
    if (client->session.opened_from == 0)
        client->session.opened_from = client->now;
    client_try_sent(client, &client->session.open, client_number(client));
    gavel__open_session__init(&outgoing->open);
    outgoing->open.session = client->session.id;
    outgoing->open.ttl_ms = client->settings.ttl_ms;
    outgoing->open.name = client->name;
    if (process->pid != 0) {
        gavel__process__init(&outgoing->process);
        outgoing->process.boot_id = client->settings.process.boot_id;
        outgoing->process.pid = process->pid;
        outgoing->process.pid_ns = process->pid_ns;
        outgoing->process.start_ticks = process->start_ticks;
        outgoing->open.process = &outgoing->process;
    }
    gavel__op__init(&outgoing->op);
    outgoing->op.what_case = GAVEL__OP__WHAT_OPEN_SESSION;
    outgoing->op.open_session = &outgoing->open;
    outgoing->ops[0] = &outgoing->op;
    if (client->session.open_ops > 0)
        client_request_add(client, outgoing->ops + 1);
    gavel__request__init(&outgoing->request);
    outgoing->request.tag = client->session.open.tag;
    outgoing->request.session = client->session.id;
    outgoing->request.id = client->session.open_request;
    outgoing->request.timeout_ms = (uint32_t)ms_from_ns(client->settings.silence);
    outgoing->request.n_ops = 1 + client->session.open_ops;
    outgoing->request.ops = outgoing->ops;
    outgoing->frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    outgoing->frame.request = &outgoing->request;
    client_send(client, &outgoing->frame);
}

static void send_keep_alive(struct client *client)
{
    struct client_outgoing *outgoing = client_outgoing_new(client);

    if (!outgoing) {
        client_link_lost(client, true, "out of memory");
        return;
    }
    ASSERT(client->session.is_open);
    ASSERT(client_is_welcome(client));
    client_try_sent(client, &client->session.keep, client_number(client));
    outgoing->session = client->session.id;
    gavel__keep_alive__init(&outgoing->keep_alive);
    outgoing->keep_alive.tag = client->session.keep.tag;
    outgoing->keep_alive.n_sessions = 1;
    outgoing->keep_alive.sessions = &outgoing->session;
    outgoing->frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE;
    outgoing->frame.keep_alive = &outgoing->keep_alive;
    client_send(client, &outgoing->frame);
}

/* No session of the cluster has it: their numbers are revisions. */
static uint64_t number_of_our_own(struct client *client) { return UINT64_C(1) << 63 | ++client->session.own; }

/* `revision`: which session it is; 0: not told. */
static void become_open(struct client *client, uint64_t revision)
{
    ASSERT(client->session.id != 0);
    ASSERT(client->session.opened_from != 0);
    ASSERT(!client->session.is_open);
    ASSERT(client->session.deadline == 0); /* nothing is left of the session before */
    client->session.is_open = true;
    client->session.revision = revision;
    client->session.number = revision != 0 ? revision : number_of_our_own(client);
    client->link.has_answered = true;
    client_become(client, CLIENT_UP);
    /*
     * An opening that was repeated may have been carried out the first time,
     * and the answer may come from memory: what is sure counts from then.
     */
    move_deadline(client, client->session.opened_from);
    client->session.keep_due = client->session.opened_from + pace(client);
}

/* For good reasons, such as a table that is full. They may pass, too, but not within milliseconds. */
static void opening_refused(struct client *client, enum gavel_status status, const char *message)
{
    ASSERT(!client->session.is_open);
    client->session.open.tag = 0;
    client->session.open.retry_at = client->now + client->settings.retry_max;
    client->session.open_request = 0;
    if (client->session.open_ops > 0)
        client_request_put_back(client);
    client->session.open_ops = 0;
    client->session.opened_from = 0; /* now it is known that there is none */
    client_trouble_write(client, "the cluster opens no session: %.200s (%s)",
                         message[0] ? message : gavel_status_text(status), gavel_status_name(status));
}

/*
 * A leader of before 0.7.0 does not know campaigns that come with an opening. It says that there is no such
 * session; or, if the opening was carried out by another leader, that the id belongs to another request. It
 * is asked for one after the other, under new ids. To campaign again changes nothing. So it is if one of the
 * campaigns cannot be done by this cluster: that must not keep the others from a session.
 */
static bool is_too_much(const struct client *client, enum gavel_status status)
{
    return client->session.open_ops > 0 && (status == GAVEL_ERR_SESSION_GONE || status == GAVEL_ERR_STATE ||
                                            status == GAVEL_ERR_STORE_UNSUPPORTED);
}

void client_session_open_alone(struct client *client)
{
    ASSERT(!client->session.is_open);
    ASSERT(client->session.open_ops > 0);
    client->session.opens_alone = true;
    client->session.open = (struct client_try){0};
    client->session.open_request = 0;
    client->session.open_ops = 0;
    client_request_put_back(client);
}

static void opened(struct client *client, const Gavel__Reply *reply)
{
    bool has_more = client->session.open_ops > 0;

    client->session.open = (struct client_try){0};
    client->session.open_ops = 0;
    if (PLANTED(OPENED_FROM_ANSWER) && has_more)
        client->session.opened_from = client->now;
    become_open(client, reply->results[0]->session_revision);
    if (has_more)
        client_request_opened(client, reply);
}

bool client_session_opened(struct client *client, const Gavel__Reply *reply)
{
    struct client_try *open = &client->session.open;

    if (open->tag == 0 || reply->tag != open->tag)
        return false;
    if (client_is_passing(reply->status)) {
        gavel_ns first_at = open->first_at;

        client_try_refused(client, open);
        client_trouble_write(client, "the cluster opens no session yet: %.200s",
                             reply->message[0] ? reply->message : gavel_status_text(reply->status));
        if (client_is_fruitless(client, first_at))
            client_link_lost(client, true, "the node finds no leader of the cluster: %.200s", reply->message);
    } else if (is_too_much(client, reply->status)) {
        client_session_open_alone(client);
    } else if (reply->status != GAVEL_OK) {
        opening_refused(client, reply->status, reply->message);
    } else if (reply->n_results == 0 ||
               (!client->session.is_closing && reply->n_results != 1 + client->session.open_ops)) {
        client_hostile(client, "the number of results is not that of the operations");
    } else if (reply->results[0]->status != GAVEL_OK) {
        opening_refused(client, reply->results[0]->status, reply->results[0]->message);
    } else {
        opened(client, reply);
    }
    return true;
}

/* With it goes what was asked in its name: nothing of it may happen in the name of the next. */
void client_session_lost(struct client *client)
{
    uint64_t old = client->session.id;
    uint64_t number = client->session.number;

    if (client->session.is_closing) {
        client_finish(client);
        return;
    }
    ASSERT(has_session(client));
    do
        client->session.id = prng_next(&client->prng);
    while (client->session.id == 0 || client->session.id == old);
    client->session.is_open = false;
    client->session.revision = client->session.number = 0;
    client->session.last_request = 0;
    client->session.open = (struct client_try){0};
    client->session.open_request = 0;
    client->session.open_ops = 0;
    client->session.opens_alone = false;
    client->session.opened_from = 0;
    client->session.keep = (struct client_try){0};
    client_act(client, CLIENT_DO_SESSION_LOST)->number = number;
    tell_deadline(client, number, 0);
    client_request_end_all(client, GAVEL_ERR_SESSION_GONE,
                           "the session has ended before an answer came; it is unknown whether it was done");
    client_watch_session(client);
    client_become(client, CLIENT_OPENING);
}

/*
 * Whether another session is open under our id: ours has expired, and a copy of its opening came late.
 * Nothing is left in it of what was ours.
 */
static bool is_another(const struct client *client, uint64_t revision)
{
    if (PLANTED(REOPENED_IS_OURS))
        return false;
    return revision != 0 && client->session.revision != 0 && client->session.revision != revision;
}

void client_session_kept(struct client *client, const Gavel__Kept *kept)
{
    struct client_try *keep = &client->session.keep;
    gavel_ns sent_at = keep->sent_at;
    uint64_t revision = kept->n_revisions == 1 ? kept->revisions[0] : 0;

    if (keep->tag == 0 || kept->tag != keep->tag) {
        if (!client_was_given(client, kept->tag))
            client_hostile(client, "it answers what was not asked");
        return;
    }
    if (kept->status != GAVEL_OK) {
        client_try_refused(client, keep);
        return;
    }
    *keep = (struct client_try){0};
    client->link.has_answered = true;
    for (size_t i = 0; i < kept->n_gone; i++) {
        if (kept->gone[i] != client->session.id)
            continue;
        client_session_lost(client);
        return;
    }
    if (is_another(client, revision)) {
        client_session_lost(client);
        return;
    }
    if (client->session.revision == 0)
        client->session.revision = revision; /* who opened it did not tell; it is believed to be ours */
    client->session.keep_due = sent_at + pace(client);
    if (PLANTED(KEPT_FROM_ANSWER))
        sent_at = client->now;
    move_deadline(client, sent_at);
}

/*
 * A watch tells what is committed. If a session with our id has ended after ours was opened, ours has: no two
 * are open at a time. To ask would only cost the way there and back, and the answer could be of one that was
 * opened anew. Without the revision of ours it could be the end of one before it: then we ask.
 */
void client_session_ended(struct client *client, uint64_t revision)
{
    if (client->session.is_open && !client->session.is_closing && client->session.revision != 0) {
        if (revision > client->session.revision)
            client_session_lost(client);
        return;
    }
    client->session.keep_due = client->now;
}

void client_session_close(struct client *client)
{
    bool was_asked_for = client->session.opened_from != 0;
    gavel_ns until =
        client->session.is_open ? client->session.deadline : client->session.opened_from + sure_time(client);

    if (client->session.is_closing || client->state == CLIENT_CLOSED)
        return;
    client->session.is_closing = true;
    if (client->session.open_ops > 0)
        client_request_end_sent(client, GAVEL_ERR_STOPPED, STOPPED);
    client->session.open_ops = 0;
    if (!has_session(client) || !was_asked_for || !client_request_close(client)) {
        client_finish(client);
        return;
    }
    if (client_is_welcome(client))
        until = ns_max(until, client->now + client->settings.silence);
    client->session.close_by = until;
    if (client->now >= until)
        client_finish(client);
}

void client_finish(struct client *client)
{
    uint64_t number = client->session.number;

    client_link_close(client);
    client->session.is_open = false;
    client->session.revision = client->session.number = 0;
    client->session.is_closing = true;
    client_request_end_all(client, GAVEL_ERR_STOPPED, STOPPED);
    client_ask_end_all(client, GAVEL_ERR_STOPPED, "the client was closed before an answer came");
    client_watch_free_all(client);
    if (client->session.deadline != 0)
        tell_deadline(client, number, 0);
    ASSERT(client->asks.count == 0);
    ASSERT(client->request.waiting_count == 0);
    ASSERT(client->watches.count == 0);
    ASSERT(client->session.deadline == 0);
    (void)client_act(client, CLIENT_DO_CLOSED);
    client_become(client, CLIENT_CLOSED);
}

void client_session_timer(struct client *client)
{
    struct client_try *open = &client->session.open;
    struct client_try *keep = &client->session.keep;

    if (client->session.is_closing && client->now >= client->session.close_by) {
        client_finish(client);
        return;
    }
    /* From the first: a node that only refuses keeps nothing alive. */
    if (keep->first_at != 0 && client->now >= keep->first_at + client->settings.silence)
        client_link_lost(client, true, "a keep-alive had no answer within %lld ms",
                         (long long)ms_from_ns(client->settings.silence));
    else if (open->tag != 0 && client->now >= open->sent_at + client_patience(client))
        client_link_lost(client, true, "the opening of a session had no answer within %lld ms",
                         (long long)ms_from_ns(client_patience(client)));
}

void client_session_pump(struct client *client)
{
    if (!has_session(client) || !client_is_welcome(client) || client->session.is_closing)
        return;
    if (!client->session.is_open) {
        if (client_try_is_due(client, &client->session.open))
            send_open(client);
    } else if (is_taken(client) && client->now >= client->session.keep_due &&
               client_try_is_due(client, &client->session.keep)) {
        send_keep_alive(client);
    }
}

gavel_ns client_session_wake(const struct client *client)
{
    const struct client_try *open = &client->session.open;
    const struct client_try *keep = &client->session.keep;
    gavel_ns at = client->session.is_closing ? client->session.close_by : NEVER;

    if (!has_session(client) || !client_is_welcome(client))
        return at;
    if (keep->first_at != 0)
        at = ns_min(at, keep->first_at + client->settings.silence);
    if (open->tag != 0)
        at = ns_min(at, open->sent_at + client_patience(client));
    if (client->session.is_closing)
        return at;
    if (!client->session.is_open && open->tag == 0)
        at = ns_min(at, open->retry_at);
    if (client->session.is_open && keep->tag == 0 && is_taken(client))
        at = ns_min(at, ns_max(keep->retry_at, client->session.keep_due));
    return at;
}
