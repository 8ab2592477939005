/* SPDX-License-Identifier: Apache-2.0 */

#include "net/listen.h"

#include "os/retry.h"

#include <errno.h>
#include <unistd.h>

int listen_once(const struct sockaddr *address, socklen_t length, int type, int backlog)
{
    int fd = socket(address->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1, failure;

    if (fd < 0)
        return -errno;
    if (type == SOCK_STREAM)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on,
                         sizeof on); /* connections of a dead node linger */
    if (bind(fd, address, length) == 0 && (type != SOCK_STREAM || listen(fd, backlog) == 0))
        return fd;
    failure = errno;
    (void)close(fd); /* nothing was sent on it */
    return -failure;
}

int listen_open(const struct sockaddr *address, socklen_t length, int type, int backlog)
{
    struct retry retry = {0};
    int fd;

    do
        fd = listen_once(address, length, type, backlog);
    while (fd == -EADDRINUSE && retry_wait(&retry));
    return fd;
}
