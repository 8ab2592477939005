/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/shared/forwarding.h"

#include <stdlib.h>

struct forwarding *forwarding_new(uint64_t client, struct mailbox *reply_to, Gavel__ClientFrame *frame)
{
    struct forwarding *forwarding = malloc(sizeof *forwarding);

    if (!forwarding) {
        client_frame_free(frame);
        return NULL;
    }
    *forwarding = (struct forwarding){.client = client, .reply_to = reply_to, .frame = frame};
    return forwarding;
}

void forwarding_pack(struct forwarding *forwarding)
{
    const Gavel__ClientFrame *frame = forwarding->frame;
    const char *reason;

    if (frame->what_case != GAVEL__CLIENT_FRAME__WHAT_REQUEST &&
        frame->what_case != GAVEL__CLIENT_FRAME__WHAT_ASK)
        return;
    if (forwarder_question_pack(frame, &forwarding->question, &reason) != GAVEL_OK)
        return; /* the forwarder finds the same, and answers */
    client_frame_free(forwarding->frame);
    forwarding->frame = NULL;
}

void forwarding_free(struct forwarding *forwarding)
{
    if (!forwarding)
        return;
    client_frame_free(forwarding->frame);
    forwarder_question_done(&forwarding->question);
    free(forwarding);
}

void forwarding_stock_keep(struct forwarding_stock *stock, struct forwarding *forwarding)
{
    if (stock->count >= FORWARDING_STOCK_MAX) {
        forwarding_free(forwarding);
        return;
    }
    client_frame_free(forwarding->frame);
    forwarding->frame = NULL;
    forwarder_question_done(&forwarding->question);
    forwarding->link.next = stock->first;
    stock->first = &forwarding->link;
    stock->count++;
}

static struct forwarding *take(struct forwarding_stock *stock)
{
    struct mail_link *first = stock->first;

    if (!first)
        return NULL;
    stock->first = first->next;
    stock->count--;
    return (struct forwarding *)(void *)first;
}

void forwarding_stock_clear(struct forwarding_stock *stock)
{
    struct forwarding *forwarding;

    while ((forwarding = take(stock)))
        forwarding_free(forwarding);
}

void forwarding_answer(struct forwarding_stock *stock, uint64_t client, struct mailbox *reply_to,
                       Gavel__ClientFrame *frame)
{
    struct forwarding *message = take(stock);

    if (!message)
        message = forwarding_new(client, reply_to, NULL);
    if (!message) { /* more are owed than are kept: whoever asked has to give up by itself */
        client_frame_free(frame);
        return;
    }
    *message = (struct forwarding){.client = client, .reply_to = reply_to, .frame = frame};
    mailbox_put(reply_to, &message->link);
}
