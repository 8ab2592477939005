/* SPDX-License-Identifier: Apache-2.0 */

#include "proxy.h"

#include "ports.h"
#include "relay.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

struct plan {
    int port;
    int target;
};

/* In a child of the test. */
static int run_relay(const void *argument, int fd)
{
    const struct plan *plan = argument;
    const struct relay relay = {.port = plan->port, .target = plan->target, .in_fd = fd, .out_fd = fd};

    return relay_run(&relay);
}

void test_proxy_start(struct test_proxy *proxy, int target_port)
{
    struct plan plan = {.target = target_port};

    *proxy = (struct test_proxy){0};
    plan.port = proxy->port = test_ports_claim(&proxy->lock_fd);
    (void)snprintf(proxy->address, sizeof proxy->address, "127.0.0.1:%d", proxy->port);
    test_helper_start(&proxy->helper, run_relay, &plan, proxy->lock_fd);
    test_helper_await(&proxy->helper);
}

void test_proxy_stop(struct test_proxy *proxy)
{
    if (proxy->address[0] == '\0')
        return;
    test_helper_stop(&proxy->helper);
    (void)close(proxy->lock_fd);
    *proxy = (struct test_proxy){0};
}

void test_proxy_say(struct test_proxy *proxy, const char *format, ...)
{
    char command[100];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    test_helper_order(&proxy->helper, command, NULL, 0);
}

struct test_proxy_count test_proxy_count(struct test_proxy *proxy)
{
    struct test_proxy_count count;
    char rest[80];

    test_helper_order(&proxy->helper, "count", rest, sizeof rest);
    assert_int_equal(
        sscanf(rest, " %" SCNu64 " %" SCNu64 " %" SCNu64, &count.to_server, &count.to_client, &count.opened),
        3);
    return count;
}
