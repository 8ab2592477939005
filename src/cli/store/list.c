/* SPDX-License-Identifier: Apache-2.0 */

/* gavel store list: the kinds of stores, those of this build and those that it could have. */
#include "cli/store/store_cli.h"

#include "cli/json_out.h"
#include "cli/output.h"
#include "cli/store/facts.h"

#include <stdio.h>
#include <string.h>

/* What a driver says of itself behind the form of its URL, which the example shows better. */
static const char *summary_text(const struct store_driver *driver)
{
    const char *gap = strstr(driver->summary, "  ");

    return gap ? gap + strspn(gap, " ") : driver->summary;
}

static json_t *kind_json(const struct store_kind *kind)
{
    const struct store_driver *driver = store_driver_of(kind->scheme);
    json_t *json = json_object();

    json_put_text(json, "scheme", kind->scheme);
    json_put_bool(json, "is_built", driver != NULL);
    json_put_text_or_null(json, "option", kind->option ? kind->option : "");
    json_put_text(json, "example", kind->example);
    json_put_text_or_null(json, "summary", driver ? summary_text(driver) : "");
    json_put_text_or_null(json, "preset",
                          driver && driver->capabilities.preset ? driver->capabilities.preset : "");
    json_put_text_or_null(json, "clock", driver ? store_clock_name(driver->capabilities.clock) : "");
    json_put(json, "has_push", driver ? json_boolean(driver->capabilities.has_push) : json_null());
    return json;
}

static void print_json(void)
{
    json_t *json = json_object(), *stores = json_array();

    for (const struct store_kind *kind = store_kinds; kind->scheme; kind++)
        json_array_append_new(stores, kind_json(kind));
    json_put(json, "stores", stores);
    json_print_line(json);
}

static void print_table(const struct cli *cli)
{
    static const char *const headings[] = {"STORE", "EXAMPLE", "WHAT IT IS", NULL};
    struct table table;

    table_init(&table, headings);
    for (const struct store_kind *kind = store_kinds; kind->scheme; kind++) {
        const struct store_driver *driver = store_driver_of(kind->scheme);

        table_cell(&table, driver ? STYLE_GREEN : STYLE_DIM, "%s", kind->scheme);
        table_cell(&table, driver ? STYLE_PLAIN : STYLE_DIM, "%s", kind->example);
        if (driver)
            table_cell(&table, STYLE_PLAIN, "%s", summary_text(driver));
        else
            table_cell(&table, STYLE_DIM, "not in this build: -D%s=enabled",
                       kind->option ? kind->option : "?");
    }
    table_print(&table, cli, stdout);
    table_done(&table);
}

int store_list(const struct cli *cli)
{
    if (cli->config.json)
        print_json();
    else
        print_table(cli);
    return cli_finish(cli, CLI_EXIT_OK);
}
