/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes sure that the tables are there and can keep the promise: makes those
 * that are missing, adds columns that an older gavel, or a program that knows
 * three columns, did not make, and refuses what it must not touch.
 */
#include "base/error.h"
#include "store/mysql/internal.h"

#include <mysqld_error.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool look_at_tables(struct mysql_store *mysql, gavel_ns until, struct mysql_survey *survey)
{
    const char *table = mysql->target.table;
    MYSQL_RES *rows = NULL;
    MYSQL_ROW row;
    char sql[600];

    (void)snprintf(
        sql, sizeof sql,
        "SELECT t.TABLE_NAME, t.ENGINE, e.TRANSACTIONS FROM information_schema.TABLES t"
        " LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE WHERE t.TABLE_SCHEMA = DATABASE()"
        " AND t.TABLE_NAME IN ('%s', '%s_epochs', '%s_candidates')",
        table, table, table);
    if (!mysql_link_do(mysql, sql, until, &rows))
        return false;
    while (rows && (row = mysql_fetch_row(rows))) {
        for (int i = 0; row[0] && i < MYSQL_TABLES; i++) {
            char name[MYSQL_TABLE_MAX + 20];

            (void)snprintf(name, sizeof name, "%s%s", table, mysql_table_suffixes[i]);
            if (strcasecmp(row[0], name) != 0)
                continue;
            survey->has_table[i] = true;
            if (row[1] && !(row[2] && strcasecmp(row[2], "YES") == 0)) {
                survey->is_unsafe[i] = true;
                (void)snprintf(survey->engine, sizeof survey->engine, "%s", row[1]);
            }
        }
    }
    mysql_free_result(rows);
    return true;
}

static bool look_at_columns(struct mysql_store *mysql, gavel_ns until, struct mysql_survey *survey)
{
    MYSQL_RES *rows = NULL;
    MYSQL_ROW row;
    char sql[400];

    (void)snprintf(sql, sizeof sql,
                   "SELECT COLUMN_NAME, COLUMN_KEY, COLUMN_TYPE, CHARACTER_MAXIMUM_LENGTH, COLLATION_NAME"
                   " FROM information_schema.COLUMNS"
                   " WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '%s'",
                   mysql->target.table);
    if (!mysql_link_do(mysql, sql, until, &rows))
        return false;
    while (rows && (row = mysql_fetch_row(rows))) {
        bool is_key = row[1] && strcasecmp(row[1], "PRI") == 0;

        survey->key_columns += is_key;
        for (int i = 0; row[0] && i < MYSQL_COLUMNS; i++) {
            if (strcasecmp(row[0], mysql_schema_column(i)) != 0)
                continue;
            survey->has_column[i] = true;
            if (i < MYSQL_COLUMNS_SHARED && row[3] && row[4]) { /* bytes have no collation */
                survey->widths[i] = (int)strtol(row[3], NULL, 10);
                survey->is_exact[i] = strcasecmp(row[4], mysql_schema_collation(mysql->link.is_mariadb)) == 0;
            }
            if (strcasecmp(row[0], "lock_key") == 0)
                survey->is_key = is_key;
            else if (strcasecmp(row[0], "expires_at") == 0)
                (void)snprintf(survey->expiry, sizeof survey->expiry, "%s", row[2] ? row[2] : "");
        }
    }
    mysql_free_result(rows);
    return true;
}

bool mysql_survey_take(struct mysql_store *mysql, gavel_ns until, struct mysql_survey *ret_survey)
{
    *ret_survey = (struct mysql_survey){0};
    return look_at_tables(mysql, until, ret_survey) && look_at_columns(mysql, until, ret_survey);
}

bool mysql_survey_has_expiry(const struct mysql_survey *survey)
{
    return strcasecmp(survey->expiry, "timestamp(6)") == 0;
}

/* What mends it, to be copied; a URL that would not fit is left for whoever reads it to fill in. */
static enum gavel_status refuse(const struct mysql_store *mysql, struct gavel_error *error,
                                const char *format, ...) __attribute__((format(printf, 3, 4)));

static enum gavel_status refuse(const struct mysql_store *mysql, struct gavel_error *error,
                                const char *format, ...)
{
    char why[MYSQL_TABLE_MAX + 90];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(why, sizeof why, format, arguments); /* cut off if too long */
    va_end(arguments);
    if (strlen(why) + strlen(mysql->url) <= 255 - sizeof "; run `gavel store migrate ''`")
        return error_set(error, GAVEL_ERR_STORE_UNSUPPORTED, "%s; run `gavel store migrate '%s'`", why,
                         mysql->url);
    return error_set(error, GAVEL_ERR_STORE_UNSUPPORTED,
                     "%s; run `gavel store migrate URL`, with the URL of this store", why);
}

/* What we do not change by ourselves, because another program made it so. */
static enum gavel_status check(const struct mysql_store *mysql, const struct mysql_survey *survey,
                               struct gavel_error *error)
{
    const char *table = mysql->target.table;

    for (int i = 0; i < MYSQL_COLUMNS_SHARED; i++)
        if (!survey->has_column[i])
            return error_set(
                error, GAVEL_ERR_STORE_UNSUPPORTED,
                "the table %s in %s is not one of locks: it has no column %s; name another with table=",
                table, mysql->shown, mysql_schema_column(i));
    if (!survey->is_key || survey->key_columns != 1)
        return refuse(mysql, error,
                      "lock_key alone is not the primary key of table %s: two could hold one group", table);
    if (!mysql_survey_has_expiry(survey))
        return refuse(mysql, error, "expires_at of table %s is %s and must be TIMESTAMP(6)", table,
                      survey->expiry);
    for (int i = 0; i < MYSQL_TABLES; i++)
        if (survey->is_unsafe[i])
            return refuse(mysql, error, "table %s%s is of the engine %s, which has no transactions", table,
                          mysql_table_suffixes[i], survey->engine);
    return GAVEL_OK;
}

static enum gavel_status carry_out(struct mysql_store *mysql, struct text_buffer *text, gavel_ns until,
                                   struct gavel_error *error)
{
    enum gavel_status status = GAVEL_OK;

    if (text->is_short)
        status =
            error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while making tables in %s", mysql->shown);
    /* Another may have added the columns a moment ago. */
    else if (!mysql_link_do(mysql, text->bytes, until, NULL) &&
             mysql->link.trouble.code != ER_DUP_FIELDNAME) {
        mysql->link.trouble.is_making = true;
        status = mysql_trouble_explain(mysql, error);
    }
    text_buffer_done(text);
    return status;
}

enum gavel_status mysql_table_prepare(struct mysql_store *mysql, gavel_ns until, struct gavel_error *error)
{
    struct mysql_survey survey;
    struct text_buffer text = {0};
    enum gavel_status status = GAVEL_OK;
    bool is_whole = true;

    if (!mysql_survey_take(mysql, until, &survey))
        return mysql_trouble_explain(mysql, error);
    if (survey.has_table[MYSQL_TABLE_LOCKS])
        status = check(mysql, &survey, error);
    for (int i = 0; status == GAVEL_OK && i < MYSQL_TABLES; i++) {
        if (survey.has_table[i])
            continue;
        mysql_schema_create(&text, (enum mysql_table)i, mysql->target.table, mysql->link.is_mariadb);
        status = carry_out(mysql, &text, until, error);
    }
    for (int i = 0; i < MYSQL_COLUMNS; i++)
        is_whole = is_whole && survey.has_column[i];
    if (status == GAVEL_OK && survey.has_table[MYSQL_TABLE_LOCKS] && !is_whole) {
        mysql_schema_alter(&text, mysql->target.table, mysql->link.is_mariadb, survey.has_column);
        status = carry_out(mysql, &text, until, error);
    }
    return status;
}
