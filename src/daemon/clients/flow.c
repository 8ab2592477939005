/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes in and out of a connection, within bounds.
 *
 * In: frames are taken one after the other, until too much is under way for this
 * client or waits to be read by it. Then nothing is read from it until that is
 * less. A client is cut off if it does not complete a frame, or is silent for too
 * long.
 *
 * Out: what a turn of the loop has written goes to the kernel at its end, in one
 * call. Only what the kernel does not take is left to libevent, so an answer does
 * not change what epoll watches. A client that takes nothing of its output is cut
 * off.
 */
#include "daemon/clients/internal.h"

#include "net/cut.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

size_t clients_waiting(const struct clients_connection *connection)
{
    return connection->stream ? evbuffer_get_length(bufferevent_get_output(connection->stream)) : 0;
}

void clients_need_work(struct clients_connection *connection)
{
    struct clients *clients = connection->clients;

    if (connection->has_work || connection->phase == CLIENTS_DEAD)
        return;
    connection->has_work = true;
    TAILQ_INSERT_TAIL(&clients->work, connection, next_work);
    event_active(clients->work_event, EV_TIMEOUT, 0);
}

void clients_look(struct clients_connection *connection)
{
    size_t waiting = clients_waiting(connection);
    bool was_full = connection->is_full;
    bool wants;

    if (connection->phase == CLIENTS_DEAD || connection->phase == CLIENTS_LEAVING)
        return;
    if (waiting > CLIENTS_OUTPUT_MAX)
        clients_connection_doom(connection, "more waits to be read by it than this node can keep");
    connection->is_full = waiting > CLIENTS_OUTPUT_PAUSE || (was_full && waiting > CLIENTS_OUTPUT_GO);
    connection->is_overfull = connection->forwardings >= CLIENTS_FORWARDINGS_MAX ||
                              (connection->is_overfull && connection->forwardings > CLIENTS_FORWARDINGS_GO);
    wants = !connection->is_full && !connection->is_overfull && !connection->doom;
    if (wants && !connection->is_reading) {
        (void)bufferevent_enable(connection->stream, EV_READ); /* if it fails it is cut off as silent */
        clients_need_work(connection);                         /* there may be frames that were not taken */
    } else if (!wants && connection->is_reading) {
        (void)bufferevent_disable(connection->stream, EV_READ);
    }
    connection->is_reading = wants;
    if (was_full && !connection->is_full)
        clients_need_work(connection); /* there may be changes that were not told */
}

void clients_write_bytes(struct clients_connection *connection, const uint8_t *bytes, size_t size)
{
    if (connection->phase == CLIENTS_DEAD)
        return;
    if (evbuffer_add(bufferevent_get_output(connection->stream), bytes, size)) {
        /* Part of it may be there, and whatever follows would not be understood. */
        connection->doom = "out of memory";
        clients_need_work(connection);
        return;
    }
    if (!connection->is_dirty) {
        connection->is_dirty = true;
        LIST_INSERT_HEAD(&connection->clients->dirty, connection, next_dirty);
    }
}

void clients_write(struct clients_connection *connection, const Gavel__ClientFrame *frame)
{
    uint8_t *bytes;
    size_t size;

    if (client_frame_pack(frame, &bytes, &size) != GAVEL_OK) {
        clients_connection_doom(connection, "out of memory");
        return;
    }
    clients_write_bytes(connection, bytes, size);
    free(bytes);
}

/* Past the stream: its output is frozen against others, and it has no call that writes at once. */
static void write_now(struct clients_connection *connection)
{
    struct evbuffer *output = bufferevent_get_output(connection->stream);
    int written;

    if (connection->ssl || bufferevent_get_enabled(connection->stream) & EV_WRITE)
        return; /* the stream is at it */
    (void)evbuffer_unfreeze(output, 1);
    written = evbuffer_write(output, bufferevent_getfd(connection->stream));
    (void)evbuffer_freeze(output, 1);
    if (written < 0 && errno != EAGAIN && errno != EINTR)
        clients_connection_close(connection);
    else if (evbuffer_get_length(output) > 0)
        (void)bufferevent_enable(connection->stream, EV_WRITE); /* if it fails it is cut off as slow */
}

void clients_flush(struct clients *clients)
{
    struct clients_connection *connection;

    while ((connection = LIST_FIRST(&clients->dirty))) {
        LIST_REMOVE(connection, next_dirty);
        connection->is_dirty = false;
        clients_not_late(connection);
        write_now(connection);
        clients_look(connection);
    }
}

/* The size of the next frame with its length; 0 if it is not there yet or was bad. */
static size_t next_size(struct clients_connection *connection)
{
    size_t most = connection->phase == CLIENTS_UP ? CLIENT_FRAME_MAX : CLIENT_FIRST_FRAME_MAX;
    uint8_t length[CUT_LENGTH_BYTES];
    size_t size = cut_next(connection->stream, most, length);

    if (size != CUT_BAD)
        return size;
    clients_connection_cut(connection, clients_explain(length));
    return 0;
}

static void take(struct clients_connection *connection, const uint8_t *bytes, size_t size)
{
    Gavel__ClientFrame *frame;
    const char *reason = "out of memory";

    if (client_frame_unpack(bytes, size, &frame, &reason) != GAVEL_OK) {
        clients_connection_cut(connection, reason);
    } else if (connection->phase == CLIENTS_HELLO) {
        clients_greet(connection, frame);
        client_frame_free(frame);
    } else {
        clients_take(connection, frame);
    }
}

static void take_frames(struct clients_connection *connection)
{
    struct evbuffer *input = bufferevent_get_input(connection->stream);
    size_t size;

    connection->is_tired = false;
    while (connection->is_reading && !connection->doom && !connection->is_tired &&
           (connection->phase == CLIENTS_HELLO || connection->phase == CLIENTS_UP) &&
           (size = next_size(connection)) > 0) {
        const uint8_t *bytes = evbuffer_pullup(input, (ev_ssize_t)size);

        if (!bytes) {
            clients_connection_cut(connection, "out of memory");
            return;
        }
        connection->heard_at = clock_now();
        take(connection, bytes + CLIENT_LENGTH_BYTES, size - CLIENT_LENGTH_BYTES);
        (void)evbuffer_drain(input, size);
        clients_look(connection);
    }
    if (connection->is_tired)
        clients_need_work(connection);
}

void clients_readable(struct bufferevent *stream, void *user)
{
    struct clients_connection *connection = user;
    struct evbuffer *input = bufferevent_get_input(stream);

    if (connection->phase == CLIENTS_LEAVING) {
        (void)evbuffer_drain(input, evbuffer_get_length(input));
        return;
    }
    take_frames(connection);
    clients_flush(connection->clients);
}

void clients_writable(struct bufferevent *stream, void *user)
{
    struct clients_connection *connection = user;
    bool is_empty = clients_waiting(connection) == 0;

    if (connection->phase == CLIENTS_LEAVING) {
        if (is_empty)
            (void)shutdown(bufferevent_getfd(stream), SHUT_WR); /* the other side may be gone already */
        return;
    }
    if (is_empty && !connection->ssl)
        (void)bufferevent_disable(stream, EV_WRITE); /* clients_flush() writes again */
    clients_look(connection);
}

void clients_work(evutil_socket_t fd, short what, void *user)
{
    struct clients *clients = user;
    struct clients_connection *connection;
    size_t count = 0;

    (void)fd;
    (void)what;
    /* Whoever needs work again meanwhile has its turn after the others have had theirs. */
    TAILQ_FOREACH(connection, &clients->work, next_work)
        count++;
    while (count-- > 0 && (connection = TAILQ_FIRST(&clients->work))) {
        TAILQ_REMOVE(&clients->work, connection, next_work);
        connection->has_work = false;
        if (connection->doom) {
            clients_connection_cut(connection, connection->doom);
        } else if (connection->phase != CLIENTS_LEAVING) {
            take_frames(connection);
            if (connection->phase == CLIENTS_UP)
                clients_pump_one(connection);
        }
    }
    clients_flush(clients);
}

static const char *complaint_about(struct clients_connection *connection, gavel_ns now)
{
    const struct clients_patience *patience = &connection->clients->patience;
    size_t half = evbuffer_get_length(bufferevent_get_input(connection->stream));

    if (connection->phase != CLIENTS_UP)
        return now - connection->made_at > patience->greeting ? "no hello has come in time" : NULL;
    if (clients_waiting(connection) == 0 || connection->taken != connection->taken_then) {
        connection->taken_then = connection->taken;
        connection->progress_at = now;
    }
    if (now - connection->progress_at > (connection->is_full ? patience->slow : patience->idle))
        return "it does not read what it is sent";
    if (connection->is_reading && connection->forwardings == 0 &&
        now - connection->heard_at > patience->idle && (connection->watch_count == 0 || half > 0))
        return "nothing was heard of it for too long; a client that is idle sends a keep-alive";
    return NULL;
}

void clients_sweep(struct clients *clients, gavel_ns now)
{
    struct clients_connection *connection;
    struct clients_connection *next;

    for (connection = TAILQ_FIRST(&clients->connections); connection; connection = next) {
        const char *complaint;

        next = TAILQ_NEXT(connection, next);
        if (connection->phase == CLIENTS_LEAVING) {
            if (now >= connection->leave_at)
                clients_connection_close(connection);
            continue;
        }
        complaint = complaint_about(connection, now);
        if (complaint)
            clients_connection_cut(connection, complaint);
    }
    clients_flush(clients);
}
