/* SPDX-License-Identifier: Apache-2.0 */

/* The tables of the store `mysql`, as SQL for an administrator: what `gavel store sql mysql` prints. */
#ifndef STORE_MYSQL_SCHEMA_H
#define STORE_MYSQL_SCHEMA_H

#include <gavel/status.h>

#define MYSQL_TABLE_DEFAULT "locks" /* the option ?table= of the URL */
#define MYSQL_TABLE_MAX 50          /* characters; two more tables have names that begin with it */

/*
 * The SQL that creates the tables, for MariaDB and for MySQL, that upgrades a
 * table with only the first three columns, and that grants the rights which
 * gavel's user needs. The caller frees *ret_sql. ERR_INVALID: not a valid name
 * for a table.
 */
GAVEL_CHECKED enum gavel_status mysql_schema_sql(const char *table, char **ret_sql,
                                                 struct gavel_error *error);

#endif
