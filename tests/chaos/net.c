/* SPDX-License-Identifier: Apache-2.0 */

#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NETWORK 0x0a4d0000u /* 10.77.0.0/24 */

static uint32_t address_of(int node) { return htonl(NETWORK + (uint32_t)node + 1); }

void net_address(int node, char *buffer, size_t size)
{
    struct in_addr address = {address_of(node)};

    (void)inet_ntop(AF_INET, &address, buffer, (socklen_t)size); /* callers give room for any */
}

/* Runs ip(8) on lines of commands in the current namespace. */
static bool run_ip(const char *lines)
{
    int pipes[2], status;
    pid_t pid;

    if (pipe2(pipes, O_CLOEXEC))
        return false;
    pid = fork();
    if (pid == 0) {
        dup2(pipes[0], STDIN_FILENO);
        execlp("ip", "ip", "-batch", "-", (char *)NULL);
        _exit(127);
    }
    close(pipes[0]);
    if (write(pipes[1], lines, strlen(lines)) < 0 && errno != EPIPE)
        perror("chaos: ip");
    close(pipes[1]);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return is_done;
}

/* A namespace of our own: as root, or as root of a user namespace that is us outside. */
static bool leave_home(void)
{
    unsigned uid = getuid(), gid = getgid();
    char map[64];

    if (unshare(CLONE_NEWNET) == 0)
        return true;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
        return false;
    snprintf(map, sizeof map, "0 %u 1", uid);
    if (!write_file("/proc/self/uid_map", map))
        return false;
    snprintf(map, sizeof map, "0 %u 1", gid);
    return write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/gid_map", map);
}

static int netlink_open(void)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* The rule of the local table comes first by default, and would let in what later rules refuse. */
static bool furnish(struct net *net, int node)
{
    char lines[512], address[32];

    net_address(node, address, sizeof address);
    snprintf(lines, sizeof lines,
             "link set lo up\naddress add %s/24 dev eth0\nlink set eth0 up\nrule add pref 1000 lookup local\n"
             "rule del pref 0\n",
             address);
    net->netlinks[node] = netlink_open();
    return net->netlinks[node] >= 0 && run_ip(lines);
}

static bool add_node(struct net *net, int node)
{
    char lines[256];
    bool is_done;

    if (unshare(CLONE_NEWNET))
        return false;
    net->namespaces[node] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    /* The end that we will keep is made on the far side, so that the namespaces need no names. */
    snprintf(lines, sizeof lines, "link add eth0 type veth peer name v%d netns /proc/%d/fd/%d\n", node,
             getpid(), net->own);
    is_done = net->namespaces[node] >= 0 && run_ip(lines) && furnish(net, node);
    if (setns(net->own, CLONE_NEWNET))
        return false;
    snprintf(lines, sizeof lines, "link set v%d master hub up\n", node);
    return is_done && run_ip(lines);
}

bool net_make(struct net *net, int count, char *why, size_t size)
{
    memset(net, 0, sizeof *net);
    if (!leave_home()) {
        snprintf(why, size, "no network namespace can be made here: %s", strerror(errno));
        return false;
    }
    net->own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (net->own < 0 || !run_ip("link set lo up\nlink add hub type bridge\nlink set hub up\n")) {
        snprintf(why, size, "no bridge can be made here; is iproute2 installed?");
        return false;
    }
    for (; net->count < count; net->count++) {
        if (!add_node(net, net->count)) {
            snprintf(why, size, "namespace %d cannot be joined to the bridge", net->count);
            return false;
        }
    }
    return true;
}

void net_done(struct net *net)
{
    for (int i = 0; i < net->count; i++) {
        close(net->namespaces[i]);
        close(net->netlinks[i]);
    }
    if (net->own > 0)
        close(net->own);
    net->count = 0;
}

bool net_enter(const struct net *net, int node) { return setns(net->namespaces[node], CLONE_NEWNET) == 0; }

int net_socket(const struct net *net, int node)
{
    int fd = -1;

    if (net_enter(net, node))
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (setns(net->own, CLONE_NEWNET)) {
        perror("chaos: no way back into the own namespace");
        abort();
    }
    return fd;
}

struct request {
    struct nlmsghdr head;
    char body[256];
};

static void add_attribute(struct request *request, unsigned short type, const void *data, unsigned short size)
{
    struct rtattr *attribute = (struct rtattr *)((char *)request + NLMSG_ALIGN(request->head.nlmsg_len));

    attribute->rta_type = type;
    attribute->rta_len = (unsigned short)RTA_LENGTH(size);
    memcpy(RTA_DATA(attribute), data, size);
    request->head.nlmsg_len = NLMSG_ALIGN(request->head.nlmsg_len) + RTA_ALIGN(attribute->rta_len);
}

/* Sends it and waits for the kernel's word. */
static void ask_kernel(int fd, struct request *request)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[256];
    } answer;

    if (send(fd, request, request->head.nlmsg_len, 0) < 0 || recv(fd, &answer, sizeof answer, 0) < 0) {
        perror("chaos: netlink");
        abort();
    }
    if (answer.head.nlmsg_type != NLMSG_ERROR || answer.error.error) {
        fprintf(stderr, "chaos: the kernel refused a cut: %s\n", strerror(-answer.error.error));
        abort();
    }
}

/* In the namespace of `at`: nothing that comes from `from` arrives. */
static void set_rule(const struct net *net, int at, int from, bool is_add)
{
    uint32_t address = address_of(from), priority = 10 + (uint32_t)from;
    struct fib_rule_hdr rule = {.family = AF_INET, .src_len = 32, .action = FR_ACT_BLACKHOLE};
    struct request request = {
        .head = {.nlmsg_len = NLMSG_LENGTH(sizeof rule),
                 .nlmsg_type = is_add ? RTM_NEWRULE : RTM_DELRULE,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | (is_add ? NLM_F_CREATE | NLM_F_EXCL : 0)}};

    memcpy(NLMSG_DATA(&request.head), &rule, sizeof rule);
    add_attribute(&request, FRA_SRC, &address, sizeof address);
    add_attribute(&request, FRA_PRIORITY, &priority, sizeof priority);
    ask_kernel(net->netlinks[at], &request);
}

/* In the namespace of `at`: there is no way to `to`. */
static void set_route(const struct net *net, int at, int to, bool is_add)
{
    uint32_t address = address_of(to);
    struct rtmsg route = {.rtm_family = AF_INET,
                          .rtm_dst_len = 32,
                          .rtm_table = RT_TABLE_MAIN,
                          .rtm_protocol = RTPROT_STATIC,
                          .rtm_scope = RT_SCOPE_UNIVERSE,
                          .rtm_type = RTN_UNREACHABLE};
    struct request request = {
        .head = {.nlmsg_len = NLMSG_LENGTH(sizeof route),
                 .nlmsg_type = is_add ? RTM_NEWROUTE : RTM_DELROUTE,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | (is_add ? NLM_F_CREATE | NLM_F_EXCL : 0)}};

    memcpy(NLMSG_DATA(&request.head), &route, sizeof route);
    add_attribute(&request, RTA_DST, &address, sizeof address);
    ask_kernel(net->netlinks[at], &request);
}

static void apply(const struct net *net, int from, int to, enum net_cut cut, bool is_add)
{
    if (cut == NET_LOST)
        set_rule(net, to, from, is_add);
    else if (cut == NET_REFUSED)
        set_route(net, from, to, is_add);
}

void net_set(struct net *net, int from, int to, enum net_cut cut)
{
    if (from == to || net->cuts[from][to] == cut)
        return;
    apply(net, from, to, net->cuts[from][to], false);
    apply(net, from, to, cut, true);
    net->cuts[from][to] = cut;
}

void net_set_both(struct net *net, int a, int b, enum net_cut cut)
{
    net_set(net, a, b, cut);
    net_set(net, b, a, cut);
}

void net_heal(struct net *net)
{
    for (int from = 0; from < net->count; from++)
        for (int to = 0; to < net->count; to++)
            net_set(net, from, to, NET_OPEN);
}

void net_split(struct net *net, unsigned side, enum net_cut cut)
{
    for (int a = 0; a < net->count; a++)
        for (int b = 0; b < net->count; b++)
            if ((side >> a & 1) && !(side >> b & 1))
                net_set_both(net, a, b, cut);
}
