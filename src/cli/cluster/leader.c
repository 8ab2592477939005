/* SPDX-License-Identifier: Apache-2.0 */

/* gavel leader --cluster and gavel check --cluster: the state of a cluster, for scripts and monitors. */
#include "cli/cluster/cluster_cli.h"
#include "cli/hint.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "config/duration.h"
#include "os/clock.h"

#include <stdio.h>

#define NOTICE_MS 1000 /* more than an election time-out of the default */

static int fail_without(const struct cli *cli, const struct cluster_view *view, gavel_ms wait_ms)
{
    char text[DURATION_TEXT_MAX];

    if (wait_ms)
        return cli_fail(cli, GAVEL_ERR_TIMEOUT,
                        "waited %s, but nobody leads the cluster \"%s\"; `%s` shows who stood and who voted",
                        duration_exact(wait_ms, text), view->cluster, hint_all(cli, "elections").text);
    return cli_fail(cli, GAVEL_ERR_NO_LEADER,
                    "nobody leads the cluster \"%s\" at the moment; use --wait to wait, `%s` to see why",
                    view->cluster, hint_all(cli, "status").text);
}

static void print_leader(const struct cli *cli, const struct cluster_view *view)
{
    const struct cluster_node *leader = cluster_view_leader(view);
    json_t *json;

    if (view->is_hearsay)
        fprintf(stderr, "gavel leader: %s says so; %s itself %s\n", view->nodes[view->believed].name,
                leader->name, leader->has_answered ? "has no lease at the moment" : "does not answer here");
    if (!cli->config.json) {
        printf("%s\n", leader->name);
        return;
    }
    json = json_object();
    json_put_text(json, "cluster", view->cluster);
    json_put_text(json, "leader_id", leader->name);
    json_put_text(json, "leader_address", leader->address);
    json_put_number(json, "term", (int64_t)view->term);
    json_put(json, "lease_remaining_ms", leader->lease_ms < 0 ? json_null() : json_integer(leader->lease_ms));
    json_put_bool(json, "hearsay", view->is_hearsay);
    json_print_line(json);
}

int cluster_leader(const struct cli *cli)
{
    gavel_ms wait_ms = cli_flag_duration(cli, "wait", 0);
    struct cluster_client client;
    struct gavel_error error = {0};
    struct cluster_view view = {0};
    int code;

    if (cluster_open(cli, &client, &error) != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
    } else if (cluster_await(&client, clock_now() + ns_from_ms(wait_ms), NOTICE_MS, &view, &error) !=
               GAVEL_OK) {
        code = cli_fail(
            cli, wait_ms && error.status == GAVEL_ERR_STORE_UNAVAILABLE ? GAVEL_ERR_TIMEOUT : error.status,
            "%s", error.message);
    } else if (view.leader < 0) {
        code = fail_without(cli, &view, wait_ms);
    } else {
        print_leader(cli, &view);
        code = cli_finish(cli, CLI_EXIT_OK);
    }
    cluster_view_done(&view);
    cluster_client_done(&client);
    return code;
}

static void print_check(const struct cli *cli, const struct cluster_view *view, int code)
{
    char text[256];

    if (cli->config.json) {
        json_print_line(cluster_json(view));
        return;
    }
    printf("%s%s%s\n", style_begin(cli, STYLE_BOLD), cluster_headline(view, text, sizeof text),
           style_end(cli, STYLE_BOLD));
    for (size_t i = 0; i < view->trouble_count; i++) {
        fputs("! ", stdout);
        print_wrapped(stdout, output_columns(stdout), 2, 2, view->troubles[i].text);
    }
    if (!code)
        printf("%sOne leader, and all is well.%s\n", style_begin(cli, STYLE_GREEN),
               style_end(cli, STYLE_GREEN));
}

int cluster_check(const struct cli *cli)
{
    struct cluster_client client;
    struct gavel_error error = {0};
    struct cluster_view view = {0};
    int code;

    if (cluster_open(cli, &client, &error) != GAVEL_OK || cluster_look(&client, &view, &error) != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
    } else {
        code = cluster_exit_code(&view);
        if (view.trouble_count > 0 && view.troubles[0].kind == TROUBLE_SPLIT_BRAIN) {
            if (!cli->config.json)
                print_check(cli, &view, code);
            code = cli_fail(cli, GAVEL_ERR_SPLIT_BRAIN, "ERR_SPLIT_BRAIN: %s", view.troubles[0].text);
        } else {
            print_check(cli, &view, code);
            code = cli_finish(cli, code);
        }
    }
    cluster_view_done(&view);
    cluster_client_done(&client);
    return code;
}
