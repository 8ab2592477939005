/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The plain lock-table recipe, as it is found in many programs: a row with an
 * owner and an expiry. The lock lasts 10 s, its owner renews it each 5 s, and
 * who does not have it looks each 10 s. `gavel bench` measures it beside gavel
 * on the same server.
 *
 *     lock-table OPTIONS KEY ID
 *
 * OPTIONS is a file in the form of my.cnf; its group [client] says where the
 * server is, who we are, and which database has the table. Prints a line
 * whenever it gets the lock. A server that does not answer ends it: this is a
 * yardstick, and a bent one is of no use.
 */
#include <mysql.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RENEW_S 5
#define LOOK_S 10
#define LOCK "NOW(6) + INTERVAL 10 SECOND"
#define WORD_MAX 120

#define SCHEMA                                                                                               \
    "CREATE TABLE IF NOT EXISTS recipe_locks (lock_key VARCHAR(255) PRIMARY KEY, owner_id VARCHAR(255) NOT " \
    "NULL, expires_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6))"

/* The expiry follows whoever is the owner by then: MariaDB assigns from left to right. */
#define ACQUIRE                                                                                              \
    "INSERT INTO recipe_locks (lock_key, owner_id, expires_at) VALUES ('%s', '%s', " LOCK ") "               \
    "ON DUPLICATE KEY UPDATE owner_id = IF(expires_at < NOW(), VALUES(owner_id), owner_id), "                \
    "expires_at = IF(owner_id = VALUES(owner_id), VALUES(expires_at), expires_at)"
#define OWNER "SELECT owner_id FROM recipe_locks WHERE lock_key = '%s'"
#define RENEW "UPDATE recipe_locks SET expires_at = " LOCK " WHERE lock_key = '%s' AND owner_id = '%s'"

static _Noreturn void fail(MYSQL *server)
{
    (void)fprintf(stderr, "lock-table: %s\n", mysql_error(server));
    exit(1);
}

/* Only letters that need no quoting. */
static bool is_plain(const char *word)
{
    size_t length = strlen(word);

    return length > 0 && length <= WORD_MAX &&
           strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == length;
}

static void run(MYSQL *server, const char *statement)
{
    if (mysql_query(server, statement) != 0)
        fail(server);
}

static bool is_owner(MYSQL *server, const char *key, const char *id)
{
    char statement[512];
    bool is_ours = false;

    (void)snprintf(statement, sizeof statement, OWNER, key);
    run(server, statement);
    MYSQL_RES *result = mysql_store_result(server);
    if (!result)
        fail(server);
    MYSQL_ROW row = mysql_fetch_row(result);
    if (row && row[0])
        is_ours = strcmp(row[0], id) == 0;
    mysql_free_result(result);
    return is_ours;
}

/* Tries until it is ours. */
static void acquire(MYSQL *server, const char *key, const char *id)
{
    char statement[1024];

    (void)snprintf(statement, sizeof statement, ACQUIRE, key, id);
    for (;;) {
        run(server, statement);
        if (is_owner(server, key, id))
            return;
        (void)sleep(LOOK_S);
    }
}

/* Until it is ours no more. */
static void keep(MYSQL *server, const char *key, const char *id)
{
    char statement[1024];

    (void)snprintf(statement, sizeof statement, RENEW, key, id);
    do {
        (void)sleep(RENEW_S);
        run(server, statement);
    } while (mysql_affected_rows(server) == 1);
}

int main(int argc, char **argv)
{
    if (argc != 4 || !is_plain(argv[2]) || !is_plain(argv[3])) {
        (void)fprintf(stderr, "usage: lock-table OPTIONS KEY ID, with letters, digits, -, _ and .\n");
        return 2;
    }
    MYSQL *server = mysql_init(NULL);
    if (!server)
        return 1;
    if (mysql_options(server, MYSQL_READ_DEFAULT_FILE, argv[1]) != 0 ||
        !mysql_real_connect(server, NULL, NULL, NULL, NULL, 0, NULL, 0))
        fail(server);
    run(server, SCHEMA);
    for (;;) {
        acquire(server, argv[2], argv[3]);
        (void)printf("%s has the lock\n", argv[3]);
        (void)fflush(stdout); /* who reads it may have gone; then nobody cares */
        keep(server, argv[2], argv[3]);
    }
}
