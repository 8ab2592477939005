/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Real servers for the tests in C: MariaDB, etcd and radosgw, on loopback, in
 * a directory and on ports of their own. They end with the test, also with one
 * that crashes or is killed: a process beside it (server_owner.h) sees to that.
 *
 * One per program, started by its main() or a group's set-up; each test has a
 * database, bucket or prefix of its own:
 *
 *     test_server_start(&server, TEST_MARIADB);
 *     test_server_make(&server, "t1");
 *     test_server_url(&server, "t1", NULL, url, sizeof url);
 *     …
 *     test_server_stop(&server);
 *
 * Any failure fails the test, with the end of the server's log. All calls are
 * for the thread that started it.
 */
#ifndef TESTS_SERVERS_SERVER_H
#define TESTS_SERVERS_SERVER_H

#include "helper.h"

#include <stddef.h>

enum test_server_kind {
    TEST_MARIADB,
    TEST_ETCD,         /* one member */
    TEST_ETCD_CLUSTER, /* three */
    TEST_RADOSGW,      /* S3: a gateway, and behind it one monitor and one OSD in memory */
};

#define TEST_SERVER_MEMBERS 3 /* of a cluster */
#define TEST_SERVER_ALL (-1)  /* all members, or the only server */

/* The user (mariadb) or access key (radosgw) with all rights; etcd requires none. */
#define TEST_SERVER_USER "gavel"
#define TEST_SERVER_PASSWORD "testsecret"

struct test_server {
    enum test_server_kind kind;
    char directory[100];  /* "": not started */
    int port;             /* of its (first member's) clients, on 127.0.0.1 */
    char address[80];     /* "127.0.0.1:20000"; of a cluster three of them, separated by commas */
    char tls_address[80]; /* the same with TLS, which MariaDB has on the same port */
    char ca[120];     /* the file of the authority for it: its certificate is for 127.0.0.1 and localhost */
    char socket[120]; /* MariaDB: here root needs no password; "" for others */
    struct test_helper server_owner; /* the rest is for server.c */
    int lock_fd;
};

/*
 * Starts one and waits until it answers. Sets the environment variables by which the drivers find the
 * credentials above (GAVEL_MYSQL_…, AWS_…); a test that wants others changes them afterwards.
 */
void test_server_start(struct test_server *server, enum test_server_kind kind);

/* Ends it and removes its directory. Safe on a zeroed struct. */
void test_server_stop(struct test_server *server);

/* Makes, or removes with all that is in it, a database or bucket; of etcd the keys that begin with
 * "/name". */
void test_server_make(struct test_server *server, const char *name);
void test_server_drop(struct test_server *server, const char *name);

/*
 * The URL of a store there: mysql://…/name, s3://name/p?endpoint=…, etcd://…/name. `address` is that of a
 * proxy (or several) in front of it; NULL: its own.
 */
void test_server_url(const struct test_server *server, const char *name, const char *address, char *url,
                     size_t size);

/* Of a cluster one member, or TEST_SERVER_ALL. Only the gateway of radosgw is killed: its data is in
 * memory. */
void test_server_kill(struct test_server *server, int member); /* by SIGKILL; gone when it returns */
void test_server_restart(
    struct test_server *server); /* what was killed, with directory and ports of before */
void test_server_freeze(struct test_server *server, int member); /* by SIGSTOP; of radosgw the OSD */
void test_server_thaw(struct test_server *server, int member);

/* KILL, TERM, STOP or CONT to a process of it: "mariadb", "etcd-0" to "etcd-2", "rgw", "osd", "mon". */
void test_server_signal(struct test_server *server, const char *process, const char *signal);

/* Runs SQL on MariaDB as root; several statements are separated by semicolons. */
void test_server_sql(struct test_server *server, const char *sql);

#endif
