/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where an agent listens, and who may talk to it. Whoever can reach it can
 * make it resign, or say that the work has stopped: so only this machine can,
 * unless callers show a token.
 */
#include "cli/agent/agent.h"

#include "base/error.h"
#include "net/transport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 64

/* Whether somebody answers at the socket; if not, its file is left over from one that was killed. */
static bool is_alive(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_refused = false;

    if (fd < 0)
        return true; /* not known, so nothing is removed */
    if (connect(fd, (const struct sockaddr *)address, sizeof *address))
        is_refused = errno == ECONNREFUSED;
    (void)close(fd); /* nothing was sent */
    return !is_refused;
}

/* Makes room for the socket's file. */
static enum gavel_status clear_path(const struct sockaddr_un *address, struct gavel_error *error)
{
    const char *path = address->sun_path;
    struct stat info;

    if (lstat(path, &info))
        return GAVEL_OK; /* bind() says what is wrong, if anything is */
    if (!S_ISSOCK(info.st_mode))
        return error_set(error, GAVEL_ERR_INVALID,
                         "--listen: %s exists and is not a socket; choose another path, or remove it", path);
    if (is_alive(address))
        return error_set(error, GAVEL_ERR_IO,
                         "--listen: another program listens on %s; end it, or choose another path", path);
    if (unlink(path) && errno != ENOENT)
        return error_set(error, GAVEL_ERR_IO, "--listen: cannot replace %s, which nobody listens on: %s",
                         path, strerror(errno));
    return GAVEL_OK;
}

static enum gavel_status listen_unix(const char *path, struct agent_endpoint *ret_endpoint,
                                     struct gavel_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    enum gavel_status status;
    mode_t before;
    int fd, failed;

    if (strlen(path) >= sizeof address.sun_path)
        return error_set(error, GAVEL_ERR_INVALID, "--listen: the path of a socket has at most %zu bytes",
                         sizeof address.sun_path - 1);
    strcpy(address.sun_path, path);
    status = clear_path(&address, error);
    if (status != GAVEL_OK)
        return status;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set(error, GAVEL_ERR_IO, "--listen: cannot create a socket: %s", strerror(errno));
    before = umask(0177); /* whoever may talk to it may make it resign: its owner */
    failed = bind(fd, (const struct sockaddr *)&address, sizeof address);
    (void)umask(before);
    if (failed || listen(fd, BACKLOG)) {
        int reason = errno;

        (void)close(fd); /* nothing was sent */
        return error_set(error, GAVEL_ERR_IO, "--listen: cannot listen on %s: %s", path, strerror(reason));
    }
    *ret_endpoint = (struct agent_endpoint){.fd = fd};
    strcpy(ret_endpoint->path, path);
    (void)snprintf(ret_endpoint->url, sizeof ret_endpoint->url, "unix:%s", path);
    return GAVEL_OK;
}

/* What it is called by: the port may have been chosen by the system. */
static void name(int fd, struct agent_endpoint *endpoint)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_storage room;
    } bound = {.room = {0}};
    socklen_t size = sizeof bound;
    char host[INET6_ADDRSTRLEN + 2] = "";

    (void)getsockname(fd, &bound.any, &size); /* it is bound */
    if (bound.any.sa_family == AF_INET6) {
        host[0] = '[';
        (void)inet_ntop(AF_INET6, &bound.v6.sin6_addr, host + 1, INET6_ADDRSTRLEN);
        strcat(host, "]");
    } else {
        (void)inet_ntop(AF_INET, &bound.v4.sin_addr, host, sizeof host);
    }
    (void)snprintf(endpoint->url, sizeof endpoint->url, "http://%s:%u", host,
                   ntohs(bound.any.sa_family == AF_INET6 ? bound.v6.sin6_port : bound.v4.sin_port));
}

static enum gavel_status listen_tcp(const char *where, bool has_token, struct agent_endpoint *ret_endpoint,
                                    struct gavel_error *error)
{
    struct sockaddr_storage address = {0};
    struct gavel_error cause = {0};
    socklen_t length = 0;
    int fd, yes = 1;

    if (address_resolve(where, &address, &length, &cause) != GAVEL_OK)
        return error_set(error, cause.status, "--listen: %s", cause.message);
    if (!address_is_loopback(&address) && !has_token)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "--listen: %s can be reached from other machines, and anybody there could make it resign; listen on 127.0.0.1 or on the path of a socket, or give --token-file",
            where);
    fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set(error, GAVEL_ERR_IO, "--listen: cannot create a socket for %s: %s", where,
                         strerror(errno));
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes); /* without it a restart has to wait */
    if (bind(fd, (const struct sockaddr *)&address, length) || listen(fd, BACKLOG)) {
        int reason = errno;

        (void)close(fd); /* nothing was sent */
        return error_set(error, GAVEL_ERR_IO, "--listen: cannot listen on %s: %s%s", where, strerror(reason),
                         reason == EADDRINUSE ? "; another program uses this port: choose another one" : "");
    }
    *ret_endpoint = (struct agent_endpoint){.fd = fd};
    name(fd, ret_endpoint);
    return GAVEL_OK;
}

enum gavel_status agent_listen(const char *where, bool has_token, struct agent_endpoint *ret_endpoint,
                               struct gavel_error *error)
{
    if (!*where)
        return error_set(error, GAVEL_ERR_INVALID,
                         "--listen: write an address, such as " AGENT_LISTEN ", or the path of a socket");
    return strchr(where, '/') ? listen_unix(where, ret_endpoint, error)
                              : listen_tcp(where, has_token, ret_endpoint, error);
}

void agent_listen_end(struct agent_endpoint *endpoint)
{
    if (endpoint->path[0])
        (void)unlink(endpoint->path); /* the next one removes what is left over */
    endpoint->path[0] = '\0';
}

enum gavel_status agent_token_read(const char *file, char ret_token[static AGENT_TOKEN_MAX + 1],
                                   struct gavel_error *error)
{
    char line[AGENT_TOKEN_MAX + 3] = "";
    FILE *stream = fopen(file, "re");
    size_t length;

    if (!stream)
        return error_set(error, GAVEL_ERR_IO, "--token-file: cannot read %s: %s", file, strerror(errno));
    if (!fgets(line, sizeof line, stream))
        line[0] = '\0';   /* an empty file, which is too short */
    (void)fclose(stream); /* it was only read */
    length = strcspn(line, "\r\n");
    line[length] = '\0';
    if (length < AGENT_TOKEN_MIN || length > AGENT_TOKEN_MAX)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "--token-file: the first line of %s needs %d to %d characters; make one with: openssl rand -hex 32",
            file, AGENT_TOKEN_MIN, AGENT_TOKEN_MAX);
    for (size_t i = 0; i < length; i++)
        if (line[i] <= ' ' || line[i] > '~')
            return error_set(
                error, GAVEL_ERR_INVALID,
                "--token-file: character %zu of the token in %s is not allowed in an HTTP header", i + 1,
                file);
    strcpy(ret_token, line);
    explicit_bzero(line, sizeof line);
    return GAVEL_OK;
}

bool agent_token_is_shown(const char *token, const char *authorization)
{
    char shown[AGENT_TOKEN_MAX + 1] = "", wanted[AGENT_TOKEN_MAX + 1] = "";
    volatile unsigned char difference = 0;

    if (!*token)
        return true;
    if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0 ||
        strlen(authorization + 7) > AGENT_TOKEN_MAX)
        return false;
    strcpy(shown, authorization + 7);
    strcpy(wanted, token);
    /* All of the buffer, whatever differs first: how long it takes tells nothing of the token. */
    for (size_t i = 0; i < sizeof shown; i++)
        difference |= (unsigned char)(shown[i] ^ wanted[i]);
    return difference == 0;
}
