/* SPDX-License-Identifier: Apache-2.0 */

/* From an address to a connected socket: look up the name, connect, pass it on. Nothing blocks. */

#include "net/internal.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

void dial_stop(struct link *link)
{
    resolve_cancel(link->resolve);
    link->resolve = NULL;
    if (link->fd < 0)
        return;
    (void)event_del(&link->connected);
    (void)close(link->fd);
    link->fd = -1;
}

static void fail(struct link *link, const char *what, const char *reason)
{
    char text[PEER_TEXT_MAX + 1];

    text_write(text, sizeof text, "%s: %s", what, reason);
    link_failed(link, TRANSPORT_FAILED, text, NULL);
}

static void connected(evutil_socket_t fd, short events, void *context)
{
    struct link *link = context;
    socklen_t length = sizeof errno;
    int failure = 0;

    (void)events;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &length) != 0)
        failure = errno;
    if (failure) {
        fail(link, "cannot connect", strerror(failure));
        return;
    }
    link->fd = -1; /* belongs to the connection now */
    link->out = connection_new(link->transport, fd, true, link->where.address);
    if (!link->out) {
        fail(link, "cannot connect", "out of memory");
        return;
    }
    link->out->link = link;
    if (!link->out->ssl)
        greet_begin(link->out);
}

static void connect_to(struct link *link, const struct sockaddr_storage *address, socklen_t length)
{
    if (!link->transport->tls && !address_is_loopback(address)) {
        fail(link, "not dialled", "plain TCP only goes to loopback; set tls to go further");
        return;
    }
    link->fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link->fd < 0) {
        fail(link, "no socket", strerror(errno));
        return;
    }
    /* Fails only for signals. */
    (void)event_assign(&link->connected, link->transport->base, link->fd, EV_WRITE, connected, link);
    socket_tune(link->fd);
    /* Not before: a resolver whose first server is dead needs longer, and answers all the same. */
    link_limit(link);
    link->resolved_to = *address;
    if (connect(link->fd, (const struct sockaddr *)address, length) != 0 && errno != EINPROGRESS) {
        fail(link, "cannot connect", strerror(errno));
        return;
    }
    if (event_add(&link->connected, NULL) != 0)
        fail(link, "cannot connect", "out of memory");
}

/* Where it was last time; false if it has never been dialled there. */
static bool connect_as_before(struct link *link)
{
    const struct sockaddr_storage address = link->resolved_to;

    if (address.ss_family == AF_UNSPEC)
        return false;
    connect_to(link, &address,
               address.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
    return true;
}

static void resolved(void *user, int failure, const struct sockaddr_storage *address, socklen_t length)
{
    struct link *link = user;

    link->resolve = NULL;
    if (failure && connect_as_before(link))
        return; /* nobody loses a cluster because the names cannot be asked for */
    if (failure)
        fail(link, "the name cannot be looked up", gai_strerror(failure));
    else
        connect_to(link, address, length);
}

void dial_begin(struct link *link)
{
    struct sockaddr_storage address;
    struct address_parts parts;
    socklen_t length;

    if (address_split(link->where.address, &parts, NULL) != GAVEL_OK) {
        fail(link, "not dialled", "this is not an address; write host:port");
        return;
    }
    if (address_is_numeric(&parts, &address, &length)) {
        connect_to(link, &address, length);
        return;
    }
    /* A connection that was lost is made again where it was; names may take long, and are asked for if that
     * fails. */
    if (link->failed == 0 && connect_as_before(link))
        return;
    link->resolve = resolve_begin(link->transport->base, &parts, (unsigned)link->failed, resolved, link);
    if (!link->resolve)
        fail(link, "the name cannot be looked up", "no thread for it");
}
