/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A proxy in front of a server of the tests, which delays, swallows and cuts on
 * command; relay.h lists the commands. It ends with the test.
 *
 *     test_proxy_start(&proxy, server.port);
 *     test_server_url(&server, "t1", proxy.address, url, sizeof url);
 *     test_proxy_say(&proxy, "mute %d", 100);
 */
#ifndef TESTS_SERVERS_PROXY_H
#define TESTS_SERVERS_PROXY_H

#include "helper.h"

#include <stdint.h>

struct test_proxy {
    int port;
    char address[32]; /* "127.0.0.1:20020"; "": not started */
    struct test_helper helper;
    int lock_fd;
};

struct test_proxy_count {
    uint64_t to_server; /* bytes */
    uint64_t to_client;
    uint64_t opened; /* connections taken so far */
};

/* Starts one; it listens when this returns. */
void test_proxy_start(struct test_proxy *proxy, int target_port);

/* Safe on a zeroed struct. */
void test_proxy_stop(struct test_proxy *proxy);

/* Gives a command, which is in force when this returns; fails the test if it is not a command. */
void test_proxy_say(struct test_proxy *proxy, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct test_proxy_count test_proxy_count(struct test_proxy *proxy);

#endif
