/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connections: which are accepted, and which are closed.
 *
 * evhttp has no defence against slow clients: each byte restarts its time-out, and
 * it reports a connection only when its first request is complete. So each
 * connection is tracked here from the moment it is accepted: evhttp asks for a
 * bufferevent, which is looked at again, within the same turn of the loop, once
 * evhttp has tied it to a connection. From then on
 *
 *   - a request must be complete API_REQUEST_S after its first byte;
 *   - when descriptors run short, the least recently used connection is closed;
 *   - a handler is told when its client leaves.
 *
 * What evhttp answers by itself (to what is not HTTP) is an HTML page. Here it
 * becomes an error like all others before it goes out.
 */
#include "daemon/api/internal.h"

#include "base/error.h"
#include "os/clock.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* evhttp goes on reading while an answer is written, and would keep all of it. */
#define READ_AHEAD_MAX (2 * API_BODY_MAX + API_HEADERS_MAX)

/* The listener's callbacks carry a pointer of evhttp's; a thread has but one API. */
static _Thread_local struct api *own_api;

static void cut(struct api_connection *connection)
{
    connection->api->counts.cut++;
    evhttp_connection_free(connection->http); /* calls on_close */
}

static void on_close(struct evhttp_connection *http, void *user)
{
    struct api_connection *connection = user;
    struct api *api = connection->api;

    (void)http;
    if (connection->stream)
        api_stream_gone(connection->stream);
    if (connection->pending)
        api_pending_gone(connection->pending);
    if (connection->later)
        api_later_gone(connection->later);
    if (connection->is_writing)
        LIST_REMOVE(connection, next_page);
    TAILQ_REMOVE(&api->connections, connection, next);
    api->connection_count--;
    if (connection->fd >= 0)
        api->by_fd[connection->fd] = NULL;
    free(connection);
}

static void on_input(struct evbuffer *buffer, const struct evbuffer_cb_info *info, void *user)
{
    struct api_connection *connection = user;

    (void)buffer;
    if (info->n_added > 0 && connection->reading_since == 0)
        connection->reading_since = clock_now();
}

/* Bytes go out, and no handler has been asked: evhttp answers by itself. */
static void on_output(struct evbuffer *buffer, const struct evbuffer_cb_info *info, void *user)
{
    struct api_connection *connection = user;

    (void)buffer;
    if (info->n_added > 0 && !connection->is_answering && !connection->is_writing) {
        connection->is_writing = true;
        LIST_INSERT_HEAD(&connection->api->pages, connection, next_page);
        event_active(connection->api->pages_event, EV_TIMEOUT, 0);
    }
}

static void write_page(struct evbuffer *output, int code)
{
    char body[256];
    const char *message = "this is not an HTTP request, or its headers are far too large";
    enum gavel_status status = GAVEL_ERR_INVALID;
    int length;

    if (code < 400 || code > 599)
        code = 501; /* evhttp has no number for a method that it does not know */
    if (code == 413) {
        status = GAVEL_ERR_TOO_LARGE;
        message = "the request is far too large, or its parts do not fit together";
    }
    if (code == 501)
        message = "unknown method; use GET, POST, PUT or DELETE";
    length = snprintf(body, sizeof body, "{\"error\":{\"code\":%d,\"name\":\"%s\",\"message\":\"%s\"}}\n",
                      status, gavel_status_name(status), message);
    (void)evbuffer_add_printf(
        output,
        "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: "
        "close\r\n\r\n%s",
        code, api_code_reason(code), length, body);
}

/* Still within the turn of the loop in which evhttp wrote, so nothing has been sent (but over TLS, where the
 * page has gone out already and stays what it is). */
static void rewrite_page(struct api_connection *connection)
{
    struct evbuffer *output = bufferevent_get_output(connection->bev);
    char start[16] = "";
    int code = 0;

    (void)evbuffer_copyout(output, start, sizeof start - 1);
    if (sscanf(start, "HTTP/%*d.%*d %d", &code) != 1 || code == 100)
        return;
    api_count(connection->api, api_route_count(), code < 400 ? 501 : code);
    /* A bufferevent keeps its output from being taken away; this is the one place that does it. */
    (void)evbuffer_unfreeze(output, 1);
    if (evbuffer_drain(output, evbuffer_get_length(output)) == 0)
        write_page(output, code);
    (void)evbuffer_freeze(output, 1);
}

static void on_pages(evutil_socket_t fd, short what, void *user)
{
    struct api *api = user;
    struct api_connection *connection;

    (void)fd;
    (void)what;
    while ((connection = LIST_FIRST(&api->pages))) {
        rewrite_page(connection);
        LIST_REMOVE(connection, next_page);
        connection->is_writing = false;
    }
}

/* The one that was not used for longest goes; the newcomer may be somebody who wants to know the leader.
 * False if all are in use. */
static bool make_room(struct api *api, const struct api_connection *newcomer)
{
    struct api_connection *connection;

    for (connection = TAILQ_FIRST(&api->connections); connection; connection = TAILQ_NEXT(connection, next)) {
        if (connection != newcomer && !connection->is_answering && !connection->stream) {
            cut(connection);
            return true;
        }
    }
    return false;
}

/* Remembers which connection a descriptor stands for. */
static bool enter(struct api *api, struct api_connection *connection)
{
    int fd = bufferevent_getfd(connection->bev);

    if (fd < 0)
        return false;
    if ((size_t)fd >= api->by_fd_size) {
        size_t size = (size_t)fd + 64;
        struct api_connection **larger = reallocarray(api->by_fd, size, sizeof *larger);

        if (!larger)
            return false;
        memset(larger + api->by_fd_size, 0, (size - api->by_fd_size) * sizeof *larger);
        api->by_fd = larger;
        api->by_fd_size = size;
    }
    api->by_fd[fd] = connection;
    connection->fd = fd;
    return true;
}

static void welcome(struct api *api, struct bufferevent *bev)
{
    struct evhttp_connection *http = NULL;
    struct api_connection *connection;
    bufferevent_data_cb readable;
    bufferevent_data_cb writable;
    bufferevent_event_cb happened;
    void *owner = NULL;
    int yes = 1;

    /* The owner of the callbacks is evhttp's connection; none if evhttp has given it up already. */
    bufferevent_getcb(bev, &readable, &writable, &happened, &owner);
    http = owner;
    if (!http)
        return;
    connection = calloc(1, sizeof *connection);
    if (!connection) {
        evhttp_connection_free(http);
        return;
    }
    *connection =
        (struct api_connection){.api = api, .http = http, .bev = bev, .fd = -1, .opened_at = clock_now()};
    TAILQ_INSERT_TAIL(&api->connections, connection, next);
    api->connection_count++;
    api->counts.connections++;
    evhttp_connection_set_closecb(http, on_close, connection);
    bufferevent_setwatermark(bev, EV_READ, 0, READ_AHEAD_MAX);
    (void)setsockopt(bufferevent_getfd(bev), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes); /* slower without */
    if (!enter(api, connection) || !evbuffer_add_cb(bufferevent_get_input(bev), on_input, connection) ||
        !evbuffer_add_cb(bufferevent_get_output(bev), on_output, connection)) {
        evhttp_connection_free(http);
        return;
    }
    /* Half of what is spare may be lent to one that only asks and goes; never what the node itself needs. */
    if (connection->fd >= api->fd_limit - API_SPARE_FDS && !make_room(api, connection) &&
        connection->fd >= api->fd_limit - API_SPARE_FDS / 2)
        cut(connection);
}

static void on_newborns(evutil_socket_t fd, short what, void *user)
{
    struct api *api = user;
    struct api_newborn *newborn;

    (void)fd;
    (void)what;
    while ((newborn = api->newborns)) {
        api->newborns = newborn->next;
        if (!api->newborns)
            api->newborns_end = &api->newborns;
        welcome(api, newborn->bev);
        (void)bufferevent_decref(newborn->bev);
        free(newborn);
    }
}

/* evhttp wants a bufferevent for a connection that it has accepted. NULL: it makes a plain one itself. */
static struct bufferevent *on_accept(struct event_base *base, void *user)
{
    struct api *api = user;
    struct api_newborn *newborn = calloc(1, sizeof *newborn);
    struct bufferevent *bev = NULL;

    if (api->tls) {
        SSL *ssl = SSL_new(api->tls);

        if (ssl)
            bev = bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                                 BEV_OPT_CLOSE_ON_FREE);
        if (bev)
            bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    } else {
        bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    }
    if (!bev || !newborn) {
        free(newborn);
        return bev;
    }
    bufferevent_incref(bev);
    newborn->bev = bev;
    *api->newborns_end = newborn;
    api->newborns_end = &newborn->next;
    event_active(api->newborn_event, EV_TIMEOUT, 0);
    return bev;
}

/* Without a pause the loop would spin: the connection that cannot be accepted stays readable. */
static void on_accept_failed(struct evconnlistener *listener, void *user)
{
    struct timeval pause = {.tv_usec = API_PAUSE_MS * 1000};
    struct api *api = own_api;

    (void)user; /* evhttp's */
    (void)evconnlistener_disable(listener);
    (void)event_add(api->resume_event, &pause);
    (void)make_room(api, NULL); /* if nobody can go, it waits until somebody does */
}

static void on_resume(evutil_socket_t fd, short what, void *user)
{
    struct api *api = user;

    (void)fd;
    (void)what;
    if (!api->is_stopping)
        (void)evconnlistener_enable(api->listener);
}

static bool is_too_slow(const struct api_connection *connection, gavel_ns now)
{
    if (connection->is_answering || connection->stream)
        return false; /* the time-outs of writing see to these */
    if (connection->reading_since > 0 && now - connection->reading_since > API_REQUEST_S * NS_PER_S)
        return true;
    /* Never got as far as a request: also a TLS handshake that trickles in. */
    return connection->requests == 0 && now - connection->opened_at > API_IDLE_S * NS_PER_S;
}

static void on_sweep(evutil_socket_t fd, short what, void *user)
{
    struct api *api = user;
    struct api_connection *connection;
    struct api_connection *next;
    gavel_ns now = clock_now();

    (void)fd;
    (void)what;
    for (connection = TAILQ_FIRST(&api->connections); connection; connection = next) {
        next = TAILQ_NEXT(connection, next);
        if (is_too_slow(connection, now))
            cut(connection);
    }
    api_streams_look(api);
    if (api->is_stopping && now >= api->stop_at)
        (void)event_base_loopexit(api->base, NULL);
}

struct api_connection *api_connection_of(struct api *api, struct evhttp_request *http)
{
    struct evhttp_connection *wanted = evhttp_request_get_connection(http);
    struct bufferevent *bev = wanted ? evhttp_connection_get_bufferevent(wanted) : NULL;
    int fd = bev ? bufferevent_getfd(bev) : -1;

    return fd >= 0 && (size_t)fd < api->by_fd_size ? api->by_fd[fd] : NULL;
}

void api_connections_begin(struct api *api) { own_api = api; }

void api_connection_used(struct api_connection *connection)
{
    struct api *api = connection->api;

    connection->requests++;
    connection->reading_since = 0;
    connection->is_answering = true;
    if (TAILQ_NEXT(connection, next)) {
        TAILQ_REMOVE(&api->connections, connection, next);
        TAILQ_INSERT_TAIL(&api->connections, connection, next);
    }
}

enum gavel_status api_connections_init(struct api *api, int fd)
{
    struct timeval second = {.tv_sec = 1};

    api->newborns_end = &api->newborns;
    TAILQ_INIT(&api->connections);
    LIST_INIT(&api->streams);
    LIST_INIT(&api->laters);
    LIST_INIT(&api->campaigns);
    LIST_INIT(&api->transfers);
    RB_INIT(&api->forwardings);
    LIST_INIT(&api->pages);
    api->newborn_event = event_new(api->base, -1, 0, on_newborns, api);
    api->resume_event = event_new(api->base, -1, 0, on_resume, api);
    api->pages_event = event_new(api->base, -1, 0, on_pages, api);
    api->sweep_event = event_new(api->base, -1, EV_PERSIST, on_sweep, api);
    if (!api->newborn_event || !api->resume_event || !api->pages_event || !api->sweep_event ||
        event_add(api->sweep_event, &second))
        return GAVEL_ERR_NO_MEMORY;
    api->listener =
        evconnlistener_new(api->base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    if (!api->listener)
        return GAVEL_ERR_NO_MEMORY;
    if (!evhttp_bind_listener(api->http, api->listener)) {
        evconnlistener_free(api->listener);
        return GAVEL_ERR_NO_MEMORY;
    }
    evconnlistener_set_error_cb(api->listener, on_accept_failed);
    evhttp_set_bevcb(api->http, on_accept, api);
    evhttp_set_timeout(api->http, API_IDLE_S);
    /* What is a little too large is answered in words by api_dispatch(); what is more is not read at all. */
    evhttp_set_max_headers_size(api->http, 2 * API_HEADERS_MAX);
    evhttp_set_max_body_size(api->http, 2 * API_BODY_MAX);
    evhttp_set_allowed_methods(api->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD |
                                              EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS |
                                              EVHTTP_REQ_TRACE | EVHTTP_REQ_PATCH);
    return GAVEL_OK;
}

void api_connections_done(struct api *api)
{
    if (api->base)
        on_newborns(-1, 0, api); /* so that each is known, and freed with the rest */
    if (api->http)
        evhttp_free(api->http); /* with listener and connections */
    loop_drop(&api->newborn_event);
    loop_drop(&api->resume_event);
    loop_drop(&api->pages_event);
    loop_drop(&api->sweep_event);
    free(api->by_fd);
}
