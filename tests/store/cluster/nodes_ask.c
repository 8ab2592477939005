/* SPDX-License-Identifier: Apache-2.0 */

/* What a test asks the nodes of its cluster by HTTP, and the kernel about them. */
#include "nodes.h"

#include "store/conformance/conformance.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_LIMIT_S 10

static int connect_to(int port)
{
    const struct timeval limit = {.tv_sec = ANSWER_LIMIT_S};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit); /* fails for no socket */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static bool send_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

/* Until the node closes the connection, or there is no more room. */
static void receive_all(int fd, char *ret_text, size_t room)
{
    size_t size = 0;
    ssize_t got;

    while (size + 1 < room && (got = recv(fd, ret_text + size, room - size - 1, 0)) > 0)
        size += (size_t)got;
    ret_text[size] = '\0';
}

int test_cluster_ask(const struct test_cluster *cluster, int node, const char *method, const char *path,
                     const char *body, size_t body_size, char *ret_body, size_t room)
{
    int fd = connect_to(cluster->first_port + TEST_CLUSTER_API + node);
    char head[512], answer[8192] = "";
    const char *rest;
    int code = 0;

    ret_body[0] = '\0';
    if (fd < 0)
        return 0;
    (void)snprintf(head, sizeof head,
                   "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
                   method, path, body ? body_size : 0);
    if (send_all(fd, head, strlen(head)) && (!body || send_all(fd, body, body_size)))
        receive_all(fd, answer, sizeof answer);
    (void)close(fd);
    if (sscanf(answer, "HTTP/1.1 %d", &code) != 1)
        return 0;
    rest = strstr(answer, "\r\n\r\n");
    (void)snprintf(ret_body, room, "%s", rest ? rest + 4 : "");
    return code;
}

static bool says_it_leads(const struct test_cluster *cluster, int node)
{
    char body[512], wanted[32];

    (void)snprintf(wanted, sizeof wanted, "\"leader_id\":\"n%d\"", node);
    return cluster->pids[node] != 0 &&
           test_cluster_ask(cluster, node, "GET", "/leader", NULL, 0, body, sizeof body) == 200 &&
           strstr(body, wanted);
}

int test_cluster_leader(const struct test_cluster *cluster)
{
    const struct timespec pause = {.tv_nsec = 10 * NS_PER_MS};
    gavel_ns limit = clock_now() + 60 * NS_PER_S;

    for (;;) {
        for (int node = 0; node < TEST_NODES; node++)
            if (says_it_leads(cluster, node))
                return node;
        assert_true(clock_now() < limit);
        (void)nanosleep(&pause, NULL); /* between two looks */
    }
}

size_t test_cluster_mib(const struct test_cluster *cluster, int node)
{
    pid_t pids[8];
    size_t count = test_cluster_processes(cluster, node, pids, 8);
    size_t pages = 0;

    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        unsigned long all, resident;
        char path[64];
        FILE *file;

        (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pids[i]);
        file = fopen(path, "r");
        if (file && fscanf(file, "%lu %lu", &all, &resident) == 2)
            pages += resident;
        if (file)
            (void)fclose(file); /* nothing was written */
    }
    return pages * (size_t)sysconf(_SC_PAGESIZE) >> 20;
}
