/* SPDX-License-Identifier: Apache-2.0 */

#include "api_cluster.h"

#include "base/assert.h"
#include "os/clock.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static enum gavel_status propose(struct api_cluster *cluster, const struct frontend_batch *batch)
{
    if (cluster->log_count + batch->count > COUNT(cluster->log))
        return GAVEL_ERR_STORE_UNAVAILABLE;
    for (size_t i = 0; i < batch->count; i++) {
        uint8_t *copy = malloc(batch->sizes[i] + 1);

        ASSERT(copy);
        memcpy(copy, batch->commands[i], batch->sizes[i]);
        cluster->log[cluster->log_count].bytes = copy;
        cluster->log[cluster->log_count++].size = batch->sizes[i];
    }
    return GAVEL_OK;
}

static void flush(struct api_cluster *cluster)
{
    struct frontend_batch batch;

    while (frontend_next_batch(&cluster->frontend, &batch)) {
        uint64_t first = cluster->index + cluster->log_count + 1;

        frontend_proposed(&cluster->frontend, propose(cluster, &batch), first, 1);
    }
}

static void answer(uint64_t client, struct mailbox *reply_to, const Gavel__ClientFrame *frame)
{
    Gavel__ClientFrame *copy = frame ? client_frame_copy(frame) : NULL;
    struct forwarding *message;

    ASSERT(copy || !frame);
    message = forwarding_new(client, reply_to, copy);
    ASSERT(message);
    mailbox_put(reply_to, &message->link);
}

static void reply(struct api_cluster *cluster)
{
    struct frontend_reply *next;

    while ((next = frontend_take_reply(&cluster->frontend))) {
        size_t which = next->ticket.tag % COUNT(cluster->askers);
        Gavel__ClientFrame *frame = NULL;
        const char *reason;
        enum gavel_status status = client_frame_unpack(next->bytes + CLIENT_LENGTH_BYTES,
                                                       next->size - CLIENT_LENGTH_BYTES, &frame, &reason);

        ASSERT(status == GAVEL_OK);
        ASSERT(next->ticket.tag == cluster->askers[which].tag);
        answer(cluster->askers[which].client, cluster->askers[which].reply_to,
               cluster->is_poor ? NULL : frame);
        client_frame_free(frame);
        frontend_reply_free(next);
    }
}

void api_cluster_init(struct api_cluster *cluster, struct node_shared *node)
{
    *cluster = (struct api_cluster){.node = node};
    ASSERT(table_keep_history(&node->table.table) == GAVEL_OK);
    frontend_init(&cluster->frontend, &node->table.table, 1000);
    cluster->frontend.table_version = TABLE_VERSION;
    frontend_open(&cluster->frontend, 1, clock_now());
}

void api_cluster_done(struct api_cluster *cluster)
{
    struct mail_link *message;

    frontend_done(&cluster->frontend);
    for (size_t i = 0; i < cluster->log_count; i++)
        free(cluster->log[i].bytes);
    while ((message = mailbox_take(&cluster->node->forwardings)))
        forwarding_free((struct forwarding *)(void *)message);
}

/* Whatever it asks: there is no leader. */
static void refuse(const struct forwarding *forwarding)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Reply refusal;
    Gavel__Answer nothing;
    Gavel__Kept kept = GAVEL__KEPT__INIT;

    gavel__reply__init(&refusal);
    gavel__answer__init(&nothing);
    refusal.status = nothing.status = kept.status = GAVEL_ERR_NO_LEADER;
    switch (forwarding->frame->what_case) {
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
    answer(forwarding->client, forwarding->reply_to, &frame);
}

static void take(struct api_cluster *cluster, struct forwarding *forwarding)
{
    uint64_t tag = ++cluster->numbers;
    size_t which = tag % COUNT(cluster->askers);
    const struct forwarder_question *question = &forwarding->question;
    struct table_packed packed = {0};
    const char *reason;

    if (question->bytes) {
        packed = (struct table_packed){.bytes = question->bytes + CLIENT_LENGTH_BYTES,
                                       .size = question->size - CLIENT_LENGTH_BYTES};
        if (client_frame_unpack(packed.bytes, packed.size, &forwarding->frame, &reason) != GAVEL_OK)
            return; /* no memory */
    }
    cluster->keep_alives += forwarding->frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE;
    if (cluster->is_leaderless) {
        refuse(forwarding);
        return;
    }
    cluster->askers[which].tag = tag;
    cluster->askers[which].client = forwarding->client;
    cluster->askers[which].reply_to = forwarding->reply_to;
    frontend_take(&cluster->frontend, clock_now(), true, clock_wall_ms(),
                  (struct frontend_ticket){.tag = tag}, &forwarding->frame, packed);
}

static void apply(struct api_cluster *cluster)
{
    size_t count = cluster->log_count;

    for (size_t i = 0; i < count; i++) {
        struct table_outcome outcome = {0};
        enum gavel_status status = table_apply_ops(&cluster->node->table.table, ++cluster->index,
                                                   cluster->log[i].bytes, cluster->log[i].size, &outcome);

        frontend_applied(&cluster->frontend, clock_now(), true, cluster->index, 1, status, outcome.results,
                         outcome.count);
        table_outcome_done(&outcome);
        free(cluster->log[i].bytes);
    }
    cluster->log_count = 0;
}

void api_cluster_turn(struct api_cluster *cluster)
{
    uint64_t before;
    struct mail_link *message;

    if (cluster->holds)
        return;
    table_box_lock(&cluster->node->table);
    before = cluster->node->table.table.revision;
    while ((message = mailbox_take(&cluster->node->forwardings))) {
        struct forwarding *forwarding = (struct forwarding *)(void *)message;

        if (forwarding->frame || forwarding->question.bytes)
            take(cluster, forwarding);
        forwarding_free(forwarding);
        flush(cluster);
        apply(cluster);
        reply(cluster);
    }
    frontend_tick(&cluster->frontend, clock_now(), true, false, clock_wall_ms());
    flush(cluster);
    apply(cluster);
    reply(cluster);
    before = cluster->node->table.table.revision - before;
    table_box_unlock(&cluster->node->table);
    if (before)
        table_box_ring(&cluster->node->table);
}
