/* SPDX-License-Identifier: Apache-2.0 */

/* gavel store migrate and gavel store backup: what is done to a whole store, when an operator says so. */
#include "cli/store/store_cli.h"

#include "cli/json_out.h"
#include "cli/settings/store_location.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>

/* A store that is there: neither of the two makes one. */
static enum gavel_status open_store(const struct cli *cli, struct store **ret_store, int *ret_code)
{
    struct gavel_error error = {0};
    struct store_location location;
    enum gavel_status status;

    store_location_look(cli->config.store, &location);
    if (location.is_new) {
        *ret_code =
            cli_fail(cli, GAVEL_ERR_STORE_UNAVAILABLE, "there is no store %.150s; name one", location.shown);
        return GAVEL_ERR_STORE_UNAVAILABLE;
    }
    status = store_open(cli->config.store, ret_store, &error);
    if (status != GAVEL_OK)
        *ret_code = cli_fail(cli, status, "%s", error.message);
    return status;
}

int store_migrate_it(const struct cli *cli)
{
    struct gavel_error error = {0};
    struct store *store = NULL;
    char *told = NULL;
    enum gavel_status status;
    int code = CLI_EXIT_OK;

    if (open_store(cli, &store, &code) != GAVEL_OK)
        return code;
    status = store_migrate(store, &told, &error);
    store_close(store);
    if (status != GAVEL_OK)
        return cli_fail(cli, status, "%s", error.message);
    if (cli->config.json) {
        json_t *json = json_object();

        json_put_bool(json, "is_migrated", told != NULL);
        json_put_text_or_null(json, "done", told ? told : "");
        json_print_line(json);
    } else {
        puts(told ? told : "There was nothing to migrate.");
    }
    free(told);
    return cli_finish(cli, CLI_EXIT_OK);
}

int store_backup_to(const struct cli *cli, const char *path)
{
    struct gavel_error error = {0};
    struct store *store = NULL;
    enum gavel_status status;
    int code = CLI_EXIT_OK;

    if (open_store(cli, &store, &code) != GAVEL_OK)
        return code;
    status = store_backup(store, path, &error);
    store_close(store);
    if (status != GAVEL_OK)
        return cli_fail(cli, status, "%s", error.message);
    if (cli->config.json) {
        json_t *json = json_object();

        json_put_text(json, "file", path);
        json_print_line(json);
    }
    return cli_finish(cli, CLI_EXIT_OK);
}
