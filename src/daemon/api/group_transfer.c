/* SPDX-License-Identifier: Apache-2.0 */

/*
 * POST /groups/{group}/transfer: asks the leader of the group to hand over. The
 * call is answered when another leads, or when the wish was taken back.
 *
 *     ask the leader of the cluster: which epoch? ──► Wish ──► wait for this node's table
 *
 * The table shows the outcome: another epoch that is held (done), or the same
 * epoch without a wish (rolled back, because the drain took too long).
 */
#include "daemon/api/ask.h"

#include "os/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define TIMEOUT_MS 5000
#define TIMEOUT_MS_MAX 600000
/* The cluster takes a wish back when its time is over; so much longer that is waited for. */
#define PATIENCE_MS 2000

struct api_transfer {
    LIST_ENTRY(api_transfer) next; /* while it waits for the table */
    bool is_waiting;
    struct api_forwarding forwarding;
    struct api_later later;
    struct event *timer;
    char successor[NAME_MAX_BYTES + 1];
    char former[NAME_MAX_BYTES + 1];
    uint64_t epoch;
    uint64_t revision; /* of the wish */
    uint32_t timeout_ms;
    bool is_forced;
};

static void drop(struct api_transfer *transfer)
{
    api_forwarding_drop(&transfer->forwarding);
    if (transfer->is_waiting)
        LIST_REMOVE(transfer, next);
    loop_drop(&transfer->timer);
    free(transfer);
}

static void gone(void *user) { drop(user); }

static void reply_success(struct api_call *call, const struct api_transfer *transfer, const char *leader,
                          uint64_t epoch)
{
    api_reply_json(call, 200,
                   json_pack("{s:b,s:o,s:o,s:o,s:o}", "success", 1, "group", json_words(call->names.group),
                             "old_leader", json_words(transfer->former), "new_leader", json_words(leader),
                             "epoch", json_u64(epoch)));
}

static void fail(struct api_transfer *transfer, int code, enum gavel_status status, const char *message)
{
    struct api_call call = api_later_end(&transfer->later);

    if (code)
        api_reply_error(&call, code, status, "%s", message);
    else
        api_reply_failure(&call, status, message);
    drop(transfer);
}

/* Another leads: is it who was wanted? */
static void settle(struct api_transfer *transfer, const char *leader, uint64_t epoch)
{
    struct api_call call = api_later_end(&transfer->later);

    if (transfer->successor[0] == '\0' || strcmp(leader, transfer->successor) == 0)
        reply_success(&call, transfer, leader, epoch);
    else
        api_reply_error(&call, 409, GAVEL_ERR_LEADER_TRANSFER_FAILED, "\"%s\" leads now, and not \"%s\"",
                        leader, transfer->successor);
    drop(transfer);
}

static void look(struct api_transfer *transfer)
{
    struct table_box *box = &transfer->forwarding.api->shared->table;
    const struct table_group *group;
    char leader[NAME_MAX_BYTES + 1] = "";
    uint64_t epoch = 0;
    bool is_behind;
    bool is_over;

    table_box_lock(box);
    group = table_group_find(&box->table, transfer->later.names.group);
    is_behind = box->table.revision < transfer->revision;
    is_over = !group || (group->epoch == transfer->epoch && group->is_held && group->wish_epoch == 0);
    if (group && group->is_held && group->epoch != transfer->epoch) {
        (void)snprintf(leader, sizeof leader, "%s", group->holder);
        epoch = group->epoch;
    }
    table_box_unlock(box);
    if (is_behind)
        return;
    if (epoch)
        settle(transfer, leader, epoch);
    else if (is_over)
        fail(transfer, 409, GAVEL_ERR_LEADER_TRANSFER_FAILED,
             "the wish was withdrawn: the leader did not hand over in time, and stays leader");
}

void api_transfers_look(struct api *api)
{
    struct api_transfer *transfer;
    struct api_transfer *next;

    for (transfer = LIST_FIRST(&api->transfers); transfer; transfer = next) {
        next = LIST_NEXT(transfer, next);
        look(transfer);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
    (void)fd;
    (void)what;
    fail(user, 504, GAVEL_ERR_LEADER_TRANSFER_FAILED,
         "nobody has taken over in time; check who leads, and ask again");
}

static void wished(void *user, const Gavel__ClientFrame *frame)
{
    struct api_transfer *transfer = user;
    const Gavel__OpResult *result = NULL;
    const char *message;
    enum gavel_status status = api_forwarding_outcome(frame, 0, &result, &message);
    int64_t wait_ms = (int64_t)transfer->timeout_ms + PATIENCE_MS;
    struct timeval timeout = {.tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000};

    if (status != GAVEL_OK) {
        fail(transfer, 0, status, message);
        return;
    }
    transfer->timer = event_new(transfer->forwarding.api->base, -1, 0, on_timer, transfer);
    if (!transfer->timer || event_add(transfer->timer, &timeout)) {
        fail(transfer, 500, GAVEL_ERR_NO_MEMORY,
             "out of memory; the leader was asked to hand over all the same");
        return;
    }
    transfer->revision = result->revision;
    transfer->is_waiting = true;
    LIST_INSERT_HEAD(&transfer->forwarding.api->transfers, transfer, next);
    look(transfer);
}

static void send_wish(struct api_transfer *transfer)
{
    Gavel__Request request = GAVEL__REQUEST__INIT;
    Gavel__Wish wish;
    Gavel__Op op = GAVEL__OP__INIT;
    Gavel__Op *ops[] = {&op};

    gavel__wish__init(&wish);
    wish.group = transfer->later.names.group;
    wish.epoch = transfer->epoch;
    wish.successor = transfer->successor;
    wish.is_forced = transfer->is_forced;
    wish.timeout_ms = transfer->timeout_ms;
    op.what_case = GAVEL__OP__WHAT_WISH;
    op.wish = &wish;
    request.n_ops = 1;
    request.ops = ops;
    api_forwarding_init(&transfer->forwarding, transfer->forwarding.api, wished, transfer);
    if (!api_forwarding_request(&transfer->forwarding, &request))
        fail(transfer, 503, GAVEL_ERR_STORE_UNAVAILABLE,
             "this node has too many requests under way; ask again later");
}

/* Who leads is known. */
static void found(void *user, const Gavel__ClientFrame *frame)
{
    struct api_transfer *transfer = user;
    const Gavel__Answer *answer = frame->what_case == GAVEL__CLIENT_FRAME__WHAT_ANSWER ? frame->answer : NULL;
    const Gavel__Group *group = answer && answer->n_groups ? answer->groups[0] : NULL;

    if (!answer || answer->status != GAVEL_OK) {
        fail(transfer, 0, answer ? (enum gavel_status)answer->status : GAVEL_ERR_IO,
             answer ? answer->message : "");
    } else if (!group) {
        fail(transfer, 404, GAVEL_ERR_NOT_FOUND, "there is no such group; its first candidate creates it");
    } else if (!group->is_held) {
        fail(transfer, 503, GAVEL_ERR_NO_LEADER, "nobody leads this group; there is nothing to hand over");
    } else {
        (void)snprintf(transfer->former, sizeof transfer->former, "%s", group->holder);
        transfer->epoch = group->epoch;
        if (strcmp(transfer->former, transfer->successor) == 0)
            settle(transfer, group->holder, group->epoch); /* it leads already */
        else
            send_wish(transfer);
    }
}

/* The body is what it should be. */
static void begin(struct api_call *call, const char *successor, int64_t timeout_ms, bool is_forced)
{
    struct api_transfer *transfer = calloc(1, sizeof *transfer);
    Gavel__Ask ask;

    gavel__ask__init(&ask);
    if (!transfer) {
        api_reply_json(call, 500, NULL);
        return;
    }
    (void)snprintf(transfer->successor, sizeof transfer->successor, "%s", successor);
    transfer->timeout_ms = (uint32_t)timeout_ms;
    transfer->is_forced = is_forced;
    api_forwarding_init(&transfer->forwarding, call->api, found, transfer);
    ask.kind = GAVEL__ASK__KIND__GROUP;
    ask.group = call->names.group;
    if (!api_forwarding_ask(&transfer->forwarding, &ask)) {
        free(transfer);
        api_reply_busy(call);
        return;
    }
    api_later_begin(call, &transfer->later, gone, transfer);
}

void api_post_group_transfer(struct api_call *call)
{
    static const struct api_key keys[] = {
        {"to", JSON_STRING, false}, {"force", JSON_TRUE, false}, {"timeout_ms", JSON_INTEGER, false}};
    struct gavel_error error = {0};
    int64_t timeout_ms = TIMEOUT_MS;
    const char *successor;
    json_t *body;

    if (!api_body_read(call, keys, COUNT(keys), &body))
        return;
    successor = api_body_text(body, "to");
    if (successor[0] && name_check("candidate id", successor, &error) != GAVEL_OK)
        api_reply_error(call, 400, GAVEL_ERR_INVALID, "\"to\": %s", error.message);
    else if (api_body_number(call, body, "timeout_ms", 1, TIMEOUT_MS_MAX, &timeout_ms))
        begin(call, successor, timeout_ms, api_body_flag(body, "force"));
    json_decref(body);
}
