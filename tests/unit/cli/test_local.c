/* SPDX-License-Identifier: Apache-2.0 */

/* A cluster on loopback: its ports stay its own while its nodes are down. */
#include "cli/cluster/local.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static int bind_to(uint16_t port, int reuse)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse), 0);
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static void test_ports_of_nodes_that_are_down_are_given_to_nobody_else(void **state)
{
    const struct local_options options = {.gaveld = "/bin/true", .serves_clients = true}; /* down at once */
    struct local_cluster cluster;
    struct gavel_error error = {0};
    uint16_t ports[9];
    int fd;

    (void)state;
    assert_int_equal(local_cluster_start(3, &options, &cluster, &error), GAVEL_OK);
    for (size_t i = 0; i < 3; i++) {
        const struct local_node *node = local_cluster_node(&cluster, i);

        assert_int_equal(local_cluster_await_end(&cluster, i, clock_now() + 60 * NS_PER_S, NULL), GAVEL_OK);
        ports[3 * i] = node->port;
        ports[3 * i + 1] = node->api_port;
        ports[3 * i + 2] = node->client_port;
    }
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(bind_to(ports[i], 0), -1);
        fd = bind_to(ports[i], 1); /* as the node does when it comes back */
        assert_true(fd >= 0);
        (void)close(fd);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(ports[i], ports[j]);
    }
    local_cluster_stop(&cluster);
    fd = bind_to(ports[0], 0);
    assert_true(fd >= 0);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ports_of_nodes_that_are_down_are_given_to_nobody_else),
    };

    return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
