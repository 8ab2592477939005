/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gavel handover: asks the leader to hand over, and waits for what comes of it.
 *
 * A group of a store is handled here: the wish is written into the record of
 * the group (it is void as soon as the epoch is another), and the leader's
 * doorbell makes it look at once. cluster/group_handover.c has the groups of
 * a cluster, cluster/handover.c its nodes. The older verbs resign, transfer
 * and stepdown stand at the end.
 */
#include "cli/cli.h"
#include "cli/cluster/cluster_cli.h"
#include "cli/group/leadership.h"
#include "cli/group/ring.h"
#include "cli/hint.h"
#include "cli/json_out.h"
#include "config/duration.h"
#include "os/clock.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT_DEFAULT_MS 10000
#define LOOK_EVERY_MS 20

struct handover {
    struct leadership before;
    struct leadership after;
    bool is_released; /* the former leader has given up */
    bool has_new;     /* another mandate has begun */
    gavel_ms took_ms;
};

struct listing {
    bool is_there;
    bool is_eligible;
};

/* What the list of active candidates says of one. */
static enum gavel_status look_up(const struct cli *cli, const struct onlooker *onlooker, const char *id,
                                 struct listing *ret_listing, struct gavel_error *error)
{
    struct store_request request = {.op = STORE_CANDIDATES,
                                    .group = cli->config.group,
                                    .candidate_timeout_ms = cli->config.settings.candidate_timeout_ms};
    struct store_reply reply = {0};
    enum gavel_status status = onlooker_call(onlooker, &request, &reply, error);

    *ret_listing = (struct listing){0};
    for (size_t i = 0; status == GAVEL_OK && !ret_listing->is_there && i < reply.registration_count; i++)
        if (strcmp(reply.registrations[i].id, id) == 0)
            *ret_listing = (struct listing){true, reply.registrations[i].eligible};
    store_reply_done(&reply);
    return status;
}

/* Whether the candidate that should lead next could; a leader would not hand over to it otherwise. */
static enum gavel_status check_successor(const struct cli *cli, const struct onlooker *onlooker,
                                         const char *successor, struct gavel_error *error)
{
    struct listing listing;
    enum gavel_status status = look_up(cli, onlooker, successor, &listing, error);

    if (status != GAVEL_OK)
        return status;
    if (!listing.is_there)
        return error_set(error, GAVEL_ERR_LEADER_TRANSFER_FAILED,
                         "the group \"%.60s\" has no active candidate \"%.60s\"; `%s` lists them",
                         cli->config.group, successor, hint_group(cli, "candidates").text);
    if (!listing.is_eligible)
        return error_set(error, GAVEL_ERR_LEADER_TRANSFER_FAILED,
                         "\"%.60s\" is not eligible, so it cannot lead; choose another", successor);
    return GAVEL_OK;
}

/*
 * Whether the leader reads wishes. A mandate without a nonce was not claimed by a candidate of gavel: either
 * a cluster gave it to one of a session, which is listed, or it is that of a program that shares the store.
 */
static enum gavel_status check_leader(const struct cli *cli, const struct onlooker *onlooker,
                                      const struct record *record, struct gavel_error *error)
{
    struct listing listing;
    enum gavel_status status;

    if (!nonce_equal(record->nonce, (struct nonce){0}))
        return GAVEL_OK;
    status = look_up(cli, onlooker, record->holder, &listing, error);
    if (status != GAVEL_OK || listing.is_there)
        return status;
    return error_set(
        error, GAVEL_ERR_LEADER_TRANSFER_FAILED,
        "%.100s leads, but is not a candidate of gavel and cannot be asked; stop that program itself, or wait until its lease has run out",
        record->holder);
}

/* Writes the wish for the epoch that was seen. */
static enum gavel_status ask(const struct cli *cli, const struct onlooker *onlooker,
                             const struct record *record, struct gavel_error *error)
{
    const char *successor = cli_flag_text(cli, "to");
    struct store_request request = {.op = STORE_ASK, .group = cli->config.group};
    struct store_reply reply = {0};
    enum gavel_status status;

    request.record.wish_epoch = record->epoch;
    request.record.wish_force = cli_flag_is_set(cli, "force");
    if (successor)
        snprintf(request.record.wish_successor, sizeof request.record.wish_successor, "%s", successor);
    status = onlooker_call(onlooker, &request, &reply, error);
    store_reply_done(&reply);
    return status == GAVEL_ERR_NOT_HOLDER ? GAVEL_OK : status; /* it has just changed: what we wanted */
}

/* Looks until another mandate has begun, or the time is over. */
static enum gavel_status wait_for(const struct cli *cli, const struct onlooker *onlooker,
                                  struct handover *handover, struct gavel_error *error)
{
    gavel_ns begin = clock_now();
    gavel_ns until = begin + ns_from_ms(cli_flag_duration(cli, "timeout", TIMEOUT_DEFAULT_MS));

    for (;;) {
        enum gavel_status status = leadership_read(onlooker, cli->config.group, &handover->after, error);
        gavel_ns now = clock_now();

        if (status != GAVEL_OK)
            return status;
        handover->took_ms = ms_from_ns(now - begin);
        handover->has_new = handover->after.state == LEADERSHIP_HELD &&
                            handover->after.record.epoch > handover->before.record.epoch;
        handover->is_released = handover->has_new || handover->after.state != LEADERSHIP_HELD;
        if (handover->has_new || now >= until)
            return GAVEL_OK;
        store_wait(onlooker->store, cli->config.group, handover->after.record.version,
                   ns_min(until, now + ns_from_ms(LOOK_EVERY_MS)));
    }
}

static void print_json(const struct cli *cli, const struct handover *handover)
{
    json_t *json = json_object();

    json_put_text(json, "group", cli->config.group);
    json_put_text(json, "previous", handover->before.record.holder);
    json_put_number(json, "previous_epoch", (int64_t)handover->before.record.epoch);
    json_put_text_or_null(json, "leader_id",
                          handover->after.state == LEADERSHIP_HELD ? handover->after.record.holder : "");
    json_put_number(json, "epoch", (int64_t)handover->after.record.epoch);
    json_put_number(json, "took_ms", handover->took_ms);
    json_print_line(json);
}

/* Says what came of it. */
static int conclude(const struct cli *cli, const struct handover *handover)
{
    const char *desired = cli_flag_text(cli, "to"), *former = handover->before.record.holder;
    char text[DURATION_TEXT_MAX];

    if (!handover->is_released)
        return cli_fail(
            cli, GAVEL_ERR_TIMEOUT,
            "%s still leads after %s; its minimum mandate may not be over (--force overrides it), or it is frozen and will lose its lease. The wish stays until this epoch ends",
            former, duration_exact(handover->took_ms, text));
    if (desired && handover->has_new && strcmp(desired, handover->after.record.holder) != 0)
        return cli_fail(cli, GAVEL_ERR_LEADER_TRANSFER_FAILED,
                        "%s has handed over, but %s leads now, not %s; `%s` says whether it takes part",
                        former, handover->after.record.holder, desired, hint_group(cli, "candidates").text);
    if (desired && !handover->has_new)
        return cli_fail(
            cli, GAVEL_ERR_LEADER_TRANSFER_FAILED,
            "%s has handed over, but %s has not taken over within %s; `%s` says whether it takes part",
            former, desired, duration_exact(handover->took_ms, text), hint_group(cli, "candidates").text);
    if (cli->config.json)
        print_json(cli, handover);
    else if (handover->has_new)
        printf("%s leads now with epoch %" PRIu64 ", %s after %s was asked to hand over.\n",
               handover->after.record.holder, handover->after.record.epoch,
               duration_exact(handover->took_ms, text), former);
    else
        printf("%s has handed over; nobody has taken over within %s.\n", former,
               duration_exact(handover->took_ms, text));
    return cli_finish(cli, CLI_EXIT_OK);
}

static int hand_over(const struct cli *cli, const struct onlooker *onlooker)
{
    const char *desired = cli_flag_text(cli, "to");
    struct gavel_error error = {0};
    struct handover handover = {0};

    if (leadership_read(onlooker, cli->config.group, &handover.before, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    if (handover.before.state != LEADERSHIP_HELD)
        return cli_fail(cli, GAVEL_ERR_NO_LEADER,
                        "the group \"%s\" of %s has no leader that could hand over: %s", cli->config.group,
                        cli->config.store, leadership_state_text(handover.before.state));
    if (desired && strcmp(desired, handover.before.record.holder) == 0) {
        handover.after = handover.before;
        if (cli->config.json)
            print_json(cli, &handover);
        else
            printf("%s leads already, with epoch %" PRIu64 ".\n", desired, handover.before.record.epoch);
        return cli_finish(cli, CLI_EXIT_OK);
    }
    if (check_leader(cli, onlooker, &handover.before.record, &error) != GAVEL_OK ||
        (desired && check_successor(cli, onlooker, desired, &error) != GAVEL_OK))
        return cli_fail(cli, error.status, "%s", error.message);
    if (ask(cli, onlooker, &handover.before.record, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    if (handover.before.record.address[0])
        ring_address(handover.before.record.address, cli->config.group);
    if (wait_for(cli, onlooker, &handover, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    return conclude(cli, &handover);
}

/* Of a group, wherever it is. */
static int hand_group_over(const struct cli *cli)
{
    const char *desired = cli_flag_text(cli, "to");
    struct onlooker onlooker = {0};
    struct gavel_error error = {0};
    int code;

    if (desired && name_check("candidate id", desired, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "--to: %s", error.message);
    if (cli->config.cluster)
        return group_handover(cli, desired, HANDOVER);
    if (onlooker_open(cli, 0, 0, &onlooker, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    if (store_capabilities(onlooker.store)->is_fixed)
        code =
            cli_fail(cli, GAVEL_ERR_STORE_UNSUPPORTED,
                     "the store %s assigns a fixed leader, which cannot hand over; name another in --store",
                     cli->config.store);
    else
        code = hand_over(cli, &onlooker);
    onlooker_close(&onlooker);
    return code;
}

int command_handover(const struct cli *cli, int argc, char **argv)
{
    const char *to = cli_flag_text(cli, "to");

    (void)argc;
    (void)argv;
    if (!cli->config.cluster || cli->config.has_group)
        return hand_group_over(cli);
    if (!to && cli_flag_is_set(cli, "force"))
        return cli_fail(cli, GAVEL_ERR_INVALID,
                        "--force needs the node that is to lead: --to NODE --force; `%s` lists them",
                        hint_all(cli, "member list").text);
    return cluster_handover(cli, to);
}

/* The older verb for groups: where a cluster is named and no group, the group `default` is meant. */
int command_resign(const struct cli *cli, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return hand_group_over(cli);
}

/* The older verb for nodes and for groups of a cluster; the name may stand alone. */
int command_transfer(const struct cli *cli, int argc, char **argv)
{
    const char *to = cli_flag_text(cli, "to");

    if (argc > 0 && to)
        return cli_fail(cli, GAVEL_ERR_INVALID,
                        "--to and \"%.60s\" both say who is to lead; give one of them", argv[0]);
    if (argc > 0)
        to = argv[0];
    if (!to && cli->config.has_group)
        return cli_fail(
            cli, GAVEL_ERR_INVALID,
            "name the candidate that is to lead: gavel handover --group GROUP --to NAME; `%s` lists them",
            hint_group(cli, "candidates").text);
    if (!to)
        return cli_fail(cli, GAVEL_ERR_INVALID,
                        "name the node that is to lead: gavel handover --to NODE; `%s` lists them",
                        hint_all(cli, "member list").text);
    if (cli->config.has_group && !cli->config.cluster)
        return cli_fail(
            cli, GAVEL_ERR_INVALID,
            "no cluster is named; give --cluster HOST:PORT,… or set GAVEL_CLUSTER, or say `gavel handover --group %s --to %s`, which is for every store",
            cli->config.group, to);
    return cli->config.has_group ? group_handover(cli, to, HANDOVER_TRANSFER) : cluster_handover(cli, to);
}

/* The older verb for nodes without a successor. */
int command_stepdown(const struct cli *cli, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return cluster_handover(cli, NULL);
}
