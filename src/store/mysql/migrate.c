/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes a table that another program made one that keeps the promise, when an
 * operator says so: one ALTER TABLE, after which that program finds its three
 * columns as before. What is there is kept; what cannot be kept, such as two
 * rows of one key, makes the server refuse, and nothing is changed.
 */
#include "base/error.h"
#include "os/clock.h"
#include "store/mysql/internal.h"

#include <mysqld_error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define PATIENCE (600 * NS_PER_S) /* a table may be large */
#define WIDTH_MAX 768             /* characters of four bytes that a key of InnoDB has room for */

static bool is_fit(const struct mysql_survey *survey)
{
    return survey->is_key && survey->key_columns == 1 && mysql_survey_has_expiry(survey) &&
           !survey->engine[0];
}

/* The columns that are made anew: names that are characters, and an expiry of another type. */
static bool choose(const struct mysql_survey *survey, int ret_widths[MYSQL_COLUMNS_SHARED])
{
    bool is_any = false;

    for (int i = 0; i < MYSQL_COLUMNS_SHARED; i++) {
        int width = survey->widths[i] < NAME_MAX_BYTES ? NAME_MAX_BYTES : survey->widths[i];
        bool is_name = survey->widths[i] > 0;
        bool is_good = is_name ? survey->is_exact[i] && survey->widths[i] >= NAME_MAX_BYTES : true;

        if (strcmp(mysql_schema_column(i), "expires_at") == 0)
            is_good = mysql_survey_has_expiry(survey);
        ret_widths[i] = is_good ? -1 : width > WIDTH_MAX ? WIDTH_MAX : width;
        is_any = is_any || !is_good;
    }
    return is_any;
}

/* One statement for each table: it is carried out whole or not at all. */
static void add_alter(struct text_buffer *text, const struct mysql_store *mysql,
                      const struct mysql_survey *survey)
{
    bool is_ours = survey->is_key && survey->key_columns == 1;
    int widths[MYSQL_COLUMNS_SHARED];

    (void)choose(survey, widths);
    text_buffer_print(text, "ALTER TABLE `%s`\n  ENGINE=InnoDB ROW_FORMAT=DYNAMIC", mysql->target.table);
    mysql_schema_modify(text, ",", mysql->link.is_mariadb, widths);
    if (!is_ours && survey->key_columns > 0)
        text_buffer_print(text, ",\n  DROP PRIMARY KEY");
    if (!is_ours)
        text_buffer_print(text, ",\n  ADD PRIMARY KEY (`lock_key`)");
    for (int i = MYSQL_TABLE_EPOCHS; i < MYSQL_TABLES; i++)
        if (survey->is_unsafe[i])
            text_buffer_print(text, ";\nALTER TABLE `%s%s`\n  ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
                              mysql->target.table, mysql_table_suffixes[i]);
}

static enum gavel_status carry_out(struct mysql_store *mysql, const struct mysql_survey *survey,
                                   const char *statement, gavel_ns until, struct gavel_error *error)
{
    struct text_buffer text = {0};
    enum gavel_status status = GAVEL_OK;

    /* A DATETIME was written in the time zone of the server's clients, not in that of this connection. */
    if (strncasecmp(survey->expiry, "datetime", 8) == 0)
        text_buffer_print(&text, "SET SESSION time_zone = @@GLOBAL.time_zone; ");
    text_buffer_print(&text, "SET SESSION lock_wait_timeout = 20; %s", statement);
    if (text.is_short)
        status = error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while migrating %s", mysql->shown);
    else if (!mysql_link_do(mysql, text.bytes, until, NULL)) {
        mysql->link.trouble.is_making = true;
        status = mysql_trouble_explain(mysql, error);
        if (mysql->link.trouble.code == ER_DUP_ENTRY)
            status = error_set(error, status, "table %s has several rows with one lock_key: %.90s; leave one",
                               mysql->target.table, mysql->link.trouble.text);
    }
    text_buffer_done(&text);
    mysql_link_drop(mysql); /* the next connection begins with settings of its own */
    return status;
}

static enum gavel_status open_again(struct mysql_store *mysql, gavel_ns until, struct gavel_error *error)
{
    return mysql_link_is_up(mysql) ? GAVEL_OK : mysql_link_open(mysql, until, error);
}

static enum gavel_status migrate_locks(struct mysql_store *mysql, const struct mysql_survey *survey,
                                       gavel_ns until, char **ret_told, struct gavel_error *error)
{
    struct text_buffer text = {0};
    enum gavel_status status;

    add_alter(&text, mysql, survey);
    if (text.is_short)
        status = error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while migrating %s", mysql->shown);
    else
        status = carry_out(mysql, survey, text.bytes, until, error);
    if (status == GAVEL_OK)
        status = open_again(mysql, until, error);
    if (status == GAVEL_OK)
        status = mysql_table_prepare(mysql, until, error);
    if (status == GAVEL_OK) {
        *ret_told = text.bytes;
        return GAVEL_OK;
    }
    text_buffer_done(&text);
    return status;
}

enum gavel_status mysql_migrate(struct store *store, char **ret_told, struct gavel_error *error)
{
    struct mysql_store *mysql = (struct mysql_store *)store;
    gavel_ns until = clock_now() + PATIENCE;
    struct mysql_survey survey;
    int widths[MYSQL_COLUMNS_SHARED];
    enum gavel_status status;

    if (mysql->pid != getpid())
        return error_set(error, GAVEL_ERR_STATE,
                         "%s was opened before this process was forked; open it again in the child",
                         mysql->shown);
    status = open_again(mysql, until, error);
    if (status != GAVEL_OK)
        return status;
    if (!mysql_survey_take(mysql, until, &survey))
        return mysql_trouble_explain(mysql, error);
    for (int i = 0; i < MYSQL_COLUMNS_SHARED; i++)
        if (survey.has_table[MYSQL_TABLE_LOCKS] && !survey.has_column[i])
            return error_set(
                error, GAVEL_ERR_STORE_UNSUPPORTED,
                "the table %s in %s is not one of locks: it has no column %s; name another with table=",
                mysql->target.table, mysql->shown, mysql_schema_column(i));
    if (!survey.has_table[MYSQL_TABLE_LOCKS] || (is_fit(&survey) && !choose(&survey, widths)))
        return mysql_table_prepare(mysql, until, error);
    return migrate_locks(mysql, &survey, until, ret_told, error);
}
