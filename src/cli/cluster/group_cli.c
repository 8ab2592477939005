/* SPDX-License-Identifier: Apache-2.0 */

/* gavel status, leader and candidates with --cluster and --group: a group of a cluster. */
#include "cli/cluster/group_cli.h"

#include "base/error.h"
#include "cli/cluster/group_view.h"
#include "cli/hint.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "config/duration.h"
#include "os/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_EVERY_MS 50

enum gavel_status group_fetch(const struct cli *cli, struct cluster_client *client, const char *name,
                              json_t **ret_group, struct gavel_error *error)
{
    char path[CLUSTER_PATH_MAX];
    struct cluster_ask ask = {.path = path, .may_repeat = true};
    struct cluster_reply reply = {0};
    enum gavel_status status = cluster_path(path, "/groups/%s?fresh=true", name, NULL, NULL);

    if (status != GAVEL_OK)
        return error_set(error, status, "the name of the group cannot be sent: %s",
                         gavel_status_text(status));
    status = cluster_send(client, &ask, &reply, error);
    if (reply.call.code && (status == GAVEL_ERR_NO_LEADER || status == GAVEL_ERR_TIMEOUT)) {
        fprintf(stderr, "gavel %s: nobody leads the cluster; this is what %s knew last\n", cli->command->name,
                cluster_url_host(reply.call.url));
        cluster_reply_done(&reply);
        *strchr(path, '?') = '\0';
        status = cluster_send(client, &ask, &reply, error);
    }
    if (status == GAVEL_OK)
        *ret_group = json_incref(reply.call.body);
    if (reply.call.code == 404 && status == GAVEL_ERR_NOT_FOUND) {
        *ret_group = group_unknown(name);
        status = GAVEL_OK;
    }
    cluster_reply_done(&reply);
    return status;
}

enum gavel_status group_number(const struct cli *cli, const char *flag, uint64_t *ret_number,
                               struct gavel_error *error)
{
    const char *text = cli_flag_text(cli, flag);
    char *end = NULL;
    uint64_t number;

    if (!text)
        return GAVEL_OK;
    errno = 0;
    number = strtoull(text, &end, 10);
    if (errno || *end || text[0] < '0' || text[0] > '9' || number > INT64_MAX)
        return error_set(error, GAVEL_ERR_INVALID, "--%s: \"%.60s\" is not a whole number", flag, text);
    *ret_number = number;
    return GAVEL_OK;
}

static void print_group(const struct cli *cli, const json_t *group)
{
    const char *leader = json_get_text(group, "leader"), *former = json_get_text(group, "former_leader");
    const json_t *wish = json_object_get(group, "wish"), *left = json_object_get(group, "remaining_ms");
    json_int_t lease = json_integer_value(json_object_get(group, "ttl_ms"));
    char text[AGO_TEXT_MAX], exact[DURATION_TEXT_MAX], rough[DURATION_TEXT_MAX];

    print_field(cli, "group", STYLE_BOLD, "%s", json_get_text(group, "group"));
    if (*leader)
        print_field(cli, "leader", STYLE_GREEN, "%s", leader);
    else
        print_field(cli, "leader", STYLE_YELLOW, "none: %s", group_state_text(group));
    if (!*leader && *former)
        print_field(cli, "last leader", STYLE_PLAIN, "%s", former);
    if (*leader || *former)
        print_field(cli, "epoch", STYLE_PLAIN, "%" JSON_INTEGER_FORMAT,
                    json_integer_value(json_object_get(group, "epoch")));
    if (*leader)
        print_field(cli, "since", STYLE_PLAIN, "%s",
                    ago(group_time(json_get_text(group, "since")), clock_wall_ms(), text));
    if (*leader && json_is_integer(left))
        print_field(cli, "lease", STYLE_PLAIN, "%s, %s left", duration_exact(lease, exact),
                    duration_rough(json_integer_value(left), rough));
    else if (*leader)
        print_field(cli, "lease", STYLE_PLAIN, "%s", duration_exact(lease, exact));
    if (json_is_object(wish))
        print_field(cli, "asked", STYLE_YELLOW, "to hand over%s%s",
                    *json_get_text(wish, "successor") ? " to " : "", json_get_text(wish, "successor"));
    if (*json_get_text(group, "policy"))
        print_field(cli, "policy", STYLE_PLAIN, "%s", json_get_text(group, "policy"));
    print_field(cli, "candidates", STYLE_PLAIN, "%zu", json_array_size(json_object_get(group, "candidates")));
}

/* What each of these commands does: look at the group of --group, and say something about it. */
static int look(const struct cli *cli, int (*tell)(const struct cli *cli, const json_t *group))
{
    struct cluster_client client;
    struct gavel_error error = {0};
    json_t *group = NULL;
    int code;

    if (cluster_open(cli, &client, &error) != GAVEL_OK ||
        group_fetch(cli, &client, cli->config.group, &group, &error) != GAVEL_OK)
        code = cli_fail(cli, error.status, "%s", error.message);
    else
        code = tell(cli, group);
    json_decref(group);
    cluster_client_done(&client);
    return code;
}

static int tell_status(const struct cli *cli, const json_t *group)
{
    if (cli->config.json) {
        json_t *json = group_leadership_json(group);

        json_put(json, "candidates",
                 json_integer((json_int_t)json_array_size(json_object_get(group, "candidates"))));
        json_put_text(json, "cluster", cli->config.cluster);
        json_print_line(json);
    } else {
        print_group(cli, group);
    }
    return cli_finish(cli, CLI_EXIT_OK);
}

int group_status(const struct cli *cli) { return look(cli, tell_status); }

static void print_candidates(const struct cli *cli, const json_t *group)
{
    static const char *const headings[] = {"CANDIDATE", "ROLE", "ELIGIBLE", "PRIO", "SINCE", "ADDRESS", NULL};
    const json_t *candidates = json_object_get(group, "candidates"), *candidate;
    const char *leader = json_get_text(group, "leader");
    int64_t now = clock_wall_ms();
    char text[AGO_TEXT_MAX];
    struct table table;
    size_t position;

    table_init(&table, headings);
    json_array_foreach(candidates, position, candidate) {
        const char *id = json_get_text(candidate, "candidate"),
                   *address = json_get_text(candidate, "address");
        bool is_leader = *leader && strcmp(id, leader) == 0;
        bool is_eligible = json_is_true(json_object_get(candidate, "eligible"));

        table_cell(&table, is_leader ? STYLE_GREEN : STYLE_PLAIN, "%s", id);
        table_cell(&table, is_leader ? STYLE_GREEN : STYLE_PLAIN, "%s", is_leader ? "leader" : "standby");
        table_cell(&table, is_eligible ? STYLE_PLAIN : STYLE_DIM, "%s", is_eligible ? "yes" : "no");
        table_cell(&table, STYLE_PLAIN, "%" JSON_INTEGER_FORMAT,
                   json_integer_value(json_object_get(candidate, "priority")));
        table_cell(&table, STYLE_PLAIN, "%s", ago(group_time(json_get_text(candidate, "since")), now, text));
        table_cell(&table, STYLE_PLAIN, "%s", *address ? address : "-");
    }
    table_print(&table, cli, stdout);
    table_done(&table);
}

static int tell_candidates(const struct cli *cli, const json_t *group)
{
    if (cli->config.json)
        json_print_line(group_candidates_json(group));
    else if (json_array_size(json_object_get(group, "candidates")) == 0)
        printf("The group \"%s\" has no candidates.\n", cli->config.group);
    else
        print_candidates(cli, group);
    return cli_finish(cli, CLI_EXIT_OK);
}

int group_candidates(const struct cli *cli) { return look(cli, tell_candidates); }

static int tell_leader(const struct cli *cli, const json_t *group)
{
    const char *name = cli->config.group;
    gavel_ms wait_ms = cli_flag_duration(cli, "wait", 0);
    char text[DURATION_TEXT_MAX];

    if (json_is_true(json_object_get(group, "done")))
        return cli_fail(cli, GAVEL_ERR_DONE, "the group \"%s\" has no leader in the cluster at %.300s: %s",
                        name, cli->config.cluster, group_state_text(group));
    if (!*json_get_text(group, "leader") && wait_ms)
        return cli_fail(
            cli, GAVEL_ERR_TIMEOUT,
            "waited %s, but the group \"%s\" has no leader in the cluster at %.300s: %s; `%s` lists who could lead",
            duration_exact(wait_ms, text), name, cli->config.cluster, group_state_text(group),
            hint_group(cli, "candidates").text);
    if (!*json_get_text(group, "leader"))
        return cli_fail(
            cli, GAVEL_ERR_NO_LEADER,
            "the group \"%s\" has no leader in the cluster at %.300s: %s; `%s` lists who could lead", name,
            cli->config.cluster, group_state_text(group), hint_group(cli, "candidates").text);
    if (cli->config.json)
        json_print_line(group_leadership_json(group));
    else
        printf("%s\n", json_get_text(group, "leader"));
    return cli_finish(cli, CLI_EXIT_OK);
}

/* Whether asking again may show another state; who is not let in stays out. */
static bool may_pass(enum gavel_status status)
{
    return status == GAVEL_ERR_STORE_UNAVAILABLE || status == GAVEL_ERR_TIMEOUT ||
           status == GAVEL_ERR_NO_LEADER;
}

int group_leader(const struct cli *cli)
{
    gavel_ns until = clock_now() + ns_from_ms(cli_flag_duration(cli, "wait", 0));
    struct cluster_client client;
    struct gavel_error error = {0};
    json_t *group = NULL;
    int code;

    if (cluster_open(cli, &client, &error) != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
        goto out;
    }
    for (;;) {
        enum gavel_status status = group_fetch(cli, &client, cli->config.group, &group, &error);
        bool is_settled = status != GAVEL_OK ? !may_pass(status)
                                             : *json_get_text(group, "leader") ||
                                                   json_is_true(json_object_get(group, "done"));

        if (is_settled || clock_now() >= until) {
            code = status != GAVEL_OK ? cli_fail(cli, error.status, "%s", error.message)
                                      : tell_leader(cli, group);
            break;
        }
        json_decref(group);
        group = NULL;
        (void)usleep(LOOK_EVERY_MS * 1000);
    }
out:
    json_decref(group);
    cluster_client_done(&client);
    return code;
}
