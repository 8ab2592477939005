/* SPDX-License-Identifier: Apache-2.0 */

/* Telling the service manager: what arrives at its socket, and that nothing it does can hold us up. */
#include "os/notify.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS 60000
#define FLOOD 100000 /* datagrams; no queue of a socket holds so many */

struct manager {
    struct notify notify;
    int fd;
    char directory[64];
    char name[100]; /* as in NOTIFY_SOCKET */
};

static void listen_at(struct manager *manager)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(manager->name);

    memcpy(address.sun_path, manager->name, length);
    if (manager->name[0] == '@')
        address.sun_path[0] = '\0';
    manager->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(manager->fd >= 0);
    assert_int_equal(bind(manager->fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)),
                     0);
    assert_int_equal(setenv("NOTIFY_SOCKET", manager->name, 1), 0);
}

static int setup(void **state)
{
    struct manager *manager = calloc(1, sizeof *manager);

    manager->fd = -1;
    manager->notify.fd = -1;
    snprintf(manager->directory, sizeof manager->directory, "/tmp/gavel-notify.XXXXXX");
    assert_non_null(mkdtemp(manager->directory));
    snprintf(manager->name, sizeof manager->name, "%s/socket", manager->directory);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    *state = manager;
    return 0;
}

static int teardown(void **state)
{
    struct manager *manager = *state;

    notify_close(&manager->notify);
    if (manager->fd >= 0)
        close(manager->fd);
    snprintf(manager->name, sizeof manager->name, "%s/socket", manager->directory);
    unlink(manager->name);
    rmdir(manager->directory);
    free(manager);
    return 0;
}

static void assert_next(const struct manager *manager, const char *expected)
{
    struct pollfd fd = {.fd = manager->fd, .events = POLLIN};
    char text[4096];
    ssize_t length;

    assert_int_equal(poll(&fd, 1, LIMIT_MS), 1);
    length = recv(manager->fd, text, sizeof text - 1, 0);
    assert_true(length >= 0);
    text[length] = '\0';
    assert_string_equal(text, expected);
}

static void test_each_message_is_one_datagram_to_the_path(void **state)
{
    struct manager *manager = *state;

    listen_at(manager);
    notify_open(&manager->notify);
    assert_true(notify_send(&manager->notify, "READY=1\nSTATUS=leads %s with epoch %d", "nightly", 7));
    assert_true(notify_send(&manager->notify, "STOPPING=1"));
    assert_next(manager, "READY=1\nSTATUS=leads nightly with epoch 7");
    assert_next(manager, "STOPPING=1");
}

static void test_an_abstract_name_is_understood(void **state)
{
    struct manager *manager = *state;

    snprintf(manager->name, sizeof manager->name, "@gavel-test-notify-%d", (int)getpid());
    listen_at(manager);
    notify_open(&manager->notify);
    assert_true(notify_send(&manager->notify, "WATCHDOG=1"));
    assert_next(manager, "WATCHDOG=1");
}

static void test_the_command_does_not_inherit_the_socket(void **state)
{
    struct manager *manager = *state;

    listen_at(manager);
    setenv("WATCHDOG_USEC", "3000000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    notify_open(&manager->notify);
    assert_null(getenv("NOTIFY_SOCKET"));
    assert_null(getenv("WATCHDOG_USEC"));
    assert_null(getenv("WATCHDOG_PID"));
}

static void test_without_a_socket_nothing_is_sent_and_nothing_fails(void **state)
{
    struct manager *manager = *state;
    const char *const bad[] = {"", "@", "/", "relative/path", "vsock:2:1234", NULL};

    notify_open(&manager->notify);
    assert_int_equal(manager->notify.fd, -1);
    assert_true(notify_send(&manager->notify, "READY=1"));
    for (size_t i = 0; bad[i]; i++) {
        setenv("NOTIFY_SOCKET", bad[i], 1);
        notify_open(&manager->notify);
        assert_int_equal(manager->notify.fd, -1);
        assert_null(getenv("NOTIFY_SOCKET"));
    }
}

static void test_a_name_that_fits_no_address_is_left_alone(void **state)
{
    struct manager *manager = *state;
    char name[sizeof(struct sockaddr_un)];

    memset(name, 'x', sizeof name);
    name[0] = '/';
    name[sizeof manager->notify.address.sun_path] = '\0';
    setenv("NOTIFY_SOCKET", name, 1);
    notify_open(&manager->notify);
    assert_int_equal(manager->notify.fd, -1);
    name[sizeof manager->notify.address.sun_path - 1] = '\0'; /* the longest that there is */
    setenv("NOTIFY_SOCKET", name, 1);
    notify_open(&manager->notify);
    assert_true(manager->notify.fd >= 0);
    assert_false(notify_send(&manager->notify, "READY=1")); /* nobody is there, and that is told */
}

static void test_a_manager_that_does_not_read_never_holds_us_up(void **state)
{
    struct manager *manager = *state;
    int sent = 0;

    listen_at(manager);
    notify_open(&manager->notify);
    while (sent < FLOOD && notify_send(&manager->notify, "STATUS=%d", sent))
        sent++;
    assert_in_range(sent, 1, FLOOD - 1); /* the queue took some, then refused without waiting */
    assert_next(manager, "STATUS=0");
    assert_true(notify_send(&manager->notify, "STATUS=again"));
}

static void test_a_manager_that_comes_back_is_told_again(void **state)
{
    struct manager *manager = *state;

    listen_at(manager);
    notify_open(&manager->notify);
    close(manager->fd);
    assert_false(notify_send(&manager->notify, "WATCHDOG=1"));
    unlink(manager->name);
    assert_false(notify_send(&manager->notify, "WATCHDOG=1"));
    listen_at(manager);
    assert_true(notify_send(&manager->notify, "STATUS=still here"));
    assert_next(manager, "STATUS=still here");
}

static void test_a_status_that_is_too_long_is_cut(void **state)
{
    struct manager *manager = *state;
    char text[2000];
    char received[4096];

    listen_at(manager);
    notify_open(&manager->notify);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_true(notify_send(&manager->notify, "STATUS=%s", text));
    assert_in_range(recv(manager->fd, received, sizeof received, 0), 500, 1100);
    assert_memory_equal(received, "STATUS=xxxx", 11);
}

static gavel_ns watchdog_of(struct manager *manager, const char *us, const char *pid)
{
    if (us)
        setenv("WATCHDOG_USEC", us, 1);
    if (pid)
        setenv("WATCHDOG_PID", pid, 1);
    setenv("NOTIFY_SOCKET", manager->name, 1);
    notify_close(&manager->notify);
    notify_open(&manager->notify);
    return notify_watchdog_every(&manager->notify);
}

static void test_the_watchdog_is_fed_twice_in_its_limit(void **state)
{
    struct manager *manager = *state;
    char own_pid[16];

    snprintf(own_pid, sizeof own_pid, "%d", (int)getpid());
    listen_at(manager);
    assert_int_equal(watchdog_of(manager, "3000000", own_pid), 1500 * NS_PER_MS);
    assert_int_equal(watchdog_of(manager, "3000000", NULL), 1500 * NS_PER_MS);
    assert_int_equal(watchdog_of(manager, NULL, NULL), 0);
}

static void test_no_watchdog_where_it_is_meant_for_another_or_makes_no_sense(void **state)
{
    struct manager *manager = *state;

    listen_at(manager);
    assert_int_equal(watchdog_of(manager, "3000000", "1"), 0);
    assert_int_equal(watchdog_of(manager, "3000000", "me"), 0);
    assert_int_equal(watchdog_of(manager, "0", NULL), 0);
    assert_int_equal(watchdog_of(manager, "", NULL), 0);
    assert_int_equal(watchdog_of(manager, "-1", NULL), 0);
    assert_int_equal(watchdog_of(manager, "3s", NULL), 0);
    assert_int_equal(watchdog_of(manager, "18446744073709551615", NULL), 0); /* "infinity" */
    assert_int_equal(watchdog_of(manager, "99999999999999999999", NULL), 0);
    setenv("WATCHDOG_USEC", "3000000", 1); /* but nobody to tell */
    notify_close(&manager->notify);
    notify_open(&manager->notify);
    assert_int_equal(notify_watchdog_every(&manager->notify), 0);
}

#define NOTIFY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NOTIFY_TEST(test_each_message_is_one_datagram_to_the_path),
        NOTIFY_TEST(test_an_abstract_name_is_understood),
        NOTIFY_TEST(test_the_command_does_not_inherit_the_socket),
        NOTIFY_TEST(test_without_a_socket_nothing_is_sent_and_nothing_fails),
        NOTIFY_TEST(test_a_name_that_fits_no_address_is_left_alone),
        NOTIFY_TEST(test_a_manager_that_does_not_read_never_holds_us_up),
        NOTIFY_TEST(test_a_manager_that_comes_back_is_told_again),
        NOTIFY_TEST(test_a_status_that_is_too_long_is_cut),
        NOTIFY_TEST(test_the_watchdog_is_fed_twice_in_its_limit),
        NOTIFY_TEST(test_no_watchdog_where_it_is_meant_for_another_or_makes_no_sense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
