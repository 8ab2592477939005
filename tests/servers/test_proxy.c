/* SPDX-License-Identifier: Apache-2.0 */

/* The proxy of the tests does what it is told, in front of a server that says back what it hears. */
#include "os/clock.h"
#include "ports.h"
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS 60000
#define QUIET_MS 60 /* so long nothing comes that must not come */

struct bench {
    struct test_proxy proxy;
    pid_t server;
    int lock_fd;
};

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((in_port_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* One process per connection, which ends when the client has nothing more to say. */
static void serve(int listen_fd)
{
    (void)signal(SIGCHLD, SIG_IGN);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* end with the test, also with one that fails */
    for (;;) {
        int fd = accept(listen_fd, NULL, NULL);
        char bytes[4096];
        ssize_t count;

        if (fd >= 0 && fork() == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            while ((count = recv(fd, bytes, sizeof bytes, 0)) > 0)
                if (send(fd, bytes, (size_t)count, MSG_NOSIGNAL) != count)
                    break;
            _exit(0);
        }
        (void)close(fd);
    }
}

static int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    struct sockaddr_in address;
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int port;

    assert_non_null(bench);
    assert_true(fd >= 0);
    port = test_ports_claim(&bench->lock_fd);
    address = loopback(port);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 10), 0);
    bench->server = fork();
    assert_true(bench->server >= 0);
    if (bench->server == 0)
        serve(fd);
    (void)close(fd);
    test_proxy_start(&bench->proxy, port);
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    test_proxy_stop(&bench->proxy);
    assert_int_equal(kill(bench->server, SIGKILL), 0);
    assert_int_equal(waitpid(bench->server, NULL, 0), bench->server);
    (void)close(bench->lock_fd);
    free(bench);
    return 0;
}

/* A connection through the proxy; -1 and errno if there is none. */
static int connect_through(const struct bench *bench)
{
    struct sockaddr_in address = loopback(bench->proxy.port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static bool is_quiet(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    return poll(&wait, 1, QUIET_MS) == 0;
}

/* What comes next: a number of bytes, 0 for the end, or -1 and errno. */
static ssize_t hear(int fd, char *bytes, size_t size)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&wait, 1, LIMIT_MS), 1);
    return recv(fd, bytes, size, 0);
}

static void expect_text(int fd, const char *text)
{
    char bytes[64];

    assert_int_equal(hear(fd, bytes, strlen(text)), strlen(text));
    assert_memory_equal(bytes, text, strlen(text));
}

static void expect_reset(int fd)
{
    char byte;

    assert_int_equal(hear(fd, &byte, 1), -1);
    assert_int_equal(errno, ECONNRESET);
    (void)close(fd);
}

/* Until so many bytes have gone to the server. */
static void await_sent(struct bench *bench, uint64_t bytes)
{
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    gavel_ns limit = clock_now() + LIMIT_MS * NS_PER_MS;

    while (test_proxy_count(&bench->proxy).to_server < bytes) {
        assert_true(clock_now() < limit);
        (void)nanosleep(&pause, NULL);
    }
}

static void test_bytes_pass_in_both_directions_up_to_the_end(void **state)
{
    enum { SIZE = 1 << 20 };
    struct bench *bench = *state;
    int fd = connect_through(bench);
    unsigned char *sent = malloc(SIZE);
    unsigned char *got = malloc(SIZE);
    size_t sent_size = 0;
    size_t got_size = 0;
    ssize_t count;
    char byte;

    assert_true(fd >= 0 && sent && got);
    for (size_t i = 0; i < SIZE; i++)
        sent[i] = (unsigned char)(i * 7 + i / 251);
    while (got_size < SIZE) {
        struct pollfd wait = {.fd = fd, .events = (short)(POLLIN | (sent_size < SIZE ? POLLOUT : 0))};

        assert_int_equal(poll(&wait, 1, LIMIT_MS), 1);
        if (wait.revents & POLLOUT) {
            count = send(fd, sent + sent_size, SIZE - sent_size, MSG_DONTWAIT | MSG_NOSIGNAL);
            sent_size += count > 0 ? (size_t)count : 0;
        }
        if (wait.revents & POLLIN) {
            count = recv(fd, got + got_size, SIZE - got_size, 0);
            assert_true(count > 0);
            got_size += (size_t)count;
        }
    }
    assert_memory_equal(sent, got, SIZE);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    assert_int_equal(hear(fd, &byte, 1), 0); /* the server ends it then */
    assert_int_equal(test_proxy_count(&bench->proxy).to_client, SIZE);
    (void)close(fd);
    free(sent);
    free(got);
}

static void check_delay(struct bench *bench, int fd, const char *command)
{
    gavel_ns began;

    test_proxy_say(&bench->proxy, "%s", command);
    began = clock_now();
    say(fd, "hello");
    expect_text(fd, "hello");
    assert_true(clock_now() - began >= 80 * NS_PER_MS);
}

static void test_each_direction_is_delayed_by_itself(void **state)
{
    struct bench *bench = *state;
    int fd = connect_through(bench);
    uint64_t before = 0;

    assert_true(fd >= 0);
    check_delay(bench, fd, "delay 80 0");
    check_delay(bench, fd, "delay 0 80");
    check_delay(bench, fd, "delay 40 40");
    before = test_proxy_count(&bench->proxy).to_server;
    test_proxy_say(&bench->proxy, "delay 60000 0");
    say(fd, "late");
    assert_true(is_quiet(fd));
    assert_int_equal(test_proxy_count(&bench->proxy).to_server, before); /* it is on its way */
    test_proxy_say(&bench->proxy, "pass");                               /* and arrives */
    expect_text(fd, "late");
    (void)close(fd);
}

static void test_a_drop_takes_connections_and_swallows_all(void **state)
{
    struct bench *bench = *state;
    int old = connect_through(bench);
    int fresh;

    say(old, "a");
    expect_text(old, "a");
    test_proxy_say(&bench->proxy, "drop");
    fresh = connect_through(bench);
    assert_true(fresh >= 0);
    say(old, "b");
    say(fresh, "c");
    assert_true(is_quiet(old));
    assert_true(is_quiet(fresh));
    assert_int_equal(test_proxy_count(&bench->proxy).to_server, 1);
    test_proxy_say(&bench->proxy, "pass"); /* what has lost bytes must not go on */
    expect_reset(old);
    expect_reset(fresh);
    fresh = connect_through(bench);
    say(fresh, "d");
    expect_text(fresh, "d");
    (void)close(fresh);
}

static void test_a_cut_resets_what_there_is_and_lets_new_ones_in(void **state)
{
    struct bench *bench = *state;
    int fds[3];

    for (int i = 0; i < 3; i++) {
        fds[i] = connect_through(bench);
        say(fds[i], "a");
        expect_text(fds[i], "a");
    }
    test_proxy_say(&bench->proxy, "cut");
    for (int i = 0; i < 3; i++)
        expect_reset(fds[i]);
    fds[0] = connect_through(bench);
    say(fds[0], "b");
    expect_text(fds[0], "b");
    (void)close(fds[0]);
    assert_int_equal(test_proxy_count(&bench->proxy).opened, 4);
}

static void test_a_muted_server_hears_and_is_not_heard(void **state)
{
    struct bench *bench = *state;
    int fd = connect_through(bench);

    say(fd, "a");
    expect_text(fd, "a");
    test_proxy_say(&bench->proxy, "mute");
    say(fd, "bcd");
    await_sent(bench, 4);
    assert_true(is_quiet(fd));
    say(fd, "e");
    await_sent(bench, 5); /* it still hears */
    assert_int_equal(test_proxy_count(&bench->proxy).to_client, 1);
    test_proxy_say(&bench->proxy, "pass");
    expect_reset(fd);
}

static void test_a_server_is_muted_after_so_many_bytes(void **state)
{
    struct bench *bench = *state;
    int fd = connect_through(bench);

    test_proxy_say(&bench->proxy, "mute 5");
    say(fd, "abcd");
    expect_text(fd, "abcd");
    say(fd, "e");
    await_sent(bench, 5);
    assert_true(is_quiet(fd));
    (void)close(fd);
}

static void test_a_connection_snaps_when_the_server_answers(void **state)
{
    struct bench *bench = *state;
    int fd = connect_through(bench);

    test_proxy_say(&bench->proxy, "snap 3");
    say(fd, "ab");
    expect_text(fd, "ab");
    assert_true(is_quiet(fd));
    say(fd, "c");
    expect_reset(fd);
    assert_int_equal(test_proxy_count(&bench->proxy).to_server, 3); /* and yet it has arrived */
    assert_int_equal(test_proxy_count(&bench->proxy).to_client, 2);
}

/* As a proxy does that gives its server up and does not tell its client. */
static void test_the_servers_side_alone_is_closed(void **state)
{
    static const char *const commands[] = {"fin", "rst"};
    struct bench *bench = *state;

    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        int fd = connect_through(bench);

        say(fd, "a");
        expect_text(fd, "a");
        test_proxy_say(&bench->proxy, "%s", commands[i]);
        assert_true(is_quiet(fd));
        say(fd, "b");
        assert_true(is_quiet(fd));
        (void)close(fd);
        fd = connect_through(bench); /* later ones pass */
        say(fd, "c");
        expect_text(fd, "c");
        (void)close(fd);
    }
}

static void test_new_connections_are_refused_and_old_ones_live_on(void **state)
{
    struct bench *bench = *state;
    int fd = connect_through(bench);

    say(fd, "a");
    expect_text(fd, "a");
    test_proxy_say(&bench->proxy, "refuse");
    assert_int_equal(connect_through(bench), -1);
    assert_int_equal(errno, ECONNREFUSED);
    say(fd, "b");
    expect_text(fd, "b");
    (void)close(fd);
    test_proxy_say(&bench->proxy, "pass");
    fd = connect_through(bench);
    say(fd, "c");
    expect_text(fd, "c");
    (void)close(fd);
}

static void test_a_client_learns_that_there_is_no_server(void **state)
{
    struct bench *bench = *state;
    struct test_proxy lonely;
    struct sockaddr_in address;
    int lock_fd;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    (void)bench;
    test_proxy_start(&lonely, test_ports_claim(&lock_fd)); /* a port that nobody uses */
    address = loopback(lonely.port);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    expect_reset(fd);
    test_proxy_stop(&lonely);
    test_proxy_stop(&lonely); /* once more is nothing */
    (void)close(lock_fd);
}

static void test_what_is_no_command_is_refused(void **state)
{
    static const char *const bad[] = {"nonsense\n", "\n",       "delay 5\n",  "delay x y\n",
                                      "pass now\n", "drop 1\n", "mute 1 2\n", "delay -1 -1\n"};
    struct bench *bench = *state;
    char answer[8];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        say(bench->proxy.helper.fd, bad[i]);
        assert_int_equal(hear(bench->proxy.helper.fd, answer, 4), 4);
        assert_memory_equal(answer, "bad\n", 4);
    }
    test_proxy_say(&bench->proxy, "pass"); /* it goes on */
}

static void test_the_proxy_ends_with_the_test(void **state)
{
    struct bench *bench = *state;
    const struct timespec moment = {.tv_nsec = NS_PER_MS};
    gavel_ns limit = clock_now() + LIMIT_MS * NS_PER_MS;
    struct bench other = {0};
    int fds[2];
    int fd;
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        test_proxy_start(&other.proxy, bench->proxy.port);
        (void)!write(fds[1], &other.proxy, sizeof other.proxy);
        for (;;)
            (void)pause();
    }
    (void)close(fds[1]);
    assert_int_equal(read(fds[0], &other.proxy, sizeof other.proxy), sizeof other.proxy);
    (void)close(fds[0]);
    (void)close(connect_through(&other));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    while ((fd = connect_through(&other)) >= 0) {
        (void)close(fd);
        assert_true(clock_now() < limit);
        (void)nanosleep(&moment, NULL);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_bytes_pass_in_both_directions_up_to_the_end),
        TEST(test_each_direction_is_delayed_by_itself),
        TEST(test_a_drop_takes_connections_and_swallows_all),
        TEST(test_a_cut_resets_what_there_is_and_lets_new_ones_in),
        TEST(test_a_muted_server_hears_and_is_not_heard),
        TEST(test_a_server_is_muted_after_so_many_bytes),
        TEST(test_a_connection_snaps_when_the_server_answers),
        TEST(test_the_servers_side_alone_is_closed),
        TEST(test_new_connections_are_refused_and_old_ones_live_on),
        TEST(test_a_client_learns_that_there_is_no_server),
        TEST(test_what_is_no_command_is_refused),
        TEST(test_the_proxy_ends_with_the_test),
    };

    return cmocka_run_group_tests_name("proxy", tests, NULL, NULL);
}
