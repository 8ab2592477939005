/* SPDX-License-Identifier: Apache-2.0 */

/* The floor of look-ups: whatever comes is sent back. */
#include "bench/http/http_load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 64

int load_echo_listen(uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, LOAD_CONNECTIONS_MAX) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0) {
        (void)close(fd);
        return -1;
    }
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static bool watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void greet(int epoll, int listener)
{
    int yes = 1;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;                                                       /* it went away again */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes); /* without it only slower */
    if (!watch(epoll, fd))
        (void)close(fd);
}

static void answer(int fd)
{
    char buffer[LOAD_ANSWER_MAX];
    ssize_t got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    /* A short request's echo always fits: the other side has read the one before. */
    if (got <= 0 || send(fd, buffer, (size_t)got, MSG_NOSIGNAL | MSG_DONTWAIT) != got)
        (void)close(fd);
}

enum gavel_status load_echo_run(int listener, int control)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    bool is_over = false;
    enum gavel_status status = GAVEL_OK;

    if (epoll < 0 || !watch(epoll, listener) || !watch(epoll, control))
        status = GAVEL_ERR_IO;
    while (status == GAVEL_OK && !is_over) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(epoll, events, EVENTS, -1);
        if (ready < 0 && errno != EINTR)
            status = GAVEL_ERR_IO;
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == control)
                is_over = true;
            else if (fd == listener)
                greet(epoll, listener);
            else
                answer(fd);
        }
    }
    if (epoll >= 0)
        (void)close(epoll);
    return status;
}
