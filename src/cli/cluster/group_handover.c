/* SPDX-License-Identifier: Apache-2.0 */

/* gavel handover --cluster --group: another candidate is to lead a group of a cluster. */
#include "base/error.h"
#include "base/record.h"
#include "cli/cluster/group_cli.h"
#include "cli/cluster/group_view.h"
#include "cli/hint.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "config/duration.h"
#include "config/suggest.h"
#include "os/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRANSFER_MS 30000
#define HANDOVER_MS 10000
#define ANSWER_MS 2000 /* for the answer, on top of the time that the leader has */

static bool is_candidate(const json_t *group, const char *name, struct suggestion *suggestion)
{
    const json_t *candidate;
    size_t position;

    json_array_foreach(json_object_get(group, "candidates"), position, candidate) {
        if (strcmp(json_get_text(candidate, "candidate"), name) == 0)
            return true;
        suggestion_offer(suggestion, json_get_text(candidate, "candidate"));
    }
    return false;
}

static int report_transfer(const struct cli *cli, const char *former, const char *to, json_int_t epoch,
                           gavel_ns took)
{
    json_t *json;

    if (!cli->config.json) {
        printf("%s%s leads%s \"%s\" with epoch %" JSON_INTEGER_FORMAT " (%.1f ms).\n",
               style_begin(cli, STYLE_GREEN), to, style_end(cli, STYLE_GREEN), cli->config.group, epoch,
               (double)took / NS_PER_MS);
        return cli_finish(cli, CLI_EXIT_OK);
    }
    json = json_object();
    json_put_bool(json, "success", true);
    json_put_text(json, "group", cli->config.group);
    json_put_text_or_null(json, "old_leader_id", former);
    json_put_text(json, "new_leader_id", to);
    json_put_number(json, "epoch", epoch);
    json_put_real(json, "took_ms", (double)took / NS_PER_MS);
    json_print_line(json);
    return cli_finish(cli, CLI_EXIT_OK);
}

/* As without --cluster. */
static int report_handover(const struct cli *cli, const json_t *group, const char *to, json_int_t epoch,
                           gavel_ns took)
{
    char text[DURATION_TEXT_MAX];
    json_t *json;

    if (!cli->config.json) {
        printf("%s leads now with epoch %" JSON_INTEGER_FORMAT ", %s after %s was asked to hand over.\n", to,
               epoch, duration_exact(ms_from_ns(took), text), json_get_text(group, "leader"));
        return cli_finish(cli, CLI_EXIT_OK);
    }
    json = json_object();
    json_put_text(json, "group", cli->config.group);
    json_put_text(json, "previous", json_get_text(group, "leader"));
    json_put(json, "previous_epoch", json_incref(json_object_get(group, "epoch")));
    json_put_text(json, "leader_id", to);
    json_put_number(json, "epoch", epoch);
    json_put_number(json, "took_ms", ms_from_ns(took));
    json_print_line(json);
    return cli_finish(cli, CLI_EXIT_OK);
}

/* Where nobody is named the wish can fail in one way only: the leader did not hand over in time. */
static bool is_still_led(const struct gavel_error *error, const char *to)
{
    return error->status == GAVEL_ERR_LEADER_TRANSFER_FAILED && !*to;
}

/* `to` may be "": whoever is next. */
static int ask_leader(const struct cli *cli, struct cluster_client *client, const json_t *group,
                      const char *to, enum handover_form form)
{
    gavel_ms timeout_ms = cli_flag_duration(cli, "timeout", form == HANDOVER ? HANDOVER_MS : TRANSFER_MS);
    char path[CLUSTER_PATH_MAX];
    json_t *body = json_pack("{s:s, s:b, s:I}", "to", to, "force", (int)cli_flag_is_set(cli, "force"),
                             "timeout_ms", (json_int_t)timeout_ms);
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    struct cluster_ask ask = {.method = "POST",
                              .path = path,
                              .body = text,
                              .type = "application/json",
                              .timeout_ms = timeout_ms + ANSWER_MS};
    struct cluster_reply reply = {0};
    struct gavel_error error = {0};
    gavel_ns begun = clock_now();
    int code;

    json_decref(body);
    if (!text || cluster_path(path, "/groups/%s/transfer", cli->config.group, NULL, NULL) != GAVEL_OK) {
        free(text);
        return cli_fail(cli, GAVEL_ERR_INVALID, "\"%.60s\" cannot be sent: it is not UTF-8", to);
    }
    ask.length = strlen(text);
    if (!cli->config.json && form == HANDOVER_TRANSFER) {
        printf("%s leads \"%s\"; it hands over to %s …\n", json_get_text(group, "leader"), cli->config.group,
               to);
        (void)fflush(stdout); /* cli_finish() tells of what did not arrive */
    }
    if (cluster_send(client, &ask, &reply, &error) != GAVEL_OK)
        code =
            cli_fail(cli, is_still_led(&error, to) ? GAVEL_ERR_TIMEOUT : error.status, "%s", error.message);
    else if (form == HANDOVER)
        code = report_handover(cli, group, json_get_text(reply.call.body, "new_leader"),
                               json_integer_value(json_object_get(reply.call.body, "epoch")),
                               clock_now() - begun);
    else
        code = report_transfer(
            cli, json_get_text(reply.call.body, "old_leader"), json_get_text(reply.call.body, "new_leader"),
            json_integer_value(json_object_get(reply.call.body, "epoch")), clock_now() - begun);
    cluster_reply_done(&reply);
    free(text);
    return code;
}

static int hand_over(const struct cli *cli, struct cluster_client *client, const json_t *group,
                     const char *to, enum handover_form form)
{
    const char *leader = json_get_text(group, "leader"), *name = cli->config.group;
    json_int_t epoch = json_integer_value(json_object_get(group, "epoch"));
    struct suggestion suggestion;

    suggestion_init(&suggestion, to);
    if (*to && strcmp(leader, to) == 0) {
        if (!cli->config.json)
            printf("%s leads \"%s\" already.\n", to, name);
        else
            return form == HANDOVER ? report_handover(cli, group, to, epoch, 0)
                                    : report_transfer(cli, to, to, epoch, 0);
        return cli_finish(cli, CLI_EXIT_OK);
    }
    if (*to && !is_candidate(group, to, &suggestion))
        return suggestion.best ? cli_fail(cli, GAVEL_ERR_NOT_FOUND,
                                          "the group \"%s\" has no candidate \"%.60s\"; did you mean \"%s\"?",
                                          name, to, suggestion.best)
                               : cli_fail(cli, GAVEL_ERR_NOT_FOUND,
                                          "the group \"%s\" has no candidate \"%.60s\"; `%s` lists them",
                                          name, to, hint_group(cli, "candidates").text);
    if (!*leader)
        return cli_fail(cli, GAVEL_ERR_NO_LEADER,
                        "nobody leads the group \"%s\", so nobody can hand over: %s", name,
                        group_state_text(group));
    return ask_leader(cli, client, group, to, form);
}

int group_handover(const struct cli *cli, const char *to, enum handover_form form)
{
    struct cluster_client client;
    struct gavel_error error = {0};
    json_t *group = NULL;
    int code;

    if (cluster_open(cli, &client, &error) != GAVEL_OK ||
        (to && name_check("candidate id", to, &error) != GAVEL_OK) ||
        group_fetch(cli, &client, cli->config.group, &group, &error) != GAVEL_OK)
        code = cli_fail(cli, error.status, "%s", error.message);
    else
        code = hand_over(cli, &client, group, to ? to : "", form);
    json_decref(group);
    cluster_client_done(&client);
    return code;
}
