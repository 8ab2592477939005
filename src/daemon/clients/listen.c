/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where clients connect: TCP, and a socket in the file system for those on this
 * machine, whose permissions say who may connect (0660). A name that a dead node has
 * left behind is removed, but only if it is a socket on which nobody answers. Ours
 * is removed at the end, but only if it is still ours.
 */
#include "daemon/clients/internal.h"

#include "base/error.h"
#include "net/address.h"
#include "net/listen.h"
#include "net/transport.h"
#include "os/retry.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 1024
#define AT_ONCE 64
#define SOCKET_MODE 0660

static enum gavel_status tcp_failed(const char *name, int reason, struct gavel_error *error)
{
    return error_set(
        error, GAVEL_ERR_IO, "clients: cannot listen on %s: %s. %s", name, strerror(reason),
        reason == EADDRINUSE
            ? "Another program uses this port: stop it, or choose another one with `clients:` or --clients"
            : "Choose an address of this machine with `clients:` or --clients");
}

static enum gavel_status listen_tcp(struct clients *clients, struct gavel_error *error)
{
    const struct daemon_config *config = clients->shared->config;
    struct sockaddr_storage address = {0};
    socklen_t length;
    enum gavel_status status = address_resolve(config->clients_listen, &address, &length, error);
    int fd;

    if (status != GAVEL_OK)
        return status;
    if (!config->has_tls && !address_is_loopback(&address))
        return error_set(
            error, GAVEL_ERR_INVALID,
            "clients: %s can be reached from other machines, and anybody there could take part in elections. Set `tls:` (`gavel cert` makes the files), or listen on 127.0.0.1",
            config->clients_listen);
    fd = listen_open((const struct sockaddr *)&address, length, SOCK_STREAM, BACKLOG);
    if (fd < 0)
        return tcp_failed(config->clients_listen, -fd, error);
    clients->tcp.fd = fd;
    if (getsockname(fd, (struct sockaddr *)&address, &length))
        return tcp_failed(config->clients_listen, errno, error);
    clients->port = address_port(&address);
    return GAVEL_OK;
}

static const char *const taken_text =
    "another process listens there. Stop it, or choose another name with `socket:`";

/* Returns 0 if the name is free (now), or a sentence why not. */
static const char *make_free(const struct sockaddr_un *address)
{
    struct stat found;
    int fd, failure;

    if (lstat(address->sun_path, &found))
        return errno == ENOENT ? NULL : strerror(errno);
    if (!S_ISSOCK(found.st_mode))
        return "it exists and is not a socket. Choose another name with `socket:`, or remove it";
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return strerror(errno);
    failure = connect(fd, (const struct sockaddr *)address, sizeof *address) ? errno : 0;
    (void)close(fd); /* nothing was sent on it */
    if (failure == 0 || failure == EAGAIN)
        return taken_text;
    if (failure != ECONNREFUSED && failure != ENOENT)
        return strerror(failure);
    return unlink(address->sun_path) && errno != ENOENT ? strerror(errno) : NULL;
}

static enum gavel_status listen_local(struct clients *clients, struct gavel_error *error)
{
    const char *path = clients->shared->config->socket;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct retry retry = {0};
    const char *reason;
    struct stat made;

    if (strlen(path) >= sizeof address.sun_path)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "clients: the name of the socket has %zu bytes, and the system allows %zu: %.200s. Choose a shorter one with `socket:`",
            strlen(path), sizeof address.sun_path - 1, path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    do
        reason = make_free(&address);
    while (reason == taken_text && retry_wait(&retry));
    if (reason)
        return error_set(error, GAVEL_ERR_IO, "clients: cannot listen on %s: %s", path, reason);
    clients->local.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* The mode before it has a name, so that it is never wider; and after, for the umask takes from it. */
    if (clients->local.fd < 0 || fchmod(clients->local.fd, SOCKET_MODE) ||
        bind(clients->local.fd, (struct sockaddr *)&address, sizeof address))
        return error_set(
            error, GAVEL_ERR_IO,
            "clients: cannot create the socket %s: %s. Does its directory exist, and may gaveld write to it?",
            path, strerror(errno));
    memcpy(clients->path, path, strlen(path) + 1);
    if (chmod(path, SOCKET_MODE) || lstat(path, &made) || listen(clients->local.fd, BACKLOG))
        return error_set(error, GAVEL_ERR_IO, "clients: cannot listen on the socket %s: %s", path,
                         strerror(errno));
    clients->path_device = made.st_dev;
    clients->path_inode = made.st_ino;
    return GAVEL_OK;
}

enum gavel_status clients_listen(struct clients *clients, struct gavel_error *error)
{
    const struct daemon_config *config = clients->shared->config;
    enum gavel_status status = GAVEL_OK;

    if (config->clients_listen[0])
        status = listen_tcp(clients, error);
    if (status == GAVEL_OK && config->socket[0])
        status = listen_local(clients, error);
    return status;
}

/* Options that cannot be set cost time, not correctness. */
static void tune(int fd)
{
    int yes = 1, idle_s = 10, interval_s = 5, count = 3, timeout_ms = CLIENTS_IDLE_MS;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
}

/* The API raises the limit to what the system allows; it may come after us. */
int clients_fd_limit(void)
{
    struct rlimit limit;
    int most;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > INT32_MAX)
        return INT32_MAX;
    most = (int)limit.rlim_cur;
    return most - (most / 2 < CLIENTS_SPARE_FDS ? most / 2 : CLIENTS_SPARE_FDS);
}

/*
 * Those that have come and not said who they are go first, the oldest of them. The newcomer keeps its own
 * descriptor, of the reserve, and the next one gets the one that becomes free; so only CLIENTS_LENT_MAX are
 * let in like that. Those that are leaving have been counted as gone when they were refused.
 */
static bool make_room(struct clients *clients)
{
    struct clients_connection *connection;

    if (clients->lent >= CLIENTS_LENT_MAX)
        return false;
    TAILQ_FOREACH(connection, &clients->connections, next) {
        if (connection->phase == CLIENTS_TLS || connection->phase == CLIENTS_HELLO) {
            (void)atomic_fetch_add(&clients->counts.cut, 1);
            clients_connection_close(connection);
            clients_reap(-1, 0, clients);
            return true;
        }
    }
    return false;
}

static void take(struct clients_door *door, int fd, const struct sockaddr_storage *address)
{
    struct clients *clients = door->clients;
    bool is_reserved = fd >= clients_fd_limit();
    bool is_full = is_reserved && !make_room(clients);
    char remote[ADDRESS_TEXT_MAX] = "this machine";
    struct clients_connection *connection;

    if (is_full && clients->leaving >= CLIENTS_LEAVING_MAX) {
        (void)close(fd); /* a refusal would take a descriptor of the reserve until it is read */
        return;
    }
    if (!door->is_unix) {
        address_write(address, remote);
        tune(fd);
    }
    connection = clients_connection_new(clients, fd, door->is_unix, remote);
    if (connection && is_reserved && !is_full) {
        connection->is_lent = true;
        clients->lent++;
    }
    if (connection && is_full) {
        if (connection->ssl) /* it could not be told before the handshake, and there shall be none */
            clients_connection_close(connection);
        else
            clients_connection_refuse(connection,
                                      "this node has as many connections as it can; ask another one");
    }
}

static void on_client(evutil_socket_t listener, short what, void *user)
{
    const struct timeval pause = {.tv_usec = CLIENTS_PAUSE_MS * 1000};
    struct clients_door *door = user;

    (void)what;
    for (int i = 0; i < AT_ONCE; i++) {
        struct sockaddr_storage address = {0};
        socklen_t length = sizeof address;
        int fd = accept4(listener, (struct sockaddr *)&address, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            take(door, fd, &address);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* It would be readable all the time. */
            (void)event_del(door->event);
            (void)event_add(door->clients->resume_event, &pause);
            (void)make_room(door->clients);
        }
        break;
    }
    clients_flush(door->clients);
}

static void on_resume(evutil_socket_t fd, short what, void *user)
{
    struct clients *clients = user;

    (void)fd;
    (void)what;
    if (clients->tcp.event)
        (void)event_add(clients->tcp.event, NULL);
    if (clients->local.event)
        (void)event_add(clients->local.event, NULL);
}

static bool open_door(struct clients *clients, struct clients_door *door, bool is_unix)
{
    door->clients = clients;
    door->is_unix = is_unix;
    if (door->fd < 0)
        return true;
    door->event = loop_watch(clients->base, door->fd, on_client, door);
    return door->event != NULL;
}

enum gavel_status clients_listen_begin(struct clients *clients)
{
    clients->resume_event = event_new(clients->base, -1, 0, on_resume, clients);
    return clients->resume_event && open_door(clients, &clients->tcp, false) &&
                   open_door(clients, &clients->local, true)
               ? GAVEL_OK
               : GAVEL_ERR_NO_MEMORY;
}

static void close_door(struct clients_door *door)
{
    loop_drop(&door->event);
    if (door->fd >= 0)
        (void)close(door->fd); /* nothing was sent on it */
    door->fd = -1;
}

void clients_listen_end(struct clients *clients)
{
    struct stat found;

    loop_drop(&clients->resume_event);
    close_door(&clients->tcp);
    if (clients->path[0] && lstat(clients->path, &found) == 0 && S_ISSOCK(found.st_mode) &&
        found.st_dev == clients->path_device && found.st_ino == clients->path_inode)
        (void)unlink(clients->path); /* a name that stays is taken away by the next start */
    clients->path[0] = '\0';
    close_door(&clients->local);
}
