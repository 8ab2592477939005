/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One stream of frames, plain or TLS, from its socket to its end.
 *
 * A side that refuses the other must be heard. If it closed a socket with unread
 * bytes in it, the kernel would reset the connection, and the reason might never
 * arrive. So it leaves slowly: it writes, shuts down its half, discards further
 * input, and closes when the other side has closed, or after a while.
 */

#include "net/internal.h"
#include "net/tls.h"

#include "os/clock.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEAVING_MS 500
#define ERRORS_MAX 8

/* A peer that is gone without a word is noticed within about this. */
#define SILENCE_MS 2000

/* An option that cannot be set costs time, not correctness. */
void socket_tune(int fd)
{
    int on = 1, idle_s = 1, interval_s = 1, count = 3, timeout_ms = SILENCE_MS;
    int unsent = (int)PEER_CHUNK_BYTES;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    /* Little waits in the kernel, so that a heartbeat overtakes most of a snapshot. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}

static void set_callbacks(struct connection *connection);

size_t connection_waiting(const struct connection *connection)
{
    return evbuffer_get_length(bufferevent_get_output(connection->stream));
}

size_t connection_waiting_late(const struct connection *connection)
{
    return connection->late ? evbuffer_get_length(connection->late) : 0;
}

void connection_close(struct connection *connection)
{
    struct transport *transport = connection->transport;

    if (connection->phase == PHASE_DEAD)
        return;
    connection->phase = PHASE_DEAD;
    (void)event_del(&connection->deadline);
    if (connection->link && connection->link->in == connection)
        connection->link->in = NULL;
    connection->link = NULL;
    snapshot_drop(&connection->snapshot);
    if (connection->stream) {
        bufferevent_setcb(connection->stream, NULL, NULL, NULL, NULL);
        (void)bufferevent_disable(connection->stream, EV_READ | EV_WRITE);
    }
    if (!connection->is_dialled)
        transport->accepted_count--;
    LIST_REMOVE(connection, entry);
    LIST_INSERT_HEAD(&transport->dead, connection, entry);
    event_active(&transport->reaper, EV_TIMEOUT, 0);
}

void connection_reap(evutil_socket_t fd, short events, void *context)
{
    struct transport *transport = context;
    struct connection *connection;

    (void)fd;
    (void)events;
    while ((connection = LIST_FIRST(&transport->dead))) {
        LIST_REMOVE(connection, entry);
        if (connection->stream)
            bufferevent_free(connection->stream);
        if (connection->late)
            evbuffer_free(connection->late);
        free(connection);
    }
}

/* What is written goes out; what comes in is thrown away. */
static void leave(struct connection *connection)
{
    struct timeval limit = {.tv_usec = LEAVING_MS * 1000};

    connection->phase = PHASE_LEAVING;
    bufferevent_setwatermark(connection->stream, EV_WRITE, 0, 0);
    bufferevent_setwatermark(connection->stream, EV_READ, 0, 0);
    (void)bufferevent_enable(connection->stream, EV_READ | EV_WRITE);
    (void)event_add(&connection->deadline, &limit);
    if (connection_waiting(connection) == 0)
        (void)shutdown(bufferevent_getfd(connection->stream),
                       SHUT_WR); /* the other side may be gone already */
}

void connection_refuse(struct connection *connection, const char *text, bool tells_self)
{
    struct peer_frame frame = {.kind = PEER_REFUSAL};

    if (tells_self)
        frame.hello = connection->own.node != 0 ? connection->own : connection->transport->settings.self;
    frame.is_directory = connection->refuses_directory;
    text_write(frame.text, sizeof frame.text, "%s", text);
    if (connection_write(connection, &frame))
        leave(connection);
    else
        connection_close(connection);
}

/* Ends that nobody wanted. */
static void end(struct connection *connection, enum transport_news news, const char *reason)
{
    struct link *link = connection->link;

    if (connection->phase == PHASE_LEAVING) {
        connection_close(connection);
    } else if (connection->is_dialled) {
        if (connection->phase == PHASE_UP)
            link_lost(link, reason);
        else
            link_failed(link, news, reason, NULL);
    } else if (connection->phase == PHASE_UP) {
        struct transport *transport = connection->transport;
        raft_id peer = connection->peer;
        char text[NEWS_TEXT_MAX + 1];

        text_write(text, sizeof text, "%s, from %s: %s", connection->name, connection->remote, reason);
        connection_close(connection);
        tell(transport, TRANSPORT_LOST, peer, text, NULL);
    } else {
        connection_close(connection); /* whoever comes and goes without a word is no news */
    }
}

static void on_deadline(evutil_socket_t fd, short events, void *context)
{
    struct connection *connection = context;
    char text[PEER_TEXT_MAX + 1];

    (void)fd;
    (void)events;
    if (connection->phase != PHASE_LEAVING) {
        text_write(text, sizeof text, "no greeting within %lld ms",
                   (long long)ms_from_ns(connection->transport->settings.connect_timeout));
        tell_accepted(connection, TRANSPORT_BAD, text, NULL);
    }
    connection_close(connection);
}

/* The alert is out; the descriptor stays for a moment, without TLS, until the other side has read it. */
static void leave_without_tls(struct connection *connection, bool is_plain)
{
    int fd = fcntl(bufferevent_getfd(connection->stream), F_DUPFD_CLOEXEC, 0);

    bufferevent_free(connection->stream);
    connection->ssl = NULL;
    connection->stream =
        fd < 0 ? NULL : bufferevent_socket_new(connection->transport->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (connection->stream) {
        set_callbacks(connection);
        /* OpenSSL sends no alert to one who does not speak TLS; a plain word it will understand. */
        if (is_plain)
            connection_refuse(connection,
                              "one side speaks TLS and the other does not; set tls for both or for none",
                              false);
        else
            leave(connection);
        return;
    }
    if (fd >= 0)
        (void)close(fd);
    connection_close(connection);
}

/* One side does not like the certificate of the other, or one does not speak TLS at all. */
static void handshake_failed(struct connection *connection, const char *reason, bool is_plain)
{
    char text[PEER_TEXT_MAX + 1];
    struct link *link = connection->link;

    text_write(text, sizeof text, "refused in the TLS handshake: %s", reason);
    if (!connection->is_dialled) {
        leave_without_tls(connection, is_plain);
        tell_accepted(connection, TRANSPORT_REFUSED, text, NULL);
        return;
    }
    link->out = NULL; /* the link goes on without it */
    connection->link = NULL;
    leave_without_tls(connection, false);
    link_failed(link, TRANSPORT_REFUSED, text, NULL);
}

/* Whether OpenSSL has found something; what, in words. */
static bool has_tls_failed(struct connection *connection, char *buffer, size_t size, bool *ret_is_plain)
{
    unsigned long errors[ERRORS_MAX];
    size_t count = 0;

    if (!connection->ssl)
        return false;
    while (count < ERRORS_MAX && (errors[count] = bufferevent_get_openssl_error(connection->stream)) != 0)
        count++;
    tls_reason_of(connection->ssl, errors, count, buffer, size);
    *ret_is_plain = tls_is_plain(errors, count);
    return count > 0 || SSL_get_verify_result(connection->ssl) != X509_V_OK;
}

static void on_event(struct bufferevent *stream, short events, void *context)
{
    struct connection *connection = context;
    char reason[PEER_TEXT_MAX + 1] = "closed by the other side";
    int failure = EVUTIL_SOCKET_ERROR();
    bool is_plain = false;

    (void)stream;
    if (events & BEV_EVENT_CONNECTED) {
        connection->phase = PHASE_HELLO;
        if (connection->is_dialled)
            greet_begin(connection);
        return;
    }
    /* The client's handshake is over before the server has looked at its certificate. */
    if (connection->phase <= PHASE_HELLO && has_tls_failed(connection, reason, sizeof reason, &is_plain)) {
        handshake_failed(connection, reason, is_plain);
        return;
    }
    if (events & BEV_EVENT_ERROR && failure != 0)
        text_write(reason, sizeof reason, "%s", strerror(failure));
    end(connection, TRANSPORT_FAILED, reason);
}

/* Frame by frame, so that what is written meanwhile goes between them. */
static void pump_late(struct connection *connection)
{
    uint8_t length[PEER_LENGTH_BYTES];

    while (connection_waiting(connection) < FORWARDINGS_AHEAD_BYTES &&
           connection_waiting_late(connection) >= sizeof length) {
        (void)evbuffer_copyout(connection->late, length, sizeof length); /* they are there */
        if (evbuffer_remove_buffer(connection->late, bufferevent_get_output(connection->stream),
                                   sizeof length + peer_frame_length(length)) < 0)
            return; /* without memory: when the next is written */
    }
}

static void on_written(struct bufferevent *stream, void *context)
{
    struct connection *connection = context;

    if (connection->phase == PHASE_LEAVING) {
        if (connection_waiting(connection) == 0)
            (void)shutdown(bufferevent_getfd(stream), SHUT_WR); /* see leave() */
    } else if (connection->link && connection->is_dialled && connection->phase == PHASE_UP) {
        snapshot_pump(connection->link);
        pump_late(connection);
    }
}

static void set_callbacks(struct connection *connection)
{
    bufferevent_setcb(connection->stream, frame_read, on_written, on_event, connection);
}

static bool open_stream(struct connection *connection, int fd)
{
    struct transport *transport = connection->transport;

    if (!transport->tls) {
        connection->stream = bufferevent_socket_new(transport->base, fd, BEV_OPT_CLOSE_ON_FREE);
        return connection->stream != NULL;
    }
    connection->ssl = SSL_new(transport->tls);
    if (!connection->ssl)
        return false;
    connection->stream = bufferevent_openssl_socket_new(transport->base, fd, connection->ssl,
                                                        connection->is_dialled ? BUFFEREVENT_SSL_CONNECTING
                                                                               : BUFFEREVENT_SSL_ACCEPTING,
                                                        BEV_OPT_CLOSE_ON_FREE);
    if (!connection->stream) {
        SSL_free(connection->ssl);
        return false;
    }
    /* A process that was killed says no goodbye. */
    bufferevent_openssl_set_allow_dirty_shutdown(connection->stream, 1);
    return true;
}

struct connection *connection_new(struct transport *transport, int fd, bool is_dialled, const char *remote)
{
    struct connection *connection = calloc(1, sizeof *connection);

    if (!connection) {
        (void)close(fd);
        return NULL;
    }
    connection->transport = transport;
    connection->is_dialled = is_dialled;
    connection->phase = transport->tls ? PHASE_TLS : PHASE_HELLO;
    connection->made_at = clock_now();
    text_write(connection->remote, sizeof connection->remote, "%s", remote);
    (void)evtimer_assign(&connection->deadline, transport->base, on_deadline, connection); /* cannot fail */
    if (!open_stream(connection, fd)) {
        (void)close(fd);
        free(connection);
        return NULL;
    }
    set_callbacks(connection);
    bufferevent_setwatermark(connection->stream, EV_READ, PEER_LENGTH_BYTES, 0);
    bufferevent_setwatermark(connection->stream, EV_WRITE, PEER_CHUNK_BYTES / 2, 0);
    (void)bufferevent_enable(connection->stream, EV_READ | EV_WRITE); /* a stream that cannot be read ends */
    LIST_INSERT_HEAD(is_dialled ? &transport->dialled : &transport->accepted, connection, entry);
    if (!is_dialled) {
        struct timeval limit = {.tv_sec = transport->settings.connect_timeout / NS_PER_S,
                                .tv_usec = transport->settings.connect_timeout % NS_PER_S / NS_PER_US};

        transport->accepted_count++;
        (void)event_add(&connection->deadline, &limit);
    }
    return connection;
}

struct reservation {
    struct evbuffer *output;
    struct evbuffer_iovec space;
};

static uint8_t *reserve(void *context, size_t size)
{
    struct reservation *reservation = context;

    if (evbuffer_reserve_space(reservation->output, (ev_ssize_t)size, &reservation->space, 1) != 1)
        return NULL;
    reservation->space.iov_len = size;
    return reservation->space.iov_base;
}

static bool write_to(struct connection *connection, struct evbuffer *output, const struct peer_frame *frame)
{
    struct reservation reservation = {.output = output};

    if (peer_frame_encode_into(frame, reserve, &reservation) != GAVEL_OK)
        return false;
    if (evbuffer_commit_space(reservation.output, &reservation.space, 1) != 0)
        return false;
    if (connection->link)
        connection->link->sent_bytes += reservation.space.iov_len;
    return true;
}

bool connection_write(struct connection *connection, const struct peer_frame *frame)
{
    return write_to(connection, bufferevent_get_output(connection->stream), frame);
}

bool connection_write_late(struct connection *connection, const struct peer_frame *frame)
{
    if (!connection->late)
        connection->late = evbuffer_new();
    if (!connection->late || !write_to(connection, connection->late, frame))
        return false;
    pump_late(connection);
    return true;
}

/* Past the loop: the output is frozen against others than the stream itself, which has no such call. */
void connection_flush(struct connection *connection)
{
    struct evbuffer *output = bufferevent_get_output(connection->stream);

    if (connection->late)
        (void)evbuffer_add_buffer(output, connection->late); /* without memory they are lost */
    (void)evbuffer_unfreeze(output, 1);
    while (evbuffer_get_length(output) > 0) {
        size_t size = evbuffer_get_contiguous_space(output);
        int written = connection->ssl
                          ? SSL_write(connection->ssl, evbuffer_pullup(output, (ev_ssize_t)size), (int)size)
                          : evbuffer_write(output, bufferevent_getfd(connection->stream));

        if (written <= 0)
            break;
        if (connection->ssl)
            (void)evbuffer_drain(output, (size_t)written);
    }
    (void)evbuffer_freeze(output, 1);
}
