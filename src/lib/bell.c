/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/bell.h"

#include "base/error.h"
#include "lib/address.h"
#include "lib/candidate.h"
#include "lib/handle.h"
#include "lib/loop/loop.h"
#include "os/clock.h"
#include "wire/doorbell.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Anybody on the machine can ring. So many datagrams per window are looked
 * at, then the socket is left alone until the window is over; the kernel
 * drops what its buffer does not hold. One pass of the loop looks at fewer, so
 * that deadlines and answers of the store come in between.
 */
#define WINDOW_NS (100 * NS_PER_MS)
#define WINDOW_DATAGRAMS 2000
#define PASS_DATAGRAMS 64

static void ready(struct gavel *gavel, struct source *source)
{
    struct bell *bell = &gavel->bell;
    gavel_ns now = clock_now();

    if (now - bell->window_at >= WINDOW_NS) {
        bell->window_at = now;
        bell->received = 0;
    }
    for (int taken = 0; bell->received < WINDOW_DATAGRAMS; taken++) {
        uint8_t bytes[DOORBELL_MAX_BYTES + 1]; /* one more, so that an overlong one is seen as such */
        char group[NAME_MAX_BYTES + 1];
        ssize_t size;

        if (taken == PASS_DATAGRAMS)
            return; /* the descriptor stays readable for the rest */
        size = recv(source->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (size < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        bell->received++;
        /* Other errors tell of an earlier datagram of ours that nobody took. */
        if (size >= 0 && doorbell_decode(bytes, (size_t)size, group))
            lib_candidate_doorbell_all(gavel, group);
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
    if (!address_parse(where, &address, &size))
        return error_set(
            error, GAVEL_ERR_INVALID,
            "the doorbell address \"%s\" is not valid; give it in numbers, such as 127.0.0.1, 192.0.2.1:7000 or [::1]",
            where);
    if (address_is_wildcard(&address))
        return error_set(
            error, GAVEL_ERR_INVALID,
            "the doorbell address \"%s\" is not an address that others can reach; name one of this host",
            where);
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
    address_format(&address, bell->address, sizeof bell->address);
    return GAVEL_OK;
}

void bell_close(struct bell *bell)
{
    if (bell->source.fd >= 0)
        (void)close(bell->source.fd); /* hints may be lost */
    bell->source.fd = -1;
}

/* Failures are ignored: a lost hint costs only time. */
static void send_hint(int fd, const char *group, const union address *to, socklen_t size)
{
    uint8_t bytes[DOORBELL_MAX_BYTES];

    (void)sendto(fd, bytes, doorbell_encode(group, bytes), MSG_DONTWAIT | MSG_NOSIGNAL, &to->any, size);
}

void bell_ring(const struct bell *bell, const char *group, const char *address)
{
    union address to;
    socklen_t size;

    if (bell->source.fd >= 0 && address_parse(address, &to, &size))
        send_hint(bell->source.fd, group, &to, size);
}

void ringer_ring(struct ringer *ringer, const char *group, const char *address)
{
    union address to;
    socklen_t size;
    int *fd;

    if (!address_parse(address, &to, &size))
        return;
    fd = to.any.sa_family == AF_INET ? &ringer->v4 : &ringer->v6;
    if (*fd < 0)
        *fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd >= 0)
        send_hint(*fd, group, &to, size);
}

void ringer_done(struct ringer *ringer)
{
    if (ringer->v4 >= 0)
        (void)close(ringer->v4); /* hints may be lost */
    if (ringer->v6 >= 0)
        (void)close(ringer->v6); /* likewise */
    *ringer = (struct ringer)RINGER_INIT;
}
