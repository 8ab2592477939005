/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gavel elections: who stood, who voted for whom, and why not. Each node keeps
 * a record of what it has seen; of several records of one election the
 * candidate's own is shown, since only that one has all the answers.
 */
#include "cli/cluster/cluster_cli.h"
#include "cli/json_out.h"
#include "cli/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_DEFAULT 10
#define RECORDS_MAX 4096

struct record {
    const json_t *json; /* borrowed from the call */
    const char *node;   /* who has it */
    uint64_t term;
    const char *candidate;
    const char *started_at; /* ISO 8601, so the order of the text is that of time */
    bool is_pre_vote;
    bool is_own; /* told by the candidate itself */
};

/* The newest first; of one election the candidate's own record. */
static int by_age(const void *left, const void *right)
{
    const struct record *a = left, *b = right;
    int order;

    if (a->term != b->term)
        return a->term > b->term ? -1 : 1;
    if (a->is_pre_vote != b->is_pre_vote)
        return a->is_pre_vote ? 1 : -1;
    order = strcmp(a->candidate, b->candidate);
    if (order)
        return order;
    if (a->is_own != b->is_own)
        return a->is_own ? -1 : 1;
    return strcmp(b->started_at, a->started_at);
}

/* A candidate stands once in a term; rounds of pre-votes may be many, each told by the candidate alone. */
static bool is_same(const struct record *a, const struct record *b)
{
    return !a->is_pre_vote && !b->is_pre_vote && a->term == b->term &&
           strcmp(a->candidate, b->candidate) == 0;
}

/* All records of one node. */
static size_t collect(const struct cluster_call *call, const char *node, struct record *records, size_t room)
{
    const json_t *list = json_object_get(call->body, "elections"), *json;
    size_t position, count = 0;

    json_array_foreach(list, position, json) {
        struct record *record = &records[count];

        if (count == room)
            break;
        *record = (struct record){.json = json,
                                  .node = node,
                                  .term = (uint64_t)json_integer_value(json_object_get(json, "term")),
                                  .candidate = json_get_text(json, "candidate"),
                                  .started_at = json_get_text(json, "started_at"),
                                  .is_pre_vote = json_is_true(json_object_get(json, "pre_vote"))};
        record->is_own = strcmp(record->candidate, node) == 0;
        count++;
    }
    return count;
}

static bool has_voted(const json_t *votes, const char *name)
{
    const json_t *ballot;
    size_t position;

    json_array_foreach(votes, position, ballot) {
        if (strcmp(json_get_text(ballot, "voter"), name) == 0)
            return true;
    }
    return false;
}

/* Voters of today that the candidate had not heard of when it was over. */
static void print_absent(const struct cli *cli, const struct cluster_view *view, const json_t *votes,
                         size_t widest)
{
    for (size_t i = 0; i < view->node_count; i++) {
        const struct cluster_node *node = &view->nodes[i];

        if ((strcmp(node->kind, "voter") == 0 || strcmp(node->kind, "witness") == 0) &&
            !has_voted(votes, node->name))
            printf("    %-*s  %sno answer by then%s\n", (int)widest, node->name, style_begin(cli, STYLE_DIM),
                   style_end(cli, STYLE_DIM));
    }
}

static void print_votes(const struct cli *cli, const struct cluster_view *view, const struct record *record)
{
    const json_t *election = record->json;
    const json_t *votes = json_object_get(election, "votes"), *ballot;
    size_t position, widest = 0;

    json_array_foreach(votes, position, ballot) {
        size_t width = text_columns(json_get_text(ballot, "voter"));

        widest = width > widest ? width : widest;
    }
    json_array_foreach(votes, position, ballot) {
        const char *voter = json_get_text(ballot, "voter"), *vote = json_get_text(ballot, "vote");
        const char *reason = json_get_text(ballot, "reason");
        bool is_for = strcmp(vote, json_get_text(election, "candidate")) == 0;

        printf("    %s%*s  %s", voter, (int)(widest - text_columns(voter)), "",
               style_begin(cli, is_for ? STYLE_GREEN : STYLE_YELLOW));
        if (*vote)
            printf("for %s", vote);
        else
            printf("no vote");
        printf("%s%s%s\n", style_end(cli, is_for ? STYLE_GREEN : STYLE_YELLOW),
               !is_for && *reason ? ": " : "", is_for ? "" : reason);
    }
    if (record->is_own)
        print_absent(cli, view, votes, widest);
}

static const char *result_text(const char *result)
{
    if (strcmp(result, "timed_out") == 0)
        return "ran out of time";
    if (strcmp(result, "overtaken") == 0)
        return "was overtaken by a later term";
    if (strcmp(result, "running") == 0)
        return "is standing";
    return result;
}

static void print_election(const struct cli *cli, const struct cluster_view *view,
                           const struct record *record)
{
    const json_t *duration = json_object_get(record->json, "duration_ms");
    const char *result = json_get_text(record->json, "result");
    enum style style = strcmp(result, "won") == 0 ? STYLE_GREEN : STYLE_YELLOW;

    printf("%sterm %" PRIu64 "%s  %s%s%s %s%s", style_begin(cli, STYLE_BOLD), record->term,
           style_end(cli, STYLE_BOLD), style_begin(cli, style), record->candidate, style_end(cli, style),
           result_text(result), record->is_pre_vote ? " (pre-vote)" : "");
    if (json_is_number(duration))
        printf(" in %.3g ms", json_number_value(duration));
    printf("%s  %s%s%s\n", record->is_own ? "" : ", as another node saw it", style_begin(cli, STYLE_DIM),
           record->started_at, style_end(cli, STYLE_DIM));
    print_votes(cli, view, record);
}

/* Prints up to `limit` of them; returns how many rounds of pre-votes were left out. */
static size_t print_records(const struct cli *cli, const struct cluster_view *view,
                            const struct record *records, size_t count, int64_t limit, json_t *list)
{
    bool wants_all = cli_flag_is_set(cli, "pre-votes");
    size_t left_out = 0;
    int64_t printed = 0;

    for (size_t i = 0; i < count && printed < limit; i++) {
        if (i > 0 && is_same(&records[i], &records[i - 1]))
            continue;
        if (records[i].is_pre_vote && !wants_all) {
            left_out++;
            continue;
        }
        if (list) {
            json_t *copy = json_deep_copy(records[i].json);

            json_put_text(copy, "told_by", records[i].node);
            json_array_append_new(list, copy);
        } else {
            if (printed)
                putchar('\n');
            print_election(cli, view, &records[i]);
        }
        printed++;
    }
    if (printed == 0 && !list)
        printf("The nodes remember no election.\n");
    return left_out;
}

/* Asks the nodes that answered for their records. */
static int show(const struct cli *cli, struct cluster_client *client, const struct cluster_view *view,
                int64_t limit)
{
    struct cluster_call calls[VIEW_NODES_MAX] = {0};
    const char *names[VIEW_NODES_MAX];
    struct record *records = calloc(RECORDS_MAX, sizeof *records);
    json_t *list = cli->config.json ? json_array() : NULL;
    size_t call_count = 0, count = 0, left_out;

    if (!records)
        return cli_fail(cli, GAVEL_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < view->node_count; i++)
        if (view->nodes[i].has_answered) {
            names[call_count] = view->nodes[i].name;
            strcpy(calls[call_count++].url, view->nodes[i].url);
        }
    cluster_get(client, "/elections?limit=128", calls, call_count, NULL, NULL);
    for (size_t i = 0; i < call_count; i++)
        if (calls[i].status == GAVEL_OK)
            count += collect(&calls[i], names[i], records + count, RECORDS_MAX - count);
    qsort(records, count, sizeof *records, by_age);
    left_out = print_records(cli, view, records, count, limit, list);
    if (list)
        json_print_line(json_pack("{s:s, s:o}", "cluster", view->cluster, "elections", list));
    else if (left_out)
        printf("\n%zu round%s of pre-votes that failed %s left out; --pre-votes shows them.\n", left_out,
               left_out > 1 ? "s" : "", left_out > 1 ? "are" : "is");
    free(records);
    cluster_calls_done(calls, call_count);
    for (size_t i = 0; i < view->node_count && !cli->config.json; i++)
        if (!view->nodes[i].has_answered)
            fprintf(stderr, "gavel elections: %s does not answer (%s); its records are missing\n",
                    *view->nodes[i].name ? view->nodes[i].name : view->nodes[i].address,
                    view->nodes[i].reason);
    return cli_finish(cli, CLI_EXIT_OK);
}

int command_elections(const struct cli *cli, int argc, char **argv)
{
    int64_t limit = cli_flag_number(cli, "limit", LIMIT_DEFAULT);
    struct cluster_client client;
    struct gavel_error error = {0};
    struct cluster_view view = {0};
    int code;

    (void)argc;
    (void)argv;
    if (limit == 0)
        return cli_fail(cli, GAVEL_ERR_INVALID, "--limit must be at least 1");
    if (cluster_open(cli, &client, &error) != GAVEL_OK || cluster_look(&client, &view, &error) != GAVEL_OK)
        code = cli_fail(cli, error.status, "%s", error.message);
    else
        code = show(cli, &client, &view, limit);
    cluster_view_done(&view);
    cluster_client_done(&client);
    return code;
}
