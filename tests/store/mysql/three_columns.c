/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program as there are many: it knows a table of locks by three columns, and
 * nothing of gavel.
 *
 *     three-columns PORT DATABASE TABLE KEY OWNER LOG
 *
 * It acquires by INSERT, or takes over what has expired by one of the two
 * statements that are common, by turns, prolongs its lock by
 * UPDATE … SET expires_at, and lets go of it by turns: by DELETE, by an expiry
 * in the past, or by doing nothing. Of every time that it held the lock it
 * appends a line to the log: who, from when, until when, in nanoseconds of the
 * boot clock. It goes on until it is killed.
 */
#include <mysql.h>
#include <mysqld_error.h>

#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LEASE_NS INT64_C(1000000000)
#define MARGIN_NS INT64_C(50000000) /* it stops so much before the end */
#define RENEWALS 3

struct program {
    MYSQL *mysql;
    const char *table;
    const char *key;
    const char *owner;
    int log;
};

static int64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void sleep_ms(long ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL);
}

static _Noreturn void give_up(struct program *p)
{
    (void)fprintf(stderr, "three-columns: %s\n", mysql_error(p->mysql));
    exit(1);
}

/* The rows that it changed, or -1 if there is such a key already. */
static int64_t run(struct program *p, const char *format, ...)
{
    va_list arguments;
    char sql[1000];

    va_start(arguments, format);
    (void)vsnprintf(sql, sizeof sql, format, arguments);
    va_end(arguments);
    if (mysql_query(p->mysql, sql) == 0)
        return (int64_t)mysql_affected_rows(p->mysql);
    if (mysql_errno(p->mysql) == ER_DUP_ENTRY)
        return -1;
    if (mysql_errno(p->mysql) == ER_LOCK_DEADLOCK)
        return 0;
    give_up(p);
}

/* Whether it holds the lock for longer than that. */
static int is_owner(struct program *p, int seconds)
{
    char sql[500];
    MYSQL_RES *rows;
    MYSQL_ROW row;
    int is_ours;

    (void)snprintf(
        sql, sizeof sql,
        "SELECT owner_id FROM %s WHERE lock_key = '%s' AND expires_at > NOW(6) + INTERVAL %d SECOND",
        p->table, p->key, seconds);
    if (mysql_query(p->mysql, sql) != 0)
        give_up(p);
    rows = mysql_store_result(p->mysql);
    row = rows ? mysql_fetch_row(rows) : NULL;
    is_ours = row && strcmp(row[0], p->owner) == 0;
    mysql_free_result(rows);
    return is_ours;
}

/*
 * The recipe as it stands in many programs, in whole seconds of NOW(). It does not prolong what is held
 * already, so a lock that has not a whole lease left is not taken for one.
 */
static int take_over_plainly(struct program *p)
{
    (void)run(p,
              "INSERT INTO %s (lock_key, owner_id, expires_at) VALUES ('%s', '%s', NOW() + INTERVAL 3 SECOND)"
              " ON DUPLICATE KEY UPDATE owner_id = IF(expires_at < NOW(), VALUES(owner_id), owner_id),"
              " expires_at = IF(expires_at < NOW(), VALUES(expires_at), expires_at)",
              p->table, p->key, p->owner);
    return is_owner(p, 1);
}

static int acquire(struct program *p, int turn)
{
    int64_t inserted = run(
        p, "INSERT INTO %s (lock_key, owner_id, expires_at) VALUES ('%s', '%s', NOW(6) + INTERVAL 1 SECOND)",
        p->table, p->key, p->owner);

    if (inserted == 1)
        return 1;
    if (turn % 2 == 0)
        return take_over_plainly(p);
    (void)run(
        p,
        "INSERT INTO %s (lock_key, owner_id, expires_at) VALUES ('%s', '%s', NOW(6) + INTERVAL 1 SECOND)"
        " ON DUPLICATE KEY UPDATE owner_id = IF(expires_at < NOW(), VALUES(owner_id), owner_id),"
        " expires_at = IF(owner_id = VALUES(owner_id), VALUES(expires_at), expires_at)",
        p->table, p->key, p->owner);
    return is_owner(p, 0);
}

static void let_go(struct program *p, int how)
{
    if (how % 3 == 0)
        (void)run(p, "DELETE FROM %s WHERE lock_key = '%s' AND owner_id = '%s'", p->table, p->key, p->owner);
    else if (how % 3 == 1)
        (void)run(
            p,
            "UPDATE %s SET expires_at = NOW(6) - INTERVAL 1 SECOND WHERE lock_key = '%s' AND owner_id = '%s'",
            p->table, p->key, p->owner);
}

static void note(struct program *p, int64_t began, int64_t ended)
{
    char line[200];
    int length =
        snprintf(line, sizeof line, "%s %lld %lld 0\n", p->owner, (long long)began, (long long)ended);

    if (ended > began && write(p->log, line, (size_t)length) != length)
        exit(1);
}

/* Prolongs the lock a few times; returns the instant until which it was held. */
static int64_t hold(struct program *p, int64_t asked_at)
{
    int64_t until = asked_at + LEASE_NS - MARGIN_NS;

    for (int i = 0; i < RENEWALS && now_ns() < until; i++) {
        int64_t sent_at;

        sleep_ms(60);
        sent_at = now_ns();
        if (sent_at >= until)
            break; /* it was away for too long: the lock may be another's */
        if (run(p,
                "UPDATE %s SET expires_at = NOW(6) + INTERVAL 1 SECOND WHERE lock_key = '%s' AND owner_id = "
                "'%s'"
                " AND expires_at > NOW(6)",
                p->table, p->key, p->owner) == 0)
            break;
        until = sent_at + LEASE_NS - MARGIN_NS;
    }
    return now_ns() < until ? now_ns() : until;
}

int main(int argc, char **argv)
{
    struct program p = {.mysql = mysql_init(NULL)};

    if (argc != 7 || !p.mysql)
        return 2;
    p.table = argv[3];
    p.key = argv[4];
    p.owner = argv[5];
    p.log = open(argv[6], O_WRONLY | O_APPEND | O_CLOEXEC);
    if (p.log < 0 ||
        !mysql_real_connect(p.mysql, "127.0.0.1", getenv("GAVEL_MYSQL_USER"), getenv("GAVEL_MYSQL_PASSWORD"),
                            argv[2], (unsigned)strtoul(argv[1], NULL, 10), NULL, 0))
        give_up(&p);
    for (int turn = 0;; turn++) {
        int64_t asked_at = now_ns();

        if (acquire(&p, turn)) {
            int64_t began = now_ns();

            note(&p, began, hold(&p, asked_at));
            let_go(&p, turn);
            sleep_ms(150); /* for others */
        }
        sleep_ms(20);
    }
}
