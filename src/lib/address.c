/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/address.h"

#include "base/record.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse_port(const char *text, in_port_t *ret_port)
{
    char *end;
    long port;

    if (*text < '0' || *text > '9')
        return false;
    port = strtol(text, &end, 10);
    if (*end != '\0' || port > 65535)
        return false;
    *ret_port = htons((in_port_t)port);
    return true;
}

bool address_parse(const char *text, union address *ret_address, socklen_t *ret_size)
{
    char host[ADDRESS_MAX_BYTES + 1];
    bool is_v6 = *text == '[';
    const char *start = is_v6 ? text + 1 : text;
    const char *end = start + strcspn(start, is_v6 ? "]" : ":");
    union address address = {0};
    in_port_t port = 0;

    if (end == start || (size_t)(end - start) >= sizeof host || (is_v6 && *end != ']'))
        return false;
    memcpy(host, start, (size_t)(end - start));
    host[end - start] = '\0';
    if (is_v6)
        end++;
    if (*end != '\0' && (*end != ':' || !parse_port(end + 1, &port)))
        return false;
    if (is_v6) {
        address.v6.sin6_family = AF_INET6;
        address.v6.sin6_port = port;
        if (inet_pton(AF_INET6, host, &address.v6.sin6_addr) != 1)
            return false;
    } else {
        address.v4.sin_family = AF_INET;
        address.v4.sin_port = port;
        if (inet_pton(AF_INET, host, &address.v4.sin_addr) != 1)
            return false;
    }
    *ret_address = address;
    *ret_size = is_v6 ? sizeof address.v6 : sizeof address.v4;
    return true;
}

bool address_is_wildcard(const union address *address)
{
    if (address->any.sa_family == AF_INET)
        return address->v4.sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr);
}

void address_format(const union address *address, char *buffer, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "";

    if (address->any.sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof host); /* the buffer is large enough */
        (void)snprintf(buffer, size, "%s:%u", host, (unsigned)ntohs(address->v4.sin_port));
    } else {
        (void)inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof host); /* likewise */
        (void)snprintf(buffer, size, "[%s]:%u", host, (unsigned)ntohs(address->v6.sin6_port));
    }
}
