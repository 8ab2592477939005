/* SPDX-License-Identifier: Apache-2.0 */

/* gavel watch: a line for who leads now, then one for each change. */
#include "cli/cli.h"
#include "cli/cluster/cluster_cli.h"
#include "cli/group/seat.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "cli/run/event_json.h"
#include "os/clock.h"

#include <gavel/event.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A death or an expiry writes nothing to the store, so nothing but looking shows it. */
#define LOOK_EVERY_MS 100
#define RETRY_MS 1000

/* A renewal changes the version of the record, and why nobody leads may change; neither is another leader. */
static bool differs(const struct seat *a, const struct seat *b)
{
    return (a->state == SEAT_HELD) != (b->state == SEAT_HELD) ||
           (a->state == SEAT_DONE) != (b->state == SEAT_DONE) || a->record.epoch != b->record.epoch ||
           strcmp(a->record.holder, b->record.holder) != 0;
}

/* What happened, by the names that `gavel elect` has for it. */
static enum gavel_event_kind kind_of(const struct seat *before, const struct seat *seat)
{
    if (seat_loss(seat->state) != GAVEL_LOSS_NONE)
        return GAVEL_EVENT_LEADER_DOWN;
    if (seat->state == SEAT_HELD && before->state == SEAT_HELD &&
        strcmp(seat->record.holder, before->record.holder) == 0)
        return GAVEL_EVENT_MANDATE_RENEWED;
    return GAVEL_EVENT_LEADER_CHANGED;
}

/* Who led last before what is seen now: where nobody leads, the record itself still names it. */
static const char *previous_of(const struct seat *before, const struct seat *seat)
{
    return seat->state == SEAT_HELD ? before->record.holder : seat->record.holder;
}

static void print_json(const struct cli *cli, const struct seat *before, const struct seat *seat, int64_t now)
{
    json_t *json = json_object();

    json_put_time(json, "time", now);
    json_put_text(json, "event", before ? gavel_event_name(kind_of(before, seat)) : "current");
    json_object_update_new(json, seat_json(cli->config.group, seat));
    if (before && kind_of(before, seat) == GAVEL_EVENT_LEADER_CHANGED)
        event_json_put_change(json, previous_of(before, seat),
                              seat->state == SEAT_HELD ? seat->record.holder : "");
    else if (before && kind_of(before, seat) == GAVEL_EVENT_LEADER_DOWN)
        event_json_put_loss(json, previous_of(before, seat), seat_loss(seat->state));
    json_print_line(json);
}

/* Why nobody leads, short enough for a line with the time. */
static const char *short_reason(enum seat_state state)
{
    switch (state) {
    case SEAT_RELEASED:
        return " gave up";
    case SEAT_LAPSED:
    case SEAT_EXPIRED:
        return " lost its lease";
    case SEAT_KILLED:
        return " was killed";
    case SEAT_DEAD:
        return " died";
    case SEAT_DONE:
        return " has done the work for good";
    default:
        return "nobody has led yet";
    }
}

static void print_change(const struct cli *cli, const struct seat *before, const struct seat *seat)
{
    int64_t now = clock_wall_ms();
    char time[25];

    if (cli->config.json) {
        print_json(cli, before, seat, now);
        return;
    }
    wall_time_format(now, time);
    printf("%s%s%s  ", style_begin(cli, STYLE_DIM), time, style_end(cli, STYLE_DIM));
    if (seat->state == SEAT_HELD)
        printf("%s%s%s leads with epoch %" PRIu64 "\n", style_begin(cli, STYLE_GREEN), seat->record.holder,
               style_end(cli, STYLE_GREEN), seat->record.epoch);
    else
        printf("%snobody leads%s: %s%s\n", style_begin(cli, STYLE_YELLOW), style_end(cli, STYLE_YELLOW),
               seat->record.holder, short_reason(seat->state));
}

/* Whether looking again may help; a store that is damaged stays so. */
static bool may_pass(enum gavel_status status)
{
    return status == GAVEL_ERR_STORE_UNAVAILABLE || status == GAVEL_ERR_TIMEOUT;
}

static int watch(const struct cli *cli, const struct onlooker *onlooker, gavel_ns until)
{
    int64_t count = cli_flag_number(cli, "count", 0), printed = 0;
    struct seat seats[2] = {{0}};
    bool was_failing = false;

    for (;;) {
        struct seat *now_seat = &seats[(printed + 1) % 2], *before = printed ? &seats[printed % 2] : NULL;
        struct gavel_error error = {0};
        gavel_ns now;

        if (seat_read(onlooker, cli->config.group, now_seat, &error)) {
            if (!may_pass(error.status))
                return cli_fail(cli, error.status, "%s", error.message);
            if (!was_failing)
                log_line(&cli->log, clock_wall_ms(), LOG_WARNING, "the store does not answer, trying again",
                         LOG_STR("reason", error.message), LOG_END);
            was_failing = true;
        } else {
            was_failing = false;
            if (!before || differs(before, now_seat)) {
                int code;

                print_change(cli, before, now_seat);
                printed++;
                code = cli_finish(cli, CLI_EXIT_OK);
                if (code || (count && printed >= count))
                    return code;
            }
        }
        now = clock_now();
        if (now >= until)
            break;
        store_wait(onlooker->store, cli->config.group, was_failing ? UINT64_MAX : now_seat->record.version,
                   ns_min(until, now + ns_from_ms(was_failing ? RETRY_MS : LOOK_EVERY_MS)));
    }
    if (count)
        return cli_fail(cli, GAVEL_ERR_TIMEOUT, "only %" PRId64 " of %" PRId64 " lines came in time", printed,
                        count);
    return cli_finish(cli, CLI_EXIT_OK);
}

int command_watch(const struct cli *cli, int argc, char **argv)
{
    gavel_ms limit_ms = cli_flag_duration(cli, "timeout", 0);
    gavel_ns until = limit_ms ? clock_now() + ns_from_ms(limit_ms) : NEVER;
    struct onlooker onlooker = {0};
    struct gavel_error error = {0};
    int code;

    (void)argc;
    (void)argv;
    if (cli->config.cluster)
        return cli->config.has_group ? group_watch(cli) : cluster_watch(cli);
    if (cli_flag_number(cli, "count", 1) == 0)
        return cli_fail(cli, GAVEL_ERR_INVALID,
                        "--count: at least 1 line is printed; leave it out to watch without an end");
    if (onlooker_open(cli, until, &onlooker, &error))
        return cli_fail(cli, error.status, "%s", error.message);
    code = watch(cli, &onlooker, until);
    onlooker_close(&onlooker);
    return code;
}
