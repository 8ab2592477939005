/* SPDX-License-Identifier: Apache-2.0 */

/* gavel member: who belongs to the cluster, and changing it. */
#include "cli/cluster/cluster_cli.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "config/duration.h"
#include "config/suggest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANGE_MS 30000
#define ANSWER_MS 2000
#define PRIORITY_MAX 255
#define MEMBERS_MAX 64 /* more than a cluster can have */
#define PEERS_PORT "7400"

static int by_name(const void *left, const void *right)
{
    const json_t *const *a = left, *const *b = right;

    return strverscmp(json_get_text(*a, "id"), json_get_text(*b, "id"));
}

static void print_members(const struct cli *cli, const json_t *members)
{
    static const char *const headings[] = {"NODE", "ROLE", "PRIORITY", "HEALTH", "PEERS", "API", NULL};
    const json_t *sorted[MEMBERS_MAX] = {NULL};
    size_t count = json_array_size(members);
    struct table table;

    if (count > MEMBERS_MAX)
        count = MEMBERS_MAX;
    for (size_t i = 0; i < count; i++)
        sorted[i] = json_array_get(members, i);
    qsort(sorted, count, sizeof sorted[0], by_name);
    table_init(&table, headings);
    for (size_t i = 0; i < count; i++) {
        const json_t *member = sorted[i];
        bool is_healthy = json_is_true(json_object_get(member, "healthy"));

        table_cell(&table, STYLE_PLAIN, "%s", json_get_text(member, "id"));
        table_cell(&table, STYLE_PLAIN, "%s", json_get_text(member, "role"));
        table_cell(&table, STYLE_PLAIN, "%" PRId64,
                   (int64_t)json_integer_value(json_object_get(member, "priority")));
        table_cell(&table, is_healthy ? STYLE_GREEN : STYLE_RED, "%s", is_healthy ? "ok" : "silent");
        table_cell(&table, STYLE_PLAIN, "%s", json_get_text(member, "address"));
        table_cell(&table, STYLE_PLAIN, "%s", json_get_text(member, "api_address"));
    }
    table_print(&table, cli, stdout);
    table_done(&table);
}

/* As the node that is believed knows them. */
static int list(const struct cli *cli, struct cluster_client *client)
{
    struct cluster_call call = {0};
    struct gavel_error error = {0};
    struct cluster_view view;
    int code;

    if (cluster_find(client, "", &view, &error) != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
        goto out;
    }
    strcpy(call.url, view.nodes[view.believed].url);
    cluster_get(client, "/members", &call, 1, NULL, NULL);
    if (call.status != GAVEL_OK) {
        code = cli_fail(cli, call.status, "%s: %s", cluster_url_host(call.url), call.reason);
    } else {
        if (cli->config.json) {
            json_print_line(json_incref(call.body));
        } else {
            print_members(cli, json_object_get(call.body, "members"));
            if (json_is_true(json_object_get(call.body, "changing_members")))
                printf("\nA change of members is under way.\n");
            if (json_is_true(json_object_get(call.body, "stale")))
                printf("\n%s knows no leader; this may be out of date.\n", view.nodes[view.believed].name);
        }
        code = cli_finish(cli, CLI_EXIT_OK);
    }
out:
    cluster_calls_done(&call, 1);
    cluster_view_done(&view);
    return code;
}

static int change(const struct cli *cli, struct cluster_client *client, const char *action, const char *name,
                  const char *address)
{
    gavel_ms timeout_ms = cli_flag_duration(cli, "timeout", CHANGE_MS);
    int64_t priority = cli_flag_number(cli, "priority", -1);
    const char *api = cli_flag_text(cli, "api");
    struct cluster_call call = {0};
    struct gavel_error error = {0};
    json_t *request = json_object();
    int code;

    json_put_text(request, "action", action);
    json_put_text(request, "id", name);
    if (address) {
        bool has_port = *address == '[' ? strstr(address, "]:") != NULL : strchr(address, ':') != NULL;
        char whole[CLUSTER_URL_MAX];

        (void)snprintf(whole, sizeof whole, "%s%s", address, has_port ? "" : ":" PEERS_PORT);
        json_put_text(request, "address", whole);
        if (api)
            json_put_text(request, "api_address", api);
        if (priority >= 0)
            json_put_number(request, "priority", priority);
        json_put_bool(request, "witness", cli_flag_is_set(cli, "witness"));
        json_put_bool(request, "learner", cli_flag_is_set(cli, "learner"));
    }
    json_put_number(request, "timeout_ms", timeout_ms);
    if (cluster_ask_leader(client, "/members", request, timeout_ms + ANSWER_MS, &call, &error) != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
    } else {
        if (cli->config.json)
            json_print_line(json_incref(call.body));
        else
            printf("%s\n", json_get_text(call.body, "message"));
        if (!cli->config.json && address)
            printf(
                "If %s does not run yet, start it there with an empty data directory: gaveld --config FILE --join\n",
                name);
        code = cli_finish(cli, CLI_EXIT_OK);
    }
    json_decref(request);
    cluster_calls_done(&call, 1);
    return code;
}

static const struct action {
    const char *name;
    int arguments; /* behind it */
    const char *usage;
} actions[] = {
    {"list", 0, ""},        {"add", 2, " NAME ADDRESS, the address at which the others reach it"},
    {"remove", 1, " NAME"}, {"promote", 1, " NAME"},
    {"demote", 1, " NAME"},
};

/* Says what is wrong with the arguments; NULL if they are good. */
static const struct action *action_find(const struct cli *cli, int argc, char **argv, int *ret_code)
{
    const struct action *found = NULL;
    struct suggestion suggestion;

    if (argc == 0) {
        *ret_code = cli_fail(cli, GAVEL_ERR_INVALID, "say what to do: list, add, remove, promote or demote");
        return NULL;
    }
    suggestion_init(&suggestion, argv[0]);
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        suggestion_offer(&suggestion, actions[i].name);
        if (strcmp(actions[i].name, argv[0]) == 0)
            found = &actions[i];
    }
    if (!found) {
        *ret_code = cli_fail(cli, GAVEL_ERR_INVALID, "there is no `gavel member %.60s`; %s%s%s", argv[0],
                             suggestion.best ? "did you mean \""
                                             : "the actions are list, add, remove, promote and demote",
                             suggestion.best ? suggestion.best : "", suggestion.best ? "\"?" : "");
        return NULL;
    }
    if (argc != 1 + found->arguments) {
        *ret_code = cli_fail(cli, GAVEL_ERR_INVALID, "usage: gavel member %s%s", found->name, found->usage);
        return NULL;
    }
    return found;
}

int command_member(const struct cli *cli, int argc, char **argv)
{
    struct cluster_client client;
    struct gavel_error error = {0};
    const struct action *action;
    int code = CLI_EXIT_OK;

    action = action_find(cli, argc, argv, &code);
    if (!action)
        return code;
    if (cli_flag_number(cli, "priority", 0) > PRIORITY_MAX)
        return cli_fail(cli, GAVEL_ERR_INVALID, "--priority: from 0 to %d", PRIORITY_MAX);
    if (cluster_open(cli, &client, &error) != GAVEL_OK)
        code = cli_fail(cli, error.status, "%s", error.message);
    else if (action->arguments == 0)
        code = list(cli, &client);
    else
        code = change(cli, &client, action->name, argv[1], action->arguments == 2 ? argv[2] : NULL);
    cluster_client_done(&client);
    return code;
}
