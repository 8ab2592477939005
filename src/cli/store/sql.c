/* SPDX-License-Identifier: Apache-2.0 */

/* gavel store sql: the statements that make the tables of a store, for an administrator who grants no
 * CREATE. */
#include "cli/store/store_cli.h"

#include "cli/json_out.h"
#include "store/mysql/schema.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HAS_SQL "mysql"

static int print_sql(const struct cli *cli)
{
#ifdef STORE_MYSQL
    const char *table = cli_flag_text(cli, "table");
    struct gavel_error error = {0};
    json_t *json;
    char *sql;

    if (mysql_schema_sql(table ? table : MYSQL_TABLE_DEFAULT, &sql, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    if (cli->config.json) {
        json = json_object();
        json_put_text(json, "sql", sql);
        json_print_line(json);
    } else {
        fputs(sql, stdout);
    }
    free(sql);
    return cli_finish(cli, CLI_EXIT_OK);
#else
    struct gavel_error error = {0};
    enum gavel_status status = store_check_url(HAS_SQL ":", &error);

    return cli_fail(cli, status, "%s", error.message);
#endif
}

int store_sql(const struct cli *cli, const char *scheme)
{
    if (strcmp(scheme, HAS_SQL) != 0)
        return cli_fail(cli, GAVEL_ERR_INVALID,
                        "a store \"%.60s\" needs no SQL from an administrator; this is for: " HAS_SQL,
                        scheme);
    return print_sql(cli);
}
