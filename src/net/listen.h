/* SPDX-License-Identifier: Apache-2.0 */

/* A socket that listens, or for SOCK_DGRAM one that receives. */
#ifndef NET_LISTEN_H
#define NET_LISTEN_H

#include <sys/socket.h>

/* Returns the descriptor, or a negative errno. */
int listen_once(const struct sockaddr *address, socklen_t length, int type, int backlog);

/* The same, but a port that is taken is tried again for a second, see os/retry.h. */
int listen_open(const struct sockaddr *address, socklen_t length, int type, int backlog);

#endif
