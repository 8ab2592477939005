/* SPDX-License-Identifier: Apache-2.0 */

/* Addresses as people write them. Whether a name resolves is checked later, when everything is read. */
#include "base/error.h"
#include "daemon/config/draft.h"
#include "net/transport.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* Where the port begins; NULL if there is none. *ret_host_length is without the colon. */
static const char *split(const char *text, size_t *ret_host_length)
{
    const char *end = text[0] == '[' ? strchr(text, ']') : NULL;
    const char *colon = strchr(end ? end : text, ':');

    *ret_host_length = colon ? (size_t)(colon - text) : strlen(text);
    return colon ? colon + 1 : NULL;
}

static bool is_port(const char *text)
{
    size_t length = strlen(text);
    long number =
        length > 0 && length <= 5 && strspn(text, "0123456789") == length ? strtol(text, NULL, 10) : 0;

    return number > 0 && number <= UINT16_MAX;
}

static bool is_host(const char *text, size_t length)
{
    struct in6_addr address;
    char host[PEER_ADDRESS_MAX + 1];

    if (length == 0 || length > PEER_ADDRESS_MAX)
        return false;
    memcpy(host, text, length);
    host[length] = '\0';
    if (host[0] != '[')
        return strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == length &&
               host[0] != '-';
    host[length - 1] = '\0'; /* the other bracket, or what is wrong */
    return text[length - 1] == ']' && inet_pton(AF_INET6, host + 1, &address) == 1;
}

enum gavel_status config_address_read(const char *text, const char *port,
                                      char ret_address[PEER_ADDRESS_MAX + 1], struct gavel_error *error)
{
    size_t host_length;
    const char *given = split(text, &host_length);
    struct in6_addr address;

    if (inet_pton(AF_INET6, text, &address) == 1)
        return error_set(error, GAVEL_ERR_INVALID, "\"%.60s\" has no room for a port; write [%.60s]:%s", text,
                         text, port);
    if (given && host_length == 0)
        return error_set(error, GAVEL_ERR_INVALID,
                         "\"%.80s\" has no host; write 0.0.0.0%.10s for all addresses of this machine", text,
                         text);
    if (!is_host(text, host_length))
        return error_set(
            error, GAVEL_ERR_INVALID,
            "\"%.80s\" is not an address; write a name or a number with a port, such as 10.0.0.1:%s", text,
            port);
    if (given && !is_port(given))
        return error_set(error, GAVEL_ERR_INVALID, "\"%.80s\" has no port from 1 to 65535 after the colon",
                         text);
    if (host_length + 1 + strlen(given ? given : port) > PEER_ADDRESS_MAX)
        return error_set(error, GAVEL_ERR_INVALID, "an address has at most %d bytes", PEER_ADDRESS_MAX);
    (void)snprintf(ret_address, PEER_ADDRESS_MAX + 1, "%.*s:%s", (int)host_length, text,
                   given ? given : port); /* it fits */
    return GAVEL_OK;
}

bool config_address_is_any(const char *address)
{
    return strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
}

bool config_address_is_same(const char *a, const char *b)
{
    struct sockaddr_storage first = {0}, second = {0};
    socklen_t first_length = 0, second_length = 0;

    if (strcmp(a, b) == 0)
        return true;
    if (address_resolve(a, &first, &first_length, NULL) != GAVEL_OK ||
        address_resolve(b, &second, &second_length, NULL) != GAVEL_OK)
        return false;
    return first_length == second_length && memcmp(&first, &second, first_length) == 0;
}
