/* SPDX-License-Identifier: Apache-2.0 */

/* gavel candidates: who takes part in a group. */
#include "cli/cli.h"
#include "cli/cluster/cluster_cli.h"
#include "cli/group/leadership.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "os/clock.h"

#include <stdio.h>
#include <string.h>

static bool leads(const struct registration *registration, const struct leadership *leadership)
{
    return leadership->state == LEADERSHIP_HELD && strcmp(registration->id, leadership->record.holder) == 0;
}

static void print_json(const struct cli *cli, const struct store_reply *reply,
                       const struct leadership *leadership)
{
    json_t *root = json_object(), *list = json_array();

    json_put_text(root, "group", cli->config.group);
    for (size_t i = 0; i < reply->registration_count; i++) {
        const struct registration *registration = &reply->registrations[i];
        json_t *item = json_object();

        json_put_text(item, "candidate", registration->id);
        json_put_text_or_null(item, "address", registration->address);
        json_put_bool(item, "leader", leads(registration, leadership));
        json_put_bool(item, "eligible", registration->eligible);
        json_put_number(item, "priority", registration->priority);
        json_put_time(item, "since", registration->since_wall_ms);
        json_put_time(item, "last_heartbeat", registration->last_wall_ms);
        json_put(item, "pid",
                 registration->process.pid ? json_integer(registration->process.pid) : json_null());
        json_array_append_new(list, item);
    }
    json_put(root, "candidates", list);
    json_print_line(root);
}

static void print_table(const struct cli *cli, const struct store_reply *reply,
                        const struct leadership *leadership)
{
    static const char *const headings[] = {"CANDIDATE", "ROLE",  "ELIGIBLE", "PRIO",
                                           "SINCE",     "HEARD", "ADDRESS",  NULL};
    int64_t now = clock_wall_ms();
    char text[AGO_TEXT_MAX];
    struct table table;

    table_init(&table, headings);
    for (size_t i = 0; i < reply->registration_count; i++) {
        const struct registration *registration = &reply->registrations[i];
        bool is_leader = leads(registration, leadership);

        table_cell(&table, is_leader ? STYLE_GREEN : STYLE_PLAIN, "%s", registration->id);
        table_cell(&table, is_leader ? STYLE_GREEN : STYLE_PLAIN, "%s", is_leader ? "leader" : "standby");
        table_cell(&table, registration->eligible ? STYLE_PLAIN : STYLE_DIM, "%s",
                   registration->eligible ? "yes" : "no");
        table_cell(&table, STYLE_PLAIN, "%d", (int)registration->priority);
        table_cell(&table, STYLE_PLAIN, "%s", ago(registration->since_wall_ms, now, text));
        table_cell(&table, STYLE_PLAIN, "%s", ago(registration->last_wall_ms, now, text));
        table_cell(&table, STYLE_PLAIN, "%s", registration->address[0] ? registration->address : "-");
    }
    table_print(&table, cli, stdout);
    table_done(&table);
}

/* `reason`: why nobody can be listed; NULL if there simply is nobody. */
static void print_nobody(const struct cli *cli, const char *reason)
{
    char text[NAME_MAX_BYTES + 128];

    snprintf(text, sizeof text, "The group \"%s\" has no active candidates%s%s.", cli->config.group,
             reason ? ": " : "", reason ? reason : "");
    print_wrapped(stdout, output_columns(stdout), 0, 0, text);
}

int command_candidates(const struct cli *cli, int argc, char **argv)
{
    struct store_request request = {.op = STORE_CANDIDATES,
                                    .group = cli->config.group,
                                    .candidate_timeout_ms = cli->config.settings.candidate_timeout_ms};
    struct store_reply reply = {0};
    struct onlooker onlooker = {0};
    struct gavel_error error = {0};
    struct leadership leadership;
    int code;

    (void)argc;
    (void)argv;
    if (cli->config.cluster)
        return group_candidates(cli);
    if (onlooker_open(cli, 0, 0, &onlooker, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    if (leadership_read(&onlooker, cli->config.group, &leadership, &error) != GAVEL_OK ||
        onlooker_call(&onlooker, &request, &reply, &error) != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
    } else {
        if (cli->config.json)
            print_json(cli, &reply, &leadership);
        else if (reply.registration_count == 0)
            print_nobody(cli, leadership_no_list_reason(onlooker.store));
        else
            print_table(cli, &reply, &leadership);
        code = cli_finish(cli, CLI_EXIT_OK);
    }
    store_reply_done(&reply);
    onlooker_close(&onlooker);
    return code;
}
