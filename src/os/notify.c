/* SPDX-License-Identifier: Apache-2.0 */

#include "os/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More than any status of ours; a longer one is cut. */
#define DATAGRAM_MAX 1024

/* Digits and nothing else; 0 for everything that is no number. */
static uint64_t number_of(const char *text)
{
    uint64_t number;
    char *end;

    if (!text || *text < '0' || *text > '9')
        return 0;
    errno = 0;
    number = strtoull(text, &end, 10);
    return errno || *end ? 0 : number;
}

/* False for a socket that is neither a path nor an abstract name, or too long for one. */
static bool address_of(const char *name, struct sockaddr_un *ret_address, socklen_t *ret_length)
{
    size_t length = strlen(name);
    bool is_abstract = name[0] == '@';

    if ((name[0] != '/' && !is_abstract) || length < 2 || length >= sizeof ret_address->sun_path)
        return false;
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret_address->sun_path, name, length);
    if (is_abstract)
        ret_address->sun_path[0] = '\0';
    /* The length of an abstract name is part of it; a path ends with its NUL. */
    *ret_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + !is_abstract);
    return true;
}

static gavel_ns read_watchdog(void)
{
    const char *pid = getenv("WATCHDOG_PID");
    uint64_t us = number_of(getenv("WATCHDOG_USEC"));

    if (us == 0 || us > (uint64_t)(NEVER / NS_PER_US))
        return 0;
    /* Meant for another process, which has let us inherit it. */
    if (pid && number_of(pid) != (uint64_t)getpid())
        return 0;
    return (gavel_ns)us * NS_PER_US;
}

void notify_open(struct notify *notify)
{
    const char *name = getenv("NOTIFY_SOCKET");

    *notify = (struct notify){.fd = -1};
    if (name && address_of(name, &notify->address, &notify->address_length))
        notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (notify->fd >= 0)
        notify->watchdog = read_watchdog();
    (void)unsetenv("NOTIFY_SOCKET"); /* fails only for names that are none */
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
}

void notify_close(struct notify *notify)
{
    if (notify->fd >= 0)
        close(notify->fd);
    *notify = (struct notify){.fd = -1};
}

bool notify_send(struct notify *notify, const char *format, ...)
{
    char text[DATAGRAM_MAX];
    ssize_t sent;
    va_list list;

    if (notify->fd < 0)
        return true;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list); /* cut off if too long */
    va_end(list);
    do {
        /* To an address rather than connected: the manager may make its socket anew while we run. */
        sent = sendto(notify->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
                      (const struct sockaddr *)&notify->address, notify->address_length);
    } while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

gavel_ns notify_watchdog_every(const struct notify *notify) { return notify->watchdog / 2; }
