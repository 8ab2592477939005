/* SPDX-License-Identifier: Apache-2.0 */

/* gavel status --cluster: a table of the nodes, what is wrong with them, and --watch. */
#include "cli/cluster/cluster_cli.h"
#include "cli/hint.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "config/duration.h"
#include "os/clock.h"
#include "os/interrupt.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WATCH_MS 1000
#define WATCH_LEAST_MS 100

const char *cluster_headline(const struct cluster_view *view, char *buffer, size_t size)
{
    const struct cluster_node *leader = cluster_view_leader(view);
    char lease[DURATION_TEXT_MAX + 16] = "", text[DURATION_TEXT_MAX];

    if (leader && leader->has_lease && leader->lease_ms >= 0)
        (void)snprintf(lease, sizeof lease, ", lease %s", duration_exact(leader->lease_ms, text));
    if (leader)
        (void)snprintf(buffer, size, "cluster %s: %s leads in term %" PRIu64 "%s; %zu of %zu healthy",
                       view->cluster, leader->name, view->term, lease, view->healthy, view->members);
    else
        (void)snprintf(buffer, size, "cluster %s: nobody leads, term %" PRIu64 "; %zu of %zu healthy",
                       view->cluster, view->term, view->healthy, view->members);
    return buffer;
}

int cluster_exit_code(const struct cluster_view *view)
{
    if (view->trouble_count == 0)
        return CLI_EXIT_OK;
    switch (view->troubles[0].kind) {
    case TROUBLE_SPLIT_BRAIN:
        return exit_code_of(GAVEL_ERR_SPLIT_BRAIN);
    case TROUBLE_NO_LEADER:
        return CLI_EXIT_NO_LEADER;
    case TROUBLE_ALERT:
        return CLI_EXIT_FAILURE;
    case TROUBLE_NOTE:
        break;
    }
    return CLI_EXIT_OK;
}

static void number_cell(struct table *table, bool is_known, uint64_t number)
{
    if (is_known)
        table_cell(table, STYLE_PLAIN, "%" PRIu64, number);
    else
        table_cell(table, STYLE_DIM, "-");
}

static void time_cell(struct table *table, int64_t ms)
{
    char text[DURATION_TEXT_MAX];

    if (ms < 0)
        table_cell(table, STYLE_DIM, "-");
    else
        table_cell(table, STYLE_PLAIN, "%s", duration_rough(ms, text));
}

/* Where the log of a node ends: after the majority is lost, the node with the highest term, and among those
 * the highest index, has the newest log. */
static void last_entry_cell(struct table *table, const struct cluster_node *node)
{
    if (node->has_log_end)
        table_cell(table, STYLE_PLAIN, "term %" PRIu64 ", index %" PRIu64, node->last_term, node->last);
    else
        table_cell(table, STYLE_DIM, "-");
}

/* What a node is: its role, or what it is in the cluster if that says more. */
static const char *role_of(const struct cluster_node *node)
{
    if (!node->has_answered)
        return *node->kind ? node->kind : "-";
    if (strcmp(node->kind, "witness") == 0 && strcmp(node->role, "follower") == 0)
        return "witness";
    return node->role;
}

static void print_nodes(const struct cli *cli, const struct cluster_view *view, FILE *file, size_t room)
{
    static const char *const headings[] = {"  NODE", "ROLE",   "TERM",    "LEASE",      "COMMIT", "APPLIED",
                                           "HEARD",  "HEALTH", "ADDRESS", "LAST ENTRY", NULL};
    struct table table;

    table_init(&table, headings);
    table.room = room;
    for (size_t i = 0; i < view->node_count; i++) {
        const struct cluster_node *node = &view->nodes[i];
        bool is_leader = view->leader == (int)i, is_known = node->has_answered;
        const char *health = cluster_node_health(node);

        table_cell(&table, is_leader ? STYLE_GREEN : STYLE_PLAIN, "%s %s", is_leader ? "*" : " ",
                   *node->name ? node->name : "?");
        table_cell(&table, is_leader ? STYLE_GREEN : STYLE_PLAIN, "%s", role_of(node));
        number_cell(&table, is_known, node->term);
        if (node->has_lease && node->lease_ms < 0) /* the only voter */
            table_cell(&table, STYLE_PLAIN, "no end");
        else
            time_cell(&table, node->lease_ms);
        number_cell(&table, is_known, node->commit);
        number_cell(&table, is_known, node->applied);
        time_cell(&table, (int)i == view->believed ? -1 : node->contact_ms);
        table_cell(&table,
                   cluster_node_is_well(node) ? STYLE_GREEN
                   : node->has_answered       ? STYLE_YELLOW
                                              : STYLE_RED,
                   "%s", health);
        table_cell(&table, STYLE_PLAIN, "%s", node->address);
        last_entry_cell(&table, node);
    }
    table_print(&table, cli, file);
    table_done(&table);
}

void cluster_print(const struct cli *cli, const struct cluster_view *view, FILE *file, size_t room)
{
    static const enum style styles[] = {[TROUBLE_SPLIT_BRAIN] = STYLE_RED,
                                        [TROUBLE_NO_LEADER] = STYLE_RED,
                                        [TROUBLE_ALERT] = STYLE_YELLOW,
                                        [TROUBLE_NOTE] = STYLE_PLAIN};
    size_t width = room ? room : output_columns(file);
    char text[256];

    fprintf(file, "%s%s%s\n\n", style_begin(cli, STYLE_BOLD), cluster_headline(view, text, sizeof text),
            style_end(cli, STYLE_BOLD));
    print_nodes(cli, view, file, room);
    if (view->is_changing)
        fprintf(file, "\nA change of members is under way.\n");
    for (size_t i = 0; i < view->trouble_count; i++) {
        enum style style = styles[view->troubles[i].kind];

        fprintf(file, "%s%s! ", i ? "" : "\n", style_begin(cli, style));
        print_wrapped(file, width, 2, 2, view->troubles[i].text);
        fputs(style_end(cli, style), file);
    }
}

static void put_known(json_t *json, const char *key, bool is_known, uint64_t number)
{
    json_put(json, key, is_known ? json_integer((json_int_t)number) : json_null());
}

static void put_time(json_t *json, const char *key, int64_t ms)
{
    json_put(json, key, ms < 0 ? json_null() : json_integer(ms));
}

static json_t *node_json(const struct cluster_node *node)
{
    bool is_known = node->has_answered;
    json_t *json = json_object();

    json_put_text_or_null(json, "id", node->name);
    json_put_text(json, "address", node->address);
    json_put_text_or_null(json, "url", node->url);
    json_put_text_or_null(json, "kind", node->kind);
    json_put_bool(json, "answers", is_known);
    json_put_text_or_null(json, "reason", is_known ? "" : node->reason);
    json_put_text(json, "health", cluster_node_health(node));
    json_put_text_or_null(json, "role", node->role);
    json_put_text_or_null(json, "leader_id", node->leader);
    put_known(json, "generation", is_known, node->generation);
    put_known(json, "term", is_known, node->term);
    put_known(json, "incarnation", is_known, node->incarnation);
    put_known(json, "commit", is_known, node->commit);
    put_known(json, "applied", is_known, node->applied);
    put_known(json, "last_term", node->has_log_end, node->last_term);
    put_known(json, "last", node->has_log_end, node->last);
    put_known(json, "pid", is_known, (uint64_t)node->pid);
    put_known(json, "guard_pid", is_known, (uint64_t)node->guard_pid);
    json_put_bool(json, "is_leader", node->is_leader);
    json_put_bool(json, "has_lease", node->has_lease);
    put_time(json, "lease_remaining_ms", node->lease_ms);
    put_time(json, "last_contact_ms", node->contact_ms);
    json_put_bool(json, "stale", node->is_stale);
    json_put_bool(json, "disk_full", node->is_disk_full);
    json_put_bool(json, "disk_hangs", node->disk_hangs_ms >= 0);
    json_put_bool(json, "commits_hang", node->commits_hang);
    put_time(json, "oldest_uncommitted_ms", node->uncommitted_ms);
    return json;
}

json_t *cluster_json(const struct cluster_view *view)
{
    static const char *const names[] = {[TROUBLE_SPLIT_BRAIN] = "ERR_SPLIT_BRAIN",
                                        [TROUBLE_NO_LEADER] = "ERR_NO_LEADER",
                                        [TROUBLE_ALERT] = "alert",
                                        [TROUBLE_NOTE] = "note"};
    const struct cluster_node *leader = cluster_view_leader(view);
    json_t *json = json_object(), *nodes = json_array(), *troubles = json_array();

    json_put_text(json, "cluster", view->cluster);
    json_put_number(json, "generation", (int64_t)view->generation);
    json_put_number(json, "term", (int64_t)view->term);
    json_put_text_or_null(json, "leader_id", leader ? leader->name : "");
    json_put_text_or_null(json, "leader_address", leader ? leader->address : "");
    put_time(json, "lease_remaining_ms", leader ? leader->lease_ms : -1);
    json_put_number(json, "members", (int64_t)view->members);
    json_put_number(json, "healthy", (int64_t)view->healthy);
    json_put_bool(json, "changing_members", view->is_changing);
    json_put_bool(json, "split_brain",
                  view->trouble_count > 0 && view->troubles[0].kind == TROUBLE_SPLIT_BRAIN);
    for (size_t i = 0; i < view->trouble_count; i++) {
        json_t *trouble = json_object();

        json_put_text(trouble, "kind", names[view->troubles[i].kind]);
        json_put_text(trouble, "message", view->troubles[i].text);
        json_array_append_new(troubles, trouble);
    }
    json_put(json, "troubles", troubles);
    for (size_t i = 0; i < view->node_count; i++)
        json_array_append_new(nodes, node_json(&view->nodes[i]));
    json_put(json, "nodes", nodes);
    return json;
}

/* The same lines again over the old ones: each clears the rest of its own, the last what is below. */
static void redraw(const char *text)
{
    fputs("\033[H", stdout);
    for (const char *end; *text; text = end + (*end != '\0')) {
        end = strchrnul(text, '\n');
        printf("%.*s\033[K%s", (int)(end - text), text, *end ? "\n" : "");
    }
    fputs("\033[J", stdout);
}

/* One look, printed as a whole so that nothing flickers. */
static int watch_once(const struct cli *cli, struct cluster_client *client, bool is_terminal)
{
    struct gavel_error error = {0};
    struct cluster_view view;
    char *text = NULL, time[25];
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    bool is_good = cluster_look(client, &view, &error) == GAVEL_OK;

    if (!memory)
        return cli_fail(cli, GAVEL_ERR_NO_MEMORY, "out of memory");
    if (cli->config.json) {
        json_print_line(is_good ? cluster_json(&view)
                                : json_pack("{s:{s:i,s:s,s:s}}", "error", "code", (int)error.status, "name",
                                            gavel_status_name(error.status), "message", error.message));
    } else {
        wall_time_format(clock_wall_ms(), time);
        fprintf(memory, "%s%s%s\n", style_begin(cli, STYLE_DIM), time, style_end(cli, STYLE_DIM));
        if (is_good)
            cluster_print(cli, &view, memory, is_terminal ? output_columns(stdout) : 0);
        else
            print_wrapped(memory, output_columns(stdout), 0, 0, error.message);
        if (!fflush(memory) && is_terminal)
            redraw(text);
        else
            printf("%s\n", text);
    }
    (void)fclose(memory); /* memory only */
    free(text);
    cluster_view_done(&view);
    return cli_finish(cli, CLI_EXIT_OK);
}

static int watch(const struct cli *cli, struct cluster_client *client, gavel_ms every_ms)
{
    bool is_terminal = isatty(STDOUT_FILENO) && !cli->config.json;
    int code = CLI_EXIT_OK;

    if (every_ms < WATCH_LEAST_MS)
        return cli_fail(cli, GAVEL_ERR_INVALID, "--watch: it must be at least %d ms", WATCH_LEAST_MS);
    interrupt_catch(0);
    if (is_terminal)
        fputs("\033[?25l\033[2J", stdout); /* without the cursor, on an empty screen */
    while (!is_interrupted && !code) {
        code = watch_once(cli, client, is_terminal);
        if (!is_interrupted && !code)
            (void)poll(NULL, 0, (int)every_ms); /* a signal ends it */
    }
    if (is_terminal) {
        fputs("\033[?25h", stdout);
        (void)fflush(stdout);
    }
    return code;
}

int cluster_status(const struct cli *cli)
{
    struct cluster_client client;
    struct gavel_error error = {0};
    struct cluster_view view = {0};
    int code;

    if (cluster_open(cli, &client, &error) != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
    } else if (cli_flag_is_set(cli, "all")) {
        code = cli_fail(cli, GAVEL_ERR_INVALID, "--all is for a store; `%s` lists the groups of a cluster",
                        hint_all(cli, "groups").text);
    } else if (cli_flag_is_set(cli, "watch")) {
        code = watch(cli, &client, cli_flag_duration(cli, "watch", WATCH_MS));
    } else if (cluster_look(&client, &view, &error) != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
    } else {
        if (cli->config.json)
            json_print_line(cluster_json(&view));
        else
            cluster_print(cli, &view, stdout, 0);
        code = cli_finish(cli, CLI_EXIT_OK);
    }
    cluster_view_done(&view);
    cluster_client_done(&client);
    return code;
}
