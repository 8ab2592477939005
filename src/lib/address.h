/* SPDX-License-Identifier: Apache-2.0 */

/* Addresses of doorbells: numeric, with a port, IPv4 or IPv6. */
#ifndef LIB_ADDRESS_H
#define LIB_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/*
 * Parses "host", "host:port", "[v6]" or "[v6]:port"; the port is 0 if there is
 * none. False if it is none of these.
 */
bool address_parse(const char *text, union address *ret_address, socklen_t *ret_size);

/* Whether it means "all of mine": one can bind to it, but it is useless in a registration. */
bool address_is_wildcard(const union address *address);

/* "host:port" or "[v6]:port". */
void address_format(const union address *address, char *buffer, size_t size);

#endif
