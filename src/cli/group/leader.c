/* SPDX-License-Identifier: Apache-2.0 */

/* gavel leader: who leads, for scripts. */
#include "cli/cli.h"
#include "cli/cluster/cluster_cli.h"
#include "cli/group/leadership.h"
#include "cli/hint.h"
#include "cli/json_out.h"
#include "cli/settings/store_location.h"
#include "config/duration.h"
#include "os/clock.h"

#include <stdio.h>

/* How often to look while waiting where the store does not push. */
#define LOOK_EVERY_MS 50

/* Reads the leadership until somebody leads or the time is over. */
static enum gavel_status read_until_held(const struct onlooker *onlooker, const char *group, gavel_ns until,
                                         struct leadership *ret_leadership, struct gavel_error *error)
{
    for (;;) {
        enum gavel_status status = leadership_read(onlooker, group, ret_leadership, error);
        gavel_ns now = clock_now();

        if (status != GAVEL_OK || ret_leadership->state == LEADERSHIP_HELD ||
            ret_leadership->state == LEADERSHIP_DONE || now >= until)
            return status;
        store_wait(onlooker->store, group, ret_leadership->record.version,
                   ns_min(until, now + ns_from_ms(LOOK_EVERY_MS)));
    }
}

/* Two stores mean two elections, so who finds no leader is told where it was looked for. */
static int fail_without(const struct cli *cli, const char *store, gavel_ms wait_ms,
                        const struct leadership *leadership)
{
    const char *group = cli->config.group;
    char text[DURATION_TEXT_MAX];

    if (leadership->state == LEADERSHIP_DONE)
        return cli_fail(
            cli, GAVEL_ERR_DONE,
            "the group \"%s\" has no leader in the store %.300s: \"%s\" has done its work for good with epoch %llu",
            group, store, leadership->record.holder, (unsigned long long)leadership->record.epoch);
    if (wait_ms)
        return cli_fail(
            cli, GAVEL_ERR_TIMEOUT,
            "waited %s, but the group \"%s\" has no leader in the store %.300s: %s; `%s` lists who could lead",
            duration_exact(wait_ms, text), group, store, leadership_state_text(leadership->state),
            hint_group(cli, "candidates").text);
    return cli_fail(cli, GAVEL_ERR_NO_LEADER,
                    "the group \"%s\" has no leader in the store %.300s: %s; `%s` lists who could lead",
                    group, store, leadership_state_text(leadership->state),
                    hint_group(cli, "candidates").text);
}

static void print_leader(const struct cli *cli, const char *store, const struct leadership *leadership)
{
    json_t *json;

    if (!cli->config.json) {
        printf("%s\n", leadership->record.holder);
        return;
    }
    json = leadership_json(cli->config.group, leadership);
    json_put_text(json, "store", store);
    json_print_line(json);
}

int command_leader(const struct cli *cli, int argc, char **argv)
{
    gavel_ms wait_ms = cli_flag_duration(cli, "wait", 0);
    gavel_ns until = clock_now() + ns_from_ms(wait_ms);
    struct onlooker onlooker = {0};
    struct gavel_error error = {0};
    struct store_location location;
    struct leadership leadership;
    int code;

    (void)argc;
    (void)argv;
    if (cli->config.cluster)
        return cli->config.has_group ? group_leader(cli) : cluster_leader(cli);
    store_location_look(cli->config.store, &location);
    if (onlooker_open(cli, until, wait_ms, &onlooker, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    if (read_until_held(&onlooker, cli->config.group, until, &leadership, &error) != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
    } else if (leadership.state != LEADERSHIP_HELD) {
        code = fail_without(cli, location.shown, wait_ms, &leadership);
    } else {
        print_leader(cli, location.shown, &leadership);
        code = cli_finish(cli, CLI_EXIT_OK);
    }
    onlooker_close(&onlooker);
    return code;
}
