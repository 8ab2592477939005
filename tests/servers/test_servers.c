/* SPDX-License-Identifier: Apache-2.0 */

/* The servers of the tests start, answer, can be disturbed, and are gone with the test, however that ends. */
#include "os/clock.h"
#include "server.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT (60 * NS_PER_S)
#define PROCESSES_MAX 8

/* A connection to a port of this machine; -1: nobody listens. */
static int connect_to(int port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((in_port_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* Whether it says something within that time: MariaDB at once, the others when asked by HTTP. */
static bool answers(const struct test_server *server, int member, int limit_ms)
{
    static const char ask[] = "GET /health HTTP/1.0\r\n\r\n";
    int fd = connect_to(server->port + member);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    char byte;
    bool is_good;

    if (fd < 0)
        return false;
    if (server->kind != TEST_MARIADB)
        (void)!send(fd, ask, sizeof ask - 1, MSG_NOSIGNAL);
    is_good = poll(&wait, 1, limit_ms) == 1 && recv(fd, &byte, 1, 0) == 1;
    (void)close(fd);
    return is_good;
}

/* The processes of all pid files in the server's directory. */
static size_t list_processes(const struct test_server *server, pid_t *pids)
{
    DIR *directory = opendir(server->directory);
    struct dirent *entry;
    size_t count = 0;

    assert_non_null(directory);
    while ((entry = readdir(directory))) {
        const char *dot = strrchr(entry->d_name, '.');
        char path[400];
        long pid;
        FILE *file;

        if (!dot || strcmp(dot, ".pid") != 0)
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", server->directory, entry->d_name);
        file = fopen(path, "re");
        assert_non_null(file);
        assert_int_equal(fscanf(file, "%ld", &pid), 1);
        (void)fclose(file);
        assert_true(count < PROCESSES_MAX);
        pids[count++] = (pid_t)pid;
    }
    (void)closedir(directory);
    return count;
}

static void await_gone(const pid_t *pids, size_t count, const char *directory)
{
    const struct timespec pause = {.tv_nsec = 5 * NS_PER_MS};
    gavel_ns limit = clock_now() + LIMIT;

    for (size_t i = 0; i < count; i++) {
        while (kill(pids[i], 0) == 0) {
            assert_true(clock_now() < limit);
            (void)nanosleep(&pause, NULL);
        }
    }
    while (access(directory, F_OK) == 0) {
        assert_true(clock_now() < limit);
        (void)nanosleep(&pause, NULL);
    }
}

/* disturb (may be NULL) is called when it runs, and again after a kill and a restart. */
static void check_server(enum test_server_kind kind, size_t processes,
                         void (*disturb)(struct test_server *server, bool is_restarted))
{
    struct test_server server;
    pid_t pids[PROCESSES_MAX];
    char directory[sizeof server.directory];
    char url[512];
    int port;

    test_server_start(&server, kind);
    (void)strcpy(directory, server.directory);
    port = server.port;
    assert_true(answers(&server, 0, 60000));
    assert_int_equal(list_processes(&server, pids), processes);
    for (size_t i = 0; i < processes; i++)
        assert_int_equal(kill(pids[i], 0), 0);
    test_server_url(&server, "test", NULL, url, sizeof url);
    assert_non_null(strstr(url, server.address));
    test_server_make(&server, "test");
    test_server_drop(&server, "test");
    if (disturb)
        disturb(&server, false);

    test_server_kill(&server, TEST_SERVER_ALL);
    assert_int_equal(connect_to(port), -1);
    test_server_restart(&server);
    assert_int_equal(server.port, port);
    assert_true(answers(&server, 0, 60000));
    if (disturb)
        disturb(&server, true);

    assert_int_equal(list_processes(&server, pids), processes);
    test_server_stop(&server);
    await_gone(pids, processes, directory);
    assert_int_equal(connect_to(port), -1);
    test_server_stop(&server); /* once more is nothing */
}

static void disturb_mariadb(struct test_server *server, bool is_restarted)
{
    if (!is_restarted) {
        test_server_make(server, "kept");
        test_server_sql(server, "create table kept.t (a int not null); insert into kept.t values (1);");
        test_server_freeze(server, TEST_SERVER_ALL);
        assert_false(answers(server, 0, 100)); /* the system takes the connection, and nobody greets */
        test_server_thaw(server, TEST_SERVER_ALL);
        assert_true(answers(server, 0, 60000));
        return;
    }
    /* Were the row gone, this would insert a NULL, which is an error. */
    test_server_sql(server, "insert into kept.t values ((select a from kept.t where a = 1));");
    test_server_freeze(server, TEST_SERVER_ALL); /* it must go also when it is frozen */
}

static void test_mariadb_starts_answers_keeps_its_data_and_goes(void **state)
{
    (void)state;
    check_server(TEST_MARIADB, 1, disturb_mariadb);
}

static void test_etcd_starts_answers_and_goes(void **state)
{
    (void)state;
    check_server(TEST_ETCD, 1, NULL);
}

static void test_radosgw_starts_answers_and_goes(void **state)
{
    (void)state;
    check_server(TEST_RADOSGW, 3, NULL);
}

static void test_a_cluster_lives_on_without_one_member(void **state)
{
    struct test_server server;

    (void)state;
    test_server_start(&server, TEST_ETCD_CLUSTER);
    for (int member = 0; member < TEST_SERVER_MEMBERS; member++)
        assert_true(answers(&server, member, 60000));
    test_server_kill(&server, 1);
    assert_false(answers(&server, 1, 60000));
    assert_true(answers(&server, 2, 60000));
    test_server_restart(&server);
    assert_true(answers(&server, 1, 60000));
    test_server_stop(&server);
}

struct news {
    struct test_server server;
    pid_t child; /* of the test, which outlives it and has its descriptors */
};

/* A test that starts a server, tells of it by a pipe, and never ends by itself. */
static pid_t fork_test(struct news *ret_news)
{
    int fds[2];
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct news news;

        test_server_start(&news.server, TEST_ETCD);
        news.child = fork();
        if (news.child == 0)
            (void)alarm(120); /* should nobody be left to end it */
        else
            (void)!write(fds[1], &news, sizeof news);
        for (;;)
            (void)pause();
    }
    (void)close(fds[1]);
    assert_int_equal(read(fds[0], ret_news, sizeof *ret_news), sizeof *ret_news);
    (void)close(fds[0]);
    assert_true(ret_news->child > 0);
    return pid;
}

static void check_end(int signal)
{
    struct news news;
    pid_t pids[PROCESSES_MAX];
    pid_t pid = fork_test(&news);
    size_t count = list_processes(&news.server, pids);

    assert_int_equal(count, 1);
    assert_int_equal(kill(pids[0], 0), 0);
    assert_int_equal(kill(pid, signal), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    await_gone(pids, count, news.server.directory);
    assert_int_equal(kill(news.child, SIGKILL), 0); /* it was there all the time */
    assert_int_equal(connect_to(news.server.port), -1);
}

static void test_servers_are_gone_after_a_kill_of_the_test(void **state)
{
    (void)state;
    check_end(SIGKILL);
}

static void test_servers_are_gone_after_a_crash_of_the_test(void **state)
{
    (void)state;
    check_end(SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mariadb_starts_answers_keeps_its_data_and_goes),
        cmocka_unit_test(test_etcd_starts_answers_and_goes),
        cmocka_unit_test(test_radosgw_starts_answers_and_goes),
        cmocka_unit_test(test_a_cluster_lives_on_without_one_member),
        cmocka_unit_test(test_servers_are_gone_after_a_kill_of_the_test),
        cmocka_unit_test(test_servers_are_gone_after_a_crash_of_the_test),
    };

    return cmocka_run_group_tests_name("servers", tests, NULL, NULL);
}
