/* SPDX-License-Identifier: Apache-2.0 */

/* A port that is taken: by a predecessor that is about to go, or by somebody who stays. */
#include "net/listen.h"

#include "os/clock.h"
#include "os/retry.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

static volatile sig_atomic_t held = -1;

/* The predecessor is gone. */
static void let_go(int number)
{
    (void)number;
    (void)close(held);
    held = -1;
}

static int hold(struct sockaddr_in *address)
{
    socklen_t length = sizeof *address;
    int fd;

    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    fd = listen_open((const struct sockaddr *)address, length, SOCK_STREAM, 1);
    assert_true(fd >= 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &length), 0);
    return fd;
}

static void test_a_port_that_becomes_free_within_a_second_is_taken(void **state)
{
    const struct itimerval soon = {.it_value.tv_usec = 50000};
    struct sigaction action = {.sa_handler = let_go};
    struct sockaddr_in address;
    int fd;

    (void)state;
    held = hold(&address);
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
    fd = listen_open((const struct sockaddr *)&address, sizeof address, SOCK_STREAM, 1);
    assert_int_equal(held, -1);
    assert_true(fd >= 0);
    (void)close(fd);
}

static void test_a_port_that_stays_taken_is_told_after_a_second(void **state)
{
    struct sockaddr_in address;
    int other = hold(&address);
    gavel_ns began = clock_now();

    (void)state;
    assert_int_equal(listen_once((const struct sockaddr *)&address, sizeof address, SOCK_STREAM, 1),
                     -EADDRINUSE);
    assert_int_equal(listen_open((const struct sockaddr *)&address, sizeof address, SOCK_STREAM, 1),
                     -EADDRINUSE);
    assert_true(clock_now() - began >= ns_from_ms(RETRY_FOR_MS));
    (void)close(other);
}

/* Nothing is tried again that no waiting mends. */
static void test_another_failure_is_told_at_once(void **state)
{
    const struct sockaddr_in elsewhere = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201)}; /* 192.0.2.1, which nobody has */

    (void)state;
    assert_int_equal(listen_open((const struct sockaddr *)&elsewhere, sizeof elsewhere, SOCK_STREAM, 1),
                     -EADDRNOTAVAIL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_port_that_becomes_free_within_a_second_is_taken),
        cmocka_unit_test(test_a_port_that_stays_taken_is_told_after_a_second),
        cmocka_unit_test(test_another_failure_is_told_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
