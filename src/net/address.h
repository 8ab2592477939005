/* SPDX-License-Identifier: Apache-2.0 */

/* Addresses as people write them: "host:port", "[v6]:port". For other directories, see transport.h. */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include "wire/peer.h"

#include <sys/socket.h>

struct address_parts {
    char host[PEER_ADDRESS_MAX + 1]; /* without brackets */
    char port[6];
};

/* ERR_INVALID, with examples of the right form. */
GAVEL_CHECKED enum gavel_status address_split(const char *address, struct address_parts *ret_parts,
                                              struct gavel_error *error);

/* Without a look-up; false if the host is a name. */
bool address_is_numeric(const struct address_parts *parts, struct sockaddr_storage *ret_address,
                        socklen_t *ret_length);

/* Asks the system's resolver, which may take seconds. If a host has several addresses, another attempt
 * gets another one. Returns 0 or an error of getaddrinfo(). */
int address_look_up(const struct address_parts *parts, unsigned attempt, struct sockaddr_storage *ret_address,
                    socklen_t *ret_length);

/* "host:port" in numbers. */
#define ADDRESS_TEXT_MAX 64
void address_write(const struct sockaddr_storage *address, char buffer[ADDRESS_TEXT_MAX]);

uint16_t address_port(const struct sockaddr_storage *address);

#endif
