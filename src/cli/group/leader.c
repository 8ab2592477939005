/* SPDX-License-Identifier: Apache-2.0 */

/* gavel leader: who leads, for scripts. */
#include "cli/cli.h"
#include "cli/cluster/cluster_cli.h"
#include "cli/group/leadership.h"
#include "cli/json_out.h"
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

int command_leader(const struct cli *cli, int argc, char **argv)
{
    const char *group = cli->config.group;
    gavel_ms wait_ms = cli_flag_duration(cli, "wait", 0);
    gavel_ns until = clock_now() + ns_from_ms(wait_ms);
    struct onlooker onlooker = {0};
    struct gavel_error error = {0};
    struct leadership leadership;
    int code;

    (void)argc;
    (void)argv;
    if (cli->config.cluster)
        return cli->config.has_group ? group_leader(cli) : cluster_leader(cli);
    if (onlooker_open(cli, until, &onlooker, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    if (read_until_held(&onlooker, group, until, &leadership, &error) != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
    } else if (leadership.state == LEADERSHIP_DONE) {
        code = cli_fail(cli, GAVEL_ERR_DONE,
                        "the group \"%s\" has no leader: \"%s\" has done its work for good with epoch %llu",
                        group, leadership.record.holder, (unsigned long long)leadership.record.epoch);
    } else if (leadership.state != LEADERSHIP_HELD) {
        char text[DURATION_TEXT_MAX];

        if (wait_ms)
            code = cli_fail(
                cli, GAVEL_ERR_TIMEOUT,
                "waited %s, but the group \"%s\" has no leader: %s; `gavel candidates` lists who could lead",
                duration_exact(wait_ms, text), group, leadership_state_text(leadership.state));
        else
            code = cli_fail(cli, GAVEL_ERR_NO_LEADER,
                            "the group \"%s\" has no leader: %s; `gavel candidates` lists who could lead",
                            group, leadership_state_text(leadership.state));
    } else {
        if (cli->config.json)
            json_print_line(leadership_json(group, &leadership));
        else
            printf("%s\n", leadership.record.holder);
        code = cli_finish(cli, CLI_EXIT_OK);
    }
    onlooker_close(&onlooker);
    return code;
}
