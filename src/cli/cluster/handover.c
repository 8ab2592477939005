/* SPDX-License-Identifier: Apache-2.0 */

/* gavel handover --cluster: another node is to lead the cluster; group_handover.c has its groups. */
#include "cli/cluster/cluster_cli.h"
#include "cli/hint.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "config/duration.h"
#include "config/suggest.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HANDOVER_MS 30000
#define SUCCESSOR_MS 2000
#define ANSWER_MS 2000 /* for the answer, on top of the time that the node has */

/* What a person sees while it goes on; a program only wants the end. */
static void progress(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void progress(const struct cli *cli, const char *format, ...)
{
    va_list list;

    if (cli->config.json)
        return;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    (void)fflush(stdout); /* cli_finish() tells of what did not arrive */
}

/* Says who leads now, by what the node answered and by looking once more. */
static int report(const struct cli *cli, struct cluster_client *client, const struct cluster_call *call,
                  gavel_ns took)
{
    const char *successor = json_get_text(call->body, "new_leader_id"),
               *message = json_get_text(call->body, "message");
    struct gavel_error error = {0};
    struct cluster_view view;
    const struct cluster_node *leader;
    uint64_t term;

    if (cluster_await(client, clock_now() + ns_from_ms(SUCCESSOR_MS), SUCCESSOR_MS, &view, &error) !=
        GAVEL_OK)
        view.leader = -1;
    leader = cluster_view_leader(&view);
    term = view.term;
    if (cli->config.json) {
        json_t *json = json_object();

        json_put_bool(json, "success", json_is_true(json_object_get(call->body, "success")));
        json_put_text(json, "message", message);
        json_put_text_or_null(json, "old_leader_id", json_get_text(call->body, "old_leader_id"));
        json_put_text_or_null(json, "new_leader_id", *successor ? successor : leader ? leader->name : "");
        json_put(json, "term", leader ? json_integer((json_int_t)term) : json_null());
        json_put_real(json, "took_ms", (double)took / NS_PER_MS);
        json_print_line(json);
    } else if (leader) {
        printf("%s%s leads%s in term %" PRIu64 " (%.1f ms).\n", style_begin(cli, STYLE_GREEN), leader->name,
               style_end(cli, STYLE_GREEN), term, (double)took / NS_PER_MS);
    } else {
        printf("Nobody leads yet; `%s` waits for the election.\n", hint_all(cli, "leader --wait 5s").text);
    }
    cluster_view_done(&view);
    return cli_finish(cli, CLI_EXIT_OK);
}

static int no_such_node(const struct cli *cli, const struct cluster_view *view, const char *name)
{
    struct suggestion suggestion;
    char list[256] = "";

    suggestion_init(&suggestion, name);
    for (size_t i = 0; i < view->node_count; i++) {
        const struct cluster_node *node = &view->nodes[i];

        if (!*node->name)
            continue;
        suggestion_offer(&suggestion, node->name);
        (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? ", " : "",
                       node->name);
    }
    if (suggestion.best)
        return cli_fail(cli, GAVEL_ERR_NOT_FOUND,
                        "the cluster \"%s\" has no node \"%.60s\"; did you mean \"%s\"?", view->cluster, name,
                        suggestion.best);
    return cli_fail(cli, GAVEL_ERR_NOT_FOUND, "the cluster \"%s\" has no node \"%.60s\"; it has %s",
                    view->cluster, name, list);
}

static json_t *request_of(const char *target, gavel_ms timeout_ms, bool is_forced)
{
    return json_pack("{s:s, s:I, s:b}", "target_leader_id", target, "timeout_ms", (json_int_t)timeout_ms,
                     "force", is_forced);
}

/* A leader that hangs cannot hand over: the target itself is asked to stand. */
static enum gavel_status force_at_target(struct cluster_client *client, const struct cluster_node *target,
                                         const json_t *request, gavel_ms timeout_ms,
                                         struct cluster_call *ret_call, struct gavel_error *error)
{
    *ret_call = (struct cluster_call){0};
    strcpy(ret_call->url, target->url);
    cluster_post(client, "/transfer", request, timeout_ms + ANSWER_MS, ret_call);
    error->status = ret_call->status;
    (void)snprintf(error->message, sizeof error->message, "%s: %s", target->name, ret_call->reason);
    return ret_call->status;
}

static enum gavel_status hand_over(const struct cli *cli, struct cluster_client *client,
                                   const struct cluster_view *view, const struct cluster_node *target,
                                   struct cluster_call *ret_call, struct gavel_error *error)
{
    gavel_ms timeout_ms = cli_flag_duration(cli, "timeout", HANDOVER_MS);
    const struct cluster_node *leader = cluster_view_leader(view);
    bool is_forced = cli_flag_is_set(cli, "force"), hangs = !leader || !leader->has_answered;
    json_t *request = request_of(target->name, timeout_ms, is_forced);
    enum gavel_status status = GAVEL_ERR_TIMEOUT;

    if (!hangs) {
        progress(cli, "%s leads in term %" PRIu64 "; it hands over to %s …\n", leader->name, view->term,
                 target->name);
        status = cluster_ask_leader(client, "/transfer", request, timeout_ms + ANSWER_MS, ret_call, error);
    }
    if (is_forced && (hangs || (status != GAVEL_OK && ret_call->code == 0))) {
        if (!hangs)
            cluster_calls_done(ret_call, 1);
        progress(cli, "%s; %s itself is asked to stand …\n",
                 leader ? "The leader does not answer" : "Nobody leads", target->name);
        status = force_at_target(client, target, request, timeout_ms, ret_call, error);
    }
    json_decref(request);
    return status;
}

static void explain_force(const struct cli *cli, const struct cluster_node *leader, const char *target)
{
    const char *name = leader ? leader->name : "the former leader";
    char text[512];

    if (cli->config.json)
        return;
    (void)snprintf(
        text, sizeof text,
        "Forced: what %s has accepted and not yet committed is lost if %s does not have it. %s leads as soon as the lease of %s has run out for certain. The journal records that it was forced.",
        name, target, target, name);
    print_wrapped(stderr, output_columns(stderr), 0, 2, text);
}

/* Lets the node of that name lead. */
static int hand_over_to(const struct cli *cli, const char *to)
{
    struct cluster_client client;
    struct gavel_error error = {0};
    struct cluster_view view = {0};
    struct cluster_call call = {0};
    const struct cluster_node *target, *leader;
    gavel_ns begun;
    int code;

    if (cluster_open(cli, &client, &error) != GAVEL_OK ||
        cluster_find(&client, to, &view, &error) != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
        goto out;
    }
    target = cluster_view_find(&view, to);
    leader = cluster_view_leader(&view);
    if (!target) {
        code = no_such_node(cli, &view, to);
    } else if (target == leader && leader->has_lease) {
        progress(cli, "%s leads already, in term %" PRIu64 ".\n", leader->name, view.term);
        if (cli->config.json)
            json_print_line(json_pack("{s:b, s:s, s:s, s:s, s:I, s:f}", "success", 1, "message",
                                      "it leads already", "old_leader_id", leader->name, "new_leader_id",
                                      leader->name, "term", (json_int_t)view.term, "took_ms", 0.0));
        code = cli_finish(cli, CLI_EXIT_OK);
    } else if (!target->has_answered) {
        code = cli_fail(cli, GAVEL_ERR_LEADER_TRANSFER_FAILED,
                        "%s does not answer (%s); it has to run to lead", target->name, target->reason);
    } else if (!cli_flag_is_set(cli, "force") && (!leader || !leader->has_answered)) {
        code = cli_fail(
            cli, leader ? GAVEL_ERR_LEADER_TRANSFER_FAILED : GAVEL_ERR_NO_LEADER,
            "%s%s, so nobody can hand over; the nodes elect another by themselves, or --force lets %s stand now",
            leader ? leader->name : "nobody leads", leader ? " leads and does not answer" : "", target->name);
    } else {
        if (cli_flag_is_set(cli, "force"))
            explain_force(cli, leader, target->name);
        begun = clock_now();
        code = hand_over(cli, &client, &view, target, &call, &error)
                   ? cli_fail(cli, error.status, "%s", error.message)
                   : report(cli, &client, &call, clock_now() - begun);
    }
out:
    cluster_calls_done(&call, 1);
    cluster_view_done(&view);
    cluster_client_done(&client);
    return code;
}

/* Lets the leader give up; the nodes elect another, or it again. */
static int step_down(const struct cli *cli)
{
    gavel_ms timeout_ms = cli_flag_duration(cli, "timeout", HANDOVER_MS);
    struct cluster_client client;
    struct gavel_error error = {0};
    struct cluster_call call = {0};
    json_t *request = json_object();
    gavel_ns begun = clock_now();
    int code;

    json_put_number(request, "timeout_ms", timeout_ms);
    if (cluster_open(cli, &client, &error) != GAVEL_OK ||
        cluster_ask_leader(&client, "/stepdown", request, timeout_ms + ANSWER_MS, &call, &error) !=
            GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
    } else {
        progress(cli, "%s has given up.\n", json_get_text(call.body, "old_leader_id"));
        code = report(cli, &client, &call, clock_now() - begun);
    }
    json_decref(request);
    cluster_calls_done(&call, 1);
    cluster_client_done(&client);
    return code;
}

int cluster_handover(const struct cli *cli, const char *to)
{
    return to ? hand_over_to(cli, to) : step_down(cli);
}
