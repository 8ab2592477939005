/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where the API listens. Beyond this machine it needs TLS or a token, and for calls
 * that change something the token. This is checked here, on the addresses that the
 * name really resolves to.
 */
#include "daemon/api/internal.h"

#include "base/error.h"
#include "net/listen.h"
#include "net/transport.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 1024

static bool is_loopback(const struct addrinfo *info)
{
    struct sockaddr_storage address = {0};

    memcpy(&address, info->ai_addr, info->ai_addrlen < sizeof address ? info->ai_addrlen : sizeof address);
    return address_is_loopback(&address);
}

/* "host:port", "[v6]:port", ":port" (all addresses). */
static bool split(const char *text, char host[PEER_ADDRESS_MAX + 1], char port[8])
{
    const char *colon = strrchr(text, ':');
    size_t length;

    if (!colon || strlen(colon + 1) > 5 || strspn(colon + 1, "0123456789") != strlen(colon + 1) || !colon[1])
        return false;
    length = (size_t)(colon - text);
    if (length > PEER_ADDRESS_MAX)
        return false;
    if (length >= 2 && text[0] == '[' && colon[-1] == ']') {
        text++;
        length -= 2;
    }
    memcpy(host, text, length);
    host[length] = '\0';
    (void)snprintf(port, 8, "%s", colon + 1);
    return true;
}

static enum gavel_status listen_on(const char *name, const struct addrinfo *info, int *ret_fd,
                                   uint16_t *ret_port, struct gavel_error *error)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } bound = {.v6 = {0}};
    socklen_t size = sizeof bound;
    int fd = listen_open(info->ai_addr, info->ai_addrlen, SOCK_STREAM, BACKLOG);
    int reason = fd < 0 ? -fd : getsockname(fd, &bound.any, &size) ? errno : 0;

    if (reason && fd >= 0)
        (void)close(fd); /* nothing was sent on it */
    if (reason)
        return error_set(
            error, GAVEL_ERR_IO, "api: cannot listen on %s: %s. %s", name, strerror(reason),
            reason == EADDRINUSE
                ? "Another program uses this port: stop it, or choose another one with `api:` or --api"
                : "Choose an address of this machine with `api:` or --api");
    *ret_fd = fd;
    *ret_port = ntohs(bound.any.sa_family == AF_INET6 ? bound.v6.sin6_port : bound.v4.sin_port);
    return GAVEL_OK;
}

enum gavel_status api_bind(const struct daemon_config *config, int *ret_fd, uint16_t *ret_port,
                           struct gavel_error *error)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    bool is_open = !config->has_api_tls && config->token[0] == '\0';
    char host[PEER_ADDRESS_MAX + 1];
    struct addrinfo *list = NULL;
    enum gavel_status status;
    char port[8];
    int failure;

    if (!split(config->api_listen, host, port))
        return error_set(error, GAVEL_ERR_INVALID,
                         "api: \"%s\" is not an address; write host:port, such as 127.0.0.1:7500",
                         config->api_listen);
    failure = getaddrinfo(host[0] ? host : NULL, port, &hints, &list);
    if (failure || !list)
        return error_set(error, GAVEL_ERR_INVALID, "api: %s cannot be resolved: %s. Write a numeric address",
                         config->api_listen, gai_strerror(failure));
    status = GAVEL_OK;
    for (const struct addrinfo *info = list; info && is_open && status == GAVEL_OK; info = info->ai_next)
        if (!is_loopback(info))
            status = error_set(
                error, GAVEL_ERR_INVALID,
                "api: %s can be reached from other machines, and anybody there could depose the leader. "
                "Set `token:` or `tls: {api: true}`, or listen on 127.0.0.1",
                config->api_listen);
    if (status == GAVEL_OK)
        status = listen_on(config->api_listen, list, ret_fd, ret_port, error);
    freeaddrinfo(list);
    return status;
}

bool api_is_open(int fd)
{
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;

    return getsockname(fd, (struct sockaddr *)&bound, &size) || !address_is_loopback(&bound);
}
