/* SPDX-License-Identifier: Apache-2.0 */

/* Input: cut into frames, decoded, checked against the sender, and passed on. */

#include "net/internal.h"

#include "net/cut.h"
#include "os/clock.h"
#include "wire/client.h"

#include <event2/buffer.h>
#include <string.h>

void frame_bad(struct connection *connection, const char *reason)
{
    char text[PEER_TEXT_MAX + 1];
    struct link *link = connection->link;

    if (connection->is_dialled) {
        text_write(text, sizeof text, "no proper answer: %s", reason);
        link_failed(link, TRANSPORT_BAD, text, NULL);
        return;
    }
    connection_refuse(connection, reason, false);
    tell_accepted(connection, TRANSPORT_BAD, reason, NULL);
}

static void take_message(struct connection *connection, const struct raft_message *message)
{
    struct transport *transport = connection->transport;

    /* Who it is was settled in the greeting; one may not speak for another. A certificate speaks for
     * itself. */
    if (message->from != connection->peer && !(message->kind == RAFT_MSG_CERTIFICATE && message->from == 0))
        frame_bad(connection, "a message in the name of another node");
    else if (message->to != transport->settings.self.node)
        frame_bad(connection, "a message for another node");
    else if (transport->events.message)
        transport->events.message(transport->events.user, message);
}

static void take_status(struct connection *connection, const struct peer_status *status)
{
    struct transport *transport = connection->transport;

    if (status->node != connection->peer)
        frame_bad(connection, "a status in the name of another node");
    else if (transport->events.status)
        transport->events.status(transport->events.user, status);
}

static void take_forwarding(struct connection *connection, const struct peer_frame *frame)
{
    struct transport *transport = connection->transport;

    if (transport->events.forwarding)
        transport->events.forwarding(transport->events.user, connection->peer, frame->kind,
                                     &frame->forwarding);
}

static void take_chunk(struct connection *connection, const struct peer_chunk *chunk)
{
    const char *reason = snapshot_take(connection, chunk);

    if (reason)
        frame_bad(connection, reason);
}

/* Of a connection that is up. We speak on those that we dialled, and listen on those that we accepted. */
static void take_frame(struct connection *connection, const struct peer_frame *frame)
{
    if (frame->kind == PEER_UNKNOWN)
        return;
    if (frame->kind == PEER_REFUSAL)
        greet_refused(connection, frame);
    else if (connection->is_dialled)
        frame_bad(connection, "it speaks where it should listen");
    else if (frame->kind == PEER_MESSAGE)
        take_message(connection, &frame->message);
    else if (frame->kind == PEER_CHUNK)
        take_chunk(connection, &frame->chunk);
    else if (frame->kind == PEER_STATUS)
        take_status(connection, &frame->status);
    else if (frame->kind == PEER_FORWARDING || frame->kind == PEER_ANSWER || frame->kind == PEER_SILENCE)
        take_forwarding(connection, frame);
    else
        frame_bad(connection, "a second greeting");
}

static void take_first(struct connection *connection, const struct peer_frame *frame)
{
    if (frame->kind == PEER_REFUSAL)
        greet_refused(connection, frame);
    else if (frame->kind == PEER_WELCOME && connection->is_dialled)
        greet_welcome(connection, &frame->hello);
    else if (frame->kind == PEER_HELLO && !connection->is_dialled)
        greet_hello(connection, &frame->hello);
    else
        frame_bad(connection, "it does not begin with a greeting");
}

/* It may greet, but not yet send. */
static void take_proof(struct connection *connection, const struct peer_frame *frame)
{
    if (frame->kind == PEER_REFUSAL)
        greet_refused(connection, frame);
    else if (frame->kind == PEER_PROOF)
        greet_proof(connection, frame->proof);
    else
        frame_bad(connection, "it sends before it has proven who it is");
}

/* Whether a client of the cluster greets us, as one does that was given the port for other nodes. */
static bool is_from_client(const uint8_t *bytes, size_t size)
{
    Gavel__ClientFrame *frame;
    const char *reason;
    bool is_hello;

    if (client_frame_unpack(bytes, size, &frame, &reason) != GAVEL_OK)
        return false;
    is_hello = frame->what_case == GAVEL__CLIENT_FRAME__WHAT_HELLO;
    client_frame_free(frame);
    return is_hello;
}

/* Of a frame that is not one of ours: the reason, or a better one. */
static const char *explain_frame(const struct connection *connection, const uint8_t *bytes, size_t size,
                                 const char *reason)
{
    if (connection->phase == PHASE_HELLO && !connection->is_dialled && is_from_client(bytes, size))
        return "this is the port for other nodes (`listen:`); clients use that of `clients:` in the node's file";
    return reason;
}

/* Returns whether to go on. */
static bool take(struct connection *connection, const uint8_t *bytes, size_t size)
{
    const char *reason;
    struct peer_frame frame;

    if (peer_frame_decode(bytes, size, &frame, &reason) != GAVEL_OK) {
        frame_bad(connection, explain_frame(connection, bytes, size, reason));
        return false;
    }
    if (connection->phase == PHASE_HELLO)
        take_first(connection, &frame);
    else if (connection->phase == PHASE_PROOF)
        take_proof(connection, &frame);
    else
        take_frame(connection, &frame);
    peer_frame_done(&frame);
    return connection->phase == PHASE_HELLO || connection->phase == PHASE_PROOF ||
           connection->phase == PHASE_UP;
}

/* Bytes where a length should be: who might have sent them? */
static const char *explain_length(const uint8_t bytes[CUT_LENGTH_BYTES])
{
    if ((bytes[0] == 0x16 || bytes[0] == 0x15) && bytes[1] == 3)
        return "one side speaks TLS and the other does not; set tls for both or for none";
    if (memcmp(bytes, "GET ", 4) == 0 || memcmp(bytes, "POST", 4) == 0 || memcmp(bytes, "HTTP", 4) == 0)
        return "this is HTTP; the port of the API is another";
    return "bytes that are not a frame";
}

/* The size of the next frame with its length; 0 if it is not there yet or was bad. */
static size_t next_size(struct connection *connection)
{
    size_t most = connection->phase == PHASE_UP ? PEER_FRAME_MAX : PEER_FIRST_FRAME_MAX;
    uint8_t length[CUT_LENGTH_BYTES];
    size_t size = cut_next(connection->stream, most, length);

    if (size != CUT_BAD)
        return size;
    frame_bad(connection, explain_length(length));
    return 0;
}

/* Whom we refuse, or who refuses us, answers each time that it is dialled; that does not make it healthy. */
static void note_heard(struct connection *connection)
{
    if (connection->link && connection->phase == PHASE_UP)
        connection->link->heard_at = connection->heard_at;
}

void frame_read(struct bufferevent *stream, void *context)
{
    struct connection *connection = context;
    struct evbuffer *input = bufferevent_get_input(stream);
    size_t size;

    if (connection->phase == PHASE_LEAVING) {
        (void)evbuffer_drain(input, evbuffer_get_length(input));
        return;
    }
    while ((size = next_size(connection)) > 0) {
        const uint8_t *bytes = evbuffer_pullup(input, (ev_ssize_t)size);
        bool goes_on;

        if (!bytes) {
            frame_bad(connection, "out of memory for a frame");
            return;
        }
        connection->heard_at = clock_now();
        if (connection->link)
            connection->link->received_bytes += size;
        note_heard(connection);
        goes_on = take(connection, bytes + PEER_LENGTH_BYTES, size - PEER_LENGTH_BYTES);
        if (!goes_on)
            return;
        note_heard(connection); /* that frame may have been the greeting */
        (void)evbuffer_drain(input, size);
    }
}
