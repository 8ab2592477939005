/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What clients may ask once they are up, and who answers. This node answers by
 * itself what it can (look-ups for which its own table is enough, watches).
 * Everything else is a forwarded request for the consensus thread, whose front end
 * checks it.
 */
#include "daemon/clients/internal.h"

#include "core/session/frontend.h"

#include <stdlib.h>

static void send_forwarding(struct clients_connection *connection, Gavel__ClientFrame *frame)
{
    struct clients *clients = connection->clients;
    struct forwarding *forwarding = forwarding_new(connection->number, &clients->replies, frame);

    if (!forwarding) {
        clients_connection_doom(connection, "out of memory");
        return;
    }
    forwarding_pack(forwarding);
    connection->forwardings++;
    connection->has_forwardings = true;
    mailbox_put(&clients->shared->forwardings, &forwarding->link);
}

/* An answer that is none: why. */
static void write_failure(struct clients_connection *connection, uint64_t tag, enum gavel_status status,
                          const char *message)
{
    Gavel__Answer answer;
    Gavel__ClientFrame frame;

    gavel__answer__init(&answer);
    gavel__client_frame__init(&frame);
    answer.tag = tag;
    answer.status = (uint32_t)status;
    answer.message = clients_text(message);
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ANSWER;
    frame.answer = &answer;
    clients_write(connection, &frame);
}

/* One look at the table, packed while it is locked, for the answer borrows from it. ERR_TOO_LARGE if it is
 * more than a frame. */
static enum gavel_status look_up(struct clients *clients, const Gavel__Ask *ask, uint8_t **ret_bytes,
                                 size_t *ret_size)
{
    struct table_box *box = &clients->shared->table;
    Gavel__Answer answer;
    Gavel__ClientFrame frame;
    gavel_ns now = clock_now();
    enum gavel_status status;
    bool is_made;

    gavel__answer__init(&answer);
    gavel__client_frame__init(&frame);
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ANSWER;
    frame.answer = &answer;
    table_box_lock(box);
    is_made = frontend_answer(NULL, &box->table, now, ask, &answer) == GAVEL_OK; /* else it says why not */
    status = client_frame_pack(&frame, ret_bytes, ret_size);
    if (is_made)
        frontend_answer_done(&answer);
    table_box_unlock(box);
    return status == GAVEL_ERR_INVALID ? GAVEL_ERR_TOO_LARGE : status;
}

static void answer_ask(struct clients_connection *connection, Gavel__Ask *ask)
{
    struct clients *clients = connection->clients;
    enum gavel_status status;
    uint8_t *bytes;
    size_t size;

    (void)atomic_fetch_add(&clients->counts.lookups, 1);
    if (ask->limit > CLIENTS_LIMIT_MAX)
        ask->limit = CLIENTS_LIMIT_MAX; /* the answer says that there are more */
    status = look_up(clients, ask, &bytes, &size);
    while (status == GAVEL_ERR_TOO_LARGE && ask->limit != 1) {
        ask->limit = ask->limit == 0 ? CLIENTS_LIMIT_MAX / 4 : ask->limit / 2;
        status = look_up(clients, ask, &bytes, &size);
    }
    if (status != GAVEL_OK) {
        write_failure(connection, ask->tag, status,
                      status == GAVEL_ERR_TOO_LARGE ? "the answer is larger than a frame may be"
                                                    : gavel_status_text(status));
        return;
    }
    clients_write_bytes(connection, bytes, size);
    free(bytes);
}

/* Whoever asks for a session of another client is told here that it has none: the keep-alives of all clients
 * travel together, and the answer is read by session. */
static bool refuse_keep_alive(struct clients_connection *connection, const Gavel__KeepAlive *keep_alive)
{
    Gavel__ClientFrame frame;
    Gavel__Kept kept;
    bool is_foreign = false;

    for (size_t i = 0; i < keep_alive->n_sessions && !is_foreign; i++)
        is_foreign = clients_principal_is_foreign(connection, keep_alive->sessions[i]);
    if (!is_foreign)
        return false;
    gavel__client_frame__init(&frame);
    gavel__kept__init(&kept);
    kept.tag = keep_alive->tag;
    kept.n_gone = keep_alive->n_sessions;
    kept.gone = keep_alive->sessions;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEPT;
    frame.kept = &kept;
    clients_write(connection, &frame);
    return true;
}

void clients_take(struct clients_connection *connection, Gavel__ClientFrame *frame)
{
    clients_principal_stamp(connection, frame);
    switch (frame->what_case) {
    case GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE:
        if (refuse_keep_alive(connection, frame->keep_alive))
            break;
        send_forwarding(connection, frame);
        return;
    case GAVEL__CLIENT_FRAME__WHAT_REQUEST:
        send_forwarding(connection, frame);
        return;
    case GAVEL__CLIENT_FRAME__WHAT_ASK:
        if (!frame->ask->is_local) {
            send_forwarding(connection, frame);
            return;
        }
        answer_ask(connection, frame->ask);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_WATCH:
        clients_watch(connection, frame->watch);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_UNWATCH:
        clients_unwatch(connection, frame->unwatch->watch);
        break;
    case GAVEL__CLIENT_FRAME__WHAT__NOT_SET: /* of a newer version: not for us */
        break;
    case GAVEL__CLIENT_FRAME__WHAT_HELLO:
        clients_connection_cut(connection, "a second hello");
        break;
    default:
        clients_connection_cut(connection, "a frame that only nodes send");
        break;
    }
    client_frame_free(frame);
}

/* The tag of a question that was answered, and a frame that says why there is no answer. */
static void write_too_large(struct clients_connection *connection, const Gavel__ClientFrame *frame)
{
    Gavel__Reply reply;
    Gavel__ClientFrame other;

    gavel__reply__init(&reply);
    gavel__client_frame__init(&other);
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_ANSWER) {
        write_failure(connection, frame->answer->tag, GAVEL_ERR_TOO_LARGE,
                      "the answer is larger than a frame may be; ask for less");
    } else if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REPLY) {
        reply.tag = frame->reply->tag;
        reply.status = GAVEL_ERR_TOO_LARGE;
        reply.message = clients_text("it was carried out, and the outcome is larger than a frame may be");
        other.what_case = GAVEL__CLIENT_FRAME__WHAT_REPLY;
        other.reply = &reply;
        clients_write(connection, &other);
    }
}

static void take_reply(struct clients *clients, const struct forwarding *forwarding)
{
    struct clients_connection *connection = clients_find(clients, forwarding->client);

    if (!connection || connection->phase != CLIENTS_UP)
        return; /* it is gone */
    if (connection->forwardings > 0)
        connection->forwardings--;
    if (!forwarding->frame) { /* it comes again, and repeats what may be repeated */
        clients_connection_doom(connection, "out of memory");
        return;
    }
    if (gavel__client_frame__get_packed_size(forwarding->frame) > CLIENT_FRAME_MAX)
        write_too_large(connection, forwarding->frame);
    else
        clients_write(connection, forwarding->frame);
    clients_look(connection);
}

void clients_take_replies(struct clients *clients)
{
    struct mail_link *message = mailbox_take_all(&clients->replies);

    while (message) {
        struct forwarding *forwarding = (struct forwarding *)(void *)message;

        message = message->next;
        take_reply(clients, forwarding);
        forwarding_free(forwarding);
    }
    clients_flush(clients);
}
