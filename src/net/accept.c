/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The listening sockets: TCP for connections, UDP for obituaries, on one port. A
 * connection must greet in time; if there are too many, the one that has waited
 * longest without a greeting makes room.
 */

#include "net/internal.h"

#include "base/error.h"
#include "net/listen.h"
#include "os/retry.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 128
#define AT_ONCE 16
/* How often a port that is free for TCP may be taken for UDP, if we may choose. */
#define PORT_ATTEMPTS 16

static const struct timeval pause_of_accepting = {.tv_usec = 100000};

/* The oldest of those that we can do without: not greeted, or greeted by no peer of ours. */
static struct connection *find_expendable(const struct transport *transport)
{
    struct connection *connection, *worst = NULL;

    for (connection = LIST_FIRST(&transport->accepted); connection;
         connection = LIST_NEXT(connection, entry)) {
        if (connection->phase == PHASE_UP && connection->link)
            continue;
        if (!worst || (connection->phase != PHASE_UP && worst->phase == PHASE_UP) ||
            ((connection->phase == PHASE_UP) == (worst->phase == PHASE_UP) &&
             connection->made_at < worst->made_at))
            worst = connection;
    }
    return worst;
}

static void take(struct transport *transport, int fd, const struct sockaddr_storage *address)
{
    char remote[ADDRESS_TEXT_MAX];

    if (transport->accepted_count >= transport->settings.accepted_max) {
        struct connection *expendable = find_expendable(transport);

        if (!expendable) {
            (void)close(fd);
            return;
        }
        connection_close(expendable);
    }
    address_write(address, remote);
    socket_tune(fd);
    (void)connection_new(transport, fd, false, remote); /* without memory it is closed, and comes again */
}

static void on_connection(evutil_socket_t listener, short events, void *context)
{
    struct transport *transport = context;

    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        struct sockaddr_storage address = {0};
        socklen_t length = sizeof address;
        int fd = accept4(listener, (struct sockaddr *)&address, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            take(transport, fd, &address);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* It would be readable all the time. */
            (void)event_del(&transport->accepting);
            (void)event_add(&transport->accept_again, &pause_of_accepting);
        }
        return;
    }
}

static void on_pause_over(evutil_socket_t fd, short events, void *context)
{
    struct transport *transport = context;

    (void)fd;
    (void)events;
    (void)event_add(&transport->accepting, NULL);
}

static enum gavel_status fail(const struct transport *transport, int failure, struct gavel_error *error)
{
    const char *listen = transport->settings.listen;

    if (failure == EADDRINUSE)
        return error_set(
            error, GAVEL_ERR_IO,
            "cannot listen on %s: another process uses that port; stop it, or set another \"listen\"",
            listen);
    if (failure == EADDRNOTAVAIL)
        return error_set(error, GAVEL_ERR_IO, "cannot listen on %s: this machine has no such address",
                         listen);
    if (failure == EACCES)
        return error_set(error, GAVEL_ERR_IO,
                         "cannot listen on %s: ports below 1024 are for root; use a higher one", listen);
    return error_set(error, GAVEL_ERR_IO, "cannot listen on %s: %s", listen, strerror(failure));
}

/* Returns 0 or an errno. */
static int open_both(struct transport *transport, struct sockaddr_storage *address, socklen_t length)
{
    struct sockaddr_storage bound = {0};
    socklen_t bound_length = sizeof bound;

    transport->listener = listen_once((const struct sockaddr *)address, length, SOCK_STREAM, BACKLOG);
    if (transport->listener < 0)
        return -transport->listener;
    if (getsockname(transport->listener, (struct sockaddr *)&bound, &bound_length) != 0)
        return errno;
    transport->port = address_port(&bound);
    transport->datagrams = listen_once((const struct sockaddr *)&bound, bound_length, SOCK_DGRAM, 0);
    if (transport->datagrams >= 0)
        return 0;
    (void)close(transport->listener);
    transport->listener = -1;
    return -transport->datagrams;
}

/* A port of our choice, or the one that is asked for. Returns 0 or an errno. */
static int open_somewhere(struct transport *transport, struct sockaddr_storage *address, socklen_t length)
{
    struct retry retry = {0};
    int failure = EADDRINUSE;

    if (address_port(address) == 0) {
        for (int i = 0; i < PORT_ATTEMPTS && failure == EADDRINUSE; i++)
            failure = open_both(transport, address, length);
        return failure;
    }
    do
        failure = open_both(transport, address, length);
    while (failure == EADDRINUSE && retry_wait(&retry));
    return failure;
}

enum gavel_status accept_open(struct transport *transport, struct gavel_error *error)
{
    struct sockaddr_storage address;
    socklen_t length;
    enum gavel_status status = address_resolve(transport->settings.listen, &address, &length, error);
    int failure;

    if (status != GAVEL_OK)
        return status;
    if (!transport->tls && !address_is_loopback(&address))
        return error_set(
            error, GAVEL_ERR_INVALID,
            "will not listen on %s without TLS: anybody there could act as a member; set tls (\"gavel cert\" creates the files), or listen on 127.0.0.1",
            transport->settings.listen);
    failure = open_somewhere(transport, &address, length);
    if (failure)
        return fail(transport, failure, error);
    /* These fail only for signals. */
    (void)event_assign(&transport->accepting, transport->base, transport->listener, EV_READ | EV_PERSIST,
                       on_connection, transport);
    (void)event_assign(&transport->receiving, transport->base, transport->datagrams, EV_READ | EV_PERSIST,
                       datagram_receive, transport);
    (void)evtimer_assign(&transport->accept_again, transport->base, on_pause_over, transport);
    if (event_add(&transport->accepting, NULL) == 0 && event_add(&transport->receiving, NULL) == 0)
        return GAVEL_OK;
    return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
}

void accept_close(struct transport *transport)
{
    if (transport->datagrams >= 0) {
        (void)event_del(&transport->accepting);
        (void)event_del(&transport->accept_again);
        (void)event_del(&transport->receiving);
        (void)close(transport->datagrams);
    }
    if (transport->listener >= 0)
        (void)close(transport->listener);
}
