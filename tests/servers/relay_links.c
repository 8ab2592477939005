/* SPDX-License-Identifier: Apache-2.0 */

#include "relay_links.h"

#include "os/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE_BYTES 65536
#define QUEUED_MAX (4 << 20) /* more is not read from one side before the other has taken some */

struct piece {
    STAILQ_ENTRY(piece) next;
    gavel_ns due;
    size_t size;
    size_t sent;
    bool is_end; /* nothing more comes in this direction */
    char bytes[];
};

struct way {
    STAILQ_HEAD(, piece) pieces;
    size_t queued;
    gavel_ns due;     /* of the last piece that came */
    bool is_read_out; /* its source has ended */
};

struct link {
    LIST_ENTRY(link) next;
    /* Where UP and DOWN lead: the server, the client; the server is -1 for a link that is dropped. */
    int fds[2];
    struct way ways[2];
    bool is_spoiled; /* it lost bytes: what would come after them makes no sense */
    /* Its server's side was ended with a FIN, and what still comes from there is thrown away. */
    bool has_left;
};

static void drop_first(struct way *way)
{
    struct piece *piece = STAILQ_FIRST(&way->pieces);

    STAILQ_REMOVE_HEAD(&way->pieces, next);
    way->queued -= piece->size;
    free(piece);
}

/* Ends a link; with a reset, both sides learn that something went wrong. */
static void end_link(struct relay_links *links, struct link *link, bool by_reset)
{
    const struct linger at_once = {.l_onoff = 1};

    for (int i = 0; i < 2; i++) {
        while (!STAILQ_EMPTY(&link->ways[i].pieces))
            drop_first(&link->ways[i]);
        if (link->fds[i] < 0)
            continue;
        if (by_reset)
            (void)setsockopt(link->fds[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        (void)close(link->fds[i]);
    }
    LIST_REMOVE(link, next);
    links->count--;
    free(link);
}

struct sockaddr_in relay_address(int port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((in_port_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int connect_server(const struct relay_links *links)
{
    struct sockaddr_in address = relay_address(links->target);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

void relay_links_add(struct relay_links *links, int fd)
{
    struct link *link = calloc(1, sizeof *link);
    int one = 1;

    if (!link) {
        (void)close(fd);
        return;
    }
    links->opened++;
    links->count++;
    LIST_INSERT_HEAD(&links->list, link, next);
    link->fds[DOWN] = fd;
    link->fds[UP] = links->drops ? -1 : connect_server(links);
    link->is_spoiled = links->drops;
    for (int i = 0; i < 2; i++) {
        STAILQ_INIT(&link->ways[i].pieces);
        if (link->fds[i] >= 0)
            (void)setsockopt(link->fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    if (link->fds[UP] < 0 && !links->drops)
        end_link(links, link, true);
}

/* Puts what was read in the queue; a piece never overtakes the one before it. */
static bool enqueue(struct relay_links *links, struct way *way, gavel_ms delay_ms, const char *bytes,
                    size_t size)
{
    struct piece *piece = malloc(sizeof *piece + size);

    if (!piece) {
        links->is_out_of_memory = true;
        return false;
    }
    way->due = ns_max(way->due, clock_now() + ns_from_ms(delay_ms));
    *piece = (struct piece){.due = way->due, .size = size, .is_end = size == 0};
    memcpy(piece->bytes, bytes, size);
    STAILQ_INSERT_TAIL(&way->pieces, piece, next);
    way->queued += size;
    return true;
}

static bool is_silenced(const struct relay_links *links)
{
    return (links->mutes || links->snaps) && links->passed[UP] >= links->silent_after;
}

/* Takes what has come on the way `to`. False: the link has ended. */
static bool take(struct relay_links *links, struct link *link, int to)
{
    static char bytes[PIECE_BYTES];
    ssize_t count = recv(link->fds[!to], bytes, sizeof bytes, 0);

    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (count < 0 && !links->drops && !(link->has_left && to == DOWN)) {
        end_link(links, link, true);
        return false;
    }
    if (count <= 0)
        link->ways[to].is_read_out = true; /* while nothing passes, a reset does not either */
    if (to == DOWN && is_silenced(links)) {
        link->is_spoiled = true;
        if (links->snaps)
            end_link(links, link, true);
        return !links->snaps;
    }
    if (link->fds[UP] < 0 && count <= 0) { /* one that never had a server */
        end_link(links, link, false);
        return false;
    }
    if (links->drops || link->fds[UP] < 0 || link->has_left || (to == DOWN && link->is_spoiled)) {
        link->is_spoiled = true;
        return true;
    }
    return enqueue(links, &link->ways[to], links->delay_ms[to], bytes, (size_t)count);
}

/* Sends what is due. False: the link has ended. */
static bool give(struct relay_links *links, struct link *link, int to, gavel_ns now)
{
    struct piece *piece;

    while (links->drops && !STAILQ_EMPTY(&link->ways[to].pieces)) {
        drop_first(&link->ways[to]);
        link->is_spoiled = true;
    }
    while ((piece = STAILQ_FIRST(&link->ways[to].pieces)) && piece->due <= now) {
        ssize_t count = 0;

        if (piece->is_end) {
            (void)shutdown(link->fds[to], SHUT_WR); /* what is gone already needs none */
        } else {
            count = send(link->fds[to], piece->bytes + piece->sent, piece->size - piece->sent, MSG_NOSIGNAL);
            if (count < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN))
                return true;
            if (count < 0) {
                end_link(links, link, true);
                return false;
            }
            links->passed[to] += (uint64_t)count;
            piece->sent += (size_t)count;
            if (piece->sent < piece->size)
                return true;
        }
        drop_first(&link->ways[to]);
    }
    if (link->ways[UP].is_read_out && link->ways[DOWN].is_read_out && STAILQ_EMPTY(&link->ways[UP].pieces) &&
        STAILQ_EMPTY(&link->ways[DOWN].pieces)) {
        end_link(links, link, link->is_spoiled);
        return false;
    }
    return true;
}

void relay_links_cut(struct relay_links *links, bool spoiled_only)
{
    struct link *link = LIST_FIRST(&links->list);

    while (link) {
        struct link *next = LIST_NEXT(link, next);

        if (!spoiled_only || link->is_spoiled)
            end_link(links, link, true);
        link = next;
    }
}

void relay_links_leave_server(struct relay_links *links, bool by_reset)
{
    const struct linger at_once = {.l_onoff = 1};
    struct link *link;

    LIST_FOREACH(link, &links->list, next) {
        if (link->fds[UP] < 0)
            continue;
        for (int i = 0; i < 2; i++)
            while (!STAILQ_EMPTY(&link->ways[i].pieces))
                drop_first(&link->ways[i]);
        link->is_spoiled = link->has_left = true;
        if (by_reset) {
            (void)setsockopt(link->fds[UP], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
            (void)close(link->fds[UP]);
            link->fds[UP] = -1;
        } else {
            (void)shutdown(link->fds[UP], SHUT_WR);
        }
    }
}

void relay_links_hurry(struct relay_links *links)
{
    struct link *link;

    LIST_FOREACH(link, &links->list, next) {
        for (int i = 0; i < 2; i++) {
            struct piece *piece;

            link->ways[i].due = 0;
            STAILQ_FOREACH(piece, &link->ways[i].pieces, next)
                piece->due = 0;
        }
    }
}

/* What to wait for on the descriptor `side` of a link, and until when at most. */
static short events_of(const struct link *link, int side, gavel_ns now, gavel_ns *until)
{
    const struct way *out = &link->ways[side];
    const struct way *in = &link->ways[!side];
    const struct piece *piece = STAILQ_FIRST(&out->pieces);
    short events = 0;

    if (!in->is_read_out && in->queued < QUEUED_MAX)
        events |= POLLIN;
    if (piece && piece->due <= now)
        events |= POLLOUT;
    else if (piece)
        *until = ns_min(*until, piece->due);
    return events;
}

size_t relay_links_poll(const struct relay_links *links, struct pollfd *fds, gavel_ns now, gavel_ns *until)
{
    const struct link *link;
    size_t count = 0;

    LIST_FOREACH(link, &links->list, next) {
        for (int side = 0; side < 2; side++, count++) {
            short events = events_of(link, side, now, until);

            /* One that we want nothing from would only tell of its end, again and again. */
            fds[count] = (struct pollfd){.fd = events ? link->fds[side] : -1, .events = events};
        }
    }
    return count;
}

void relay_links_turn(struct relay_links *links, const struct pollfd *fds)
{
    gavel_ns now = clock_now();
    struct link *link = LIST_FIRST(&links->list);

    while (link) {
        struct link *next = LIST_NEXT(link, next);
        bool lives = true;

        for (int side = 0; side < 2 && lives; side++) {
            if (fds[side].revents & (POLLIN | POLLHUP | POLLERR))
                lives = take(links, link, !side);
        }
        for (int side = 0; side < 2 && lives; side++)
            lives = give(links, link, side, now);
        fds += 2;
        link = next;
    }
}
