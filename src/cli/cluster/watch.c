/* SPDX-License-Identifier: Apache-2.0 */

/* gavel watch --cluster: a line for each event of the nodes, as it happens. */
#include "cli/cluster/cluster_cli.h"
#include "cli/cluster/events.h"
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

static enum style style_of(const struct cluster_event *event)
{
    static const char *const bad[] = {"split_brain",  "disk_full",         "disk_hangs",
                                      "commits_hang", "lost_leadership",   "leader_down",
                                      "peer_refused", "directory_refused", "directory_lost",
                                      "nobody_near",  "founding_refused"};

    if (strcmp(event->name, "became_leader") == 0)
        return STYLE_GREEN;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (strcmp(event->name, bad[i]) == 0)
            return STYLE_RED;
    return STYLE_PLAIN;
}

static void print_event(const struct cluster_event *event, void *user)
{
    struct watcher *watcher = user;
    const struct cli *cli = watcher->cli;
    char words[512];

    if (watcher->wanted && watcher->printed >= watcher->wanted)
        return;
    if (cli->config.json) {
        json_t *json = json_deep_copy(event->json);

        json_put_text(json, "told_by", event->teller);
        json_print_line(json);
    } else {
        enum style style = style_of(event);

        printf("%s%s%s  %s%s%s\n", style_begin(cli, STYLE_DIM), event->at, style_end(cli, STYLE_DIM),
               style_begin(cli, style), cluster_event_words(event, words, sizeof words),
               style_end(cli, style));
    }
    watcher->printed++;
    watcher->code = cli_finish(cli, CLI_EXIT_OK);
    if (watcher->code || (watcher->wanted && watcher->printed >= watcher->wanted))
        is_interrupted = 1;
}

/* Listens to all that were found; those that are silent are asked again and again. */
static int listen_to(const struct cli *cli, const struct cluster_client *client,
                     const struct cluster_view *view, struct watcher *watcher, gavel_ns until)
{
    struct cluster_streams *streams = cluster_streams_new(client, print_event, watcher);
    enum gavel_status status = streams ? GAVEL_OK : GAVEL_ERR_NO_MEMORY;

    for (size_t i = 0; i < view->node_count && status == GAVEL_OK; i++)
        if (*view->nodes[i].url)
            status = cluster_streams_add(streams, view->nodes[i].url,
                                         *view->nodes[i].name ? view->nodes[i].name : view->nodes[i].address,
                                         false);
    if (status != GAVEL_OK) {
        cluster_streams_free(streams);
        return cli_fail(cli, status, "out of memory");
    }
    cluster_streams_run(streams, until, &is_interrupted);
    cluster_streams_free(streams);
    return watcher->code;
}

int cluster_watch(const struct cli *cli)
{
    gavel_ms limit_ms = cli_flag_duration(cli, "timeout", 0);
    struct watcher watcher = {.cli = cli, .wanted = cli_flag_number(cli, "count", 0)};
    struct cluster_client client;
    struct gavel_error error = {0};
    struct cluster_view view = {0};
    char headline[256];
    int code;

    if (cli_flag_number(cli, "count", 1) == 0)
        return cli_fail(cli, GAVEL_ERR_INVALID,
                        "--count must be at least 1; leave it out to watch without an end");
    interrupt_catch(0);
    if (cluster_open(cli, &client, &error) != GAVEL_OK || cluster_look(&client, &view, &error) != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
    } else {
        if (!cli->config.json)
            fprintf(stderr, "%s\n", cluster_headline(&view, headline, sizeof headline));
        code =
            listen_to(cli, &client, &view, &watcher, limit_ms ? clock_now() + ns_from_ms(limit_ms) : NEVER);
        if (!code && watcher.wanted && watcher.printed < watcher.wanted && limit_ms)
            code = cli_fail(cli, GAVEL_ERR_TIMEOUT, "only %" PRId64 " of %" PRId64 " events came in time",
                            watcher.printed, watcher.wanted);
    }
    cluster_view_done(&view);
    cluster_client_done(&client);
    return code;
}
