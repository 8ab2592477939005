/* SPDX-License-Identifier: Apache-2.0 */

#include "relay.h"

#include "cluster_files.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sockaddr_in api_of(int node)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)CLUSTER_API_PORT(node))};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static bool pass_on(int from, int to)
{
    char bytes[16384];
    ssize_t got = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);

    if (got < 0)
        return errno == EAGAIN;
    for (ssize_t sent = 0; sent < got;) {
        struct pollfd wait = {.fd = to, .events = POLLOUT};
        ssize_t n = send(to, bytes + sent, (size_t)(got - sent), MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && (errno != EAGAIN || poll(&wait, 1, 1000) != 1))
            return false;
        sent += n > 0 ? n : 0;
    }
    return got > 0;
}

/* Both ways, until one side is through. */
static void join_ends(int one, int other)
{
    struct pollfd ends[2] = {{.fd = one, .events = POLLIN}, {.fd = other, .events = POLLIN}};
    bool is_open = true;

    while (is_open && poll(ends, 2, 10000) > 0) {
        if (ends[0].revents)
            is_open = pass_on(one, other);
        if (is_open && ends[1].revents)
            is_open = pass_on(other, one);
    }
}

static void serve(const struct cluster *cluster, int node, int listener)
{
    struct sockaddr_in address = api_of(node);

    for (;;) {
        int client = accept(listener, NULL, NULL), api;

        if (client < 0)
            _exit(1);
        if (fork() == 0) {
            api = net_socket(&cluster->net, node);
            if (api >= 0 &&
                (connect(api, (struct sockaddr *)&address, sizeof address) == 0 || errno == EINPROGRESS))
                join_ends(client, api);
            _exit(0);
        }
        close(client);
    }
}

static int listen_at(int node)
{
    struct sockaddr_in address = api_of(node);
    int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) ||
        bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 16)) {
        perror("relay");
        exit(1);
    }
    return fd;
}

/* In a group of its own, so that it ends with what it has forked. */
static pid_t start_relay(const struct cluster *cluster, int node)
{
    int fd = listen_at(node);
    pid_t pid = fork();

    if (pid == 0) {
        (void)setpgid(0, 0);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGCHLD, SIG_IGN);
        serve(cluster, node, fd);
    }
    if (pid > 0)
        (void)setpgid(pid, pid);
    close(fd);
    return pid;
}

static int run_check(const struct cluster *cluster, char *buffer, size_t size)
{
    char command[PATH_MAX + 512];
    size_t used = (size_t)snprintf(command, sizeof command, "'%s' check --cluster ", cluster->gavel);
    FILE *pipe;
    int status;

    for (int i = 0; i < cluster->count && used < sizeof command; i++)
        used += (size_t)snprintf(command + used, sizeof command - used, "%shttp://127.0.0.1:%d", i ? "," : "",
                                 CLUSTER_API_PORT(i));
    (void)snprintf(command + used, sizeof command - used, " 2>&1");
    pipe = popen(command, "re");
    if (!pipe)
        return -1;
    used = fread(buffer, 1, size - 1, pipe);
    buffer[used] = '\0';
    status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int relay_check(const struct cluster *cluster, char *buffer, size_t size)
{
    pid_t relays[CLUSTER_MAX];
    int code;

    for (int i = 0; i < cluster->count; i++)
        relays[i] = start_relay(cluster, i);
    code = run_check(cluster, buffer, size);
    for (int i = 0; i < cluster->count; i++)
        if (relays[i] > 0) {
            (void)kill(-relays[i], SIGKILL);
            (void)waitpid(relays[i], NULL, 0);
        }
    return code;
}
