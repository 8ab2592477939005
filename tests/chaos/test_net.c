/* SPDX-License-Identifier: Apache-2.0 */

/* That a link that is cut is cut, one way, also for a connection that is up: otherwise the tests of
 * partitions would test nothing. */
#include "net.h"

/* cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT 4000

struct fixture {
    struct net net;
    char why[128];
    bool is_made;
    int ends[2]; /* of a connection from node 0 to node 1 */
};

static struct sockaddr_in address_of(int node)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    char text[32];

    net_address(node, text, sizeof text);
    assert_int_equal(inet_pton(AF_INET, text, &address.sin_addr), 1);
    return address;
}

static bool is_ready(int fd, short events, int limit_ms)
{
    struct pollfd wait = {.fd = fd, .events = events};

    return poll(&wait, 1, limit_ms) == 1 && wait.revents & events;
}

static void need_net(const struct fixture *f)
{
    if (!f->is_made) {
        print_message("%s\n", f->why);
        skip();
    }
}

static void connect_nodes(struct fixture *f)
{
    struct sockaddr_in address = address_of(1);
    int listener = net_socket(&f->net, 1), one = 1;

    assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    f->ends[0] = net_socket(&f->net, 0);
    (void)connect(f->ends[0], (struct sockaddr *)&address, sizeof address); /* goes on below */
    assert_true(is_ready(listener, POLLIN, 5000));
    f->ends[1] = accept(listener, NULL, NULL);
    assert_true(f->ends[1] >= 0);
    close(listener);
}

static void disconnect_nodes(struct fixture *f)
{
    close(f->ends[0]);
    close(f->ends[1]);
}

/* Whether a byte that is written at one end comes out at the other. */
static bool passes(const struct fixture *f, int from, int limit_ms)
{
    char byte = 'x';

    assert_int_equal(send(f->ends[from], &byte, 1, MSG_NOSIGNAL), 1);
    return is_ready(f->ends[!from], POLLIN, limit_ms) && recv(f->ends[!from], &byte, 1, 0) == 1;
}

/* Short: what vanishes is not awaited for long, and what passes takes microseconds. */
#define GONE_MS 100

static void test_what_is_lost_one_way_still_passes_the_other_way(void **state)
{
    struct fixture *f = *state;

    need_net(f);
    connect_nodes(f);
    assert_true(passes(f, 0, 5000));
    assert_true(passes(f, 1, 5000));
    net_set(&f->net, 0, 1, NET_LOST);
    assert_false(passes(f, 0, GONE_MS));
    assert_true(passes(f, 1, 5000));
    net_heal(&f->net);
    assert_true(is_ready(f->ends[1], POLLIN, 5000)); /* what was lost is sent again */
    disconnect_nodes(f);
}

static void test_what_is_refused_vanishes_on_a_connection_that_is_up(void **state)
{
    struct fixture *f = *state;

    need_net(f);
    connect_nodes(f);
    net_set(&f->net, 0, 1, NET_REFUSED);
    assert_false(passes(f, 0, GONE_MS));
    assert_true(passes(f, 1, 5000));
    net_heal(&f->net);
    assert_true(is_ready(f->ends[1], POLLIN, 5000));
    disconnect_nodes(f);
}

static void test_a_new_connection_is_refused_at_once(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_in address = address_of(1);
    int fd;

    need_net(f);
    net_set(&f->net, 0, 1, NET_REFUSED);
    fd = net_socket(&f->net, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), -1);
    assert_int_equal(errno, EHOSTUNREACH);
    close(fd);
    net_heal(&f->net);
}

static void test_a_split_leaves_those_on_one_side_together(void **state)
{
    struct fixture *f = *state;

    need_net(f);
    connect_nodes(f);
    net_split(&f->net, 1u << 2, NET_LOST);
    assert_true(passes(f, 0, 5000));
    net_split(&f->net, 1u << 0, NET_LOST);
    assert_false(passes(f, 0, GONE_MS));
    assert_false(passes(f, 1, GONE_MS));
    net_heal(&f->net);
    disconnect_nodes(f);
}

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture.is_made = net_make(&fixture.net, 3, fixture.why, sizeof fixture.why);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    net_done(&f->net);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_lost_one_way_still_passes_the_other_way),
        cmocka_unit_test(test_what_is_refused_vanishes_on_a_connection_that_is_up),
        cmocka_unit_test(test_a_new_connection_is_refused_at_once),
        cmocka_unit_test(test_a_split_leaves_those_on_one_side_together),
    };

    return cmocka_run_group_tests_name("net", tests, set_up, tear_down);
}
