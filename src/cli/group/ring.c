/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/group/ring.h"

#include "wire/doorbell.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Splits host and port at the last colon; brackets around an IPv6 host are taken off. */
static bool split(const char *address, char host[static ADDRESS_MAX_BYTES + 1], const char **ret_port)
{
    const char *colon = strrchr(address, ':');
    size_t length = colon ? (size_t)(colon - address) : 0;

    if (length == 0 || length > ADDRESS_MAX_BYTES)
        return false;
    if (address[0] == '[' && address[length - 1] == ']') {
        address++;
        length -= 2;
    }
    memcpy(host, address, length);
    host[length] = '\0';
    *ret_port = colon + 1;
    return true;
}

void ring_address(const char *address, const char *group)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    uint8_t datagram[DOORBELL_MAX_BYTES];
    size_t size = doorbell_encode(group, datagram);
    char host[ADDRESS_MAX_BYTES + 1];
    struct addrinfo *info = NULL;
    const char *port;
    int fd;

    if (!split(address, host, &port) || getaddrinfo(host, port, &hints, &info))
        return;
    fd = socket(info->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        (void)sendto(fd, datagram, size, MSG_NOSIGNAL, info->ai_addr, info->ai_addrlen); /* only a hint */
        close(fd);
    }
    freeaddrinfo(info);
}
