/* SPDX-License-Identifier: Apache-2.0 */

#include "server.h"

#include "ports.h"
#include "server_owner.h"

#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TLS_OFFSET_ETCD 6
#define TLS_OFFSET_RADOSGW 1

extern char **environ;

static const struct {
    const char *command; /* in the directory of this file */
    const char *count;   /* of members, as the command wants it; NULL: nothing */
    int members;
    const char *killed; /* process names, with a number behind if there are several members */
    const char *frozen;
} kinds[] = {
    [TEST_MARIADB] = {"mariadb", NULL, 1, "mariadb", "mariadb"},
    [TEST_ETCD] = {"etcd", NULL, 1, "etcd-0", "etcd-0"},
    [TEST_ETCD_CLUSTER] = {"etcd", "3", TEST_SERVER_MEMBERS, "etcd-", "etcd-"},
    [TEST_RADOSGW] = {"radosgw", NULL, 1, "rgw", "osd"},
};

static const char *command_path(const struct test_server *server)
{
    static char path[400];

    (void)snprintf(path, sizeof path, "%s/%s", TEST_SERVERS_DIRECTORY, kinds[server->kind].command);
    return path;
}

/* In a child of the test. */
static int run_server_owner(const void *argument, int fd)
{
    const struct test_server *server = argument;
    char port[16];
    const char *command[] = {command_path(server),      "up", server->directory, port,
                             kinds[server->kind].count, NULL};
    const struct server_owner server_owner = {
        .directory = server->directory, .command = command, .in_fd = fd, .out_fd = fd};

    (void)snprintf(port, sizeof port, "%d", server->port);
    return server_owner_run(&server_owner);
}

static void order(struct test_server *server, const char *command)
{
    test_helper_order(&server->server_owner, command, NULL, 0);
}

static void set_addresses(struct test_server *server)
{
    int tls_offset = 0;

    if (server->kind == TEST_ETCD || server->kind == TEST_ETCD_CLUSTER)
        tls_offset = TLS_OFFSET_ETCD;
    else if (server->kind == TEST_RADOSGW)
        tls_offset = TLS_OFFSET_RADOSGW;
    for (int i = 0; i < kinds[server->kind].members; i++) {
        size_t used = strlen(server->address);
        size_t tls_used = strlen(server->tls_address);

        (void)snprintf(server->address + used, sizeof server->address - used, "%s127.0.0.1:%d", i ? "," : "",
                       server->port + i);
        (void)snprintf(server->tls_address + tls_used, sizeof server->tls_address - tls_used,
                       "%s127.0.0.1:%d", i ? "," : "", server->port + tls_offset + i);
    }
    (void)snprintf(server->ca, sizeof server->ca, "%s/tls.crt", server->directory);
    if (server->kind == TEST_MARIADB)
        (void)snprintf(server->socket, sizeof server->socket, "%s/sock", server->directory);
}

static void set_credentials(enum test_server_kind kind)
{
    if (kind == TEST_MARIADB) {
        assert_int_equal(setenv("GAVEL_MYSQL_USER", TEST_SERVER_USER, 1), 0);
        assert_int_equal(setenv("GAVEL_MYSQL_PASSWORD", TEST_SERVER_PASSWORD, 1), 0);
    }
    if (kind == TEST_RADOSGW) {
        assert_int_equal(setenv("AWS_ACCESS_KEY_ID", TEST_SERVER_USER, 1), 0);
        assert_int_equal(setenv("AWS_SECRET_ACCESS_KEY", TEST_SERVER_PASSWORD, 1), 0);
        assert_int_equal(setenv("AWS_REGION", "us-east-1", 1), 0);
    }
}

void test_server_start(struct test_server *server, enum test_server_kind kind)
{
    const char *parent = getenv("TMPDIR");

    *server = (struct test_server){.kind = kind};
    if (snprintf(server->directory, sizeof server->directory, "%s/gavel-server-XXXXXX",
                 parent ? parent : "/tmp") >= (int)sizeof server->directory)
        fail_msg("%s is too long; set TMPDIR to a shorter one", parent);
    assert_non_null(mkdtemp(server->directory));
    server->port = test_ports_claim(&server->lock_fd);
    set_addresses(server);
    set_credentials(kind);
    test_helper_start(&server->server_owner, run_server_owner, server, server->lock_fd);
    order(server, "up");
}

void test_server_stop(struct test_server *server)
{
    if (server->directory[0] == '\0')
        return;
    test_helper_stop(&server->server_owner);
    (void)close(server->lock_fd);
    *server = (struct test_server){0};
}

void test_server_signal(struct test_server *server, const char *process, const char *signal)
{
    char command[120];

    (void)snprintf(command, sizeof command, "signal %s %s", process, signal);
    order(server, command);
}

static void signal_members(struct test_server *server, const char *process, int member, const char *signal)
{
    for (int i = 0; i < kinds[server->kind].members; i++) {
        char name[32];

        if (member != TEST_SERVER_ALL && member != i)
            continue;
        (void)snprintf(name, sizeof name, "%s", process);
        if (kinds[server->kind].members > 1)
            (void)snprintf(name, sizeof name, "%s%d", process, i);
        test_server_signal(server, name, signal);
    }
}

void test_server_kill(struct test_server *server, int member)
{
    signal_members(server, kinds[server->kind].killed, member, "KILL");
}

void test_server_freeze(struct test_server *server, int member)
{
    signal_members(server, kinds[server->kind].frozen, member, "STOP");
}

void test_server_thaw(struct test_server *server, int member)
{
    signal_members(server, kinds[server->kind].frozen, member, "CONT");
}

void test_server_restart(struct test_server *server) { order(server, "up"); }

/* Runs the server's command with a verb and perhaps a name, and `input` (NULL: none) on its standard
 * input. */
static void run_command(struct test_server *server, const char *verb, const char *name, const char *input)
{
    const char *const argv[] = {command_path(server), verb, server->directory, name, NULL};
    posix_spawn_file_actions_t actions;
    int fds[2];
    int status;
    pid_t pid;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, fds[0], STDIN_FILENO), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO), 0);
    /* It changes nothing of argv: its type is older than const. */
    assert_int_equal(posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ), 0);
    assert_int_equal(posix_spawn_file_actions_destroy(&actions), 0);
    (void)close(fds[0]);
    if (input)
        assert_int_equal(write(fds[1], input, strlen(input)), strlen(input));
    (void)close(fds[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("failed: %s %s %s", argv[0], verb, name ? name : "");
}

void test_server_make(struct test_server *server, const char *name)
{
    if (server->kind == TEST_MARIADB || server->kind == TEST_RADOSGW)
        run_command(server, "make", name, NULL);
}

void test_server_drop(struct test_server *server, const char *name)
{
    run_command(server, "drop", name, NULL);
}

void test_server_sql(struct test_server *server, const char *sql)
{
    assert_int_equal(server->kind, TEST_MARIADB);
    run_command(server, "sql", NULL, sql);
}

void test_server_url(const struct test_server *server, const char *name, const char *address, char *url,
                     size_t size)
{
    int length = 0;

    if (!address)
        address = server->address;
    if (server->kind == TEST_MARIADB)
        length = snprintf(url, size, "mysql://%s@%s/%s", TEST_SERVER_USER, address, name);
    else if (server->kind == TEST_RADOSGW)
        length = snprintf(url, size, "s3://%s/p?endpoint=http://%s&path_style=on", name, address);
    else
        length = snprintf(url, size, "etcd://%s/%s", address, name);
    assert_true(length > 0 && (size_t)length < size);
}
