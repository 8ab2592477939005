/* SPDX-License-Identifier: Apache-2.0 */

/* The tables of the store `mysql`, in words for an administrator: what `gavel store sql mysql` prints. */
#ifndef STORE_MYSQL_SCHEMA_H
#define STORE_MYSQL_SCHEMA_H

#include <gavel/status.h>

#define MYSQL_TABLE_DEFAULT "locks" /* the option ?table= of the URL */
#define MYSQL_TABLE_MAX 50          /* characters; two more tables have names that begin with it */

/*
 * What makes the tables, for MariaDB and for MySQL, what makes one of theirs
 * of a table that has only the first three columns, and what the user of gavel
 * must be allowed to do. The caller frees *ret_sql. ERR_INVALID: that is no
 * name for a table.
 */
GAVEL_CHECKED enum gavel_status mysql_schema_sql(const char *table, char **ret_sql,
                                                 struct gavel_error *error);

#endif
