/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Questions. They change nothing, so any number may be under way, and each is
 * put again on the next connection until it is answered or given up.
 */

#include "core/session/client_internal.h"

#include "base/assert.h"
#include "wire/client.h"

#include <stdlib.h>

static void ask_free(struct client_ask *ask)
{
    client_frame_free(ask->frame);
    free(ask);
}

void client_asks_free(struct client_asks *asks)
{
    struct client_ask *ask;

    while ((ask = TAILQ_FIRST(asks))) {
        TAILQ_REMOVE(asks, ask, entry);
        ask_free(ask);
    }
}

void client_ask_begin(struct client *client, const struct client_event *event)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Ask question = *event->ask.ask;
    uint64_t token = event->ask.token;
    struct client_ask *ask;

    if (client->session.is_closing) {
        client_tell_answer(client, token, GAVEL_ERR_STOPPED, "the client is closed");
        return;
    }
    if (client->asks.count >= CLIENT_WAITING_MAX) {
        client_tell_answer(client, token, GAVEL_ERR_STORE_UNAVAILABLE,
                           "too many questions wait for the cluster already; try again later");
        return;
    }
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ASK;
    frame.ask = &question;
    ask = client_reserve(client, 1) ? calloc(1, sizeof *ask) : NULL;
    if (ask)
        ask->frame = client_frame_copy(&frame);
    if (!ask || !ask->frame) {
        free(ask);
        client_tell_answer(client, token, GAVEL_ERR_NO_MEMORY, "out of memory");
        return;
    }
    ask->token = token;
    ask->give_up_at = event->ask.give_up_at;
    client->give_up_at = ns_min(client->give_up_at, ask->give_up_at);
    TAILQ_INSERT_TAIL(&client->asks.waiting, ask, entry);
    client->asks.count++;
    ASSERT(client->asks.count <= CLIENT_WAITING_MAX);
}

/* Out of its list, and freed when the next step begins. */
static void retire(struct client *client, struct client_asks *from, struct client_ask *ask)
{
    ASSERT(client->asks.count > 0);
    TAILQ_REMOVE(from, ask, entry);
    TAILQ_INSERT_TAIL(&client->old_asks, ask, entry);
    client->asks.count--;
}

static struct client_ask *find(const struct client *client, uint64_t tag)
{
    struct client_ask *ask;

    TAILQ_FOREACH(ask, &client->asks.sent, entry) {
        if (ask->frame->ask->tag == tag)
            return ask;
    }
    return NULL;
}

static void refused(struct client *client, struct client_ask *ask, const Gavel__Answer *answer)
{
    TAILQ_REMOVE(&client->asks.sent, ask, entry);
    TAILQ_INSERT_TAIL(&client->asks.waiting, ask, entry);
    client->asks.refusals++;
    client->asks.retry_at = client->now + client_back_off(client, client->asks.refusals);
    if (client_is_fruitless(client, ask->first_at))
        client_link_lost(client, true, "the node finds no leader of the cluster: %.200s", answer->message);
}

void client_ask_answer(struct client *client, const Gavel__Answer *answer)
{
    struct client_ask *ask = find(client, answer->tag);

    if (!ask) {
        if (!client_was_given(client, answer->tag))
            client_hostile(client, "it answers what was not asked");
        return;
    }
    if (client_is_passing(answer->status)) {
        refused(client, ask, answer);
        return;
    }
    client->asks.refusals = 0;
    client->link.has_answered = true;
    retire(client, &client->asks.sent, ask);
    client_tell_answer(client, ask->token, answer->status, answer->message);
    if (answer->status == GAVEL_OK)
        client->actions.items[client->actions.count - 1].answer = answer;
}

/* All over again, in the order in which they came. */
void client_ask_unlinked(struct client *client)
{
    struct client_ask *ask;

    TAILQ_CONCAT(&client->asks.sent, &client->asks.waiting, entry);
    TAILQ_CONCAT(&client->asks.waiting, &client->asks.sent, entry);
    TAILQ_FOREACH(ask, &client->asks.waiting, entry)
        ask->first_at = 0;
    client->asks.retry_at = 0;
    client->asks.refusals = 0;
    ASSERT(TAILQ_EMPTY(&client->asks.sent));
}

void client_ask_patience(struct client *client)
{
    struct client_ask *ask;

    TAILQ_FOREACH(ask, &client->asks.sent, entry)
        ask->sent_at = client->now;
}

static void end_list(struct client *client, struct client_asks *list, gavel_ns until,
                     enum gavel_status status, const char *message)
{
    struct client_ask *ask = TAILQ_FIRST(list);

    while (ask) {
        struct client_ask *next = TAILQ_NEXT(ask, entry);

        if (ask->give_up_at <= until) {
            retire(client, list, ask);
            client_tell_answer(client, ask->token, status, message);
        } else {
            client->give_up_at = ns_min(client->give_up_at, ask->give_up_at);
        }
        ask = next;
    }
}

void client_ask_end_all(struct client *client, enum gavel_status status, const char *message)
{
    end_list(client, &client->asks.sent, NEVER, status, message);
    end_list(client, &client->asks.waiting, NEVER, status, message);
    ASSERT(client->asks.count == 0);
}

void client_ask_give_up(struct client *client)
{
    const char *message = "the cluster has not answered in time";

    end_list(client, &client->asks.sent, client->now, GAVEL_ERR_TIMEOUT, message);
    end_list(client, &client->asks.waiting, client->now, GAVEL_ERR_TIMEOUT, message);
}

void client_ask_timer(struct client *client)
{
    const struct client_ask *oldest = TAILQ_FIRST(&client->asks.sent);

    if (oldest && client->now >= oldest->sent_at + client_patience(client))
        client_link_lost(client, true, "a question had no answer within %lld ms",
                         (long long)ms_from_ns(client_patience(client)));
}

void client_ask_pump(struct client *client)
{
    struct client_ask *ask;

    if (!client_is_welcome(client) || client->now < client->asks.retry_at)
        return;
    while ((ask = TAILQ_FIRST(&client->asks.waiting))) {
        TAILQ_REMOVE(&client->asks.waiting, ask, entry);
        TAILQ_INSERT_TAIL(&client->asks.sent, ask, entry);
        ask->sent_at = client->now;
        if (ask->first_at == 0)
            ask->first_at = client->now;
        ask->frame->ask->tag = client_number(client);
        ask->frame->ask->session = client->session.id; /* so that we are shown to ourselves */
        client_send(client, ask->frame);
    }
}

gavel_ns client_ask_wake(const struct client *client)
{
    const struct client_ask *oldest = TAILQ_FIRST(&client->asks.sent);
    gavel_ns at = oldest ? oldest->sent_at + client_patience(client) : NEVER;

    if (client_is_welcome(client) && !TAILQ_EMPTY(&client->asks.waiting))
        at = ns_min(at, client->asks.retry_at);
    return at;
}
