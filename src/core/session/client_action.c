/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a step gives out. Frames and whatever they borrow from live until the
 * next step begins; then all of it is freed at once. Room for the outcome of a
 * submit, an ask or a watch is reserved when it is taken, so that it can be
 * told even if there is no memory any more.
 */

#include "core/session/client_internal.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* What a step may give out besides that of submits, asks, watches and changes; and for each of those. */
#define ACTIONS_BESIDES 64
#define ACTIONS_FOR_EACH 3

bool client_reserve(struct client *client, size_t more)
{
    struct client_actions *actions = &client->actions;
    size_t many =
        client->request.waiting_count + client->request.ops + client->asks.count + client->watches.count;
    size_t needed = ACTIONS_BESIDES + ACTIONS_FOR_EACH * (many + more);
    struct client_action *items;

    if (needed <= actions->capacity)
        return true;
    if (needed < 2 * actions->capacity)
        needed = 2 * actions->capacity;
    items = realloc(actions->items, needed * sizeof *items);
    if (!items)
        return false;
    actions->items = items;
    actions->capacity = needed;
    return true;
}

struct client_action *client_act(struct client *client, enum client_action_kind kind)
{
    struct client_action *action;

    ASSERT(client->actions.count < client->actions.capacity); /* client_reserve() */
    action = &client->actions.items[client->actions.count++];
    memset(action, 0, sizeof *action);
    action->kind = kind;
    action->message = "";
    return action;
}

struct client_outgoing *client_outgoing_new(struct client *client)
{
    struct client_outgoing *outgoing = calloc(1, sizeof *outgoing);

    if (!outgoing)
        return NULL;
    gavel__client_frame__init(&outgoing->frame);
    STAILQ_INSERT_TAIL(&client->outgoing, outgoing, entry);
    return outgoing;
}

void client_send(struct client *client, Gavel__ClientFrame *frame)
{
    client_act(client, CLIENT_DO_SEND)->frame = frame;
}

void client_forget_step(struct client *client)
{
    struct client_outgoing *outgoing;

    client->actions.count = 0;
    while ((outgoing = STAILQ_FIRST(&client->outgoing))) {
        STAILQ_REMOVE_HEAD(&client->outgoing, entry);
        free(outgoing->ops);
        free(outgoing);
    }
    client_submits_free(&client->old_submits);
    client_asks_free(&client->old_asks);
}

void client_tell_result(struct client *client, uint64_t token, enum gavel_status status, const char *message)
{
    struct client_action *action = client_act(client, CLIENT_DO_RESULT);

    action->token = token;
    action->status = status;
    action->message = message;
}

void client_tell_answer(struct client *client, uint64_t token, enum gavel_status status, const char *message)
{
    struct client_action *action = client_act(client, CLIENT_DO_ANSWER);

    action->token = token;
    action->status = status;
    action->message = message;
}
