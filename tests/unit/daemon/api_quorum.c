/* SPDX-License-Identifier: Apache-2.0 */

#include "api_quorum.h"

#include "base/assert.h"
#include "os/clock.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static enum gavel_status propose(void *user, const uint8_t *const *commands, const size_t *sizes,
                                 size_t count, uint64_t *ret_first, uint64_t *ret_term)
{
    struct api_quorum *quorum = user;

    if (quorum->log_count + count > COUNT(quorum->log))
        return GAVEL_ERR_STORE_UNAVAILABLE;
    *ret_first = quorum->index + quorum->log_count + 1;
    *ret_term = 1;
    for (size_t i = 0; i < count; i++) {
        uint8_t *copy = malloc(sizes[i] + 1);

        ASSERT(copy);
        memcpy(copy, commands[i], sizes[i]);
        quorum->log[quorum->log_count].bytes = copy;
        quorum->log[quorum->log_count++].size = sizes[i];
    }
    return GAVEL_OK;
}

static void answer(uint64_t client, struct mailbox *reply_to, const Gavel__ClientFrame *frame)
{
    Gavel__ClientFrame *copy = frame ? client_frame_copy(frame) : NULL;
    struct errand *letter;

    ASSERT(copy || !frame);
    letter = errand_new(client, reply_to, copy);
    ASSERT(letter);
    mailbox_put(reply_to, &letter->link);
}

static void reply(void *user, struct desk_ticket ticket, const Gavel__ClientFrame *frame)
{
    struct api_quorum *quorum = user;
    size_t which = ticket.tag % COUNT(quorum->askers);

    ASSERT(ticket.tag == quorum->askers[which].tag);
    answer(quorum->askers[which].client, quorum->askers[which].reply_to, quorum->is_poor ? NULL : frame);
}

void api_quorum_init(struct api_quorum *quorum, struct node_desk *node)
{
    const struct desk_hands hands = {.propose = propose, .reply = reply, .user = quorum};

    *quorum = (struct api_quorum){.node = node};
    ASSERT(table_keep_history(&node->table.table) == GAVEL_OK);
    desk_init(&quorum->desk, &node->table.table, &hands, 1000);
    desk_open(&quorum->desk, 1, clock_now());
}

void api_quorum_done(struct api_quorum *quorum)
{
    struct mail_link *letter;

    desk_done(&quorum->desk);
    for (size_t i = 0; i < quorum->log_count; i++)
        free(quorum->log[i].bytes);
    while ((letter = mailbox_take(&quorum->node->errands)))
        errand_free((struct errand *)(void *)letter);
}

/* Whatever it asks: there is no leader. */
static void refuse(const struct errand *errand)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Reply refusal;
    Gavel__Answer nothing;
    Gavel__Kept kept = GAVEL__KEPT__INIT;

    gavel__reply__init(&refusal);
    gavel__answer__init(&nothing);
    refusal.status = nothing.status = kept.status = GAVEL_ERR_NO_LEADER;
    switch (errand->frame->what_case) {
    case GAVEL__CLIENT_FRAME__WHAT_ASK:
        frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ANSWER;
        frame.answer = &nothing;
        break;
    case GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE:
        frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEPT;
        frame.kept = &kept;
        break;
    default:
        frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REPLY;
        frame.reply = &refusal;
        break;
    }
    answer(errand->client, errand->reply_to, &frame);
}

static void take(struct api_quorum *quorum, const struct errand *errand)
{
    uint64_t tag = ++quorum->numbers;
    size_t which = tag % COUNT(quorum->askers);

    quorum->keep_alives += errand->frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE;
    if (quorum->is_leaderless) {
        refuse(errand);
        return;
    }
    quorum->askers[which].tag = tag;
    quorum->askers[which].client = errand->client;
    quorum->askers[which].reply_to = errand->reply_to;
    desk_take(&quorum->desk, clock_now(), true, clock_wall_ms(), (struct desk_ticket){.tag = tag},
              errand->frame);
}

static void apply(struct api_quorum *quorum)
{
    size_t count = quorum->log_count;

    for (size_t i = 0; i < count; i++) {
        struct table_result *results = NULL;
        size_t result_count = 0;
        enum gavel_status status =
            table_apply_ops(&quorum->node->table.table, ++quorum->index, quorum->log[i].bytes,
                            quorum->log[i].size, &results, &result_count);

        desk_applied(&quorum->desk, clock_now(), true, quorum->index, 1, status, results, result_count);
        free(results);
        free(quorum->log[i].bytes);
    }
    quorum->log_count = 0;
}

void api_quorum_turn(struct api_quorum *quorum)
{
    uint64_t before;
    struct mail_link *letter;

    if (quorum->holds)
        return;
    table_box_lock(&quorum->node->table);
    before = quorum->node->table.table.revision;
    while ((letter = mailbox_take(&quorum->node->errands))) {
        struct errand *errand = (struct errand *)(void *)letter;

        if (errand->frame)
            take(quorum, errand);
        errand_free(errand);
        desk_flush(&quorum->desk, clock_now());
        apply(quorum);
    }
    desk_tick(&quorum->desk, clock_now(), true, false, clock_wall_ms());
    apply(quorum);
    before = quorum->node->table.table.revision - before;
    table_box_unlock(&quorum->node->table);
    if (before)
        table_box_ring(&quorum->node->table);
}
