/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tables, and the statements that make them.
 *
 * Names are compared byte by byte, as everywhere in gavel: "Web", "web" and
 * "web " are three groups. MariaDB and MySQL have a collation for that each, of
 * another name. The expiry must not change by itself when something else in the
 * row does, which is what older servers make of a first TIMESTAMP column unless
 * it has a default.
 */
#include "store/mysql/schema.h"

#include "base/error.h"
#include "store/mysql/internal.h"

#include <stdio.h>
#include <string.h>

struct column {
    const char *name;
    const char *type;
    bool is_text; /* the collation follows its type */
    const char *rest;
};

static const struct column columns[MYSQL_COLUMNS] = {
    {"lock_key", "VARCHAR(255)", true, "NOT NULL"}, /* the group */
    {"owner_id", "VARCHAR(255)", true, "NOT NULL"}, /* the candidate that holds it */
    {"expires_at", "TIMESTAMP(6)", false, "NOT NULL DEFAULT CURRENT_TIMESTAMP(6)"},
    {"gavel_owner", "VARCHAR(255)", true, "NULL DEFAULT NULL"}, /* what gavel wrote last into the two above */
    {"gavel_expires_at", "TIMESTAMP(6)", false, "NULL DEFAULT NULL"},
    {"format", "SMALLINT UNSIGNED", false, "NOT NULL DEFAULT 1"},
    {"epoch", "BIGINT UNSIGNED", false, "NOT NULL DEFAULT 0"},
    {"version", "BIGINT UNSIGNED", false, "NOT NULL DEFAULT 0"},
    {"nonce", "BINARY(16)", false, "NOT NULL DEFAULT ''"},
    {"lease_ms", "BIGINT UNSIGNED", false, "NOT NULL DEFAULT 0"},
    {"held", "TINYINT UNSIGNED", false, "NOT NULL DEFAULT 0"}, /* 0 released, 1 held, 2 done for good */
    {"since", "TIMESTAMP(6)", false, "NULL DEFAULT NULL"},
    {"renewed", "TIMESTAMP(6)", false, "NULL DEFAULT NULL"},
    {"address", "VARCHAR(63)", true, "NOT NULL DEFAULT ''"},
    {"process", "VARCHAR(127)", true, "NOT NULL DEFAULT ''"},
    {"successor", "VARCHAR(255)", true, "NOT NULL DEFAULT ''"},
    {"wish_epoch", "BIGINT UNSIGNED", false, "NOT NULL DEFAULT 0"},
    {"wish_force", "TINYINT UNSIGNED", false, "NOT NULL DEFAULT 0"},
    {"wish_successor", "VARCHAR(255)", true, "NOT NULL DEFAULT ''"},
    {"metadata", "VARCHAR(1000)", true,
     "NOT NULL DEFAULT ''"}, /* for you; gavel neither reads nor writes it */
};

const char *const mysql_table_suffixes[MYSQL_TABLES] = {"", "_epochs", "_candidates"};

bool mysql_schema_is_name(const char *table)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

    return *table && strlen(table) <= MYSQL_TABLE_MAX && strspn(table, good) == strlen(table);
}

const char *mysql_schema_column(int column) { return columns[column].name; }

const char *mysql_schema_collation(bool is_mariadb)
{
    return is_mariadb ? "utf8mb4_nopad_bin" : "utf8mb4_0900_bin";
}

static void add_column(struct text_buffer *text, const struct column *column, bool is_mariadb)
{
    text_buffer_print(text, "`%s` %s ", column->name, column->type);
    if (column->is_text)
        text_buffer_print(text, "CHARACTER SET utf8mb4 COLLATE %s ", mysql_schema_collation(is_mariadb));
    text_buffer_print(text, "%s", column->rest);
}

void mysql_schema_create(struct text_buffer *text, enum mysql_table which, const char *table, bool is_mariadb)
{
    text_buffer_print(text, "CREATE TABLE IF NOT EXISTS `%s%s` (\n", table, mysql_table_suffixes[which]);
    switch (which) {
    case MYSQL_TABLE_LOCKS:
        for (int i = 0; i < MYSQL_COLUMNS; i++) {
            text_buffer_print(text, "  ");
            add_column(text, &columns[i], is_mariadb);
            text_buffer_print(text, ",\n");
        }
        text_buffer_print(text, "  PRIMARY KEY (`lock_key`)\n");
        break;
    case MYSQL_TABLE_EPOCHS:
        text_buffer_print(text, "  `lock_key` VARCHAR(255) NOT NULL,\n  `epoch` BIGINT UNSIGNED NOT NULL,\n"
                                "  PRIMARY KEY (`lock_key`)\n");
        break;
    default:
        text_buffer_print(
            text, "  `lock_key` VARCHAR(255) NOT NULL,\n  `id` VARCHAR(255) NOT NULL,\n"
                  "  `format` SMALLINT UNSIGNED NOT NULL DEFAULT 1,\n  `instance` BIGINT UNSIGNED NOT NULL,\n"
                  "  `beats` BIGINT UNSIGNED NOT NULL,\n"
                  "  `beat_at` TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),\n"
                  "  `since_ms` BIGINT NOT NULL DEFAULT 0,\n  `priority` INT NOT NULL DEFAULT 0,\n"
                  "  `eligible` TINYINT UNSIGNED NOT NULL DEFAULT 1,\n"
                  "  `address` VARCHAR(63) NOT NULL DEFAULT '',\n"
                  "  `process` VARCHAR(127) NOT NULL DEFAULT '',\n  PRIMARY KEY (`lock_key`, `id`)\n");
        break;
    }
    text_buffer_print(text, ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE %s",
                      mysql_schema_collation(is_mariadb));
}

void mysql_schema_alter(struct text_buffer *text, const char *table, bool is_mariadb,
                        const bool is_there[MYSQL_COLUMNS])
{
    const char *comma = "";

    text_buffer_print(text, "ALTER TABLE `%s`", table);
    for (int i = MYSQL_COLUMNS_SHARED; i < MYSQL_COLUMNS; i++) {
        if (is_there[i])
            continue;
        text_buffer_print(text, "%s\n  ADD COLUMN %s", comma, is_mariadb ? "IF NOT EXISTS " : "");
        add_column(text, &columns[i], is_mariadb);
        comma = ",";
    }
}

void mysql_schema_modify(struct text_buffer *text, const char *comma, bool is_mariadb,
                         const int widths[MYSQL_COLUMNS_SHARED])
{
    for (int i = 0; i < MYSQL_COLUMNS_SHARED; i++) {
        struct column column = columns[i];
        char type[32];

        if (widths[i] < 0)
            continue;
        (void)snprintf(type, sizeof type, "VARCHAR(%d)", widths[i]);
        if (column.is_text)
            column.type = type;
        text_buffer_print(text, "%s\n  MODIFY COLUMN ", comma);
        add_column(text, &column, is_mariadb);
        comma = ",";
    }
}

/* A statement that only one of the two servers carries out; to the other it is a comment. */
static void add_statement(struct text_buffer *text, struct text_buffer *statement, bool is_mariadb)
{
    text_buffer_print(text, "/*%s %s */;\n\n", is_mariadb ? "M!100202" : "!80017",
                      statement->bytes ? statement->bytes : "");
    text->is_short = text->is_short || statement->is_short;
    text_buffer_done(statement);
}

/* What a program that knows three columns made otherwise; on a table of ours it changes nothing. */
static void add_modify(struct text_buffer *text, const char *table, bool is_mariadb)
{
    static const int widths[MYSQL_COLUMNS_SHARED] = {NAME_MAX_BYTES, NAME_MAX_BYTES, 0};
    struct text_buffer statement = {0};

    text_buffer_print(
        text,
        "-- If `%s` was made by another program, with another expires_at or collation; rows whose"
        " expiry is 0000-00-00 stay:\n",
        table);
    text_buffer_print(&statement, "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'");
    add_statement(text, &statement, is_mariadb);
    text_buffer_print(&statement, "ALTER TABLE `%s`", table);
    mysql_schema_modify(&statement, "", is_mariadb, widths);
    add_statement(text, &statement, is_mariadb);
}

/* MySQL cannot be told to add only what is missing, so there an administrator has to choose. */
static void add_alter(struct text_buffer *text, const char *table, bool is_mariadb)
{
    static const bool nothing[MYSQL_COLUMNS] = {false};
    struct text_buffer statement = {0};
    char *line;
    char *rest;

    mysql_schema_alter(&statement, table, is_mariadb, nothing);
    if (is_mariadb) {
        text_buffer_print(
            text, "-- If `%s` was there with the columns lock_key, owner_id and expires_at only:\n", table);
        add_statement(text, &statement, true);
        return;
    }
    text->is_short = text->is_short || statement.is_short;
    text_buffer_print(
        text,
        "-- Only if `%s` was there with the columns lock_key, owner_id and expires_at and no others:\n--\n",
        table);
    for (line = strtok_r(statement.bytes, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        text_buffer_print(text, "-- %s\n", line);
    text_buffer_print(text, "--   ;\n\n");
    text_buffer_done(&statement);
}

static void add_variant(struct text_buffer *text, const char *table, bool is_mariadb)
{
    text_buffer_print(text, "-- On %s:\n\n",
                      is_mariadb ? "MariaDB (10.2.2 or newer)" : "MySQL (8.0.17 or newer)");
    for (int i = 0; i < MYSQL_TABLES; i++) {
        struct text_buffer statement = {0};

        mysql_schema_create(&statement, (enum mysql_table)i, table, is_mariadb);
        add_statement(text, &statement, is_mariadb);
    }
    add_modify(text, table, is_mariadb);
    add_alter(text, table, is_mariadb);
}

enum gavel_status mysql_schema_sql(const char *table, char **ret_sql, struct gavel_error *error)
{
    struct text_buffer text = {0};

    if (!mysql_schema_is_name(table))
        return error_set(error, GAVEL_ERR_INVALID,
                         "\"%.60s\" is not a valid name for the table; use up to %d letters, digits and "
                         "underscores",
                         table, MYSQL_TABLE_MAX);
    text_buffer_print(
        &text,
        "-- The tables of gavel. A user who may create tables needs none of this: they are made on first"
        " use.\n"
        "-- What the user of gavel must be allowed to do, with your names for the database and the user:\n"
        "--\n");
    for (int i = 0; i < MYSQL_TABLES; i++)
        text_buffer_print(&text,
                          "-- GRANT SELECT, INSERT, UPDATE, DELETE ON `gavel`.`%s%s` TO 'gavel'@'%%';\n",
                          table, mysql_table_suffixes[i]);
    text_buffer_print(&text, "\n");
    add_variant(&text, table, true);
    add_variant(&text, table, false);
    if (text.is_short) {
        text_buffer_done(&text);
        return error_set(error, GAVEL_ERR_NO_MEMORY,
                         "out of memory while writing the statements of the tables");
    }
    *ret_sql = text.bytes;
    return GAVEL_OK;
}
