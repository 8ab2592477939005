/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a connection does first: it makes itself independent of the settings
 * that the server gives every new one (time zone, sql_mode, autocommit,
 * isolation, …), and refuses a server that lacks what the tables need.
 *
 * READ COMMITTED locks no gaps, so that claims of different groups do not wait
 * for each other. Nothing depends on it: each decision is one statement that
 * sees the newest row, also under REPEATABLE READ, which a server that writes
 * its binary log by statements insists on.
 */
#include "base/error.h"
#include "store/mysql/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MARIADB_VERSION_MIN 100202 /* collations without padding */
#define MYSQL_VERSION_MIN 80017    /* likewise */

struct settings {
    unsigned version;
    char version_text[60];
    bool is_mariadb;
    bool logs_statements;
    bool is_galera;
    bool is_group; /* replication by a group, of MySQL */
};

static void take_setting(const char *name, const char *value, struct settings *settings, bool *logs)
{
    unsigned major = 0;
    unsigned minor = 0;
    unsigned patch = 0;

    if (strcasecmp(name, "version") == 0) {
        (void)sscanf(value, "%u.%u.%u", &major, &minor, &patch); /* what is missing stays 0, and is too old */
        settings->version = major * 10000 + minor * 100 + patch;
        settings->is_mariadb = strcasestr(value, "mariadb") != NULL;
        (void)snprintf(settings->version_text, sizeof settings->version_text, "%s", value);
    } else if (strcasecmp(name, "binlog_format") == 0) {
        settings->logs_statements = strcasecmp(value, "STATEMENT") == 0;
    } else if (strcasecmp(name, "log_bin") == 0) {
        *logs = strcasecmp(value, "ON") == 0 || strcmp(value, "1") == 0;
    } else if (strcasecmp(name, "wsrep_on") == 0) {
        settings->is_galera = strcasecmp(value, "ON") == 0 || strcmp(value, "1") == 0;
    } else if (strcasecmp(name, "group_replication_consistency") == 0) {
        settings->is_group = true;
    }
}

static bool read_settings(struct mysql_store *mysql, gavel_ns until, struct settings *ret_settings)
{
    MYSQL_RES *rows = NULL;
    MYSQL_ROW row;
    bool logs = false;

    *ret_settings = (struct settings){0};
    if (!mysql_link_do(
            mysql,
            "SET SESSION sql_select_limit = 18446744073709551615;" /* it holds for what SHOW tells, too */
            " SHOW VARIABLES WHERE Variable_name IN ('version', 'log_bin', 'binlog_format', 'wsrep_on',"
            " 'group_replication_consistency')",
            until, &rows))
        return false;
    while (rows && (row = mysql_fetch_row(rows)))
        if (row[0] && row[1])
            take_setting(row[0], row[1], ret_settings, &logs);
    mysql_free_result(rows);
    ret_settings->logs_statements = ret_settings->logs_statements && logs;
    return true;
}

enum gavel_status mysql_session_begin(struct mysql_store *mysql, gavel_ns until, struct gavel_error *error)
{
    struct settings settings;
    char sql[700];

    if (!read_settings(mysql, until, &settings))
        return mysql_trouble_explain(mysql, error);
    mysql->link.is_mariadb = settings.is_mariadb;
    if (settings.version < (settings.is_mariadb ? MARIADB_VERSION_MIN : MYSQL_VERSION_MIN))
        return error_set(error, GAVEL_ERR_STORE_UNSUPPORTED,
                         "the server of %s is too old: %.60s; gavel needs MariaDB 10.2.2 or MySQL 8.0.17",
                         mysql->shown, settings.version_text);
    /*
     * The waits for locks are short, so that a statement that nobody waits for any more does not stay behind
     * for long. On Galera a statement waits until the node has applied what the others have committed before
     * it.
     */
    (void)snprintf(
        sql, sizeof sql,
        "SET NAMES utf8mb4; SET SESSION TRANSACTION ISOLATION LEVEL %s, READ WRITE;"
        " SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO',"
        " time_zone = '+00:00', autocommit = 1, completion_type = 0, sql_safe_updates = 0,"
        " innodb_lock_wait_timeout = 1, lock_wait_timeout = 2%s%s",
        settings.logs_statements ? "REPEATABLE READ" : "READ COMMITTED",
        settings.is_galera ? ", wsrep_sync_wait = 7" : "",
        settings.is_group ? ", group_replication_consistency = 'BEFORE'" : "");
    if (!mysql_link_do(mysql, sql, until, NULL))
        return mysql_trouble_explain(mysql, error);
    return GAVEL_OK;
}
