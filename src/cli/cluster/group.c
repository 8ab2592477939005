/* SPDX-License-Identifier: Apache-2.0 */

/* gavel group delete: removes a group of a cluster that nobody uses. */
#include "cli/cluster/send.h"
#include "cli/json_out.h"
#include "cli/output.h"

#include "base/error.h"
#include "base/record.h"

#include <stdio.h>
#include <string.h>

static int delete_group(const struct cli *cli, struct cluster_client *client, const char *name)
{
    char path[CLUSTER_PATH_MAX];
    struct cluster_ask ask = {.method = "DELETE", .path = path};
    struct cluster_reply reply = {0};
    struct gavel_error error = {0};
    enum gavel_status status = cluster_path(
        path, cli_flag_is_set(cli, "force") ? "/groups/%s?force=true" : "/groups/%s", name, NULL, NULL);
    int code;

    if (status != GAVEL_OK)
        code = cli_fail(cli, status, "the name of the group is too long");
    else if (cluster_send(client, &ask, &reply, &error) != GAVEL_OK)
        code = cli_fail(cli, error.status, "%s", error.message);
    else if (cli->config.json) {
        json_print_line(json_incref(reply.call.body));
        code = cli_finish(cli, CLI_EXIT_OK);
    } else {
        printf("deleted %s\n", name);
        code = cli_finish(cli, CLI_EXIT_OK);
    }
    cluster_reply_done(&reply);
    return code;
}

int command_group(const struct cli *cli, int argc, char **argv)
{
    struct cluster_client client = {0};
    struct gavel_error error = {0};
    int code;

    if (argc != 2 || strcmp(argv[0], "delete") != 0)
        return cli_fail(cli, GAVEL_ERR_INVALID, "usage: gavel group delete NAME [--force]");
    if (name_check("group name", argv[1], &error) != GAVEL_OK)
        return cli_fail(cli, GAVEL_ERR_INVALID, "%s", error.message);
    if (cluster_open(cli, &client, &error) != GAVEL_OK)
        code = cli_fail(cli, error.status, "%s", error.message);
    else
        code = delete_group(cli, &client, argv[1]);
    cluster_client_done(&client);
    return code;
}
