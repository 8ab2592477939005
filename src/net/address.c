/* SPDX-License-Identifier: Apache-2.0 */

#include "net/address.h"

#include "base/error.h"
#include "net/transport.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_port(const char *text)
{
    size_t length = strspn(text, "0123456789");

    return length >= 1 && length <= 5 && text[length] == '\0' && strtol(text, NULL, 10) <= UINT16_MAX;
}

/* Where the host ends and the port begins; NULL if it is no address. */
static const char *find_colon(const char *address, const char **ret_host, size_t *ret_length)
{
    const char *colon = strrchr(address, ':');

    if (!colon || colon == address)
        return NULL;
    *ret_host = address;
    *ret_length = (size_t)(colon - address);
    if (address[0] == '[') {
        if (colon[-1] != ']' || *ret_length < 3)
            return NULL;
        *ret_host = address + 1;
        *ret_length -= 2;
        return colon;
    }
    /* A second colon is an IPv6 address without its brackets, and nobody knows where its port begins. */
    return memchr(address, ':', *ret_length) ? NULL : colon;
}

enum gavel_status address_split(const char *address, struct address_parts *ret_parts,
                                struct gavel_error *error)
{
    const char *host, *colon = NULL;
    size_t length = 0;

    if (strlen(address) <= PEER_ADDRESS_MAX)
        colon = find_colon(address, &host, &length);
    if (!colon || !is_port(colon + 1))
        return error_set(
            error, GAVEL_ERR_INVALID,
            "\"%.100s\" is not an address; write host:port, the host as in 10.0.0.1:PORT, node1:PORT or [fe80::1]:PORT",
            address);
    memcpy(ret_parts->host, host, length);
    ret_parts->host[length] = '\0';
    memcpy(ret_parts->port, colon + 1, strlen(colon + 1) + 1);
    return GAVEL_OK;
}

static int look_up(const struct address_parts *parts, int flags, unsigned attempt,
                   struct sockaddr_storage *ret_address, socklen_t *ret_length)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    const struct addrinfo *chosen;
    struct addrinfo *found;
    unsigned count = 0;
    int failure = getaddrinfo(parts->host, parts->port, &hints, &found);

    if (failure)
        return failure;
    for (chosen = found; chosen; chosen = chosen->ai_next)
        count++;
    if (count == 0) { /* not that it should happen */
        freeaddrinfo(found);
        return EAI_NONAME;
    }
    chosen = found;
    for (unsigned i = attempt % count; i > 0; i--)
        chosen = chosen->ai_next;
    memcpy(ret_address, chosen->ai_addr, chosen->ai_addrlen);
    *ret_length = chosen->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

bool address_is_numeric(const struct address_parts *parts, struct sockaddr_storage *ret_address,
                        socklen_t *ret_length)
{
    return look_up(parts, AI_NUMERICHOST, 0, ret_address, ret_length) == 0;
}

int address_look_up(const struct address_parts *parts, unsigned attempt, struct sockaddr_storage *ret_address,
                    socklen_t *ret_length)
{
    return look_up(parts, AI_ADDRCONFIG, attempt, ret_address, ret_length);
}

enum gavel_status address_resolve(const char *address, struct sockaddr_storage *ret_address,
                                  socklen_t *ret_length, struct gavel_error *error)
{
    struct address_parts parts;
    enum gavel_status status = address_split(address, &parts, error);
    int failure;

    if (status != GAVEL_OK)
        return status;
    if (address_is_numeric(&parts, ret_address, ret_length))
        return GAVEL_OK;
    failure = address_look_up(&parts, 0, ret_address, ret_length);
    if (failure == 0)
        return GAVEL_OK;
    return error_set(error, GAVEL_ERR_IO,
                     "\"%s\" has no address: %s; check the name, or write the address in numbers", parts.host,
                     gai_strerror(failure));
}

bool address_is_loopback(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;

        return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (address->ss_family == AF_INET6) {
        const struct in6_addr *v6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

        return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == IN_LOOPBACKNET);
    }
    return false;
}

void address_write(const struct sockaddr_storage *address, char buffer[ADDRESS_TEXT_MAX])
{
    char host[INET6_ADDRSTRLEN] = "?";
    bool is_v6 = address->ss_family == AF_INET6;
    const void *bytes = is_v6 ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
                              : (const void *)&((const struct sockaddr_in *)address)->sin_addr;

    (void)inet_ntop(address->ss_family, bytes, host, sizeof host); /* "?" for what is neither */
    (void)snprintf(buffer, ADDRESS_TEXT_MAX, is_v6 ? "[%s]:%u" : "%s:%u", host,
                   (unsigned)address_port(address));
}

uint16_t address_port(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
    return ntohs(((const struct sockaddr_in *)address)->sin_port);
}
