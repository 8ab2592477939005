/* SPDX-License-Identifier: Apache-2.0 */

/* gavel watch --cluster --group: who leads a group of a cluster, then a line for each change. */
#include "cli/cluster/group_cli.h"
#include "cli/cluster/group_stream.h"
#include "cli/cluster/group_view.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "os/clock.h"
#include "os/interrupt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct watcher {
    const struct cli *cli;
    int64_t wanted; /* lines; 0: no end */
    int64_t printed;
    int code;
};

/* A line is out; false if it was the last. */
static bool count(struct watcher *watcher)
{
    watcher->printed++;
    watcher->code = cli_finish(watcher->cli, CLI_EXIT_OK);
    return !watcher->code && (!watcher->wanted || watcher->printed < watcher->wanted);
}

static void print_words(const struct cli *cli, enum style style, const char *words)
{
    char time[25];

    wall_time_format(clock_wall_ms(), time);
    printf("%s%s%s  %s%s%s\n", style_begin(cli, STYLE_DIM), time, style_end(cli, STYLE_DIM),
           style_begin(cli, style), words, style_end(cli, style));
}

static bool print_current(struct watcher *watcher, const json_t *group)
{
    const struct cli *cli = watcher->cli;
    const char *leader = json_get_text(group, "leader");
    char words[512];

    if (cli->config.json) {
        json_t *json = json_object();

        json_put_time(json, "time", clock_wall_ms());
        json_put_text(json, "event", "current");
        json_object_update_new(json, group_leadership_json(group));
        json_print_line(json);
        return count(watcher);
    }
    if (*leader)
        (void)snprintf(words, sizeof words, "%s leads with epoch %" JSON_INTEGER_FORMAT, leader,
                       json_integer_value(json_object_get(group, "epoch")));
    else
        (void)snprintf(words, sizeof words, "nobody leads: %s", group_state_text(group));
    print_words(cli, *leader ? STYLE_GREEN : STYLE_YELLOW, words);
    return count(watcher);
}

static bool on_change(const char *kind, const json_t *change, void *user)
{
    struct watcher *watcher = user;
    const struct cli *cli = watcher->cli;
    char words[1024];

    if (strcmp(kind, "missed") == 0) {
        fprintf(stderr,
                "gavel watch: some changes are no longer remembered; what follows is complete again\n");
        return true;
    }
    if (!*group_change_words(kind, change, words, sizeof words))
        return true; /* of something else than who leads */
    if (cli->config.json)
        json_print_line(group_change_json(kind, change, clock_wall_ms()));
    else
        print_words(cli, strcmp(kind, "elected") == 0 ? STYLE_GREEN : STYLE_YELLOW, words);
    return count(watcher);
}

static int watch(const struct cli *cli, struct cluster_client *client, struct watcher *watcher,
                 gavel_ns until)
{
    struct group_stream stream = {.group = cli->config.group,
                                  .has_after = true,
                                  .until = until,
                                  .stop = &is_interrupted,
                                  .cb = on_change,
                                  .user = watcher};
    struct gavel_error error = {0};
    json_t *group = NULL;
    bool goes_on;

    if (group_fetch(cli, client, cli->config.group, &group, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    stream.after = (uint64_t)json_integer_value(json_object_get(group, "revision"));
    stream.has_after = stream.after > 0; /* a group that nobody knows yet comes without one */
    goes_on = print_current(watcher, group);
    json_decref(group);
    if (goes_on && group_stream_run(client, &stream, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    return watcher->code;
}

int group_watch(const struct cli *cli)
{
    gavel_ms limit_ms = cli_flag_duration(cli, "timeout", 0);
    struct watcher watcher = {.cli = cli, .wanted = cli_flag_number(cli, "count", 0)};
    struct cluster_client client;
    struct gavel_error error = {0};
    int code;

    if (cli_flag_number(cli, "count", 1) == 0)
        return cli_fail(cli, GAVEL_ERR_INVALID,
                        "--count must be at least 1; leave it out to watch without an end");
    interrupt_catch(0);
    if (cluster_open(cli, &client, &error) != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
    } else {
        code = watch(cli, &client, &watcher, limit_ms ? clock_now() + ns_from_ms(limit_ms) : NEVER);
        if (!code && watcher.wanted && watcher.printed < watcher.wanted && !is_interrupted)
            code = cli_fail(cli, GAVEL_ERR_TIMEOUT, "only %" PRId64 " of %" PRId64 " lines came in time",
                            watcher.printed, watcher.wanted);
    }
    cluster_client_done(&client);
    return code;
}
