/* SPDX-License-Identifier: Apache-2.0 */

/* gavel groups: the groups of a cluster, page by page, however many there are; or those of a store. */
#include "cli/cluster/groups.h"
#include "cli/cluster/group_view.h"
#include "cli/cluster/send.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAGE 500

/* What to do with a page; false ends it. */
typedef bool (*page_cb)(const json_t *groups, void *user);

/* All pages, one after the other. A group that comes while they are read is in it if its name is still
 * ahead. */
static enum gavel_status each_page(struct cluster_client *client, const char *prefix, page_cb cb, void *user,
                                   struct gavel_error *error)
{
    char path[CLUSTER_PATH_MAX], limit[16], after[1024] = "";
    const struct cluster_ask ask = {.path = path, .may_repeat = true};
    bool goes_on = true;

    (void)snprintf(limit, sizeof limit, "%d", PAGE);
    while (goes_on) {
        struct cluster_reply reply;
        enum gavel_status status =
            cluster_path(path, "/groups?prefix=%s&after=%s&limit=%s", prefix, after, limit);

        if (status == GAVEL_OK)
            status = cluster_send(client, &ask, &reply, error);
        else
            return error->status = status;
        if (status != GAVEL_OK) {
            cluster_reply_done(&reply);
            return status;
        }
        goes_on = cb(json_object_get(reply.call.body, "groups"), user);
        (void)snprintf(after, sizeof after, "%s", json_get_text(reply.call.body, "next"));
        goes_on = goes_on && *after;
        cluster_reply_done(&reply);
    }
    return GAVEL_OK;
}

static bool add_json(const json_t *groups, void *user)
{
    const json_t *group;
    size_t position;

    json_array_foreach(groups, position, group)
        json_array_append_new(user, group_leadership_json(group));
    return true;
}

static bool add_rows(const json_t *groups, void *user)
{
    struct table *table = user;
    int64_t now = clock_wall_ms();
    char text[AGO_TEXT_MAX];
    const json_t *group;
    size_t position;

    json_array_foreach(groups, position, group) {
        const char *leader = json_get_text(group, "leader");
        enum style style = *leader ? STYLE_GREEN : STYLE_YELLOW;

        table_cell(table, STYLE_PLAIN, "%s", json_get_text(group, "group"));
        table_cell(table, style, "%s", *leader ? leader : "-");
        table_cell(table, STYLE_PLAIN, "%" JSON_INTEGER_FORMAT,
                   json_integer_value(json_object_get(group, "epoch")));
        table_cell(table, style, "%s", group_state(group));
        table_cell(table, STYLE_PLAIN, "%s", ago(group_time(json_get_text(group, "since")), now, text));
    }
    return true;
}

static enum gavel_status print_json(struct cluster_client *client, const char *prefix,
                                    struct gavel_error *error)
{
    json_t *json = json_object(), *list = json_array();
    enum gavel_status status = each_page(client, prefix, add_json, list, error);

    json_put(json, "groups", list);
    json_put(json, "has_more", json_false()); /* as of a store; here all pages are read */
    if (status == GAVEL_OK)
        json_print_line(json);
    else
        json_decref(json);
    return status;
}

static enum gavel_status print_table(const struct cli *cli, struct cluster_client *client, const char *prefix,
                                     struct gavel_error *error)
{
    static const char *const headings[] = {"GROUP", "LEADER", "EPOCH", "STATE", "SINCE", NULL};
    enum gavel_status status;
    struct table table;

    table_init(&table, headings);
    status = each_page(client, prefix, add_rows, &table, error);
    if (status == GAVEL_OK && table.used == table.columns)
        printf("The cluster has no groups%s%s%s.\n", *prefix ? " that begin with \"" : "", prefix,
               *prefix ? "\"" : "");
    else if (status == GAVEL_OK)
        table_print(&table, cli, stdout);
    table_done(&table);
    return status;
}

int command_groups(const struct cli *cli, int argc, char **argv)
{
    const char *prefix = cli_flag_text(cli, "prefix");
    struct cluster_client client;
    struct gavel_error error = {0};
    enum gavel_status status;
    int code;

    (void)argc;
    (void)argv;
    if (!cli->config.cluster)
        return groups_of_store(cli, prefix ? prefix : "");
    status = cluster_open(cli, &client, &error);
    if (status == GAVEL_OK && cli->config.json)
        status = print_json(&client, prefix ? prefix : "", &error);
    else if (status == GAVEL_OK)
        status = print_table(cli, &client, prefix ? prefix : "", &error);
    code = status != GAVEL_OK ? cli_fail(cli, status, "%s", error.message) : cli_finish(cli, CLI_EXIT_OK);
    cluster_client_done(&client);
    return code;
}
