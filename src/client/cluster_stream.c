/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One connection to a node: from its address to a stream of bytes, plain or
 * TLS, and to its end. Nothing waits: names are looked up by a thread of their
 * own (net/resolve.h), but for numbers and localhost, which need no asking.
 */

#include "client/cluster_internal.h"

#include "net/revoked.h"
#include "net/tls.h"
#include "net/transport.h"
#include "os/clock.h"
#include "wire/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define ERRORS_MAX 8

/* What is sent and never acknowledged ends a connection, at the latest after this. The client's own patience
 * is usually shorter. */
#define SILENCE_MS 5000

static const char *address_of(const struct cluster_link_stream *stream)
{
    return stream->cluster->target.addresses[stream->which];
}

void cluster_link_stream_fail(struct cluster_link_stream *stream, const char *format, ...)
{
    char text[CLUSTER_REASON_BYTES];
    va_list arguments;

    if (stream->has_failed)
        return; /* the first reason is the reason */
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments); /* cut, at worst */
    va_end(arguments);
    (void)snprintf(stream->reason, sizeof stream->reason, "%.100s: %.150s", address_of(stream), text);
    stream->has_failed = true;
    event_active(stream->cluster->turn, EV_TIMEOUT, 0);
}

/* A CA signs for clients, too, and maybe for several clusters: only a node of ours may answer for it. */
static bool is_of_our_cluster(struct cluster_link_stream *stream)
{
    const char *own = stream->cluster->own.cluster;
    struct tls_identity identity;

    if (!tls_identity_of(stream->ssl, &identity)) {
        cluster_link_stream_fail(
            stream,
            "its certificate does not say whose it is: it needs O = cluster and CN = node, as `gavel cert issue` writes them");
        return false;
    }
    if (strcmp(identity.cluster, own) != 0) {
        cluster_link_stream_fail(
            stream,
            "its certificate is for cluster \"%.32s\", ours for \"%.32s\"; give addresses or a certificate of one cluster",
            identity.cluster, own);
        return false;
    }
    if (identity.is_revoked) {
        cluster_link_stream_fail(
            stream, "its certificate is revoked by the list %.60s; issue a new one for node %.40s",
            stream->cluster->target.revoked, identity.node);
        return false;
    }
    if (identity.kind != TLS_KIND_NODE) {
        cluster_link_stream_fail(
            stream,
            identity.kind == TLS_KIND_CLIENT
                ? "its certificate is a client's, not a node's"
                : "its certificate does not say that it is a node's, like all from before 0.7.0; issue it again with `gavel cert issue %.40s --force`",
            identity.node);
        return false;
    }
    return true;
}

/* By the name that was dialled, or the address: whoever has the certificate of n1 is not n2. */
static bool is_whom_we_dialled(struct cluster_link_stream *stream)
{
    X509 *cert = SSL_get1_peer_certificate(stream->ssl);
    struct address_parts parts;
    bool is_right =
        cert && address_split(address_of(stream), &parts, NULL) == GAVEL_OK &&
        (X509_check_ip_asc(cert, parts.host, 0) == 1 || X509_check_host(cert, parts.host, 0, 0, NULL) == 1);

    X509_free(cert);
    if (!is_right)
        cluster_link_stream_fail(
            stream,
            "its certificate is not for this name or address; issue it with --host for each that clients use");
    return is_right;
}

static void come_up(struct cluster_link_stream *stream)
{
    struct client_event event = {.kind = CLIENT_CONNECTED, .now = clock_now()};

    if (stream->ssl && (!is_of_our_cluster(stream) || !is_whom_we_dialled(stream)))
        return;
    stream->is_up = true;
    cluster_link_step(stream->cluster, &event);
}

/* Whether OpenSSL has found something; what, in words. */
static bool has_tls_failed(struct cluster_link_stream *stream, char *buffer, size_t size)
{
    unsigned long errors[ERRORS_MAX];
    size_t count = 0;

    if (!stream->ssl)
        return false;
    while (count < ERRORS_MAX && (errors[count] = bufferevent_get_openssl_error(stream->bytes)) != 0)
        count++;
    if (tls_is_plain(errors, count))
        (void)snprintf(buffer, size,
                       "the node does not speak TLS here; remove ca, cert and key, or set tls there");
    else
        tls_reason_of(stream->ssl, errors, count, buffer, size);
    return count > 0 || SSL_get_verify_result(stream->ssl) != X509_V_OK;
}

static void on_event(struct bufferevent *bytes, short events, void *context)
{
    struct cluster_link_stream *stream = context;
    int failure = EVUTIL_SOCKET_ERROR();
    char reason[CLUSTER_REASON_BYTES];

    (void)bytes;
    if (stream->cluster->stream != stream || stream->has_failed)
        return;
    if (events & BEV_EVENT_CONNECTED)
        come_up(stream);
    else if (has_tls_failed(stream, reason, sizeof reason))
        cluster_link_stream_fail(stream, "TLS failed: %s", reason);
    else if (events & BEV_EVENT_ERROR && failure != 0)
        cluster_link_stream_fail(stream, "%s", strerror(failure));
    else
        cluster_link_stream_fail(stream, "closed by the node");
}

/* An option that cannot be set costs time, not correctness. */
static void tune(int fd, int family)
{
    int on = 1, timeout_ms = SILENCE_MS;

    if (family == AF_UNIX)
        return;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/* One that cannot be read any more stays as it was: nobody is let in because a file is gone. */
static void read_list_again(struct cluster_link *cluster)
{
    enum gavel_status status = cluster->target.revoked[0] != '\0'
                                   ? revoked_load(cluster->target.revoked, cluster->tls, NULL)
                                   : GAVEL_OK;

    (void)status;
}

/* The descriptor is the stream's as soon as there is a bufferevent. */
static bool open_bytes(struct cluster_link_stream *stream, bool is_secure)
{
    struct cluster_link *cluster = stream->cluster;

    if (!is_secure) {
        stream->bytes = bufferevent_socket_new(cluster->base, stream->fd, BEV_OPT_CLOSE_ON_FREE);
        return stream->bytes != NULL;
    }
    read_list_again(cluster);
    stream->ssl = SSL_new(cluster->tls);
    if (!stream->ssl)
        return false;
    stream->bytes = bufferevent_openssl_socket_new(cluster->base, stream->fd, stream->ssl,
                                                   BUFFEREVENT_SSL_CONNECTING, BEV_OPT_CLOSE_ON_FREE);
    if (!stream->bytes) {
        SSL_free(stream->ssl);
        stream->ssl = NULL;
        return false;
    }
    /* A process that was killed says no goodbye. */
    bufferevent_openssl_set_allow_dirty_shutdown(stream->bytes, 1);
    return true;
}

static void on_connected(evutil_socket_t fd, short events, void *context)
{
    struct cluster_link_stream *stream = context;
    bool is_secure = stream->cluster->tls && !cluster_link_is_path(address_of(stream));
    socklen_t length = sizeof(int);
    int failure = 0;

    (void)events;
    if (stream->cluster->stream != stream || stream->has_failed)
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &length) != 0)
        failure = errno;
    if (failure) {
        cluster_link_stream_fail(stream, "cannot connect: %s", strerror(failure));
        return;
    }
    if (!open_bytes(stream, is_secure)) {
        cluster_link_stream_fail(stream, "cannot connect: out of memory");
        return;
    }
    stream->fd = -1;
    bufferevent_setcb(stream->bytes, cluster_link_frame_read, NULL, on_event, stream);
    bufferevent_setwatermark(stream->bytes, EV_READ, CLIENT_LENGTH_BYTES, 0);
    if (bufferevent_enable(stream->bytes, EV_READ | EV_WRITE) != 0)
        cluster_link_stream_fail(stream, "cannot connect: out of memory");
    else if (!is_secure)
        come_up(stream);
}

static void connect_to(struct cluster_link_stream *stream, const struct sockaddr *address, socklen_t length)
{
    struct cluster_link *cluster = stream->cluster;

    stream->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (stream->fd < 0) {
        cluster_link_stream_fail(stream, "no socket: %s", strerror(errno));
        return;
    }
    tune(stream->fd, address->sa_family);
    if (connect(stream->fd, address, length) != 0 && errno != EINPROGRESS) {
        cluster_link_stream_fail(stream, "cannot connect: %s", strerror(errno));
        return;
    }
    stream->connected = event_new(cluster->base, stream->fd, EV_WRITE, on_connected, stream);
    if (!stream->connected || event_add(stream->connected, NULL) != 0)
        cluster_link_stream_fail(stream, "cannot connect: out of memory");
}

static void connect_over_tcp(struct cluster_link_stream *stream, const struct sockaddr_storage *address,
                             socklen_t length)
{
    if (!stream->cluster->tls && !address_is_loopback(address))
        cluster_link_stream_fail(
            stream,
            "it is not on this machine, and plain TCP is only for this machine; add ca, cert and key");
    else
        connect_to(stream, (const struct sockaddr *)address, length);
}

static void connect_over_unix(struct cluster_link_stream *stream)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s",
                   address_of(stream)); /* checked: it fits */
    connect_to(stream, (const struct sockaddr *)&address, sizeof address);
}

static void on_resolved(void *user, int failure, const struct sockaddr_storage *address, socklen_t length)
{
    struct cluster_link_stream *stream = user;

    stream->resolve = NULL;
    if (failure)
        cluster_link_stream_fail(stream, "the name cannot be looked up: %s", gai_strerror(failure));
    else
        connect_over_tcp(stream, address, length);
}

/* One and the other of the two addresses that it has by definition. */
static void take_localhost(struct address_parts *parts, unsigned attempt)
{
    (void)snprintf(parts->host, sizeof parts->host, "%s", attempt % 2 == 0 ? "127.0.0.1" : "::1");
}

static void find(struct cluster_link_stream *stream)
{
    unsigned attempt = stream->cluster->attempts[stream->which]++;
    struct sockaddr_storage address;
    struct address_parts parts;
    socklen_t length;

    if (address_split(address_of(stream), &parts, NULL) != GAVEL_OK) {
        cluster_link_stream_fail(stream, "this is not an address; write host:port");
        return;
    }
    if (cluster_link_is_localhost(&parts))
        take_localhost(&parts, attempt);
    if (address_is_numeric(&parts, &address, &length)) {
        connect_over_tcp(stream, &address, length);
        return;
    }
    stream->resolve = resolve_begin(stream->cluster->base, &parts, attempt, on_resolved, stream);
    if (!stream->resolve)
        cluster_link_stream_fail(stream, "the name cannot be looked up: no thread for it");
}

void cluster_link_stream_open(struct cluster_link *cluster, size_t which)
{
    struct cluster_link_stream *stream;

    cluster_link_stream_close(cluster);
    stream = calloc(1, sizeof *stream);
    if (!stream)
        return; /* the client waits for a while, and tries the next */
    stream->cluster = cluster;
    stream->which = which;
    stream->fd = -1;
    cluster->stream = stream;
    if (cluster_link_is_path(address_of(stream)))
        connect_over_unix(stream);
    else
        find(stream);
}

void cluster_link_stream_close(struct cluster_link *cluster)
{
    struct cluster_link_stream *stream = cluster->stream;

    if (!stream)
        return;
    cluster->stream = NULL;
    resolve_cancel(stream->resolve);
    stream->resolve = NULL;
    if (stream->bytes) {
        bufferevent_setcb(stream->bytes, NULL, NULL, NULL, NULL);
        (void)bufferevent_disable(stream->bytes, EV_READ | EV_WRITE);
    }
    if (stream->connected)
        (void)event_del(stream->connected);
    SLIST_INSERT_HEAD(&cluster->dead, stream, entry);
    event_active(cluster->turn, EV_TIMEOUT, 0);
}

void cluster_link_stream_reap(struct cluster_link *cluster)
{
    struct cluster_link_stream *stream;

    while ((stream = SLIST_FIRST(&cluster->dead))) {
        SLIST_REMOVE_HEAD(&cluster->dead, entry);
        if (stream->connected)
            event_free(stream->connected);
        if (stream->bytes)
            bufferevent_free(stream->bytes);
        if (stream->fd >= 0)
            (void)close(stream->fd);
        free(stream);
    }
}
