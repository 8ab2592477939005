/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One connection at a time, and the way to the next.
 *
 * Addresses are tried in an order of their own for each client, so that many
 * clients do not all begin with the same node; those that are near come first.
 * A connection that ends is followed by the next address at once; after a
 * round without success there is a pause that grows. A connection that was of
 * use for a while starts the count again, one that only pretended does not.
 */

#include "core/session/client_internal.h"

#include "base/assert.h"
#include "base/utf8.h"
#include "wire/client.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From `first` on, so many in a circle, beginning with a random one. */
static void order_part(struct client *client, size_t first, size_t count)
{
    size_t start = (size_t)prng_below(&client->prng, count);

    for (size_t i = 0; i < count; i++)
        client->link.order[first + i] = (uint8_t)(first + (start + i) % count);
}

void client_link_init(struct client *client)
{
    const struct client_settings *settings = &client->settings;

    order_part(client, 0, settings->near_count);
    order_part(client, settings->near_count, settings->address_count - settings->near_count);
    client->link.retry_at = client->now;
    client->link.drift_ppm = settings->drift_ppm;
}

bool client_is_welcome(const struct client *client)
{
    return client->state == CLIENT_OPENING || client->state == CLIENT_UP;
}

uint64_t client_number(struct client *client) { return ++client->numbers; }

bool client_was_given(const struct client *client, uint64_t number)
{
    return number > client->link.first && number <= client->numbers;
}

/* The shortest pause, and each time twice as long. */
static gavel_ns grow(gavel_ns pause, gavel_ns most, unsigned times)
{
    while (times-- > 1 && pause < most)
        pause *= 2;
    return ns_min(pause, most);
}

/* A leader of the cluster is soon found, so that a long pause would be most of the wait for it. */
gavel_ns client_back_off(const struct client *client, unsigned times)
{
    gavel_ns most = ns_max(client->settings.retry_max / 10, client->settings.retry_min);

    return grow(client->settings.retry_min, most, times);
}

void client_become(struct client *client, enum client_state state)
{
    ASSERT(client->state != CLIENT_CLOSED); /* the end is the end */
    if (state == CLIENT_GREETING)
        ASSERT(client->state == CLIENT_AWAY);
    if (state == CLIENT_OPENING || state == CLIENT_UP)
        ASSERT(client->state != CLIENT_AWAY); /* without a connection nobody is welcome */
    if (state == CLIENT_OPENING)
        ASSERT(!client->session.is_open);
    client->state = state;
    if (state == CLIENT_UP)
        client->trouble[0] = '\0';
}

gavel_ns client_patience(const struct client *client) { return 2 * client->settings.silence; }

void client_try_sent(struct client *client, struct client_try *attempt, uint64_t tag)
{
    ASSERT(tag != 0);
    ASSERT(attempt->tag == 0);
    attempt->tag = tag;
    attempt->sent_at = client->now;
    if (attempt->first_at == 0)
        attempt->first_at = client->now;
}

void client_try_refused(struct client *client, struct client_try *attempt)
{
    ASSERT(attempt->tag != 0);
    attempt->tag = 0;
    attempt->refusals++;
    attempt->retry_at = client->now + client_back_off(client, attempt->refusals);
}

bool client_try_is_due(const struct client *client, const struct client_try *attempt)
{
    return attempt->tag == 0 && client->now >= attempt->retry_at;
}

bool client_is_passing(enum gavel_status status)
{
    return status == GAVEL_ERR_NOT_LEADER || status == GAVEL_ERR_STORE_UNAVAILABLE ||
           status == GAVEL_ERR_NO_LEADER || status == GAVEL_ERR_TIMEOUT;
}

bool client_is_fruitless(const struct client *client, gavel_ns first_at)
{
    return client->now - first_at >= 2 * client_patience(client);
}

static bool has_secret(const struct client *client)
{
    for (size_t i = 0; i < CLIENT_SECRET_BYTES; i++)
        if (client->settings.secret[i] != 0)
            return true;
    return false;
}

void client_link_connected(struct client *client)
{
    struct client_outgoing *outgoing;

    if (client->state != CLIENT_AWAY || !client->link.is_dialling)
        return; /* late */
    client->link.first = client->numbers;
    client->link.has_answered = false;
    outgoing = client_outgoing_new(client);
    if (!outgoing) {
        client_link_lost(client, true, "out of memory");
        return;
    }
    client_become(client, CLIENT_GREETING);
    client->link.has_greeted = true;
    gavel__client_hello__init(&outgoing->hello);
    outgoing->hello.version_min = CLIENT_VERSION_MIN;
    outgoing->hello.version_max = CLIENT_VERSION_MAX;
    outgoing->hello.program = client->program;
    if (has_secret(client))
        outgoing->hello.secret = (ProtobufCBinaryData){CLIENT_SECRET_BYTES, client->settings.secret};
    outgoing->frame.what_case = GAVEL__CLIENT_FRAME__WHAT_HELLO;
    outgoing->frame.hello = &outgoing->hello;
    client_send(client, &outgoing->frame);
}

/* When the next address is tried. */
static void plan_next(struct client *client)
{
    size_t count = client->settings.address_count;
    bool was_of_use = client->link.has_answered && client_is_welcome(client) &&
                      client->now - client->link.up_at >= client->settings.retry_max;

    ASSERT(count > 0);
    client->link.at = (client->link.at + 1) % count;
    client->link.failures = was_of_use ? 0 : client->link.failures + 1;
    client->link.retry_at = client->now;
    if (client->link.failures > 0 && client->link.failures % count == 0) {
        gavel_ns pause = grow(client->settings.retry_min, client->settings.retry_max,
                              (unsigned)(client->link.failures / count));

        client->link.retry_at += prng_between(&client->prng, pause / 2, pause);
    }
    ASSERT(client->link.at < count);
    ASSERT(client->link.retry_at >= client->now);
}

__attribute__((format(printf, 2, 0))) static void write_trouble(struct client *client, const char *format,
                                                                va_list arguments)
{
    (void)vsnprintf(client->trouble, sizeof client->trouble, format, arguments); /* cut, at worst */
    for (char *at = client->trouble; *at;) {
        uint32_t character;
        size_t size = utf8_decode(at, &character);

        if (size == 0 || utf8_is_control(character))
            memset(at, '?', size = size ? size : 1);
        at += size;
    }
}

void client_trouble_write(struct client *client, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    write_trouble(client, format, arguments);
    va_end(arguments);
}

void client_link_lost(struct client *client, bool is_ours, const char *format, ...)
{
    va_list arguments;

    if (client->state == CLIENT_CLOSED || (client->state == CLIENT_AWAY && !client->link.is_dialling))
        return; /* late: there is none */
    va_start(arguments, format);
    write_trouble(client, format, arguments);
    va_end(arguments);
    client->link.refusals = 0;
    if (is_ours)
        (void)client_act(client, CLIENT_DO_DISCONNECT);
    plan_next(client);
    client->link.is_dialling = false;
    client_become(client, CLIENT_AWAY);
    client_session_unlinked(client);
    client_request_unlinked(client);
    client_ask_unlinked(client);
    client_watch_unlinked(client);
    ASSERT(client->state == CLIENT_AWAY);
    ASSERT(client->session.keep.tag == 0);
    ASSERT(client->session.open.tag == 0);
}

void client_hostile(struct client *client, const char *what)
{
    client_link_lost(client, true, "the node violates the protocol: %s; another one is tried", what);
}

/* Addresses of two clusters in one list: a session of one means nothing in the other. */
static bool is_of_cluster(struct client *client, const char *cluster)
{
    if (cluster[0] == '\0')
        return true;
    if (client->link.cluster)
        return strcmp(client->link.cluster, cluster) == 0;
    client->link.cluster = client_text_copy(cluster);
    return client->link.cluster != NULL;
}

static void welcome(struct client *client, const Gavel__ClientWelcome *welcome)
{
    int64_t drift_ppm = welcome->drift_ppm;

    ASSERT(client->state == CLIENT_GREETING);
    if (welcome->version < CLIENT_VERSION_MIN || welcome->version > CLIENT_VERSION_MAX) {
        client_link_lost(
            client, true,
            "node %.64s speaks version %u of the protocol of clients, this program %d to %d; upgrade the older of the two",
            welcome->node, welcome->version, CLIENT_VERSION_MIN, CLIENT_VERSION_MAX);
        return;
    }
    if (!is_of_cluster(client, welcome->cluster)) {
        client_link_lost(client, true,
                         "node %.64s belongs to the cluster %.64s, others to %.64s; give addresses of one",
                         welcome->node, welcome->cluster, client->link.cluster ? client->link.cluster : "?");
        return;
    }
    if (drift_ppm > CLIENT_DRIFT_PPM_MAX) {
        client_hostile(client, "it counts with clocks that differ by more than 100000 ppm");
        return;
    }
    /* It never falls: an older node of the same cluster does not tell it. */
    if (client->link.drift_ppm < drift_ppm)
        client->link.drift_ppm = (int)drift_ppm;
    client->link.is_dialling = false;
    client->link.up_at = client->now;
    client->link.refusals = 0;
    client_session_welcome(client);
}

/* It does not want us. The next may; if none does, whoever waits for an answer is told soon. */
static void refused(struct client *client, const char *text)
{
    size_t refusals = client->link.refusals;

    client_link_lost(client, true, "refused by the node: %.200s", text);
    client->link.refusals = refusals + 1;
}

static void greet(struct client *client, const Gavel__ClientFrame *frame)
{
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_WELCOME)
        welcome(client, frame->welcome);
    else if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REFUSAL)
        refused(client, frame->refusal->text);
    else
        client_hostile(client, "it does not begin with a greeting");
}

void client_link_take(struct client *client, const Gavel__ClientFrame *frame)
{
    if (client->state == CLIENT_AWAY || frame->what_case == GAVEL__CLIENT_FRAME__WHAT__NOT_SET)
        return; /* late, or something that is newer than we are */
    if (client->state == CLIENT_GREETING) {
        greet(client, frame);
        return;
    }
    switch (frame->what_case) {
    case GAVEL__CLIENT_FRAME__WHAT_REPLY:
        if (!client_session_opened(client, frame->reply))
            client_request_reply(client, frame->reply);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_KEPT:
        client_session_kept(client, frame->kept);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_ANSWER:
        client_ask_answer(client, frame->answer);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_CHANGES:
        client_watch_changes(client, frame->changes);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_WATCH_ENDED:
        client_watch_ended(client, frame->watch_ended);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_REFUSAL:
        refused(client, frame->refusal->text);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_WELCOME:
        client_hostile(client, "a second greeting");
        break;
    default:
        client_hostile(client, "it says what only clients say");
        break;
    }
}

void client_link_timer(struct client *client)
{
    if (client->link.is_dialling && client->now >= client->link.welcome_by)
        client_link_lost(client, true, "no greeting of the node within %lld ms",
                         (long long)ms_from_ns(client->settings.connect_timeout));
}

void client_link_pump(struct client *client)
{
    if (client->state != CLIENT_AWAY || client->link.is_dialling || client->now < client->link.retry_at)
        return;
    ASSERT(client->link.at < client->settings.address_count);
    client->link.is_dialling = true;
    client->link.welcome_by = client->now + client->settings.connect_timeout;
    client_act(client, CLIENT_DO_CONNECT)->which = client->link.order[client->link.at];
}

gavel_ns client_link_wake(const struct client *client)
{
    if (client->link.is_dialling)
        return client->link.welcome_by;
    return client->state == CLIENT_AWAY ? client->link.retry_at : NEVER;
}

void client_link_close(struct client *client)
{
    if (client->state != CLIENT_AWAY || client->link.is_dialling)
        (void)client_act(client, CLIENT_DO_DISCONNECT);
    client->link.is_dialling = false;
}
