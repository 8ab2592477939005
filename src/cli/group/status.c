/* SPDX-License-Identifier: Apache-2.0 */

/* gavel status: the mandate of one group, or a line for each group of the store. */
#include "base/error.h"
#include "cli/cli.h"
#include "cli/cluster/cluster_cli.h"
#include "cli/cluster/groups.h"
#include "cli/group/leadership.h"
#include "cli/hint.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "config/duration.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum style state_style(enum leadership_state state)
{
    switch (state) {
    case LEADERSHIP_HELD:
    case LEADERSHIP_DONE:
        return STYLE_GREEN;
    case LEADERSHIP_KILLED:
    case LEADERSHIP_LAPSED:
    case LEADERSHIP_EXPIRED:
    case LEADERSHIP_DEAD:
        return STYLE_RED;
    default:
        return STYLE_YELLOW;
    }
}

static void print_mandate(const struct cli *cli, const struct leadership *leadership)
{
    const struct record *record = &leadership->record;
    char text[AGO_TEXT_MAX], lease[DURATION_TEXT_MAX], left[DURATION_TEXT_MAX];
    int64_t now = clock_wall_ms();

    print_field(cli, "epoch", STYLE_PLAIN, "%" PRIu64, record->epoch);
    if (!leadership_has_mandate(leadership)) /* the rest tells of somebody who has left */
        return;
    if (record->lease_ms == 0) {
        print_field(cli, "lease", STYLE_PLAIN, "none: the leader is assigned");
        return;
    }
    print_field(cli, "since", STYLE_PLAIN, "%s", ago(record->since_wall_ms, now, text));
    print_field(cli, "renewed", STYLE_PLAIN, "%s", ago(record->renewed_wall_ms, now, text));
    if (leadership->state == LEADERSHIP_HELD && leadership->remaining_ms >= 0)
        print_field(cli, "lease", STYLE_PLAIN, "%s, %s left", duration_exact(record->lease_ms, lease),
                    duration_rough(leadership->remaining_ms, left));
    else
        print_field(cli, "lease", STYLE_PLAIN, "%s", duration_exact(record->lease_ms, lease));
    if (record->process.pid)
        print_field(cli, "process", STYLE_PLAIN, "%d", (int)record->process.pid);
    if (record->held && record->wish_epoch == record->epoch && record->epoch)
        print_field(cli, "asked", STYLE_YELLOW, "to hand over%s%s", record->wish_successor[0] ? " to " : "",
                    record->wish_successor);
}

static int show_group(const struct cli *cli, const struct onlooker *onlooker)
{
    struct store_request request = {.op = STORE_CANDIDATES,
                                    .group = cli->config.group,
                                    .candidate_timeout_ms = cli->config.settings.candidate_timeout_ms};
    struct store_reply reply = {0};
    struct gavel_error error = {0};
    const char *reason = leadership_no_list_reason(onlooker->store);
    struct leadership leadership;

    if (leadership_read(onlooker, cli->config.group, &leadership, &error) != GAVEL_OK ||
        onlooker_call(onlooker, &request, &reply, &error) != GAVEL_OK) {
        store_reply_done(&reply);
        return cli_fail(cli, error.status, "%s", error.message);
    }
    if (cli->config.json) {
        json_t *json = leadership_json(cli->config.group, &leadership);

        json_put(json, "candidates",
                 reason ? json_null() : json_integer((json_int_t)reply.registration_count));
        json_put_text(json, "store", cli->config.store);
        json_print_line(json);
    } else {
        print_field(cli, "group", STYLE_BOLD, "%s", cli->config.group);
        print_field(cli, "store", STYLE_PLAIN, "%s", cli->config.store);
        if (leadership.state == LEADERSHIP_HELD)
            print_field(cli, "leader", STYLE_GREEN, "%s", leadership.record.holder);
        else
            print_field(cli, "leader", state_style(leadership.state), "none: %s",
                        leadership_state_text(leadership.state));
        if (leadership.state != LEADERSHIP_HELD && leadership.state != LEADERSHIP_EMPTY)
            print_field(cli, "last leader", STYLE_PLAIN, "%s", leadership.record.holder);
        if (leadership.state != LEADERSHIP_EMPTY)
            print_mandate(cli, &leadership);
        if (leadership.note[0])
            print_field(cli, "note", STYLE_YELLOW, "%s", leadership.note);
        if (reason)
            print_field(cli, "candidates", STYLE_PLAIN, "unknown: %s", reason);
        else
            print_field(cli, "candidates", STYLE_PLAIN, "%zu active", reply.registration_count);
    }
    store_reply_done(&reply);
    return cli_finish(cli, CLI_EXIT_OK);
}

static struct leadership leadership_of_row(const struct onlooker *onlooker, const struct group_row *row)
{
    return (struct leadership){.state = leadership_judge(onlooker, &row->record, true, row->expired),
                               .remaining_ms = row->remaining_ms,
                               .record = row->record};
}

static void print_groups_json(const struct onlooker *onlooker, const struct store_reply *reply)
{
    json_t *root = json_object(), *list = json_array();

    for (size_t i = 0; i < reply->group_count; i++) {
        struct leadership leadership = leadership_of_row(onlooker, &reply->groups[i]);

        json_array_append_new(list, leadership_json(reply->groups[i].group, &leadership));
    }
    json_put(root, "groups", list);
    json_put(root, "has_more", json_boolean(reply->has_more));
    json_print_line(root);
}

static void print_groups(const struct cli *cli, const struct onlooker *onlooker,
                         const struct store_reply *reply)
{
    static const char *const headings[] = {"GROUP", "LEADER", "EPOCH", "STATE", "SINCE", "RENEWED", NULL};
    int64_t now = clock_wall_ms();
    char text[AGO_TEXT_MAX];
    struct table table;

    table_init(&table, headings);
    for (size_t i = 0; i < reply->group_count; i++) {
        struct leadership leadership = leadership_of_row(onlooker, &reply->groups[i]);
        enum style style = state_style(leadership.state);

        table_cell(&table, STYLE_PLAIN, "%s", reply->groups[i].group);
        table_cell(&table, style, "%s", leadership.state == LEADERSHIP_HELD ? leadership.record.holder : "-");
        table_cell(&table, STYLE_PLAIN, "%" PRIu64, leadership.record.epoch);
        table_cell(&table, style, "%s", leadership_state_word(leadership.state));
        table_cell(&table, STYLE_PLAIN, "%s",
                   ago(leadership_has_mandate(&leadership) ? leadership.record.since_wall_ms : 0, now, text));
        table_cell(
            &table, STYLE_PLAIN, "%s",
            ago(leadership_has_mandate(&leadership) ? leadership.record.renewed_wall_ms : 0, now, text));
    }
    table_print(&table, cli, stdout);
    table_done(&table);
}

static int show_all(const struct cli *cli, const struct onlooker *onlooker, const char *prefix)
{
    struct store_request request = {.op = STORE_GROUPS, .group = cli->config.group, .prefix = prefix};
    struct store_reply reply = {0};
    struct gavel_error error = {0};

    if (onlooker_call(onlooker, &request, &reply, &error) != GAVEL_OK) {
        store_reply_done(&reply);
        return cli_fail(cli, error.status, "%s", error.message);
    }
    if (cli->config.json)
        print_groups_json(onlooker, &reply);
    else if (reply.group_count == 0 && *prefix)
        printf("The store %s has no groups that begin with \"%s\".\n", cli->config.store, prefix);
    else if (reply.group_count == 0)
        printf("The store %s has no groups.\n", cli->config.store);
    else
        print_groups(cli, onlooker, &reply);
    if (reply.has_more && !cli->config.json)
        printf("There are more groups than these %zu; see the others by `%s`.\n", reply.group_count,
               hint_all(cli, "groups --prefix TEXT").text);
    store_reply_done(&reply);
    return cli_finish(cli, CLI_EXIT_OK);
}

int groups_of_store(const struct cli *cli, const char *prefix)
{
    struct onlooker onlooker = {0};
    struct gavel_error error = {0};
    int code;

    if (onlooker_open(cli, 0, 0, &onlooker, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    code = show_all(cli, &onlooker, prefix);
    onlooker_close(&onlooker);
    return code;
}

/* One thing is shown: a group, all groups, or the nodes; what speaks of another is a mistake. */
static enum gavel_status check_flags(const struct cli *cli, struct gavel_error *error)
{
    const struct config *config = &cli->config;
    bool wants_all = cli_flag_is_set(cli, "all");

    if (wants_all && config->has_group)
        return error_set(error, GAVEL_ERR_INVALID,
                         "--all is for all groups, --group for one: give one of them");
    if (cli_flag_is_set(cli, "watch") && (!config->cluster || config->has_group))
        return error_set(error, GAVEL_ERR_INVALID,
                         "--watch is for the nodes of a cluster; `%s` prints each change of a group",
                         hint_group(cli, "watch").text);
    return GAVEL_OK;
}

int command_status(const struct cli *cli, int argc, char **argv)
{
    struct onlooker onlooker = {0};
    struct gavel_error error = {0};
    int code;

    (void)argc;
    (void)argv;
    if (check_flags(cli, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    if (cli->config.cluster)
        return cli->config.has_group ? group_status(cli) : cluster_status(cli);
    if (cli_flag_is_set(cli, "all"))
        return groups_of_store(cli, "");
    if (onlooker_open(cli, 0, 0, &onlooker, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    code = show_group(cli, &onlooker);
    onlooker_close(&onlooker);
    return code;
}
