/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/bell.h"

#include "base/error.h"
#include "lib/handle.h"
#include "lib/loop.h"
#include "lib/member.h"
#include "os/clock.h"
#include "wire/doorbell.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Anybody on the machine can ring. So many datagrams per window are looked
 * at, then the socket is left alone until the window is over; the kernel
 * drops what its buffer does not hold.
 */
#define WINDOW_NS (100 * NS_PER_MS)
#define WINDOW_DATAGRAMS 2000

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

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

/* Splits "host", "host:port", "[v6]" or "[v6]:port"; the port is 0 if there is none. */
static bool parse(const char *text, union address *ret_address, socklen_t *ret_size)
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

/* An address that means "all of mine" binds well and is of no use to those who read it in a registration. */
static bool is_wildcard(const union address *address)
{
    if (address->any.sa_family == AF_INET)
        return address->v4.sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr);
}

static void format(const union address *address, char *buffer, size_t size)
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

/* Tells every candidate of that group. Members leave the chain only on this thread, and only between passes.
 */
static void tell(struct gavel *gavel, const char *group)
{
    for (struct gavel_candidate *member = member_first_of(gavel, group); member;
         member = member->next_in_bucket)
        if (strcmp(member->group, group) == 0)
            member_doorbell(member);
}

static void ready(struct gavel *gavel, struct source *source)
{
    struct bell *bell = &gavel->bell;
    gavel_ns now = clock_now();

    if (now - bell->window_at >= WINDOW_NS) {
        bell->window_at = now;
        bell->received = 0;
    }
    while (bell->received < WINDOW_DATAGRAMS) {
        uint8_t bytes[DOORBELL_MAX_BYTES + 1]; /* one more, so that an overlong one is seen as such */
        char group[NAME_MAX_BYTES + 1];
        ssize_t size = recv(source->fd, bytes, sizeof bytes, MSG_DONTWAIT);

        if (size < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        bell->received++;
        /* Other errors tell of an earlier datagram of ours that nobody took. */
        if (size >= 0 && doorbell_decode(bytes, (size_t)size, group))
            tell(gavel, group);
    }
    bell->is_muted = true;
    loop_listen(gavel, source, false);
}

gavel_ns bell_unmute(struct gavel *gavel, gavel_ns now)
{
    struct bell *bell = &gavel->bell;

    if (!bell->is_muted)
        return NEVER;
    if (now - bell->window_at < WINDOW_NS)
        return bell->window_at + WINDOW_NS;
    bell->is_muted = false;
    loop_listen(gavel, &bell->source, true);
    return NEVER;
}

enum gavel_status bell_open(struct bell *bell, const char *where, struct gavel_error *error)
{
    union address address;
    socklen_t size;
    int fd;

    *bell = (struct bell){.source = {.fd = -1, .ready = ready}};
    if (!where)
        where = "127.0.0.1";
    if (*where == '\0')
        return GAVEL_OK;
    if (!parse(where, &address, &size))
        return error_set(error, GAVEL_ERR_INVALID,
                         "the doorbell address \"%s\" is not valid; give it in numbers, such as 127.0.0.1, "
                         "192.0.2.1:7000 or [::1]",
                         where);
    if (is_wildcard(&address))
        return error_set(
            error, GAVEL_ERR_INVALID,
            "the doorbell address \"%s\" is no address that others can ring; name one of this host's", where);
    fd = socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set(error, GAVEL_ERR_IO, "cannot open a socket for the doorbell: %s", strerror(errno));
    if (bind(fd, &address.any, size) < 0 || getsockname(fd, &address.any, &size) < 0) {
        int problem = errno;

        (void)close(fd); /* nothing was written to it */
        return error_set(error, GAVEL_ERR_IO,
                         "cannot listen for the doorbell on \"%s\": %s; choose another address or port",
                         where, strerror(problem));
    }
    bell->source.fd = fd;
    format(&address, bell->address, sizeof bell->address);
    return GAVEL_OK;
}

void bell_close(struct bell *bell)
{
    if (bell->source.fd >= 0)
        (void)close(bell->source.fd); /* hints may be lost */
    bell->source.fd = -1;
}

void bell_ring(const struct bell *bell, const char *group, const char *address)
{
    uint8_t bytes[DOORBELL_MAX_BYTES];
    union address to;
    socklen_t size;

    if (bell->source.fd < 0 || !parse(address, &to, &size))
        return;
    (void)sendto(bell->source.fd, bytes, doorbell_encode(group, bytes), MSG_DONTWAIT | MSG_NOSIGNAL, &to.any,
                 size); /* a lost hint costs only time */
}
