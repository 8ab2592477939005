/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a step gives out. Frames and whatever they borrow from live until the
 * next step begins; then all of it is freed at once.
 */

#include "session/client_internal.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

struct client_action *client_act(struct client *client, enum client_action_kind kind)
{
    struct client_actions *actions = &client->actions;
    struct client_action *action;

    if (actions->count == actions->capacity) {
        size_t capacity = actions->capacity ? 2 * actions->capacity : 16;
        struct client_action *items = realloc(actions->items, capacity * sizeof *items);

        /* An outcome that cannot be told would be waited for for ever. */
        ASSERT(items);
        actions->items = items;
        actions->capacity = capacity;
    }
    action = &actions->items[actions->count++];
    memset(action, 0, sizeof *action);
    action->kind = kind;
    action->message = "";
    return action;
}

struct client_letter *client_letter_new(struct client *client)
{
    struct client_letter *letter = calloc(1, sizeof *letter);

    if (!letter)
        return NULL;
    gavel__client_frame__init(&letter->frame);
    STAILQ_INSERT_TAIL(&client->letters, letter, entry);
    return letter;
}

void client_send(struct client *client, Gavel__ClientFrame *frame)
{
    client_act(client, CLIENT_DO_SEND)->frame = frame;
}

void client_forget_step(struct client *client)
{
    struct client_letter *letter;

    client->actions.count = 0;
    while ((letter = STAILQ_FIRST(&client->letters))) {
        STAILQ_REMOVE_HEAD(&client->letters, entry);
        free(letter->ops);
        free(letter);
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
