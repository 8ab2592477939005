/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gavel cluster demo: a cluster on loopback to play with. It says how to talk
 * to it, and then what happens to it, in plain words. It restarts nothing
 * itself: that is what guards are for.
 */
#include "base/error.h"
#include "cli/cluster/cluster_cli.h"
#include "cli/cluster/events.h"
#include "cli/cluster/local.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "os/interrupt.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODES 3
#define START_LIMIT_MS 15000
#define LOOK_EVERY_MS 20
#define SLICE_MS 200
#define LOG_TAIL_BYTES 2000

struct demo {
    const struct cli *cli;
    struct local_cluster cluster;
    struct cluster_client client;
    struct cluster_streams *streams;
    bool is_gone[LOCAL_NODES_MAX + 1]; /* by the number in its name */
};

/* The end of what a node has said, for whoever wants to know why it ended. */
static void print_tail(const struct local_node *node)
{
    char bytes[LOG_TAIL_BYTES + 1];
    FILE *file = fopen(node->log, "re");
    size_t length;
    char *begin;

    if (!file)
        return;
    if (fseek(file, -LOG_TAIL_BYTES, SEEK_END))
        rewind(file); /* it is shorter */
    length = fread(bytes, 1, LOG_TAIL_BYTES, file);
    (void)fclose(file); /* it was only read */
    bytes[length] = '\0';
    begin = length == LOG_TAIL_BYTES ? strchr(bytes, '\n') : NULL;
    fprintf(stderr, "%s", begin ? begin + 1 : bytes);
}

/* Says of guards that ended, which they should not; false if none is left. */
static bool watch_guards(struct demo *demo)
{
    size_t left = 0;

    for (size_t i = 0; i < demo->cluster.count; i++) {
        const struct local_node *node = local_cluster_node(&demo->cluster, i);
        int status = 0;

        if (node->guard && local_cluster_await_end(&demo->cluster, i, 0, &status) == GAVEL_OK) {
            if (WIFSIGNALED(status)) {
                fprintf(stderr, "the guard of %s was ended by signal %d, and nobody restarts it\n",
                        node->name, WTERMSIG(status));
            } else {
                fprintf(stderr, "%s has ended with exit code %d; the end of its log:\n", node->name,
                        WEXITSTATUS(status));
                print_tail(node);
            }
        }
        left += node->guard != 0;
    }
    return left > 0;
}

/* Waits for the first leader, so that what is printed next can be tried at once. */
static enum gavel_status await_leader(struct demo *demo, struct cluster_view *view, struct gavel_error *error)
{
    gavel_ns until = clock_now() + ns_from_ms(START_LIMIT_MS);

    for (;;) {
        enum gavel_status status = cluster_look(&demo->client, view, error);

        if (status == GAVEL_OK && view->leader >= 0 && view->healthy == view->members)
            return GAVEL_OK;
        if (is_interrupted)
            return error_set(error, GAVEL_ERR_STOPPED, "ended before there was a leader");
        if (!watch_guards(demo))
            return error_set(error, GAVEL_ERR_IO, "no node is left; see their output above");
        if (clock_now() >= until)
            return error_set(error, GAVEL_ERR_TIMEOUT, "nobody leads after %d s: %.300s",
                             START_LIMIT_MS / 1000,
                             status != GAVEL_OK ? error->message : view->troubles[0].text);
        cluster_view_done(view);
        (void)usleep(LOOK_EVERY_MS * 1000);
    }
}

static void print_json(const struct demo *demo, const struct cluster_view *view)
{
    char urls[LOCAL_URLS_MAX];
    json_t *json = json_object(), *nodes = json_array();

    json_put_text(json, "cluster", demo->cluster.name);
    json_put_text(json, "urls", local_cluster_urls(&demo->cluster, urls));
    json_put_text(json, "folder", demo->cluster.directory);
    json_put_text(json, "leader_id", cluster_view_leader(view)->name);
    for (size_t i = 0; i < demo->cluster.count; i++) {
        const struct local_node *node = local_cluster_node(&demo->cluster, i);
        const struct cluster_node *seen = cluster_view_find(view, node->name);
        json_t *item = json_object();

        json_put_text(item, "id", node->name);
        json_put_text(item, "url", node->url);
        json_put_number(item, "guard_pid", node->guard);
        json_put(item, "pid", seen && seen->has_answered ? json_integer(seen->pid) : json_null());
        json_put_text(item, "folder", node->directory);
        json_put_text(item, "log", node->log);
        json_array_append_new(nodes, item);
    }
    json_put(json, "nodes", nodes);
    json_print_line(json);
}

static void print_welcome(const struct demo *demo, const struct cluster_view *view)
{
    const struct cluster_node *leader = cluster_view_leader(view);
    char urls[LOCAL_URLS_MAX];

    cluster_print(demo->cli, view, stdout, 0);
    printf("\nTheir logs and data are in %s. In another terminal:\n\n", demo->cluster.directory);
    printf("  export GAVEL_CLUSTER=%s\n", local_cluster_urls(&demo->cluster, urls));
    printf("  gavel status --watch\n  gavel elections\n");
    for (size_t i = 0; i < view->node_count; i++)
        if (&view->nodes[i] != leader && view->nodes[i].has_answered) {
            printf("  gavel handover --to %s\n", view->nodes[i].name);
            break;
        }
    printf("  kill -9 %" PRId64 "        # the process that leads; another takes over before you look\n",
           leader->pid);
    printf("  kill -STOP %" PRId64 "     # a hang instead; kill -CONT ends it\n", leader->pid);
    printf("\nWhat happens here, until Ctrl-C:\n\n");
}

/* That a node is gone is told by each connection of each other node; once is enough. */
static bool is_told_again(struct demo *demo, const struct cluster_event *event)
{
    size_t position =
        strtoul(event->node[0] == 'n' ? event->node + 1 : "0", NULL, 10) % (LOCAL_NODES_MAX + 1);
    bool was_told = demo->is_gone[position];

    if (strcmp(event->name, "peer_down") == 0)
        demo->is_gone[position] = true;
    else if (strcmp(event->name, "peer_up") == 0)
        demo->is_gone[position] = false;
    return strcmp(event->name, "peer_down") == 0 && was_told;
}

/* What a person wants to see of it all: not that each follows the new leader. */
static bool is_news(struct demo *demo, const struct cluster_event *event)
{
    static const char *const dull[] = {"role_changed", "leader_changed", "election_ended", "peer_up",
                                       "breaker_open", "breaker_closed", "transfer_done",  "missed"};

    if (is_told_again(demo, event))
        return false;
    for (size_t i = 0; i < sizeof dull / sizeof dull[0]; i++)
        if (strcmp(event->name, dull[i]) == 0)
            return false;
    return true;
}

/* The process to kill next. */
static void print_pid(struct demo *demo, const char *name)
{
    for (size_t i = 0; i < demo->cluster.count; i++) {
        const struct local_node *node = local_cluster_node(&demo->cluster, i);
        struct cluster_call call = {0};

        if (strcmp(node->name, name) != 0)
            continue;
        strcpy(call.url, node->url);
        cluster_get(&demo->client, "/status", &call, 1, NULL, NULL);
        if (call.status == GAVEL_OK)
            printf(" (its process is %" JSON_INTEGER_FORMAT ")",
                   json_integer_value(json_object_get(call.body, "pid")));
        cluster_calls_done(&call, 1);
    }
}

static void print_event(const struct cluster_event *event, void *user)
{
    struct demo *demo = user;
    const struct cli *cli = demo->cli;
    bool is_leading = strcmp(event->name, "became_leader") == 0;
    char words[512];

    if (cli->config.json || !is_news(demo, event))
        return;
    printf("%s%.12s%s  %s%s%s", style_begin(cli, STYLE_DIM),
           strlen(event->at) > 11 ? event->at + 11 : event->at, style_end(cli, STYLE_DIM),
           style_begin(cli, is_leading ? STYLE_GREEN : STYLE_PLAIN),
           cluster_event_words(event, words, sizeof words),
           style_end(cli, is_leading ? STYLE_GREEN : STYLE_PLAIN));
    if (is_leading)
        print_pid(demo, event->teller);
    putchar('\n');
    if (fflush(stdout))
        is_interrupted = 1; /* nobody reads it any more */
}

/* Whether stdout leads nowhere any more, such as into a head(1) that has seen enough. */
static bool is_unread(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};

    return poll(&output, 1, 0) > 0 && output.revents & POLLERR;
}

static enum gavel_status play(struct demo *demo, struct gavel_error *error)
{
    enum gavel_status status = GAVEL_OK;

    demo->streams = cluster_streams_new(&demo->client, print_event, demo);
    if (!demo->streams)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < demo->cluster.count && status == GAVEL_OK; i++)
        status = cluster_streams_add(demo->streams, demo->cluster.nodes[i].url, demo->cluster.nodes[i].name,
                                     false);
    if (status != GAVEL_OK)
        return error_set(error, status, "out of memory");
    while (!is_interrupted) {
        cluster_streams_run(demo->streams, clock_now() + ns_from_ms(SLICE_MS), &is_interrupted);
        if (!is_interrupted && !watch_guards(demo))
            return error_set(error, GAVEL_ERR_IO, "no node is left");
        if (is_unread())
            return GAVEL_OK;
    }
    return GAVEL_OK;
}

static enum gavel_status start(struct demo *demo, size_t count, struct gavel_error *error)
{
    const struct local_options options = {.cluster = "demo"};
    char urls[LOCAL_URLS_MAX];
    struct cluster_options client = {.urls = urls, .timeout_ms = 1000};
    struct cluster_view view = {0};
    enum gavel_status status = local_cluster_start(count, &options, &demo->cluster, error);

    if (status != GAVEL_OK)
        return status;
    local_cluster_urls(&demo->cluster, urls);
    status = cluster_client_init(&client, &demo->client, error);
    if (status == GAVEL_OK)
        status = await_leader(demo, &view, error);
    if (status == GAVEL_OK && demo->cli->config.json)
        print_json(demo, &view);
    else if (status == GAVEL_OK)
        print_welcome(demo, &view);
    (void)fflush(stdout); /* cli_finish() tells of what did not arrive */
    cluster_view_done(&view);
    return status;
}

static int demonstrate(const struct cli *cli, int64_t count)
{
    struct demo *demo = calloc(1, sizeof *demo);
    struct gavel_error error = {0};
    enum gavel_status status;

    if (!demo)
        return cli_fail(cli, GAVEL_ERR_NO_MEMORY, "out of memory");
    demo->cli = cli;
    interrupt_catch(SIGHUP);
    status = start(demo, (size_t)count, &error);
    if (status == GAVEL_OK)
        status = play(demo, &error);
    cluster_streams_free(demo->streams);
    cluster_client_done(&demo->client);
    if (!cli->config.json && status == GAVEL_OK)
        printf("\nEnding the nodes …\n");
    local_cluster_stop(&demo->cluster);
    free(demo);
    if (status != GAVEL_OK && !is_interrupted)
        return cli_fail(cli, status, "%s", error.message);
    return cli_finish(cli, CLI_EXIT_OK);
}

int command_cluster(const struct cli *cli, int argc, char **argv)
{
    int64_t count = cli_flag_number(cli, "nodes", NODES);

    if (argc != 1 || strcmp(argv[0], "demo") != 0)
        return cli_fail(cli, GAVEL_ERR_INVALID, "usage: gavel cluster demo [--nodes NUMBER]");
    if (count < 1 || count > LOCAL_NODES_MAX)
        return cli_fail(cli, GAVEL_ERR_INVALID, "--nodes: from 1 to %d", LOCAL_NODES_MAX);
    return demonstrate(cli, count);
}
