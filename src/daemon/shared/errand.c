/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/shared/errand.h"

#include <stdlib.h>

struct errand *errand_new(uint64_t client, struct mailbox *reply_to, Gavel__ClientFrame *frame)
{
    struct errand *errand = malloc(sizeof *errand);

    if (!errand) {
        client_frame_free(frame);
        return NULL;
    }
    *errand = (struct errand){.client = client, .reply_to = reply_to, .frame = frame};
    return errand;
}

void errand_free(struct errand *errand)
{
    if (!errand)
        return;
    client_frame_free(errand->frame);
    free(errand);
}

void errand_stock_keep(struct errand_stock *stock, struct errand *errand)
{
    if (stock->count >= ERRAND_STOCK_MAX) {
        errand_free(errand);
        return;
    }
    client_frame_free(errand->frame);
    errand->frame = NULL;
    errand->link.next = stock->first;
    stock->first = &errand->link;
    stock->count++;
}

static struct errand *take(struct errand_stock *stock)
{
    struct mail_link *first = stock->first;

    if (!first)
        return NULL;
    stock->first = first->next;
    stock->count--;
    return (struct errand *)(void *)first;
}

void errand_stock_clear(struct errand_stock *stock)
{
    struct errand *errand;

    while ((errand = take(stock)))
        errand_free(errand);
}

void errand_answer(struct errand_stock *stock, uint64_t client, struct mailbox *reply_to,
                   const Gavel__ClientFrame *frame)
{
    struct errand *letter = take(stock);

    if (!letter)
        letter = errand_new(client, reply_to, NULL);
    if (!letter)
        return; /* more are owed than are kept: whoever asked has to give up by itself */
    *letter = (struct errand){.client = client, .reply_to = reply_to, .frame = client_frame_copy(frame)};
    mailbox_put(reply_to, &letter->link);
}
