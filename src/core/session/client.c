/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A step of a client: the event goes to the part that it concerns, and then
 * every part sends what it has to send. Only TIMER ends what took too long, so
 * that a call of the caller's never tells of another.
 */

#include "core/session/client_internal.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

char *client_text_copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);

    if (copy)
        memcpy(copy, text, size);
    return copy;
}

static bool is_valid(const struct client_settings *settings)
{
    if (settings->ttl_ms != 0 && !client_session_is_valid(settings->ttl_ms, settings->session))
        return false;
    if (settings->drift_ppm < 0 || settings->drift_ppm > CLIENT_DRIFT_PPM_MAX)
        return false;
    if (settings->address_count == 0 || settings->address_count > CLIENT_ADDRESSES_MAX)
        return false;
    if (settings->near_count > settings->address_count)
        return false;
    return settings->connect_timeout >= 0 && settings->silence >= 0 && settings->retry_min >= 0 &&
           settings->retry_max >= settings->retry_min;
}

static void fill_in(struct client_settings *settings)
{
    if (settings->connect_timeout == 0)
        settings->connect_timeout = NS_PER_S;
    if (settings->silence == 0)
        settings->silence = client_silence_of(settings->ttl_ms);
    if (settings->retry_min == 0)
        settings->retry_min = 5 * NS_PER_MS;
    if (settings->retry_max == 0)
        settings->retry_max = ns_max(500 * NS_PER_MS, settings->retry_min);
}

static void init_lists(struct client *client)
{
    TAILQ_INIT(&client->request.waiting);
    TAILQ_INIT(&client->request.sent);
    TAILQ_INIT(&client->asks.waiting);
    TAILQ_INIT(&client->asks.sent);
    TAILQ_INIT(&client->old_submits);
    TAILQ_INIT(&client->old_asks);
    TAILQ_INIT(&client->watches.idle);
    RB_INIT(&client->watches.all);
    RB_INIT(&client->watches.running);
    STAILQ_INIT(&client->outgoing);
}

enum gavel_status client_new(const struct client_settings *settings, gavel_ns now, struct client **ret_client)
{
    struct client *client;

    if (!is_valid(settings))
        return GAVEL_ERR_INVALID;
    client = calloc(1, sizeof *client);
    if (!client)
        return GAVEL_ERR_NO_MEMORY;
    init_lists(client);
    client->settings = *settings;
    fill_in(&client->settings);
    client->name = client_text_copy(settings->name ? settings->name : "");
    client->program = client_text_copy(settings->program ? settings->program : "");
    if (!client->name || !client->program || !client_reserve(client, 0)) {
        client_free(client);
        return GAVEL_ERR_NO_MEMORY;
    }
    client->settings.name = client->name;
    client->settings.program = client->program;
    prng_seed(&client->prng, settings->seed);
    client->now = now;
    client->give_up_at = NEVER;
    client->session.id = settings->ttl_ms != 0 ? settings->session : 0;
    client_link_init(client);
    *ret_client = client;
    return GAVEL_OK;
}

void client_free(struct client *client)
{
    if (!client)
        return;
    client_forget_step(client);
    client_submits_free(&client->request.waiting);
    client_submits_free(&client->request.sent);
    client_asks_free(&client->asks.waiting);
    client_asks_free(&client->asks.sent);
    client_watch_free_all(client);
    free(client->actions.items);
    free(client->link.cluster);
    free(client->name);
    free(client->program);
    free(client);
}

static void timer(struct client *client)
{
    if (client->now >= client->give_up_at) {
        client->give_up_at = NEVER;
        client_request_give_up(client);
        client_ask_give_up(client);
    }
    client_link_timer(client);
    client_session_timer(client);
    client_request_timer(client);
    client_ask_timer(client);
}

static void take(struct client *client, const struct client_event *event)
{
    switch (event->kind) {
    case CLIENT_TIMER:
        timer(client);
        break;
    case CLIENT_CONNECTED:
        client_link_connected(client);
        break;
    case CLIENT_LOST:
        client_link_lost(client, false, "%.200s", event->reason ? event->reason : "the connection is gone");
        break;
    case CLIENT_RECEIVED:
        client_link_take(client, event->frame);
        break;
    case CLIENT_SUBMIT:
        client_request_submit(client, event);
        break;
    case CLIENT_ASK:
        client_ask_begin(client, event);
        break;
    case CLIENT_WATCH:
        client_watch_begin(client, event);
        break;
    case CLIENT_UNWATCH:
        client_watch_end(client, event->watch.watch);
        break;
    case CLIENT_OPEN:
        client_session_begin(client, &event->open);
        break;
    case CLIENT_TAKEN:
        client_session_taken(client);
        break;
    case CLIENT_CLOSE:
        client_session_close(client);
        break;
    }
}

/* Nothing is sent any more; what is asked has an end all the same. */
static void take_closed(struct client *client, const struct client_event *event)
{
    if (event->kind == CLIENT_SUBMIT || event->kind == CLIENT_ASK)
        take(client, event);
}

static void pump(struct client *client)
{
    client_link_pump(client);
    client_session_pump(client);
    client_watch_pump(client); /* before requests: their changes are watched */
    client_request_pump(client);
    client_ask_pump(client);
}

const struct client_actions *client_step(struct client *client, const struct client_event *event)
{
    client_forget_step(client);
    client->now = event->now;
    if (client->state == CLIENT_CLOSED)
        take_closed(client, event);
    else
        take(client, event);
    if (client->state != CLIENT_CLOSED)
        pump(client);
    return &client->actions;
}

gavel_ns client_wake_at(const struct client *client)
{
    gavel_ns at = client->give_up_at;

    if (client->state == CLIENT_CLOSED)
        return NEVER;
    at = ns_min(at, client_link_wake(client));
    at = ns_min(at, client_session_wake(client));
    at = ns_min(at, client_request_wake(client));
    at = ns_min(at, client_ask_wake(client));
    return ns_min(at, client_watch_wake(client));
}

enum client_state client_state(const struct client *client) { return client->state; }

void client_set_secret(struct client *client, const uint8_t secret[CLIENT_SECRET_BYTES])
{
    ASSERT(!client->link.has_greeted); /* a node knows us by the one before */
    memcpy(client->settings.secret, secret, CLIENT_SECRET_BYTES);
}

const uint8_t *client_secret(const struct client *client) { return client->settings.secret; }

uint64_t client_session(const struct client *client) { return client->session.id; }

uint64_t client_session_number(const struct client *client) { return client->session.number; }

bool client_is_own(const struct client *client, uint64_t session, uint64_t revision)
{
    bool has_our_id = session != 0 && session == client->session.id;

    return has_our_id && client->session.is_open && revision >= client->session.revision;
}

gavel_ns client_deadline(const struct client *client) { return client->session.deadline; }

const char *client_trouble(const struct client *client) { return client->trouble; }

bool client_is_refused(const struct client *client)
{
    return client->link.refusals >= client->settings.address_count;
}
