/* SPDX-License-Identifier: Apache-2.0 */

/* gavel watch: a line for who leads now, then one for each change. */
#include "cli/cli.h"
#include "cli/cluster/cluster_cli.h"
#include "cli/group/leadership.h"
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
static bool differs(const struct leadership *a, const struct leadership *b)
{
    return (a->state == LEADERSHIP_HELD) != (b->state == LEADERSHIP_HELD) ||
           (a->state == LEADERSHIP_DONE) != (b->state == LEADERSHIP_DONE) ||
           a->record.epoch != b->record.epoch || strcmp(a->record.holder, b->record.holder) != 0;
}

/* What happened, by the names that `gavel elect` has for it. */
static enum gavel_event_kind kind_of(const struct leadership *before, const struct leadership *leadership)
{
    if (leadership_loss(leadership->state) != GAVEL_LOSS_NONE)
        return GAVEL_EVENT_LEADER_DOWN;
    if (leadership->state == LEADERSHIP_HELD && before->state == LEADERSHIP_HELD &&
        strcmp(leadership->record.holder, before->record.holder) == 0)
        return GAVEL_EVENT_MANDATE_RENEWED;
    return GAVEL_EVENT_LEADER_CHANGED;
}

/* Who led last before what is seen now: where nobody leads, the record itself still names it. */
static const char *previous_of(const struct leadership *before, const struct leadership *leadership)
{
    return leadership->state == LEADERSHIP_HELD ? before->record.holder : leadership->record.holder;
}

static void print_json(const struct cli *cli, const struct leadership *before,
                       const struct leadership *leadership, int64_t now)
{
    json_t *json = json_object();

    json_put_time(json, "time", now);
    json_put_text(json, "event", before ? gavel_event_name(kind_of(before, leadership)) : "current");
    json_object_update_new(json, leadership_json(cli->config.group, leadership));
    if (before && kind_of(before, leadership) == GAVEL_EVENT_LEADER_CHANGED)
        event_json_put_change(json, previous_of(before, leadership),
                              leadership->state == LEADERSHIP_HELD ? leadership->record.holder : "");
    else if (before && kind_of(before, leadership) == GAVEL_EVENT_LEADER_DOWN)
        event_json_put_loss(json, previous_of(before, leadership), leadership_loss(leadership->state));
    json_print_line(json);
}

static void print_change(const struct cli *cli, const struct leadership *before,
                         const struct leadership *leadership)
{
    int64_t now = clock_wall_ms();
    char time[25];

    if (cli->config.json) {
        print_json(cli, before, leadership, now);
        return;
    }
    wall_time_format(now, time);
    printf("%s%s%s  ", style_begin(cli, STYLE_DIM), time, style_end(cli, STYLE_DIM));
    if (leadership->state == LEADERSHIP_HELD)
        printf("%s%s%s leads with epoch %" PRIu64 "\n", style_begin(cli, STYLE_GREEN),
               leadership->record.holder, style_end(cli, STYLE_GREEN), leadership->record.epoch);
    else
        printf("%snobody leads%s: %s%s\n", style_begin(cli, STYLE_YELLOW), style_end(cli, STYLE_YELLOW),
               leadership->record.holder, leadership_state_ending(leadership->state));
}

/* Whether looking again may help; a store that is damaged stays so. */
static bool may_pass(enum gavel_status status)
{
    return status == GAVEL_ERR_STORE_UNAVAILABLE || status == GAVEL_ERR_TIMEOUT;
}

static int watch(const struct cli *cli, const struct onlooker *onlooker, gavel_ns until)
{
    int64_t count = cli_flag_number(cli, "count", 0), printed = 0;
    struct leadership views[2] = {{0}};
    bool was_failing = false;

    for (;;) {
        struct leadership *now_leadership = &views[(printed + 1) % 2],
                          *before = printed ? &views[printed % 2] : NULL;
        struct gavel_error error = {0};
        gavel_ns now;

        if (leadership_read(onlooker, cli->config.group, now_leadership, &error) != GAVEL_OK) {
            if (!may_pass(error.status))
                return cli_fail(cli, error.status, "%s", error.message);
            if (!was_failing)
                log_line(&cli->log, clock_wall_ms(), LOG_WARNING, "the store does not answer, trying again",
                         LOG_STR("reason", error.message), LOG_END);
            was_failing = true;
        } else {
            was_failing = false;
            if (!before || differs(before, now_leadership)) {
                int code;

                print_change(cli, before, now_leadership);
                printed++;
                code = cli_finish(cli, CLI_EXIT_OK);
                if (code || (count && printed >= count))
                    return code;
            }
        }
        now = clock_now();
        if (now >= until)
            break;
        store_wait(onlooker->store, cli->config.group,
                   was_failing ? UINT64_MAX : now_leadership->record.version,
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
                        "--count must be at least 1; leave it out to watch without an end");
    if (onlooker_open(cli, until, limit_ms, &onlooker, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    code = watch(cli, &onlooker, until);
    onlooker_close(&onlooker);
    return code;
}
