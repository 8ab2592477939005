/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One connection of a client, from its socket to its end.
 *
 * A client that is refused must be able to read why. If we closed a socket with
 * unread bytes in it, the kernel would reset the connection, and the reason
 * might never arrive. So we leave slowly: write, shut down our half, discard
 * further input, and close when the other side has closed, or after a while.
 */
#include "daemon/clients/internal.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ERRORS_MAX 8
/* A refusal is not worth more to a side that does not read. */
#define REFUSAL_ROOM (64u * 1024)

static int compare_connections(const struct clients_connection *a, const struct clients_connection *b)
{
    return a->number < b->number ? -1 : a->number > b->number;
}

CLIENTS_TREE(clients_by_number, clients_connection, by_number, compare_connections)

struct clients_connection *clients_find(struct clients *clients, uint64_t number)
{
    struct clients_connection like = {.number = number};

    return RB_FIND(clients_by_number, &clients->by_number, &like);
}

static void say(const struct clients_connection *connection, const char *message, const char *reason)
{
    log_line(&connection->clients->shared->log, clock_wall_ms(), LOG_DEBUG, message,
             LOG_U64("client", connection->number), LOG_STR("from", connection->remote),
             LOG_STR("reason", reason), LOG_END);
}

/* The consensus thread need not keep answers for it; if it never asked for any, it does not know it. */
static void say_farewell(struct clients_connection *connection)
{
    if (!connection->farewell)
        return;
    if (connection->has_forwardings)
        mailbox_put(&connection->clients->shared->forwardings, &connection->farewell->link);
    else
        forwarding_free(connection->farewell);
    connection->farewell = NULL;
}

void clients_connection_close(struct clients_connection *connection)
{
    struct clients *clients = connection->clients;

    if (connection->phase == CLIENTS_DEAD)
        return;
    if (connection->phase == CLIENTS_LEAVING)
        clients->leaving--;
    if (connection->is_lent)
        clients->lent--;
    connection->phase = CLIENTS_DEAD;
    clients_watches_done(connection);
    say_farewell(connection);
    if (connection->has_work)
        TAILQ_REMOVE(&clients->work, connection, next_work);
    if (connection->is_dirty)
        LIST_REMOVE(connection, next_dirty);
    clients_not_late(connection);
    connection->has_work = connection->is_dirty = false;
    if (connection->stream) {
        bufferevent_setcb(connection->stream, NULL, NULL, NULL, NULL);
        (void)bufferevent_disable(connection->stream, EV_READ | EV_WRITE);
    }
    (void)RB_REMOVE(clients_by_number, &clients->by_number, connection);
    TAILQ_REMOVE(&clients->connections, connection, next);
    TAILQ_INSERT_TAIL(&clients->dead, connection, next);
    (void)atomic_fetch_sub(&clients->counts.connections, 1);
    event_active(clients->reap_event, EV_TIMEOUT, 0);
}

void clients_reap(evutil_socket_t fd, short what, void *user)
{
    struct clients *clients = user;
    struct clients_connection *connection;

    (void)fd;
    (void)what;
    while ((connection = TAILQ_FIRST(&clients->dead))) {
        TAILQ_REMOVE(&clients->dead, connection, next);
        if (connection->stream)
            bufferevent_free(connection->stream);
        free(connection);
    }
}

static void leave(struct clients_connection *connection)
{
    if (connection->phase != CLIENTS_LEAVING)
        connection->clients->leaving++;
    connection->phase = CLIENTS_LEAVING;
    connection->leave_at = clock_now() + CLIENTS_LEAVING_MS * NS_PER_MS;
    clients_watches_done(connection);
    say_farewell(connection);
    bufferevent_setwatermark(connection->stream, EV_READ, 0, 0);
    (void)bufferevent_enable(connection->stream, EV_READ | EV_WRITE); /* if it fails the time-out closes it */
    clients_readable(connection->stream, connection);
    if (clients_waiting(connection) == 0)
        clients_writable(connection->stream, connection);
}

void clients_connection_refuse(struct clients_connection *connection, const char *text)
{
    Gavel__ClientRefusal refusal;
    Gavel__ClientFrame frame;

    gavel__client_refusal__init(&refusal);
    gavel__client_frame__init(&frame);
    refusal.text = clients_text(text);
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REFUSAL;
    frame.refusal = &refusal;
    clients_write(connection, &frame);
    if (connection->phase != CLIENTS_DEAD)
        leave(connection);
}

void clients_connection_cut(struct clients_connection *connection, const char *reason)
{
    if (connection->phase == CLIENTS_DEAD || connection->phase == CLIENTS_LEAVING)
        return;
    (void)atomic_fetch_add(&connection->clients->counts.cut, 1);
    say(connection, "a client was cut off", reason);
    if (connection->phase == CLIENTS_TLS || clients_waiting(connection) > REFUSAL_ROOM)
        clients_connection_close(connection);
    else
        clients_connection_refuse(connection, reason);
}

void clients_connection_doom(struct clients_connection *connection, const char *reason)
{
    if (!connection->doom)
        connection->doom = reason;
    clients_need_work(connection);
}

static void on_event(struct bufferevent *stream, short events, void *user);

static void set_callbacks(struct clients_connection *connection)
{
    bufferevent_setcb(connection->stream, clients_readable, clients_writable, on_event, connection);
}

/* The descriptor stays for a moment, without TLS, until the other side has read the alert; or, where OpenSSL
 * sends none because the other side does not speak TLS, a word that it understands. */
static bool drop_tls(struct clients_connection *connection)
{
    int fd = fcntl(bufferevent_getfd(connection->stream), F_DUPFD_CLOEXEC, 0);

    bufferevent_free(connection->stream);
    connection->ssl = NULL;
    connection->stream =
        fd < 0 ? NULL : bufferevent_socket_new(connection->clients->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (connection->stream) {
        set_callbacks(connection);
        return true;
    }
    if (fd >= 0)
        (void)close(fd); /* nobody would read it */
    clients_connection_close(connection);
    return false;
}

static void handshake_failed(struct clients_connection *connection)
{
    unsigned long errors[ERRORS_MAX];
    char reason[256];
    size_t count = 0;

    while (count < ERRORS_MAX && (errors[count] = bufferevent_get_openssl_error(connection->stream)) != 0)
        count++;
    if (count == 0 && SSL_get_verify_result(connection->ssl) == X509_V_OK) {
        clients_connection_close(connection); /* who comes and goes without a word is no news */
        return;
    }
    tls_reason_of(connection->ssl, errors, count, reason, sizeof reason);
    (void)atomic_fetch_add(&connection->clients->counts.cut, 1);
    say(connection, "a client was refused in the TLS handshake", reason);
    if (!drop_tls(connection))
        return;
    if (tls_is_plain(errors, count))
        clients_connection_refuse(
            connection, "this node speaks TLS with its clients: add ?ca=FILE&cert=FILE&key=FILE to the URL");
    else
        leave(connection);
}

static void on_event(struct bufferevent *stream, short events, void *user)
{
    struct clients_connection *connection = user;

    (void)stream;
    if (events & BEV_EVENT_CONNECTED) {
        connection->phase = CLIENTS_HELLO;
        clients_greet_tls(connection);
    } else if (connection->ssl && connection->phase == CLIENTS_TLS) {
        handshake_failed(connection);
    } else {
        clients_connection_close(connection);
    }
    clients_flush(connection->clients);
}

/* How much the other side takes tells a slow one from one that is stuck. */
static void on_output(struct evbuffer *buffer, const struct evbuffer_cb_info *info, void *user)
{
    struct clients_connection *connection = user;

    (void)buffer;
    connection->taken += info->n_deleted;
}

static struct bufferevent *make_stream(struct clients_connection *connection, int fd)
{
    struct clients *clients = connection->clients;
    struct bufferevent *stream;

    if (connection->is_unix || !clients->certificates.context)
        return bufferevent_socket_new(clients->base, fd, BEV_OPT_CLOSE_ON_FREE);
    connection->ssl = SSL_new(clients->certificates.context);
    if (!connection->ssl)
        return NULL;
    /* What becomes of the SSL if this fails differs between versions of libevent: better lost than freed
     * twice. */
    stream = bufferevent_openssl_socket_new(clients->base, fd, connection->ssl, BUFFEREVENT_SSL_ACCEPTING,
                                            BEV_OPT_CLOSE_ON_FREE);
    if (stream) /* a process that was killed says no goodbye */
        bufferevent_openssl_set_allow_dirty_shutdown(stream, 1);
    return stream;
}

/* Takes the descriptor over, also on failure. */
static bool open_stream(struct clients_connection *connection, int fd)
{
    struct bufferevent *stream = make_stream(connection, fd);

    if (!stream) {
        (void)close(fd); /* nothing was sent on it */
        return false;
    }
    /* What is plain is written by clients_flush(); the stream writes only what the kernel does not take. */
    if (evbuffer_add_cb(bufferevent_get_output(stream), on_output, connection) &&
        bufferevent_enable(stream, EV_READ) == 0 &&
        (connection->ssl || bufferevent_disable(stream, EV_WRITE) == 0)) {
        connection->stream = stream;
        return true;
    }
    bufferevent_free(stream);
    return false;
}

struct clients_connection *clients_connection_new(struct clients *clients, int fd, bool is_unix,
                                                  const char *remote)
{
    struct clients_connection *connection = calloc(1, sizeof *connection);
    gavel_ns now = clock_now();

    if (connection) {
        *connection = (struct clients_connection){.clients = clients,
                                                  .number = ++clients->numbers,
                                                  .is_unix = is_unix,
                                                  .is_reading = true,
                                                  .is_live = true,
                                                  .made_at = now,
                                                  .heard_at = now,
                                                  .progress_at = now};
        connection->farewell = forwarding_new(connection->number, &clients->replies, NULL);
    }
    if (!connection || !connection->farewell) {
        (void)close(fd); /* nothing was sent on it */
        free(connection);
        return NULL;
    }
    if (!open_stream(connection, fd)) {
        forwarding_free(connection->farewell);
        free(connection);
        return NULL;
    }
    connection->phase = connection->ssl ? CLIENTS_TLS : CLIENTS_HELLO;
    (void)snprintf(connection->remote, sizeof connection->remote, "%s", remote);
    bufferevent_setwatermark(connection->stream, EV_READ, CLIENT_LENGTH_BYTES, 0);
    bufferevent_setwatermark(connection->stream, EV_WRITE, CLIENTS_OUTPUT_GO, 0);
    set_callbacks(connection);
    RB_INIT(&connection->watches);
    LIST_INIT(&connection->behind);
    (void)RB_INSERT(clients_by_number, &clients->by_number, connection); /* the number is new */
    TAILQ_INSERT_TAIL(&clients->connections, connection, next);
    (void)atomic_fetch_add(&clients->counts.connections, 1);
    (void)atomic_fetch_add(&clients->counts.accepted, 1);
    return connection;
}
